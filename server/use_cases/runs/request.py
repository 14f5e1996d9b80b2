"""What a caller asks for when it has code run, and what it gets."""

from __future__ import annotations

import ast
import os
import re
import secrets
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....sandbox.job import Json, Start
from ...base.identity import identity_json
from ...base.telemetry import tracing
from ...governance.caller import LOCAL, Caller
from .images import Picture
from .isolations import AUTO
from .report import Report

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_LETTERS = 10
_RANDOM_LETTERS = 16
_SHIFTS = tuple(5 * place for place in reversed(range(_TIME_LETTERS + _RANDOM_LETTERS)))


def new_run_id() -> str:
    """Return 26 letters and digits: 48 bits of the time in milliseconds, then 80 random bits.

    The form is a ULID's in lower case (Crockford's base 32, without i, l, o, u), so that names sort as the runs began.
    """
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join([_ALPHABET[number >> shift & 31] for shift in _SHIFTS])


_OPENING = re.compile(r"^[ \t]*```+[^`\n]*$", re.MULTILINE)
_CLOSING = re.compile(r"(^[ \t]*)?(?<!`)(?>`{3,})[ \t]*(?(1)$|\Z)", re.MULTILINE)
_WORDS_CHARS_MAX = 500
"""Of what is said before a fence, and after it."""


def plain_code(code: str) -> str:
    """Return code without what a message has around it: a byte order mark, one Markdown fence, a common indentation.

    Each line of it keeps its number.
    """
    code = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _from_first_column(_inside_fence(code) if "```" in code else code)


def _inside_fence(code: str) -> str:
    """Return what stands in a fence that has only words around it.

    Else it is the code as it is: a line that begins with backticks is Python where a string of several lines goes on.
    """
    opening = _OPENING.search(code)
    if opening is None:
        return code
    before, inside, after = code[: opening.start()], code[opening.end() :].rstrip(), ""
    if not inside:
        return before  # the end of a fence that nothing begins
    closing = deque(_CLOSING.finditer(inside), 1)  # those before the last are of strings that hold Markdown
    if closing:
        inside, after = inside[: closing[0].start()], inside[closing[0].end() :]
    return "\n" * before.count("\n") + inside if _is_said(before) and _is_said(after) else code


def _is_said(text: str) -> bool:
    """Return whether a text is words, and none of its lines a statement that does something."""
    return len(text) <= _WORDS_CHARS_MAX and not any(map(_does_something, text.split("\n")))


def _does_something(line: str) -> bool:
    if '"""' in line or "'''" in line:
        return True
    try:
        statements = ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    # `Solution: this` is an annotation, and `step-by-step` a difference.
    return any(
        not isinstance(node, ast.Expr | ast.AnnAssign) or any(isinstance(each, ast.Call) for each in ast.walk(node))
        for node in statements
    )


def _from_first_column(code: str) -> str:
    lines = code.split("\n")
    counted = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    margin = os.path.commonprefix([line[: len(line) - len(line.lstrip(" \t"))] for line in counted])  # noqa: RUF071
    return "\n".join(line.removeprefix(margin) for line in lines)


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """One `execute_code` as it was asked for, its code by itself; `None` stands for the operator's default."""

    code: str
    context_vars: Mapping[str, Json] = field(default_factory=dict)
    timeout_seconds: float | None = None
    memory_mb: int | None = None
    session: str | None = None
    isolation: str = AUTO
    dry_run: bool = False
    caller: Caller = LOCAL
    arguments: tuple[str, ...] = ()
    start: Start | None = None
    """That of an earlier run, to have its random numbers and its time again."""
    run_id: str | None = None
    """What the run is to be called, where its caller knows that already."""
    background: bool = False
    """Whether it is run for nobody who waits; the policy may say otherwise of such a run."""
    outlives_worker: bool = False
    """Whether its journal is left open, and `RunCut` raised, where its worker is lost: its caller goes on with it."""
    asked_at: str | None = None
    """The `traceparent` of what asked for it, where it was queued and telemetry is on."""

    is_plain: bool = False
    """The code is without what a message has around it, of which only the outermost is taken off."""

    def __post_init__(self) -> None:
        if not self.is_plain:
            object.__setattr__(self, "code", plain_code(self.code))
            object.__setattr__(self, "is_plain", True)


def request_json(request: CodeRequest) -> dict[str, object]:
    """Return a request, and whose it is, as JSON."""
    caller = request.caller
    return {
        "code": request.code,
        "context_vars": dict(request.context_vars),
        "timeout_seconds": request.timeout_seconds,
        "memory_mb": request.memory_mb,
        "session": request.session,
        "isolation": request.isolation,
        "dry_run": request.dry_run,
        "arguments": list(request.arguments),
        "scope": caller.scope,
        "identity": identity_json(caller.identity),
        "asked_at": tracing.traceparent() if request.background else None,
    }


def request_of(encoded: Mapping[str, Any], caller: Caller) -> CodeRequest:
    """Return what `request_json` made JSON of, of a caller. Raises `KeyError` and `TypeError` for what is none."""
    return CodeRequest(
        code=str(encoded["code"]),
        context_vars=encoded["context_vars"],
        timeout_seconds=encoded["timeout_seconds"],
        memory_mb=encoded["memory_mb"],
        session=encoded["session"],
        isolation=str(encoded["isolation"]),
        dry_run=encoded["dry_run"] is True,
        caller=caller,
        arguments=tuple(encoded["arguments"]),
        asked_at=encoded.get("asked_at"),
    )


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution: its report, and the images that the report's `images` speaks of."""

    report: Report
    images: tuple[Picture, ...] = ()
    label: Mapping[str, str] = field(default_factory=dict)
    """What the servers that the run called say of the flow of what they gave, for the `_meta.ifc` of the answer."""
