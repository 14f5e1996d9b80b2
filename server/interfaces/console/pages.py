"""The pages of the console: what each shows, which commands list too, and the scopes that it takes."""

from __future__ import annotations

import asyncio
import difflib
import math
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast, get_args

from ....sandbox.job import Json
from ....skills_db.audit.audit_store import LineFilter
from ....skills_db.tenants.tenant_store import TenantStore
from ....skills_db.tokens import TokenStore
from ...base.errors import RequestRefused, UsageError
from ...base.identity import DEFAULT_TENANT, Right
from ...base.settings import shown_settings, sources_of
from ...governance.audit.audit_log import audit_store
from ...governance.rights import TOOLS
from ...governance.shares.limits import KINDS
from ...use_cases.runs.background.background_listing import STATUSES, RunFilter
from ...use_cases.skills import use_cases as skills
from ...use_cases.skills.review import review
from ...use_cases.upstream_tools import discovery
from ..commands.audit import line_json
from ..commands.limits import limits
from ..commands.opened import HereInServer, home_of_run, opened_operators
from ..commands.pii import vault_json
from ..commands.runs import hidden_run, hidden_runs
from ..commands.servers import servers
from ..commands.stats import By, stats
from ..commands.status import now
from ..commands.tenants import tenant_json
from ..commands.terminal import moment_of
from ..commands.tokens import token_json
from ..protocol.statistics_report import LimitsReport
from .questions import questions
from .views import View

Data = Mapping[str, object]
_LINES = 100
_MILLISECOND = 0.001
"""The precision of start times in lists. A run may be listed twice; none is left out."""
_SEEN = (Right.RUN, Right.APPROVE, Right.ADMIN)
_OF_SERVER = ("disk", "shares")


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where it is, its template and title, who may see it, and what makes what it shows.

    It takes any of `needs`; one `of_operator` the operator's right. What has a title in the menu is
    `listed` there.
    """

    path: re.Pattern[str]
    title: str
    template: str
    needs: tuple[Right, ...]
    shows: Callable[[View], Awaitable[Data]]
    of_operator: bool = False
    menu: str = ""

    def is_for(self, view: View) -> bool:
        """Return whether its viewer may see it."""
        if self.of_operator:
            return view.viewer.is_operator
        return any(map(view.viewer.identity.may, self.needs))


async def _now(view: View) -> Data:
    scope = view.viewer.scope
    overview = await view.listed(lambda here: now(here, scope=scope))
    return (
        overview
        if view.viewer.is_operator
        else {name: each for name, each in overview.items() if name not in _OF_SERVER}
    )


async def _runs(view: View) -> Data:
    wanted = wanted_runs(view)
    listed = await view.listed(lambda here: hidden_runs(here, wanted))
    return {"count": len(listed), "runs": listed}


def wanted_runs(view: View) -> RunFilter:
    """Return which runs a query asks for. Raises `UsageError`."""
    query = view.query
    outcome, limit = query.get("outcome") or None, query.get("limit") or "50"
    if outcome not in (None, *STATUSES):
        raise UsageError(f"outcome cannot be {outcome}. Give one of {', '.join(STATUSES)}.")
    if not limit.isdecimal() or not 0 < int(limit) <= _LINES * 10:
        raise UsageError(f"limit cannot be {limit}. Give a number from 1 to {_LINES * 10}.")
    since, before = query.get("since") or None, query.get("before") or None
    return RunFilter(
        query.get("who") or None,
        query.get("tool") or None,
        outcome,
        failed=bool(query.get("failed")),
        since=0.0 if since is None else moment_of(since, "since"),
        limit=int(limit),
        scope=view.viewer.scope,
        until=math.inf if before is None else moment_of(before, "before") + _MILLISECOND,
    )


async def _run(view: View) -> Data:
    return await view.listed(partial(run_with_account, view))


def run_with_account(view: View, here: HereInServer) -> Data:
    """Return what a run did, and each line of it in the audit log. Blocks. Raises `JournalNotFound`."""
    run_id = view.named["run"]
    tenant = view.reach(here, run_id)
    wanted = LineFilter(tenant=tenant, run=run_id, limit=_LINES * 10)
    with home_of_run(here, run_id) as home:
        try:
            transcript: Mapping[str, object] = hidden_run(home, run_id)
        except RequestRefused as error:  # it waits, and has no journal yet
            listed = hidden_runs(here, RunFilter(unended=True, scope=view.viewer.scope, limit=_LINES * 10))
            transcript = next((each for each in listed if each["run_id"] == run_id), {"run_id": run_id})
            transcript = {**transcript, "incomplete": str(error)}
    account = _lines_of(view, wanted)
    waits = [each for each in questions(here, view.viewer) if each["run_id"] == run_id]
    return {**transcript, "approvals": waits, "ways": _ways(account), "account": account}


def _ways(account: Sequence[Mapping[str, object]]) -> dict[str, dict[str, int]]:
    """Return how many values of which types were hidden, and went which way, by lines of the audit log."""
    ways: dict[str, dict[str, int]] = {}
    for line in account:
        if str(line["event"]).startswith("privacy."):
            details = cast("Mapping[str, int]", line["details"])
            way = " ".join(map(str, filter(None, (line["event"], details.get("to"), line["tool"], line["decision"]))))
            counts = ways.setdefault(way.removeprefix("privacy."), {})
            for name, count in details.items():
                if name != "to":
                    counts[name] = counts.get(name, 0) + count
    return ways


def _lines_of(view: View, wanted: LineFilter) -> list[dict[str, object]]:
    app = view.operators
    return [line_json(line) for line in audit_store(app.database, app.privacy.key)().lines(wanted)]


async def _approvals(view: View) -> Data:
    outcome = view.query.get("outcome") or "waiting"
    if outcome not in {"waiting", "approved", "denied"}:
        raise UsageError(f"outcome cannot be {outcome}. Give one of waiting, approved, denied.")
    listed = await view.listed(lambda here: questions(here, view.viewer, outcome))
    return {"count": len(listed), "approvals": listed}


async def _tools(view: View) -> Data:
    words = view.query.get("query") or ""
    registry, identity = view.app.registry, view.viewer.identity
    if words:
        return await discovery.search(registry, identity, words, limit=20, detail_level="signature")
    return {"query": "", **await discovery.categories(registry, identity)}


async def _tool(view: View) -> Data:
    return await discovery.definition(view.app.registry, view.viewer.identity, view.named["tool"])


async def _servers(view: View) -> Data:
    return cast("Data", await view.listed(lambda here: servers.commands["list"].function(here).data))


async def _skills(view: View) -> Data:
    return cast("Data", await skills.listed(view.app.skills, view.query.get("query") or None, None, 200))


_DIFFERENCE_LINES_MAX = 1_000
"""The time that difflib takes may grow by the square of this."""


async def _skill(view: View) -> Data:
    name = view.named["skill"]
    version, before = _number(view, "version"), _number(view, "before")
    loaded = await skills.load(view.app.skills, name, version)
    history = await view.app.skills.service.ask(lambda store: store.versions(name))
    versions: list[Json] = [
        {"version": each.version, "created_at": each.created_at.isoformat(), "deleted": each.deleted_at is not None}
        for each in history
    ]
    skill: dict[str, object] = {**loaded, "versions": versions}
    if before is not None:
        earlier = await skills.load(view.app.skills, name, before)
        pair = earlier["code"].splitlines(), loaded["code"].splitlines()
        names = f"version {before}", f"version {loaded['version']}"
        if max(map(len, pair)) > _DIFFERENCE_LINES_MAX:
            skill["difference"] = [f"A version has more than {_DIFFERENCE_LINES_MAX} lines. Compare them elsewhere."]
        else:
            skill["difference"] = await asyncio.to_thread(lambda: [*difflib.unified_diff(*pair, *names, lineterm="")])
    return skill


def _number(view: View, name: str) -> int | None:
    given = view.query.get(name) or None
    if given is not None and not given.isdecimal():
        raise UsageError(f"{name} cannot be {given}. Give a number from 1 up.")
    return None if given is None else int(given)


async def _review(view: View) -> Data:
    found = await review(view.app.skills, view.viewer.caller)
    archived = await skills.listed(view.app.skills, None, None, 200, archived=True)
    return {**found, "archived": archived["skills"]}


async def _schedules(view: View) -> Data:
    return cast("Data", await view.app.schedules.listed(view.viewer.caller))


async def _privacy(view: View) -> Data:
    settings, privacy = view.operators.settings, view.app.privacy
    if privacy.is_off:
        return {"privacy": settings.privacy.value}
    contents = await asyncio.to_thread(vault_json, privacy, _LINES)
    ways: dict[str, dict[str, int]] = {}
    for line in contents["audit"]:
        counts = ways.setdefault(f"{line['action']} {line['destination']}", {})
        counts[str(line["type"])] = counts.get(str(line["type"]), 0) + cast("int", line["count"])
    return {"privacy": settings.privacy.value, **contents, "ways": ways}


async def _audit(view: View) -> Data:
    query, own = view.query, view.viewer.identity.tenant
    tenant = query.get("tenant") or None if view.viewer.is_operator else own
    since = query.get("since") or None
    wanted = LineFilter(
        since_us=None if since is None else int(moment_of(since, "since") * 1_000_000),
        tenant=tenant,
        principal=query.get("who") or None,
        event=query.get("event") or None,
        run=query.get("run") or None,
        limit=_LINES,
    )
    lines = await view.listed(lambda _here: _lines_of(view, wanted))
    return {"count": len(lines), "lines": lines[::-1]}


async def _tenants(view: View) -> Data:
    """Return the tenants with their people: whoever has a token."""

    def with_people() -> list[dict[str, object]]:
        database = view.operators.database()
        people: dict[str, set[str]] = {DEFAULT_TENANT: set()}
        for each in TokenStore(database).listed():
            people.setdefault(each.tenant, set()).add(each.principal)
        listed = [tenant_json(each) for each in TenantStore(database).all()]
        known = {each["tenant"] for each in listed}
        listed += [{"tenant": name, "status": "active"} for name in people if name not in known]
        return [{**each, "people": sorted(people.get(str(each["tenant"]), ()))} for each in listed]

    tenants = await asyncio.to_thread(with_people)
    return {"count": len(tenants), "tenants": tenants}


async def _tokens(view: View) -> Data:
    tenant = None if view.viewer.is_operator else view.viewer.identity.tenant
    stored = await asyncio.to_thread(lambda: TokenStore(view.operators.database()).listed(tenant))
    return {"count": len(stored), "tokens": [token_json(each) for each in stored]}


async def _limits(view: View) -> Data:
    settings, status = view.operators.settings, await view.listed(now)
    of_runs = {name: getattr(settings, name) for name in LimitsReport.__annotations__}
    shares = {
        name: each
        for name, each in shown_settings(settings).items()
        if name.startswith(("CALLER_", "TENANT_")) and each
    }
    own = await view.listed(_own_limits)
    return {"limits": of_runs, "bounds": shares, "own": own, "kinds": KINDS, "used": status["shares"]}


def _own_limits(here: HereInServer) -> object:
    with opened_operators(here) as database:
        return cast("Data", limits.commands["list"].function(here, database).data)["limits"]


async def _stats(view: View) -> Data:
    """Return what runs used; an admin of a tenant sees that alone."""
    query, by = view.query, view.query.get("by") or "day"
    if by not in get_args(By):
        raise UsageError(f"by cannot be {by}. Give one of {', '.join(get_args(By))}.")
    tenant = query.get("tenant") or None if view.viewer.is_operator else view.viewer.identity.tenant
    how = {"tenant": tenant, "who": query.get("who") or None, "since": query.get("since") or "7d", "by": by}
    usage = cast("Data", (await view.listed(lambda here: stats.function(here, **how))).data)
    return {**usage, "kinds": get_args(By)}


async def _settings(view: View) -> Data:
    settings, file = view.operators.settings, view.operators.home.settings_file
    sources = await asyncio.to_thread(partial(sources_of, settings, file=file, environment=os.environ))
    shown = shown_settings(settings)
    return {"file": str(file), "settings": {name: {"value": shown[name], "from": sources[name]} for name in shown}}


def _page(
    path: str, title: str, needs: tuple[Right, ...], shows: Callable[[View], Awaitable[Data]], **how: bool
) -> Page:
    is_listed = "(" not in path
    template = shows.__name__.strip("_")
    return Page(re.compile(path), title, f"{template}.html", needs, shows, menu=path if is_listed else "", **how)


_ADMIN = (Right.ADMIN,)
PAGES = (
    _page("", "Now", _SEEN, _now),
    _page("runs", "Runs", (Right.RUN, Right.ADMIN), _runs),
    _page("runs/(?P<run>[0-9a-z]{1,64})", "Run", (Right.RUN, Right.ADMIN), _run),
    _page("approvals", "Approvals", _SEEN, _approvals),
    _page("tools", "Tools", (Right.TOOLS_READ,), _tools),
    _page(r"tools/(?P<tool>[^/]{1,300})", "Tool", (Right.TOOLS_READ,), _tool),
    _page("servers", "Servers", _ADMIN, _servers, of_operator=True),
    _page("skills", "Skills", (Right.SKILLS_READ,), _skills),
    _page(r"skills/(?P<skill>[^/]{1,200})", "Skill", (Right.SKILLS_READ,), _skill),
    _page("review", "Review", TOOLS["review_skills"], _review),
    _page("schedules", "Schedules", TOOLS["list_schedules"], _schedules),
    _page("privacy", "Privacy", _ADMIN, _privacy),
    _page("stats", "Use", _ADMIN, _stats),
    _page("audit", "Audit", _ADMIN, _audit),
    _page("tenants", "Tenants", _ADMIN, _tenants, of_operator=True),
    _page("tokens", "Tokens", _ADMIN, _tokens),
    _page("limits", "Limits", _ADMIN, _limits, of_operator=True),
    _page("settings", "Settings", _ADMIN, _settings, of_operator=True),
)
"""All pages, in the order of the menu."""
