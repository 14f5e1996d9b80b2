"""Walks everything that guest code can reach from the facades, in a process of its own; see test_facades_walk.

Calling whatever can be called changes the process it is done in, so this is a program: it writes, as JSON, what it
found to lead out of the modules given as arguments. `HELPERS` stands for what code finds beside modules: the
functions that ask the host, tools, skills, and what they answer.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import json
import os
import sys
import types
import warnings
from collections.abc import Iterator

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.dialect.restricted_python import RestrictedPython
from sealab.sandbox.guest import ownership
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


ownership.mark_class(Victim)


ARGUMENTS: tuple[tuple[object, ...], ...] = (
    (), (1,), ("a",), (b"a",), ([1, 2],), (lambda *_: 1,), ("a", "b"), (2, 3), (int,), ([3, 1], 2), ("a", lambda *_: "a"),
    ("a", "b", "c"), (1, 2, 3), ({"a": 1},), (int, "a"), (Victim,), (Victim, [int]), (Victim, "a", {}),
)  # fmt: skip


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
    """Reach what the modules lead to, and write what of it is opaque."""
    GUEST.write = lambda _text: None
    GUEST.namespace = new_namespace()
    facades.preload()
    sealing.seal()
    from tests.sandbox.dialect.opaque import Opaque  # here, so that their classes are none of the host's
    from tests.sandbox.dialect.reached import Reached, standing

    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        reached = Reached(standing(), [], opaque := Opaque())
        opaque.add_namespace(GUEST.namespace, "the real namespace of the code")
        modules = [module for module in sys.argv[1:] if module != HELPERS]
        reached.walk(modules, _members(helpers()) if HELPERS in sys.argv else ())
    print(json.dumps({"values": len(reached.values), "slow": reached.slow, "found": reached.found}), flush=True)
    os._exit(0)


def _members(given: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Give values, and what stands in those that are modules."""
    for name, value in given.items():
        yield name, value
        if isinstance(value, facades.Facade):
            yield from ((f"{name}.{each}", getattr(value, each)) for each in dir(value))


if __name__ == "__main__":
    main()
