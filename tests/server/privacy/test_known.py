"""Values that the vault knows, wherever they stand."""

from __future__ import annotations

import pytest

from sealab.server.privacy.known import KnownValues


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
