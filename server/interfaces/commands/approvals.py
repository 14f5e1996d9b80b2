"""`sealab approvals`: the questions that background runs wait with, and their answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, cast

from ....sandbox.job import Json
from ....skills_db.errors import SkillsDbError
from ....skills_db.journal.records import first_line
from ...base.errors import UsageError
from ...base.identity import DEFAULT_TENANT
from ...base.terminal_escaping import one_line
from ...governance.scopes import principal_of
from ...use_cases.journal.transcript import Transcript, elapsed_ms, moment
from ...use_cases.runs.background.background_listing import ListedRun
from ...use_cases.runs.hidden_transcripts import HIDDEN, hidden_list
from .command import AuditedAs, Group
from .opened import OpenedHome, home_of_run, opened_homes
from .terminal import Here, Output, moment_of

approvals = Group(of_all_tenants=True)
_LISTED_MAX = 1000


@approvals.command()
def list_(
    here: Here,
    *,
    who: str | None = None,
    tool: str | None = None,
    outcome: Literal["waiting", "approved", "denied"] | None = None,
    failed: bool = False,
    since: str | None = None,
    url: str | None = None,
) -> Output:
    """List the questions that runs wait with, or those that were answered.

    who P: those for this principal
    tool: those about this tool, such as crm.send; of what was answered that is not kept
    outcome: those that wait, as without this, or were answered so
    failed: those that were denied
    since TIME: those that were asked or answered since: 30m, 12h, 7d or 2026-11-25T14:00
    url: add to each the link that answers it, at the server of this address, such as http://127.0.0.1:8000
    """
    if failed and outcome not in {None, "denied"}:
        raise UsageError(f"--failed lists what was denied, and not what is {outcome}. Leave one of the two out.")
    wanted = "denied" if failed else outcome or "waiting"
    began = 0.0 if since is None else moment_of(since, "--since")
    pages = None
    if url is not None:
        from ...use_cases.runs.background.background_reports import pages_at

        pages = pages_at(url)
    listed = listed_approvals(here, wanted, who=who, tool=tool, since=began, pages=pages)
    none = "No run waits for an answer." if wanted == "waiting" else "There are no questions that fit."
    return Output({"count": len(listed), "approvals": listed}, approval_lines(listed) if listed else none)


def listed_approvals(
    here: Here,
    wanted: str = "waiting",
    *,
    who: str | None = None,
    tool: str | None = None,
    since: float = 0.0,
    pages: str | None = None,
) -> list[Transcript]:
    """Return what a list says of the questions of the homes that a command looks at; `pages` is where links begin."""
    names = None if tool is None else re.compile(rf"(?<![\w.]){re.escape(tool)}(?=[(,])")

    def fits(asked: ListedRun) -> bool:
        row = asked.summary
        names_it = names is None or names.search(str(row["question"])) is not None
        return asked.began >= since and who in {None, row["who"]} and names_it

    return [row for home in opened_homes(here) for row in approvals_in(home, wanted, fits, pages)]


def approvals_in(
    home: OpenedHome,
    wanted: str = "waiting",
    fits: Callable[[ListedRun], bool] = lambda _asked: True,
    pages: str | None = None,
) -> list[Transcript]:
    """Return what a list says of the questions of one home."""
    asked = _waiting(home, pages) if wanted == "waiting" else _answered_ones(home, wanted)
    found = [*filter(fits, asked)]
    hidden = asyncio.run(hidden_list(home.privacy, found)) if found else []
    return [{"tenant": home.home.tenant, **each} for each in hidden]


def approval_lines(listed: Sequence[Transcript]) -> Iterator[str]:
    """Give the lines of a list of questions."""
    for each in listed:
        who = f"{each['tenant']}/{each['who']}"
        yield one_line(f"{each['id']}  {each['at']}  {each['outcome']}  {each['elapsed_ms']} ms  {who}")
        yield from (str(each[name]) for name in ("code", "question", "link") if each.get(name))
        yield ""


@approvals.command()
def show(here: Here, approval: str) -> Output:
    """Show a question with its program.

    approval ID: the id of `sealab approvals list`
    """
    run_id, _ = _read_id(approval)
    with home_of_run(here, run_id) as home:
        row = next((each for each in approvals_in(home) if each["id"] == approval), None)
        if row is None:
            raise UsageError(_why_answered(home, approval))
        scope, code = _program(home, run_id)
        program = code if home.privacy.is_off else asyncio.run(home.privacy.hide_text(scope, code))
        lines = [*approval_lines([row | {"code": ""}])][:-1]
        others = "".join(f', or with --covers "{each}"' for each in cast("list[str]", row["choices"])[1:])
        if "\n2. " in str(row["question"]):
            others += ", or with --refuse 2 to say no to number 2 alone"
        how = f"Answer with `sealab approvals approve {approval}`{others}; or `sealab approvals deny {approval}`."
        heading = f"The program{'' if program == code else HIDDEN}:"
        return Output(row | {"program": program}, [*lines, how, "", heading, program])


def _waiting(home: OpenedHome, pages: str | None) -> Iterator[ListedRun]:
    store, tenant = home.journal.background(), home.home.tenant
    waiting = store.waiting(most=_LISTED_MAX)
    if not waiting:
        return
    from ...use_cases.runs.background.background_reports import run_state  # it brings questions and all that runs code

    for state in map(run_state, waiting):
        if (approval := state.approval) is None:
            continue
        _, program = _program(home, state.run_id)
        row: Transcript = {
            "id": approval.id,
            "run_id": approval.run_id,
            "outcome": "waiting",
            "who": principal_of(approval.scope),
            "code": first_line(program),
            "question": approval.question,
            "calls": cast("Json", approval.asked.as_json().get("calls", [])),
            "choices": [*approval.asked.choices],
            "at": moment(state.changed),
            "elapsed_ms": elapsed_ms(state.changed, None),
        }
        if pages is not None:
            place = "" if tenant == DEFAULT_TENANT else f"{tenant}/"
            row["link"] = f"{pages}{place}{store.link(approval.run_id, approval.number, state.expires or 0)}"
        yield ListedRun(state.changed, approval.scope, row)


def _program(home: OpenedHome, run_id: str) -> tuple[str, str]:
    """Return whose a background run is and its program; of one that has ended, as its journal says."""
    request = home.journal.background().request(run_id)
    if request is None:
        try:
            journal = home.journal.store().journal(run_id)
        except SkillsDbError:
            return "", ""
        request = {"scope": journal.scope, **journal.header}
    return str(request.get("scope", "")), str(request.get("code", ""))


def _answered_ones(home: OpenedHome, wanted: str) -> Iterator[ListedRun]:
    """Give the answers; what was asked is kept in the journal of the run."""
    store = home.journal.background()
    for state in store.waiting(most=_LISTED_MAX, answered=True):
        scope, program = _program(home, state.run_id)
        for answer in state.answers:
            outcome = "denied" if answer.choice is None else "approved"
            if outcome == wanted:
                row: Transcript = {
                    "id": f"{state.run_id}.{answer.number}",
                    "run_id": state.run_id,
                    "outcome": outcome,
                    "who": principal_of(scope),
                    "code": first_line(program),
                    "question": None,
                    "at": moment(answer.at),
                    "elapsed_ms": elapsed_ms(state.queued, answer.at),
                }
                yield ListedRun(answer.at, scope, row)


@approvals.command(audit=AuditedAs("approval.answered", "approval"))
def approve(here: Here, approval: str, *, refuse: str = "", covers: str | None = None, reason: str = "") -> Output:
    """Approve a question, so that its run goes on.

    approval ID: the id of `sealab approvals list`
    refuse NUMBERS: say no to the calls of these numbers in the question, such as 2,4
    covers: what the yes covers, in the words of the question's choices; without it the least
    reason TEXT: why some calls are refused, for the program
    """
    return _answered(here, approval, approves=True, refuse=refuse, covers=covers, reason=reason)


@approvals.command(audit=AuditedAs("approval.answered", "approval"))
def deny(here: Here, approval: str, *, reason: str = "") -> Output:
    """Deny a question: its run goes on without that call.

    approval ID: the id of `sealab approvals list`
    reason TEXT: why, for the program
    """
    return _answered(here, approval, approves=False, reason=reason)


def _read_id(asked: str) -> tuple[str, int]:
    run_id, _, number = asked.rpartition(".")
    if not run_id or not number.isdecimal():
        raise UsageError(f"{asked} is no id of a question. `sealab approvals list` shows those that wait.")
    return run_id, int(number)


def _answered(
    here: Here, asked: str, *, approves: bool, reason: str, refuse: str = "", covers: str | None = None
) -> Output:
    from ...use_cases.runs.background.background_reports import answer_json, run_state

    run_id, number = _read_id(asked)
    with home_of_run(here, run_id) as home:
        store = home.journal.background()
        approval = run_state(store.state(run_id)).approval
        taken = False
        if approval is not None and approval.id == asked:
            reply = approval.reply(approves=approves, reason=reason, refused=refuse, covers=covers)
            if approves and reply.choice is None:
                raise UsageError(f"--refuse {refuse} names no numbers of calls. Give some, such as 2,4.")
            taken = store.answer(run_id, number, answer_json(approval.asked, reply))
        if not taken:
            raise UsageError(_why_answered(home, asked))
    said = "Approved" if approves else "Denied"
    return Output(
        {"id": asked, "approved": approves}, f"{said}. The run {run_id} goes on within 10 seconds, if a server runs."
    )


def _why_answered(home: OpenedHome, asked: str) -> str:
    from ...use_cases.runs.background.background_reports import run_state

    run_id, number = _read_id(asked)
    answered = run_state(home.journal.background().state(run_id)).answer_to(number)
    why = "its run ended, or never asked it" if answered is None else f"it was {answered}"
    return f"The question {asked} does not wait: {why}. `sealab approvals list` shows those that wait."
