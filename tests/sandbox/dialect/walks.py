"""Walks what guest code can reach, in a process of its own that is sealed as a worker is.

    python -m tests.sandbox.dialect.walks spying|misuse [--plant LEAK] WORD …

`spying` calls what it reaches with hostile arguments, and the words are modules (`spying.members_of`); `misuse` uses it
in ways that nobody meant, and the words are rules (`misuse.RULES`). A leak is put back before; see `planted_leaks`.
What is found is written as JSON.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.dialect.imports import import_module
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST

SECONDS_MAX = 600
"""Where something hangs without using the processor; the walks themselves bound what they use."""
_CPU_SECONDS_MAX = 100
_ROOT = Path(__file__).parents[3]


def walked(*arguments: str) -> dict[str, Any]:
    """Walk in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.dialect.walks", *arguments],
        cwd=_ROOT, capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Seal, plant what is asked for, walk, and write what was found."""
    kind, *words = sys.argv[1:]
    GUEST.namespace = new_namespace()
    facades.preload()
    if kind == "spying":
        faulthandler.enable()
        faulthandler.register(signal.SIGXCPU)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS_MAX, _CPU_SECONDS_MAX + 5))
        from sealab.sandbox.guest_api import data_helpers, hosted  # noqa: F401 - workers have both before

        # What the stand-ins open files with, and what the spies import: a leak must not meet them while they are made.
        for module in ("io", "os", "logging", "pprint", "unittest", "warnings", "timeit", "doctest", "reprlib"):
            import_module(module)
    sealing.seal()
    from . import planted_leaks  # here, so that its classes are none of the host's

    modules = sorted(facades.exports())
    if words[0] == "--plant":
        leak = words[1]
        planted = {**planted_leaks.PLANTED, **planted_leaks.MISUSED}[leak]
        planted.plant()
        modules = planted.walked.split()
        words = modules if kind == "spying" else [leak.partition(":")[0]]
    silence = io.StringIO()
    out = sys.stdout
    if kind == "spying":
        from . import spying  # after the leak, since what spies may define depends on it

        signal.signal(signal.SIGVTALRM, spying.stop)
    else:
        from . import misuse
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _unraisable: None
        found = spying.walk(words) if kind == "spying" else misuse.walk(modules, words)
    out.write(json.dumps(found) + "\n")
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
