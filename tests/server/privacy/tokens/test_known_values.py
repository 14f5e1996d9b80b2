"""Values that the vault knows, wherever they stand."""

from __future__ import annotations

import pytest

from sealab.server.privacy.tokens.known_values import KnownValues


def found(text: str, **values: str) -> list[tuple[str, str]]:
    known = KnownValues()
    for kind, value in values.items():
        known.add(value, kind)
    return [(text[span.start : span.end], span.type) for span in known.find(text)]


def test_a_name_is_found_as_a_word_and_not_within_another() -> None:
    assert found("Ann Lee met Ann Leeson.", PERSON="Ann Lee") == [("Ann Lee", "PERSON")]


@pytest.mark.parametrize("text", ["xq7Rz-91kLmP", "q7Rz-91kLmPx", "q7Rz-91kLmP_2", "q7Rz-91kLmP"])
def test_a_secret_is_found_with_other_letters_beside_it_too(text: str) -> None:
    assert found(text, SECRET="q7Rz-91kLmP") == [("q7Rz-91kLmP", "SECRET")]


def test_a_secret_written_twice_is_found_twice() -> None:
    assert len(found("q7Rz-91kLmP" * 2, SECRET="q7Rz-91kLmP")) == 2


def test_of_many_values_the_newer_half_is_found_and_what_is_met_again_is_new() -> None:
    known = KnownValues(100)
    names = [f"user{number}@corp.example" for number in range(220)]
    for name in names:
        known.add(name, "EMAIL")
        known.add(names[0], "EMAIL")
    assert len(known) <= 101
    found = {span.start for span in known.find(" ".join(names))}
    assert {(" ".join(names)).index(name) for name in (names[0], *names[-50:])} <= found
    assert known.kind_of(names[100]) is None
    assert known.add(names[100], "EMAIL")
    assert not known.add(names[100], "EMAIL")


def test_what_is_known_takes_no_more_memory_the_longer_values_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.known_values.KNOWN_CHARS_MAX", 10_000)
    known = KnownValues()
    for number in range(500):
        known.add(f"{number} {'x' * 1000}", "ADDRESS")
    assert len(known) <= 12


@pytest.mark.parametrize("count", [5, 400])
def test_secrets_are_found_between_letters_however_many_there_are(count: int) -> None:
    known = KnownValues()
    secrets = [f"{chr(97 + number % 26)}{number:03}Zq8sT5vR2n" for number in range(count)]
    for secret in secrets:
        known.add(secret, "SECRET")
    text = "".join(f"x{secret}y" for secret in secrets[:5]) + "漢"
    known.add("漢字", "PERSON")
    assert [text[span.start : span.end] for span in known.find(text)] == secrets[:5]
    assert [span.type for span in known.find("是漢字的")] == ["PERSON"]
