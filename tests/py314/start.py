"""What Python itself does before a program starts, for the interpreter of `python.mjs`.

It has no processes: a program that starts its own interpreter (`subprocess.run([sys.executable, …])`) gets a new one
from Node. It has no resource limits: `resource` tells of a small stack.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from typing import NoReturn

STACK_BYTES = 1 << 20


def main(
    places: Sequence[str],
    words: list[str],
    run: Callable[..., tuple[int, str, str, str | None]],
    leave: Callable[[int], NoReturn],
) -> int:
    """Run the program that `words` name as Python's command line does; return the status of its exit."""
    sys.executable, installed, project = places
    sys.path[:] = [path for path in sys.path if path]
    sys.path += [f"{project}/.import", f"{installed}/packages"]
    for name in [name for name, module in sys.modules.items() if not isinstance(module, types.ModuleType)]:
        del sys.modules[name]  # those of JavaScript
    asyncio._set_running_loop(None)  # Pyodide runs everything inside a loop of its own, which is that of Node
    asyncio.events._event_loop_policy = None
    asyncio.SelectorEventLoop._make_self_pipe = asyncio.SelectorEventLoop._close_self_pipe = lambda _loop: None
    sys.modules["resource"] = _resource()
    sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = "/lib/python314.zip"  # it says "/"
    os._exit = leave
    subprocess.run = _starts_interpreters(run)
    try:
        _run(words)
    except SystemExit as end:
        return _status(end.code)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _run(words: list[str]) -> None:
    kind, *rest = words
    if kind == "-c":
        sys.argv, sys.path[:0] = ["-c", *rest[1:]], [os.getcwd()]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif kind == "-m":
        sys.argv, sys.path[:0] = rest, [os.getcwd()]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[:0] = words, [os.path.dirname(os.path.abspath(kind))]
        runpy.run_path(kind, run_name="__main__")


def _status(code: object) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _resource() -> types.ModuleType:
    resource = types.ModuleType("resource")
    resource.RLIM_INFINITY, resource.RLIMIT_STACK = -1, 3
    resource.getrlimit = lambda _kind: (STACK_BYTES, STACK_BYTES)
    return resource


def _starts_interpreters(run: Callable[..., tuple[int, str, str, str | None]]) -> Callable[..., object]:
    def start(
        command: Sequence[object],
        *,
        input: str = "",  # noqa: A002 - as `subprocess.run` calls it
        check: bool = False,
        timeout: float | None = None,
        **options: bool,
    ) -> subprocess.CompletedProcess[str]:
        program, *words = map(os.fspath, command)
        if program != sys.executable or options != {"capture_output": True, "text": True}:
            raise NotImplementedError(f"only this interpreter can be started here, with its output captured: {command}")
        status, output, errors, failure = run(words, input, timeout)
        if failure == "ETIMEDOUT":
            raise subprocess.TimeoutExpired(command, timeout, output, errors)
        done = subprocess.CompletedProcess(command, status, output, errors)
        if check:
            done.check_returncode()
        return done

    return start
