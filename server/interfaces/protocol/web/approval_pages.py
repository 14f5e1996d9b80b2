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
from ....base.errors import UsageError
from ....base.settings import Switch
from ....governance.rights import CONSOLE
from ....use_cases.journal.transcript import moment
from ....use_cases.runs.background.background_reports import PATH
from ....use_cases.runs.hidden_transcripts import HIDDEN, hidden_question
from .link_pages import LinkKind, escaped, form_page, page, sent_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .....skills_db.journal.approval_links import ApprovalLink
    from ....governance.questions import Question
    from ....use_cases.runs.background.background_reports import Approval, RunState

_ANSWERS = frozenset({"approve", "deny"})
_FIELDS = frozenset({"answer", "covers", "reason"})
"""What a form has once at most; beside them it has the number of each call that is `refused`."""
_REASON_CHARS = 200
_PROGRAM_CHARS = 5_000
_SEVERAL = 2

_FORM = """\
<p>The run {run_id} waits for your answer. It asked at {since}.</p>
{question}
<form method="post">
{covers}
{refused}
{reason}
<button name="answer" value="approve">Approve</button>
<button name="answer" value="deny">Deny</button>
</form>
<p>Only the first answer counts.</p>
<details><summary>The program{hidden}</summary><pre>{program}</pre></details>
{others}
"""
_OTHERS = f'<p><a href="{CONSOLE}/approvals" rel="noreferrer">All questions that wait for you</a></p>'
_REASON = f"""\
<label>Why not? The program gets the reason. <input type="text" name="reason" maxlength="{_REASON_CHARS}"></label>"""


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
    fields = await sent_fields(receive)
    answers = [value for name, value in fields if name == "answer"]
    once = [name for name, _ in fields if name != "refused"]
    if len(answers) != 1 or answers[0] not in _ANSWERS or sorted(once) != sorted({*once} & _FIELDS):
        return page(400, "Not understood", "The form has to say answer=approve or answer=deny.")
    return await question.taken(fields, approves=answers == ["approve"])


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
            return self._said(200, "Answered", f"The question was {answered}.")
        approval = _waits(state, self._link)
        return self._gone() if approval is None or state is None else await self._form(approval, state.changed)

    async def taken(self, fields: Sequence[tuple[str, str]], *, approves: bool) -> HTMLResponse:
        """Answer a question, and return what counts then."""
        approval = _waits(await self._state(), self._link)
        counts = False
        if approval is not None:
            said, refused = dict(fields), " ".join(value for name, value in fields if name == "refused")
            try:
                reply = approval.reply(
                    approves=approves,
                    reason=said.get("reason", "")[:_REASON_CHARS],
                    refused=refused,
                    covers=said.get("covers") if approves else None,
                )
            except UsageError as error:
                return page(400, "Not understood", str(error))
            with suppress(JournalNotFound):
                counts = await self._app.background.answer(approval, reply, None, by=None)
        state = await self._state()
        answered = state.answer_to(self._link.number) if state else None
        if answered is None:
            return self._gone()
        if counts:
            return self._said(200, "Answered", f"The question was {answered}.")
        return self._said(409, "Answered before", f"The question was {answered}, so this answer changes nothing.")

    def _said(self, status: int, title: str, sentence: str) -> HTMLResponse:
        return form_page(title, f"<p>{escaped(sentence)}</p>{self._others()}", status=status)

    def _gone(self) -> HTMLResponse:
        return self._said(410, "Ended", "Nothing waits at this link any more: its time is over, or its run has ended.")

    def _others(self) -> str:
        """Return a link to the page of all open questions, which needs a sign-in and gets no `Referer` of this page."""
        return _OTHERS if self._app.settings.console is Switch.ON else ""

    async def _state(self) -> RunState | None:
        """Return how far the run of a link is, unless the link has ended."""
        if time.time() >= self._link.expires:
            return None
        with suppress(JournalNotFound):
            return await self._app.background.queued_state(self._link.run_id, None)
        return None

    async def _form(self, approval: Approval, since: float) -> HTMLResponse:
        app, scope = self._app, approval.scope
        asked = await hidden_question(app.privacy, scope, approval.asked)
        code = await app.background.program(approval.run_id)
        program = code if app.privacy.is_off else await app.privacy.hide_text(scope, code)
        choices = "".join(f"<option>{escaped(each)}</option>" for each in asked.choices)
        content = _FORM.format(
            run_id=escaped(approval.run_id),
            since=escaped(moment(since)),
            question=_question(asked),
            covers=f'<label>A yes covers <select name="covers">{choices}</select></label>' if choices else "",
            reason=_REASON if asked.calls else "",
            refused=_refusing(asked),
            program=escaped(program if len(program) <= _PROGRAM_CHARS else f"{program[:_PROGRAM_CHARS]}…"),
            hidden="" if program == code else HIDDEN,
            others=self._others(),
        )
        return form_page("A run asks", content)


def _question(question: Question) -> str:
    """Return a question as HTML: its lines, what names a source marked."""
    clauses = {clause for call in question.calls for clause in call.clauses}
    lines = (
        f'<span class="warns">{escaped(line)}</span>' if line.strip() in clauses else escaped(line)
        for line in question.text.split("\n")
    )
    return f"<pre>{'<br>'.join(lines)}</pre>"


def _refusing(question: Question) -> str:
    """Return a box for each call that may be refused alone, where there are several."""
    if len(question.calls) < _SEVERAL:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" name="refused" value="{number}"> {number}. {escaped(str(each))}</label><br>'
        for number, each in enumerate(question.calls, 1)
    )
    return f"<fieldset><legend>No to some of them? A tick refuses that call.</legend>{boxes}</fieldset>"


def _waits(state: RunState | None, link: ApprovalLink) -> Approval | None:
    """Return the question of a link, if it waits for an answer."""
    approval = None if state is None else state.approval
    return approval if approval is not None and approval.number == link.number else None


PAGES = LinkKind(PATH, _is_given_out, _response, "The question cannot be read now. Try again in a moment.")
