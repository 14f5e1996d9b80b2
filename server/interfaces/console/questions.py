"""The questions that runs wait with, as the console lists and answers them: all that it knows of approvals."""

from __future__ import annotations

import inspect

from ....sandbox.job import Json
from ...base.errors import RightMissing
from ...base.identity import Right
from ...use_cases.journal.transcript import Transcript
from ...use_cases.runs.background.background_listing import ListedRun
from ..commands.approvals import approvals, approvals_in
from ..commands.opened import HereInServer, opened_homes
from .views import View, Viewer

TAKES_REASON = "reason" in inspect.signature(approvals.commands["deny"].function).parameters
"""Whether a no can say why, and be to some of the calls."""


def questions(here: HereInServer, viewer: Viewer, outcome: str = "waiting") -> list[Transcript]:
    """Return the questions that a viewer may see: their own, or with the right to answer all of the tenant. Blocks."""
    whose = None if viewer.may(Right.APPROVE, Right.ADMIN) else viewer.scope

    def fits(asked: ListedRun) -> bool:
        return whose in {None, asked.scope}

    return [each for home in opened_homes(here) for each in approvals_in(home, outcome, fits)]


def answered(view: View, here: HereInServer, asked: str) -> Json:
    """Answer a question of the viewer's tenants with the form's `answer`, `approve` or else a no. Blocks.

    Raises `RightMissing` without the right, and `UsageError` where the question does not wait.
    """
    if not view.viewer.may(Right.APPROVE):
        raise RightMissing("This needs the scope approve, which the token does not have. Use one that was given it.")
    approves = view.form.get("answer") == "approve"
    named = (*(("refuse",) if approves else ()), "reason") if TAKES_REASON else ()
    how = {name: view.form.get(name, "").strip() for name in named}
    answer: Json = approvals.commands["approve" if approves else "deny"].function(here, asked, **how).data
    return answer
