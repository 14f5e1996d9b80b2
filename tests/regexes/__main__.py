"""Refuse a regular expression of the server's process that is not linear in search.

    python -m tests.regexes

An exception stands in `bounded.toml`, with the bound of its input and why that holds.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .ambiguity import Judgement, Use, judge
from .sources import Expression, expressions, of_the_server

FILE = Path(__file__).parent / "bounded.toml"
SERVING = (
    *("sealab.server.app", "sealab.server.interfaces.protocol.serving", "sealab.server.privacy.remote"),
    *("sealab.server.privacy.tokens.sanitizer", "sealab.server.privacy.gates.run_gate"),
)
CHARS_MAX = 4096
"""The square of this many steps takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Exempt:
    """An exception: `pattern` as it is evaluated, or the source of one that is made at run time.

    Either its input has `chars` at most. Or it is tried at `successive` places, each where the last match ended, and is
    judged as it is at one. Or it is made at run time: then what it `stands` for is judged.
    """

    module: str
    pattern: str
    reason: str
    chars: int = 0
    successive: bool = False
    stands: str = ""


def exempt() -> list[Exempt]:
    """Return the exceptions."""
    return [Exempt(**each) for each in tomllib.loads(FILE.read_text()).get("expression", [])]


def worst(expression: Expression) -> Judgement:
    """Return the worst of what the uses of an expression take."""
    if expression.pattern is None:
        return Judgement(why_not="made at run time")
    judged = [
        judge(expression.pattern, expression.flags, use) for use in sorted(expression.uses, key=lambda use: use.value)
    ]
    return max(judged, key=lambda each: (bool(each.why_not), each.is_exponential, each.steps))


def told(expression: Expression) -> str:
    """Return a pattern as an exception names it."""
    pattern = expression.source if expression.pattern is None else expression.pattern
    return pattern if isinstance(pattern, str) else pattern.decode("latin-1")


def refused(found: list[Expression], exceptions: list[Exempt]) -> Iterator[str]:
    """Yield what is wrong: expressions that are not linear and no exceptions, and exceptions that are none."""
    known = {(each.module, each.pattern): each for each in exceptions}
    used = set()
    for expression in found:
        judgement = worst(expression)
        if judgement.is_linear:
            continue
        key = expression.module, told(expression)
        exception = known.get(key)
        used.add(key)
        where = f"{expression.module}:{expression.line}: {key[1]!r}"
        if exception is None:
            yield f"{where} is {judgement}. Write it so that it is linear, or bound its input and say so in {FILE.name}."
        elif judgement.is_exponential:
            yield f"{where} is {judgement}. No bound is small enough for that: write it so that it is linear."
        elif not exception.chars:
            use = Use.MATCH if exception.successive else Use.SEARCH
            pattern, flags = (exception.stands, 0) if exception.stands else (expression.pattern, expression.flags)
            again = Judgement(why_not="made at run time") if pattern is None else judge(pattern, flags, use)
            if not again.is_linear:
                yield f"{where} is {again}, also as {FILE.name} has it."
    for key in sorted(known.keys() - used):
        yield f"{FILE.name}: {key[0]} has no expression {key[1]!r} that needs an exception. Take that out."
    for each in exceptions:
        says = each.successive or each.stands
        if bool(each.chars) == bool(says) or not 0 <= each.chars <= CHARS_MAX or not each.reason:
            yield f"{FILE.name}: {each.module}: {each.pattern!r} needs either chars (up to {CHARS_MAX}) or what is judged, and a reason."


def unjudged(loaded: set[str], judged: list[str]) -> Iterator[str]:
    """Yield the modules of sealab that a process has imported and that are not judged."""
    names = {f"sealab.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for path in judged}
    yield from sorted(each for each in loaded - names if each.startswith("sealab."))


def loaded_by_the_server() -> set[str]:
    """Return what a process has imported that serves, and hides personal data."""
    code = f"import {', '.join(SERVING)}, sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def main() -> int:
    """Judge them all."""
    found = expressions()
    wrong = list(refused(found, exempt()))
    wrong += [
        f"{each} is imported by the server, and counted as what runs elsewhere: see sources.py."
        for each in unjudged(loaded_by_the_server(), of_the_server())
    ]
    for each in wrong:
        print(each)
    print(f"{len(found)} regular expressions in the server's process, {len(exempt())} exempt, {len(wrong)} refused")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
