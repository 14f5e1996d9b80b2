"""JSON in steps: the same as in one step, whatever is read. That it takes linear time, `tests/fuzz/test_host.py` tests."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.wire import bounded_json
from sealab.sandbox.wire.bounded_json import check, is_light, read, read_in_steps, write, write_in_steps

MANY = 1_000_000
scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text() | st.text(st.sampled_from('\\"[]{},:u\ud83d\ude00 \x00d8'), max_size=60),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=30), inner, max_size=6),
    max_leaves=20,
)
objects = st.dictionaries(st.text(max_size=30), json_values, max_size=6)
step_sizes = st.sampled_from([12, 13, 17, 40, 1000])


@contextmanager
def steps_of(chars: int):
    before, bounded_json.STEP_CHARS = bounded_json.STEP_CHARS, chars
    try:
        yield
    finally:
        bounded_json.STEP_CHARS = before


def outcome(read_it, text: bytes):
    try:
        return repr(read_it(text, values_max=MANY))
    except (ValueError, RecursionError):
        return "refused"


def encoded(value: object, **how: object) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "backslashreplace")


@given(objects, step_sizes, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_read_in_steps_is_what_is_read_at_once(value, chars, ensure_ascii, indent):
    text = encoded(value, ensure_ascii=ensure_ascii, indent=indent)
    with steps_of(chars):
        in_steps = outcome(read_in_steps, text)
    assert in_steps == outcome(read, text)
    assert in_steps == repr(json.loads(text))


@given(objects, step_sizes, st.data())
def test_broken_json_is_refused_in_steps_as_it_is_at_once(value, chars, data):
    text = bytearray(encoded(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b",", b'"', b"[", b"]", b"{", b"}", b"\\", b":", b" ", b"1", b"\x00", b"\xff", b"-"])
        )
    at_once = outcome(read, bytes(text))
    with steps_of(chars):
        in_steps = outcome(read_in_steps, bytes(text))
    assert in_steps == (at_once if at_once.startswith("{") else "refused")


@given(json_values)
def test_what_is_written_in_steps_is_what_is_written_at_once(value):
    assert write_in_steps(value) == write(value)


def test_a_value_that_holds_itself_is_refused():
    value: list[object] = []
    value.append(value)
    with pytest.raises(ValueError, match="holds itself"):
        write_in_steps(value)


@pytest.mark.parametrize("read_it", [read, read_in_steps])
def test_depth_and_values_are_bounded_however_they_are_read(read_it):
    levels = bounded_json.DEPTH_MAX - 1
    assert read_it(b'{"x":' + b"[" * levels + b"]" * levels + b"}", values_max=MANY)
    with pytest.raises(ValueError, match="deeper"):
        read_it(b'{"x":' + b"[" * (levels + 1) + b"]" * (levels + 1) + b"}", values_max=MANY)
    with pytest.raises(ValueError, match="deeper"):
        read_it(b'{"x":' + b'[1,{"y":2},' * levels + b"1" + b"]" * levels + b"}", values_max=MANY)
    others = b'{"x":' + b"[" * (3 * levels) + b"]" * (3 * levels) + b"}"
    assert read_in_steps(others, values_max=MANY, lenient=True)
    with pytest.raises(ValueError, match="deeper"):
        read_in_steps(others.replace(b"[", b"[[").replace(b"]", b"]]"), values_max=MANY, lenient=True)
    few = b'{"x":["[,{"' + b',"[,{"' * 50 + b"]}"
    assert read_it(few, values_max=60)
    with pytest.raises(ValueError, match="values"):
        read_it(few, values_max=50)


def values_and_names(value: object) -> tuple[int, int]:
    """Count what stands in a value as `check` does: the values but the first of each list or object, and names."""
    if not isinstance(value, list | dict):
        return 0, 0
    inner = [values_and_names(each) for each in (value.values() if isinstance(value, dict) else value)]
    names = len(value) if isinstance(value, dict) else 0
    return 1 + max(0, len(value) - 1) + sum(each for each, _ in inner), names + sum(each for _, each in inner)


@given(objects, step_sizes, st.booleans(), st.sampled_from([None, 1]))
def test_values_and_names_are_counted_before_anything_is_decoded(value, chars, ensure_ascii, indent):
    text = encoded(value, ensure_ascii=ensure_ascii, indent=indent)
    values, names = values_and_names(json.loads(text))
    with steps_of(chars):
        check(text, values_max=values + 1, names_max=names)
        with pytest.raises(ValueError, match="more than"):
            check(text, values_max=values, names_max=names)
        if names:
            with pytest.raises(ValueError, match="names"):
                check(text, values_max=values + 1, names_max=names - 1)


@pytest.mark.parametrize("chars", [12, 1 << 15])
def test_depth_is_bounded_before_anything_is_decoded(chars):
    levels = bounded_json.DEPTH_MAX
    with steps_of(chars):
        check(b"[" * levels + b'"[[[' + b'\\"[' * 50 + b'"' + b"]" * levels, values_max=MANY, names_max=0)
        with pytest.raises(ValueError, match="deeper"):
            check(b'[{"x":' * (levels // 2) + b"[", values_max=MANY, names_max=MANY)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_json_of_other_encodings_is_refused_whose_quotes_are_not_found(encoding):
    with pytest.raises(ValueError, match="UTF-8"):
        check('["\u2200", [[1]]]'.encode(encoding), values_max=MANY, names_max=0)


def test_a_name_that_stands_twice_is_refused_however_far_apart():
    with steps_of(20), pytest.raises(ValueError, match="twice"):
        read_in_steps(b'{"x":1,"y":[[[1]]],"z":{"a":[[1],[2],[3],[4],[5],[6],[7]]},"x":2}', values_max=MANY)


@pytest.mark.parametrize(
    ("value", "light"),
    [
        ({"a": [1, "b", None]}, True),
        (["x" * 100] * 400, False),
        ([1] * 1000, False),
        ("x" * 100_000, False),
        ([[[1] * 200] * 2] * 2, False),
        ({"k" * 100_000: 1}, False),
        ((1, 2), True),
    ],
)
def test_what_is_light_is_small_in_all(value, light):
    assert is_light(value) is light
