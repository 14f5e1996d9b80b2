"""Plants one fault at a time in a copy of the tree and says which test catches it.

    python -m tests.planted [--only PATTERN]… [--wrapper COMMAND] [--processes N] [--no-whole] [--tests PATH]…
                            [--corpora FOLDER] [--json]

Each patch (`patches.py`) breaks one promise. The test that caught it last is run first, then the tests that cover its
file (`selection.py`), then, unless `--no-whole` is given, all tests of each target (`targets.py`) and the attacks of
the corpora. A test catches a patch if it
fails with it, alone too, and passes without it. Patches that weaken the sandbox are tested on a throw-away machine
only, which the wrapper gives. Exits 1 if a patch is not caught, no longer applies or breaks an import.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

from tests.planted import record
from tests.planted.copies import Copy
from tests.planted.judging import Finding, Judge, Verdict
from tests.planted.patches import Patch, load
from tests.planted.record import Caught
from tests.planted.targets import FAST


def main() -> int:
    """Judge the chosen patches, print the table and keep what caught each."""
    options = _options()
    patches = load()
    chosen = [each for each in patches if _is_chosen(each, options.only)]
    if not chosen:
        print(f"No patch is named {' or '.join(options.only)}. See tests/planted/patches.", file=sys.stderr)
        return 2
    wrapper = shlex.split(options.wrapper)
    if wrapper and os.path.exists(wrapper[0]):
        wrapper[0] = os.path.abspath(wrapper[0])  # it is called in the folder of a copy
    if any(patch.harm for patch in chosen) and not wrapper and os.environ.get("SEALAB_DISPOSABLE") != "1":
        print(
            "Some of these patches weaken the sandbox, and the tests then run hostile code: use "
            "`make planted WRAPPER=…` with a command that gives them a throw-away machine.",
            file=sys.stderr,
        )
        return 2
    caught = record.read()
    findings: dict[str, Finding] = {}
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        unpatched = Copy(Path(folder, "unpatched"), wrapper)
        corpus = options.corpora / "security"
        judge = Judge(
            unpatched, whole=options.whole, first=options.tests, corpus=corpus.resolve() if corpus.exists() else None
        )
        copies: SimpleQueue[Copy] = SimpleQueue()
        processes = min(options.processes, len(chosen))
        for number in range(processes):
            copies.put(Copy(Path(folder, f"patched-{number}"), wrapper, another=unpatched))

        def judged(patch: Patch) -> Finding:
            copy = copies.get()
            try:
                return judge.judge(patch, copy, caught.get(patch.name))
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(processes + 1) as threads:
            ahead = threads.submit(
                judge.run_unpatched, [(each, caught[each.name]) for each in chosen if each.name in caught]
            )
            begun = [threads.submit(judged, patch) for patch in chosen]
            for finding in _in_order_of_their_ends(begun):
                findings[finding.patch.name] = finding
                if finding.caught:
                    record.write({**record.read(), finding.patch.name: finding.caught}, patches)
                print(f"{len(findings)} of {len(chosen)}: {_line(finding)}", file=sys.stderr, flush=True)
            ahead.result()
    ordered = [findings[patch.name] for patch in chosen]
    print(json.dumps([_as_json(each) for each in ordered], indent=1) if options.json else _table(ordered))
    return int(any(each.verdict is not Verdict.CAUGHT for each in ordered))


def _in_order_of_their_ends(begun: Sequence[Future[Finding]]) -> Iterator[Finding]:
    """Yield what each finds; where this is broken off, those that have not begun never do."""
    try:
        for done in as_completed(begun):
            yield done.result()
    finally:
        for each in begun:
            each.cancel()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description="Plant faults and see them caught.")
    parser.add_argument("--only", action="append", default=[], help="names of patches or of their files, or patterns")
    parser.add_argument("--wrapper", default="", help="a command that runs its arguments on a throw-away machine")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-whole", dest="whole", action="store_false", help="never run all tests")
    parser.add_argument("--tests", action="append", default=[], help="test files or tests to run before others")
    parser.add_argument("--corpora", type=Path, default=Path("corpora"), help="a folder with attack cases")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _is_chosen(patch: Patch, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, each) for name in (patch.name, patch.origin) for each in patterns)


def _line(finding: Finding) -> str:
    by = f" by {finding.caught.target}: {finding.caught.test}" if finding.caught else ""
    note = f" ({finding.note})" if finding.note else ""
    return f"{finding.patch.name} {finding.verdict}{by}{note}, {finding.seconds:.0f} s"


def _as_json(finding: Finding) -> dict[str, object]:
    by = finding.caught or Caught("", "")
    return {
        "name": finding.patch.name,
        "promise": finding.patch.promise,
        "file": finding.patch.file,
        "verdict": finding.verdict,
        "target": by.target,
        "test": by.test,
        "note": finding.note,
        "seconds": round(finding.seconds, 1),
    }


def _table(findings: Sequence[Finding]) -> str:
    rows = [("patch", "promise", "caught by", "test", "seconds")]
    for each in findings:
        target, test = (each.caught.target, each.caught.test) if each.caught else (str(each.verdict), each.note or "-")
        rows.append((each.patch.name, each.patch.promise, target, test, f"{each.seconds:.0f}"))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| --- | --- | --- | --- | ---: |")
    caught = [each.caught for each in findings if each.caught]
    fast = sum(each.target == FAST.name for each in caught)
    share = f", {fast / len(caught):.0%} of them by {FAST.name}" if caught else ""
    return "\n".join([*lines, "", f"{len(caught)} of {len(findings)} caught{share}."])


if __name__ == "__main__":
    sys.exit(main())
