"""On a system without Linux's layers sealab runs itself in a Linux beside it: faked systems, a real podman."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sealab.sandbox.container import image
from sealab.sandbox.container.engine import Engine
from sealab.server.interfaces.commands.container import REFUSED, write_profile
from sealab.server.interfaces.commands.handover import Machine, NoLinux, command_for, hand_over

from ...sandbox.containers import needs_podman
from ..command_line import sealab

INSIDE = """\
#!/usr/local/bin/python3
import http.server, json, os, sys
if sys.argv[1] == "serve" and "--http" in sys.argv:
    class Echo(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
    port = int(sys.argv[-1].rpartition(":")[2])
    server = http.server.HTTPServer(("127.0.0.1", port), Echo)
    print("ready", file=sys.stderr, flush=True)
    for _ in range(3):
        server.handle_request()
    sys.exit(0)
home = os.environ["SEALAB_HOME"]
given = sys.stdin.read()
open(os.path.join(home, "seen"), "w").write("inside")
variables = {name: value for name, value in os.environ.items() if name.startswith("SEALAB_")}
print(json.dumps({"arguments": sys.argv[1:], "variables": variables, "given": given, "here": sorted(os.listdir())}))
print("to stderr", file=sys.stderr)
sys.exit(4)
"""

HAND_OVER = """
import os, sys
from sealab.server.interfaces.commands.handover import Machine, hand_over
engines = {"podman": os.environ.pop("ENGINE")}
sys.exit(hand_over(sys.argv[2:], Machine(sys.argv[1], os.environ, engines.get)))
"""


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a Linux root that has Python, and the code of the sandbox."""
    folder = tmp_path_factory.mktemp("image")
    built = image.build(folder)
    assert built.root is not None
    return Path(built.root), image.code(folder)


@pytest.fixture(scope="module")
def podman(rootfs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A podman with a store of its own, which holds an image of this version's name."""
    state = tmp_path_factory.mktemp("podman")
    program = tmp_path_factory.mktemp("bin") / "podman"
    base = " ".join(Engine("podman", "podman", state=state).base())
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = run ]; then shift; set -- run --network none --ulimit nofile=512:512 '
        f'--ulimit nproc=200:200 "$@"; fi\nexec {base} "$@"\n'
    )
    program.chmod(0o755)
    root, _code = rootfs
    script = root / "usr/local/bin/sealab"
    script.write_text(INSIDE)
    script.chmod(0o755)
    from importlib.metadata import version

    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as packing:
        subprocess.run(
            [
                str(program), "import",
                "--change", 'ENTRYPOINT ["/usr/local/bin/sealab"]',
                "--change", f"ENV LD_LIBRARY_PATH={image.LIBRARIES_INSIDE}",
                "-", f"sealab:{version('sealab')}",
            ],
            stdin=packing.stdout, check=True, capture_output=True, timeout=100,
        )  # fmt: skip
    script.unlink()
    yield str(program)
    subprocess.run([str(program), "rmi", "--all", "--force"], capture_output=True, timeout=60, check=False)


def handed(podman: str, system: str, *arguments: str, given: str = "", cwd: Path, **env: str) -> subprocess.Popen[str]:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
    return subprocess.Popen(
        [sys.executable, "-c", HAND_OVER, system, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
        env={**variables, "PWD": str(cwd), "ENGINE": podman, **env},
    )  # fmt: skip


@needs_podman
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_command_runs_in_a_container_with_its_home_its_streams_and_its_exit_code(
    podman: str, system: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text("1")
    home = tmp_path / "home"
    arguments = ["run", "program.py", "--home", str(home), "--json"]
    process = handed(podman, system, *arguments, cwd=tmp_path, SEALAB_MEMORY_MB="77", SEALAB_HOME="/elsewhere")
    output, complaint = process.communicate("from stdin", timeout=100)
    assert process.returncode == 4, complaint
    told = json.loads(output)
    assert told["arguments"] == ["run", "program.py", "--json"]
    assert told["variables"] == {"SEALAB_MEMORY_MB": "77", "SEALAB_HOME": "/home/sealab/home"}
    assert told["given"] == "from stdin"
    assert "program.py" in told["here"]
    assert complaint.endswith("to stderr\n")
    assert (home / "seen").read_text() == "inside"


@needs_podman
def test_http_is_relayed_from_the_loopback_of_this_machine(podman: str, tmp_path: Path) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = handed(
        podman, "darwin", "serve", "--home", str(tmp_path / "home"), "--http", f"127.0.0.1:{port}", cwd=tmp_path
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        for body in (b"first", b"x" * 200_000):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", data=body, timeout=50) as answer:
                assert answer.read() == body
        # The server ends with this request: its answer may be lost with the container.
        with suppress(OSError, http.client.HTTPException):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", data=b"last", timeout=50).close()
        assert process.wait(50) == 0
    finally:
        process.terminate()
        process.communicate()


@needs_podman
def test_the_profile_raises_the_level_of_a_container_to_kernel(
    rootfs: tuple[Path, Path], podman: str, tmp_path: Path
) -> None:
    """With an engine's own profile it is `landlock` at most, where this machine can reach `kernel` at all."""
    from sealab.sandbox import confine

    root, code = rootfs
    probe = (
        "import sys; sys.path.append('/code'); from sealab.sandbox import confine; print(confine.probe().level.value)"
    )
    levels = []
    for options in ([], ["--security-opt", f"seccomp={write_profile(tmp_path / 'seccomp.json')}"]):
        command = [podman, "run", "--rm", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", *options]
        command += ["--user", "1000:1000", "--volume", f"{code}:/code:ro"]
        command += ["--env", f"LD_LIBRARY_PATH={image.LIBRARIES_INSIDE}"]
        command += ["--rootfs", str(root), "/usr/local/bin/python3", "-I", "-S", "-c", probe]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
        levels.append(ended.stdout.strip() or ended.stderr)
    if confine.probe().level is confine.Level.KERNEL:
        assert levels[1] == "kernel"
    assert levels[0] in {"landlock", "limits"}


def docker(folder: Path, script: str) -> Machine:
    """A system beside whose Linux there is a docker that does what the script says."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Machine("darwin", {"SEALAB_VAULT_KEY": "hunter2", "PWD": str(folder)}, {"docker": str(program)}.get)


def no_program(_name: str) -> None:
    return None


@pytest.mark.parametrize(("command", "exit_code"), [("serve", 3), ("run", 3), ("doctor", 1)])
def test_without_an_engine_it_says_what_to_install(
    command: str, exit_code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [command, "--home", str(tmp_path)]
    for system in ("darwin", "win32"):
        assert hand_over(given, Machine(system, {}, no_program)) == exit_code
        said = capsys.readouterr().err
        assert "Install and start Docker Desktop or Podman" in said
        assert ("SEALAB_REQUIRED_LEVEL=limits" in said) is (system == "darwin")


def test_it_goes_on_here_where_it_is_told_to_or_where_no_code_runs(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path)]
    limits = {"SEALAB_REQUIRED_LEVEL": "limits"}
    assert hand_over(["run", "-", *home], Machine("linux", {}, no_program)) is None
    assert hand_over(["run", "-", *home], Machine("darwin", limits, no_program)) is None
    assert hand_over(["run", "-", *home], Machine("win32", limits, no_program)) == 3
    for given in (["init", *home], ["servers", "list", *home], ["--help"], ["-V"], ["container", "profile"]):
        assert hand_over(given, Machine("darwin", {}, no_program)) is None
    (tmp_path / "sealab.toml").write_text('REQUIRED_LEVEL = "limits"\n')
    assert hand_over(["run", "-", *home], Machine("darwin", {}, no_program)) is None


def test_a_stopped_engine_is_not_missing(tmp_path: Path) -> None:
    said = "Cannot connect to the Docker daemon. Is the docker daemon running?"
    with pytest.raises(NoLinux, match=r"docker is installed, but not running\. Start it\."):
        command_for(["serve"], docker(tmp_path, f"echo '{said}' >&2\nexit 1"))


def test_the_secrets_in_settings_stand_in_no_list_of_processes(tmp_path: Path) -> None:
    command = command_for(["serve", "--home", str(tmp_path)], docker(tmp_path, "exit 0"))
    assert "hunter2" not in " ".join(command)
    assert command[command.index("SEALAB_VAULT_KEY") - 1] == "--env"
    assert command[-1] == "serve"
    profile = next(each.removeprefix("seccomp=") for each in command if each.startswith("seccomp="))
    written = json.loads(Path(profile).read_text())
    assert written["syscalls"][0]["names"] == sorted(REFUSED)
    assert not {"unshare", "clone", "mount", "pivot_root"} & set(REFUSED)


ON_WINDOWS = """
import asyncio, json, os, subprocess, shutil, socket, tempfile, tomllib, sys, argparse, gettext, pathlib, platformdirs
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix_ipc"):
    sys.modules[name] = None
sys.platform = "win32"
from sealab.server.cli import main
os.environ["PATH"] = ""
def ended(*arguments):
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code or 0
print(json.dumps([ended(*each) for each in json.loads(sys.argv[1])]))
"""


def test_the_command_line_starts_without_what_windows_lacks(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "home")]
    profile = str(tmp_path / "seccomp.json")
    commands = [
        ["--help"], ["-V"], ["container", "profile", profile], ["container", "profile", *home],
        ["doctor", *home], ["serve", *home], ["servers", "list", *home],
    ]  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert json.loads(ended.stdout.splitlines()[-1]) == [0, 0, 0, 0, 1, 3, 3], ended.stderr
    assert "Traceback" not in ended.stderr
    assert json.loads(Path(profile).read_text())["defaultAction"] == "SCMP_ACT_ALLOW"


def test_the_profile_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    told = sealab("container", "profile", str(tmp_path / "p.json"), "--json")
    assert json.loads(told.stdout) == {"file": str(tmp_path / "p.json")}
    below = sealab("--home", str(tmp_path / "home"), "container", "profile")
    assert f"seccomp={tmp_path / 'home' / 'container' / 'seccomp.json'}" in below.stdout
    refused = sealab("container", "profile", "/proc/nothing/p.json")
    assert (refused.returncode, "cannot be written" in refused.stderr) == (2, True)


def test_a_port_that_is_taken_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import socket

    engine = docker(tmp_path, '[ "$1" = image ] || touch "$0.started"')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        given = ["serve", "--home", str(tmp_path), "--http", address]
        assert hand_over(given, engine) == 2
    assert f"{address} cannot be listened on" in capsys.readouterr().err
    assert not (tmp_path / "docker.started").exists()
