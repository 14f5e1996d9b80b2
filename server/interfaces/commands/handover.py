"""Runs sealab in a Linux beside this machine's own system: the kernel layers, and on Windows `fork`, are there alone.

On macOS and Windows a command that runs code is given to Docker, Podman or, on Windows, WSL. The home is mounted, the
standard streams are those of the command, and HTTP is relayed from the loopback address of this machine. On macOS
REQUIRED_LEVEL=limits, said in the environment or in `sealab.toml`, keeps it here, without the kernel layers.

What is imported here is there on every system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import EXIT_OF_CODE, AddressRefused, Exit
from .container import write_profile

ENGINES = ("docker", "podman")
RUNS_CODE = frozenset({"serve", "run", "demo", "doctor", "skills", "packages", "data", "container"})
"""Commands that run code; on macOS the others need nothing that it lacks."""
HOME_INSIDE = "/home/sealab/home"
HERE_INSIDE = "/here"

_PORT_MAX = 65_535
_USER_INSIDE = 1000
_STOPPED = ("daemon running", "annot connect", "failed to connect", "connection refused")
_NONE_FOUND = (
    "sealab runs code on Linux alone, and found no Docker, Podman or WSL that runs one here. Install and start Docker "
    "Desktop or Podman{more}."
)
_OR_LIMITS = ", or set SEALAB_REQUIRED_LEVEL=limits to go on without the kernel's layers"
_IMAGE_OF_A_RELEASE = """\
FROM docker.io/library/python:3.13-slim
RUN useradd --create-home --uid {user} sealab && pip install --no-cache-dir sealab=={version}
USER sealab
ENTRYPOINT ["sealab"]
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where a command runs: the system, its environment, and how programs are found on it."""

    system: str
    environment: Mapping[str, str]
    which: Callable[[str], str | None] = shutil.which


class NoLinux(Exception):
    """There is nothing on this machine that runs Linux; the message says what to do."""


def hand_over(given: Sequence[str], machine: Machine) -> int | None:
    """Run a command line in a Linux beside this system; return how it ended, or None where it is to run here."""
    if not _is_for_linux(given, machine):
        return None
    try:
        command = command_for(given, machine)
    except NoLinux as error:
        return _refused(str(error), Exit.FAILED if given[0] == "doctor" else EXIT_OF_CODE["level"])
    except OSError as error:
        return _refused(
            f"{error.filename} cannot be used: {error.strerror}. Name another home with --home.", Exit.USAGE
        )
    if (port := _http_port(given)) is not None and command[0] != "wsl.exe":
        from .relay import serve_through

        try:
            return serve_through(command, port)
        except AddressRefused as refused:
            return _refused(str(refused), Exit.USAGE)
    sys.stdout.flush()
    return subprocess.call(command)


def _refused(why: str, ended: Exit) -> Exit:
    print(f"sealab: {why}", file=sys.stderr)
    return ended


def _is_for_linux(given: Sequence[str], machine: Machine) -> bool:
    asks_for_help = given[0].startswith("-")
    if machine.system == "linux" or asks_for_help or [*given[:2]] == ["container", "profile"]:
        return False
    if machine.system == "win32":
        return True
    return given[0] in RUNS_CODE and not _allows_limits(given, machine)


def _allows_limits(given: Sequence[str], machine: Machine) -> bool:
    """Return whether the operator said that the level `limits` is enough."""
    said = machine.environment.get("SEALAB_REQUIRED_LEVEL")
    if said is None:
        file = _option(given, "--config") or home_of(given, machine.environment) / "sealab.toml"
        try:
            said = tomllib.loads(Path(file).read_text(encoding="utf-8")).get("REQUIRED_LEVEL")
        except (OSError, ValueError):
            return False  # what is wrong with it, the command itself will say
    return said == "limits"


def home_of(given: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return the home that a command line and an environment name."""
    from ...base.home import find_home

    return find_home(_option(given, "--home"), environment).root


def command_for(given: Sequence[str], machine: Machine) -> list[str]:
    """Return the command that runs a command line of sealab in Linux. Raises `NoLinux`."""
    stopped = []
    for name in ENGINES:
        program = machine.which(name)
        if program is None:
            continue
        image = _image(program)
        if image is not None:
            return _in_container(program, image, given, machine)
        stopped.append(name)
    wsl = machine.which("wsl.exe") if machine.system == "win32" else None
    if wsl is not None and _has_sealab(wsl):
        return ["wsl.exe", "-e", "sh", "-lc", 'exec sealab "$@"', "sealab", *given]
    if stopped:
        raise NoLinux(f"{' and '.join(stopped)} is installed, but not running. Start it.")
    raise NoLinux(_NONE_FOUND.format(more=_OR_LIMITS if machine.system == "darwin" else ""))


def _has_sealab(wsl: str) -> bool:
    asked = subprocess.run([wsl, "-e", "sh", "-lc", "command -v sealab"], capture_output=True, check=False)
    return asked.returncode == 0


def _in_container(program: str, image: str, given: Sequence[str], machine: Machine) -> list[str]:
    home = home_of(given, machine.environment)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    profile = write_profile(home / "container" / "seccomp.json")
    here = machine.environment.get("PWD") or os.getcwd()
    command = [program, "run", "--rm", "--interactive", "--name", f"sealab-{os.getpid()}"]
    command += ["--tty"] if given[0] != "serve" and sys.stdin.isatty() and sys.stdout.isatty() else []
    command += ["--security-opt", f"seccomp={profile}", "--security-opt", "no-new-privileges", "--cap-drop", "ALL"]
    if "docker" in Path(program).name:
        command += ["--init"]  # podman's is not installed everywhere
    elif hasattr(os, "geteuid") and os.geteuid() != 0:
        command += [f"--userns=keep-id:uid={_USER_INSIDE},gid={_USER_INSIDE}"]
    for name in sorted(machine.environment):
        if name.startswith("SEALAB_") and name != "SEALAB_HOME":
            command += ["--env", name]  # the engine reads the value, so that it stands in no list of processes
    command += ["--env", f"SEALAB_HOME={HOME_INSIDE}", "--volume", f"{home}:{HOME_INSIDE}"]
    if given[0] != "serve":
        command += ["--volume", f"{here}:{HERE_INSIDE}", "--workdir", HERE_INSIDE]
    return [*command, image, *_without(given, "--home")]


def _image(program: str) -> str | None:
    """Return the image of this version of sealab, built where it is not there yet; None where the engine is stopped.

    Raises `NoLinux` where it cannot be built.
    """
    from importlib.metadata import version

    name = f"sealab:{version('sealab')}"
    found = subprocess.run([program, "image", "inspect", name], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return name
    if any(words in found.stderr for words in _STOPPED):
        return None
    print(f"sealab: building {name} once, which takes a minute or two …", file=sys.stderr)
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "Dockerfile").is_file():
        built = subprocess.run([program, "build", "--tag", name, str(checkout)], stdout=sys.stderr, check=False)
    else:
        recipe = _IMAGE_OF_A_RELEASE.format(version=version("sealab"), user=_USER_INSIDE)
        built = subprocess.run(
            [program, "build", "--tag", name, "-"], input=recipe.encode(), stdout=sys.stderr, check=False
        )
    if built.returncode:
        raise NoLinux(f"The image {name} cannot be built; the lines above say why. Correct that, and try again.")
    return name


def _http_port(given: Sequence[str]) -> int | None:
    if given[0] != "serve" or (asked := _option(given, "--http")) is None:
        return None
    port = asked.rpartition(":")[2]
    # What is not a port, the server in the container refuses with its own words.
    return int(port) if port.isdecimal() and 0 < int(port) <= _PORT_MAX else None


def _option(given: Sequence[str], name: str) -> str | None:
    for at, word in enumerate(given):
        if word == "--":
            return None
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and at + 1 < len(given):
            return given[at + 1]
    return None


def _without(given: Sequence[str], name: str) -> list[str]:
    """Return a command line without one option and its value."""
    kept: list[str] = []
    words = iter(given)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        if word == name:
            next(words, None)
        elif not word.startswith(f"{name}="):
            kept.append(word)
    return kept
