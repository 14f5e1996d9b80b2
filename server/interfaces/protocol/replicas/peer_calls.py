"""What other servers of the same sealab ask of this one: to run a program in a session of its own, and short questions.

    run       a program for a session; the answer is a stream of lines, see `replicas.remote_runs`
    still     nothing: whether this server answers
    answer    what a user said to a question of such a program
    sessions  the sessions of a scope that are here
    close     to end a session that is here
    store     to write down what is recorded of runs
    last      the last run of a scope here, and how many seconds ago it ended

Each names its tenant, which is opened if it is served, as for a request of a client.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ....base.errors import KNOWN_ERRORS, shortage_in
from ....governance.rights import TOOLS, require
from ....use_cases.host_functions.run_calls import sessions_json
from ....use_cases.replicas.remote_runs import ANSWER, RUN, STILL, NotHere, Questions, request_sent, with_questions
from ....use_cases.replicas.replica_errors import SessionElsewhere
from ....use_cases.replicas.replicas import TenantPlaces
from ....use_cases.replicas.seals import HEADER
from ....use_cases.runs.background.background_reports import execution_json
from ....use_cases.runs.execute import execute_here
from ..web.admission import left
from ..web.error_responses import refusal

if TYPE_CHECKING:
    from ....app import App
    from ....use_cases.replicas.replicas import Replicas
    from ...tenants import Tenants
    from ..web.tenant_apps import ServedApp

STILL_SECONDS = 10.0
"""How often a run that says nothing says that it is still at work."""
_LOG = logging.getLogger(__name__)


class PeerCalls:
    """Answers the questions of other servers; behind the door, which has judged who asks."""

    def __init__(self, tenants: Tenants[ServedApp], replicas: Replicas) -> None:
        self._tenants = tenants
        self._replicas = replicas

    async def __call__(self, head: Mapping[str, Any], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one question."""
        if head.get("kind") == ANSWER:
            waiting = self._replicas.questions.get(str(head.get("name")))
            if waiting is not None and not waiting.done():
                waiting.set_result(head)
            await _json({"taken": waiting is not None})(scope, receive, send)
            return
        if head.get("kind") == STILL:
            await _json({})(scope, receive, send)
            return
        try:
            async with self._tenants.using(str(head["tenant"])) as served:
                if head["kind"] == RUN:
                    await self._run(served.app, head, scope, receive, send)
                else:
                    await _json(await _answer(served.app, head))(scope, receive, send)
        except KNOWN_ERRORS as error:
            await refusal(400, str(error))(scope, receive, send)
        except (KeyError, ValueError, TypeError):
            await refusal(400, "The question is none that this version knows. Update the older one.")(
                scope, receive, send
            )

    async def _run(self, app: App, head: Mapping[str, Any], scope: Scope, receive: Receive, send: Send) -> None:
        if self._replicas.membership.is_leaving:
            refused = refusal(503, "The server is stopping.")
            refused.headers[HEADER] = "stopping"
            await refused(scope, receive, send)
            return
        line = _Lines(send)
        request = with_questions(
            request_sent(head, self._replicas.keys), Questions(self._replicas.questions, line.tell), head
        )
        require(request.caller.identity, TOOLS, "execute_code")
        await line.tell({"still": True})
        places = app.executor.places
        assert isinstance(places, TenantPlaces)

        async def progress(value: float, total: float, message: str) -> None:
            await line.tell({"progress": [value, total, message]})

        here = partial(execute_here, app.executor, request, progress=progress)
        working = asyncio.create_task(places.execute_for_other(app.executor, request, here))
        leaving = asyncio.create_task(left(receive))
        try:
            while not (working.done() or leaving.done()):
                done, _ = await asyncio.wait(
                    {working, leaving}, timeout=STILL_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await line.tell({"still": True})
            if working.done():
                await _end(line, working)
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)


class _Lines:
    """The lines of one answer; nothing is sent before the first."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._sending = asyncio.Lock()
        self.has_begun = False

    async def tell(self, said: Mapping[str, object], *, more: bool = True) -> None:
        """Send a line."""
        content = json.dumps(said, separators=(",", ":")).encode() + b"\n"
        async with self._sending:
            if not self.has_begun:
                self.has_begun = True
                headers = [(b"content-type", b"application/x-ndjson")]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": content, "more_body": more})


async def _end(line: _Lines, working: asyncio.Task[Any]) -> None:
    try:
        said: Mapping[str, object] = {"end": execution_json(working.result())}
    except (NotHere, SessionElsewhere):
        said = {"not_here": True}  # nothing of it ran: the other server asks again for as long as it may
    except KNOWN_ERRORS as error:
        said = {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - logged here, and reported to the other server
        shortage = shortage_in(error)
        _LOG.exception("A run for another server failed.")
        said = {"failed": True} if shortage is None else {"refused": shortage}
    await line.tell(said, more=False)


async def _answer(app: App, head: Mapping[str, Any]) -> Mapping[str, object]:
    """Answer a short question. Raises `ValueError` for one that is not known."""
    match head["kind"]:
        case "sessions":
            return {"sessions": sessions_json(app.pools, str(head["scope"]))}
        case "close":
            return {"closed": app.pools.close_session(str(head["session"]))}
        case "store":
            with suppress(*KNOWN_ERRORS):
                await app.journal.stored()
            return {}
        case "last":
            return {"last": app.executor.last_runs.aged(str(head["scope"]))}
        case _:
            raise ValueError(head["kind"])


def _json(said: Mapping[str, object]) -> Response:
    return Response(json.dumps(said), media_type="application/json")
