"""`collections.OrderedDict` of restricted code, beside Python's own."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.dialect.facades.stand_ins.ordered_dict import OrderedDict

from ...guest_code import run

_KEYS = st.integers(0, 6)
_STEPS = st.one_of(
    st.tuples(st.just("__setitem__"), _KEYS, st.integers()),
    st.tuples(st.just("__delitem__"), _KEYS),
    st.tuples(st.just("pop"), _KEYS),
    st.tuples(st.just("pop"), _KEYS, st.none()),
    st.tuples(st.just("setdefault"), _KEYS, st.integers()),
    st.tuples(st.just("move_to_end"), _KEYS, st.booleans()),
    st.tuples(st.just("popitem"), st.booleans()),
    st.tuples(st.just("update"), st.dictionaries(_KEYS, st.integers(), max_size=3)),
    st.tuples(st.just("clear")),
)


def _answer(of: Any, name: str, *arguments: object) -> object:
    try:
        return getattr(of, name)(*arguments)
    except KeyError as error:
        return str(error) if name != "popitem" else "empty"


@given(st.lists(_STEPS, max_size=60))
def test_it_answers_and_orders_as_pythons_own(steps: list[tuple[Any, ...]]) -> None:
    ours, pythons = OrderedDict[int, int](), collections.OrderedDict[int, int]()
    for step in steps:
        assert _answer(ours, *step) == _answer(pythons, *step)
        assert [*ours.items()] == [*pythons.items()]
        assert [*reversed(ours)] == [*reversed(pythons)]
        assert repr(ours) == repr(pythons)


def test_a_long_one_is_emptied_at_its_front_without_passing_what_is_gone_each_time() -> None:
    table = OrderedDict((n, n) for n in range(2000))
    listed = 0
    while table:
        before = table._ahead
        assert table.popitem(last=False)[0] == 2000 - len(table) - 1
        listed += table._ahead is not before
    assert listed == 1


def test_what_left_its_place_is_not_kept_for_ever() -> None:
    table = OrderedDict((n, n) for n in range(10))
    table.popitem(last=False)
    for n in range(100):
        table[f"new {n}"] = n
        del table[f"new {n}"]
    assert table._ahead is None or len(table._gone) <= 10
    assert table.popitem(last=False) == (1, 1)


_SUBCLASS = """
import copy, pickle, collections
class Last(collections.OrderedDict):
    def __init__(self, *args, **kwargs):
        self.tag = 3
        super().__init__(*args, **kwargs)
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.move_to_end(key)
table = Last(a=1, b=2)
table["a"] = 5
table.popitem(last=False) if emptied else None
""".strip()


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("copied", ["copy.copy(table)", "copy.deepcopy(table)", "pickle.loads(pickle.dumps(table))"])
def test_a_subclass_is_asked_for_each_entry_and_copied_with_what_it_holds(copied: str, emptied: bool) -> None:
    source = f"emptied = {emptied}\n{_SUBCLASS}\nmade = {copied}\n[list(made.items()), type(made) is Last, made.tag]"
    items = [("a", 5)] if emptied else [("b", 2), ("a", 5)]
    assert run(source).value == [items, True, 3]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("OD(a=1, b=2) == OD(b=2, a=1)", False),
        ("OD(a=1, b=2) != OD(b=2, a=1)", True),
        ("OD(a=1, b=2) == {'b': 2, 'a': 1}", True),
        ("list((OD(b=1) | {'a': 2}).items())", [("b", 1), ("a", 2)]),
        ("type({'a': 2} | OD(b=1)) is OD", True),
        ("OD.fromkeys('ba', 0)", {"b": 0, "a": 0}),
        ("json.dumps(OD(b=1, a=OD()))", '{"b": 1, "a": {}}'),
        ("dict(OD(b=1)), {**OD(b=1)}", ({"b": 1}, {"b": 1})),
        ("typing.get_origin(typing.OrderedDict[str, int]) is OD is type(typing.OrderedDict(a=1))", True),
        ("str(typing.OrderedDict[str, int])", "typing.OrderedDict[str, int]"),
        ("repr(OD())", "OrderedDict()"),
        ("isinstance(OD(), dict) and issubclass(OD, typing.MutableMapping)", True),
        ("pprint.pformat(OD(b=1)) == repr(OD(b=1))", True),
        ("pprint.pformat(OD((f'key {n}', 'x' * 40) for n in range(3))).count('\\n')", 2),
    ],
)
def test_it_is_a_dict_wherever_code_uses_one(expression: str, value: object) -> None:
    source = f"import json, pprint, typing\nfrom collections import OrderedDict as OD\n{expression}"
    assert run(source).value == value
