"""`sealab packages`: adds packages to full Python, and says what the dialect makes of one before PACKAGES names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, cast

from ....sandbox.guest_names import judged
from ....sandbox.job import Json
from ...base.errors import Exit, RequestRefused, UsageError
from ...base.startup.package_names import misnamed
from ...base.startup.packages import find_packages, installed, modules_of
from ...use_cases.managed_python import building
from .command import Group
from .data import judged_wheels, print_step, status_output
from .opened import running_with
from .terminal import Here, Output

packages = Group()


class FailingLine(TypedDict):
    """One line of a module that raises an error when it runs."""

    line: int | None
    reason: str


class CheckedModule(TypedDict):
    """What the dialect makes of one module: `reason` says why an import of it fails, or is None."""

    name: str
    taken: bool
    reason: str | None
    lines: list[FailingLine]


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


@packages.command()
async def check(here: Here, names: Sequence[str]) -> Output:
    """Import every module of a package as restricted code would, and say which cannot be.

    names NAME: an installed distribution, such as more-itertools
    """
    _refuse_modules(names, "check")
    listed = tuple(dict.fromkeys((*names, *here.settings.packages)))
    places = find_packages(listed)
    found: dict[str, list[CheckedModule]] = {}
    for name in names:
        tops = set(modules_of(installed(name)))
        found[name] = [each for folder, top in places if top in tops for each in _judged(Path(folder), top)]
    reasons = await _imported(here, listed, found)
    for module in (each for modules in found.values() for each in modules):
        module["reason"] = module["reason"] or reasons.get(module["name"])
        module["taken"] = module["reason"] is None
    taken = all(module["taken"] for modules in found.values() for module in modules)
    lines = [line for name, modules in found.items() for line in _lines(name, modules)]
    return Output({"packages": found}, lines, Exit.OK if taken else Exit.REFUSED)


@packages.command()
def add(here: Here, names: Sequence[str], *, wheels: Sequence[Path] = ()) -> Output:
    """Add packages to the environment that `sealab data setup` made for full Python.

    names NAME: a distribution, such as sympy or sympy==1.14
    wheels DIR: a folder of wheel files: nothing is asked of an index
    """
    for name in names:
        if not _REQUIREMENT.fullmatch(name):
            raise UsageError(f"{name[:100]!r} is not the name of a package. Give names such as sympy or sympy==1.14.")
    _refuse_modules(names, "add")
    return status_output(here, building.add(here.home.python, names, print_step, wheels=judged_wheels(wheels)))


def _refuse_modules(names: Sequence[str], command: str) -> None:
    for name in names:
        if meant := misnamed(name):
            raise UsageError(f"{name} is a module of {meant}. Write `sealab packages {command} {meant}`.")


def _judged(folder: Path, top: str) -> list[CheckedModule]:
    return [
        {
            "name": each.name,
            "taken": True,
            "reason": each.reason,
            "lines": [{"line": line, "reason": reason} for line, reason in each.refusals],
        }
        for each in judged(folder, top)
    ]


async def _imported(
    here: Here, listed: tuple[str, ...], found: Mapping[str, Sequence[CheckedModule]]
) -> Mapping[str, str]:
    """Import the modules in a worker; return why each failed that did."""
    from ...use_cases.runs.execute import execute
    from ...use_cases.runs.request import CodeRequest

    names: list[Json] = [each["name"] for modules in found.values() for each in modules if each["reason"] is None]
    request = CodeRequest(
        code=_IMPORTING,
        context_vars={"names": names},
        timeout_seconds=here.settings.max_timeout_seconds,
        isolation="restricted",
    )
    async with running_with(replace(here.settings, packages=listed), here.home) as app:
        report = (await execute(app.executor, request)).report
    if not report["success"]:
        error = report["error"]
        raise RequestRefused(f"The packages could not be imported: {error and error['message']} Check fewer at once.")
    return cast("Mapping[str, str]", report["result"])


def _lines(name: str, modules: Sequence[CheckedModule]) -> Iterator[str]:
    taken = sum(module["taken"] for module in modules)
    lines = sum(len(module["lines"]) for module in modules)
    for module in modules:
        if module["reason"] is not None:
            yield f"{module['name']}: refused: {module['reason']}"
        for line in module["lines"]:
            yield f"{module['name']}:{line['line']}: raises when it runs: {line['reason']}"
    more = f"; {lines} lines raise an error when they run" if lines else ""
    yield f"{name}: {taken} of {len(modules)} modules can be imported{more}"
