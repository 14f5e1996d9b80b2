"""Tokens are recognisable by their form alone, and no two are alike."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sealab.server.access.token_text import PATTERN, digest_of, is_token, new_token


def test_a_token_has_the_form_that_the_documentation_tells_secret_scanners_and_no_two_are_alike() -> None:
    token = new_token()
    assert re.fullmatch(r"sealab_[0-9A-Za-z]{49}", token)
    assert PATTERN.pattern == r"sealab_[0-9A-Za-z]{49}"
    assert is_token(token)
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == len({digest_of(token) for token in tokens}) == 1000


@given(st.integers(7, 55), st.sampled_from("0123456789abcXYZ"))
def test_a_changed_character_is_told_by_the_checksum(at: int, character: str) -> None:
    token = new_token()
    changed = token[:at] + character + token[at + 1 :]
    assert is_token(changed) == (changed == token)


@given(st.text())
def test_any_other_text_is_no_token(text: str) -> None:
    for looks_like in (text, "sealab_" + text, "", "sealab_", "sealab_" + "0" * 49, "SEALAB_" + "0" * 49):
        assert not is_token(looks_like)
