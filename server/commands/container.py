"""`sealab container`: builds the image that containers run, and says how they stand on this machine."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

from ...sandbox.container import engine, image
from ...sandbox.errors import ContainerMissing
from ...sandbox.job import Isolation
from ..errors import Exit, UsageError
from ..home import Home
from ..runs.isolations import NO_IMAGE, allowed_isolations, chosen_image
from ..settings import Settings
from ..startup.package_names import misnamed
from .terminal import print_error

Begin = Callable[[argparse.Namespace], tuple[Home, Settings]]
"""Reads the home and the settings that a command line names."""


class ContainerStatus(TypedDict):
    """How containers stand: what would run them, what in, and which of the engine's limits held when tried."""

    usable: bool
    allowed: bool
    engine: str | None
    limits_held: list[str]
    image: str | None
    python: str | None
    packages: dict[str, str]
    problem: str | None


def add_to(
    commands: argparse._SubParsersAction[Any], begin: Begin, options: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add the commands that need an engine to those of `sealab container`; `options` adds what all commands have."""
    build = commands.add_parser(
        "build",
        help="make an image of this Python, without a registry",
        description="Make an image of the running Python, without a registry, for isolation=container.",
        allow_abbrev=False,
    )
    build.add_argument(
        "--with", dest="packages", metavar="PACKAGE", action="append", default=[], help="a package to install in it"
    )
    status = commands.add_parser(
        "status",
        help="show the state of containers",
        description="Show the container engine, the image, and which limits held when tried.",
        allow_abbrev=False,
    )
    for command, run in ((build, _build), (status, _status)):
        command.add_argument("--json", action="store_true", help="print it as JSON")
        command.set_defaults(command=lambda chosen, run=run: run(chosen, *begin(chosen)))
        options(command)


def _build(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    for package in chosen.packages:
        if meant := misnamed(package):
            raise UsageError(f"{package} is a module of {meant}. Write `--with {meant}`.")
    home.prepare()
    copied = engine.needs_copy(settings.container_runtime)
    if copied:
        engine.require_running(settings.container_runtime)
    built = image.build(home.containers, chosen.packages, lambda step: print_error(f"{step} …"))
    if copied:
        print_error("Giving docker a copy …")
        built = image.remember_name(built, engine.load_into_docker(built, settings.container_runtime))
    print_error("Running a container to see which limits hold …")
    status = asyncio.run(_status_of(settings, home))
    if chosen.json:
        print(json.dumps(status))
    else:
        holds = ", ".join(f"{name} {version}" for name, version in sorted((built.packages or {}).items()))
        print(f"Built an image with Python {built.python_version}{f' and {holds}' if holds else ''}.")
        print(status["problem"] or f"It runs with {status['engine']}.")
    return Exit.OK if status["problem"] is None else Exit.FAILED


def _status(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    status = asyncio.run(_status_of(settings, home))
    if chosen.json:
        print(json.dumps(status))
        return Exit.OK if status["usable"] else Exit.FAILED
    held = ", ".join(status["limits_held"]) or "none; resource limits inside hold instead"
    lines = {
        "engine": status["engine"] or ("none that works" if status["image"] else "not tried without an image"),
        "image": status["image"] or "none",
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(status["packages"].items())) or "none",
        "limits": held if status["engine"] else "not tried",
    }
    for what, found in lines.items():
        print(f"{what:<10}{found}")
    print(status["problem"] or "Containers can be used.")
    return Exit.OK if status["usable"] else Exit.FAILED


async def _status_of(settings: Settings, home: Home) -> ContainerStatus:
    """Run a container, if there is an image for it, and see."""
    chosen = chosen_image(settings, home)
    allowed = Isolation.CONTAINER in allowed_isolations(settings)
    found: engine.Engine | None = None
    problem = None if allowed else "ALLOWED_ISOLATION leaves out container. Add it to use containers."
    try:
        if chosen is not None:
            code = await asyncio.to_thread(image.code, home.containers)
            state, cpus = home.containers / "engine", settings.cpus is not None
            found = await engine.find(settings.container_runtime, chosen, code, state, cpus=cpus)
        else:
            problem = problem or NO_IMAGE
    except ContainerMissing as error:
        problem = problem or str(error)
    held = []
    if found is not None:
        held = [("memory", found.memory_held), ("processes", found.processes_held), ("cpus", found.cpus_held)]
    return ContainerStatus(
        usable=problem is None,
        allowed=allowed,
        engine=None if found is None else found.title,
        limits_held=[limit for limit, holds in held if holds],
        image=None if chosen is None else chosen.title,
        python=None if chosen is None else chosen.python_version or None,
        packages={} if chosen is None else dict(chosen.packages or {}),
        problem=problem,
    )
