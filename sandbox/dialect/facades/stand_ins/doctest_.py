"""`doctest` of the code's own docstrings: examples run under the dialect, and are compared as Python compares them.

The real parser, checker and flags; finding, running and reporting are written here, since the real ones walk modules,
compile source for the real interpreter and look at frames.
"""

# Python's own names and signatures.
# ruff: noqa: PLR0917, PT028

from __future__ import annotations

import doctest
import io
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....errors import Refused
from ....guest.guest import GUEST, variables_of
from ....guest.ownership import is_guest_callable, is_guest_class
from ...compiling import LAST_VALUE, compile_program, error_of, run_statements
from .. import streams
from ..module_object import GuestModule, module_name, view_of
from .traceback_ import format_exception, format_exception_only

__all__ = ["run_docstring_examples", "testmod"]

_DIVIDER = "*" * 70
_NAME = "__main__"
_parser = doctest.DocTestParser()
_checker = doctest.OutputChecker()
_strip_detail = doctest._strip_exception_details  # type: ignore[attr-defined]  # what IGNORE_EXCEPTION_DETAIL means


def testmod(
    m: object = None,
    name: str | None = None,
    globs: Mapping[str, object] | None = None,
    verbose: bool | None = None,
    report: bool = True,
    optionflags: int = 0,
    extraglobs: Mapping[str, object] | None = None,
    raise_on_error: bool = False,
    exclude_empty: bool = False,  # noqa: ARG001 - Python's own signature
) -> doctest.TestResults:
    """Run the examples in the docstrings of a module's functions and classes, and of `__test__`.

    The module is a guest module, or without one the code's own. Failures are written to the output. Returns
    `TestResults(failed, attempted)`.
    """
    if m is not None and type(m) is not GuestModule:
        raise TypeError("testmod() takes a module that runs as code does")
    own = variables_of(sys._getframe()) if m is None else dict(view_of(m))
    name = name or (_NAME if m is None else module_name(m))
    given = globs if globs is not None or m is None else own
    names = dict(given or {}) | dict(extraglobs or {})
    run = _Run(optionflags, bool(verbose), raise_on_error)
    for title, text, line in sorted(_docstrings(name, own, None if m is None else own.get("__name__"))):
        run.examples(title, text, line, names)
    if report:
        run.report()
    return run.results()


def run_docstring_examples(
    f: object,
    globs: Mapping[str, object],
    verbose: bool = False,
    name: str = "NoName",
    compileflags: object = None,  # noqa: ARG001 - Python's own signature
    optionflags: int = 0,
) -> None:
    """Run the examples in the docstring of one object, or in a string."""
    run = _Run(optionflags, verbose, raise_on_error=False)
    if isinstance(f, str):
        run.examples(name, f, None, globs)
        return
    title = getattr(f, "__name__", name) if name == "NoName" else name
    for part, text, line in sorted(_of_object(f, str(title), set())):
        run.examples(part, text, line, globs)


def _docstrings(name: str, variables: Mapping[str, object], module: object) -> Iterator[tuple[str, str, int]]:
    """Yield the docstrings of what a `module` made itself; of everything where it is None."""
    seen: set[int] = set()
    own = dict(variables)
    if isinstance(own.get("__doc__"), str):
        yield name, str(own["__doc__"]), 0
    for key, value in own.items():
        if key.isidentifier() and _is_of_module(value, module):
            yield from _of_object(value, f"{name}.{key}", seen)
    tests = own.get("__test__")
    for key, value in tests.items() if isinstance(tests, dict) else ():
        if isinstance(value, str):
            yield f"{name}.__test__.{key}", value, 0
        else:
            yield from _of_object(value, f"{name}.__test__.{key}", seen)


def _is_of_module(value: object, name: object) -> bool:
    """Return whether a module made a value itself, and did not import it."""
    made_in = getattr(value, "__module__", None)
    return type(made_in) is not str or type(name) is not str or made_in == name


def _of_object(obj: object, title: str, seen: set[int]) -> Iterator[tuple[str, str, int]]:
    if id(obj) in seen:
        return
    seen.add(id(obj))
    if isinstance(obj, staticmethod | classmethod):
        obj = obj.__func__
    function = _unwrapped(obj.fget if isinstance(obj, property) else obj)
    if isinstance(obj, type):
        if not is_guest_class(obj):
            return
        parts = [(key, value) for key, value in vars(obj).items() if key.isidentifier()]
        line = 0
    elif is_guest_callable(function):
        parts, line = [], _first_line(function)
    else:
        return
    text = getattr(obj, "__doc__", None)
    if isinstance(text, str) and text:
        yield title, text, line
    for key, value in parts:
        yield from _of_object(value, f"{title}.{key}", seen)


def _unwrapped(function: object) -> object:
    for _ in range(100):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def _first_line(function: object) -> int:
    return function.__code__.co_firstlineno if isinstance(function, types.FunctionType) else 0


@dataclass(slots=True)
class _Run:
    flags: int
    verbose: bool
    raise_on_error: bool
    failed: int = 0
    attempted: int = 0
    by_title: dict[str, tuple[int, int]] = field(default_factory=dict)

    def examples(self, title: str, text: str, line: int | None, names: Mapping[str, object]) -> None:
        """Run the examples of one docstring, in variables of their own."""
        around = variables_of(sys._getframe())
        own = dict(around) | dict(names) | {"__name__": _NAME, "__builtins__": around["__builtins__"]}
        failed = attempted = 0
        for example in _parser.get_examples(text):
            flags = self.flags
            for flag, wanted in example.options.items():
                flags = flags | flag if wanted else flags & ~flag
            if flags & doctest.SKIP:
                continue
            attempted += 1
            place = f'File "<code>", line {"?" if line is None else line + example.lineno + 1}, in {title}'
            if not self._passes(example, own, flags, place, quiet=failed and flags & doctest.REPORT_ONLY_FIRST_FAILURE):
                failed += 1
                if flags & doctest.FAIL_FAST:
                    break
        self.failed += failed
        self.attempted += attempted
        if attempted:
            self.by_title[title] = (failed, attempted)

    def _passes(self, example: doctest.Example, names: dict[str, Any], flags: int, place: str, *, quiet: int) -> bool:
        if self.verbose:
            expecting = f"Expecting:\n{_indented(example.want)}" if example.want else "Expecting nothing\n"
            GUEST.write(f"Trying:\n{_indented(example.source)}{expecting}")
        got, error = _run_example(example.source, names)
        if _checker.check_output(example.want, got, flags) if error is None else _expected(example, error, flags):
            if self.verbose:
                GUEST.write("ok\n")
            return True
        if not quiet:
            GUEST.write(f"{_DIVIDER}\n{place}\nFailed example:\n{_indented(example.source)}")
            if error is not None and example.exc_msg is None:
                GUEST.write(f"Exception raised:\n{_indented(''.join(format_exception(error)))}")
            else:
                shown = got if error is None else got + _said(error)
                GUEST.write(_checker.output_difference(example, shown, flags))
        if self.raise_on_error:
            raise AssertionError(f"{place}: the example failed: {example.source.strip()}") from error
        return False

    def report(self) -> None:
        """Write a summary, of failures only unless the run is verbose."""
        failures = {title: counts for title, counts in self.by_title.items() if counts[0]}
        if self.verbose:
            for title, (failed, attempted) in self.by_title.items():
                if not failed:
                    GUEST.write(f"{attempted:4} passed in {title}\n")
        if failures:
            GUEST.write(f"{_DIVIDER}\n{_counted(len(failures), 'item')} had failures:\n")
            for title, (failed, attempted) in failures.items():
                GUEST.write(f" {failed:3} of {attempted:3} in {title}\n")
            GUEST.write(f"***Test Failed*** {_counted(self.failed, 'failure')}.\n")
        elif self.verbose:
            GUEST.write(f"{_counted(self.attempted, 'test')} passed.\nTest passed.\n")

    def results(self) -> doctest.TestResults:
        """Return the counts."""
        return doctest.TestResults(self.failed, self.attempted)


def _run_example(source: str, names: dict[str, Any]) -> tuple[str, BaseException | None]:
    """Run one example and return what it wrote, with its value as a prompt shows it, and what it raised."""
    written = io.StringIO()
    before = streams.exchange("stdout", written)
    try:
        run_statements(compile_program(source, filename="<doctest>"), names)
        value = names.pop(LAST_VALUE, None)
        if value is not None:
            written.write(f"{value!r}\n")
    except KeyboardInterrupt:
        raise
    except Refused as refused:
        return written.getvalue(), error_of(refused)
    except BaseException as error:  # noqa: BLE001 - an example may expect any exception
        return written.getvalue(), error
    finally:
        streams.exchange("stdout", before)
    return written.getvalue(), None


def _expected(example: doctest.Example, error: BaseException, flags: int) -> bool:
    if example.exc_msg is None:
        return False
    wanted, said = example.exc_msg, _said(error)
    if flags & doctest.IGNORE_EXCEPTION_DETAIL:
        wanted, said = _strip_detail(wanted), _strip_detail(said)
    return _checker.check_output(wanted, said, flags)


def _said(error: BaseException) -> str:
    """Return the last line of a traceback, with the module of the exception's class as Python gives it."""
    said = format_exception_only(error)[-1]
    module = type(error).__module__
    outside = module not in {"__main__", "builtins"} and not module.startswith("sealab.")
    return f"{module}.{said}" if outside else said


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
