"""The host functions of the vault: what the code's `sanitize_pii` and `restore_pii` call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from io import BytesIO
from typing import cast

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ...workspace.errors import NotFound
from ...workspace.run_files import HERE
from ...workspace.store import Workspace
from ..errors import ServerError
from ..privacy.gates.read_gate import learn_file, learn_path
from ..privacy.gates.run_gate import LEARN_PATH
from ..privacy.privacy import Privacy
from ..privacy.tokens.parts import CHARS_MAX, Text, Tree
from .broker import Arguments, Calls, Handler
from .file_calls import files_of

FIGURE = "figure"
LEARN_ROWS = "learn_rows"
"""By this a worker tells the values of a table that it is about to open, which the host cannot read."""
_ANY = (str, int, float, list, dict, type(None))
_LONGEST = {"content": CHARS_MAX}


def handlers(privacy: Privacy, workspace: Workspace) -> Mapping[str, Handler]:
    """Return what answers for the vault, by name."""
    return {
        LEARN_PATH: Handler(
            partial(_learn_path, privacy, workspace), {"filename": (str,)}, frozenset({"filename"}), is_of_files=True
        ),
        LEARN_ROWS: Handler(partial(_learn_rows, privacy), {"rows": (list,)}, frozenset({"rows"}), is_of_files=True),
        "hide_labels": Handler(partial(_hide_labels, privacy), {"texts": (list,)}, frozenset({"texts"})),
        "sanitize_pii": Handler(partial(_sanitize, privacy), {"content": _ANY}, frozenset({"content"}), _LONGEST),
        "restore_pii": Handler(partial(_restore, privacy), {"content": _ANY}, frozenset({"content"}), _LONGEST),
    }


async def _learn_path(privacy: Privacy, workspace: Workspace, calls: Calls, arguments: Arguments) -> Json:
    """Learn what is in a file or a folder that the code is about to read by itself."""
    if not privacy.filters:
        return None
    path, known = cast("str", arguments["filename"]), calls.outermost.learned
    held = calls.attachments.held(path.removeprefix(f"{HERE}/"))
    try:
        if held is not None:
            await learn_file(privacy, calls.caller.scope, BytesIO(held), run_tokens=calls.run_tokens)
            return None
        await learn_path(
            privacy, calls.caller.scope, files_of(calls, workspace), path, known, run_tokens=calls.run_tokens
        )
    except NotFound:
        return None  # full Python made it by itself, out of what it had read before
    except ServerError as error:
        raise HostCallError(f"The file cannot be read here. {error}", type="PermissionError") from error
    return None


async def _learn_rows(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    """Learn rows of a table that only a library of the worker reads."""
    if not privacy.filters:
        return None
    try:
        await privacy.learn(calls.caller.scope, arguments["rows"], calls.run_tokens)
    except ServerError as error:
        raise HostCallError(f"The file cannot be read here. {error}", type="PermissionError") from error
    return None


async def _hide_labels(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    """Return the texts of a figure with tokens in them where everything is filtered, else None."""
    if not privacy.filters:
        return None
    return await _hidden(privacy, calls, Tree(arguments["texts"]), FIGURE)


async def _sanitize(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    _refuse_when_off(privacy)
    content = arguments["content"]
    part = Text(content, exact=True) if isinstance(content, str) else Tree(content, exact=True)
    return await _hidden(privacy, calls, part, "code")


async def _hidden(privacy: Privacy, calls: Calls, part: Text | Tree, destination: str) -> Json:
    run = calls.outermost.attachments.run_id
    try:
        hidden = await privacy.hide(
            calls.caller.scope, (part,), destination=destination, run_tokens=calls.run_tokens, run=run
        )
    except ServerError as error:
        raise HostCallError(str(error), type="RuntimeError") from error
    return hidden.parts[0]


async def _restore(privacy: Privacy, calls: Calls, arguments: Arguments) -> Json:
    _refuse_when_off(privacy)
    try:
        run = calls.outermost.attachments.run_id
        return (await privacy.restored_for_code(calls.caller, arguments["content"], run=run)).content
    except ServerError as error:
        raise HostCallError(str(error), type="PermissionError") from error


def _refuse_when_off(privacy: Privacy) -> None:
    if privacy.is_off:
        raise HostCallError(
            "Personal data is not hidden here: PRIVACY is off. Ask the operator for PRIVACY=tools or auto.",
            type="PermissionError",
        )
