"""Runs guest source from standard input in a process of its own, sealed as workers are; writes its result as JSON.

For programs that change what they can reach: in the tests' own process nothing is sealed, and the change would stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent


def run_sealed(source: str) -> object:
    """Return the result of `source`, which must be JSON."""
    done = subprocess.run(
        [sys.executable, __file__], input=dedent(source), capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    from sealab.sandbox import facades
    from sealab.sandbox.guest import GUEST
    from sealab.sandbox.language import compile_program, run_program
    from sealab.sandbox.namespace import new_namespace

    dumps = json.JSONEncoder().encode
    facades.preload()
    GUEST.namespace = new_namespace()
    facades.seal()
    sys.stdout.write(dumps(run_program(compile_program(sys.stdin.read()), GUEST.namespace)))


if __name__ == "__main__":
    main()
