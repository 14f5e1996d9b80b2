"""Runs guest source from standard input in a process of its own, sealed as workers are; writes its result as JSON.

For programs that change what they can reach: in the tests' own process nothing is sealed, and the change would stay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from textwrap import dedent


def run_sealed(source: str, *, spoil_freed: bool = False) -> object:
    """Return the result of `source`, which must be JSON. Fails where anything opens a file.

    `spoil_freed` overwrites memory when it is freed, so that C code that reads it still ends the process.
    """
    options = {"env": {**os.environ, "PYTHONMALLOC": "debug"}} if spoil_freed else {}
    command = [sys.executable, __file__]
    done = subprocess.run(
        command, input=dedent(source), capture_output=True, text=True, check=False, timeout=120, **options
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    from sealab.sandbox.dialect import facades, guest_modules
    from sealab.sandbox.dialect.compiling import compile_program, run_program
    from sealab.sandbox.dialect.facades import sealing
    from sealab.sandbox.dialect.namespace import new_namespace
    from sealab.sandbox.guest.guest import GUEST
    from sealab.sandbox.report import failures  # noqa: F401 - workers have both before they are confined

    dumps = json.JSONEncoder().encode
    facades.preload()
    guest_modules.preload()
    GUEST.namespace = new_namespace()
    sealing.seal()
    sys.addaudithook(_opens_nothing)
    sys.stdout.write(dumps(run_program(compile_program(sys.stdin.read()), GUEST.namespace)))


def _opens_nothing(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and arguments[0] not in {"", __file__}:  # Python shows lines of this file when it fails
        sys.stderr.write(f"opened {arguments[0]!r}")
        os._exit(2)


if __name__ == "__main__":
    main()
