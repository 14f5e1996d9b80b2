def test_additions_removals_and_changes_have_paths():
    told = json_diff({"a": 1, "b": [1, 2], "c": {"d": "x"}}, {"a": 1, "b": [1, 3, 4], "e": None})
    assert told == {
        "equal": False,
        "added": {"$.b[2]": 4, "$.e": None},
        "removed": {"$.c": {"d": "x"}},
        "changed": {"$.b[1]": {"before": 2, "after": 3}},
    }


def test_ignored_keys_and_tolerated_numbers_are_equal():
    assert json_diff({"n": 1.0, "at": 1}, {"n": 1.05, "at": 2}, ignore=["at"], tolerance=0.1)["equal"]


def test_types_matter():
    assert not json_diff(1, True)["equal"]
    assert json_diff(1, 1.0)["equal"]
    assert not json_diff("1", 1)["equal"]


def test_keys_that_are_no_names_are_quoted():
    assert list(json_diff({"a b": 1}, {"a b": 2})["changed"]) == ["$['a b']"]
