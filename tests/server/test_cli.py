"""The command line: what it prints, how it ends, and once for each command that its process does the same."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.server.cli import make_parser

from .command_line import run, sealab, sealab_process
from .conftest import SEALAB, environment


@pytest.mark.parametrize(
    ("code", "arguments", "status", "exit_code"),
    [
        ("1", (), "ok", 0),
        ("1 / 0", (), "error", 1),
        ("import socket", (), "refused", 3),
        ("while True: pass", ("--timeout", "0.5"), "timeout", 4),
        ("hoard = []\nwhile True: hoard.append(bytearray(1 << 20))", ("--memory", "64"), "memory", 4),
    ],
)
def test_the_exit_code_says_how_the_run_ended(
    tmp_path: Path, code: str, arguments: tuple[str, ...], status: str, exit_code: int
) -> None:
    ended = run(tmp_path, code, "--json", *arguments)
    assert json.loads(ended.stdout)["status"] == status
    assert ended.returncode == exit_code


def test_a_run_prints_output_and_result_and_a_failed_one_its_output_and_on_stderr_its_line_and_error(
    tmp_path: Path,
) -> None:
    ended = sealab_process("run", "-", "--home", str(tmp_path), stdin="print('hello')\n{'a': 1}")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == 'hello\n{\n  "a": 1\n}\n'
    assert ended.stderr == ""
    code = "print('so far')\nundefined_name"
    ended = sealab_process("run", "-", "--home", str(tmp_path), stdin=code)
    assert ended.returncode == 1
    assert ended.stdout == "so far\n"
    assert "error in line 2: NameError" in ended.stderr


@pytest.mark.parametrize("command", [("doctor", "--json"), ("servers", "list", "--json"), ("run", "-", "--json")])
def test_options_of_every_command_may_stand_before_it(tmp_path: Path, command: tuple[str, ...]) -> None:
    for option in (("--home", str(tmp_path / "a")), (f"--home={tmp_path / 'a'}",)):
        assert sealab(*option, "--log-level", "ERROR", *command, stdin="1").told


def test_help_is_a_command_too_and_the_version_is_that_of_the_distribution() -> None:
    assert sealab("help").stdout == sealab("--help").stdout
    assert sealab("help", "servers", "add").stdout == sealab("servers", "add", "--help").stdout
    assert sealab("-V").stdout == sealab("--version").stdout
    assert re.fullmatch(r"sealab \d+\.\d+\.\d+\n", sealab("-V").stdout)
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in " ".join(sealab("run", "--help").stdout.split())


def test_of_a_run_nothing_is_cut_for_another_program(tmp_path: Path) -> None:
    code = "for number in range(9000):\n    print('line', number)\nresult = list(range(9000))"
    ended = sealab("run", "-", stdin=code, SEALAB_HOME=str(tmp_path), SEALAB_OUTPUT_MAX_CHARS="1000")
    output, _, result = ended.stdout.partition("[")
    assert output.splitlines() == [f"line {number}" for number in range(9000)]
    assert json.loads(f"[{result}") == list(range(9000))
    assert ended.stderr == ""


def test_a_hint_names_options_and_no_arguments_of_mcp(tmp_path: Path) -> None:
    allowed = {"SEALAB_ALLOWED_ISOLATION": "restricted,process"}
    ended = run(tmp_path, "import ctypes", **allowed)
    assert "Or ask for --isolation process." in ended.stderr
    assert ended.stderr.count("ImportError: module 'ctypes' is not available") == 1
    assert 'File "<code>", line 1' in ended.stderr
    ended = run(tmp_path, "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))", "--memory", "64")
    assert "--memory" in ended.stderr
    assert "memory_mb" not in ended.stderr
    assert "a longer --timeout" in run(tmp_path, "while True: pass", "--timeout", "0.2").stderr.splitlines()[-1]
    assert "after `--`, which sys.argv has" in run(tmp_path, "input()").stderr.splitlines()[-1]


def test_of_a_call_that_needs_a_yes_a_command_says_where_it_is_allowed(tmp_path: Path) -> None:
    upstream = {
        "command": sys.executable,
        "args": ["-m", "sealab.server.interfaces.commands.demo_upstream", "packages"],
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"packages": upstream}}))
    told, hint = run(tmp_path, "await tools.packages.uninstall_package(name='x')").stderr.splitlines()[-2:]
    assert "a command cannot ask one" in told
    assert 'name the tool in "reads" of its server in mcp.json' in hint


def test_bash_completes_commands_and_options() -> None:
    script = sealab("completion", "bash").stdout
    asked = "COMP_WORDS=({words}); COMP_CWORD={last}; _shtab_sealab; echo ${{COMPREPLY[@]}}"
    for words, completed in (("sealab ser", "serve servers"), ("sealab run --ti", "--timeout")):
        ask = asked.format(words=words, last=len(words.split()) - 1)
        ended = subprocess.run(["bash"], input=f"{script}\n{ask}\n", capture_output=True, text=True, check=True)
        assert sorted(ended.stdout.split()) == completed.split()


@pytest.mark.parametrize("command", ["serve", "run", "doctor"])
def test_a_bad_setting_stops_every_command_at_its_start(tmp_path: Path, command: str) -> None:
    more = ("-",) if command == "run" else ()
    ended = sealab(command, *more, SEALAB_HOME=str(tmp_path), SEALAB_MEMORY_MB="lots")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "SEALAB_MEMORY_MB is 'lots', which cannot be used" in ended.stderr


def test_debug_shows_the_traceback_of_an_error(tmp_path: Path) -> None:
    ended = sealab_process("run", "no-such-file.py", "--home", str(tmp_path), "--debug")
    assert ended.returncode != 0
    assert "Traceback" in ended.stderr


def test_a_home_that_is_a_file_is_told_as_such(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    assert "is not a folder. Name another home with --home" in run(home, "1").refusal()


def test_the_home_is_private_and_nothing_is_written_outside_it(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    before = set(os.listdir("."))
    code = "write_file('a/b.txt', 'x')"
    env = {"HOME": str(tmp_path / "user"), "TMPDIR": str(tmp_path)}
    assert sealab_process("run", "-", "--home", str(home), stdin=code, **env).returncode == 0
    assert (home / "workspace" / "a" / "b.txt").read_text() == "x"
    for folder in (home, home / "workspace"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
    assert set(os.listdir(".")) == before


def test_the_home_comes_from_the_command_line_else_the_environment_else_the_users_data_folder(tmp_path: Path) -> None:
    asked, env, user = tmp_path / "asked", tmp_path / "env", tmp_path / "user"
    assert run(asked, "1", SEALAB_HOME=str(env)).returncode == 0
    assert (asked.exists(), env.exists()) == (True, False)
    assert sealab("run", "-", stdin="1", SEALAB_HOME=str(env)).returncode == 0
    assert env.exists()
    assert sealab("run", "-", stdin="1", HOME=str(user), XDG_DATA_HOME=str(user / "data")).returncode == 0
    assert (user / "data" / "sealab" / "workspace").is_dir() or sys.platform == "darwin"


def test_doctor_tells_of_a_damaged_database(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f():\n    return 1\n")
    assert sealab("skills", "save", "f", str(tmp_path / "f.py"), "--home", str(tmp_path)).returncode == 0
    file = tmp_path / "sealab.db"
    assert "it is whole" in sealab("doctor", "--home", str(tmp_path)).stdout
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    ended = sealab("doctor", "--json", "--home", str(tmp_path))
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["reached"]) == (3, True), "1 would say that the level is not reached"
    assert not found["database"]["ok"]
    assert "is damaged or not a database, and was left as it is" in found["problem"]


def test_doctor_tells_every_layer_and_fails_below_the_required_level(tmp_path: Path) -> None:
    ended = sealab_process("doctor", "--json", "--home", str(tmp_path))
    findings = json.loads(ended.stdout)
    assert ended.returncode == 0, ended.stdout
    assert (findings["ok"], findings["required_level"]) == (True, "limits")
    layers = {layer["layer"]: layer for layer in findings["layers"]}
    assert layers.keys() >= {"language", "limits", "process", "seccomp", "landlock", "namespaces"}
    for layer in layers.values():
        assert layer["why"]
        assert layer["do"] or layer["available"]
        assert layer["available"] or not layer["active"]
    assert layers["language"]["active"]
    spoken = sealab("doctor", "--home", str(tmp_path))
    assert spoken.returncode == 0
    assert f"level: {findings['level']} (required: limits)" in spoken.stdout
    assert findings["privacy"] == {"privacy": "tools", "mode": "balanced"}
    assert "tools, balanced" in spoken.stdout
    if findings["level"] != "kernel":
        strict = sealab("doctor", "--json", "--home", str(tmp_path), SEALAB_REQUIRED_LEVEL="kernel")
        assert strict.returncode == 1
        assert json.loads(strict.stdout)["ok"] is False


def test_every_command_and_option_says_what_it_is_for() -> None:
    import argparse

    commands = next(each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction))
    assert set(commands.choices) == {
        *("serve", "run", "demo", "doctor", "container", "servers", "tools", "skills", "pii", "packages"),
        *("completion", "data", "guard", "init", "runs", "approvals", "tokens", "tenants", "policy", "audit"),
        *("status", "top", "schedules"),
    }
    for parser in commands.choices.values():
        assert all(action.help for action in parser._actions)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let what is started be interrupted, even where the tests themselves ignore Ctrl-C, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_started_at_a_terminal_the_server_says_on_stderr_that_it_waits(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SEALAB, "--home", str(tmp_path)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert b"waits for an MCP client" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(ours)


INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys
class Interrupt:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "sealab.server.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
from sealab.server.__main__ import start
sys.exit(start())
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_program_loads_ends_it_without_a_word() -> None:
    command = [sys.executable, "-c", INTERRUPTED_WHILE_IT_LOADS, "tools", "categories"]
    ended = subprocess.run(command, capture_output=True, env=environment(), check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.timeout(300)  # it does twenty things one after another, some of them until their time is up
def test_the_demonstration_really_happens(tmp_path: Path) -> None:
    ended = sealab_process("demo", TMPDIR=str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "✗" not in ended.stdout
    assert "All of it happened" in ended.stdout
    for word in ("rows", "tokens", "largest_packages", "refused", "timeout", "memory", "6 * 7 = 42", "[EMAIL_"):
        assert word in ended.stdout
    assert "jane.roe" not in ended.stdout.lower()
    figures = ended.stdout.partition("In figures, of this run\n")[2].split("\n\n")[0].splitlines()
    assert len(figures) == 4
    assert "4 personal values hidden, 0 shown" in figures[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["run -", "doctor --json", "completion bash", "pii sanitize"])
def test_a_full_disk_behind_stdout_is_said_in_a_sentence(tmp_path: Path, command: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*SEALAB, *command.split()],
            input=b"1",
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(SEALAB_HOME=str(tmp_path), SEALAB_PRIVACY_MODE="fast"),
            check=False,
        )
    assert ended.returncode == 1
    said = b"sealab: What was to be written has no room: No space left on device. Make room, or write elsewhere.\n"
    assert ended.stderr.endswith(said)
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(("closed", "code"), [("<&-", 0), (">&-", 2), ("2>&-", 0)])
def test_a_standard_stream_may_be_closed(tmp_path: Path, closed: str, code: int) -> None:
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *SEALAB, "run", "-", "--home", str(tmp_path)],
        input=b"print(6 * 7)",
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == (b"42\n" if closed == "2>&-" else b"")
    closed_output = b"sealab: Standard output is closed. Send it to a file, to a program or to /dev/null.\n"
    assert ended.stderr == (closed_output if closed == ">&-" else b"")
