"""A run and its question as an MCP App (SEP-1865), for hosts that show pages of servers beside the answers of tools.

The tools that give reports name one page, `ui://sealab/run`, to clients that show such. It is the same for all runs.
When it has the `run_id` from the host, it reads `ui://sealab/runs/<run_id>`, which is written by the templates
of the console, for the caller that reads it.

It answers no question. A `tools/call` that a page sends comes through the host on the connection that the model's calls
come on, and nothing in it says who sent it or that somebody clicked (SEP-1865, "Standard MCP Messages"). That a model
does not call a tool with `visibility: ["app"]` is kept by hosts alone ("Visibility"), and a secret in the page would be
read by any model that can read resources. So an agent could answer its own question. The page has the host open the
console instead (`ui/open-link`), where the user is known by a session of their own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.server.extension import Extension
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ReadResourceResult, TextResourceContents
from pydantic import BaseModel

from ....skills_db.errors import JournalNotFound
from ...app import App
from ...base.errors import KNOWN_ERRORS, RequestRefused
from ...base.host_work import Kind, in_thread
from ...base.settings import Switch
from ...governance.caller import Caller
from ...governance.rights import CONSOLE, VIEWS
from ...governance.scopes import caller_of, principal_of

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from ....skills_db.journal.records import StoredJournal
    from ...use_cases.journal.transcript import Transcript

PAGE = f"{VIEWS}run"
"""The page that tools name."""
_RUNS = f"{VIEWS}runs/"
_TOOLS = frozenset({"execute_code", "run_skill", "get_run"})


class RunViews(Extension):
    """The extension, and the middleware of the SDK that names the page to whoever shows it, and reads it."""

    identifier = "io.modelcontextprotocol/ui"

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Work on one message."""
        uri = str((ctx.params or {}).get("uri", "")) if ctx.method == "resources/read" else ""
        declared = ctx.session.client_capabilities
        is_list = ctx.method == "tools/list" and self.identifier in ((declared and declared.extensions) or {})
        if not is_list and not uri.startswith(VIEWS):
            return await call_next(ctx)
        from mcp.server.apps import APP_MIME_TYPE, client_supports_apps  # few clients need it

        if is_list:
            answer = await call_next(ctx)
            return _with_page(answer) if client_supports_apps(ctx) else answer
        text = await self._text(uri, caller_of(ctx))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=text)])

    async def _text(self, uri: str, caller: Caller) -> str:
        from .rendering import rendered

        has_console = caller.origin and self._app.settings.console is Switch.ON
        console = f"{caller.origin}{CONSOLE}/approvals" if has_console else ""
        if uri == PAGE:
            return await asyncio.to_thread(lambda: rendered("app.html", runs=_RUNS))
        if uri.startswith(_RUNS):
            try:
                run = await self._visible_run(uri.removeprefix(_RUNS), caller)
            except JournalNotFound as error:
                raise MCPError(INVALID_PARAMS, str(error)) from None
            except KNOWN_ERRORS as error:
                run = {"error": str(error)}
            return await asyncio.to_thread(lambda: rendered("app_run.html", base="", data=run, console=console))
        raise MCPError(INVALID_PARAMS, f"There is no resource {uri[:200]}. The page of a run is {PAGE}.")

    async def _visible_run(self, run_id: str, caller: Caller) -> Transcript:
        """Return what the caller may see of a run: all of its own, of another's a question that they may answer."""
        from ...use_cases.journal.transcript import moment
        from ...use_cases.runs.hidden_transcripts import hidden_transcript

        background, journal = self._app.background, self._app.journal
        await journal.stored()
        reach = await background.reach(run_id, caller)
        run: Transcript = {"run_id": run_id, "approvals": []}
        with suppress(JournalNotFound):  # one of the foreground has no question that waits
            state = await background.queued_state(run_id, None if reach.answers_alone else reach.scope)
            if (approval := state.approval) is not None:
                question = await self._app.privacy.hide_text(approval.scope, approval.question)
                who, at = principal_of(approval.scope), moment(state.changed)
                asked: Transcript = {"id": approval.id, "run_id": run_id, "who": who, "at": at, "outcome": "waiting"}
                run["approvals"] = [asked | {"tenant": self._app.home.tenant, "question": question}]
            run["status"] = state.status
        if reach.answers_alone:
            return run
        try:
            record = await in_thread(Kind.DATABASE, partial(self._record, run_id, reach.scope), charged=False)
        except (JournalNotFound, RequestRefused):
            if "status" in run:  # nothing is written of it yet
                return run
            raise
        whole = await hidden_transcript(self._app.privacy, record)
        return {"tenant": self._app.home.tenant, **whole, "approvals": run["approvals"]}

    def _record(self, run_id: str, scope: str | None) -> StoredJournal:
        from ...use_cases.runs.background.background_listing import recorded_run

        journals = self._app.journal.store()
        if scope is not None:
            journals.journal(run_id, scope=scope)  # which raises where it is another's
        return recorded_run(journals, self._app.journal.background(), run_id)


def _with_page(answer: HandlerResult) -> HandlerResult:
    fields = (
        answer.model_dump(by_alias=True, mode="json", exclude_none=True) if isinstance(answer, BaseModel) else answer
    )
    if not isinstance(fields, dict):
        return answer
    page = {"ui": {"resourceUri": PAGE}}
    tools = [
        {**tool, "_meta": {**(tool.get("_meta") or {}), **page}} if tool["name"] in _TOOLS else tool
        for tool in fields.get("tools", ())
    ]
    return {**fields, "tools": tools}
