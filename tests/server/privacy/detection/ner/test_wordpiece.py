"""The pieces of words are those of Hugging Face's tokenizers, whose answers these are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.detection.ner import model
from sealab.server.privacy.detection.ner.wordpiece import WordPiece

PIECES = (Path(model.__file__).parent / "rampart" / "vocab.txt").read_text(encoding="utf-8").splitlines()
wordpiece = WordPiece(PIECES)


@pytest.mark.parametrize(
    ("text", "pieces", "spans"),
    [
        ("Jane Doe's", ["jane", "doe", "'", "s"], [(0, 4), (5, 8), (8, 9), (9, 10)]),
        (
            "Zoë Müller-Straße",
            ["zoe", "muller", "-", "st", "##raße"],
            [(0, 3), (4, 10), (10, 11), (11, 13), (13, 17)],
        ),
        ("e\u0301te\u0301", ["et", "##e"], [(0, 3), (3, 4)]),
        ("東京 tokyo", ["東", "京", "tokyo"], [(0, 1), (1, 2), (3, 8)]),
        ("İstanbul a\x00b", ["istanbul", "ab"], [(0, 8), (9, 12)]),
        ("mañana ½ €5", ["mana", "##na", "½", "€", "##5"], [(0, 4), (4, 6), (7, 8), (9, 10), (10, 11)]),
        ("ФИО김", ["ф", "##и", "##о", "##ᄀ", "##ᅵ", "##ᆷ"], [(0, 1), (1, 2), (2, 3), (3, 4), (3, 4), (3, 4)]),
        ("x" * 101, ["[UNK]"], [(0, 101)]),
        ("\u200dnaïve_x", ["na", "##ive", "_", "x"], [(1, 3), (3, 6), (6, 7), (7, 8)]),
    ],
)
def test_a_text_has_the_pieces_that_the_model_learned(
    text: str, pieces: list[str], spans: list[tuple[int, int]]
) -> None:
    encoded = wordpiece.encode(text)
    assert [PIECES[number] for number in encoded.ids] == pieces
    assert encoded.spans == spans
    assert wordpiece.encode(text, 7).spans == [(start + 7, end + 7) for start, end in spans]


@given(st.text(max_size=200))
def test_pieces_stand_in_order_within_the_text(text: str) -> None:
    encoded = wordpiece.encode(text)
    assert len(encoded.ids) == len(encoded.spans)
    assert all(0 <= start < end <= len(text) for start, end in encoded.spans)
    assert [start for start, _ in encoded.spans] == sorted(start for start, _ in encoded.spans)
