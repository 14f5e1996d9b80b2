"""`str.format` does what CPython's does, and judges every attribute it reads."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.dialect import formatting
from sealab.sandbox.dialect.facades import find
from sealab.sandbox.dialect.formatting import has_lookups
from sealab.sandbox.dialect.guards import SecurityError, guarded_getattr

format_string = partial(formatting.format_string, read_attribute=guarded_getattr)
format_string_map = partial(formatting.format_string_map, read_attribute=guarded_getattr)

THING = SimpleNamespace(x=3, items=[1, "two", {"k": 2.5}], name="n")
ARGS = (7, "text", 2.5, [1, 2, 3], THING)
KWARGS = {"a": 1, "b": "bee", "thing": THING, "w": 6}

pieces = st.sampled_from(
    [
        *(
            "x",
            " ",
            "{{",
            "}}",
            "{}",
            "{0}",
            "{1!r}",
            "{2:.2f}",
            "{a}",
            "{b:>{w}}",
            "{3[0]}",
            "{4.x}",
            "{thing.x:0{w}d}",
        ),
        *(
            "{thing.items[2][k]:.{a}f}",
            "{thing.name!s:^{w}}",
            "{missing}",
            "{9}",
            "{",
            "}",
            "{0",
            "{a!z}",
            "{:d}",
            "{4.nope}",
        ),
        *("{3[x]}", "{b:{w}.{a}}", "{thing.items[1]!a}", "{0:{1:{2}}}", "{.x}", "{[0]}", "{a:{thing.x}}"),
    ]
)


def outcome(call: object, *args: object) -> tuple[str, str]:
    try:
        return "value", call(*args)  # type: ignore[operator]  # one of the two functions compared
    except Exception as error:
        return "error", type(error).__name__


@given(st.lists(pieces, max_size=5).map("".join))
def test_any_template_gives_what_cpython_gives(template: str) -> None:
    expected = outcome(lambda: template.format(*ARGS, **KWARGS))
    assert outcome(lambda: format_string(template, ARGS, KWARGS)) == expected


@given(st.lists(pieces, max_size=4).map("".join))
def test_any_template_with_a_mapping_gives_what_cpython_gives(template: str) -> None:
    expected = outcome(lambda: template.format_map(KWARGS))
    assert outcome(lambda: format_string_map(template, KWARGS)) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", False),
        ("{} {0:.2f} {x:>10.3}", False),
        ("1.5 [x] {}", False),
        ("{0.x}", True),
        ("{a[0]}", True),
        ("{0:{1.x}}", True),
        ("{0.x} {", True),
    ],
)
def test_only_templates_that_look_something_up_leave_cpythons_own_path(template: str, expected: bool) -> None:
    assert has_lookups(template) is expected


@pytest.mark.parametrize(
    "template", ["{0.__globals__}", "{0.__code__.co_code}", "{0:{0.__globals__}}", "{0.__globals__} {"]
)
def test_a_refused_attribute_is_refused_at_any_depth(template: str) -> None:
    with pytest.raises(SecurityError, match="attribute"):
        format_string(template, (guarded_getattr,), {})


def test_a_string_subclass_cannot_change_its_template_while_it_is_judged() -> None:
    class Sly(str):
        __slots__ = ()

        def __contains__(self, _part: object) -> bool:
            return False

        def __str__(self) -> str:
            return "harmless"

    with pytest.raises(SecurityError):
        format_string(Sly("{0.__globals__}"), (guarded_getattr,), {})


def test_the_formatter_class_judges_what_it_looks_up() -> None:
    assert find("string").Formatter().format("{0.x} {a[0]}", THING, a=[5]) == "3 5"
    with pytest.raises(SecurityError):
        find("string").Formatter().format("{0.__globals__}", guarded_getattr)
