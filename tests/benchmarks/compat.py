"""Run a corpus of self-checking programs in this process and say which do not run.

    python -m tests.benchmarks.compat FOLDER

Every `*.jsonl` file in FOLDER holds one program a line, `{"id": …, "code": …}`; a program runs well when it ends
without an exception. Prints each failing id with its reason, then the share that ran.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.names import demangle
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST

from .replay import programs


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    started = time.perf_counter()
    reasons = {row["id"]: failure(row["code"]) for row in programs([folder])}
    ran = sum(reason is None for reason in reasons.values())
    for name, reason in reasons.items():
        if reason is not None:
            print(f"{name}: {reason}")
    share = ran / max(len(reasons), 1)
    print(f"{ran} of {len(reasons)} programs ran ({share:.2%}) in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
