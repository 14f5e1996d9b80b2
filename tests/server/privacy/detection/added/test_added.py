"""Recognizers in Python: from installed packages, in the data path, and what happens when one fails or hangs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from presidio_analyzer import EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from sealab.server.errors import SettingsError
from sealab.server.privacy.detection.detect import (
    DetectionFailed,
    Detector,
    DetectorOptions,
    Mode,
    added_recognizers,
)
from sealab.server.privacy.privacy import Privacy
from sealab.server.settings import Settings

from ....command_line import run, sealab
from ...found import found

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
    ended = run(tmp_path, "1", SEALAB_PRIVACY_RECOGNIZERS="mine.yaml")
    assert ended.returncode == 2
    assert "mine.yaml, line 1" in ended.stderr


def test_the_file_of_recognizers_hides_on_the_way_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "recognizers: [{name: Projects, supported_entity: PROJECT, deny_list: [Bluebird]}]"
    )
    env = {"SEALAB_PRIVACY_RECOGNIZERS": str(tmp_path / "mine.yaml"), "SEALAB_VAULT_KEYRING": "false"}
    ended = sealab("pii", "sanitize", "--home", str(tmp_path), stdin="About Bluebird.\n", **env)
    assert ended.stdout.startswith("About [PROJECT_")
