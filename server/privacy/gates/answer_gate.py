"""The filter of answers: what every request of a client is answered goes through it under `PRIVACY=auto`.

A security boundary. Runs are filtered before they are cut and kept (`run_gate`); everything else, and whatever is said
in errors, is filtered here, around the SDK's own handling of a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from ...base.errors import PrivacyFailed, ServerError
from ...governance.caller import Caller
from ..privacy import Privacy, holds_token
from ..token_texts import TOKEN
from ..tokens.parts import Exchange, collected, part_of, replaced
from .run_gate import restored_for_file

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from pydantic import BaseModel


_UNFILTERED = frozenset({"initialize", "ping", "server/discover", "tools/list", "logging/setLevel"})
"""Requests whose answers sealab itself writes, whole."""
_FILE_TOOLS = frozenset(
    {"write_workspace_file", "read_workspace_file", "list_workspace_files", "delete_workspace_file"}
)
_SKILL_TOOLS = frozenset({"save_skill", "load_skill", "run_skill", "delete_skill"})
_NAMING = ("resources/", "skills/")
"""What methods begin with whose answers and parameters name skills."""
_NAMES = frozenset({"uri", "name", "nextCursor"})
"""Keys of their answers under which a name stands, or what is made of one."""
_NAMES_GIVEN = frozenset({"uri", "cursor"})
"""Their parameters that are given back as they were shown."""
_TEXTS = frozenset({"text", "description", "title", "message", "statusMessage"})
"""Keys of MCP's answers under which text for people and models stands; the others are names, addresses and types."""
_VALUES = frozenset({"structuredContent", "values", "frontmatter"})
"""Keys under which whole values stand."""


_ESCAPED_TOKEN = re.compile(r"%5[Bb][A-Z][A-Z0-9_]{0,31}_[0-9a-hjkmnp-tv-z]{10}%5[Dd]")


class AnswerFilter:
    """A middleware of the SDK: what every request is answered goes through it.

    The answers of `tools_that_filter` are filtered already, or may hold real values; their failures are not.
    """

    def __init__(
        self,
        privacy: Privacy,
        caller_of: Callable[[ServerRequestContext[Any, Any]], Caller],
        tools_that_filter: frozenset[str],
    ) -> None:
        self._privacy = privacy
        self._caller_of = caller_of
        self._tools_that_filter = tools_that_filter

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Restore what goes to a file, have the request answered, and hide what is personal in the answer."""
        if ctx.method in _UNFILTERED or ctx.request_id is None:
            return await call_next(ctx)
        caller = self._caller_of(ctx)
        scope = caller.scope
        tool = str((ctx.params or {}).get("name")) if ctx.method == "tools/call" else None
        names = _NAMES if ctx.method.startswith(_NAMING) else frozenset()
        asked: dict[str, str] = {}
        try:
            if tool in _FILE_TOOLS or tool in _SKILL_TOOLS or names:
                params = await self._restored(caller, ctx.params or {}, tool)
                asked = _texts_changed(ctx.params or {}, params)
                ctx = ctx if params == ctx.params else replace(ctx, params=params)
            answer = await call_next(ctx)
        except MCPError as error:
            said = {"message": error.error.message, "structuredContent": error.error.data}
            said = await self._hidden(scope, _as_asked(said, asked))
            raise MCPError(error.error.code, said["message"], said["structuredContent"]) from None
        wire = answer if isinstance(answer, dict) else {} if answer is None else _wire(answer)
        if tool in self._tools_that_filter and "structuredContent" in wire:
            return answer
        return await self._hidden(scope, _as_asked(wire, asked), names)

    async def _restored(self, caller: Caller, params: Mapping[str, Any], tool: str | None) -> dict[str, Any]:
        """Return the parameters of a request with real names of files and skills."""
        given = dict(params if tool is None else params.get("arguments") or {})
        try:
            if tool in _FILE_TOOLS:
                restored, _content = await restored_for_file(self._privacy, caller, given)
            else:
                named = {key: given[key] for key in (_NAMES_GIVEN if tool is None else {"name"}) & given.keys()}
                restored = given | {key: await self._real(caller, name) for key, name in named.items()}
        except ServerError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return restored if tool is None else {**params, "arguments": restored}

    async def _real(self, caller: Caller, name: Any) -> Any:
        """Return the name that was shown with tokens; any other stays as it is.

        What would not be shown so is not restored: an error that quotes it could show a value beside which something
        else was written.
        """
        shown = _ESCAPED_TOKEN.sub(lambda match: unquote(match[0]), name) if isinstance(name, str) else name
        if not holds_token(shown):
            return name
        real = str((await self._privacy.restored_for_code(caller, shown)).content)
        return real if await self._privacy.hide_text(caller.scope, real) == shown else name

    async def _hidden(
        self, scope: str, answer: Mapping[str, Any], names: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        exchanged = partial(_exchanged, names=names)
        parts = collected(answer, exchanged)
        if not parts:
            return dict(answer)
        try:
            hidden = await self._privacy.hide(scope, parts, run_tokens=self._privacy.new_run_tokens(scope))
        except PrivacyFailed as failed:
            raise MCPError(INTERNAL_ERROR, str(failed)) from None
        return dict(replaced(answer, exchanged, hidden.parts))


def _texts_changed(given: Mapping[str, Any], restored: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of parameters in which something was restored, with what the client wrote."""
    changed: dict[str, str] = {}
    for key, value in restored.items():
        before = given.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            changed |= _texts_changed(before, value)
        elif isinstance(value, str) and isinstance(before, str) and value and value != before:
            changed[value] = before
    return changed


def _as_asked(answer: Any, asked: Mapping[str, str]) -> Any:
    """Return an answer that quotes parameters as the client wrote them.

    A restored name beside which something else was written is no name that could be found and hidden any more.
    """
    if isinstance(answer, str):
        for real in sorted(asked, key=len, reverse=True):  # one may be a part of another
            answer = answer.replace(real, asked[real])
    elif asked and isinstance(answer, Mapping):
        return {key: _as_asked(inner, asked) for key, inner in answer.items()}
    elif asked and isinstance(answer, list):
        return [_as_asked(inner, asked) for inner in answer]
    return answer


def _wire(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _exchanged(answer: Any, exchange: Exchange, *, names: frozenset[str]) -> Any:
    """Return an answer with another text or value for each that stands under a key in `_TEXTS`, `_VALUES` or `names`.

    In a URI, tokens are written as RFC 3986 has it (section 2.1): brackets stand for nothing there but addresses.
    """
    if isinstance(answer, Mapping):
        changed: dict[str, Any] = {}
        for key, inner in answer.items():
            if key in _VALUES or (isinstance(inner, str) and (key in _TEXTS or key in names)):
                changed[key] = exchange(part_of(inner))
                if key == "uri":
                    changed[key] = TOKEN.sub(lambda match: quote(match[0]), str(changed[key]))
            else:
                changed[key] = _exchanged(inner, exchange, names=names)
        return changed
    return [_exchanged(inner, exchange, names=names) for inner in answer] if isinstance(answer, list) else answer
