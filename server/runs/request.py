"""What a caller asks for when it has code run, and what it gets."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...sandbox.job import Json, Start
from ..caller import LOCAL, Caller
from ..identity import identity_told
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


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """One `execute_code` as it was asked for; `None` stands for the operator's default."""

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


def request_told(request: CodeRequest) -> dict[str, object]:
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
        "identity": identity_told(caller.identity),
    }


def request_of(told: Mapping[str, Any], caller: Caller) -> CodeRequest:
    """Return what `request_told` made JSON of, of a caller. Raises `KeyError` and `TypeError` for what is none."""
    return CodeRequest(
        code=str(told["code"]),
        context_vars=told["context_vars"],
        timeout_seconds=told["timeout_seconds"],
        memory_mb=told["memory_mb"],
        session=told["session"],
        isolation=str(told["isolation"]),
        dry_run=told["dry_run"] is True,
        caller=caller,
        arguments=tuple(told["arguments"]),
    )


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution: its report, and the images that the report's `images` speaks of."""

    report: Report
    images: tuple[Picture, ...] = ()
