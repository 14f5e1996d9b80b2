"""Runs guest source in a process that is sealed as workers are, and returns its result.

For programs that change what they can reach: in the tests' own process nothing is sealed, and the change would stay.
One process seals itself and forks for each program. WebAssembly has no forks: there each program has a new process.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

_SECONDS_MAX = 120


def run_sealed(source: str, *, spoil_freed: bool = False) -> object:
    """Return the result of `source`, which must be JSON. Fails where anything opens a file.

    `spoil_freed` overwrites memory when it is freed, so that C code that reads it still ends the process.
    """
    asked = json.dumps(dedent(source)) + "\n"
    if sys.platform == "emscripten":
        command = [sys.executable, __file__]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX)
        status, said, complained = done.returncode, done.stdout, done.stderr
    else:
        forking = _forking(spoil_freed)
        forking.stdin.write(asked)
        forking.stdin.flush()
        status, said, complained = json.loads(forking.stdout.readline())
    assert status == 0, complained
    return json.loads(said)


@functools.cache
def _forking(spoil_freed: bool) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONMALLOC": "debug"} if spoil_freed else None
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, __file__], text=True, env=environment, **pipes)
    atexit.register(process.__exit__, None, None, None)
    return process


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
    gc.freeze()
    for asked in sys.stdin:
        if sys.platform == "emscripten" or _is_fork(dumps):
            source = json.loads(asked)
            sys.addaudithook(_opens_nothing)
            sys.stdout.write(dumps(run_program(compile_program(source), GUEST.namespace)))
            sys.stdout.flush()
            GUEST.namespace.clear()
            gc.collect()
            os._exit(0)  # to free all that was preloaded takes longer than a program


def _is_fork(dumps) -> bool:
    """Fork, and return whether this is the fork. The parent writes how it ended, its result and what it complained of."""
    files = os.memfd_create("result"), os.memfd_create("complaints")
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS_MAX)
        for number, file in enumerate(files, start=1):
            os.dup2(file, number)
        return True
    _, status = os.waitpid(child, 0)
    said = [os.pread(file, 1 << 20, 0).decode(errors="replace") for file in files]
    for file in files:
        os.close(file)
    sys.stdout.write(dumps([os.waitstatus_to_exitcode(status), *said]) + "\n")
    sys.stdout.flush()
    return False


def _opens_nothing(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and arguments[0] not in {"", __file__}:  # Python shows lines of this file when it fails
        sys.stderr.write(f"opened {arguments[0]!r}")
        os._exit(2)


if __name__ == "__main__":
    main()
