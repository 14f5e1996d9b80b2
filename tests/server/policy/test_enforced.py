"""What a policy permits and refuses in a real server: runs, calls, searches and personal data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError

from ...waiting import until
from ..audit.test_audited_requests import lines
from ..command_line import sealab
from ..conftest import Caller, http_server, in_this_process
from ..upstream_tools.test_approvals import User, yes
from ..upstream_tools.test_registry import ONE_SPARE, configure, error, result, upstream

POLICY = """
@id("short-runs")
permit(principal in Tenant::"default", action == Action::"run", resource == Isolation::"restricted")
when { context.timeout_seconds <= 60 && context.memory_mb <= 600 };

@id("no-sessions") forbid(principal, action == Action::"run", resource) when { context.session };
@id("no-background") forbid(principal, action == Action::"run", resource) when { context.background };

@id("reading") permit(principal, action == Action::"call", resource in Server::"up") when { !resource.writes };
@id("texts") @approval("always") permit(principal, action == Action::"call", resource == Tool::"up.as_text");
@id("no-people") forbid(principal, action == Action::"call", resource) when { resource.name like "peopl*" };
"""
MAIL = "jane.roe@corp.example"
TOKENS = {"SEALAB_PRIVACY_MODE": "fast"}


def with_policy(home: Path, policy: str = POLICY) -> dict[str, str]:
    (home / "team.cedar").write_text(policy)
    return {"SEALAB_POLICY": "team.cedar", "SEALAB_ALLOWED_ISOLATION": "restricted,process", **ONE_SPARE}


@asynccontextmanager
async def governed(
    home: Path, policy: str = POLICY, env: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Caller]:
    async with in_this_process(home, with_policy(home, policy) | (env or {}), **options) as caller:
        yield caller


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    """A client that cannot ask its user, of a server with a policy, one upstream and one hidden upstream."""
    home = tmp_path_factory.mktemp("home")
    configure(home, up=upstream(approve="never"), other=upstream(approve="never"))
    async with governed(home) as caller:
        yield caller


async def test_what_it_permits_runs(caller: Caller) -> None:
    assert await result(caller, "1 + 1", timeout_seconds=60, memory_mb=600) == 2


async def test_what_it_does_not_permit_does_not_run(caller: Caller) -> None:
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"timeout_seconds": 61}, "restricted, for 61 s with 500 MB: no rule permits it"),
        ({"timeout_seconds": 60.5}, "no rule permits it"),
        ({"memory_mb": 601}, "no rule permits it"),
        ({"isolation": "process"}, "the isolation process"),
        ({"session": "own"}, "by the rule no-sessions"),
        ({"background": True}, "by the rule no-background"),
    ]
    for arguments, why in refusals:
        refusal = await caller.refusal("execute_code", code="1 + 1", **arguments)
        assert refusal.startswith("The policy refuses to run code at the isolation "), arguments
        assert why in refusal, arguments
        assert "ask the operator to change the policy" in refusal, arguments
        assert "context." not in refusal, arguments


async def test_skills_and_their_tests_run_by_the_same_rules(caller: Caller) -> None:
    code = 'def double(n: int) -> int:\n    """Double it.\n\n    >>> double(2)\n    4\n    """\n    return 2 * n'
    assert not (await caller.call("save_skill", name="double", code=code)).is_error
    assert (await caller.call("run_skill", name="double", arguments={"n": 4})).structured_content["result"] == 8  # type: ignore[index]
    assert "no rule permits it" in await caller.refusal(
        "run_skill", name="double", arguments={"n": 4}, timeout_seconds=90
    )


async def test_a_permitted_tool_is_called_and_the_others_are_refused_by_the_name_of_a_rule(caller: Caller) -> None:
    assert await result(caller, "await tools.up.add(left=1)") == 2
    for call, name in [
        ("tools.up.people(1)", "up.people"),
        ("tools.up.append(path='/nowhere/x', line='y')", "up.append"),
        ("call_tool('up.pe' + 'ople', {'number': 1})", "up.people"),
        ("call_tool('o' + 'ther.people', {'number': 1})", "other.people"),
    ]:
        failed = await error(caller, f"await {call}")
        assert failed["type"] == "ToolError", failed
        assert "There is no " in failed["message"]
        assert "What the policy does not let you call is not shown." in failed["message"]
        assert "rule" not in failed["message"]
        assert name.partition(".")[2] not in failed["message"].replace(name, "")

    async def are_noted() -> bool:  # the lines are written behind the calls
        told = await asyncio.to_thread(lines, caller.home)
        refused = {(each["tool"], each["rule"]) for each in told if each.get("decision") == "refused"}
        others = {tool for tool, _ in refused if tool.startswith("other.")}
        return ("up.people", "policy: no-people") in refused and bool(others)

    await until(are_noted)


async def test_a_program_with_a_call_that_is_refused_calls_nothing(caller: Caller, tmp_path: Path) -> None:
    report = await caller.run("await tools.up.add(left=1)\nawait tools.up.people(1)")
    assert "There is no tool 'up.people'" in report["error"]["message"]
    assert not [each for each in report.get("tool_calls", []) if each["tool"] == "up.people" and each["ok"]]


async def test_search_and_lists_show_what_may_be_called_alone(caller: Caller) -> None:
    found = await caller.told("search_tools", query="add two numbers people append", limit=50)
    names = {f"{tool['server']}.{tool['name']}" for tool in found["tools"]}
    assert "up.add" in names
    assert not {name for name in names if name.startswith("other.")}
    assert not names & {"up.people", "up.append", "up.silent_about_itself"}
    whole = await caller.told("search_tools", query="", category="up")
    categories = await caller.told("list_tool_categories")
    assert categories["servers"] == ["up"]
    assert "other" not in categories["categories"]
    assert categories["categories"]["up"]["tool_count"] == whole["count"] == categories["total_tools"]
    refusal = await caller.refusal("get_tool_definition", tool_name="up.people")
    assert refusal.startswith("There is no tool 'up.people'.")
    assert "people" not in (await caller.refusal("get_tool_definition", tool_name="up.peopl"))
    in_code = await result(
        caller,
        "servers = [each['name'] for each in list_servers()]\n"
        "[servers, [each['name'] for each in search_tools('people append', limit=50)['tools']]]",
    )
    assert in_code[0] == ["up"]
    assert not {"people", "append"} & set(in_code[1])
    unknown = await error(caller, "await tools.up.peopel(1)")
    assert "people" not in unknown["message"].replace("up.peopel", "").replace("'up.peopel'", "")


async def test_the_description_of_the_tool_names_no_hidden_server(caller: Caller) -> None:
    await caller.call("list_tool_categories")
    tools = (await caller.client.list_tools()).tools
    [described] = [tool.description for tool in tools if tool.name == "execute_code"]
    assert described is not None
    assert "Servers: up" in described
    assert "other" not in described.partition("Servers: ")[2]


async def test_an_approval_of_the_policy_is_asked_for_where_mcp_json_asks_for_none(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(approve="never"))
    user = User([yes()])
    async with governed(tmp_path, elicitation_callback=user) as caller:
        assert await result(caller, "await tools.up.as_text()") == "just text"
        assert await result(caller, "await tools.up.add(left=1)") == 2
        told = (await caller.call("search_tools", query="as text", limit=1)).structured_content
    assert told is not None
    assert (told["tools"][0]["name"], told["tools"][0]["needs_approval"]) == ("as_text", True)
    [question] = user.asked
    assert "up.as_text is one that is always asked about." in question


async def test_mcp_json_stays_the_upper_bound(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(deny=["as_text"]))
    everything = "permit(principal, action, resource);"
    async with governed(tmp_path, everything) as caller:
        assert "does not allow up.as_text" in (await error(caller, "await tools.up.as_text()"))["message"]
        failed = await error(caller, "await tools.up.append(path='/nowhere/x', line='y')")
        assert "a user has to approve" in failed["message"]


async def test_values_go_where_the_policy_lets_them(tmp_path: Path) -> None:
    policy = """
    permit(principal, action == Action::"run", resource);
    @id("mails") permit(principal, action == Action::"restore", resource == PersonalDataType::"EMAIL")
    when { context.destination == "model" };
    @id("no-cards") forbid(principal, action == Action::"restore", resource == PersonalDataType::"CARD");
    """
    async with governed(tmp_path, policy, TOKENS) as caller:

        async def token_of(text: str) -> str:
            hidden = await caller.told("sanitize_pii", text=text)
            return str(hidden["sanitized_text"])

        mail, card = await token_of(MAIL), await token_of("4111 1111 1111 1111")
        shown = await caller.told("restore_pii", text=mail)
        assert shown["restored_text"] == MAIL
        refusal = await caller.refusal("restore_pii", text=f"{mail} {card}")
        assert refusal.startswith("The policy does not let values go to the model: CARD (by the rule no-cards).")
        failed = await error(caller, f"restore_pii({mail!r})")
        assert failed["type"] == "PermissionError"
        assert "The policy does not let values go to the code: EMAIL (no rule permits it)." in failed["message"]
    refused = [each for each in lines(tmp_path) if each["event"] == "privacy.refused"]
    assert [(each["rule"], each["decision"], each["details"]) for each in refused] == [
        ("policy: no-cards", "refused", {"to": "model", "CARD": 1}),
        ("policy: no rule", "refused", {"to": "code", "EMAIL": 1}),
    ]


async def test_under_auto_tools_and_files_get_what_the_policy_gives_them(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(approve="never"))
    policy = """
    permit(principal, action == Action::"run", resource);
    permit(principal, action == Action::"call", resource);
    @id("to-tools") permit(principal, action == Action::"restore", resource == PersonalDataType::"EMAIL")
    when { context.destination == "tool" && context.tool == "append" && context.argument == "line" };
    """
    auto = {**TOKENS, "SEALAB_PRIVACY": "auto"}
    got = tmp_path / "got"
    async with governed(tmp_path, policy, auto) as caller:
        (tmp_path / "workspace" / "in.txt").write_text(f"mail: {MAIL}\n")
        shown = await caller.told("read_workspace_file", filename="in.txt")
        token = shown["content"].removeprefix("mail: ").strip()
        assert token.startswith("[EMAIL_")
        report = await caller.run(f"await tools.up.append(path={str(got)!r}, line={token!r})")
        assert report["error"] is None, report["error"]
        assert report["privacy"]["withheld"] == {"EMAIL": 1}
        assert MAIL in got.read_text()
        failed = await error(caller, f"await tools.up.fail(reason={token!r})")
        assert "up.fail was not called: it may not have [EMAIL_" in failed["message"]
        assert "the policy refuses EMAIL (no rule permits it)" in failed["message"]
        failed = await error(caller, f"write_file('out.txt', {token!r})")
        assert "The policy does not let values go to the file: EMAIL (no rule permits it)." in failed["message"]
        with pytest.raises(MCPError, match="The policy does not let values go to the file"):
            await caller.call("write_workspace_file", filename="out.txt", content=token)
        assert not (tmp_path / "workspace" / "out.txt").exists()
    refused = [each for each in lines(tmp_path) if each["event"] == "privacy.refused"]
    assert [(each["tool"], each["rule"], each["details"]) for each in refused] == [
        ("up.fail", "policy: no rule", {"to": "tool", "EMAIL": 1}),
        ("", "policy: no rule", {"to": "workspace", "EMAIL": 1}),
        ("", "policy: no rule", {"to": "workspace", "EMAIL": 1}),
    ]


async def test_a_new_version_holds_in_a_running_server_and_a_broken_or_missing_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "team.cedar"
    with http_server(tmp_path, **with_policy(tmp_path)) as url:
        ready = url.replace("/mcp", "/readyz")

        def told() -> dict[str, Any]:
            return dict(httpx2.get(ready).json())

        async with Client(url, read_timeout_seconds=200) as client:
            caller = Caller(client, tmp_path)
            assert await result(caller, "1") == 1
            file.write_text("permit(")
            await until(lambda: "warning" in told())
            assert told()["ready"] is True
            assert "one before stays in force" in told()["warning"]
            assert str(tmp_path) not in str(told())
            assert await result(caller, "1") == 1
            file.unlink()
            await until(lambda: not told()["ready"])
            assert "The policy is gone" in told()["reason"]
            assert "the file or folder of the policy is not there" in await caller.refusal("execute_code", code="1")
            file.write_text(POLICY)
            await until(lambda: told() == {"ready": True})
            assert await result(caller, "1") == 1


def test_commands_that_run_code_ask_it_too_and_a_broken_one_stops_the_start(tmp_path: Path) -> None:
    env = with_policy(tmp_path)
    refusal = sealab("run", "-", "--home", str(tmp_path), "--timeout", "61", stdin="1 + 1", **env).refusal(3)
    assert "no rule permits it" in refusal
    (tmp_path / "team.cedar").write_text("\n\npermit(principal action, resource);")
    refusal = sealab("run", "-", "--home", str(tmp_path), stdin="1 + 1", **env).refusal()
    assert "team.cedar:3: this is no rule: unexpected token `action`" in refusal
    doctor = sealab("doctor", "--home", str(tmp_path), **env)
    assert "not usable" in doctor.stdout
    assert "team.cedar:3" in doctor.stdout


ASKED = (
    ("search_tools", {"query": "add two numbers", "limit": 20}),
    ("search_tools", {"query": "other add weird_word"}),
    ("search_tools", {"query": "", "category": "other"}),
    ("get_tool_definition", {"tool_name": "other.add"}),
    ("get_tool_definition", {"tool_name": "add"}),
    ("get_tool_definition", {"tool_name": "people"}),
    ("get_tool_definition", {"tool_name": "add", "category": "other"}),
    ("list_tool_categories", {}),
)
IN_CODE = (
    "[{**each, 'since': None} for each in list_servers()]",
    "await call_tool('a' + 'dd', {'left': 1})",
    "await call_tool('other.' + 'add', {'left': 1})",
    "await call_tool('other.' + 'nothing', {'left': 1})",
    "await call_tool('others.' + 'add', {'left': 1})",
    "await tools.other.add(left=1)",
    "await tools.other.nothing()",
    "sorted(name for name in dir(tools) if not name.startswith('_'))",
    "other.add(left=1)",
    "import other",
    "read_resource('other', 'x://y')",
    "list_resources('other')",
    "list_prompts('other')",
    "from mcp import runtime\nawait runtime.describe_server('other')",
    "from mcp import runtime\nawait runtime.capability_summary()",
    "get_tool_definition('other.add')",
    "save_skill('calls_it', 'async def calls_it():\\n    return await call_tool(\"other.add\", {})')['warnings']",
)


async def test_nothing_that_a_caller_is_told_depends_on_a_server_that_the_policy_hides(tmp_path: Path) -> None:
    told: list[dict[str, object]] = []
    for name, servers in (("with", ("up", "other", "another")), ("without", ("up",))):
        home = tmp_path / name
        home.mkdir()
        configure(home, **{each: upstream(approve="never") for each in servers})
        (home / "tools" / "other").mkdir(parents=True)
        if "other" in servers:
            (home / "tools" / "other" / "wrong.json").write_text("{")
        found: dict[str, object] = {}
        async with governed(home) as caller:
            await caller.call("search_tools", query="to have all servers asked")
            await until(partial(_have_listed, home, len(servers)))
            for tool, arguments in ASKED:
                answer = await caller.call(tool, **arguments)
                found[f"{tool} {arguments}"] = answer.structured_content or answer.content[0].text  # type: ignore[union-attr]
            for code in IN_CODE:
                report = await caller.run(code)
                found[code] = (report["error"] and report["error"]["message"]) or report.get("result")
            statistics = await caller.told("get_execution_stats")
            found["statistics"] = {key: statistics["registry"][key] for key in ("servers", "tools", "categories")}
        told.append(found)
    differs = {key: (told[0][key], told[1][key]) for key in told[0] if told[0][key] != told[1][key]}
    assert not differs


def _have_listed(home: Path, servers: int) -> bool:
    return len([*(home / "registry" / "lists").glob("*.json")]) == servers


async def test_in_place_of_a_tool_that_the_policy_refuses_no_other_write_is_suggested(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream(approve="writes"))
    policy = POLICY + 'permit(principal, action == Action::"call", resource == Tool::"up.append");'
    async with governed(tmp_path, policy) as caller:
        refused = await error(caller, "await tools.up.appends(path='/nowhere/x', line='x')")
        told = await error(caller, "await tools.up.ad(left=1)")
    assert "up.append" not in refused["message"].replace("'up.appends'", "").replace('"up.appends"', "")
    assert "The nearest that only read are up.add" in told["message"]
