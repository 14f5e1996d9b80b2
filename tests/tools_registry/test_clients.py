"""Servers of other clients: every file and shape of the table, and no secret copied in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.clients.importing import ImportAction, ImportPlan, plan
from sealab.tools_registry.clients.secrets import Concealer
from sealab.tools_registry.errors import ConfigurationRefused

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "user"


def found(user: Path, **more: Any) -> ImportPlan:
    return plan(more.pop("present", {}), user, user.parent / "project", more.pop("environment", {}), **more)


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("client", "file", "content", "entry"),
    [
        ("claude-desktop", "user/.config/Claude/claude_desktop_config.json", {"mcpServers": {"s": TIME}}, TIME),
        ("claude-desktop", "user/Library/Application Support/Claude/claude_desktop_config.json", {"mcpServers": {"s": TIME}}, TIME),
        ("claude-desktop", "user/AppData/Roaming/Claude/claude_desktop_config.json", {"mcpServers": {"s": TIME}}, TIME),
        (
            "claude-code", "project/.mcp.json",
            {"mcpServers": {"s": {"type": "http", "url": "${BASE:-https://x.example}/mcp", "headers": {"X": "${X:-1}"}}}},
            {"type": "http", "url": "${BASE:-https://x.example}/mcp", "headers": {"X": "${X:-1}"}},
        ),
        ("claude-code", "user/.claude.json", {"projects": {"/p": {"mcpServers": {"s": {"type": "stdio", **TIME}}}}}, TIME),
        ("cursor", "user/.cursor/mcp.json", {"mcpServers": {"s": {**TIME, "env": {"A": "${env:A}"}}}}, {**TIME, "env": {"A": "${A}"}}),
        ("cursor", "project/.cursor/mcp.json", {"mcpServers": {"s": {"url": "https://x.example/sse"}}}, {"type": "sse", "url": "https://x.example/sse"}),
        (
            "vscode", "project/.vscode/mcp.json",
            '{// a comment\n"inputs": [], "servers": {"s": {"type": "sse", "url": "https://x.example/sse", "headers": {"K": "${input:my-key}"},},},}',
            {"type": "sse", "url": "https://x.example/sse", "headers": {"K": "${S_MY_KEY}"}},
        ),
        ("copilot", "user/.copilot/mcp-config.json", {"mcpServers": {"s": {"type": "local", **TIME, "tools": ["*"]}}}, TIME),
        ("windsurf", "user/.codeium/windsurf/mcp_config.json", {"mcpServers": {"s": {"serverUrl": "https://x.example/mcp"}}}, {"type": "http", "url": "https://x.example/mcp"}),
        ("devin", "user/.config/devin/mcp_config.json", {"mcpServers": {"s": {"transport": "sse", "serverUrl": "https://x.example/s"}}}, {"type": "sse", "url": "https://x.example/s"}),
        ("zed", "user/.config/zed/settings.json", '{"theme": "x", /* c */ "context_servers": {"s": {"command": {"path": "uvx", "args": ["mcp-server-time"], "env": {"A": "b"}}}}}', {**TIME, "env": {"A": "b"}}),
        ("zed", "user/.config/zed/settings.json", {"context_servers": {"s": {"source": "custom", "enabled": False, **TIME}}}, {**TIME, "disabled": True}),
        ("gemini", "user/.gemini/settings.json", {"mcpServers": {"s": {"httpUrl": "https://x.example/mcp", "headers": {"K": "$KEY"}, "timeout": 5000}}}, {"type": "http", "url": "https://x.example/mcp", "headers": {"K": "${KEY}"}, "call_timeout_seconds": 5.0}),
        ("gemini", "user/.gemini/settings.json", {"mcpServers": {"s": {"url": "https://x.example/e", "excludeTools": ["rm"]}}}, {"type": "sse", "url": "https://x.example/e", "deny": ["rm"]}),
        ("codex", "user/.codex/config.toml", '[mcp_servers.s]\nurl = "https://x.example/mcp"\nbearer_token_env_var = "TOK"\n', {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOK}"}}),
        ("codex", "project/.codex/config.toml", '[mcp_servers.s]\ncommand = "uvx"\nargs = ["mcp-server-time"]\nenv_vars = ["TZ"]\nenabled_tools = ["a"]\ntool_timeout_sec = 9\n', {**TIME, "env": {"TZ": "${TZ}"}, "allow": ["a"], "call_timeout_seconds": 9}),
        ("opencode", "user/.config/opencode/opencode.jsonc", '{"mcp": {"servers": {"s": {"type": "local", "command": ["uvx", "mcp-server-time"], "environment": {"A": "{env:A}"}}}}} // end', {**TIME, "env": {"A": "${A}"}}),
        ("opencode", "project/opencode.json", {"mcp": {"s": {"type": "remote", "url": "https://x.example/mcp", "enabled": False}}}, {"type": "http", "url": "https://x.example/mcp", "disabled": True}),
        ("kiro", "user/.kiro/settings/mcp.json", {"mcpServers": {"s": {**TIME, "autoApprove": ["x"], "disabled": True}}}, {**TIME, "disabled": True}),
        ("goose", "user/.config/goose/config.yaml", "GOOSE_MODEL: x\nextensions:\n  s:\n    type: stdio\n    cmd: uvx\n    args: [mcp-server-time]\n    envs: {A: b}\n    timeout: 300\n", {**TIME, "env": {"A": "b"}, "call_timeout_seconds": 300}),
        ("goose", "user/.config/goose/config.yaml", "extensions:\n  s: {type: streamable_http, uri: 'https://x.example/mcp'}\n", {"type": "http", "url": "https://x.example/mcp"}),
        ("mcp", "user/.config/mcp/servers/any.json", {"mcpServers": {"s": TIME}}, TIME),
        ("mcp", "user/MCPs/any.json", {"mcpServers": {"s": TIME}}, TIME),
        ("mcp", "project/mcp-servers/any.json", {"mcpServers": {"s": TIME}}, TIME),
        ("mcp", "project/mcp_config.json", {"mcpServers": {"s": TIME}}, TIME),
        ("mcp", "project/claude_code_config.json", {"mcpServers": {"s": TIME}}, TIME),
    ],
)  # fmt: skip
def test_every_file_of_every_client_is_read(
    user: Path, client: str, file: str, content: object, entry: dict[str, object]
) -> None:
    write(user.parent / file, content)
    result = found(user)
    assert result.problems == ()
    assert [(each.name, each.client, each.file) for each in result.found] == [("s", client, user.parent / file)]
    assert result.added == {"s": entry}
    assert found(user, only=[client]).added == {"s": entry}
    assert found(user, only=["kiro" if client != "kiro" else "zed"]).found == ()


def test_what_is_there_already_is_not_added_and_what_differs_is_not_overwritten(user: Path) -> None:
    write(user / ".cursor" / "mcp.json", {"mcpServers": {"a": TIME, "b": TIME, "c": TIME}})
    write(user / ".kiro" / "settings" / "mcp.json", {"mcpServers": {"a": TIME, "c": {"command": "other"}}})
    result = found(user, present={"b": {"command": "mine"}})
    assert [(each.name, each.client, each.action.value) for each in result.found] == [
        ("a", "cursor", "add"), ("b", "cursor", "clash"), ("c", "cursor", "add"), ("a", "kiro", "same"),
        ("c", "kiro", "clash"),
    ]  # fmt: skip
    assert result.added == {"a": TIME, "c": TIME}


def test_a_file_that_cannot_be_read_and_entries_that_are_no_servers_are_told_and_the_rest_is_found(user: Path) -> None:
    write(user / ".cursor" / "mcp.json", "{broken")
    write(user / ".codex" / "config.toml", "[mcp_servers\n")
    write(user / ".config" / "goose" / "config.yaml", "a: [b\n")
    write(
        user / ".gemini" / "settings.json",
        {"mcpServers": {"ok": TIME, "bad": 7, "none": {}, "args": {"command": "x", "args": "y"}}},
    )
    result = found(user)
    assert sorted(path.name for path, _ in result.problems) == ["config.toml", "config.yaml", "mcp.json"]
    assert [(each.name, each.action) for each in result.found] == [
        ("ok", ImportAction.ADD), ("bad", ImportAction.UNUSABLE), ("none", ImportAction.UNUSABLE), ("args", ImportAction.UNUSABLE),
    ]  # fmt: skip
    with pytest.raises(ConfigurationRefused, match="not a known client"):
        found(user, only=["nope"])


@pytest.mark.parametrize(
    ("entry", "concealed", "where"),
    [
        ({"env": {"GITHUB_TOKEN": "abc", "DEBUG": "1"}}, {"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "DEBUG": "1"}}, ["env.GITHUB_TOKEN"]),
        ({"env": {"API_KEY": "abc"}}, {"env": {"API_KEY": "${S_API_KEY}"}}, ["env.API_KEY"]),
        ({"env": {"X": "ghp_abcdefghijklmnopqrstuvwxyz0123"}}, {"env": {"X": "${X}"}}, ["env.X"]),
        ({"env": {"TOKEN": "${TOKEN}", "KEY": "${K:-}", "AUTH": "Bearer ${T}"}}, {"env": {"TOKEN": "${TOKEN}", "KEY": "${K:-}", "AUTH": "Bearer ${T}"}}, []),
        ({"env": {"DB": "postgres://me:hunter2@h/d"}}, {"env": {"DB": "postgres://me:${S_PASSWORD}@h/d"}}, ["env.DB"]),
        ({"headers": {"Authorization": "Bearer abc"}}, {"headers": {"Authorization": "Bearer ${S_AUTHORIZATION}"}}, ["headers.Authorization"]),
        ({"headers": {"X-API-Key": "abc", "Accept": "text/plain"}}, {"headers": {"X-API-Key": "${X_API_KEY}", "Accept": "text/plain"}}, ["headers.X-API-Key"]),
        ({"args": ["--api-key", "abc", "-v"]}, {"args": ["--api-key", "${S_API_KEY}", "-v"]}, ["args[1]"]),
        ({"args": ["--access-token=abc"]}, {"args": ["--access-token=${ACCESS_TOKEN}"]}, ["args[0]"]),
        ({"args": ["-e", "STRIPE_SECRET=abc"]}, {"args": ["-e", "STRIPE_SECRET=${STRIPE_SECRET}"]}, ["args[1]"]),
        ({"args": ["--header", "Authorization: Bearer abc"]}, {"args": ["--header", "Authorization: Bearer ${S_AUTHORIZATION}"]}, ["args[1]"]),
        ({"args": ["sk-proj-abcdefghijklmnop1234"]}, {"args": ["${S_ARGUMENT}"]}, ["args[0]"]),
        ({"url": "https://h/mcp?api_key=abc&x=1"}, {"url": "https://h/mcp?api_key=${S_API_KEY}&x=1"}, ["url"]),
        ({"url": "https://h/s/Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z/mcp"}, {"url": "https://h/s/${S_URL}/mcp"}, ["url"]),
        ({"args": ["-y", "@scope/server", "/Users/Someone/Projects/Folder2/AnotherFolder3"], "env": {"PATH": "/usr/bin:/bin"}},) * 2 + ([],),
    ],
)  # fmt: skip
def test_secrets_give_way_to_variables_and_what_is_none_stays(
    entry: dict[str, object], concealed: dict[str, object], where: list[str]
) -> None:
    result, secrets = Concealer({}).conceal("s", entry)
    assert result == concealed
    assert [secret.where for secret in secrets] == where
    assert "abc" not in repr(secrets)


def test_a_variable_holds_one_value_and_belongs_to_one_server_even_where_two_have_the_same_secret(user: Path) -> None:
    servers = {
        "one": {"command": "a", "env": {"X_TOKEN": "first"}},
        "two": {"command": "a", "env": {"X_TOKEN": "second"}},
        "three": {"command": "a", "args": ["--key=mine"], "env": {"X_TOKEN": "first", "Y_TOKEN": "mine"}},
    }
    write(user / ".cursor" / "mcp.json", {"mcpServers": servers})
    result = found(user, environment={"Y_TOKEN": "not mine"})
    assert result.added == {
        "one": {"command": "a", "env": {"X_TOKEN": "${X_TOKEN}"}},
        "two": {"command": "a", "env": {"X_TOKEN": "${TWO_X_TOKEN}"}},
        "three": {
            "command": "a",
            "args": ["--key=${THREE_Y_TOKEN}"],
            "env": {"X_TOKEN": "${THREE_X_TOKEN}", "Y_TOKEN": "${THREE_Y_TOKEN}"},
        },
    }
    copied = found(user, copy_secrets=True)
    assert copied.added == servers
    assert [secret.where for secret in copied.found[0].secrets] == ["env.X_TOKEN"]
    assert "first" not in json.dumps([each.shown for each in copied.found])


@given(
    st.sampled_from(["env", "headers"]),
    st.sampled_from(["API_KEY", "Authorization", "SLACK_TOKEN", "db-password"]),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=40),
)
def test_no_value_beside_a_telling_name_is_copied(group: str, name: str, value: str) -> None:
    result, secrets = Concealer({}).conceal("server", {group: {name: value}})
    assert [secret.value for secret in secrets] == [value]
    assert result == {group: {name: f"${{{secrets[0].variable}}}"}}
