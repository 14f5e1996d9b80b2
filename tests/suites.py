"""The long suites: all of them for `make long`, or those of one turn, as CI runs them.

The suites are dealt to `TURNS` turns of about the same length. CI takes the turn of the number of commits, so that each
suite runs once in as many commits. What one suite prints is shown when it has failed, and its last lines when it has not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

TURNS = 10
_SHARDS = 12
_LAST_LINES = 12
_FAILED_LINES = 200
_VERSIONS = ("3.12", "3.13")


@dataclass(frozen=True)
class Suite:
    """A target of make with its variables, and the minutes that it takes on two processors."""

    target: str
    minutes: float
    needs: str = ""
    """The variable without which it cannot run: WRAPPER or CORPORA."""


def suites() -> list[Suite]:
    """Return every long suite."""
    return [
        *(Suite(f"unit TIER=long SHARD={number}/{_SHARDS}", 4) for number in range(1, _SHARDS + 1)),
        *(Suite(f"version VERSION={version} SHARD={part}/2", 5) for version in _VERSIONS for part in (1, 2)),
        Suite("py314", 5),
        Suite("crash SAVES=100 RUNS=10 SESSIONS=1", 2),
        Suite("clients", 3),
        Suite("cluster PARTS=checks", 5),
        Suite("chaos SECONDS=180", 4, "WRAPPER"),
        Suite("corpora", 2, "CORPORA"),
        Suite("habits", 2, "CORPORA"),
    ]


def dealt(turns: int = TURNS) -> list[list[Suite]]:
    """Return the suites of each turn: the longest first, each to the turn that has least."""
    turn: list[list[Suite]] = [[] for _ in range(turns)]
    for suite in sorted(suites(), key=lambda each: (-each.minutes, each.target)):
        min(turn, key=lambda each: sum(other.minutes for other in each)).append(suite)
    return turn


def chosen(turn: int | None) -> list[Suite]:
    """Return the suites of a turn, which is counted on over the last one, or all."""
    return suites() if turn is None else dealt()[turn % TURNS]


def run(suite: Suite, variables: Sequence[str]) -> bool:
    """Run a suite; of tests that fail, each once more by itself, since real processes share a noisy machine."""
    begun = time.monotonic()
    print(f"\n== make {suite.target}", flush=True)
    made = _make(suite.target, variables)
    if made.returncode and suite.target.startswith(("unit", "version")):
        print("\n".join(made.stdout.splitlines()[-_FAILED_LINES:]), "\nWhat failed, once more:", flush=True)
        made = _make(f"{suite.target} ONCE_MORE=1", variables)
    lines = made.stdout.splitlines()
    print("\n".join(lines if made.returncode else lines[-_LAST_LINES:]))
    minutes, seconds = divmod(round(time.monotonic() - begun), 60)
    print(f"== {'FAILED' if made.returncode else 'passed'} in {minutes}:{seconds:02}: make {suite.target}", flush=True)
    return not made.returncode


def _make(target: str, variables: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *target.split(), *variables]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    made.add_argument(
        "--turn", type=int, help=f"run the suites of one of {TURNS} turns only; a number beyond them starts over"
    )
    made.add_argument("--list", action="store_true", help="print the turns, and run nothing")
    made.add_argument("--wrapper", default="", help="a command that gives its arguments a throw-away machine")
    made.add_argument("--corpora", default="", help="a folder with public programs")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that the arguments choose; return 1 where one failed or could not run."""
    told = parser().parse_args(arguments)
    if told.list:
        for number, turn in enumerate(dealt()):
            print(
                f"{number}  {sum(suite.minutes for suite in turn):2.0f} min  {'; '.join(suite.target for suite in turn)}"
            )
        return 0
    variables = {"WRAPPER": told.wrapper, "CORPORA": told.corpora}
    given = [f"{name}={value}" for name, value in variables.items() if value]
    failed = []
    for suite in chosen(told.turn):
        if suite.needs and not variables[suite.needs]:
            print(f"\n== left out, since no {suite.needs} is given: make {suite.target}")
        elif not run(suite, given):
            failed.append(suite.target)
    if failed:
        print("\nFailed:", *failed, sep="\n  make ")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
