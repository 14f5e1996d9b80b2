"""The model of names: it comes with sealab, reads the pieces of words that it learned, and says the same everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.detection.detect import Detector
from sealab.server.privacy.detection.ner import model
from sealab.server.privacy.detection.ner.model import Rampart, WordPiece

from ...found import found

_FOLDER = Path(model.__file__).parent / "rampart"
_NAMES = [
    ("we met jane doe for lunch and she will call you about it", "jane doe"),
    ("Yesterday Thessaly Delacroix asked whether her order had been shipped.", "Thessaly Delacroix"),
    ("The report was written by our colleague Chidi Okonkwo in Lagos.", "Chidi Okonkwo"),
    ("Zoë Kravčenko-Müller sent the draft to us, and we like it.", "Zoë Kravčenko-Müller"),
]


def test_names_in_prose_are_found(balanced: Detector) -> None:
    for text, name in _NAMES:
        assert name in [text[each.start : each.end] for each in balanced.find(text) if each.type == "PERSON"]


def test_pieces_of_words_have_the_labels_that_the_published_model_gives_them() -> None:
    """The labels are those of the published file, of four bits: see tests/benchmarks/names_model.py."""
    text = "My name is Jane Doe and I live at 12 Main Street, Springfield, IL 62704."
    ids = wordpiece.encode(text).ids
    names = json.loads((_FOLDER / "config.json").read_text())["id2label"]
    logits = Rampart().logits([wordpiece.number("[CLS]"), *ids, wordpiece.number("[SEP]")])[1:-1]
    labels = [names[str(best)] for best in logits.argmax(-1)]
    assert [f"{PIECES[each]} {label}" for each, label in zip(ids, labels, strict=True) if label != "O"] == [
        *("jane B-GIVEN_NAME", "doe B-SURNAME", "12 B-BUILDING_NUMBER", "main B-STREET_NAME", "street I-STREET_NAME"),
        *("spring B-CITY", "##field B-CITY", "il B-STATE", "62 B-ZIP_CODE", "##70 B-ZIP_CODE", "##4 B-ZIP_CODE"),
    ]


def test_the_model_has_no_threads_of_its_own_which_a_fork_would_lack() -> None:
    before = psutil.Process().num_threads()
    loaded = Rampart()
    assert loaded.logits([wordpiece.number("[CLS]")] * 510).shape[0] == 510
    assert psutil.Process().num_threads() == before


def test_the_model_is_attributed_where_it_stands_and_in_the_notice() -> None:
    assert "National Design Studio" in (_FOLDER / "LICENSE").read_text()
    notice = (Path(__file__).parents[5] / "docs" / "NOTICE").read_text()
    assert "Creative Commons Attribution 4.0" in notice
    assert "server/privacy/detection/ner/rampart" in notice


def test_a_known_given_name_is_found_without_a_capital_or_beside_a_family_name_and_is_no_name_as_a_word(
    balanced: Detector,
) -> None:
    for text, name in (
        ("jane doe", "jane doe"),
        ("JANE DOE", "JANE DOE"),
        ("the invoice of jane doe is due", "jane doe"),
        ("My name is bob", "bob"),
        ("hi i'm bob", "bob"),
        ("I saw Paris Hilton yesterday.", "Paris Hilton"),
        ("May Chen joined in May.", "May Chen"),
    ):
        assert found(balanced, text) == [(name, "PERSON")], text
    for text in (
        "mark done",
        "max value",
        "alba server",
        "frank words",
        "the elena model",
        "In May the Paris office grew.",
    ):
        assert found(balanced, text) == [], text


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
