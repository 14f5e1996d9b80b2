"""`sealab init`: what it shows, asks, writes and leaves alone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sealab.server.interfaces.commands.init import own_command

from ..command_line import Ended, sealab
from ..conftest import SEALAB, environment

SILENT = """
from mcp.server import MCPServer
server = MCPServer('x')
server.tool(name='get_note', description='Get a note.')(lambda: 'a note')
server.tool(name='delete_note', description='Delete a note.')(lambda: 'done')
server.run()
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with two clients, one of which has a server."""
    user = tmp_path / "user"
    (user / ".cursor").mkdir(parents=True)
    (user / ".codex").mkdir()
    (user / "notes.py").write_text(SILENT)
    notes = {"command": sys.executable, "args": [str(user / "notes.py")]}
    (user / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": notes}, "mine": ["hunter2"]}))
    monkeypatch.chdir(user)
    return user


def variables(user: Path) -> dict[str, str]:
    return {"HOME": str(user), "XDG_CONFIG_HOME": "", "APPDATA": "", "CODEX_HOME": ""}


def init(user: Path, *arguments: str) -> Ended:
    return sealab("init", "--home", str(user / "home"), *arguments, **variables(user))


def files(user: Path) -> dict[str, bytes]:
    return {str(path.relative_to(user)): path.read_bytes() for path in user.rglob("*") if path.is_file()}


def entry(user: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((user / ".cursor" / "mcp.json").read_text())
    return document


def test_a_dry_run_shows_everything_and_changes_nothing(user: Path) -> None:
    before = files(user)
    ended = init(user, "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "notes" in ended.stdout
    assert str(user / ".cursor" / "mcp.json") in ended.stdout
    assert '"sealab": {' in ended.stdout
    assert "[mcp_servers.sealab]" in ended.stdout
    assert "hunter2" not in ended.stdout
    assert "Nothing was changed." in ended.stdout
    assert files(user) == before


def test_yes_imports_proposes_writes_tries_and_runs(user: Path) -> None:
    before = (user / ".cursor" / "mcp.json").read_bytes()
    ended = init(user, "--yes", "--json")
    assert ended.returncode == 0, ended.stderr
    done = json.loads(ended.stdout)
    assert (done["ok"], done["imported"], done["program"]) == (True, ["notes"], "6")
    assert done["proposed"] == {"notes": {"read": ["get_note"], "write": ["delete_note"]}}
    assert done["level"] in {"kernel", "landlock", "limits"}
    servers = json.loads((user / "home" / "mcp.json").read_text())["mcpServers"]
    assert "reads" not in servers["notes"], "nobody looked at the proposals"
    assert "sealab servers test notes --accept" in ended.stderr
    written = {each["client"]: each for each in done["clients"]}
    assert {each["state"] for each in written.values()} == {"written"}
    assert Path(written["cursor"]["backup"]).read_bytes() == before
    document = entry(user)
    own = document["mcpServers"].pop("sealab")
    assert own["args"][-2:] == ["--home", str(user / "home")]
    assert document == json.loads(before)
    again = json.loads(init(user, "--yes", "--json").stdout)
    assert ([each["state"] for each in again["clients"]], again["imported"]) == (["there", "there"], [])


def test_the_entry_that_is_written_starts_a_server(user: Path) -> None:
    assert init(user, "--yes", "--client", "cursor").returncode == 0
    assert not (user / ".codex" / "config.toml").exists()
    own = entry(user)["mcpServers"]["sealab"]
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    bare = {key: value for key, value in environment().items() if key != "PATH"}
    served = subprocess.run(
        [own["command"], *own["args"]], input=json.dumps(hello) + "\n", capture_output=True, text=True, env=bare, timeout=50,
        check=False,
    )  # fmt: skip
    assert json.loads(served.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "sealab", served.stderr


def test_a_broken_and_a_read_only_file_stay_and_the_others_are_done(user: Path) -> None:
    codex = user / ".codex" / "config.toml"
    codex.write_text("broken = [")
    (user / ".gemini").mkdir()
    gemini = user / ".gemini" / "settings.json"
    gemini.write_text("{}")
    gemini.chmod(0o444)
    ended = init(user, "--yes", "--json")
    done = json.loads(ended.stdout)
    assert (ended.returncode, done["ok"]) == (1, False)
    states = {each["client"]: each["state"] for each in done["clients"]}
    assert states == {"cursor": "written", "codex": "refused", "gemini": "refused"}
    assert (codex.read_text(), gemini.read_text()) == ("broken = [", "{}")
    assert "Its entry would be: " in ended.stderr


def test_a_broken_mcp_json_of_its_own_stops_it_before_anything_is_written(user: Path) -> None:
    (user / "home").mkdir()
    (user / "home" / "mcp.json").write_text("{broken")
    before = files(user)
    assert "mcp.json is not valid JSON" in init(user, "--yes").refusal()
    assert files(user) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Give --yes to answer all, or --dry-run to look."),
        (("--yes", "--client", "cursr"), "'cursr' is not on this machine. Did you mean cursor?"),
    ],
)
def test_a_wrong_command_line_changes_nothing(user: Path, arguments: tuple[str, ...], said: str) -> None:
    before = files(user)
    ended = init(user, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert files(user) == before


def test_at_a_terminal_each_step_is_asked_for(user: Path) -> None:
    before = (user / ".cursor" / "mcp.json").read_bytes()
    ours, theirs = pty.openpty()
    os.write(ours, b"y\ny\nperhaps\ny\nn\nn\n")  # import, start, not an answer, take, cursor, codex
    ended = subprocess.run(
        [*SEALAB, "init", "--home", str(user / "home")],
        stdin=theirs, capture_output=True, text=True, env=environment(**variables(user)), timeout=55, check=False,
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    assert ended.returncode == 0, ended.stderr
    assert "Say y or n." in ended.stdout
    servers = json.loads((user / "home" / "mcp.json").read_text())["mcpServers"]
    assert (servers["notes"]["reads"], servers["notes"]["writes"]) == (["get_note"], ["delete_note"])
    assert (user / ".cursor" / "mcp.json").read_bytes() == before
    assert not (user / ".codex" / "config.toml").exists()


@pytest.mark.parametrize(
    ("installed_from", "arguments"),
    [
        (None, ["sealab"]),
        ({"url": "file:///home/me/sealab%20here", "dir_info": {}}, ["--from", "/home/me/sealab here", "sealab"]),
        (
            {"url": "https://git.example/sealab", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            ["--from", "git+https://git.example/sealab", "sealab"],
        ),
    ],
)
def test_the_entry_under_uvx_names_what_sealab_was_installed_from(
    installed_from: dict[str, Any] | None, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = tmp_path / "sealab-0.1.dist-info"
    written.mkdir()
    (written / "METADATA").write_text("Metadata-Version: 2.1\nName: sealab\nVersion: 0.1\n")
    if installed_from is not None:
        (written / "direct_url.json").write_text(json.dumps(installed_from))
    uvx = tmp_path / "uvx"
    uvx.touch(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SEALAB_HOME", raising=False)
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/abc")
    assert own_command(None) == [str(uvx), *arguments]


FORMS = {
    ".cursor/mcp.json": '{\n  // mine\n  "mcpServers": {\n    "notes": NOTES,\n    "other": {"command": "nothing-here"}\n  },\n  "theme": "dark"\n}\n',
    ".gemini/settings.json": '{"mcpServers": {"other": {"command": "nothing-here"}, "notes": NOTES}}',
    ".codex/config.toml": '# mine\nmodel = "x"\n\n[mcp_servers.notes]\ncommand = COMMAND\nargs = [ARGUMENT]\n\n[mcp_servers.notes.env]\nA = "1"\n\n[tools]\nx = 1\n',
    ".config/goose/config.yaml": "# mine\nextensions:\n  notes:\n    type: stdio\n    cmd: COMMAND\n    args: [ARGUMENT]\n    enabled: true\n  other:\n    type: stdio\n    cmd: nothing-here\n    enabled: true\nGOOSE: x\n",
}
"""Files of clients with a server that works, and others that do not."""


@pytest.fixture
def clients(user: Path) -> dict[Path, bytes]:
    command, argument = json.dumps(sys.executable), json.dumps(str(user / "notes.py"))
    for name, text in FORMS.items():
        notes = f'{{"command": {command}, "args": [{argument}], "env": {{"NOTES_API_KEY": "hunter2"}}}}'
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        content = text.replace("NOTES,", f"{notes},").replace("NOTES}", f"{notes}}}")
        (user / name).write_text(content.replace("COMMAND", command).replace("ARGUMENT", argument))
    return {user / name: (user / name).read_bytes() for name in FORMS}


def test_servers_that_work_are_moved_with_their_secrets_and_all_is_put_back_byte_for_byte(
    user: Path, clients: dict[Path, bytes]
) -> None:
    ended = init(user, "--yes", "--json", "--move")
    done = json.loads(ended.stdout)
    assert done["problems"] == [], done
    moved = {Path(path).relative_to(user).as_posix(): names for path, names in done["moved"].items()}
    assert moved[".cursor/mcp.json"] == ["notes"]
    assert moved[".gemini/settings.json"] == ["notes"]
    left = (user / ".cursor" / "mcp.json").read_text()
    assert '"sealab"' in left
    assert "// mine" in left
    assert '"notes"' not in left
    assert "nothing-here" in left
    own = json.loads((user / "home" / "mcp.json").read_text())["mcpServers"]
    assert own["notes"]["env"] == {"NOTES_API_KEY": "hunter2"}
    undone = init(user, "--undo")
    assert undone.returncode == 0, undone.stdout
    assert {path: path.read_bytes() for path in clients} == clients
    assert init(user, "--undo").stdout == "There is nothing to undo.\n"


def test_a_file_that_was_changed_since_stays_and_uninstalling_takes_sealab_out_of_it(
    user: Path, clients: dict[Path, bytes]
) -> None:
    init(user, "--yes", "--move", "--client", "cursor")
    file = user / ".cursor" / "mcp.json"
    file.write_text(file.read_text().replace("dark", "light"))
    ended = init(user, "--undo")
    assert ended.returncode == 1
    assert "was changed since. What it was is kept in" in ended.stdout
    gone = sealab("uninstall", "--home", str(user / "home"), **variables(user))
    assert gone.returncode == 0, gone.stdout
    assert '"sealab"' not in file.read_text()
    assert "light" in file.read_text()
    assert f"rm -r {user / 'home'}" in gone.stdout


def test_a_client_that_is_not_here_is_answered_with_those_that_are_known(user: Path) -> None:
    assert "sealab knows " in init(user, "--yes", "--client", "emacs").stderr
