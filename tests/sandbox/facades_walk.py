"""Walks everything that guest code can reach from the facades, in a process of its own; see test_facades_walk.

Calling whatever can be called changes the process it is done in, so this is a program: it writes, as JSON, what it
found to lead out, for each module given as an argument. `HELPERS` stands for what code finds beside modules: the
functions that ask the host, tools, skills, and what they answer.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import asyncio
import builtins
import contextlib
import importlib
import io
import json
import logging
import os
import socket
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator

from sealab.sandbox.dialect import facades, names
from sealab.sandbox.dialect.event_loop import GuestLoop
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.dialect.restricted_python import RestrictedPython
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.guest_api import data_helpers, hosted
from sealab.sandbox.worker.runner import definer

_OUT = (
    "open exec eval compile __import__ input breakpoint getattr setattr delattr vars globals locals memoryview help"
).split()
_UNWANTED_MODULES = (
    "os posix io _io shutil subprocess socket _socket ctypes _ctypes threading _thread importlib marshal pickle"
    " gc sys tempfile mmap signal select fcntl resource linecache runpy pty code codeop glob multiprocessing faulthandler"
    " sysconfig zipimport _imp webbrowser pdb site"
).split()
_HARMLESS = frozenset(
    """
    StringIO BytesIO TextIOWrapper BufferedReader BufferedWriter IOBase RawIOBase BufferedIOBase TextIOBase
    UnsupportedOperation fspath fsencode fsdecode urandom PathLike intern getsizeof getdefaultencoding exception
    get_int_max_str_digits set_int_max_str_digits collect disable enable get_count get_threshold isenabled
    _path_normpath _path_splitroot_ex
    """.split()
)
"""Of the modules above, what the listing gives on purpose: numbers, functions of text, streams in memory."""
_ATOMS = {str, bytes, int, float, complex, bool, type(None)}
_NEVER_TYPES = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.CellType,
    io.FileIO,
    socket.socket,
    logging.Logger,
    logging.Handler,
    logging.Manager,
)
_NEVER_CLASSES = {
    *(type, types.FunctionType, types.CodeType, types.ModuleType, types.FrameType, types.TracebackType, types.CellType),
    *(io.FileIO, logging.Logger, logging.Formatter, logging.FileHandler, asyncio.BaseEventLoop, subprocess.Popen),
}
_EVALUATING = {"eval_str"}
NOT_CALLED = {
    # They end, wait for, or change the process that runs the test, as they should.
    *("sleep exit setrecursionlimit disable setcontext seed setstate main TestProgram run run_until_complete").split(),
    *(
        "field_size_limit register_dialect unregister_dialect run_forever purge set_int_max_str_digits setswitchinterval"
    ).split(),
    *(
        "timeit repeat Timer testmod put get join acquire set_event_loop reset enable gather wait wait_for as_completed"
    ).split(),
}


HELPERS = "the helpers"
_SKILL = "def a(x: int = 1):\n    'Say it.'\n    return x\n\nasync def b():\n    pass\n"
_ANSWERS: dict[str, object] = {
    "list_names": ["git"],
    "list_servers": [{"name": "git"}],
    "skill_names": ["a"],
    "use_skill": {"name": "a", "version": 1, "entry": "a", "code": _SKILL},
    "load_skill": {"name": "a", "version": 1, "code": _SKILL},
    "read_file": {"content": "YQ==", "truncated": False},
    "list_files": {"files": []},
    "capability_summary": "a text",
    "list_tools": [{"name": "x"}],
}


def _answer(name: str, _arguments: object) -> object:
    return _ANSWERS.get(name, {"rowId": 1, "rows": [{"a": None}], "tools": []})


async def _answer_later(name: str, arguments: object) -> object:
    return _answer(name, arguments)


class Victim:
    """A class to pass where a method expects an instance: its own class is `type`."""

    data = maps = registry = filters = args = (int,)
    keys = items = values = list


ARGUMENTS: tuple[tuple[object, ...], ...] = (
    (), (1,), ("a",), (b"a",), ([1, 2],), (lambda *_: 1,), ("a", "b"), (2, 3), (int,), ([3, 1], 2), ("a", lambda *_: "a"),
    ("a", "b", "c"), (1, 2, 3), ({"a": 1},), (int, "a"),
)  # fmt: skip
_MORE_ARGUMENTS = (*ARGUMENTS, (Victim,), (Victim, [int]), (Victim, "a", {}))
_DEPTH_MAX = 6
_CALL_DEPTH_MAX = 4
_ITEMS_MAX = 500


def forbidden_functions() -> Iterator[tuple[int, str]]:
    """Yield what guest code must never hold of the builtins and of modules, by identity, and what to call it."""
    for name in _OUT:
        if hasattr(builtins, name) and name != "memoryview":
            yield id(getattr(builtins, name)), f"builtins.{name}"
    for module in _UNWANTED_MODULES:
        with contextlib.suppress(ImportError, AttributeError):  # `pdb` cannot be loaded once the classes are sealed
            for name, value in vars(importlib.import_module(module)).items():
                harmless = name in _HARMLESS or getattr(value, "__name__", name) in _HARMLESS
                is_exception = isinstance(value, type) and issubclass(value, BaseException)
                own = getattr(value, "__module__", None) in {module, f"_{module}", "posix", "io", "_io"}
                if callable(value) and not harmless and not is_exception and own:
                    yield id(value), f"{module}.{name}"


def changes_a_container(value: object) -> bool:
    """Methods of containers give what is in them, which is visited anyway, and would empty them before."""
    owner = getattr(value, "__self__", None)
    return isinstance(owner, list | dict | set | bytearray | types.MappingProxyType)


class Walk:
    """What was reached, how, and what of it leads out."""

    def __init__(self) -> None:
        self.seen: dict[int, object] = {}
        self.sampled: set[int] = set()
        self.found: list[str] = []
        self._modules = {id(vars(module)): name for name, module in list(sys.modules.items()) if module is not None}
        self._modules |= {id(sys.modules): "sys.modules", id(os.environ): "os.environ"}
        self._forbidden = dict(forbidden_functions())

    def visit(self, value: object, path: str, depth: int) -> None:
        if type(value) in _ATOMS or id(value) in self.seen:
            return
        self.seen[id(value)] = value  # kept alive, so that no other object takes its id
        reason = self.why_bad(value)
        if reason:
            self.found.append(f"{path}: {reason}")
            return
        if depth >= _DEPTH_MAX:
            return
        for name in self.names_of(value):
            # Special methods do what operators do; they give what those give.
            if names.judge(name) is names.Verdict.PLAIN and name not in names.SPECIAL_METHODS:
                self.read(value, name, f"{path}.{name}", depth)
        kind = type(value)  # what lies about its class is walked by its attributes
        if issubclass(kind, dict | types.MappingProxyType) and len(value) < _ITEMS_MAX:
            pairs = []
            with contextlib.suppress(AttributeError):  # a proxy of what is no mapping
                pairs = list(value.items())
            for key, item in pairs:
                self.visit(key, f"{path} key", depth + 1)
                self.visit(item, f"{path}[{key!r}]", depth + 1)
        elif issubclass(kind, list | tuple | set | frozenset) and len(value) < _ITEMS_MAX:
            for item in list(value):
                self.visit(item, f"{path}[…]", depth + 1)
        if callable(value) and depth < _CALL_DEPTH_MAX and not changes_a_container(value):
            self.call(value, path, depth)

    @staticmethod
    def names_of(value: object) -> list[str]:
        try:
            return [name for name in dir(value) if type(name) is str]
        except Exception:
            return []

    def read(self, value: object, name: str, path: str, depth: int) -> None:
        try:
            found = getattr(value, name)
        except BaseException as error:  # what a failed read raises can be caught by guest code
            self.visit(error, f"{path} raises", depth + 1)
        else:
            self.visit(found, path, depth + 1)

    def call(self, function: Callable[..., object], path: str, depth: int) -> None:
        if getattr(function, "__name__", "") in NOT_CALLED or path.rpartition(".")[2] in NOT_CALLED:
            return
        kinds: set[type] = set()
        for arguments in _MORE_ARGUMENTS:
            try:
                result = function(*arguments)
            except BaseException as error:
                result = error
            if isinstance(result, types.CoroutineType):
                result.close()
            if type(result) not in kinds:  # one of a kind is enough: they share their attributes
                kinds.add(type(result))
                self.visit(result, f"{path}{arguments!r}"[:200], depth + 1)

    def why_bad(self, value: object) -> str | None:
        if isinstance(value, _NEVER_TYPES):
            return f"a {type(value).__name__}: {value!r}"[:150]
        if isinstance(value, asyncio.AbstractEventLoop) and not isinstance(value, GuestLoop):
            return "a real event loop"
        if id(value) in self._forbidden:
            return self._forbidden[id(value)]
        if isinstance(value, type) and value in _NEVER_CLASSES:
            return f"the class {value.__name__}"
        if id(value) in self._modules and isinstance(value, dict):
            return f"the dictionary of {self._modules[id(value)]}"
        if isinstance(value, types.FunctionType | types.MethodType):
            code = getattr(value, "__code__", None)  # a bound method need not be of a function
            if isinstance(code, types.CodeType) and _EVALUATING & set(
                code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            ):
                return self.evaluates(value)
        return None

    @staticmethod
    def evaluates(function: Callable[..., object]) -> str | None:
        def annotated(x) -> None: ...

        annotated.__annotations__ = {"x": "__import__('os').getpid()"}
        try:
            said = str(function(annotated, eval_str=True))
        except Exception:
            return None
        return "evaluates annotations" if str(os.getpid()) in said else None


def helpers() -> dict[str, object]:
    """Return all helpers, connected to a host that answers anything, with some objects that they give."""
    GUEST.call_host, GUEST.call_host_async = _answer, _answer_later  # type: ignore[assignment]  # answers are JSON
    GUEST.define = definer(RestrictedPython())
    found = {**hosted.helpers(), **data_helpers.helpers(), **hosted.modules()}
    tools, skills = found["tools"], found["skills"]
    coroutine = tools.git.log(x=1)  # type: ignore[attr-defined]  # every name is there
    made = [skills.a, skills["a@1"], skills.a.v1, tools.git, tools.git.log, coroutine, coroutine.__await__()]  # type: ignore[attr-defined,index]  # as above
    return {**found, **{f"made {number}": value for number, value in enumerate(made)}}


def main() -> None:
    GUEST.write = lambda _text: None
    GUEST.namespace = new_namespace()
    facades.preload()
    sealing.seal()
    found: dict[str, list[str]] = {}
    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        for module in sys.argv[1:]:
            walk = Walk()
            walk.visit(helpers() if module == HELPERS else facades.find(module), module, 0)
            found[module] = walk.found
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
