"""What is learned from answers: shapes that grow with every answer, and never a value."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.describing import learned as learned_module
from sealab.tools_registry.describing.learned import LearnedTypes, observed, settled
from sealab.tools_registry.describing.shapes import from_json, merged, to_json, union
from sealab.tools_registry.describing.signatures import LearnedShape, render


def learned(tmp_path: Path, *answers: Any) -> str:
    types = LearnedTypes(tmp_path / "registry" / "learned.json")
    for answer in answers:
        types.observe("server.tool", answer)
    found = types.get("server.tool")
    assert found is not None
    assert found.count == len(answers)
    return render(found.shape)


@pytest.mark.parametrize(
    ("answers", "shape"),
    [
        (["text", "more"], "str"),
        ([{"id": 1, "name": "x"}, {"id": 2}], '{"id": int, "name": NotRequired[str]}'),
        ([[], [{"a": 1}], [{"a": None}]], 'list[{"a": int | None}]'),
        ([[{"a": 1}, {"a": 2.5}]], 'list[{"a": float}]'),
        ([{"items": []}, {"items": ["x"]}], '{"items": list[str]}'),
        ([None, {"a": True}], '{"a": bool} | None'),
        ([{"a": {"b": {"c": "x"}}}], '{"a": {"b": {"c": str}}}'),
        ([{}, {}], "dict"),
        (["x", 1], "str | int"),
    ],
)
def test_answers_are_merged_into_one_shape(tmp_path: Path, answers: list[Any], shape: str) -> None:
    assert learned(tmp_path, *answers) == shape


@pytest.mark.parametrize(
    "answer",
    [
        {"alice@example.com": {"age": 7}, "bob@example.com": {"age": 8}},
        {"2026-01-31": {"age": 1}},
        {"7f3a9b12c4": {"age": 1}, "0b": {"age": 2}},
        {f"user{chr(97 + n)}{chr(97 + m)}": {"age": n} for n in range(10) for m in range(10)},
        {"src/main.py": {"age": 1}},
    ],
)
def test_keys_that_are_data_become_a_mapping_and_are_not_kept(tmp_path: Path, answer: dict[str, Any]) -> None:
    assert learned(tmp_path, answer) == 'dict[str, {"age": int}]'


def test_keys_that_differ_from_answer_to_answer_become_a_mapping(tmp_path: Path) -> None:
    assert learned(tmp_path, {"alice": 1, "bob": 2}, {"carol": 3, "dave": 4}) == "dict[str, int]"


def test_the_file_holds_shapes_and_counts_and_no_value_of_any_answer(tmp_path: Path) -> None:
    types = LearnedTypes(tmp_path / "learned.json")
    types.observe("a.b", {"secret": "hunter2", "list": ["swordfish"], "n": 424242, "alice@example.com": 1})
    types.save()
    text = (tmp_path / "learned.json").read_text()
    assert not any(value in text for value in ("hunter2", "swordfish", "424242", "alice"))
    assert (tmp_path / "learned.json").stat().st_mode & 0o077 == 0


def test_what_was_learned_is_known_to_the_next_session_and_two_sessions_add_up(tmp_path: Path) -> None:
    file = tmp_path / "learned.json"
    first, second = LearnedTypes(file), LearnedTypes(file)
    first.observe("a.b", {"x": 1})
    second.observe("a.b", {"x": 1, "y": 1})
    first.save()
    second.save()
    second.save()
    found = LearnedTypes(file).get("a.b")
    assert found is not None
    assert (found.count, render(found.shape)) == (2, '{"x": int, "y": NotRequired[int]}')


def test_a_damaged_file_is_learned_anew_and_forgetting_drops_one_server(tmp_path: Path) -> None:
    file = tmp_path / "learned.json"
    file.write_text('{"a.b": {"shape": {"list": 7}, "count": 1}}')
    types = LearnedTypes(file)
    assert types.get("a.b") is None
    for name in ("a.b", "ab.c"):
        types.observe(name, 1)
    types.save()
    types.forget("a")
    assert list(json.loads(file.read_text())) == ["ab.c"]
    assert types.get("a.b") is None


def test_threads_may_observe_together(tmp_path: Path) -> None:
    types = LearnedTypes(tmp_path / "learned.json")
    threads = [threading.Thread(target=lambda: [types.observe("a.b", {"n": n}) for n in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = types.get("a.b")
    assert found is not None
    assert found.count == 200


def test_a_huge_answer_is_learned_from_a_sample_and_kept_small(tmp_path: Path) -> None:
    wide = {
        f"field_{a}{b}": [{f"part_{c}": {"deep": [[[[[[1]]]]]]} for c in "abcdefghij"}]
        for a in "abcde"
        for b in "abcde"
    }
    types = LearnedTypes(tmp_path / "learned.json")
    types.observe("a.b", [wide] * 100_000)
    types.observe("a.b", [])
    types.save()
    assert (tmp_path / "learned.json").stat().st_size < 20_000


_ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef") | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(_ANSWERS, _ANSWERS, _ANSWERS)
def test_merging_is_the_same_in_any_order_and_survives_the_file(first: Any, second: Any, third: Any) -> None:
    one, two, three = observed(first), observed(second), observed(third)
    assert merged(one, one) == one
    assert _canonical(merged(one, two)) == _canonical(merged(two, one))
    assert _canonical(merged(merged(one, two), three)) == _canonical(merged(one, merged(two, three)))
    assert from_json(json.loads(json.dumps(to_json(one)))) == one
    assert settled(settled(one)) == settled(one)
    assert union([one, two, one]) == union([one, two])


def _canonical(shape: Any) -> Any:
    """The shape without the order of its keys."""
    return _sorted(to_json(shape))


def _sorted(content: Any) -> Any:
    if isinstance(content, dict):
        parts = {key: _sorted(value) for key, value in content.items()}
        for key in ("record", "one_of"):
            if key in parts:
                parts[key] = sorted(parts[key], key=json.dumps)
        return parts
    return [_sorted(each) for each in content] if isinstance(content, list) else content


def learned_of_calls(tmp_path: Path, *calls: tuple[dict[str, Any], Any]) -> LearnedShape:
    types = LearnedTypes(tmp_path / "registry" / "learned.json")
    for arguments, answer in calls:
        types.observe("db.query", answer, arguments)
        types.save()
    found = LearnedTypes(tmp_path / "registry" / "learned.json").get("db.query")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("calls", "shape"),
    [
        ([({"sql": "select id, name from user"}, [{"id": 1, "name": "x"}])], "list[dict[str, str | int]]"),
        ([({"steps": [{"fields": ["id"]}]}, {"rows": [{"id": 1}]})], '{"rows": list[dict[str, int]]}'),
        (
            [({"sql": "select * from user"}, [{"id": 1, "name": "x"}]), ({"sql": "select * from x"}, [{"sum": 1.5}])],
            "list[dict[str, str | float]]",
        ),
        (
            [
                ({"sql": "a"}, {"columns": ["x"], "rows": [{"id": 1, "age": 2, "a": 3}]}),
                ({"sql": "b"}, {"columns": ["x"], "rows": [{"id": 1, "sum": 2, "b": 3}]}),
                ({"sql": "c"}, {"columns": ["x"], "rows": [{"id": 1, "age": 2, "a": 3}]}),
            ],
            '{"columns": list[str], "rows": list[dict[str, int]]}',
        ),
    ],
)
def test_keys_that_depend_on_the_arguments_are_not_the_shape_of_a_tool(
    tmp_path: Path, calls: list[tuple[dict[str, Any], Any]], shape: str
) -> None:
    found = learned_of_calls(tmp_path, *calls)
    assert (render(found.shape), found.varies, found.count) == (shape, True, len(calls))


@pytest.mark.parametrize(
    ("calls", "shape"),
    [
        ([({"id": "7"}, {"id": 7, "name": "x"}), ({"id": "8"}, {"id": 8})], '{"id": int, "name": NotRequired[str]}'),
        (
            [({"q": "by name"}, {"id": 7, "name": "x", "a": 1}), ({"q": "id"}, {"id": 8, "name": "y", "b": 1})],
            '{"id": int, "name": str, "a": NotRequired[int], "b": NotRequired[int]}',
        ),
        ([({}, []), ({"page": 2}, [{"name": "x"}]), ({"page": 3}, None)], 'list[{"name": str}] | None'),
    ],
)
def test_fields_that_an_answer_may_lack_do_not_depend_on_the_arguments(
    tmp_path: Path, calls: list[tuple[dict[str, Any], Any]], shape: str
) -> None:
    found = learned_of_calls(tmp_path, *calls)
    assert (render(found.shape), found.varies) == (shape, False)


def test_the_words_of_arguments_are_looked_at_in_bounded_time_and_not_kept(tmp_path: Path) -> None:
    nested: dict[str, Any] = {"secret": "hunter2"}
    for _ in range(2_000):
        nested = {"inner": [nested, "swordfish " * 10_000]}
    learned_of_calls(tmp_path, (nested, {"a": 1}))
    assert "swordfish" not in (tmp_path / "registry" / "learned.json").read_text()


def many_parts(fields: int = 50) -> dict[str, Any]:
    """Return an answer whose keys all look like the fields of a record."""
    return {"k" + chr(97 + n // 26) + chr(97 + n % 26): "x" if n % 2 else 1 for n in range(fields)}


def test_what_is_learned_of_all_tools_together_is_bounded_and_the_newest_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_module, "NODES_TOGETHER_MAX", 1_000)
    file = tmp_path / "registry" / "learned.json"
    types = LearnedTypes(file)
    for n in range(40):
        types.observe(f"s.t{n}", many_parts())
    assert [n for n in range(40) if types.get(f"s.t{n}") is not None] == list(range(21, 40))
    types.save()
    for n in range(40, 45):
        types.observe(f"s.t{n}", many_parts())
    types.save()
    kept = [n for n in range(45) if LearnedTypes(file).get(f"s.t{n}") is not None]
    assert kept == list(range(26, 45))


def test_of_one_answer_with_many_parts_what_lies_deep_is_left_out_at_once(tmp_path: Path) -> None:
    types = LearnedTypes(tmp_path / "registry" / "learned.json")
    types.observe("s.t", {name: many_parts() for name in many_parts(10)})
    found = types.get("s.t")
    assert found is not None
    assert learned_module._nodes(found.shape) <= learned_module._NODES_MAX


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "registry" / "learned.json"
    types = LearnedTypes(file)
    types.observe("s.t", {"id": 1})
    types.save()
    assert LearnedTypes(file).get("s.t") is not None
    monkeypatch.setattr(learned_module, "FILE_BYTES_MAX", 10)
    assert LearnedTypes(file).get("s.t") is None
    assert "learned anew" in caplog.text
