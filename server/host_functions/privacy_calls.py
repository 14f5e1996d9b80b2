"""The host functions of the vault: what the code's `sanitize_pii` and `restore_pii` call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ..errors import ServerError
from ..privacy.privacy import Privacy
from ..privacy.tokens.parts import CHARS_MAX, Text, Tree
from .broker import Arguments, Calls, Handler

_ANY = (str, int, float, list, dict, type(None))
_LONGEST = {"content": CHARS_MAX}


def handlers(privacy: Privacy) -> Mapping[str, Handler]:
    """Return what answers for the vault, by name."""
    return {
        "sanitize_pii": Handler(partial(_sanitize, privacy), {"content": _ANY}, frozenset({"content"}), _LONGEST),
        "restore_pii": Handler(partial(_restore, privacy), {"content": _ANY}, frozenset({"content"}), _LONGEST),
    }


async def _sanitize(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    _refuse_when_off(privacy)
    content = arguments["content"]
    part = Text(content, exact=True) if isinstance(content, str) else Tree(content, exact=True)
    try:
        return (await privacy.hide(calls.caller.scope, (part,), destination="code", run_tokens=calls.run_tokens)).parts[
            0
        ]
    except ServerError as error:
        raise HostCallError(str(error), type="RuntimeError") from error


async def _restore(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    _refuse_when_off(privacy)
    try:
        run = calls.outermost.attachments.run_id
        return (await privacy.restored_for_code(calls.caller.scope, arguments["content"], run=run)).content
    except ServerError as error:
        raise HostCallError(str(error), type="PermissionError") from error


def _refuse_when_off(privacy: Privacy) -> None:
    if privacy.is_off:
        raise HostCallError(
            "Personal data is not hidden here: PRIVACY is off. Ask the operator for PRIVACY=tools or auto.",
            type="PermissionError",
        )
