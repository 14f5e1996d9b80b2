"""Recognizers of the operator's: in Python, from packages or the data path, and in a file of Presidio's format."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from presidio_analyzer import EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from sealab.server.base.errors import SettingsError
from sealab.server.base.settings import Settings
from sealab.server.privacy.detection import added
from sealab.server.privacy.detection.added import RecognizersInvalid, read_recognizers
from sealab.server.privacy.detection.detect import (
    DetectionFailed,
    Detector,
    DetectorOptions,
    KeyedText,
    Mode,
    added_recognizers,
)
from sealab.server.privacy.privacy import Privacy

from ...command_line import run, sealab
from ..found import found

_PACKAGE = """
from presidio_analyzer import EntityRecognizer, RecognizerResult

class Tickets(EntityRecognizer):
    def __init__(self):
        super().__init__(supported_entities=["TICKET"], name="Tickets")
    def load(self):
        pass
    def analyze(self, text, entities, nlp_artifacts):
        words = [word for word in nlp_artifacts.tokens if word.text.startswith("tkt")]
        return [RecognizerResult("TICKET", word.idx, word.idx + len(word), 0.9) for word in words]

def both():
    return [Tickets(), Tickets()]

def wrong():
    return ["a text"]
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages with one that adds recognizers; the test writes its entry points."""
    (tmp_path / "tickets_of_tests.py").write_text(_PACKAGE)
    info = tmp_path / "tickets_of_tests-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tickets-of-tests\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield info / "entry_points.txt"
    sys.modules.pop("tickets_of_tests", None)


class _Python(EntityRecognizer):
    """A recognizer that does with a text what a test says."""

    def __init__(self, name: str = "Python") -> None:
        super().__init__(supported_entities=["THING"], name=name)

    def load(self) -> None:
        pass

    def analyze(self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts) -> list[RecognizerResult]:
        del entities, nlp_artifacts
        if "raise" in text:
            raise RuntimeError(f"it said {text}")
        at = text.find("thing")
        return [RecognizerResult("THING", at, at + 5, 0.8)] if at >= 0 else []


def _detector(*recognizers: EntityRecognizer) -> Detector:
    return Detector(DetectorOptions(mode=Mode.FAST, recognizers=recognizers))


@pytest.mark.parametrize("given", ["Tickets", "both"])
def test_an_installed_package_adds_recognizers_by_its_entry_points(installed: Path, given: str) -> None:
    installed.write_text(f"[sealab.recognizers]\ntickets = tickets_of_tests:{given}\n")
    detector = _detector(*added_recognizers(None))
    assert found(detector, "see tkt-77 by jo@example.org") == [("tkt-77", "TICKET"), ("jo@example.org", "EMAIL")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("tickets_of_tests:wrong", r"tickets \(tickets_of_tests:wrong\) of sealab.recognizers gives str"),
        ("tickets_of_tests:none", "cannot be loaded: AttributeError"),
        ("no_such_module:x", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_named_and_every_text_withheld(
    installed: Path, value: str, said: str
) -> None:
    installed.write_text(f"[sealab.recognizers]\ntickets = {value}\n")
    with pytest.raises(DetectionFailed, match=said):
        added_recognizers(None)


def test_a_recognizer_that_raises_withholds_the_text_and_its_message(tmp_path: Path) -> None:
    detector = _detector(_Python())
    assert found(detector, "one thing") == [("thing", "THING")]
    with pytest.raises(DetectionFailed, match="Python raised RuntimeError, so the text is withheld") as failed:
        detector.find("raise for jo@example.org")
    assert "jo@example.org" not in str(failed.value)
    assert found(detector, "one thing") == [("thing", "THING")]


def test_lone_surrogates_and_far_offsets_do_not_disturb_an_added_recognizer() -> None:
    assert found(_detector(_Python()), "\ud800\udfff thing") == [("thing", "THING")]


def test_a_file_of_recognizers_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("recognizers: 3")
    with pytest.raises(SettingsError, match=r"PRIVACY_RECOGNIZERS: .*mine\.yaml, line 1: there is no list"):
        Privacy(Settings(privacy_recognizers="mine.yaml"), tmp_path, pytest.fail)
    assert "mine.yaml, line 1" in run(tmp_path, "1", SEALAB_PRIVACY_RECOGNIZERS="mine.yaml").refusal()


def test_presidio_is_in_no_process_of_the_server_but_that_of_readers(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "recognizers: [{name: Projects, supported_entity: PROJECT, deny_list: [Bluebird]}]"
    )
    program = f"""
import sys
from pathlib import Path
from sealab.server.privacy.privacy import Privacy
from sealab.server.base.settings import Settings
Privacy(Settings(privacy_recognizers="mine.yaml"), Path({str(tmp_path)!r}), lambda: None)
print([each for each in ("presidio_analyzer", "spacy", "regex") if each in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[]\n"


def test_the_file_of_recognizers_hides_on_the_way_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "recognizers: [{name: Projects, supported_entity: PROJECT, deny_list: [Bluebird]}]"
    )
    env = {"SEALAB_PRIVACY_RECOGNIZERS": str(tmp_path / "mine.yaml"), "SEALAB_VAULT_KEYRING": "false"}
    ended = sealab("pii", "sanitize", "--home", str(tmp_path), stdin="About Bluebird.\n", **env)
    assert ended.stdout.startswith("About [PROJECT_")


_FILE = r"""
supported_languages: [en, de]
recognizers:
  - name: Mess number
    supported_language: en
    supported_entity: MESS
    patterns:
      - {name: mess, regex: '\bQ\d{4}\b', score: 0.2}
    context: [mess, canteen]
  - name: Projects
    supported_entity: PROJECT
    deny_list: [Bluebird, Nightjar]
  - name: Off
    enabled: false
    supported_entity: OFF
    deny_list: [visible]
  - name: EsNifRecognizer
    type: predefined
    supported_languages: [es]
  - name: EmailRecognizer
    type: predefined
"""


def _reading(tmp_path: Path, content: str = _FILE, **options: object) -> Detector:
    file = tmp_path / "recognizers.yaml"
    file.write_text(content, encoding="utf-8")
    return Detector(DetectorOptions(mode=Mode.FAST, recognizers=read_recognizers(file), **options))  # type: ignore[arg-type] # as a test gives them


def test_patterns_context_words_and_deny_lists_hide_beside_our_own(tmp_path: Path) -> None:
    detector = _reading(tmp_path)
    text = "The canteen knows Q1234; BLUEBIRD is late, write to jo@example.org"
    assert found(detector, text) == [("Q1234", "MESS"), ("BLUEBIRD", "PROJECT"), ("jo@example.org", "EMAIL")]
    assert found(detector, "The part is Q1234 and it is visible.") == []


def test_a_validated_match_of_a_predefined_recognizer_counts_and_an_invalid_one_does_not(tmp_path: Path) -> None:
    detector = _reading(tmp_path)
    assert found(detector, "ref 55555555K x") == [("55555555K", "ES_NIF")]
    assert found(detector, "ref 55555555A x") == []


def test_what_is_added_is_found_in_structured_values_and_far_into_a_text(tmp_path: Path) -> None:
    detector = _reading(tmp_path)
    leaves = [KeyedText(("mess",), "Q1234"), KeyedText(("note",), "of Nightjar")]
    assert [[each.type for each in leaf] for leaf in detector.find_leaves(leaves)] == [["MESS"], ["PROJECT"]]
    text = "it was said. " * 3000 + "mess: Q9876"
    assert found(detector, text) == [("Q9876", "MESS")]
    glued = "Nightjar " * 2000
    assert len(found(detector, glued)) == 2000


def test_thresholds_allowed_values_and_types_hold_for_what_is_added(tmp_path: Path) -> None:
    text = "mess Q1234, Bluebird, jo@example.org"
    assert found(_reading(tmp_path, allow=("Bluebird", "Q1234")), text) == [("jo@example.org", "EMAIL")]
    assert found(_reading(tmp_path, types=frozenset({"PROJECT"})), text) == [("Bluebird", "PROJECT")]
    assert ("Q1234", "MESS") not in found(_reading(tmp_path, thresholds={"MESS": 0.9}), text)
    with pytest.raises(ValueError, match=r"ELSE is not a type; .*PROJECT"):
        _reading(tmp_path, types=frozenset({"ELSE"}))


def test_an_expression_that_runs_away_withholds_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added, "_EXPRESSION_SECONDS", 0.05)
    slow = "recognizers: [{name: Slow, supported_entity: SLOW, patterns: [{name: a, regex: '(x+x+)+y', score: 1}]}]"
    detector = _reading(tmp_path, slow)
    assert found(detector, "xxy") == [("xxy", "SLOW")]
    with pytest.raises(DetectionFailed, match=r"Slow failed: one of its expressions took more than 0\.05 seconds"):
        detector.find("x" * 2000)


UNUSABLE = [
    ("", "is empty"),
    ("a: [", "line 1: this is not YAML"),
    ("- x", "line 1: the file is not a table of keys"),
    ("other: 1", "line 1: 'other' is not a key of the file. The keys are supported_languages"),
    ("supported_languages: [en]", "there is no list `recognizers`"),
    ("recognizers: []", "no recognizer is enabled"),
    ("recognizers:\n  - {name: A, enabled: false}", "no recognizer is enabled"),
    ("recognizers:\n  - name: NoSuchRecognizer", r"line 2: recognizers\[0\] \(NoSuchRecognizer\) cannot be used"),
    ("recognizers:\n  - {name: A, deny_list: [x]}", r"line 2: .*\(A\) cannot be used: .*supported_entity"),
    (
        "recognizers:\n  - name: A\n    supported_entity: AB\n    deny_list: [x]\n    deny_lists: [y]",
        r"line 5: 'deny_lists' is not a key of recognizers\[0\] \(A\)",
    ),
    (
        "recognizers:\n  - name: A\n    supported_entity: AB\n    patterns:\n      - name: p\n        regex: '('\n        score: 1",
        "line 6: `regex` is not a regular expression",
    ),
    (
        "recognizers:\n  - {name: A, supported_entity: AB, patterns: [{name: p, regex: x, score: 3}]}",
        "score should be between 0 and 1",
    ),
    ("recognizers:\n  - {name: A, supported_entity: a1, deny_list: [x]}", "the entity 'a1', which is not made of"),
    ("recognizers:\n  - {name: SpacyRecognizer, type: predefined}", "needs a language model"),
]


def test_a_file_that_cannot_be_used_is_refused_with_its_name_its_line_and_its_key(tmp_path: Path) -> None:
    for content, said in UNUSABLE:
        with pytest.raises(RecognizersInvalid) as refused:
            _reading(tmp_path, content)
        assert re.search(said, str(refused.value)), content
        assert str(tmp_path / "recognizers.yaml") in str(refused.value), content
    with pytest.raises(RecognizersInvalid, match="cannot be read: No such file"):
        read_recognizers(tmp_path / "none.yaml")


def test_the_example_of_the_page_on_privacy_does_what_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "privacy.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    text = "our staff: part B12345 of Nightjar, 55555555K"
    assert [kind for _, kind in found(_reading(tmp_path, example), text)] == ["BADGE", "PROJECT", "ES_NIF"]
