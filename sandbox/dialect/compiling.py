"""Security boundary: from a guest's source text to code that runs at CPython's own speed and stays inside.

`compile_program` parses, judges (`transformer`) and compiles; `run_program` executes. `guarded_exec`, `guarded_eval`
and `guarded_compile` are what guest code gets for the builtins of those names: the same dialect, in its own namespace.
"""

from __future__ import annotations

import ast
import builtins
import gc
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec
from inspect import CO_COROUTINE
from types import CodeType, FrameType
from typing import Any, Final, Literal, NoReturn, cast

from ..errors import Refused
from ..guest.dynamic import dynamic
from ..guest.guest import GUEST, variables_of
from ..guest.ownership import is_guest_frame, marked_code
from ..guest.program_values import NO_LITERALS, put_in
from ..guest.runtime import Program
from ..guest_api.hosted_skills import source_of
from ..job import Json
from ..report.hints_by_message import newer_syntax
from ..report.results import result_of
from . import event_loop, green_threads, guest_modules
from .classes import keep_unmade
from .facades.stand_ins import asyncio_
from .guards import SecurityError
from .guest_modules import ModuleText
from .names import exact
from .refusals import RefusalFinder
from .transformer import LAST_VALUE, GeneratedTransformer, ModuleTransformer, Transformer
from .views import namespace_of, namespace_view, shown_variables

__all__ = [
    "LAST_VALUE",
    "Program",
    "code_of_module",
    "compile_module",
    "compile_program",
    "evaluate",
    "guarded_compile",
    "guarded_eval",
    "guarded_exec",
    "guarded_globals",
    "guarded_locals",
    "run_program",
    "run_statements",
]

_Mode = Literal["exec", "eval"]
_TRANSFORMER_FRAMES: Final = 50_000
"""Python frames the transformation may nest, some five for each level of a tree. They take no C stack; the compiler's
own recursion does, so its limit stays as it is."""

_IGNORE_ALL: Final = [("ignore", None, Warning, None, 0)]
_NO_FILE: Final = ""
"""The file name that the compiler gets. Of a real file it would read and show the line of an error."""
_SOURCE_CHARS_MAX: Final = 4_000_000


def _not_provided() -> NoReturn:
    raise RuntimeError("The builtins of guest code are not known yet. Import `namespace` before any code runs.")


_hooks: Callable[[], Mapping[str, object]] = _not_provided
_fresh_builtins: Callable[[], dict[str, object]] = _not_provided


def provide_builtins(hooks: Callable[[], Mapping[str, object]], fresh: Callable[[], dict[str, object]]) -> None:
    """Take what gives the hooks and a fresh table of builtins; `namespace` calls it when it is imported."""
    global _hooks, _fresh_builtins
    _hooks, _fresh_builtins = hooks, fresh


def compile_program(source: str, *, filename: str = "<code>", literals: Mapping[str, Json] = NO_LITERALS) -> Program:
    """Compile guest source, with `literals` put into it before it is judged.

    Raises `Refused` for what the dialect does not allow, with all that it does not allow, else `SyntaxError`.
    """
    try:
        code = _compile(source, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, literals=literals)
    except Refused as refused:
        raise _with_others(refused, source) from None
    return Program(code, bool(code.co_flags & CO_COROUTINE))


def compile_module(module: ModuleText) -> tuple[CodeType, Sequence[Refused]]:
    """Compile a guest module; say too what in it raises an error when it runs. Raises as `compile_program` does.

    The code has no mark yet (`marked_code`), so that it can be written.
    """
    transformer = ModuleTransformer(package=module.package)
    return _judged(module.text, module.filename, "exec", policy=lambda: transformer), transformer.refusals


def code_of_module(module: ModuleText) -> CodeType:
    """Compile a guest module for running code, which can understand and catch what is refused of it; as above."""
    return _as_an_error(lambda: compile_module(module)[0])


def refuse(kind: str, message: str, instead: str) -> NoReturn:
    """Raise what a line of a guest module raises that the dialect refuses."""
    raise error_of(Refused(str(message), type=str(kind), instead=str(instead) or None))


def unmade(kind: str, message: str, instead: str) -> object:
    """Return what stands for a class that the dialect refuses in a guest module: to use it raises as `refuse` does."""
    refusal_parts = [exact(str(each)) for each in (kind, message, instead)]

    def fail(*_arguments: object, **_keywords: object) -> NoReturn:
        refuse(*refusal_parts)

    return keep_unmade(dynamic("a class that is refused here", fail, fail, call=fail))


def run_program(program: Program, namespace: dict[str, object]) -> object:
    """Run a program in `namespace` and return what it is to show (`results`). What the code raises comes through."""
    layer = cast("dict[str, object]", namespace["__builtins__"])
    if namespace is GUEST.namespace:
        guest_modules.name_program(namespace)
    return result_of(lambda: run_statements(program, namespace), namespace, layer, LAST_VALUE)


def run_statements(program: Program, namespace: dict[str, object]) -> None:
    """Run a program in `namespace`, and leave there the value of its last expression as `LAST_VALUE`."""
    try:
        if program.is_async:
            event_loop.run(evaluate(program.code, namespace), lambda: namespace.get(LAST_VALUE))
        else:
            evaluate(program.code, namespace)
    except SystemExit:
        if namespace is GUEST.namespace:
            _finish()
        raise
    if namespace is GUEST.namespace:  # and not those of a module
        asyncio_.finish()
        _finish()


def _finish() -> None:
    """Wait for threads, and call what is to be called at the end of the program."""
    green_threads.finish()
    if guest_modules.is_loaded("atexit"):
        guest_modules.call("atexit", "run_exitfuncs")


def guarded_exec(source: object, globals: object = None, locals: object = None, /) -> None:  # noqa: A002 - as `exec` calls them
    """Run source under the dialect. Without dictionaries it runs where it is called, as `exec` does."""
    _run(source, "exec", globals, locals, sys._getframe(1))


def guarded_eval(source: object, globals: object = None, locals: object = None, /) -> object:  # noqa: A002 - as above
    """Return the value of an expression under the dialect, as `eval` does."""
    return _run(source, "eval", globals, locals, sys._getframe(1))


def exec_generated(source: str, variables: dict[str, object]) -> None:
    """Run the methods that `dataclasses` wrote, under the dialect, in `variables`."""
    evaluate(_compile(source, "<string>", "exec", policy=GeneratedTransformer), _as_namespace(variables))


def guarded_compile(
    source: object, filename: object = "<string>", mode: str = "exec", *_flags: object, **_options: object
) -> object:
    """Compile source for `guarded_exec` or `guarded_eval`. What comes back is opaque."""
    if mode not in {"exec", "eval", "single"}:
        raise ValueError("compile() mode must be 'exec', 'eval' or 'single'")
    compiled = _Compiled()
    # The text of another class could answer for itself where names of files are looked up.
    text = source_of(source)
    compiled._code = _compile_for_guest(text, exact(str(filename)), "eval" if mode == "eval" else "exec")
    compiled._shows = mode == "single"
    return compiled


def guarded_globals() -> dict[str, object]:
    """Return a view of the module's variables, as `globals` does."""
    return namespace_view(variables_of(sys._getframe(1)))


def guarded_locals() -> dict[str, object]:
    """Return the caller's variables, as `locals` does."""
    return _locals_of(sys._getframe(1))


class _Compiled:
    """What `compile` gives to guest code: it can only be run."""

    __slots__ = ("_code", "_shows")  # set from outside: guest code may call any `__init__` again
    _code: CodeType
    _shows: bool

    @property
    def co_filename(self) -> str:
        """The name that the source was said to have."""
        return self._code.co_filename

    def replace(self, *, co_name: str = "<module>", co_filename: str | None = None) -> _Compiled:
        """Return the same code under other names, which errors show."""
        made = _Compiled()
        filename = self._code.co_filename if co_filename is None else exact(co_filename)
        made._code = self._code.replace(co_name=exact(co_name), co_filename=filename)
        made._shows = self._shows
        return made

    def __repr__(self) -> str:
        return "<code object>"

    def __copy__(self) -> _Compiled:
        return self

    def __deepcopy__(self, _memo: object) -> _Compiled:
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'code' objects")


def _run(source: object, mode: _Mode, given_globals: object, given_locals: object, caller: FrameType) -> object:
    if type(source) is _Compiled:
        code = source._code
    else:
        code = _compile_for_guest(_text(source_of(source), mode), "<string>", mode)
    variables = _as_namespace(variables_of(caller) if given_globals is None else given_globals)
    if given_locals is not None:
        inner = given_locals if (target := namespace_of(given_locals)) is None else target
        return evaluate(code, variables, cast("Mapping[str, object]", inner))
    if given_globals is None and caller.f_locals is not caller.f_globals and is_guest_frame(caller):
        return evaluate(code, variables, _locals_of(caller))
    value = evaluate(code, variables)
    if type(source) is _Compiled and source._shows and (shown := variables.pop(LAST_VALUE, None)) is not None:
        GUEST.write(f"{shown!r}\n")
    return value


def evaluate(code: CodeType, *spaces: Mapping[str, object]) -> Any:
    """Run code that the dialect compiled, in variables that hold guarded builtins."""
    return _evaluator()(code, *spaces)


@cache
def _evaluator() -> Callable[..., Any]:
    """Return `eval`, called from a frame of its own under the guarded builtins.

    CPython gives a namespace without builtins those of the frame that calls (Library Reference, `exec`). A namespace of
    the guest's own can lose its builtins at any moment, since a garbage collection may run its code.
    """
    space: dict[str, Any] = {"__builtins__": _fresh_builtins(), "evaluate": builtins.eval}
    source = "run = lambda code, *spaces: evaluate(code, *spaces)"
    builtins.exec(compile(source, "<sandbox>", "exec"), space)  # noqa: S102 - a constant
    return cast("Callable[..., Any]", space["run"])


def _compile_for_guest(source: object, filename: str, mode: _Mode) -> CodeType:
    policy = partial(Transformer, imports_may_fail=True)  # what is not there is missed where it is imported
    return _as_an_error(lambda: _compile(source, filename, mode, policy=policy))


def _as_an_error(compiled: Callable[[], CodeType]) -> CodeType:
    """Compile what running code asks for; a refusal is an error that the code can understand and catch."""
    try:
        return compiled()
    except Refused as caught:
        refused = caught
    raise error_of(refused)  # outside the handler, since what is raised within has the other as its context


def error_of(refused: Refused) -> Exception:
    """Return what running code gets in place of a refusal."""
    message = f"{refused.message}; {refused.instead}" if refused.instead else refused.message
    match refused.type:
        case "ImportError":
            return ImportError(message, name=refused.module)
        case "SyntaxError":
            return SyntaxError(message)
        case _:
            return SecurityError(message)


def _text(source: object, mode: _Mode) -> str:
    if type(source) is bytes:
        source = source.decode()
    if not isinstance(source, str):
        raise TypeError(f"{mode}() arg 1 must be a string, bytes or code object")
    text = str.__str__(source)
    return text.lstrip(" \t") if mode == "eval" else text


def _locals_of(frame: FrameType) -> dict[str, object]:
    if not is_guest_frame(frame) or frame.f_locals is frame.f_globals:
        return namespace_view(variables_of(frame))
    return shown_variables(frame.f_locals)


def _as_namespace(given: object) -> dict[str, object]:
    """Make a dictionary that guest code gives a namespace under guarded builtins of its own."""
    namespace = namespace_of(given)
    if namespace is None:
        if type(given) is not dict:
            raise TypeError(f"globals must be a dict, not {type(given).__name__}")
        namespace = given
    # A key of another type may equal "__builtins__" for this module and not for `exec`, which then adds the real ones.
    if not all(type(name) is str for name in namespace):
        raise TypeError("the keys of a namespace must be strings")
    present = namespace.get("__builtins__")
    # Code that holds the dictionary may have changed its builtins; each run there finds the hooks in place.
    if type(present) is not dict or any(present.get(name) is not hook for name, hook in _hooks().items()):
        if isinstance(namespace.get("__spec__"), ModuleSpec) or _are_real(present):
            raise SecurityError("these are the variables of a module of Python's own, in which no code runs here")
        layer = cast("dict[str, object]", GUEST.namespace.get("__builtins__") or _fresh_builtins())
        if "__builtins__" in namespace:  # the idiom that takes the builtins away: keep only what the machinery needs
            layer = {"__name__": layer["__name__"]}
            layer |= present if type(present) is dict else {}
        namespace["__builtins__"] = {**layer, **_hooks()}
    return namespace


def _are_real(given: object) -> bool:
    return given is builtins or given is vars(builtins)


def _with_others(first: Refused, source: str) -> Refused:
    """Return a refusal with what else of the source would be refused, as far as that can be found out."""
    if first.line is None:
        return first
    finder = RefusalFinder()
    with suppress(Exception):  # the source may be too deep for another look
        _compile(source, _NO_FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, lambda: finder)
    return first.with_others(tuple(each for each in finder.found if each.message != first.message))


def _compile(
    source: object,
    filename: str,
    mode: _Mode,
    flags: int = 0,
    policy: Callable[[], Transformer] = Transformer,
    *,
    literals: Mapping[str, Json] = NO_LITERALS,
) -> CodeType:
    return marked_code(_judged(source, filename, mode, flags, policy, literals=literals), filename)


def _judged(
    source: object,
    filename: str,
    mode: _Mode,
    flags: int = 0,
    policy: Callable[[], Transformer] = Transformer,
    *,
    literals: Mapping[str, Json] = NO_LITERALS,
) -> CodeType:
    if type(source) is not str:
        raise TypeError("source must be a string; ast.unparse(tree) gives one for a tree")
    if len(source) > _SOURCE_CHARS_MAX:
        raise Refused(
            f"the code is longer than {_SOURCE_CHARS_MAX:,} characters", instead="read data from a workspace file"
        )
    # A collection would run finalizers of the code: they would find this limit, and could wait in the midst of this.
    collects = gc.isenabled()
    gc.disable()
    frames, filters = sys.getrecursionlimit(), warnings.filters
    # What `catch_warnings` and a context manager would do, without their dozen calls in every run.
    warnings.filters = _IGNORE_ALL
    try:
        tree = compile(source, _NO_FILE, mode, flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        put_in(tree, literals)
        sys.setrecursionlimit(max(frames, _TRANSFORMER_FRAMES))
        transformer = policy()
        judged = transformer.visit(tree)
        sys.setrecursionlimit(frames)
        return cast("CodeType", compile(judged, _NO_FILE, mode, flags | transformer.flags, dont_inherit=True))
    except SyntaxError as error:
        if error.filename == _NO_FILE:
            error.filename = filename
            line = source.split("\n", error.lineno)[error.lineno - 1] if error.lineno else ""
            error.msg = newer_syntax(error.msg, line) or error.msg
            error.args = (error.msg, *((filename, *where[1:]) for where in error.args[1:]))
        raise
    except (RecursionError, MemoryError):
        raise Refused(
            "the code is nested too deeply to compile", type="SyntaxError", instead="split the long expression"
        ) from None
    except UnicodeEncodeError:
        raise SyntaxError("the source holds a character that is not valid Unicode") from None
    except ValueError as error:
        raise SyntaxError(str(error)) from None
    finally:
        sys.setrecursionlimit(frames)
        warnings.filters = filters
        if collects:
            gc.enable()
