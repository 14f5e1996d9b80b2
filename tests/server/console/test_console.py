"""The console shows what the commands list, to who may see it, and does what a form of its own says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sealab.server.interfaces.console.pages import PAGES

from ...waiting import wait_until
from ..conftest import http_server
from ..journal.test_journaled_runs import NOTES
from ..tenants.team import Member, token
from ..upstream_tools.test_registry import configure
from .conftest import JSON, Person, link, member, nobody

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
ASKS = "print('asked')\nresult = await tools.notes.send(text='told')"
ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_BACKGROUND_RUNS_MAX": "2", "SEALAB_VAULT_KEY": "ab" * 32}
MENU = [page.menu for page in PAGES if page.menu]


@dataclass(frozen=True)
class Team:
    """A server that asks for tokens, and those whom it knows."""

    home: Path
    url: str
    tokens: dict[str, str]

    def member(self, name: str) -> Person:
        return member(self.url, self.tokens[name])

    def agent(self, name: str) -> Member:
        return Member(self.url, self.tokens[name])

    def ran(self, name: str, code: str) -> str:
        """Run code as somebody's agent, and return its run_id."""
        return str(self.agent(name).call("execute_code", code=code).structured["run_id"])

    def asked(self, name: str) -> str:
        """Begin a run that waits for a yes as somebody's agent, and return its run_id."""
        agent = self.agent(name)
        run_id = str(agent.call("execute_code", code=ASKS, background=True).structured["run_id"])
        wait_until(lambda: agent.call("get_run", run_id=run_id).structured["status"] == "waiting")
        return run_id


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    home = tmp_path_factory.mktemp("home")
    (home / "notes.py").write_text(NOTES.replace("'Look.'", f"'Look. {HOSTILE}'"))
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")]}
    configure(home, notes={**command, "approve": "writes"})
    tokens = {
        "operator": token(home, "default", "olga", "default", "approve", "admin", **ENV),
        "helper": token(home, "default", "ann", "default", "approve", **ENV),
        "ann": token(home, "acme", "ann", "default", **ENV),
        "mate": token(home, "acme", "mate", "default", **ENV),
        "approver": token(home, "acme", "approver", "default", "approve", **ENV),
        "admin": token(home, "acme", "admin", "default", "approve", "admin", **ENV),
        "writer": token(home, "acme", "writer", "skills:write", **ENV),
        "reader": token(home, "acme", "reader", "skills:read", "run", **ENV),
        "ben": token(home, "beta", "ben", "default", "approve", "admin", **ENV),
    }
    (home / "sealab.toml").write_text("RUNS_KEPT = 77\n")
    with http_server(home, SEALAB_AUTH="tokens", **ENV) as url:
        made = Team(home, url, tokens)
        made.ran("ann", "await tools.notes.look(name='a')")  # what is opened with the first call is open then
        made.ran("ben", "1")
        for path in ("/runs", "/tools?query=look"):
            made.member("operator").page(path)
        yield made


class _Tags(HTMLParser):
    """Collects what of a page could run, or load anything."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "img", "iframe", "object", "embed", "style", "base"}:
            self.found.append(tag)
        for name, value in attrs:
            leads = name in {"href", "src", "action", "formaction"} and not (value or "").startswith(
                ("/console", "#", "?")
            )
            if name.startswith("on") or name in {"style", "srcdoc"} or leads:
                self.found.append(f"{tag} {name}={value}")


def what_runs(page: str) -> list[str]:
    """Return the tags and attributes of a page by which something could run or be loaded."""
    tags = _Tags()
    tags.feed(page)
    return tags.found


def test_each_page_is_there_as_html_that_runs_nothing_and_as_json(team: Team) -> None:
    person = team.member("operator")
    team.ran("operator", f"# {HOSTILE}\nprint({HOSTILE!r})\nresult = [{{'<b>': {HOSTILE!r}}}]")
    team.ran("operator", f"raise ValueError({HOSTILE!r})")
    saved = team.agent("operator").call(
        "save_skill", name="hostile", code=f"def hostile():\n    '''{HOSTILE}'''\n    return 1", description=HOSTILE
    )
    assert not saved.failed, saved.said
    runs = [f"/runs/{each['run_id']}" for each in person.told("/runs")["runs"]]
    assert len(runs) >= 2
    tools = "/tools?query=look"
    for path in ("", *(f"/{name}" for name in MENU), *runs, tools, "/tools/notes.look", "/skills/hostile"):
        found = person.opened(path, Accept="text/html")
        assert (path, found.status_code) == (path, 200), found.text
        assert found.headers["content-type"] == "text/html; charset=utf-8"
        assert found.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; form-action")
        assert (found.headers["cache-control"], found.headers["x-frame-options"]) == ("no-store", "DENY")
        shown = found.text
        assert what_runs(shown) == []
        assert f'href="/console/{MENU[0]}"' in shown
        assert isinstance(person.told(path), dict)
    assert "&lt;script&gt;alert(1)" in person.page(runs[0])
    assert "&lt;script&gt;alert(1)" in person.page("/tools/notes.look")
    assert "&lt;script&gt;alert(1)" in person.page("/skills/hostile")


def test_a_run_is_shown_with_code_timeline_calls_output_and_result(team: Team) -> None:
    code = (
        "import asyncio\nseen = await asyncio.gather(*(tools.notes.look(name=n) for n in 'ab'))\n"
        "print('said')\nresult = [{'name': s} for s in seen]"
    )
    run_id = team.ran("ann", code)
    person = team.member("ann")
    told = person.told(f"/runs/{run_id}")
    assert (told["code"], told["who"], told["tenant"]) == (code, "ann", "acme")
    assert [each["call"] for each in told["calls"]] == ["notes.look", "notes.look"]
    assert told["end"]["output"] == "said\n"
    assert {"run.began", "tool.called"} <= {each["event"] for each in told["account"]}
    shown = person.page(f"/runs/{run_id}")
    assert shown.count("<rect") == 2
    assert "<td>saw a</td>" in shown
    assert "said" in shown


def test_each_sees_their_own_runs_an_admin_all_of_the_tenant_and_the_operator_all(team: Team) -> None:
    runs = {name: team.ran(name, f"'{name} ran'") for name in ("ann", "mate", "ben", "operator")}
    sees = {
        "ann": {"ann"},
        "mate": {"mate"},
        "approver": set(),
        "admin": {"ann", "mate"},
        "ben": {"ben"},
        "helper": set(),  # who is called as somebody of another tenant, and may answer in `default`
        "operator": set(runs),
    }
    for name, expected in sees.items():
        person = team.member(name)
        listed = {each["run_id"] for each in person.told("/runs", limit="1000")["runs"]}
        assert {whose for whose, run_id in runs.items() if run_id in listed} == expected
        for whose, run_id in runs.items():
            status = 200 if whose in expected else 404
            assert (name, whose, person.opened(f"/runs/{run_id}", **JSON).status_code) == (name, whose, status)
    for act in ("cancel", "replay"):
        assert team.member("mate").sent(f"/runs/{runs['ann']}/{act}", {}, **JSON).status_code == 404
        assert team.member("ben").sent(f"/runs/{runs['ann']}/{act}", {}, **JSON).status_code == 404
    olga = team.member("operator")
    assert {each["tenant"] for each in olga.told("/runs", tenant="beta")["runs"]} == {"beta"}
    assert {each["who"] for each in olga.told("/runs", who="ann")["runs"]} == {"ann"}
    assert team.member("ben").opened("/runs?tenant=acme").status_code == 400
    assert team.member("admin").opened("/audit?tenant=default", **JSON).status_code == 400
    assert {each["tenant"] for each in team.member("admin").told("/audit")["lines"]} == {"acme"}
    assert {each["tenant"] for each in team.member("admin").told("/tokens")["tokens"]} == {"acme"}


def test_a_page_takes_its_scope_and_those_of_the_server_the_operators(team: Team) -> None:
    of_operator = {page.menu for page in PAGES if page.of_operator}
    assert of_operator == {"servers", "tenants", "limits", "settings"}
    person, admin = team.member("ann"), team.member("admin")
    shown = person.page()
    for name in MENU:
        allowed = name in {"runs", "approvals", "tools", "skills", "review", "schedules"}
        assert (name, person.opened(f"/{name}", **JSON).status_code) == (name, 200 if allowed else 403)
        assert (f'href="/console/{name}"' in shown) is allowed
        assert admin.opened(f"/{name}", **JSON).status_code == (403 if name in of_operator else 200)
    assert not {"disk", "shares"} & set(admin.told())
    found = team.member("operator").told("/tokens")["tokens"]
    ids = {each["principal"]: each["id"] for each in found}
    assert person.sent(f"/tokens/{ids['mate']}/revoke", {}).status_code == 403
    assert admin.sent(f"/tokens/{ids['ben']}/revoke", {}, **JSON).status_code == 400
    for name in ("ann", "admin"):
        assert team.member(name).sent("/servers/notes/remove", {}).status_code == 403


def test_a_question_is_answered_in_two_clicks_by_who_may_and_by_nobody_else(team: Team) -> None:
    run_id = team.asked("ann")
    for name, sees in (("ann", True), ("mate", False), ("approver", True), ("ben", False), ("operator", True)):
        listed = team.member(name).told("/approvals")["approvals"]
        assert (name, [each["run_id"] for each in listed]) == (name, [run_id] if sees else [])
    (asked,) = team.member("approver").told("/approvals")["approvals"]
    form = f"/approvals/{asked['id']}"
    yes = {"answer": "approve", "reason": ""}
    assert team.member("ann").sent(form, yes).status_code == 403
    assert team.member("ben").sent(form, yes).status_code == 404
    approver = team.member("approver")
    shown = approver.page("/approvals")  # the first click
    assert f'action="/console{form}"' in shown
    assert "notes.send" in shown
    (host,) = (
        each["text"]
        for each in team.agent("approver")
        .request("resources/read", {"uri": f"ui://sealab/runs/{run_id}"}, f"ui://sealab/runs/{run_id}")
        .message["result"]["contents"]
    )
    assert "<form" not in host, "what a page in a chat sends, the agent can send too"
    assert f'<a href="{approver.origin}/console/approvals">console</a>' in host
    assert approver.sent(form, yes).status_code == 303  # the second
    wait_until(lambda: team.agent("ann").call("get_run", run_id=run_id).structured["status"] == "ok")
    assert approver.sent(form, yes, **JSON).status_code == 400
    assert approver.told("/approvals", outcome="approved")["approvals"][0]["run_id"] == run_id
    lines = team.member("operator").told("/audit", event="approval.answered", run=run_id)["lines"]
    assert ("approver", "approve") in [(each["principal"], each["decision"]) for each in lines]


def test_a_form_counts_with_the_mark_of_its_own_session_alone_and_from_its_own_pages(team: Team) -> None:
    run_id = team.asked("ann")
    person, other = team.member("operator"), team.member("operator")
    (asked,) = person.told("/approvals")["approvals"]
    form, yes = f"/approvals/{asked['id']}", {"answer": "approve"}
    for mark in ("", "0" * 64, other.mark, "é"):
        refused = person.sent(form, yes, mark=mark)
        assert (refused.status_code, "not of this session" in refused.text) == (403, True)
    foreign = person.sent(form, yes, Origin="http://evil.example")
    assert foreign.status_code == 403
    assert person.client.get(f"{person.origin}/console{form}?answer=approve").status_code == 404
    told = json.dumps(yes | {"mark": person.mark})
    as_json = {"Content-Type": "application/json"}
    assert person.client.post(f"{person.origin}/console{form}", content=told, headers=as_json).status_code == 415
    assert person.told("/approvals")["count"] == 1
    assert person.sent(form, {"answer": "deny"}).status_code == 303
    ended = team.agent("ann").call("get_run", run_id=run_id, wait_seconds=30)
    assert ended.structured["status"] == "refused"


def test_a_session_ends_with_its_token_with_a_sign_out_and_with_its_time(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, leaving = team.member("operator"), nobody(team.url)
    login = leaving.client.post(f"{leaving.origin}/console/login", data={"token": team.tokens["operator"]})
    cookie = login.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
    assert team.tokens["operator"] not in cookie
    assert leaving.sent("/logout", {}).status_code == 303
    leaving.client.cookies.set("sealab-console", re.split("[=;]", cookie)[1], domain="127.0.0.1")
    assert leaving.opened().status_code == 401
    assert person.opened().status_code == 200
    monkeypatch.setattr("sealab.server.interfaces.console.sessions.SESSION_SECONDS", -1)
    late = nobody(team.url)
    begun = late.client.post(f"{late.origin}/console/login", data={"token": team.tokens["operator"]})
    late.client.cookies.set("sealab-console", re.split("[=;]", begun.headers["set-cookie"])[1], domain="127.0.0.1")
    assert (late.opened().status_code, "no longer" in late.opened().text) == (401, True)
    monkeypatch.undo()
    brief = token(team.home, "acme", "brief", "default", **ENV)
    whose = member(team.url, brief)
    assert whose.opened().status_code == 200
    found = next(each for each in person.told("/tokens")["tokens"] if each["name"] == "brief")
    assert person.sent(f"/tokens/{found['id']}/revoke", {}).status_code == 303
    wait_until(lambda: whose.opened(**JSON).status_code == 401)


def test_one_principal_ends_no_sessions_of_others(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.server.interfaces.console.sessions.SESSIONS_OF_ONE_MAX", 2)
    monkeypatch.setattr("sealab.server.interfaces.console.sessions.SESSIONS_MAX", 3)
    other = team.member("mate")
    signed_in = [team.member("ben") for _ in range(4)]
    assert other.opened(**JSON).status_code == 200
    assert [each.opened(**JSON).status_code for each in signed_in] == [401, 401, 200, 200]


def test_nobody_without_a_session_or_token_sees_anything(team: Team) -> None:
    stranger = nobody(team.url)
    for path in ("", *(f"/{name}" for name in MENU), "/runs/0", "/no-such"):
        for headers in ({}, JSON, {"Authorization": "Bearer sealab_no"}, {"Cookie": "sealab-console=" + "a" * 43}):
            assert stranger.opened(path, **headers).status_code == 401
    assert stranger.sent("/runs/0/cancel", {}, mark="").status_code == 401
    for given in ("", "é", "sealab_no", "x" * 9000):
        assert stranger.client.post(f"{stranger.origin}/console/login", data={"token": given}).status_code == 401
    way_in = stranger.opened("/approvals").text
    assert '<input type="hidden" name="to" value="approvals">' in way_in
    for to, leads_to in (("approvals", "/console/approvals"), ("//evil.example", "/console"), ("logout", "/console")):
        given = {"token": team.tokens["ann"], "to": to}
        signed_in = nobody(team.url).client.post(f"{stranger.origin}/console/login", data=given)
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, leads_to)
    bearer = {"Authorization": f"Bearer {team.tokens['ann']}", **JSON}
    assert stranger.opened("/runs", **bearer).status_code == 200  # as programs send it
    assert stranger.opened("/settings", **bearer).status_code == 403


def test_a_link_of_the_terminal_opens_one_session_which_is_the_operators(team: Team) -> None:
    secret = link(team.home, team.url, **ENV)
    first, second = nobody(team.url), nobody(team.url)
    assert first.client.get(secret).status_code == 303
    assert first.told("/tenants")["count"] >= 3
    assert second.client.get(secret).status_code == 403
    assert second.opened().status_code == 401


def test_a_run_is_replayed_edited_and_saved_and_a_tool_is_tried(team: Team) -> None:
    person = team.member("ann")
    run_id = team.ran("ann", "name = 'a'\nresult = await tools.notes.look(name=name)")
    same = person.sent(f"/runs/{run_id}/replay", {}, **JSON).json()
    assert (same["same"], same["answered"]) == (True, 1)
    edited = {"code": "name = 'a'\r\nresult = [await tools.notes.look(name=name), 2]"}
    report = person.sent(f"/runs/{run_id}/replay", edited, **JSON).json()["report"]
    assert report["result"] == ["saw a", 2]
    saved = person.sent(f"/runs/{run_id}/save", {"name": "looked", "parameters": "name"})
    assert saved.headers["location"] == "/console/skills/looked"
    assert "notes.look" in person.page("/skills/looked")
    tried = person.sent("/tools/notes.look/try", {"arguments": '{"name": "b"}'})
    wait_until(lambda: person.told(tried.headers["location"].removeprefix("/console")).get("end") is not None)
    told = person.told(tried.headers["location"].removeprefix("/console"))
    assert told["end"]["result"] == "saw b"
    assert person.sent("/tools/notes.look/try", {"arguments": "[1]"}).status_code == 400


def saved(team: Team, name: str, skill: str, code: str = "", **more: object) -> None:
    code = (
        code or f"def {skill}(text: str) -> str:\n    'Return the words of a text in reverse order.'\n    return text"
    )
    assert not (told := team.agent(name).call("save_skill", name=skill, code=code, **more)).failed, told.said


def test_what_the_review_proposes_is_archived_and_restored_by_who_may_write_skills(team: Team) -> None:
    for skill in ("turned", "turned_round"):
        saved(team, "ann", skill, force=True)
    saved(team, "operator", "published", tags=["shared"])
    person = team.member("ann")
    (found,) = (each for each in person.told("/review")["findings"] if each["name"].startswith("turned"))
    assert found == {**found, "finding": "duplicate", "command": f"sealab skills archive {found['name']}"}
    assert found["why"] in person.page("/review").replace("&#39;", "'")
    assert what_runs(person.page("/review")) == []
    archive = f"/skills/{found['name']}/archive"
    assert f'action="/console{archive}"' in person.page("/review")
    assert team.member("writer").opened("/review").status_code == 200
    reader = team.member("reader")
    assert reader.opened("/review").status_code == 403
    assert reader.sent(archive, {}, mark=mark_of(reader)).status_code == 403
    assert person.sent(archive, {}, mark="0" * 64).status_code == 403
    assert person.sent("/skills/published/archive", {}, **JSON).status_code == 404  # it is the operator's
    assert person.sent(archive, {}).headers["location"] == "/console/review"
    told = person.told("/review")
    assert [each["name"] for each in told["archived"]] == [found["name"]]
    assert not any(each["name"].startswith("turned") for each in told["findings"])
    assert person.sent(f"/skills/{found['name']}/restore", {}, **JSON).json() == {
        "name": found["name"],
        "archived": False,
    }
    assert found["name"] in {each["name"] for each in person.told("/skills")["skills"]}
    helper = team.member("helper")  # of the operator's tenant, and no operator
    assert helper.sent("/skills/published/archive", {}).status_code == 403
    assert team.member("operator").sent("/skills/published/archive", {}).status_code == 303
    assert helper.sent("/skills/published/restore", {}).status_code == 403


def test_a_schedule_is_shown_said_yes_to_run_and_removed_by_its_owner(team: Team) -> None:
    saved(team, "ann", "ticking", "def ticking() -> int:\n    'Tick.'\n    return 1")
    added = team.agent("ann").call("add_schedule", name="ticks", skill="ticking", every="daily 04:00 UTC")
    assert not added.failed, added.said
    saved(team, "ann", "ticking", "def ticking() -> int:\n    'Tick.'\n    return 2")
    person = team.member("ann")
    (told,) = person.told("/schedules")["schedules"]
    assert (told["version"], told["state"], "last" in told) == (1, "active", False)
    assert told["waits"] in person.page("/schedules")
    assert what_runs(person.page("/schedules")) == []
    assert team.member("mate").told("/schedules")["count"] == 0
    assert team.member("mate").sent("/schedules/ticks/remove", {}, **JSON).status_code == 400
    page = person.page("/schedules")
    assert 'href="/console/skills/ticking?version=2"' in page
    shown = dict(re.findall(r'name="(skill|version)" value="(\w+)"', page))
    assert shown == {"skill": "ticking", "version": "2"}
    for wrong in ({}, {**shown, "version": "1"}, {**shown, "version": "9" * 5000}, {**shown, "skill": "other"}):
        refused = person.sent("/schedules/ticks/add", wrong, **JSON)
        assert (refused.status_code, "Open the page again" in refused.text) == (400, True)
    assert person.told("/schedules")["schedules"] == [told]
    assert person.sent("/schedules/ticks/add", shown).headers["location"] == "/console/schedules"
    ran = person.sent("/schedules/ticks/run", {}).headers["location"].removeprefix("/console")
    wait_until(lambda: person.told(ran).get("end") is not None)
    assert person.told(ran)["end"]["result"] == 2
    (told,) = person.told("/schedules")["schedules"]
    assert (told["version"], "waits" in told, told["last"]["run_id"]) == (2, False, ran.removeprefix("/runs/"))
    assert person.sent("/schedules/ticks/remove", {}, **JSON).json() == {"name": "ticks", "removed": True}
    assert "Nothing runs at set times" in person.page("/schedules")


def mark_of(person: Person) -> str:
    """Return what the forms of somebody carry who may see no page with one but the way out."""
    found = re.search(r'name="mark" value="([0-9a-f]{64})"', person.opened("/review", Accept="text/html").text)
    assert found is not None
    return found[1]


def test_values_are_shown_as_the_model_saw_them_unless_a_scope_reveals_them_and_a_line_says_so(team: Team) -> None:
    mail = "jane.roe@corp.example"
    run_id = team.ran("ann", f"print('{mail}')")
    person = team.member("ann")
    shown = person.page(f"/runs/{run_id}")
    assert mail not in shown
    assert "[EMAIL_" in shown
    revealed = person.sent(f"/runs/{run_id}/reveal", {}, Accept="text/html")
    assert (revealed.status_code, mail in revealed.text) == (200, True)
    assert team.member("mate").sent(f"/runs/{run_id}/reveal", {}).status_code == 404
    lesser = member(team.url, token(team.home, "acme", "ann", "run", **ENV))
    assert lesser.sent(f"/runs/{run_id}/reveal", {}).status_code == 403
    told = person.told(f"/runs/{run_id}")
    events = [each["event"] for each in told["account"]]
    assert told["ways"]["restored terminal"]["EMAIL"] >= 1
    assert "<dt>restored terminal</dt>" in person.page(f"/runs/{run_id}")
    assert {"privacy.restored", "administered"} <= set(events)


def test_settings_are_shown_as_they_are_in_force_and_where_each_is_from_without_secrets(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    person = team.member("operator")
    told = person.told("/settings")["settings"]
    assert told["RUNS_KEPT"] == {"value": 77, "from": str(team.home / "sealab.toml")}
    assert told["VAULT_KEY"] == {"value": True, "from": "SEALAB_VAULT_KEY"}
    assert told["PIDS_MAX"]["from"] == "default"
    assert "ab" * 32 not in person.page("/settings")


def test_a_result_of_numbers_is_drawn_and_its_labels_are_texts(team: Team) -> None:
    rows = [{"who": HOSTILE, "sum": -3}, {"who": "b", "sum": 9.5}]
    shown = team.member("ann").page(f"/runs/{team.ran('ann', f'result = {rows!r}')}")
    assert shown.count("<text x") == 2
    assert "2 bars of sum" in shown
    assert what_runs(shown) == []
    assert "<text x" not in team.member("ann").page(f"/runs/{team.ran('ann', 'result = [1, None]')}")


def test_the_operator_gives_a_person_a_limit_and_nobody_else_does(team: Team) -> None:
    limit = {"tenant": "acme", "who": "mate", "name": "runs_per_minute", "value": "900"}
    person = team.member("operator")
    assert person.sent("/limits/set", limit).status_code == 303
    assert [(each["who"], each["value"]) for each in person.told("/limits")["own"]] == [("mate", 900)]
    assert "acme/mate" in person.page("/limits")
    assert person.sent("/limits/set", limit | {"value": "many"}, **JSON).status_code == 400
    for name in ("ann", "admin", "ben"):
        assert team.member(name).sent("/limits/set", limit, **JSON).status_code == 403
    lines = person.told("/audit", event="limit.set")["lines"]
    assert ("olga", "acme/mate", "900") in [
        (each["principal"], each["details"]["of"], each["details"]["value"]) for each in lines
    ]
    person.sent("/limits/set", limit | {"value": "default"})
    assert person.told("/limits")["own"] == []


def test_what_runs_used_is_told_by_what_is_asked_and_of_ones_own_tenant(team: Team) -> None:
    run_id = team.ran("ann", "1 + 1")
    person, admin = team.member("operator"), team.member("admin")
    wait_until(lambda: run_id in {each["run"] for each in admin.told("/stats", by="run")["rows"]})
    (own,) = (each for each in admin.told("/stats", by="run")["rows"] if each["run"] == run_id)
    assert own["tokens"]["written"] == 1
    assert {each["tenant"] for each in admin.told("/stats", by="tenant")["rows"]} == {"acme"}
    assert {"acme", "beta"} <= {each["tenant"] for each in person.told("/stats", by="tenant")["rows"]}
    assert "notes.look" in person.page("/stats?by=tool")
    assert person.told(f"/runs/{run_id}")["tokens"] == own["tokens"]
    assert admin.opened("/stats?by=no", **JSON).status_code == 400
    assert team.member("ann").opened("/stats", **JSON).status_code == 403


def test_a_server_with_console_off_has_none(tmp_path: Path) -> None:
    with http_server(tmp_path, SEALAB_CONSOLE="off") as url:
        assert nobody(url).opened().status_code == 404
