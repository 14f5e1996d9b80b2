"""What it costs to look for known values in all their forms, by how many are known, beside two Aho-Corasick automata.

    python tests/benchmarks/privacy_known.py [--most N] [--automata FOLDER]

Printed are the time until the forms of all values are worked out (once, and again only for those that are added), the
memory that they take, what 100 more cost, and the fastest of ten searches of 100 KB of prose, of prose with many names
and of a log. FOLDER is one where `pip install --target FOLDER pyahocorasick ahocorasick-rs` has put both: they get the
names alone, in eight forms, in a text that is folded already, which takes as long again as is printed for it.
"""

from __future__ import annotations

import argparse
import importlib
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sealab.server.privacy.tokens.forms.folding import folded
from sealab.server.privacy.tokens.known_values import KnownValues

CHARS = 100_000
SOUNDS = [
    "ka",
    "lo",
    "mi",
    "ne",
    "ro",
    "sa",
    "ti",
    "ve",
    "an",
    "er",
    "is",
    "on",
    "ur",
    "be",
    "da",
    "go",
    "li",
    "ma",
    "pe",
    "shu",
    "stro",
    "wen",
    "cla",
    "dor",
    "fri",
    "hal",
]
WORDS = [
    "the",
    "quick",
    "order",
    "shipment",
    "was",
    "delivered",
    "late",
    "and",
    "the",
    "customer",
    "complained",
    "about",
    "invoice",
    "number",
    "status",
    "pending",
    "retry",
    "error",
    "timeout",
    "connection",
    "in",
    "2026",
    "with",
    "12",
    "items",
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--automata", type=Path)
    options = parser.parse_args()
    dice = random.Random(18)
    people = [f"{name(dice)} {name(dice)}" for _ in range(options.most)]
    texts = {
        "prose": " ".join(dice.choices(WORDS, k=CHARS // 5))[:CHARS],
        "names": " ".join(dice.choices([*WORDS, *" ".join(people[:400]).split()], k=CHARS // 5))[:CHARS],
        "log": "".join(
            f"2026-03-{n % 28 + 1:02}T10:15:{n % 60:02} INFO svc=billing trace={dice.randrange(16**12):012x} took_ms={n} status=ok\n"
            for n in range(CHARS // 60)
        )[:CHARS],
    }
    print(
        f"{'values':>24}{'worked out s':>14}{'MB':>6}{'100 more ms':>13}"
        + "".join(f"{each:>10}" for each in texts)
        + "   (ms)"
    )
    count = 1000
    while count <= options.most:
        before = memory()
        known = KnownValues(4 * options.most)
        began = time.process_time()
        for value, kind in values(people[: max(1, count // 4)], dice):
            known.add(value, kind)
        list(known.find("x"))
        took = time.process_time() - began
        size = memory() - before
        began = time.perf_counter()
        for number in range(100):
            known.add(f"{name(dice)} {name(dice)}{number}", "PERSON")
        list(known.find("x"))
        more = time.perf_counter() - began
        print(
            f"{len(known):>24}{took:>14.2f}{size:>6.0f}{1000 * more:>13.1f}"
            + "".join(f"{fastest(searching(known), t):>10.2f}" for t in texts.values()),
            flush=True,
        )
        count *= 10
    if options.automata is not None:
        sys.path.insert(0, str(options.automata))
        forms = list(dict.fromkeys(form for person in people for form in eight(person)))
        for library, build in (("ahocorasick", _in_c), ("ahocorasick_rs", _in_rust)):
            before, began = memory(), time.process_time()
            find = build(importlib.import_module(library), forms)
            took, size = time.process_time() - began, memory() - before
            print(
                f"{library + ', ' + str(len(forms)):>24}{took:>14.2f}{size:>6.0f}{1000 * took:>13.1f}"
                + "".join(f"{fastest(find, t):>10.2f}" for t in map(str.lower, texts.values()))
            )
        print("folding alone:" + "".join(f"{fastest(folded, t):>10.2f}" for t in texts.values()))


def name(dice: random.Random) -> str:
    """Return a name that nobody has."""
    return "".join(dice.choices(SOUNDS, k=dice.randrange(2, 5))).title()


def values(people: Iterable[str], dice: random.Random) -> Iterable[tuple[str, str]]:
    """Yield each person with three more values."""
    for number, person in enumerate(people):
        yield person, "PERSON"
        yield f"{person.lower().replace(' ', '.')}{number}@corp.example", "EMAIL"
        yield f"+1 {dice.randrange(200, 999)} {dice.randrange(10**7):07}", "PHONE"
        yield f"{dice.randrange(1, 999)} {person.split()[1]} Street, {name(dice)}ville", "ADDRESS"


def eight(person: str) -> list[str]:
    """Return eight forms of a name, between blanks."""
    given, family = person.lower().split()
    return [
        f" {form} " for a, b in ((given, family), (given[0], family)) for form in (f"{a} {b}", a + b, f"{b} {a}", b + a)
    ]


def _in_c(library: Any, forms: list[str]) -> Callable[[str], object]:
    automaton = library.Automaton(library.STORE_INTS)
    for number, form in enumerate(forms):
        automaton.add_word(form, number)
    automaton.make_automaton()
    return lambda text: list(automaton.iter(text))


def _in_rust(library: Any, forms: list[str]) -> Callable[[str], object]:
    automaton = library.AhoCorasick(forms, matchkind=library.MatchKind.Standard, store_patterns=False)
    return lambda text: automaton.find_matches_as_indexes(text, overlapping=True)


def memory() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def searching(known: KnownValues) -> Callable[[str], object]:
    """Return what looks through a text."""
    return lambda text: list(known.find(text))


def fastest(work: Callable[[str], object], text: str) -> float:
    """Return the least of ten times, in milliseconds."""
    times = []
    for _ in range(10):
        began = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
