"""Run a corpus of self-checking programs in this process and say which do not run.

    python tests/benchmarks/compat.py FOLDER

Every `*.jsonl` file in FOLDER holds one program a line, `{"id": …, "code": …}`; a program runs well when it ends
without an exception. Prints each failing id with its reason, then the share that ran.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.names import demangle
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST


def programs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield `(id, code)` of every program below `folder`."""
    for file in sorted(folder.rglob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield record["id"], record["code"]


def failure(code: str) -> str | None:
    """Run one program in a fresh namespace; return why it failed, or None."""
    namespace = new_namespace()
    GUEST.namespace = namespace
    try:
        run_program(compile_program(code), namespace)
    except Refused as refused:
        return f"refused, line {refused.line}: {refused.message}"
    except BaseException as error:
        return demangle(f"{type(error).__name__}: {error}")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    failures: dict[str, str] = {}
    count = 0
    started = time.perf_counter()
    for name, code in programs(folder):
        count += 1
        reason = failure(code)
        if reason is not None:
            failures[name] = reason
    for name, reason in failures.items():
        print(f"{name}: {reason}")
    share = (count - len(failures)) / count if count else 0.0
    print(f"{count - len(failures)} of {count} programs ran ({share:.2%}) in {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
