"""`sealab approvals`: the questions that background runs wait with, and their answers."""

from __future__ import annotations

from ..errors import UsageError
from ..identity import DEFAULT_TENANT
from ..runs.background.background import run_state
from ..runs.background.background_reports import pages_at
from .command import Audited, Group
from .opened import OpenedHome, opened_home
from .terminal import Here, Output

approvals = Group(of_tenant=True, opens=opened_home)
_LISTED_MAX = 1000


@approvals.command()
def list_(here: Here, home: OpenedHome, *, url: str | None = None) -> Output:
    """List the questions that runs wait with.

    url: add to each the link that answers it, at the server of this address, such as http://127.0.0.1:8000
    """
    store, tenant = home.journal.background(), here.home.tenant
    pages = None if url is None else pages_at(url) + ("" if tenant in {None, DEFAULT_TENANT} else f"{tenant}/")
    told: list[dict[str, str]] = []
    for state in map(run_state, store.waiting(most=_LISTED_MAX)):
        if (approval := state.approval) is not None:
            told.append({"id": approval.id, "run_id": approval.run_id, "question": approval.question})
            if pages is not None:
                told[-1]["link"] = pages + store.link(approval.run_id, approval.number, state.expires or 0)
    lines = (line for each in told for line in (each["id"], each["question"], each.get("link"), "") if line is not None)
    return Output({"count": len(told), "approvals": told}, lines if told else "No run waits for an answer.")


@approvals.command(audit=Audited("approval.answered", "approval"))
def approve(_here: Here, home: OpenedHome, approval: str) -> Output:
    """Say yes to a question, so that its run goes on.

    approval ID: the id of `sealab approvals list`
    """
    return _answered(home, approval, approves=True)


@approvals.command(audit=Audited("approval.answered", "approval"))
def deny(_here: Here, home: OpenedHome, approval: str) -> Output:
    """Say no to a question: its run goes on without that call.

    approval ID: the id of `sealab approvals list`
    """
    return _answered(home, approval, approves=False)


def _answered(home: OpenedHome, asked: str, *, approves: bool) -> Output:
    store = home.journal.background()
    run_id, _, number = asked.rpartition(".")
    if not run_id or not number.isdecimal():
        raise UsageError(f"{asked} is no id of a question. `sealab approvals list` shows those that wait.")
    approval = run_state(store.state(run_id)).approval
    taken = False
    if approval is not None and approval.id == asked:
        # Only the least of what a yes may cover, as on a terminal.
        choice = (approval.choices[0] if approval.choices else "") if approves else None
        taken = store.answer(run_id, int(number), {"question": approval.question, "choice": choice})
    if not taken:
        answered = run_state(store.state(run_id)).answer_to(int(number))
        why = "its run ended, or never asked it" if answered is None else f"it was {answered}"
        raise UsageError(f"The question {asked} does not wait: {why}. `sealab approvals list` shows those that wait.")
    said = "Approved" if approves else "Denied"
    return Output(
        {"id": asked, "approved": approves}, f"{said}. The run {run_id} goes on within 10 seconds, if a server runs."
    )
