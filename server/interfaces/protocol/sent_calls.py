"""Calls that are sent again: what tells that a call is one that came before, and the answer to one that joined it.

MCP 2026-07-28 cannot resume a stream, so a client sends a call whose stream broke again, under a new id. A call with an
idempotency key joins the run of that key. One without joins only a call whose stream broke, and only where everything
else is the same: two calls that are meant twice stay two.

A security boundary: whoever joins a call is given its report. So a call joins only one of the same scope, by a token
with at least its rights.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from ....skills_db.errors import JournalNotFound
from ...base.errors import KNOWN_ERRORS, RequestRefused
from ...base.host_work import Kind, in_thread
from ...governance.caller import Caller
from ...governance.scopes import connection_of
from ...use_cases.replicas.replica_errors import OutcomeUnknown
from ...use_cases.runs.background.background import WAIT_SECONDS_MAX, Background
from ...use_cases.runs.background.background_work import LEASE_SECONDS, RENEW_SECONDS
from ...use_cases.runs.request import new_run_id

if TYPE_CHECKING:
    from ....skills_db.journal.background_store import BackgroundStore
    from ...use_cases.runs.background.background_reports import RunState

IDEMPOTENCY_KEY = "sealab/idempotencyKey"
"""The member of `_meta` that names a call."""
_KEY_CHARS_MAX = 200
_LOOK_SECONDS = 0.5
_T = TypeVar("_T")
_JOINED = "joined: this call was sent before, so nothing was run again; this is the report of the run that began then"


@dataclass(frozen=True, slots=True)
class SentCall:
    """What tells that two calls are the same one.

    `source` is the token and the MCP session, `asked` what the call asks for; of one with a key a digest of it.
    """

    caller: Caller
    source: tuple[str, str]
    asked: object
    key: str | None
    run_id: str | None = None
    """What the run of a call with a key is called."""
    asked_bytes: int = 0
    """How much a call with a key asks for, of which `asked` is a digest."""

    @classmethod
    def of(cls, context: Context[Any, Any], caller: Caller, asking: Callable[[], dict[str, object]]) -> SentCall | None:
        """Return that of a request; None where none joins it: without a key and a stream of its own that may break.

        Raises `RequestRefused` for a key that cannot be one.
        """
        request = context.request_context
        key = (request.meta or {}).get(IDEMPOTENCY_KEY)
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= _KEY_CHARS_MAX):
            raise RequestRefused(
                f"The {IDEMPOTENCY_KEY} in _meta is no key. Give a text of 1 to {_KEY_CHARS_MAX} characters, another "
                "for each call, and the same one to send a call again."
            )
        if key is None and request.request is None:
            return None
        asked = asking()
        connection = connection_of(request) or ""
        source = (caller.identity.credential, connection)
        if key is None:
            return cls(caller, source, asked, None)
        asked_json = json.dumps(asked, sort_keys=True)
        return cls(caller, source, _digest(asked_json), key, new_run_id(), len(asked_json))

    def size(self) -> int:
        """Return how many bytes of JSON it asks for."""
        return self.asked_bytes if self.key is not None else len(json.dumps(self.asked))

    def is_again(self, first: SentCall, *, broke: bool) -> bool:
        """Return whether it is the `first` call, sent again; that one `broke` where its stream did.

        Raises `RequestRefused` where it has the key of another call.
        """
        if self.caller.scope != first.caller.scope:
            return False
        if self.key is None:
            same = first.key is None and (self.source, self.asked) == (first.source, first.asked)
            return same and broke and self.caller.identity.stands_for(first.caller.identity)
        if self.key != first.key:
            return False
        self.judge(first.digests())
        return True

    def digests(self) -> str:
        """Return what is kept of a call with a key: digests of what it asks for and of who asks, and the rights."""
        return " ".join([str(self.asked), self._who, *sorted(self.caller.identity.rights)])

    @property
    def _who(self) -> str:
        identity = self.caller.identity
        return _digest(json.dumps([identity.tenant, identity.principal]))

    def judge(self, first: str) -> None:
        """Raise `RequestRefused` where the first call of its key asked for something else, or had more rights."""
        asked, *identity = first.split()
        if self.asked != asked:
            raise RequestRefused(
                f"The {IDEMPOTENCY_KEY} was given before, for a call with another program or other arguments. Give "
                "each call a key of its own, and the same one only to send a call again as it was."
            )
        if identity[:1] != [self._who] or not self.caller.identity.rights >= set(identity[1:]):
            raise RequestRefused(
                f"The call of this {IDEMPOTENCY_KEY} was made with more rights than the token has. Send it again with "
                "the token that it was made with."
            )


@dataclass(frozen=True, slots=True)
class EarlierCalls:
    """The calls with keys that any server of this database had, also before it started."""

    background: Background

    async def first(self, sent: SentCall) -> RunState | None:
        """Note a call with a key; return how far the run is that the first call of the key began, None for a new call.

        Raises `RequestRefused` where that one asked for something else or had more rights, `OutcomeUnknown` where its
        run may have begun and nothing is kept of it, and what the database raises.
        """
        scope, mark, run_id = sent.caller.scope, _digest(str(sent.key)), str(sent.run_id)
        life, asked = self.background.journal.life_of(scope), sent.digests()
        until = asyncio.get_running_loop().time() + WAIT_SECONDS_MAX
        while True:
            first = await self._ask(lambda store: store.first_sent(scope, mark, asked, run_id, life))
            if first.run_id == run_id:
                return None
            sent.judge(first.asked)
            try:
                return await self.background.state(first.run_id, scope, wait_seconds=WAIT_SECONDS_MAX)
            except JournalNotFound:
                silent = first.silent_seconds
                is_waited_for = silent is not None and silent <= LEASE_SECONDS
                if is_waited_for and asyncio.get_running_loop().time() < until:  # it may wait for its turn
                    await asyncio.sleep(_LOOK_SECONDS)
                elif is_waited_for or silent is None or not self.background.journal.keeps:
                    raise OutcomeUnknown(
                        f"The call of this {IDEMPOTENCY_KEY} was sent before, and its outcome is unknown: nothing is "
                        "kept of its run. Look at what it may have changed, and call with another key to run it anew."
                    ) from None
                else:  # its process is gone, and what changes something is recorded before it is done: nothing was
                    gone = first.run_id
                    await self._ask(
                        lambda store: store.forget_sent(scope, mark, gone, silent_seconds=LEASE_SECONDS)  # noqa: B023
                    )

    @asynccontextmanager
    async def kept(self, sent: SentCall) -> AsyncIterator[None]:
        """Renew the mark of a call that waits here, so that its process does not count as gone."""
        keeping = asyncio.ensure_future(self._keep(sent, asyncio.current_task()))
        try:
            yield
        finally:
            keeping.cancel()

    async def _keep(self, sent: SentCall, work: asyncio.Task[Any] | None) -> None:
        while work is not None:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(*KNOWN_ERRORS):
                if not await self._keeps(sent):  # it was taken for gone, and is run anew
                    work.cancel()
                    return

    async def ran(self, sent: SentCall) -> None:
        """Note that the run of a call has ended: it is not done again, even where nothing is kept of it."""
        with suppress(*KNOWN_ERRORS):  # its answer is there
            await self.background.journal.stored()
            await self._keeps(sent, ran=True)

    async def _keeps(self, sent: SentCall, *, ran: bool = False) -> bool:
        scope, mark, run_id = sent.caller.scope, _digest(str(sent.key)), str(sent.run_id)
        return await self._ask(lambda store: store.keep_sent(scope, mark, run_id, ran=ran))

    async def forget(self, sent: SentCall) -> None:
        """Forget a call of which nothing ran, so that it counts as new."""
        scope, mark, run_id = sent.caller.scope, _digest(str(sent.key)), str(sent.run_id)
        await self._ask(lambda store: store.forget_sent(scope, mark, run_id))

    async def _ask(self, question: Callable[[BackgroundStore], _T]) -> _T:
        journal = self.background.journal
        return await in_thread(Kind.DATABASE, lambda: question(journal.background()), charged=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def joined(answer: CallToolResult) -> CallToolResult:
    """Return the answer of a call as one that joined it gets it; what asks a user first is left as it is."""
    structured: Mapping[str, object] | None = getattr(answer, "structured_content", None)
    if structured is None:
        return answer
    first, *others = answer.content
    text = TextContent(type="text", text=f"{cast('TextContent', first).text}\n{_JOINED}")
    return answer.model_copy(update={"structured_content": {**structured, "joined": True}, "content": [text, *others]})
