"""Command lines as a newcomer types them: how each ends, and what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .command_line import sealab

OK, FAILED, USAGE, REFUSED, LIMIT = 0, 1, 2, 3, 4
PROGRAMS = {
    "six": "6 * 7",
    "fails": "1 / 0",
    "endless": "while True: pass",
    "opens": "import socket",
    "wrong": "def f(:",
}
LINES = [
    ("-V", OK, "sealab "),
    ("help", OK, "Exit codes: 0 done"),
    ("help", OK, "Every command takes --home DIR"),
    ("help servers", OK, "import the servers of other MCP clients"),
    ("help servers add", OK, "usage: sealab servers add NAME [options]"),
    ("help nonsense", USAGE, '"nonsense" is not a command of sealab.'),
    ("--home X doctor", OK, "(required: limits) ok"),
    ("--home X servers", USAGE, "The command line lacks COMMAND."),
    ("--home X servers --help", OK, "import the servers of other MCP clients"),
    ("doctr", USAGE, "Did you mean doctor?"),
    ("skill list", USAGE, "Did you mean skills?"),
    ("doctor --jsn", USAGE, "Did you mean --json?"),
    ("run", USAGE, "The command line lacks FILE."),
    ("run nofile.py", USAGE, "nofile.py cannot be read: No such file or directory."),
    ("servers", USAGE, "usage: sealab servers [-h] COMMAND ..."),
    ("servers add", USAGE, "The command line lacks NAME."),
    ("servers add git", USAGE, "sealab servers add NAME -- COMMAND ARGS"),
    ("servers add git -- uvx mcp-server-git", OK, "Try it with `sealab servers test git`."),
    ("servers add x --header bad --url http://x", USAGE, "Give NAME:VALUE."),
    ("servers list", OK, "Add some with `sealab servers add`"),
    ("servers test", OK, "Add some with `sealab servers add`"),
    ("servers test nope", USAGE, "There is no server 'nope' in mcp.json."),
    ("servers remove nope", USAGE, "There is no server 'nope'"),
    ("completion", USAGE, "The command line lacks SHELL."),
    ("completion tcsh", USAGE, "It is one of bash, zsh, fish."),
    ("completion bash", OK, "servers"),
    ("skills list", OK, "`sealab skills save` and `sealab skills import --examples` make some."),
    ("skills show nope", USAGE, "`sealab skills list` names those that there are."),
    ("skills run nope", USAGE, "There is no skill 'nope'."),
    ("skills list --limit -1", USAGE, "limit is -1, which is not allowed. Give 0, to count only, or more."),
    ("skills import nope", USAGE, "Name a folder, a SKILL.md, a Python file or a ZIP archive."),
    ("skills delete nope", USAGE, "There is no skill 'nope'."),
    ("tools show nope", USAGE, "add a server with `sealab servers add`"),
    ("tools search git --limit 0", USAGE, "limit is 0, which is not allowed. Give a whole number from 1 to 100."),
    ("tools search git", OK, "Nothing was found."),
    ("tools categories", OK, "0 tools"),
    ("packages check nope", USAGE, "is not installed."),
    ("packages check yaml", USAGE, "yaml is a module of PyYAML."),
    ("container build --with cv2", USAGE, "cv2 is a module of opencv-python."),
    ("container profile p.json", OK, "--security-opt seccomp="),
    ("run six.py", OK, "42"),
    ("run six.py --json", OK, '"status": "ok"'),
    ("run fails.py", FAILED, "sealab: error in line 1: ZeroDivisionError"),
    ("run endless.py --timeout 0.2", LIMIT, "a longer --timeout"),
    ("run opens.py", REFUSED, "There is no network here"),
    ("init --dry-run", OK, "Nothing was changed."),
    ("init", USAGE, "Give --yes to answer all, or --dry-run to look."),
    ("--log-level silly doctor", USAGE, "Give one of DEBUG, INFO"),
    ("--home= run six.py", USAGE, "--home is empty. Name a folder, or leave it out."),
    ("run six.py --timeout soon", USAGE, "--timeout cannot be 'soon': it takes a number."),
    ("tools search git --limit ten", USAGE, "--limit cannot be 'ten': it takes a whole number."),
    ("skills save wrong wrong.py", FAILED, "SyntaxError in line 1: invalid syntax. Correct it. Nothing was saved."),
    ("skills export six.py nope", USAGE, "There is no skill 'nope'."),
    ("-x", USAGE, "The command has no option -x."),
    ("servers ad", USAGE, '"ad" is not a command of sealab servers. Did you mean add? It is one of list, add,'),
    ("run - --tiemout 3", USAGE, "has no option --tiemout. Did you mean --timeout? See sealab run --help."),
    ("run - --isolation contaner", USAGE, '"contaner" is not a value of --isolation. Did you mean container?'),
    ("doctor extra", USAGE, "The command does not take extra. See sealab doctor --help."),
    ("--htp localhost:0", USAGE, "has no option --htp. Did you mean --http? See sealab serve --help."),
    ("--home somewhere srve", USAGE, '"srve" is not a command of sealab. Did you mean serve?'),
    ("run - --timeout 500", REFUSED, "timeout_seconds is 500, which is not allowed"),
    ("run - --memory 999999", REFUSED, "memory_mb is 999999, which is not allowed"),
    ("serve --surface half", USAGE, "half"),
    ("serve --http 192.0.2.7:80", USAGE, "there is no authentication"),
    ("serve --http nonsense", USAGE, "Give HOST:PORT"),
    ("serve --config missing.toml", USAGE, "There is no settings file"),
    ("serve --log-level loud", USAGE, "log-level is 'loud'"),
    ("completion zsh", OK, "packages"),
    ("completion fish", OK, "packages"),
]


@pytest.mark.parametrize(("line", "exit_code", "said"), LINES, ids=[line for line, *_ in LINES])
def test_a_command_line_ends_and_says(
    line: str, exit_code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, program in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(program)
    ended = sealab(*line.split(), SEALAB_HOME=str(tmp_path / "home"), HOME=str(tmp_path))
    assert ended.returncode == exit_code, ended.stderr
    assert said in " ".join((ended.stdout + ended.stderr).split())
    assert 'File "/' not in ended.stderr, "a traceback of sealab's own"
    assert "Surface." not in ended.stderr, "choices are told as they are written"
    if exit_code != OK:
        assert ended.stdout == ""
        assert ended.stderr.startswith("sealab: ") or (exit_code != USAGE and "\nsealab: " in ended.stderr)
    if help_of := re.search(r"See (.*) --help", ended.stderr):
        assert f"\nusage: {help_of[1]} " in ended.stderr
