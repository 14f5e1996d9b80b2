"""Texts without case, accents and signs: short and long ones are folded alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.tokens.forms import folding
from sealab.server.privacy.tokens.forms.folding import folded, folded_letters, folded_small, keys_of

letters = st.text(st.one_of(st.characters(), st.sampled_from("aZé ß_-9İıé́山ガ김ᄀक़Ж\ud800")), max_size=60)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in folded_small(text).word_spans()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("JaneDoe jane_doe", ["Jane", "Doe", "jane", "doe"]),
        ("HTMLText x1y2", ["HTML", "Text", "x", "1", "y", "2"]),
        ("+49 (30) 123", ["49", "30", "123"]),
        ("山田ab", ["山", "田", "ab"]),
        ("xअजित", ["x", "अजित"]),
        ("", []),
    ],
)
def test_words_end_where_letters_case_or_digits_do(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "forms",
    [
        ("Müller", "MÜLLER", "Mu\u0308ller", "muller", "MUL\u00adLER"),
        ("Straße", "strase"),
        ("İnönü", "i̇nönü", "INONU", "ınönü"),
        ("ガ", "カ\u3099"),
        ("٣٤", "34"),
        ("फ़", "फ\u093c"),
    ],
)
def test_case_and_accents_make_no_difference(forms: tuple[str, ...]) -> None:
    assert len({folded_letters(form) for form in forms}) == 1


@given(text=letters)
def test_long_texts_are_folded_as_short_ones_are(text: str) -> None:
    short = folded_small(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "_SMALL_CHARS", -1)
        long = folded(text)
    assert short.letters == long.letters
    for name in ("places", "starts", "ends", "sums"):
        assert list(map(int, getattr(short, name))) == list(map(int, getattr(long, name)))


@given(text=letters, start=st.integers(0, 40), length=st.integers(1, 40))
def test_the_key_of_a_stretch_is_that_of_its_letters_alone(text: str, start: int, length: int) -> None:
    said = folded_small(text)
    part = said.letters[start : start + length]
    if part:
        assert said.key(start, start + len(part)) == int(keys_of(["before", part])[1])
