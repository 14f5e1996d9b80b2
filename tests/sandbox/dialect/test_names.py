"""Names: one verdict each, and private ones spelled so that no host object can have them."""

from __future__ import annotations

import ast
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.dialect.names import PREFIX, Verdict, demangle, judge, mangle

identifiers = st.from_regex(r"_{0,3}[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True)


@given(identifiers)
def test_mangling_comes_back_as_it_was(name: str) -> None:
    assert demangle(mangle(name)) == name


@given(identifiers)
def test_a_private_name_is_spelled_as_no_host_object_spells_one(name: str) -> None:
    if judge(name) is Verdict.PRIVATE:
        assert mangle(name) == PREFIX + name
    else:
        assert mangle(name) == name


@given(identifiers)
def test_mangling_twice_changes_nothing_more(name: str) -> None:
    assert mangle(mangle(name)) == mangle(name)


@given(identifiers, identifiers)
def test_inside_a_class_double_underscores_are_spelled_as_python_spells_them(name: str, owner: str) -> None:
    code = compile(f"class {owner}:\n def f(self): self.{name}", "x", "exec")
    body = next(item for item in code.co_consts if hasattr(item, "co_consts"))
    function = next(item for item in body.co_consts if hasattr(item, "co_consts"))
    assert demangle(mangle(name, owner)) == function.co_names[0]


def test_the_prefix_begins_an_identifier_and_survives_normalisation() -> None:
    assert (PREFIX + "_x").isidentifier()
    assert unicodedata.normalize("NFKC", PREFIX) == PREFIX
    assert ast.parse(f"x.{PREFIX}_y").body[0].value.attr == PREFIX + "_y"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("total", Verdict.PLAIN),
        ("__len__", Verdict.PLAIN),
        ("__name__", Verdict.PLAIN),
        ("_asdict", Verdict.PLAIN),
        ("_missing_", Verdict.PLAIN),
        ("_x", Verdict.PRIVATE),
        ("__x", Verdict.PRIVATE),
        ("_", Verdict.PRIVATE),
        ("__tablename__", Verdict.PRIVATE),
        ("__class__", Verdict.GUARDED),
        ("__dict__", Verdict.GUARDED),
        ("__setattr__", Verdict.GUARDED),
        ("format", Verdict.GUARDED),
        ("get_loop", Verdict.GUARDED),
        ("__globals__", Verdict.REFUSED),
        ("__code__", Verdict.REFUSED),
        ("__reduce_ex__", Verdict.PRIVATE),
        ("gi_frame", Verdict.REFUSED),
        ("tb_frame", Verdict.REFUSED),
    ],
)
def test_a_name_has_one_verdict(name: str, verdict: Verdict) -> None:
    assert judge(name) is verdict


def test_messages_are_shown_as_their_author_spelled_the_names() -> None:
    assert demangle(f"'Q' object has no attribute '{PREFIX}_items'") == "'Q' object has no attribute '_items'"
