PEOPLE = [
    {"name": "Zoë", "mail": "z@x.org"},
    {"name": " zoe ", "mail": "z@x.org", "phone": "1"},
    {"name": "Bob", "mail": None},
]


def test_case_and_accents_make_no_difference_by_default():
    told = dedupe_records(PEOPLE, keys=["name"])
    assert (told["kept"], told["removed"]) == (2, 1)
    assert told["records"] == [PEOPLE[0], PEOPLE[2]]
    assert told["groups"] == [{"key": {"name": "zoe"}, "count": 2}]


def test_the_last_or_the_fullest_can_be_kept():
    assert dedupe_records(PEOPLE, ["name"], "last")["records"] == PEOPLE[1:]
    assert dedupe_records(PEOPLE, ["name"], "fullest")["records"] == PEOPLE[1:]


def test_whole_records_are_compared_without_keys():
    assert dedupe_records([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}])["kept"] == 2
    assert dedupe_records([{"a": "X"}, {"a": "x"}], fold=False)["kept"] == 2
