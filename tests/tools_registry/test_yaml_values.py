from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.errors import DefinitionRefused
from sealab.tools_registry.yaml_values import read_yaml

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(TEXTS, each), max_leaves=20)


@given(VALUES, st.booleans())
def test_what_json_can_say_is_read_as_it_was_written(value, flow):
    assert read_yaml(yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow).encode()) == value


def test_texts_that_other_loaders_take_for_something_else_stay_texts():
    text = b"{on: no, at: 2020-01-01, y: =, n: 0x1f, f: 1e3, m: '<<', t: !!str 5, e: , s: '5'}"
    assert read_yaml(text) == {
        "on": "no", "at": "2020-01-01", "y": "=", "n": 31, "f": "1e3", "m": "<<", "t": "5", "e": None, "s": "5",
    }  # fmt: skip
    assert read_yaml(b"") is None


def test_aliases_stand_for_what_they_name_and_merges_give_way_to_what_is_written():
    text = b"base: &b {a: 1, c: 2}\nmore: &m {c: 3, d: 4}\nboth:\n  a: 0\n  <<: [*b, *m]\n  e: *m\nlist: [*b, '<<']\n"
    assert read_yaml(text) == {
        "base": {"a": 1, "c": 2}, "more": {"c": 3, "d": 4},
        "both": {"a": 0, "c": 2, "d": 4, "e": {"c": 3, "d": 4}}, "list": [{"a": 1, "c": 2}, "<<"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"a: &a [1, *a]", "stands for nothing that is complete"),
        (b"a: *nothing", "stands for nothing|undefined alias"),
        (b"a: !!python/object:os.system x", "its tag .* means nothing here in line 1"),
        (b"a: !!set {b, c}", "its tag .* means nothing here"),
        (b"? [a, b]\n: c", "a key that is a list"),
        (b"<<: 5", r"merges \(<<\) what is not an object"),
        (b"--- a\n--- b", "more than one document"),
        (b"[" * 200 + b"]" * 200, "nested deeper than 100"),
        (b"a: [1\nb: 2", "not valid YAML: .* in line"),
        (
            b"\n".join([b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"])
            + b"".join(b"\na%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)),
            "its aliases stand for more than 2,000,000 values",
        ),
    ],
)
def test_what_json_cannot_say_or_stands_for_too_much_is_refused(text, why):
    with pytest.raises(DefinitionRefused, match=why):
        read_yaml(text)


def test_long_texts_are_read_in_steps():
    steps = []
    read_yaml(b"- a\n" * 2_000, lambda: steps.append(1))
    assert len(steps) >= 10
