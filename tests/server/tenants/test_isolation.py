"""Every way in × who comes: the owner, another principal of its tenant, one of another tenant, and nobody known.

The lines come from the real lists of tools, host functions, methods, resources, routes and commands: what is added to
one of these and has no line here fails. Each cell is tried for real; what it showed or changed is judged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sealab.server.cli import make_parser
from sealab.server.governance.rights import HOST_FUNCTIONS, METHODS, RESOURCES, ROUTES

from .team import Member, Reply, command, team_server, token

pytestmark = pytest.mark.timeout(400)  # the first test waits for the server and three tenants
CANARY = "zanzibar-quetzal"
EMAIL = "quetzal.feather@zanzibar-example.org"
TASKS = {"io.modelcontextprotocol/tasks": {}}
SKILL = f'''def canary_skill(x: int = 1) -> str:
    """Give the {CANARY} of the owner."""
    return "{CANARY}"
'''
YES, NO, ANY = True, False, None
"""Whether a cell shows what is the owner's; `ANY` where there is nothing to show, and only effects are judged."""


@dataclass(frozen=True)
class Team:
    """A running server, who calls it, and what the owner has there."""

    home: Path
    owner: Member
    mate: Member
    other: Member
    nobody: Member
    run_id: str
    background_id: str
    pii: str

    def state(self) -> Any:
        """All that the owner can see of what it has, for comparing."""
        skills = [(each["name"], each["version"]) for each in self.owner.call("list_skills").structured["skills"]]
        files = self.owner.run("[(f['name'], read_file(f['name'])) for f in list_files()]")
        sessions = self.owner.run("[each['name'] for each in list_sessions()]")
        secret = self.owner.run("secret", session="s")
        report = self.owner.call("get_run", run_id=self.run_id).structured
        waits = self.owner.call("get_run", run_id=self.background_id).structured["status"]
        restored = self.owner.call("restore_pii", text=self.pii).structured["restored_text"]
        return skills, files, sessions, secret, report["output"], waits, restored


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A server with a tenant of two principals and another whose principal has the name of one of these."""
    home = tmp_path_factory.mktemp("team") / "home"
    scopes = ("default", "admin", "approve")
    tokens = {
        "owner": token(home, "acme", "alice", "default"),
        "mate": token(home, "acme", "bob", "default"),
        "other": token(home, "acme-2", "alice", *scopes),  # with every right that it can have in its own tenant
    }
    with team_server(home, SEALAB_PRIVACY_MODE="fast") as url:
        members = {name: Member(url, each) for name, each in tokens.items()} | {"nobody": Member(url, None)}
        owner = members["owner"]
        for each in (owner, members["mate"], members["other"]):
            each.run("1 + 1")
        ran = owner.call("execute_code", code=f"print('{CANARY}')", session="s")
        owner.run(f"secret = '{CANARY}'", session="s")
        background = owner.call("execute_code", code="import asyncio\nawait asyncio.sleep(1000)", background=True)
        assert not owner.call("write_workspace_file", filename="canary.txt", content=CANARY).failed
        assert not owner.call("save_skill", name="canary_skill", code=SKILL, tests="assert canary_skill()").failed
        pii = owner.call("sanitize_pii", text=f"mail {EMAIL}").structured["sanitized_text"]
        assert EMAIL not in pii
        yield Team(
            home,
            **members,
            run_id=ran.structured["run_id"],
            background_id=background.structured["run_id"],
            pii=pii,
        )


@dataclass(frozen=True)
class Line:
    """One way in: what it calls, whether the owner, a mate and another tenant see what is the owner's."""

    what: str
    call: Callable[[Team, Member], Reply]
    owner: bool | None = YES
    mate: bool | None = NO
    shows: Callable[[Team, Reply], bool] = lambda _team, reply: CANARY in reply.text or EMAIL in reply.text


def tool(what: str, /, owner: bool | None = YES, mate: bool | None = NO, **arguments: Any) -> Line:
    def call(team: Team, member: Member) -> Reply:
        values = {"RUN": team.run_id, "BACKGROUND": team.background_id, "PII": team.pii}
        given = {
            key: (value.format_map(values) if isinstance(value, str) and "{" in value and key != "code" else value)
            for key, value in arguments.items()
        }
        return member.call(what, **given)

    return Line(what, call, owner, mate)


def done(_team: Team, reply: Reply) -> bool:
    return not reply.failed


TOOLS: tuple[Line, ...] = (
    tool("execute_code", code="secret", session="s"),
    tool("execute_code", mate=YES, code="read_file('canary.txt')"),
    tool("get_run", run_id="{RUN}"),
    Line("get_run", lambda team, member: member.call("get_run", run_id=team.background_id), shows=done),
    tool("search_tools", mate=YES, query="canary skill"),
    tool("get_tool_definition", mate=YES, tool_name="skills.canary_skill"),
    Line(
        "list_tool_categories",
        lambda _team, member: member.call("list_tool_categories"),
        owner=ANY,
        mate=ANY,
        shows=lambda _team, reply: "canary" in reply.text or '"skills": {' in reply.text,
    ),
    Line(
        "save_skill",
        lambda team, member: member.call("save_skill", name="taken", from_run=team.run_id),
        owner=ANY,  # it would change what the owner has
        shows=done,
    ),
    tool("load_skill", mate=YES, name="canary_skill"),
    tool("list_skills", mate=YES),
    tool("list_skills", mate=YES, query="canary"),
    tool("review_skills", owner=ANY, mate=ANY),
    tool("run_skill", mate=YES, name="canary_skill"),
    tool("list_schedules", owner=ANY, mate=ANY),
    Line(
        "sanitize_pii",
        lambda _team, member: member.call("sanitize_pii", text=f"mail {EMAIL}"),
        mate=YES,
        shows=lambda team, reply: team.pii in reply.text,
    ),
    tool("restore_pii", mate=YES, text="{PII}"),
    tool("read_workspace_file", mate=YES, filename="canary.txt"),
    tool("read_workspace_file", filename=".runs/{RUN}/code.py"),
    tool("list_workspace_files", owner=ANY, mate=ANY, subpath="."),
    Line(
        "list_workspace_files",
        lambda _team, member: member.call("list_workspace_files"),
        mate=YES,
        shows=lambda _team, reply: "canary.txt" in reply.text,
    ),
    Line(
        "get_execution_stats",
        lambda _team, member: member.call("get_execution_stats"),
        owner=ANY,
        mate=ANY,
        shows=lambda _team, reply: any(
            (
                {"pool", "server", "workers", "event_loop"} & reply.structured.keys(),
                reply.structured["skills"]["skills"],
            )
        ),
    ),
)
"""Of tools whose use by a mate would change what the owner has, only strangers try that: see `CHANGES`."""

CHANGES: tuple[Line, ...] = (
    tool("write_workspace_file", ANY, ANY, filename="canary.txt", content="overwritten"),
    tool("delete_workspace_file", ANY, ANY, filename="canary.txt"),
    tool("delete_skill", ANY, ANY, name="canary_skill"),
    tool("add_schedule", ANY, ANY, name="canary", skill="canary_skill", every="daily 07:00 UTC"),
    tool("remove_schedule", ANY, ANY, name="canary"),
    tool("get_run", ANY, ANY, run_id="{BACKGROUND}", cancel=True),
    tool("save_skill", ANY, ANY, name="canary_skill", code="def canary_skill():\n    return 2"),
)


def code(name: str, text: str, owner: bool | None = YES, mate: bool | None = YES) -> Line:
    return Line(name, lambda team, member: member.call("execute_code", code=text.replace("PII", team.pii)), owner, mate)


HOSTS: tuple[Line, ...] = (
    code("progress", "progress(0.5, 'half')", ANY, ANY),
    code("list_sessions", "[each['name'] for each in list_sessions()]", ANY, ANY),
    code("judge_calls", "1", ANY, ANY),
    code("hide_labels", "1", ANY, ANY),
    code("learn_path", "1", ANY, ANY),
    code("learn_rows", "1", ANY, ANY),
    code("sanitize_pii", "1", ANY, ANY),  # as the tool
    code("restore_pii", "restore_pii('PII')"),
    code("read_file", "read_file('canary.txt')"),
    code("write_file", "write_file('mine.txt', 'x')", ANY, ANY),
    code("keep", "1", ANY, ANY),  # of full Python alone
    code("list_files", "[read_file(each['name']) for each in list_files()]"),
    code("delete_file", "1", ANY, ANY),
    code("file_open", "open('canary.txt').read()"),
    code("file_read", "open('/workspace/canary.txt', 'rb').read().decode()"),
    code("file_write", "open('mine.txt', 'a').write('y')", ANY, ANY),
    code("file_truncate", "open('mine.txt', 'r+').truncate(0)", ANY, ANY),
    code("file_close", "1", ANY, ANY),  # where files are in an object store alone
    code("file_sync", "1", ANY, ANY),
    code("file_status", "import os\nos.stat('canary.txt').st_size and open('canary.txt').read()"),
    code("list_folder", "import os\n[open(each).read() for each in os.listdir('.') if each.startswith('canary')]"),
    code("make_folder", "import os\nos.makedirs('d', exist_ok=True)", ANY, ANY),
    code("remove_path", "import os\nos.remove('mine.txt')", ANY, ANY),
    code("remove_folder", "import os\nos.rmdir('d')", ANY, ANY),
    code("rename_path", "1", ANY, ANY),
    code("set_modified", "1", ANY, ANY),
    code("disk_usage", "import shutil\nshutil.disk_usage('.').total", ANY, ANY),
    code("search_tools", "search_tools('canary skill')"),
    code("get_tool_definition", "get_tool_definition('skills.canary_skill')"),
    code("list_servers", "list_servers()", ANY, ANY),
    code("list_names", "dir(tools)", ANY, ANY),
    code("list_tools", "1", ANY, ANY),
    code("named_servers", "mcp_servers", ANY, ANY),
    code("describe_server", "from mcp import runtime\nruntime.describe_server_sync('skills')", ANY, ANY),
    code("describe_servers", "from mcp import runtime\nruntime.list_servers_sync()", ANY, ANY),
    code("capability_summary", "from mcp import runtime\nruntime.capability_summary()", ANY, ANY),
    code("read_resource", "read_resource('acme', 'x')", ANY, ANY),
    code("list_resources", "1", ANY, ANY),
    code("list_prompts", "1", ANY, ANY),
    code("call_tool", "await call_tool('skills.canary_skill', {})", ANY, ANY),
    code("use_skill", "skills.canary_skill()"),
    code("skill_sources", "from skills import canary_skill\ncanary_skill()"),
    code("load_skill", "load_skill('canary_skill')"),
    code("skill_files", "skill_text('canary_skill@1', 'SKILL.md')", ANY, ANY),
    code("list_skills", "list_skills()"),
    code("skill_names", "[load_skill(each) for each in dir(skills)]"),
    code("save_skill", "1", ANY, ANY),  # as the tool
    code("close_session", "close_session('nothing')", ANY, ANY),
)

HOST_CHANGES = (
    "delete_file('canary.txt')",
    "import os\nos.remove('canary.txt')",
    "import os\nos.rename('canary.txt', 'gone.txt')",
    "import os\nos.utime('canary.txt', (0, 0))",
    "import os\nos.remove('/workspace/../../acme/workspace/canary.txt')",
    "open('canary.txt', 'w').write('overwritten')",
    "close_session('s')",
    "close_session('alice/s')",
    "save_skill('canary_skill', 'def canary_skill():\\n    return 3')",
)


def method(
    what: str, /, owner: bool | None = ANY, mate: bool | None = ANY, at: str | None = None, **params: Any
) -> Line:
    def call(team: Team, member: Member) -> Reply:
        given = {key: team.background_id if value == "BACKGROUND" else value for key, value in params.items()}
        return member.request(what, given, at and str(given[at]), TASKS)

    return Line(what, call, owner, mate)


SKILL_URI = "skill://canary-skill/SKILL.md"
PROTOCOL: tuple[Line, ...] = (
    *(method(each) for each in ("initialize", "ping", "server/discover", "tools/list", "prompts/list")),
    method("logging/setLevel", level="info"),
    method("completion/complete", ref={"type": "ref/prompt", "name": "skill"}, argument={"name": "name", "value": "c"}),
    method("tools/call", name="load_skill", arguments={"name": "canary_skill"}, at="name", owner=YES, mate=YES),
    method("prompts/get", name="skill", arguments={"name": "canary_skill"}, at="name"),
    method("resources/list", owner=ANY, mate=ANY),
    method("resources/templates/list"),
    method("resources/read", uri=SKILL_URI, at="uri", owner=YES, mate=YES),
    method("resources/subscribe", uri=SKILL_URI, at="uri"),
    method("resources/unsubscribe", uri=SKILL_URI, at="uri"),
    method("skills/list"),
    method("skills/get", name="canary-skill", at="name"),
    method("resources/directory/read", uri="skill://canary-skill/", at="uri"),
    Line(
        "tasks/get",
        lambda team, member: member.request("tasks/get", {"taskId": team.background_id}, team.background_id, TASKS),
        shows=done,
    ),
    method("tasks/update", taskId="BACKGROUND", inputResponses={}, at="taskId"),
    Line(
        "tasks/cancel",
        lambda team, member: (
            member.request("tasks/get", {"taskId": "none"}, "none", TASKS)
            if member == team.owner
            else member.request("tasks/cancel", {"taskId": team.background_id}, team.background_id, TASKS)
        ),
        owner=ANY,
        shows=done,
    ),
    # It answers with a stream, which shows what changed of the one app that serves it.
    Line("subscriptions/listen", lambda _team, member: member.http("GET", "/mcp"), owner=ANY, mate=ANY),
)

LINES = (*TOOLS, *HOSTS, *PROTOCOL)


def judged(team: Team, line: Line, member: Member, expected: bool | None) -> str | None:
    reply = line.call(team, member)
    if expected is None or line.shows(team, reply) is expected:
        return None
    return f"{line.what}: {'shown' if not expected else 'not shown'}: {reply.text[:300]}"


def wrong_cells(team: Team, lines: Sequence[Line], who: str) -> list[str]:
    expected = {"owner": lambda line: line.owner, "mate": lambda line: line.mate, "other": lambda _line: False}[who]
    found = (judged(team, line, getattr(team, who), expected(line)) for line in lines)
    return [each for each in found if each is not None]


def test_every_tool_host_function_method_resource_route_and_command_has_a_line(team: Team) -> None:
    shown = {each["name"] for each in team.owner.request("tools/list", {}).message["result"]["tools"]}
    assert {line.what for line in (*TOOLS, *CHANGES)} == shown
    assert {line.what for line in HOSTS} == set(HOST_FUNCTIONS)
    assert {line.what for line in PROTOCOL} == set(METHODS)
    assert set(RESOURCES) == {
        "resource://sealab/capabilities",
        "skill://",
        "ui://sealab/",  # see test_app_views
    }  # `resources/read`; the first is the same to all
    assert set(ROUTES) == {
        "/mcp",
        "/approvals/",
        "/sign-in/",
        "/console/",
        "/.sealab/replica",
        "/healthz",
        "/readyz",
        "/.well-known/",
    }
    groups = {name for name, takes in _takes_tenant().items() if takes}
    assert groups == {"runs", "approvals", "schedules", "skills", "pii", "status", "top"}


def _takes_tenant() -> dict[str, bool]:
    """Whether each command, or each of its own, works on what a tenant has."""
    found: dict[str, bool] = {}
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, parser in action.choices.items():
                inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
                commands = [each for group in inner for each in group.choices.values()] or [parser]
                taking = [any(each.dest == "tenants_home" for each in one._actions) for one in commands]
                found[name] = all(taking)
                assert all(taking) == any(taking), name
    return found


@pytest.mark.parametrize("who", ["owner", "mate", "other"])
def test_each_sees_what_is_theirs_and_nothing_else(team: Team, who: str) -> None:
    before = team.state()
    assert wrong_cells(team, LINES, who) == []
    assert who == "owner" or team.state() == before


def test_nobody_without_a_token_gets_any_further(team: Team) -> None:
    before = team.state()
    for line in (*LINES, *CHANGES):
        reply = line.call(team, team.nobody)
        assert (line.what, reply.status) == (line.what, 401)
        assert CANARY not in reply.text
    assert team.state() == before


def test_errors_do_not_tell_whether_another_has_a_name(team: Team) -> None:
    for tool_name, key, real, made_up in (
        ("load_skill", "name", "canary_skill", "canary_skilz"),
        ("run_skill", "name", "canary_skill", "canary_skilz"),
        ("get_tool_definition", "tool_name", "skills.canary_skill", "skills.canary_skilz"),
        ("read_workspace_file", "filename", "canary.txt", "canarz.txt"),
        ("get_run", "run_id", team.run_id, team.run_id[:-1] + ("0" if team.run_id[-1] != "0" else "1")),
        ("read_workspace_file", "filename", f".runs/{team.run_id}/code.py", f".runs/{team.run_id[:-1]}x/code.py"),
    ):
        for who in (team.other, team.mate) if tool_name == "get_run" else (team.other,):
            told = [who.call(tool_name, **{key: name}).said.replace(name, "NAME") for name in (real, made_up)]
            assert told[0] == told[1]


def test_nothing_of_another_tenant_can_be_changed(team: Team) -> None:
    before = team.state()
    for line in CHANGES:
        assert CANARY not in line.call(team, team.other).text
    for text in HOST_CHANGES:
        assert CANARY not in team.other.call("execute_code", code=text).text
    assert team.state() == before


def test_routes_lead_to_no_other_tenant(team: Team) -> None:
    for member in (team.owner, team.other, team.nobody):
        assert member.http("GET", "/healthz") == Reply(200, "")
        assert "acme" not in member.http("GET", "/readyz").text
        assert member.http("POST", "/.sealab/replica").status in {401, 404}  # it is not there: this server is alone
        for place in ("acme/", "acme-2/", "no-such/", "", "default/", "../acme/"):
            assert member.http("GET", f"/approvals/{place}{team.run_id}.1.9999999999.c2lnbmVk").status == 404
            secret = f"{'x' * 43}.{'0' * 32}"
            assert member.http("GET", f"/sign-in/{place}{secret}").status == 404
            assert member.http("GET", f"/sign-in/{place}callback?state={secret}&code=x").status == 403
    assert team.nobody.http("GET", "/acme/mcp").status == 401
    assert team.other.http("GET", "/acme/mcp").status == 404


@pytest.mark.parametrize(
    "name", ["ACME", "Acme", "ａｃｍｅ", "acme ", "acme/", "../acme", "acmé", "аcme", "acme\0", ""]
)
def test_no_name_stands_for_a_tenant_beside_its_own(team: Team, name: str) -> None:
    if "\0" not in name:  # which no command line can hold
        assert command(team.home, "tokens", "create", "x", "--tenant", name).returncode != 0
        assert command(team.home, "skills", "list", "--tenant", name).returncode != 0
    assert sorted(each.name for each in (team.home / "tenants").iterdir() if each.is_dir()) == ["acme", "acme-2"]


def test_commands_work_on_one_tenant_alone(team: Team) -> None:
    for group in (
        ("skills", "list"),
        ("runs", "list", "--limit", "9999"),
        ("approvals", "list"),
        ("pii", "audit"),
        ("status", "--json"),
    ):
        own = command(team.home, *group, "--tenant", "acme", "--json")
        assert own.returncode == 0, own.stderr
        looks_everywhere = group[0] in {"runs", "approvals", "status"}
        for elsewhere in (["--tenant", "acme-2"], ["--tenant", "default"], *([] if looks_everywhere else [[]])):
            shown = command(team.home, *group, *elsewhere, "--json")
            assert shown.returncode == 0, shown.stderr
            assert CANARY not in shown.stdout
            assert team.run_id not in shown.stdout
    assert CANARY in command(team.home, "skills", "list", "--tenant", "acme", "--json").stdout
    assert team.run_id in command(team.home, "runs", "list", "--limit", "9999", "--tenant", "acme", "--json").stdout


def test_an_operator_finds_a_run_without_naming_its_tenant(team: Team) -> None:
    for words in (["list", "--limit", "9999"], ["list", "--who", "alice", "--limit", "9999"]):
        runs = json.loads(command(team.home, "runs", *words, "--json").stdout)["runs"]
        (found,) = [each for each in runs if each["run_id"] == team.run_id]
        assert (found["tenant"], found["who"]) == ("acme", "alice")
        assert found["code"].startswith("print('[SECRET_")
    assert {each["tenant"] for each in runs} == {"acme", "acme-2"}
    assert f"run {team.run_id} of acme/alice: ok" in command(team.home, "runs", "show", team.run_id).stdout
    assert command(team.home, "runs", "show", team.run_id, "--tenant", "acme-2").returncode != 0
