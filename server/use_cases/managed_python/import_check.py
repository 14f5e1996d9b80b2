"""Imports each package of a new environment once, in a confined process, before the environment takes its place.

A package can be installed and still not work: a library of the system is missing, or it was built for another
processor. What is found here is found before code of an agent relies on it. The list of fonts, which matplotlib makes
at its first figure, is made here too and kept beside the packages (`sandbox.full_python.changed_libraries`).
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from ....sandbox.confine import Level
from ....sandbox.errors import SandboxError
from ....sandbox.host.pool import Pool, PoolSettings
from ....sandbox.job import FONTS_FOLDER, Isolation, Job, Json, Limits, Outcome, Status
from ...base.errors import PythonNotBuilt
from ...base.startup.package_names import distribution_of

_SECONDS = 300.0
_MEMORY_MB = 4000
_REASON_CHARS_MAX = 300
_BEGINS = "sealab imports "
_IMPORTING = f"""
import importlib
failed = {{}}
for name in names:
    print("{_BEGINS}" + name, flush=True)
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = type(error).__name__ + ": " + str(error)
result = failed
"""
_FONTS = """
import glob, os
import matplotlib.font_manager
result = {
    os.path.basename(path): open(path, encoding="utf-8").read()
    for path in glob.glob(os.path.join(matplotlib.get_cachedir(), "fontlist-*.json"))
}
"""
_FONT_LIST = re.compile(r"fontlist-v[\w.]+\.json")


@dataclass(frozen=True, slots=True)
class _Modules:
    """The top modules of a distribution: `main` must be importable, or where none is known one of `others`."""

    distribution: str
    main: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(slots=True)
class _ImportsSeen:
    failed: dict[str, str] = field(default_factory=dict)
    fonts: dict[str, str] = field(default_factory=dict)


def check(python: Path, packages: Path) -> None:
    """Import each package of the folder `packages` by an interpreter, and keep the list of fonts there.

    Raises `PythonNotBuilt`, which names those that cannot be imported and why.
    """
    modules = list(_modules_of(packages))
    names = sorted({name for each in modules for name in (*each.main, *each.others)})
    found = _ImportsSeen()
    problems: list[SandboxError] = []

    def work() -> None:  # in a thread of its own, since the caller's may have an event loop already
        try:
            asyncio.run(_look(str(python), names, found))
        except SandboxError as error:
            problems.append(error)

    thread = threading.Thread(target=work, name="sealab import check")
    thread.start()
    thread.join()
    if problems:
        raise PythonNotBuilt(
            f"Whether the packages can be imported cannot be found out, since full Python does not start: "
            f"{str(problems[0]).rstrip('.')}. Mend that, for which `sealab doctor` helps, and set it up again."
        )
    broken = [problem for each in modules if (problem := _problem_of(each, found.failed)) is not None]
    if broken:
        raise PythonNotBuilt(
            f"{'; '.join(broken)}. The new environment was not put in place. Name another version of it, or install "
            "what it misses, and try again."
        )
    for name, text in found.fonts.items():
        folder = packages / FONTS_FOLDER
        folder.mkdir(exist_ok=True)
        kept = folder / name
        kept.unlink(missing_ok=True)  # a copy of the environment before shares it
        kept.write_text(text, encoding="utf-8")


async def _look(python: str, names: Sequence[str], found: _ImportsSeen) -> None:
    maximum = Limits(timeout_seconds=_SECONDS, memory_mb=_MEMORY_MB)
    # The layers that the machine has are on in any case; whether they are enough is judged where code is to run.
    settings = PoolSettings(
        spares=0, isolation=Isolation.PROCESS, python=python, required_level=Level.LIMITS, maximum=maximum
    )
    async with Pool(settings) as pool:
        await _import(pool, list(names), found.failed)
        if "matplotlib" in names and "matplotlib" not in found.failed:
            found.fonts.update(_fonts_of(await _run(pool, _FONTS, {})))


async def _import(pool: Pool, names: list[str], failed: dict[str, str]) -> None:
    """Import all in one process; where one ends it, that one again in a process of its own, then those after it."""
    while names:
        outcome = await _run(pool, _IMPORTING, {"names": list(names)})
        if outcome.status is Status.OK and isinstance(outcome.result, Mapping):
            failed.update({str(name): str(why) for name, why in outcome.result.items()})
            return
        begun = [name for line in outcome.output.splitlines() if (name := line.removeprefix(_BEGINS)) in names]
        last = begun[-1] if begun else names[0]
        if len(names) > 1 and names[0] != last:
            await _import(pool, names[: names.index(last)], failed)
            names = names[names.index(last) :]
        elif len(names) > 1:
            await _import(pool, [last], failed)
            names = names[1:]
        else:
            failed[last] = outcome.status.value if outcome.error is None else outcome.error.message
            return


async def _run(pool: Pool, code: str, variables: dict[str, Json]) -> Outcome:
    limits = Limits(timeout_seconds=_SECONDS, memory_mb=_MEMORY_MB)
    return await pool.run(Job(code, variables, limits=limits, isolation=Isolation.PROCESS), _no_calls)


async def _no_calls(name: str, _arguments: object) -> None:
    raise SandboxError(f"{name} was called by a package that is only imported.")


def _fonts_of(outcome: Outcome) -> dict[str, str]:
    """Return the lists of fonts by their files' names; none where matplotlib keeps them otherwise."""
    fonts = outcome.result if isinstance(outcome.result, Mapping) else {}
    return {name: text for name, text in fonts.items() if _FONT_LIST.fullmatch(name) and isinstance(text, str)}


def _problem_of(each: _Modules, failed: Mapping[str, str]) -> str | None:
    wanted = each.main or each.others
    bad = [name for name in wanted if name in failed]
    if not bad or (not each.main and len(bad) < len(wanted)):
        return None
    why = " ".join(failed[bad[0]].split())[:_REASON_CHARS_MAX].rstrip(".")
    return f"{each.distribution} cannot be imported ({bad[0]}: {why})"


def _modules_of(packages: Path) -> Iterator[_Modules]:
    for found in distributions(path=[str(packages)]):
        name = str(found.metadata["Name"])
        tops: set[str] = set()
        for file in found.files or ():
            top = file.parts[0].partition(".")[0] if len(file.parts) == 1 else file.parts[0]
            if file.suffix in {".py", ".so"} and top.isidentifier():
                tops.add(top)
        main = tuple(sorted(top for top in tops if _same(top, name) or _same(distribution_of(top) or "", name)))
        yield _Modules(name, main, tuple(sorted(tops.difference(main))))


def _same(first: str, second: str) -> bool:
    return re.sub(r"[-_.]+", "-", first).lower() == re.sub(r"[-_.]+", "-", second).lower()
