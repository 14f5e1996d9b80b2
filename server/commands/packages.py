"""`sealab packages`: adds packages to full Python, and says what the dialect makes of one before PACKAGES names it."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from ..errors import Exit, RequestRefused, UsageError
from .data.environment_status import add_wheels_to, judged_wheels, print_status, tell_step
from .group import Begin, Options, add_commands

if TYPE_CHECKING:
    from ..home import Home
    from ..settings import Settings


class Line(TypedDict):
    """One line of a module that raises an error when it runs."""

    line: int | None
    reason: str


class Module(TypedDict):
    """What the dialect makes of one module: `reason` says why an import of it fails, or is None."""

    name: str
    taken: bool
    reason: str | None
    lines: list[Line]


_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?(?:[<>=!~]=?=?[0-9A-Za-z.*+!,<>=~-]+)?")
"""The name of a distribution, perhaps with extras and versions: no address, no path and no option of an installer."""

_IMPORTING = """
reasons = {}
for name in names:
    try:
        __import__(name)
    except BaseException as error:
        reasons[name] = f"{type(error).__name__}: {error}"
result = reasons
"""


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab packages` its commands; `options` adds those that all commands have."""
    make = add_commands(parser, begin, options)
    check = make(
        "check",
        lambda chosen, _home: _check(chosen, *begin(chosen)),
        "import every module of a package as restricted code would, and say which cannot be",
    )
    check.add_argument("names", metavar="NAME", nargs="+", help="an installed distribution, such as more-itertools")
    adding = make(
        "add",
        lambda chosen, _home: _add(chosen, *begin(chosen)),
        "add packages to the environment that `sealab data setup` made for full Python",
    )
    adding.add_argument("names", metavar="NAME", nargs="+", help="a distribution, such as sympy or sympy==1.14")
    add_wheels_to(adding)


def _add(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ..managed_python.building import add
    from ..startup.package_names import misnamed

    for name in chosen.names:
        if not _REQUIREMENT.fullmatch(name):
            raise UsageError(f"{name[:100]!r} is not the name of a package. Give names such as sympy or sympy==1.14.")
        if meant := misnamed(name):
            raise UsageError(f"{name} is a module of {meant}. Write `sealab packages add {meant}`.")
    built = add(home.python, chosen.names, tell_step, wheels=judged_wheels(chosen))
    return print_status(chosen, built, home, settings)


def _check(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ..startup.package_names import misnamed
    from ..startup.packages import find_packages, installed, modules_of

    for name in chosen.names:
        if meant := misnamed(name):
            raise UsageError(f"{name} is a module of {meant}. Write `sealab packages check {meant}`.")
    listed = tuple(dict.fromkeys((*chosen.names, *settings.packages)))
    packages = find_packages(listed)
    found: dict[str, list[Module]] = {}
    for name in chosen.names:
        tops = set(modules_of(installed(name)))
        found[name] = [each for folder, top in packages if top in tops for each in _judged(Path(folder), top)]
    reasons = asyncio.run(_imported(replace(settings, packages=listed, workers_spare=0), home, found))
    for module in (each for modules in found.values() for each in modules):
        module["reason"] = module["reason"] or reasons.get(module["name"])
        module["taken"] = module["reason"] is None
    if chosen.json:
        print(json.dumps({"packages": found}, ensure_ascii=False))
    else:
        for name, modules in found.items():
            _print(name, modules)
    taken = all(module["taken"] for modules in found.values() for module in modules)
    return Exit.OK if taken else Exit.REFUSED


def _judged(folder: Path, top: str) -> list[Module]:
    from ...sandbox.guest_names import judged

    return [
        {
            "name": each.name,
            "taken": True,
            "reason": each.reason,
            "lines": [{"line": line, "reason": reason} for line, reason in each.refusals],
        }
        for each in judged(folder, top)
    ]


async def _imported(settings: Settings, home: Home, found: Mapping[str, Sequence[Module]]) -> Mapping[str, str]:
    """Import the modules in a worker; return why each failed that did."""
    from ..app import running
    from ..runs.execute import execute
    from ..runs.request import CodeRequest

    names = [module["name"] for modules in found.values() for module in modules if module["reason"] is None]
    request = CodeRequest(
        code=_IMPORTING,
        context_vars={"names": cast("list[object]", names)},  # type: ignore[dict-item]  # a list of texts is JSON
        timeout_seconds=settings.max_timeout_seconds,
        isolation="restricted",
    )
    async with running(settings, home) as app:
        report = (await execute(app.executor, request)).report
    if not report["success"]:
        error = report["error"]
        raise RequestRefused(f"The packages could not be imported: {error and error['message']} Check fewer at once.")
    return cast("Mapping[str, str]", report["result"])


def _print(name: str, modules: Sequence[Module]) -> None:
    refused = [module for module in modules if not module["taken"]]
    lines = sum(len(module["lines"]) for module in modules)
    for module in modules:
        if module["reason"] is not None:
            print(f"{module['name']}: refused: {module['reason']}")
        for line in module["lines"]:
            print(f"{module['name']}:{line['line']}: raises when it runs: {line['reason']}")
    print(
        f"{name}: {len(modules) - len(refused)} of {len(modules)} modules can be imported"
        + (f"; {lines} lines raise an error when they run" if lines else "")
    )
