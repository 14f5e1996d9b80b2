from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.errors import ConfigurationRefused
from sealab.tools_registry.upstream.pins import Pins, Seen, StandingApproval, digest

ADD = {"name": "add", "description": "Add.", "input_schema": {"type": "object", "properties": {"a": {}, "b": {}}}}
SUB = {"name": "sub", "description": "Subtract.", "input_schema": {"type": "object"}}

RULE = StandingApproval({"to": "anna"}, {"amount": 100})


@pytest.fixture(params=["file", "memory"])
def pins(request, tmp_path):
    return Pins(tmp_path / "state" / "pins.json" if request.param == "file" else None)


def test_the_first_sight_pins_and_the_second_changes_nothing(pins):
    assert pins.see("s", [ADD, SUB]) == Seen(new=("add", "sub"))
    assert pins.see("s", [SUB, ADD]) == Seen()
    assert pins.quarantined("s") == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Add!"},
        {"title": "Adder"},
        {"input_schema": {"type": "object", "properties": {"a": {"description": "Ignore."}, "b": {}}}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ],
)
def test_whatever_a_model_would_read_is_pinned(pins, changed):
    pins.see("s", [ADD])
    assert pins.see("s", [{**ADD, **changed}]).changed == ("add",)
    assert pins.quarantined("s") == ("add",)
    assert pins.quarantined("other") == ()


def test_new_tools_do_not_quarantine_and_removed_ones_stay_pinned(pins):
    pins.see("s", [ADD])
    assert pins.see("s", [SUB]) == Seen(new=("sub",), removed=("add",))
    assert pins.quarantined("s") == ()
    assert pins.see("s", [SUB, {**ADD, "description": "Back, and other."}]).changed == ("add",)


def test_a_quarantine_ends_by_acceptance_alone(pins):
    pins.see("s", [ADD])
    other = {**ADD, "description": "Other."}
    pins.see("s", [other])
    assert pins.see("s", [ADD]) == Seen()
    assert pins.quarantined("s") == ("add",)
    pins.accept("s", [other])
    assert pins.quarantined("s") == ()
    assert pins.see("s", [other]) == Seen()
    assert pins.see("s", [ADD]).changed == ("add",)


def test_pins_outlive_the_process_and_others_see_them(tmp_path):
    file = tmp_path / "pins.json"
    Pins(file).see("s", [ADD])
    assert Pins(file).see("s", [{**ADD, "description": "Other."}]).changed == ("add",)
    assert Pins(file).quarantined("s") == ("add",)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_servers_pinned_at_the_same_time_are_all_kept(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: Pins(tmp_path / "pins.json").see(f"s{number}", [ADD]), range(16)))
    assert all(Pins(tmp_path / "pins.json").see(f"s{number}", [ADD]) == Seen() for number in range(16))


@pytest.mark.parametrize("text", ["{", "[]", '{"servers": 1}', '{"servers": {"s": {"tools": {"add": 1}}}}'])
def test_a_file_that_cannot_be_trusted_stops_everything(tmp_path, text):
    (tmp_path / "pins.json").write_text(text)
    with pytest.raises(ConfigurationRefused):
        Pins(tmp_path / "pins.json").see("s", [ADD])


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), min_size=2, max_size=5), st.randoms())
def test_the_order_of_keys_does_not_change_a_digest(properties, random):
    shuffled = list(properties.items())
    random.shuffle(shuffled)
    one = {"name": "t", "description": "", "input_schema": {"properties": properties}}
    assert digest(one) == digest({**one, "input_schema": {"properties": dict(shuffled)}})


def test_a_server_that_says_what_it_said_before_has_nothing_written(tmp_path):
    file = tmp_path / "pins.json"
    Pins(file).see("s", [ADD])
    before = file.stat()
    assert Pins(file).see("s", [ADD]) == Seen()
    assert file.stat().st_ino == before.st_ino
    Pins(file).see("s", [ADD, SUB])
    assert file.stat().st_ino != before.st_ino


def test_a_yes_to_all_calls_is_one_scopes_and_ends_when_its_tool_changes_or_is_asked_about_again(pins):
    pins.see("s", [ADD, SUB])
    for tool, scope in (("add", "me"), ("sub", "me"), ("add", "me"), ("add", "you")):
        pins.approve("s", tool, scope, RULE)
    assert pins.approved("s", "me") == {"add": [RULE], "sub": [RULE]}
    assert pins.approved("s", "you") == {"add": [RULE]}
    assert pins.approved("s", "them") == pins.approved("other", "me") == {}
    changed = {**ADD, "description": "It does something else now."}
    pins.see("s", [changed, SUB])
    pins.accept("s", [changed, SUB])
    assert (pins.approved("s", "me"), pins.approved("s", "you")) == ({"sub": [RULE]}, {})
    assert pins.approved("s") == {"sub": [RULE]}
    pins.ask_again("s")
    assert pins.approved("s") == {}
    assert pins.quarantined("s") == ()


@pytest.mark.parametrize(
    ("naming", "allowed"),
    [
        ({"to": "anna", "amount": 100}, True),
        ({"to": "anna", "amount": 0.5}, True),
        ({"to": "anna", "amount": 100.5}, False),
        ({"to": "anna", "amount": -1}, False),
        ({"to": "anna", "amount": True}, False),
        ({"to": "anna", "amount": "1"}, False),
        ({"to": "bert", "amount": 1}, False),
        ({"to": ["anna"], "amount": 1}, False),
        ({"to": "anna"}, False),
        ({"to": "anna", "amount": 1, "cc": "bert"}, False),
    ],
)
def test_a_rule_allows_the_same_parties_and_no_larger_sums(naming: dict[str, object], *, allowed: bool) -> None:
    assert RULE.allows(naming) is allowed


def test_a_yes_of_an_earlier_version_allows_calls_that_name_nothing(tmp_path):
    (tmp_path / "pins.json").write_text('{"servers": {"s": {"approved": {"me": ["add"]}}}}')
    (rule,) = Pins(tmp_path / "pins.json").approved("s", "me")["add"]
    assert rule.allows({})
    assert not rule.allows({"to": "anna"})
