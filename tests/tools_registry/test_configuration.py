from __future__ import annotations

import errno
import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry import configuration
from sealab.tools_registry.configuration import Approve, Transport, read_server
from sealab.tools_registry.errors import ConfigurationRefused, ServerUnknown, ServerUnusable
from sealab.tools_registry.models import Tool

EXCHANGE = {"token_endpoint": "https://i/token", "audience": "a"}


def written(folder: Path, servers: object) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def problem(folder: Path, entry: object, environment: dict[str, str] | None = None) -> str:
    """Read one bad server beside a good one, which must stay usable; return what is said of the bad one."""
    read = configuration.read(written(folder, {"bad": entry, "good": {"command": "x"}}), environment or {})
    assert list(read.servers) == ["good"]
    with pytest.raises(ServerUnusable) as raised:
        read.server("bad")
    assert raised.value.for_operator == read.problems["bad"] != str(raised.value)
    assert "mcp.json" in read.problems["bad"]
    assert "'bad'" in read.problems["bad"]
    return read.problems["bad"]


def test_a_missing_or_empty_file_is_an_empty_configuration(tmp_path):
    assert configuration.read(tmp_path / "mcp.json", {}).servers == {}
    (tmp_path / "mcp.json").write_text("")
    assert configuration.read(tmp_path / "mcp.json", {}).servers == {}


def test_every_key_is_read(tmp_path):
    file = written(
        tmp_path,
        {
            "git": {
                "command": "uvx",
                "args": ["mcp-server-git", 3],
                "env": {"A": "b"},
                "cwd": "/srv",
                "category": "code",
                "connect_timeout_seconds": 5,
                "call_timeout_seconds": 7.5,
                "idle_seconds": 9,
                "allow": ["git_*"],
                "deny": ["git_push"],
                "approve": "always",
                "restore": {"allow": ["EMAIL"]},
                "autoApprove": ["another client's"],
            },
            "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}, "disabled": True},
        },
    )
    read = configuration.read(file, {})
    git = read.server("git")
    assert (git.type, git.command, git.args, git.env, git.cwd) == (
        Transport.STDIO,
        "uvx",
        ("mcp-server-git", "3"),
        {"A": "b"},
        "/srv",
    )
    assert (git.connect_timeout_seconds, git.call_timeout_seconds, git.idle_seconds) == (5, 7.5, 9)
    assert (git.category, git.approve, git.restore) == ("code", Approve.ALWAYS, {"allow": ["EMAIL"]})
    web = read.servers["web"]
    assert (web.type, web.url, web.headers, web.approve) == (
        Transport.HTTP,
        "https://example.com/mcp",
        {"Authorization": "Bearer x"},
        Approve.WRITES,
    )
    assert list(read.enabled) == ["git"]


@pytest.mark.parametrize(
    ("tool", "said", "only_reads"),
    [
        ("get_x", None, True),
        ("get_x", False, True),
        ("get_and_set", True, False),
        ("x", None, False),
        ("x", True, True),
    ],
)
def test_the_operators_word_goes_before_the_servers_and_writes_before_reads(tmp_path, tool, said, only_reads):
    file = written(tmp_path, {"s": {"command": "x", "reads": ["get_*"], "writes": ["*_set"]}})
    annotations = {} if said is None else {"readOnlyHint": said}
    server = configuration.read(file, {}).server("s")
    assert server.only_reads(Tool(tool, "s", "s", annotations=annotations)) is only_reads


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"command": "x"}, Transport.STDIO),
        ({"url": "http://h/mcp"}, Transport.HTTP),
        ({"url": "http://h/sse"}, Transport.SSE),
        ({"url": "http://h/sse", "type": "http"}, Transport.HTTP),
        ({"url": "http://h/x", "type": "sse"}, Transport.SSE),
        ({"url": "http://h/x", "type": "streamable-http"}, Transport.HTTP),
        ({"url": "http://h/x", "type": "streamableHttp"}, Transport.HTTP),
        ({"url": "http://h/x", "command": "x", "type": "stdio"}, Transport.STDIO),
    ],
)
def test_the_transport_is_what_type_says_or_what_the_entry_shows(tmp_path, entry, kind):
    assert configuration.read(written(tmp_path, {"s": entry}), {}).server("s").type is kind


@pytest.mark.parametrize(
    ("tool", "permitted"), [("git_log", True), ("git_push", False), ("other", False), ("GIT_LOG", False)]
)
def test_deny_wins_over_allow(tmp_path, tool, permitted):
    file = written(tmp_path, {"s": {"command": "x", "allow": ["git_*"], "deny": ["*push"]}})
    assert configuration.read(file, {}).server("s").permits(tool) is permitted


def test_an_empty_allow_list_permits_nothing_and_none_permits_all(tmp_path):
    read = configuration.read(written(tmp_path, {"a": {"command": "x", "allow": []}, "b": {"command": "x"}}), {})
    assert not read.server("a").permits("t")
    assert read.server("b").permits("t")


def test_variables_are_expanded_wherever_the_contract_says(tmp_path):
    file = written(
        tmp_path,
        {
            "a": {
                "command": "${BIN}/x",
                "args": ["--key=${KEY}", "${MISSING:-none}", "${EMPTY:-else}", "${MISSING:-}", "$KEY"],
                "env": {"K": "${KEY}${KEY}"},
                "cwd": "${BIN}",
            },
            "b": {"url": "${URL:-http://h/mcp}", "headers": {"X-Key": "k-${env:KEY}"}},
        },
    )
    read = configuration.read(file, {"BIN": "/bin", "KEY": "${BIN}", "EMPTY": ""})
    a, b = read.server("a"), read.server("b")
    assert a.command == "/bin/x"
    assert a.args == ("--key=${BIN}", "none", "else", "", "$KEY")
    assert a.env == {"K": "${BIN}${BIN}"}
    assert a.cwd == "/bin"
    assert (b.url, b.headers) == ("http://h/mcp", {"X-Key": "k-${BIN}"})


def test_an_unset_variable_makes_its_server_alone_unusable(tmp_path):
    said = problem(tmp_path, {"command": "x", "env": {"TOKEN": "${NOT_THERE}"}})
    assert "NOT_THERE" in said
    assert "env.TOKEN" in said


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({}, "neither a command nor a url"),
        ("x", "is not an object"),
        ({"command": "x", "url": "http://h"}, "a command and a url"),
        ({"command": ["x"]}, "'command'"),
        ({"command": " "}, "'command'"),
        ({"command": "x", "args": "a b"}, "'args'"),
        ({"command": "x", "args": [None]}, "'args'"),
        ({"command": "x", "env": ["A=b"]}, "'env'"),
        ({"command": "x", "env": {"A": {}}}, "env.A"),
        ({"command": "x", "args": ["${not a name}"]}, "not a name"),
        ({"url": "ftp://h/x"}, "'url'"),
        ({"url": "http://"}, "'url'"),
        ({"url": "http://h:port/x"}, "'url'"),
        ({"url": "http://h/x", "headers": {"X Y": "z"}}, "headers.X Y"),
        ({"url": "http://h/x", "headers": {"X": "a\r\nEvil: b"}}, "headers.X"),
        ({"url": "http://h/x", "type": "websocket"}, "'type'"),
        ({"url": "http://h/x", "type": "stdio"}, "'command'"),
        ({"command": "x", "disabled": "yes"}, "'disabled'"),
        ({"command": "x", "connect_timeout_seconds": 0}, "connect_timeout_seconds"),
        ({"command": "x", "call_timeout_seconds": "5"}, "call_timeout_seconds"),
        ({"command": "x", "call_timeout_seconds": True}, "call_timeout_seconds"),
        ({"command": "x", "idle_seconds": 10**400}, "idle_seconds"),
        ({"command": "x", "max_connections": 2}, "reached by HTTP"),
        ({"url": "http://x/mcp", "max_connections": 0}, "max_connections"),
        ({"url": "http://x/mcp", "max_connections": True}, "max_connections"),
        ({"command": "x", "idle_seconds": float("inf")}, "idle_seconds"),
        ({"command": "x", "idle_seconds": float("nan")}, "idle_seconds"),
        ({"command": "x", "allow": "git_*"}, "'allow'"),
        ({"command": "x", "deny": [1]}, "'deny'"),
        ({"command": "x", "approve": "sometimes"}, "never, writes, always"),
        ({"command": "x", "restore": 5}, "'restore'"),
        ({"command": "x", "category": 5.5, "Deny": ["*"]}, "'deny'"),
        ({"command": "x", "denny": ["*"]}, "'deny'"),
        ({"command": "x", "aprove": "always"}, "'approve'"),
        ({"url": "http://h/x", "sign_in": "mine"}, "operator, tenant, caller"),
        ({"url": "http://h/x", "sign_in": ["caller"]}, "'sign_in'"),
        ({"url": "http://h/x", "signIn": "caller"}, "'sign_in'"),
        ({"command": "x", "sign_in": "caller"}, "'sign_in'"),
        ({"url": "http://h/x", "sign_in": "caller", "headers": {"authorization": "Bearer x"}}, "'sign_in'"),
        ({"url": "http://h/x", "token_exchange": EXCHANGE}, "'token_exchange'"),
        ({"url": "http://h/x", "sign_in": "caller", "token_exchange": {"audience": "a"}}, "'token_exchange'"),
        ({"url": "http://h/x", "sign_in": "caller", "token_exchange": {**EXCHANGE, "x": "y"}}, "token_exchange.x"),
        (
            {"url": "http://h/x", "sign_in": "caller", "token_exchange": {**EXCHANGE, "token_endpoint": "file:///x"}},
            "token_exchange.token_endpoint",
        ),
        (
            {"url": "http://h/x", "sign_in": "caller", "token_exchange": {**EXCHANGE, "client_secret": "s"}},
            "token_exchange.client_secret",
        ),
    ],
)
def test_a_bad_server_is_reported_by_name_and_key_and_the_others_work(tmp_path, entry, named):
    assert named in problem(tmp_path, entry)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"mcpServers": {', "is not valid JSON: .* at line 1"),
        ('{"mcpServers": []}', "mcpServers"),
        ("[]", "not a JSON object"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "'a' twice"),
        ("[" * 100_000, "nested"),
        ('{"x": ' + "9" * 5000 + "}", "too many digits. Write it as a string"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(tmp_path, text, named):
    (tmp_path / "mcp.json").write_text(text)
    with pytest.raises(ConfigurationRefused, match=named) as raised:
        configuration.read(tmp_path / "mcp.json", {})
    assert str(tmp_path / "mcp.json") in str(raised.value)


def test_a_file_that_is_no_utf_8_is_an_error_that_names_it(tmp_path):
    (tmp_path / "mcp.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigurationRefused, match="UTF-8"):
        configuration.read(tmp_path / "mcp.json", {})


def test_an_unknown_server_is_answered_with_the_nearest(tmp_path):
    read = configuration.read(written(tmp_path, {"github": {"command": "x"}, "time": {"command": "x"}}), {})
    with pytest.raises(ServerUnknown, match="Use github"):
        read.server("gihub")


def test_a_disabled_server_is_not_used(tmp_path):
    read = configuration.read(written(tmp_path, {"a": {"command": "x", "disabled": True}}), {})
    with pytest.raises(ServerUnusable, match="disabled"):
        read.server("a")


def test_whose_sign_in_a_server_is_called_with_and_how_it_is_exchanged(tmp_path):
    exchange = {**EXCHANGE, "client_id": "c", "client_secret": "${SECRET}"}
    entries = {
        "a": {"url": "http://h/a"},
        "b": {"url": "http://h/b", "sign_in": "tenant"},
        "c": {"url": "http://h/c", "sign_in": "caller", "token_exchange": exchange},
    }
    read = configuration.read(written(tmp_path, entries), {"SECRET": "s3cret"})
    assert [each.sign_in for each in read.servers.values()] == ["operator", "tenant", "caller"]
    found = read.servers["c"].token_exchange
    assert found is not None
    assert (found.token_endpoint, found.audience, found.client_secret) == ("https://i/token", "a", "s3cret")
    assert "s3cret" not in repr(read)


def test_secrets_do_not_stand_in_the_representation(tmp_path):
    file = written(tmp_path, {"a": {"command": "x", "args": ["s3cret"], "env": {"K": "s3cret"}}})
    assert "s3cret" not in repr(configuration.read(file, {}))


def test_editing_keeps_unknown_keys_and_the_order(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text(
        '{"zeta": 1, "mcpServers": {"b": {"command": "x", "own": ["é"]}, "a": {"command": "y"}}, "alpha": 2}'
    )
    with configuration.editing(file) as document:
        configuration.servers_of(document, file)["c"] = {"command": "z"}
    again = json.loads(file.read_text())
    assert list(again) == ["zeta", "mcpServers", "alpha"]
    assert list(again["mcpServers"]) == ["b", "a", "c"]
    assert again["mcpServers"]["b"] == {"command": "x", "own": ["é"]}
    assert "é" in file.read_text()


def test_a_new_file_can_be_read_by_its_owner_alone_and_an_old_one_keeps_its_mode(tmp_path):
    file = tmp_path / "mcp.json"
    with configuration.editing(file) as document:
        document["mcpServers"] = {}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)
    with configuration.editing(file) as document:
        document["more"] = 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_an_edit_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {}}')

    def fail() -> None:
        with configuration.editing(file) as document:
            document["mcpServers"] = {"a": object()}

    with pytest.raises(TypeError):
        fail()
    assert file.read_text() == '{"mcpServers": {}}'
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_link_to_the_file_stays_a_link(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "mcp.json").symlink_to(tmp_path / "real.json")
    with configuration.editing(tmp_path / "mcp.json") as document:
        document["x"] = 1
    assert (tmp_path / "mcp.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text()) == {"x": 1}


def test_two_editors_at_the_same_time_lose_nothing(tmp_path):
    file = tmp_path / "mcp.json"

    def add(number: int) -> None:
        with configuration.editing(file) as document:
            servers = document.setdefault("mcpServers", {})
            assert isinstance(servers, dict)
            servers[f"s{number}"] = {"command": "x"}

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(configuration.read(file, {}).servers) == 12


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(
    ["type", "command", "args", "env", "cwd", "url", "headers", "disabled", "allow", "deny", "approve", "restore"]
) | st.text(max_size=10)


@given(st.text(max_size=10), st.dictionaries(keys, values, max_size=6))
def test_any_entry_is_either_read_or_refused_by_name(name, entry):
    said = ""
    try:
        read = configuration.read_server(name, entry, {"A": "b"})
    except ConfigurationRefused as refused:
        said = str(refused)
    assert repr(name) in said or read.name == name


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free some space"), (errno.EMFILE, "open files"), (errno.EACCES, "permissions")],
)
def test_what_to_do_about_a_file_fits_what_was_wrong(number, remedy):
    assert remedy in configuration._remedy(OSError(number, os.strerror(number)))


def test_a_command_without_args_may_be_a_whole_line(caplog: pytest.LogCaptureFixture) -> None:
    config = read_server("x", {"command": "npx -y 'a b'"}, {})
    assert (config.command, config.args) == ("npx", ("-y", "a b"))
    assert "is one text" in caplog.text
    assert read_server("x", {"command": sys.executable}, {}).args == ()
