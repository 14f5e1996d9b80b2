"""What is done from the console: each act takes a form, and leaves a line in the audit log."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from ....sandbox.job import Json
from ....skills_db.tokens import TokenStore
from ...base.errors import RequestRefused, UsageError
from ...base.identity import DEFAULT_TENANT, Right
from ...governance.audit.trail import AuditKind
from ...governance.rights import TOOLS
from ...use_cases.runs import replay as replaying
from ...use_cases.runs.background.background_listing import check_replayable
from ...use_cases.runs.request import CodeRequest
from ...use_cases.skills import use_cases as skills
from ...use_cases.skills.schedules import ScheduleRequest
from ..commands.limits import limits
from ..commands.opened import home_of_run, opened_operators
from ..commands.runs import runs
from ..commands.servers import servers
from ..commands.tokens import token_json
from .pages import Data, run_with_account
from .questions import answered
from .views import View

_REVEALED = ("code", "reason", "context_vars", "arguments", "calls", "end")
_NOTED_CHARS_MAX = 200
_TRY = "result = await call_tool(tool, arguments)"


@dataclass(frozen=True, slots=True)
class Act:
    """One act: the form that does it, the scopes all of which it takes, and what does it; then a page is shown.

    What it does returns JSON, and where the browser goes then, or None for a page that shows what was returned.
    """

    path: re.Pattern[str]
    needs: tuple[Right, ...]
    does: Callable[[View], Awaitable[tuple[Data, str | None]]]
    of_operator: bool = False
    template: str = "act.html"
    kind: AuditKind = AuditKind.ADMINISTERED

    @property
    def name(self) -> str:
        """What the audit log calls it."""
        return self.does.__name__.strip("_").replace("_", " ")

    def is_for(self, view: View) -> bool:
        """Return whether its viewer may do it."""
        return view.viewer.is_operator if self.of_operator else all(map(view.viewer.identity.may, self.needs))


async def _runs_cancel(view: View) -> tuple[Data, str | None]:
    run_id = view.named["run"]

    def cancelled() -> Data:
        here = view.here()
        view.reach(here, run_id)
        return cast("Data", runs.commands["cancel"].function(here, run_id).data)

    return await asyncio.to_thread(cancelled), f"runs/{run_id}"


async def _runs_replay(view: View) -> tuple[Data, str | None]:
    """Run a program again from its journal, as it was or edited; what was edited may call tools anew."""
    run_id, code = view.named["run"], view.form.get("code")

    def checked() -> str:
        here = view.here()
        tenant = view.reach(here, run_id)
        with home_of_run(here, run_id) as home:
            check_replayable(home.journal.store(), home.journal.background(), run_id)
        return tenant

    async with view.using(await asyncio.to_thread(checked)) as served:
        app = served.app
        if code is not None:
            if app is not view.app:
                raise UsageError(f"The run {run_id} is of another tenant. Edit it there, as one of its people.")
            text = code.replace("\r\n", "\n")
            report, answers = await replaying.replay_edited(app.executor, run_id, text, caller=view.viewer.caller)
            summary = {"report": report, "answered": answers.answered, "made": answers.sent}
            return {"run_id": run_id, "edited": True, **summary}, None
        replayed = await replaying.replay(app.pools, app.journal, run_id)
        difference = replayed.difference
        if difference is not None:
            difference = await app.privacy.hide_text(view.viewer.scope or view.viewer.caller.scope, difference)
        summary = {"same": difference is None, "answered": replayed.answered, "difference": difference}
        return {"run_id": replayed.run_id, **summary}, None


async def _runs_reveal(view: View) -> tuple[Data, str | None]:
    """Show a run with values in for its tokens, as far as the policy lets the viewer restore them."""
    run_id = view.named["run"]
    transcript = await view.listed(partial(run_with_account, view))
    shown = cast("Json", {name: transcript.get(name) for name in _REVEALED})
    async with view.using(str(transcript["tenant"])) as served:
        privacy, store = served.app.privacy, served.app.journal.store()
        scope = (await asyncio.to_thread(store.journal, run_id)).scope
        caller = replace(view.viewer.caller, scope=scope)
        restored = await privacy.restored(caller, shown, destination="terminal", run=run_id)
    return {**transcript, **cast("Data", restored), "revealed": True}, None


async def _runs_save(view: View) -> tuple[Data, str | None]:
    """Save the code of a run as a skill of the viewer's tenant."""
    run_id, name = view.named["run"], view.form.get("name", "").strip()
    tenant = await view.listed(lambda here: view.reach(here, run_id))
    if tenant != view.app.home.tenant:
        raise UsageError(f"The run {run_id} is of the tenant {tenant}. Save it there, as one of its people.")
    caller = view.viewer.caller
    request = skills.SaveRequest(name, view.form.get("parameters", ""), from_run=run_id, caller=caller)
    saved = await skills.save(view.app.skills, request)
    return cast("Data", saved), f"skills/{saved['name']}"


async def _skills_archive(view: View) -> tuple[Data, str | None]:
    return await _archived(view, archived=True), "review"


async def _skills_restore(view: View) -> tuple[Data, str | None]:
    return await _archived(view, archived=False), "review"


async def _archived(view: View, *, archived: bool) -> Data:
    name = view.named["skill"]
    await skills.archive(view.app.skills, name, archived=archived, caller=view.viewer.caller)
    return {"name": name, "archived": archived}


async def _schedules_add(view: View) -> tuple[Data, str | None]:
    """Say yes to the version of a schedule's skill that the page showed, and have a paused one go on."""
    skill, version = view.form.get("skill", ""), view.form.get("version", "")
    if not (skill and re.fullmatch("[0-9]{1,9}", version)):
        raise UsageError("The form names no skill and version to say yes to. Open the page again.")
    request = ScheduleRequest(view.named["schedule"], seen=(skill, int(version)), caller=view.viewer.caller)
    return cast("Data", await view.app.schedules.add(request)), "schedules"


async def _schedules_run(view: View) -> tuple[Data, str | None]:
    run_id = await view.app.schedules.run(view.named["schedule"], view.viewer.caller)
    return {"run_id": run_id}, f"runs/{run_id}"


async def _schedules_remove(view: View) -> tuple[Data, str | None]:
    return cast("Data", await view.app.schedules.remove(view.named["schedule"], view.viewer.caller)), "schedules"


async def _approvals_answer(view: View) -> tuple[Data, str | None]:
    answer = await view.listed(lambda here: answered(view, here, view.named["approval"]))
    for each in (view.app, view.operators):
        each.background.work.wake()
    return cast("Data", answer), "approvals"


async def _tools_try(view: View) -> tuple[Data, str | None]:
    """Call a tool as a background run does: under the policy, and where a user has to approve, with a question."""
    given = view.form.get("arguments", "").strip() or "{}"
    try:
        arguments = json.loads(given)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise UsageError('The arguments are not a JSON object. Give one such as {"name": "value"}.')
    variables: dict[str, Json] = {"tool": view.named["tool"], "arguments": arguments}
    state = await view.app.background.submit(CodeRequest(_TRY, context_vars=variables, caller=view.viewer.caller))
    return {"run_id": state.run_id, "status": state.status}, f"runs/{state.run_id}"


async def _servers_test(view: View) -> tuple[Data, str | None]:
    return await _tested(view, accept=False), None


async def _servers_accept(view: View) -> tuple[Data, str | None]:
    return await _tested(view, accept=True), None


async def _tested(view: View, *, accept: bool) -> Data:
    name = view.named["server"]
    test = servers.commands["test"].function
    return await view.listed(lambda here: cast("Data", test(here, name, accept=accept, no_sign_in=True).data))


async def _servers_remove(view: View) -> tuple[Data, str | None]:
    remove = servers.commands["remove"].function
    return await view.listed(lambda here: cast("Data", remove(here, view.named["server"]).data)), "servers"


async def _tokens_revoke(view: View) -> tuple[Data, str | None]:
    def revoked() -> Data:
        store = TokenStore(view.operators.database())
        tenant = None if view.viewer.is_operator else view.viewer.identity.tenant
        found = next((each for each in store.listed(tenant) if each.id == view.named["token"]), None)
        if found is None:
            raise RequestRefused(f"There is no token {view.named['token']}. The list shows those that there are.")
        store.revoke(found.id, time.time())
        return token_json(next(each for each in store.listed(found.tenant) if each.id == found.id))

    return await asyncio.to_thread(revoked), "tokens"


async def _limits_set(view: View) -> tuple[Data, str | None]:
    form = {name: each.strip() for name, each in view.form.items()}

    def put() -> Data:
        here = view.here()
        with opened_operators(here) as database:
            how = {"tenant": form.get("tenant") or DEFAULT_TENANT, "who": form.get("who") or None}
            put_it = limits.commands["set"].function
            return cast("Data", put_it(here, database, form.get("name", ""), form.get("value", ""), **how).data)

    return await asyncio.to_thread(put), "limits"


def _act(path: str, needs: tuple[Right, ...], does: Callable[[View], Awaitable[tuple[Data, str | None]]]) -> Act:
    return Act(re.compile(path), needs, does)


_RUN = "runs/(?P<run>[0-9a-z]{1,64})"
_SERVER = "servers/(?P<server>[^/]{1,200})"
_SKILL = "skills/(?P<skill>[^/]{1,200})"
_SCHEDULE = r"schedules/(?P<schedule>[\w.-]{1,64})"
_of_operator = partial(Act, needs=(Right.ADMIN,), of_operator=True)
ACTS = (
    _act(f"{_RUN}/cancel", (Right.RUN,), _runs_cancel),
    _act(f"{_RUN}/replay", (Right.RUN,), _runs_replay),
    Act(re.compile(f"{_RUN}/reveal"), (Right.RUN, Right.PRIVACY_RESTORE), _runs_reveal, template="run.html"),
    _act(f"{_RUN}/save", (Right.RUN, Right.SKILLS_WRITE), _runs_save),
    _act(f"{_SKILL}/archive", TOOLS["review_skills"], _skills_archive),
    _act(f"{_SKILL}/restore", TOOLS["review_skills"], _skills_restore),
    _act(f"{_SCHEDULE}/add", TOOLS["add_schedule"], _schedules_add),
    _act(f"{_SCHEDULE}/run", (*TOOLS["add_schedule"], Right.RUN), _schedules_run),
    _act(f"{_SCHEDULE}/remove", TOOLS["remove_schedule"], _schedules_remove),
    Act(
        re.compile(r"approvals/(?P<approval>[0-9a-z]{1,64}\.[0-9]{1,9})"),
        (Right.APPROVE,),
        _approvals_answer,
        kind=AuditKind.APPROVAL_ANSWERED,
    ),
    _act(r"tools/(?P<tool>[^/]{1,300})/try", (Right.RUN, Right.TOOLS_READ), _tools_try),
    _of_operator(re.compile(f"{_SERVER}/test"), does=_servers_test),
    _of_operator(re.compile(f"{_SERVER}/accept"), does=_servers_accept),
    _of_operator(re.compile(f"{_SERVER}/remove"), does=_servers_remove),
    Act(
        re.compile("tokens/(?P<token>tok_[0-9a-f]{1,64})/revoke"),
        (Right.ADMIN,),
        _tokens_revoke,
        kind=AuditKind.TOKEN_REVOKED,
    ),
    _of_operator(re.compile("limits/set"), does=_limits_set, kind=AuditKind.LIMIT_SET),
)
"""All acts."""


def leave_line(act: Act, view: View, outcome: str) -> None:
    """Note an act in the audit log."""
    named: Mapping[str, str] = view.named
    details = {name: each for name, each in named.items() if name in {"server", "token", "schedule"}} | {
        "command": f"console {act.name}"
    }
    if act.kind is AuditKind.LIMIT_SET:
        tenant, who, name, value = (
            view.form.get(each, "")[:_NOTED_CHARS_MAX] for each in ("tenant", "who", "name", "value")
        )
        details |= {"of": "/".join(filter(None, (tenant, who))), "limit": name, "value": value}
    run = named.get("run") or named.get("approval", "").partition(".")[0]
    decision = view.form.get("answer", "") if act.kind is AuditKind.APPROVAL_ANSWERED else ""
    view.operators.audit.acted(
        act.kind,
        view.viewer.identity,
        run=run,
        tool=named.get("tool", ""),
        decision=decision,
        outcome=outcome,
        details=details,
    )
