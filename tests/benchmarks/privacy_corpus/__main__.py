"""What is found in generated documents of 16 locales, by kind and by sort of text, and what is found falsely.

    python -m tests.benchmarks.privacy_corpus [--mode fast|balanced] [--rounds N] [--seed N] [--set tuned|held-out] [--locale L] [--beside-presidio]

Values are Faker's, telephone numbers libphonenumber's, templates our own. Recognizers may be made while looking at the
`tuned` set; `held-out` has other labels, templates, forms and another seed, and only its figures are looked at.
A value is found if at least nine tenths of its letters and digits are covered by findings; a finding is false if less
than half of it lies in marked values. City, address and the rest count alike.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..privacy import NOT_COUNTED, Find, covered, presidio_with_spacy, sealab
from .documents import Document, Writer
from .locales import KINDS, LOCALES

SORTS = ("fields", "local prose", "English prose")
SEEDS = {"tuned": 18, "held-out": 4711}


# A title is no part of a name: `Dr. Weber` and `Weber` are one person.
TITLES = re.compile(
    r"(?:(?:Dr|Prof|Mr|Mrs|Ms|Miss|Mx|Sr|Sra|Srta|Dra|Sig|Dott|Mme|Mlle|Dhr|Mevr|Herrn?|Frau|Ing|Mag|Hon|Rev|Lic|Arq|pan|pani|Pan|Pani|Bay|Bayan|"
    r"Sayın|Öğr|Doç|Uzm|Sig\.ra|Dott\.ssa|Dipl\.-Ing|Univ\.Prof|dhr|mevr|г-н|г-жа|тов|пан|пані|панна|добродій|добродійка|संमानित|माननीय|आदरणीय|श्री|श्रीमती|सुश्री|डॉ|कुमारी|السيد|السيدة|الأستاذ|الأستاذة|الدكتور|الدكتورة|"
    r"المهندس|المهندسة|الآنسة|د|أ|م)\.? ){1,4}"
)


def named(text: str, mark: tuple[int, int, str]) -> tuple[int, int, str]:
    """Return a mark without the titles that a name begins with."""
    title = TITLES.match(text, mark[0], mark[1]) if mark[2] == "person" else None
    return (title.end(), mark[1], mark[2]) if title else mark


class Figures:
    """What was marked, found and found falsely in the documents of one locale."""

    def __init__(self) -> None:
        self.marked: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.false = 0
        self.chars = 0
        self.missed: list[str] = []

    def add(self, document: Document, findings: Iterable[tuple[int, int, str]]) -> None:
        """Count one document."""
        counted = [each for each in findings if each[2] not in NOT_COUNTED]
        self.chars += len(document.text)
        for mark in (named(document.text, each) for each in document.marks):
            is_found = covered(document.text, mark, counted) >= 0.9
            for column in (mark[2], document.sort, "all"):
                self.marked[column] += 1
                self.found[column] += is_found
            if not is_found:
                self.missed.append(
                    f"missed {mark[2]:8} {document.text[mark[0] : mark[1]]!r} in {document.text[max(0, mark[0] - 40) : mark[1] + 30]!r}"
                )
        for each in counted:
            if covered(document.text, each, document.marks) < 0.5:
                self.false += 1
                self.missed.append(
                    f"false  {each[2]:8} {document.text[each[0] : each[1]]!r} in {document.text[max(0, each[0] - 40) : each[1] + 30]!r}"
                )

    def cells(self, columns: Iterable[str]) -> list[str]:
        """Return recall in percent for each column, and false findings to a KB."""
        shares = [f"{100 * self.found[c] / self.marked[c]:.0f}" if self.marked[c] else "-" for c in columns]
        return [*shares, f"{self.false / (self.chars / 1024):.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", default="balanced", choices=["fast", "balanced"])
    parser.add_argument("--rounds", type=int, default=8, help="so many documents of each form and locale")
    parser.add_argument("--seed", type=int, default=None, help="another seed than the usual one of the set")
    parser.add_argument("--set", dest="sets", action="append", choices=list(SEEDS), help="one of the two sets alone")
    parser.add_argument("--locale", action="append", help="only this one; may be given again")
    parser.add_argument("--show", action="store_true", help="print what was missed and what is false")
    parser.add_argument("--beside-presidio", action="store_true", help="also stock Presidio with spaCy's small model")
    parser.add_argument(
        "--write", type=Path, help="a folder to write the documents to, one file of JSON lines a locale"
    )
    options = parser.parse_args()
    finds: dict[str, Find | str] = {f"sealab {options.mode}": sealab(options.mode)}
    if options.beside_presidio:
        finds["Presidio, spaCy small"] = presidio_with_spacy()
    columns = (*KINDS, *SORTS, "all")
    for name, find in finds.items():
        if isinstance(find, str):
            print(f"{name}: {find}")
            continue
        for each in options.sets or SEEDS:
            print(f"\n{name}, {each} set: recall in %, false findings to a KB")
            print(f"{'':8}" + "".join(f"{column[:8]:>9}" for column in (*columns, "false/KB")))
            for locale in LOCALES:
                if options.locale and locale.name not in options.locale:
                    continue
                seed = SEEDS[each] if options.seed is None else options.seed
                documents = list(Writer(locale, seed, held_out=each == "held-out").documents(options.rounds))
                figures = Figures()
                for document in documents:
                    figures.add(document, find(document.text))
                print(f"{locale.name:8}" + "".join(f"{cell:>9}" for cell in figures.cells(columns)), flush=True)
                if options.show:
                    print("\n".join(figures.missed))
                if options.write:
                    write(options.write / f"{locale.name}.{each}.jsonl", documents)


def write(path: Path, documents: list[Document]) -> None:
    """Write documents in the form that `make bench-privacy` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"text": d.text, "spans": [[a, b, "LOCATION" if k == "city" else k.upper()] for a, b, k in d.marks]}
        for d in documents
    ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


if __name__ == "__main__":
    main()
