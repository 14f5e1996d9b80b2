"""Runs a corpus of attacks, and our own, against the real product and tells what held.

    python tests/attacks/run.py CORPUS_FOLDER [--layer LAYER] [--id ID] [--json] [--as-user]

Attacks do real harm to what does not hold, so this refuses to run unless SEALAB_DISPOSABLE=1 says that the machine is
a throw-away one. The exit status is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import lane
from cases import OWN_CASES, Case, Mode, choose, load
from oracles import Held, Verdict

_TITLES = {
    Held.NOT_APPLICABLE: "Not applicable",
    Held.UNRELATED: "Held for an unrelated reason",
    Held.SETTLED: "Settled by what SECURITY.md says",
}
LAYERS = ("language", "resource", "workspace", "rpc", "kernel", "protocol")


def main(arguments: Sequence[str]) -> int:
    chosen = _parser().parse_args(arguments)
    if os.environ.get("SEALAB_DISPOSABLE") != "1":
        print(
            "These are attacks: they harm a machine where the sandbox does not hold. Run them on a throw-away machine, "
            "and say so with SEALAB_DISPOSABLE=1 (make attacks WRAPPER=…).",
            file=sys.stderr,
        )
        return 2
    sources = [chosen.corpus, *([] if chosen.corpus_only else [OWN_CASES])]
    cases = choose(load(*sources), set(chosen.layer), chosen.id)
    plan = lane.Plan(timeout_seconds=chosen.timeout, memory_mb=chosen.memory, as_user=chosen.as_user)
    began = time.monotonic()
    verdicts = _in_lanes(plan, runs_of(cases), chosen.lanes)
    seconds = time.monotonic() - began
    if chosen.json:
        for verdict in verdicts:
            print(json.dumps(_as_json(verdict)))
    else:
        _tell(verdicts, seconds, verbose=chosen.verbose)
    return int(any(verdict.held is Held.BROKE for verdict in verdicts))


def runs_of(cases: Sequence[Case]) -> list[lane.Run]:
    """Return in which modes each case runs.

    With the language layer off every attack on the language and on resources runs a second time, since the layers
    below must hold alone.
    """
    runs = [(case, mode) for case in cases for mode in case.modes]
    again = [
        (case, Mode.RAW)
        for case in cases
        if case.layer in ("language", "resource") and case.severity != "control" and Mode.RAW not in case.modes
    ]
    return [*runs, *((replace(case, oracle=_oracle_below(case)), mode) for case, mode in again)]


def _oracle_below(case: Case) -> dict[str, object]:
    """Judge a language case without its layer by what came of it outside: canary, marker file, leftovers, server."""
    return {"type": "no_canary"} if case.layer == "language" else dict(case.oracle)


def _in_lanes(plan: lane.Plan, runs: Sequence[lane.Run], lanes: int) -> list[Verdict]:
    lanes = max(1, min(lanes, len(runs)))
    parts = [runs[number::lanes] for number in range(lanes)]
    with ProcessPoolExecutor(lanes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(lane.run, plan, part) for part in parts]
        verdicts: list[Verdict] = []
        for future, part in zip(futures, parts, strict=True):
            try:
                verdicts += future.result()
            except BrokenProcessPool:
                verdicts += [Verdict(case, mode, Held.BROKE, "the runner was killed") for case, mode in part]
    order = {(case.id, mode): place for place, (case, mode) in enumerate(runs)}
    return sorted(verdicts, key=lambda verdict: order[verdict.case.id, verdict.mode])


def _tell(verdicts: Sequence[Verdict], seconds: float, *, verbose: bool) -> None:
    categories = sorted({(verdict.case.layer, verdict.case.category) for verdict in verdicts})
    print(
        f"{'layer':10} {'category':24} {'mode':10} {'held':>5} {'unrelated':>10} {'settled':>8} {'broke':>6} {'n/a':>4}"
    )
    for layer, category in categories:
        for mode in Mode:
            counts = Counter(
                verdict.held
                for verdict in verdicts
                if (verdict.case.layer, verdict.case.category, verdict.mode) == (layer, category, mode)
            )
            if counts:
                print(f"{layer:10} {category:24} {mode:10} {_columns(counts)}")
    total = Counter(verdict.held for verdict in verdicts)
    print(f"{'all':10} {'':24} {'':10} {_columns(total)}")
    for held, title in _TITLES.items():
        reasons: dict[str, list[str]] = {}
        for verdict in verdicts:
            if verdict.held is held:
                reasons.setdefault(verdict.reason, []).append(_name(verdict))
        if reasons:
            print(f"\n{title}:")
        for reason, names in sorted(reasons.items()):
            print(f"  {reason}: {len(names)}{'' if len(names) > 12 and not verbose else ' (' + ', '.join(names) + ')'}")
    broke = [verdict for verdict in verdicts if verdict.held is Held.BROKE]
    if broke:
        print("\nBroke:")
    for verdict in broke:
        print(f"  {_name(verdict)} {verdict.case.category}: {verdict.case.title}\n      {verdict.reason[:1500]}")
    if verbose:
        print("\nAll:")
        for verdict in verdicts:
            print(f"  {verdict.held:16} {_name(verdict)} {verdict.seconds:.1f} s: {verdict.reason[:200]!r}")
    passed = total[Held.HELD] + total[Held.UNRELATED] + total[Held.SETTLED]
    print(f"\n{seconds:.0f} s, {total[Held.NOT_APPLICABLE]} not applicable")
    print(f"{passed} passed, {total[Held.BROKE]} failed")


def _columns(counts: Counter[Held]) -> str:
    return f"{counts[Held.HELD]:5} {counts[Held.UNRELATED]:10} {counts[Held.SETTLED]:8} {counts[Held.BROKE]:6} {counts[Held.NOT_APPLICABLE]:4}"


def _name(verdict: Verdict) -> str:
    return verdict.case.id + (" (raw)" if verdict.mode is Mode.RAW and verdict.case.layer != "rpc" else "")


def _as_json(verdict: Verdict) -> dict[str, object]:
    case = verdict.case
    return {
        "id": case.id,
        "layer": case.layer,
        "category": case.category,
        "mode": verdict.mode,
        "held": verdict.held,
        "reason": verdict.reason,
        "seconds": round(verdict.seconds, 3),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with cases.jsonl, or such a file")
    parser.add_argument("--layer", action="append", default=[], choices=LAYERS, help="only this layer (repeatable)")
    parser.add_argument("--id", action="append", default=[], help="only ids that begin so (repeatable)")
    parser.add_argument("--corpus-only", action="store_true", help="leave out our own cases")
    parser.add_argument("--as-user", action="store_true", help="run the server as an ordinary user")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds for cases that name no limit")
    parser.add_argument("--memory", type=int, default=256, help="megabytes for cases that name no limit")
    parser.add_argument("--lanes", type=int, default=2, help="servers attacked at the same time")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each case")
    parser.add_argument("--verbose", action="store_true", help="also list what held, and why")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
