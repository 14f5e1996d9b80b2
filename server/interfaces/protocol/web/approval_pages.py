"""The pages at which a user answers what a parked run waits for, each behind a signed link.

A security boundary: whoever has the link may answer, and nobody else. A page is only looked at with GET, which mail
programs and chats do by themselves; POST answers. `NamedHosts` refuses what the page of another site sends.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope

from .....skills_db.errors import JournalNotFound
from .....skills_db.journal.approval_links import judged
from .....skills_db.journal.sealing import JournalKeys
from ....app import App
from ....use_cases.runs.background.background_reports import PATH
from .link_pages import Pages, escaped, form_page, page, sent_answer

if TYPE_CHECKING:
    from .....skills_db.journal.approval_links import ApprovalLink
    from ....use_cases.runs.background.background_reports import Approval, RunState

_ANSWERS = frozenset({"approve", "deny"})

_FORM = """\
<p>The run {run_id} waits for your answer.</p>
<pre>{question}</pre>
<p>A yes covers: {covers}. Of several answers the first counts.</p>
<form method="post">
<button name="answer" value="approve">Approve</button>
<button name="answer" value="deny">Deny</button>
</form>
"""


def _is_given_out(key: bytes, token: str, _scope: Scope) -> bool:
    return judged(JournalKeys(key), token) is not None


async def _response(app: App | None, token: str, scope: Scope, receive: Receive) -> HTMLResponse:
    if scope["method"] not in {"GET", "HEAD", "POST"}:
        sentence = "A page is read with GET, and answered with POST."
        return page(405, "Not allowed", sentence, {"Allow": "GET, HEAD, POST"})
    link = None if app is None else await app.background.linked(token)
    if app is None or link is None:
        return page(404, "Not valid", "This link is not valid: use it whole, or ask for a new one.")
    question = _LinkedQuestion(app, link)
    if scope["method"] != "POST":
        return await question.shown()
    answer = await sent_answer(receive)
    if answer not in _ANSWERS:
        return page(400, "Not understood", "The form has to say answer=approve or answer=deny.")
    return await question.taken(approves=answer == "approve")


class _LinkedQuestion:
    """What one link leads to."""

    def __init__(self, app: App, link: ApprovalLink) -> None:
        self._app = app
        self._link = link

    async def shown(self) -> HTMLResponse:
        """Return the page of a question, which answers nothing."""
        state = await self._state()
        answered = state.answer_to(self._link.number) if state else None
        if answered is not None:
            return page(200, "Answered", f"The question was {answered}.")
        approval = _waits(state, self._link)
        return _GONE if approval is None else await self._form(approval)

    async def taken(self, *, approves: bool) -> HTMLResponse:
        """Answer a question, and return what counts then."""
        approval = _waits(await self._state(), self._link)
        counts = False
        if approval is not None:
            # Only the least of what a yes may cover, as on a terminal.
            choice = (approval.choices[0] if approval.choices else "") if approves else None
            with suppress(JournalNotFound):
                counts = await self._app.background.answer(approval, choice, None, by=None)
        state = await self._state()
        answered = state.answer_to(self._link.number) if state else None
        if answered is None:
            return _GONE
        if counts:
            return page(200, "Answered", f"The question was {answered}.")
        return page(409, "Answered before", f"The question was {answered}, so this answer changes nothing.")

    async def _state(self) -> RunState | None:
        """Return how far the run of a link is, unless the link has ended."""
        if time.time() >= self._link.expires:
            return None
        with suppress(JournalNotFound):
            return await self._app.background.queued_state(self._link.run_id, None)
        return None

    async def _form(self, approval: Approval) -> HTMLResponse:
        hidden = approval.question
        if not self._app.privacy.is_off:
            hidden = await self._app.privacy.hide_text(approval.scope, approval.question)
        content = _FORM.format(
            run_id=escaped(approval.run_id),
            question=escaped(hidden),
            covers=escaped(approval.choices[0] if approval.choices else "this call"),
        )
        return form_page("A run asks", content)


def _waits(state: RunState | None, link: ApprovalLink) -> Approval | None:
    """Return the question of a link, if it waits for an answer."""
    approval = None if state is None else state.approval
    return approval if approval is not None and approval.number == link.number else None


_GONE = page(410, "Ended", "Nothing waits at this link any more: its time is over, or its run has ended.")
PAGES = Pages(PATH, _is_given_out, _response, "The question cannot be read now. Try again in a moment.")
