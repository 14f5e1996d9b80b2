"""Describe an exception to the one who wrote the code: its type, message, own line, hint, and own traceback.

Security boundary: the exception is hostile. Its attributes are read through the C descriptors of BaseException,
captured at import; its `__str__` may raise, lie or return what is not a string; chains may be long or circular, and
groups deep. Source lines come from the source given, never from a file. Nothing of the host's frames, files or paths is
shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Final

from ..errors import Refused
from ..guest.real_classes import derives
from ..guest.spelling import demangle
from ..job import Failure
from . import hints_by_type, lookups
from .disclosure import bounded, plain_names, repr_of, said_by, type_name

SOURCE_NAME: Final = "<code>"
"""The file name under which the code is compiled."""

_STRING: Final = "<string>"
"""The file name of strings that the code runs with `exec` and `eval`; their source is not kept."""

MESSAGE_CHARS_MAX = 2000
TRACEBACK_CHARS_MAX = 12_000

_SOURCE_CHARS_MAX = 200
_FRAMES_MAX = 20
_REPEATS_SHOWN = 3
_CHAIN_MAX = 6
_CHAIN_WALKED_MAX = 1_000_000
_GROUP_MAX = 10
_GROUP_LEVELS_MAX = 3
_NOTES_MAX = 10
_NOTE_CHARS_MAX = 500

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

_traceback_of = BaseException.__dict__["__traceback__"].__get__
_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__
_suppressed_of = BaseException.__dict__["__suppress_context__"].__get__
_members_of = BaseExceptionGroup.__dict__["exceptions"].__get__
_syntax = {name: SyntaxError.__dict__[name].__get__ for name in ("msg", "lineno", "offset", "text", "filename")}


@dataclass(frozen=True, slots=True)
class _Step:
    """One own line that the exception passed through."""

    filename: str
    line: int
    function: str
    frame: FrameType


def describe(
    error: BaseException, source: str, filename: str = SOURCE_NAME, *, earlier: Mapping[str, str] | None = None
) -> Failure:
    """Describe an exception that left the code; raises nothing, and is bounded whatever the exception.

    `source` is what was compiled as `filename`. `earlier` maps file names to other sources of the code's own, such as a
    session's earlier calls. `line` is the innermost line of `source` that the exception passed, or where a syntax error
    stands.
    """
    try:
        return _described(error, {**(earlier or {}), filename: source}, filename)
    except BaseException:  # noqa: BLE001 - a failure that cannot be described must still be reported
        return Failure(type=type_name(type(error)), message="The exception could not be described.")


def _described(error: BaseException, sources: Mapping[str, str], filename: str) -> Failure:
    steps = list(_own_steps(error, sources))
    here = next((step for step in reversed(steps) if step.filename == filename), None)
    line = here.line if here else None
    if line is None and derives(type(error), SyntaxError):
        line = _line_of_syntax(error)
    kind, message = kind_of(error), message_of(error)
    refusal = _refusal(error)
    if refusal is not None:
        hint = hints_by_type.hint_for_refusal(refusal)
    else:
        last = steps[-1] if steps else None
        where = (
            lookups.Scene(sources.get(last.filename, ""), last.line, last.frame)
            if last
            else lookups.Scene(sources[filename], line)
        )
        hint = hints_by_type.hint_for(error, message, where)
    return Failure(type=kind, message=message, line=line, hint=hint, traceback=_Writer(sources).story(error))


def describe_refusal(refusal: Refused, source: str, filename: str = SOURCE_NAME) -> Failure:
    """Describe why the dialect did not let the source run: the line, the reason, and what to write instead.

    What else it does not allow follows in the message, a line for each.
    """
    message = plain_names(refusal.message, MESSAGE_CHARS_MAX)
    other_lines = "".join(f"\n{_one_of_others(other)}" for other in refusal.others)
    shown = None
    if refusal.line is not None:
        step = source_line(source, refusal.line)
        shown = f'  File "{filename}", line {refusal.line}\n' + (f"    {step}\n" if step else "")
        shown += f"{refusal.type}: {message}"
    return Failure(
        type=refusal.type,
        message=plain_names(message + other_lines, MESSAGE_CHARS_MAX),
        line=refusal.line,
        hint=hints_by_type.hint_for_refusal(refusal),
        traceback=shown,
    )


def _one_of_others(refusal: Refused) -> str:
    said = f"Line {refusal.line}: {refusal.message}"
    if refusal.instead is not None:
        return f"{said}; {refusal.instead}"
    hint = hints_by_type.hint_for_refusal(refusal)
    return said if hint is None else f"{said}. {hint}"


def kind_of(error: BaseException) -> str:
    """Return the exception's type as its author named it."""
    refused = _refusal(error)
    return refused.type if refused else type_name(type(error))


def message_of(error: BaseException) -> str:
    """Return what `str` says of an exception, without anything of the machine; never raises.

    A long message loses its middle: what is wrong often stands at its end.
    """
    if derives(type(error), SyntaxError) and type(_syntax["msg"](error)) is str:
        return plain_names(_syntax["msg"](error), MESSAGE_CHARS_MAX)
    return _utf8(said_by(error, str, "__str__", MESSAGE_CHARS_MAX, keeps_end=True))


def _refusal(error: BaseException) -> Refused | None:
    # In this order, since `isinstance` trusts `__class__`.
    return error if derives(type(error), Refused) and isinstance(error, Refused) else None


def _own_steps(error: BaseException, sources: Mapping[str, str]) -> Iterator[_Step]:
    """Yield the lines of the code's own sources that the exception passed, outermost first."""
    position: TracebackType | None = _traceback_of(error)
    seen = 0
    while position is not None and seen < _CHAIN_WALKED_MAX:
        code: CodeType = position.tb_frame.f_code
        if code.co_filename in sources or code.co_filename == _STRING:
            yield _Step(code.co_filename, position.tb_lineno, code.co_qualname, position.tb_frame)
        position = position.tb_next
        seen += 1


def _line_of_syntax(error: BaseException) -> int | None:
    line = _syntax["lineno"](error)
    return line if type(line) is int and 0 < line < 1 << 31 else None


def _line(source: str, line: int) -> str:
    lines = source.split("\n", line)
    return lines[line - 1] if 0 < line <= len(lines) else ""


def source_line(source: str, line: int) -> str:
    """Return the text of a line without what surrounds it; empty where there is none."""
    return _utf8(bounded(_line(source, line).strip(), _SOURCE_CHARS_MAX))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


class _Writer:
    """Writes tracebacks as Python does, with the code's own lines only."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def story(self, error: BaseException) -> str:
        """Return an exception with its causes, bounded in the middle so that both its origin and its end are seen."""
        text = "\n".join(self._chain(error, 0))
        if len(text) <= TRACEBACK_CHARS_MAX:
            return text
        half = TRACEBACK_CHARS_MAX // 2
        return f"{text[:half]}\n… ({len(text) - 2 * half} characters left out)\n{text[-half:]}"

    def _chain(self, error: BaseException, level: int) -> list[str]:
        chain, left_out = _chain_of(error)
        lines: list[str] = []
        for index, (link, joint) in enumerate(chain):
            if index:
                lines += ["", joint, ""]
            if index == 1 and left_out:
                lines += [f"[{left_out} more exceptions left out]", "", joint, ""]
            lines += self._one(link, level)
        return lines

    def _one(self, error: BaseException, level: int) -> list[str]:
        lines: list[str] = []
        steps = list(_own_steps(error, self._sources))
        if steps:
            lines.append("Traceback (most recent call last):")
            lines += self._steps(steps)
        if derives(type(error), SyntaxError):
            lines += self._syntax_place(error)
        message = message_of(error)
        lines.append(f"{kind_of(error)}: {message}" if message else kind_of(error))
        lines += _notes_of(error)
        if derives(type(error), BaseExceptionGroup):
            lines += self._members(error, level)
        return lines

    def _steps(self, steps: list[_Step]) -> list[str]:
        lines: list[str] = []
        repeats = 0
        left_out = max(0, len(_runs(steps)) - _FRAMES_MAX)
        for index, (step, count) in enumerate(_runs(steps)):
            if left_out and _FRAMES_MAX // 2 <= index < _FRAMES_MAX // 2 + left_out:
                repeats += count
                continue
            if repeats:
                lines.append(f"  [{repeats} lines left out]")
                repeats = 0
            entry = self._entry(step)
            lines += entry * min(count, _REPEATS_SHOWN)
            if count > _REPEATS_SHOWN:
                lines.append(f"  [Previous line repeated {count - _REPEATS_SHOWN} more times]")
        return lines

    def _entry(self, step: _Step) -> list[str]:
        function = _utf8(bounded(demangle(step.function).replace("<locals>.", ""), _SOURCE_CHARS_MAX))
        where = f'  File "{_utf8(step.filename)}", line {step.line}, in {function}'
        text = source_line(self._sources.get(step.filename, ""), step.line)
        return [where, f"    {text}"] if text else [where]

    def _syntax_place(self, error: BaseException) -> list[str]:
        line, offset, text = _line_of_syntax(error), _syntax["offset"](error), _syntax["text"](error)
        filename = _syntax["filename"](error)
        if type(filename) is str and filename in self._sources:
            text = _line(self._sources[filename], line) if line is not None else None
        if line is None:
            return []
        name = filename if type(filename) is str and filename.startswith("<") else _STRING
        lines = [f'  File "{_utf8(bounded(name, _SOURCE_CHARS_MAX))}", line {line}']
        if type(text) is str and text.strip():
            bare = text.rstrip("\n")
            indent = len(bare) - len(bare.lstrip())
            lines.append(f"    {_utf8(bounded(bare.strip(), _SOURCE_CHARS_MAX))}")
            if type(offset) is int and 0 < offset - indent <= _SOURCE_CHARS_MAX:
                lines.append(" " * (3 + offset - indent) + "^")
        return lines

    def _members(self, error: BaseException, level: int) -> list[str]:
        members: tuple[BaseException, ...] = _members_of(error)
        lines: list[str] = []
        for number, member in enumerate(members[:_GROUP_MAX], 1):
            lines.append(f"  ---------------- {number} of {len(members)}")
            if level < _GROUP_LEVELS_MAX:
                lines += [f"  {line}" for line in self._chain(member, level + 1)]
            else:
                lines.append(f"  {kind_of(member)}")
        if len(members) > _GROUP_MAX:
            lines.append(f"  [{len(members) - _GROUP_MAX} more exceptions left out]")
        return lines


def _runs(steps: list[_Step]) -> list[tuple[_Step, int]]:
    """Return the steps with how often each is repeated in a row, as recursion does."""
    runs: list[tuple[_Step, int]] = []
    for step in steps:
        if runs and (runs[-1][0].filename, runs[-1][0].line, runs[-1][0].function) == (
            step.filename,
            step.line,
            step.function,
        ):
            runs[-1] = (step, runs[-1][1] + 1)
        else:
            runs.append((step, 1))
    return runs


def _chain_of(error: BaseException) -> tuple[list[tuple[BaseException, str]], int]:
    """Return the exceptions that led to this one, the first one first, each with the words that join it to its cause.

    Of a long chain its origin and its end are returned, and how many stand between.
    """
    chain: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < _CHAIN_WALKED_MAX:
        seen.add(id(link))
        cause: BaseException | None = _cause_of(link)
        context: BaseException | None = None if _suppressed_of(link) else _context_of(link)
        chain.append((link, _CAUSE if cause is not None else _CONTEXT))
        link = cause if cause is not None else context
    left_out = max(0, len(chain) - _CHAIN_MAX)
    kept = chain if not left_out else [*chain[: _CHAIN_MAX - 1], chain[-1]]
    return kept[::-1], left_out


def _notes_of(error: BaseException) -> list[str]:
    try:
        notes = object.__getattribute__(error, "__dict__").get("__notes__")
    except BaseException:  # noqa: BLE001 - a `__dict__` of the guest's own may raise anything
        return []
    if type(notes) is not list:
        return []
    shown = [
        _utf8(plain_names(note, _NOTE_CHARS_MAX) if type(note) is str else repr_of(note)) for note in notes[:_NOTES_MAX]
    ]
    return [*shown, *([f"[{len(notes) - _NOTES_MAX} more notes left out]"] if len(notes) > _NOTES_MAX else [])]
