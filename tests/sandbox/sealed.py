"""Runs guest source in a process that is sealed as workers are, or in CPython as it is, and returns what came of it.

For programs that change what they can reach: in the tests' own process nothing is sealed, and the change would stay.
One process of each kind forks for each program. WebAssembly has no forks: there each program has a new process.
"""

from __future__ import annotations

import ast
import atexit
import functools
import gc
import io
import json
import os
import signal
import subprocess
import sys
import types
from dataclasses import dataclass
from textwrap import dedent

_SECONDS_MAX = 120


@dataclass(frozen=True)
class Ran:
    """What a program gave: its result as JSON shows it, and what it wrote."""

    result: object
    output: str
    stderr: str


def run_sealed(source: str, *, spoil_freed: bool = False) -> object:
    """Return the result of `source`, which must be JSON. Fails where anything opens a file.

    `spoil_freed` overwrites memory when it is freed, so that C code that reads it still ends the process.
    """
    return _ran("spoiled" if spoil_freed else "sealed", source).result


def gives_what_python_gives(source: str) -> None:
    """Fail where a program gives or writes anything else under the dialect than in CPython."""
    assert _ran("sealed", source) == _ran("plain", source)


def _ran(kind: str, source: str) -> Ran:
    asked = json.dumps(dedent(source)) + "\n"
    if sys.platform == "emscripten":
        command = [sys.executable, __file__, kind]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX)
        status, said, complained = done.returncode, done.stdout, done.stderr
    else:
        forking = _forking(kind)
        forking.stdin.write(asked)
        forking.stdin.flush()
        status, said, complained = json.loads(forking.stdout.readline())
    assert status == 0, complained
    return Ran(*json.loads(said))


@functools.cache
def _forking(kind: str) -> subprocess.Popen[str]:
    more = {"spoiled": {"PYTHONMALLOC": "debug"}, "plain": {"PYTHONHASHSEED": "0"}, "sealed": {"PYTHONHASHSEED": "0"}}
    environment = {**os.environ, **more[kind]}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, __file__, kind], text=True, env=environment, **pipes)
    atexit.register(process.__exit__, None, None, None)
    return process


def main() -> None:
    encode = json.JSONEncoder(default=repr).encode
    run = _plain if sys.argv[1] == "plain" else _ready()
    gc.freeze()
    for asked in sys.stdin:
        if sys.platform == "emscripten" or _is_fork(encode):
            os.write(1, encode(run(json.loads(asked))).encode())
            gc.collect()
            os._exit(0)  # to free all that was preloaded takes longer than a program


def _ready():
    """Seal this process, and return what runs a program in it."""
    from sealab.sandbox.dialect import facades, guest_modules
    from sealab.sandbox.dialect.compiling import compile_program, run_program
    from sealab.sandbox.dialect.facades import sealing
    from sealab.sandbox.dialect.namespace import new_namespace
    from sealab.sandbox.guest.guest import GUEST
    from sealab.sandbox.report import failures  # noqa: F401 - workers have both before they are confined

    facades.preload()
    guest_modules.preload()
    GUEST.namespace = new_namespace()
    sealing.seal()

    def run(source: str) -> list[object]:
        written, errors = [], []
        GUEST.output = GUEST.write = written.append
        GUEST.error_output = GUEST.write_error = errors.append
        sys.addaudithook(_opens_nothing)
        result = run_program(compile_program(source), GUEST.namespace)
        GUEST.namespace.clear()
        return [result, "".join(written), "".join(errors)]

    return run


def _plain(source: str) -> list[object]:
    tree, module = ast.parse(source), types.ModuleType("__main__")
    sys.modules["__main__"], sys.argv, sys.stdin = module, [""], io.StringIO()
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("__last__", ast.Store())], last.value), last)
    sys.stdout = sys.__stdout__ = written = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    sys.stderr = sys.__stderr__ = errors = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    space = vars(module)
    exec(compile(ast.fix_missing_locations(tree), "<code>", "exec"), space)
    told = [stream.buffer.getvalue().decode() for stream in (written, errors)]
    return [space.get("result", space.get("__last__")), *told]


def _is_fork(encode) -> bool:
    """Fork, and return whether this is the fork. The parent writes how it ended, what it gave and complained of."""
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
    sys.stdout.write(encode([os.waitstatus_to_exitcode(status), *said]) + "\n")
    sys.stdout.flush()
    return False


def _opens_nothing(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and arguments[0] not in {"", __file__}:  # Python shows lines of this file when it fails
        sys.stderr.write(f"opened {arguments[0]!r}")
        os._exit(2)


if __name__ == "__main__":
    main()
