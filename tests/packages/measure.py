"""What popular packages do as guest code: `make packages SOURCES=folder` prints the table of `docs/packages.md`.

    python -m pip download --no-deps --no-binary :all: -r tests/packages/requirements.txt -d SOURCES
    for each in SOURCES/*.tar.gz; do tar -xzf $each -C SOURCES; done
    python tests/packages/measure.py SOURCES [NAME …]

For each package it says how many of its modules can be imported, what importing it costs in the first and in the tenth
worker, and how many of its tests pass. Asked are those of its own tests that pass under CPython with nothing but the
package, the standard library without processes and mock objects, and the stand-in for pytest (`stand_in/pytest.py`); of
a package without such tests the examples in its documentation. Tests that hypothesis makes examples for are left out. There are no files but those that packages are installed
with: tests find none of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from sealab.sandbox.dialect.guest_modules import is_test, read_module
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Limits, Outcome

HERE = Path(__file__).parent
GOAL = 0.95
SECONDS = 120.0
STAND_INS = ("pytest", "hypothesis")
AT_ONCE = 8
"""Modules of tests that one process is asked about."""
LIMITS = Limits(timeout_seconds=SECONDS, memory_mb=1500)
IMPORTING = "import time\nbegan = time.perf_counter()\nimport {}\nresult = (time.perf_counter() - began) * 1000"
EACH = """
told = {}
for name in names:
    try: __import__(name)
    except BaseException as error: told[name] = f"{type(error).__name__}: {error}"[:300]
result = told
"""
TESTING = "import pytest\nresult = pytest.{}(names)"


@dataclass(frozen=True)
class Package:
    """A package: where its modules are in its sources, its top-level modules, its tests, and what it needs."""

    modules: tuple[str, ...]
    tests: tuple[str, ...] = ("tests",)
    folder: str = ""
    needs: tuple[str, ...] = ()


PACKAGES = {
    "more-itertools": Package(("more_itertools",)),
    "sortedcontainers": Package(("sortedcontainers",), ()),
    "toolz": Package(("toolz", "tlz"), ("toolz.tests",)),
    "tabulate": Package(("tabulate",), ("test",)),
    "inflection": Package(("inflection",), ("test_inflection",)),
    "boltons": Package(("boltons",)),
    "python-dateutil": Package(("dateutil",), folder="src", needs=("six",)),
    "networkx": Package(("networkx",), ("networkx",)),
    "jinja2": Package(("jinja2",), folder="src", needs=("markupsafe",)),
    "markdown": Package(("markdown",)),
    "mistune": Package(("mistune",), folder="src"),
    "pyparsing": Package(("pyparsing",)),
    "lark": Package(("lark",)),
    "idna": Package(("idna",)),
    "humanize": Package(("humanize",), folder="src"),
    "jsonschema": Package(
        ("jsonschema",),
        ("jsonschema.tests",),
        needs=("attrs", "referencing", "jsonschema-specifications"),
    ),
    "jmespath": Package(("jmespath",)),
    "tomli": Package(("tomli",), (), folder="src"),
    "simpleeval": Package(("simpleeval",)),
    "mpmath": Package(("mpmath",), ("mpmath.tests",)),
    "parsy": Package(("parsy",), folder="src"),
    "cachetools": Package(("cachetools",), folder="src"),
    "docopt": Package(("docopt",), ()),
    "pyrsistent": Package(("pyrsistent", "_pyrsistent_version"), ()),
    "attrs": Package(("attr", "attrs"), folder="src"),
    "textdistance": Package(("textdistance",)),
}
NEEDED = {
    "six": Package(("six",), ()),
    "markupsafe": Package(("markupsafe",), (), folder="src"),
    "referencing": Package(("referencing",), (), needs=("attrs",)),
    "jsonschema-specifications": Package(("jsonschema_specifications",), (), needs=("referencing",)),
}


def sources_of(name: str, sources: Path) -> Path:
    """Return the directory of a package's unpacked sources."""
    wanted = name.replace("-", "_")
    folders = [each for each in sources.iterdir() if each.is_dir()]
    found = [each for each in folders if each.name.rpartition("-")[0].replace("-", "_").lower() == wanted]
    if not found:
        sys.exit(f"There are no sources of {name} in {sources}. Download and unpack them as {__file__} says.")
    return found[0]


def places_of(name: str, sources: Path, *, tests: bool = False) -> list[tuple[str, str]]:
    """Return the modules of a package and of all that it needs, each as its directory and its name."""
    package = (PACKAGES | NEEDED)[name]
    root = sources_of(name, sources)
    places = [(str(root / package.folder), module) for module in package.modules]
    for needed in package.needs:
        places += places_of(needed, sources)
    if tests:
        for top in sorted({each.partition(".")[0] for each in package.tests} - set(package.modules)):
            places += [(str(root / top), file.stem) for file in files_of(root / top)] or [(str(root), top)]
        places += [(str(HERE / "stand_in"), each) for each in STAND_INS]
        places += [(str(root), "conftest")] if (root / "conftest.py").is_file() else []
    return list(dict.fromkeys(places))


def files_of(folder: Path) -> list[Path]:
    """Return the files of a directory of tests that is no package: each is a top-level module."""
    return [] if (folder / "__init__.py").is_file() else sorted(folder.glob("*.py"))


def modules_of(name: str, sources: Path) -> list[str]:
    """Return the names of a package's modules but for its tests."""
    package = PACKAGES[name]
    folder = sources_of(name, sources) / package.folder
    texts = [text for module in package.modules for text in read_module(folder, module)]
    return [text.name for text in texts if not is_test(text) and not text.name.endswith("__main__")]


def tests_of(name: str, sources: Path) -> list[str]:
    """Return the names of the modules in which a package's tests are."""
    root, package = sources_of(name, sources), PACKAGES[name]
    found = []
    for test in package.tests:
        folder = root / (package.folder if test.partition(".")[0] in package.modules else "")
        if files_of(folder / test):
            found += [file.stem for file in files_of(folder / test) if "test" in file.stem and file.stem != "conftest"]
            continue
        texts = read_module(folder, test.partition(".")[0])
        names = [text.name for text in texts if text.name.startswith(test) and not text.is_package]
        found += [each for each in names if "test" in each.rpartition(".")[2] and "conftest" not in each]
    return found


def asked_of_cpython(name: str, names: Sequence[str], how: str, sources: Path) -> dict[str, str]:
    """Return what became of tests under CPython."""
    told: dict[str, str] = {}
    for some in batched(names):
        question = json.dumps([places_of(name, sources, tests=True), some, how])
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(HERE / "baseline.py")],
                input=question, capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
            told |= json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):  # each may hang or end the process
            told |= {some[0]: "no answer"}
            for each in some if len(some) > 1 else ():
                told |= asked_of_cpython(name, [each], how, sources)
    return told


def batched(names: Sequence[str]) -> list[list[str]]:
    """Return the names in groups of as many as one process is asked about."""
    return [list(names[begin : begin + AT_ONCE]) for begin in range(0, len(names), AT_ONCE)]


async def no_calls(name: str, arguments: Any) -> Any:
    """Answer of every file that it is not there, as the host does."""
    del arguments
    if name.startswith("file") or name in {"list_folder", "make_folder", "remove_folder", "remove_path", "rename_path"}:
        return {"errno": errno.ENOENT, "why": "there are no files"}
    raise PermissionError(name)


async def compiled(pool: Pool) -> None:
    """Wait until the zygote has compiled the modules that it compiles while it is idle."""
    await pool.ready()
    zygote = max(psutil.Process().children(), key=lambda process: process.create_time())
    spent = -1.0
    while spent != (spent := sum(zygote.cpu_times()[:2])):  # noqa: ASYNC110 - another process, which tells nobody
        await asyncio.sleep(1)


async def asked_of_guest(pool: Pool, names: Sequence[str], how: str) -> dict[str, str]:
    """Return what became of tests as guest code."""
    told: dict[str, str] = {}
    for some in batched(names):
        outcome = await pool.run(Job(TESTING.format(how), context_vars={"names": some}, limits=LIMITS), no_calls)
        if isinstance(outcome.result, dict) or len(some) == 1:
            told |= told_by(outcome, some[0])
            continue
        for each in some:
            told |= await asked_of_guest(pool, [each], how)
    return told


def told_by(outcome: Outcome, name: str) -> dict[str, str]:
    """Return the answer of a run, or why there is none."""
    if isinstance(outcome.result, dict):
        return {key: str(value) for key, value in outcome.result.items()}
    why = outcome.status.value if outcome.error is None else f"{outcome.error.type}: {outcome.error.message}"
    return {name: why[:300]}


async def cost_of_import(pool: Pool, module: str) -> list[tuple[float, float]]:
    """Return milliseconds and MB of the first import in each of ten workers."""
    costs = []
    for number in range(10):
        session = f"s{number}"
        await pool.run(Job("1", session=session, limits=LIMITS), no_calls)
        worker = max(psutil.Process().children(recursive=True), key=lambda process: process.create_time())
        before = worker.memory_full_info().uss
        outcome = await pool.run(Job(IMPORTING.format(module), session=session, limits=LIMITS), no_calls)
        after = worker.memory_full_info().uss if worker.is_running() else before
        costs.append((float(outcome.result) if isinstance(outcome.result, float) else -1, (after - before) / 1e6))
        await pool.end_session(session)
    return costs


async def row(name: str, sources: Path) -> tuple[bool, str, Counter[str]]:
    """Measure one package: whether it reaches the goal, its line of the table, and why tests fail."""
    package = PACKAGES[name]
    names = modules_of(name, sources)
    how, tests = "run", tests_of(name, sources)
    expected = asked_of_cpython(name, tests, how, sources)
    if "ok" not in expected.values():
        how, tests = "run_doctests", names
        expected = asked_of_cpython(name, tests, how, sources)
    wanted = {test for test, became in expected.items() if became == "ok"}
    tests = [each for each in tests if any(test.startswith(each) for test in wanted)]
    settings = PoolSettings(packages=tuple(places_of(name, sources, tests=True)), spares=0, maximum=LIMITS)
    async with Pool(settings) as pool:
        await compiled(pool)
        importing = Job(EACH, context_vars={"names": list(names)}, limits=LIMITS)
        refused = told_by(await pool.run(importing, no_calls), name) if names else {}
        costs = await cost_of_import(pool, package.modules[0])
        became = await asked_of_guest(pool, tests, how)
    passed = {test for test in wanted if became.get(test) == "ok"}
    reasons = Counter(
        became.get(test) or next((became[each] for each in tests if test.startswith(each) and each in became), "gone")
        for test in wanted - passed
    )
    reached = package.modules[0] not in refused and len(passed) >= GOAL * len(wanted)
    (first_ms, first_mb), (tenth_ms, tenth_mb) = costs[0], costs[-1]
    cells = (
        f"{name:<18}{len(names) - len(refused):>4}{len(refused):>4}{first_ms:>8.0f}{tenth_ms:>6.0f}{first_mb:>7.1f}"
        f"{tenth_mb:>6.1f}{len(passed):>7}{len(wanted) - len(passed):>6}  {'yes' if reached else 'no'}"
        f"{' (doctests)' if how == 'run_doctests' and wanted else ' (no tests)' if not wanted else ''}"
    )
    reasons.update({f"not imported: {why}": 1 for why in dict.fromkeys(refused.values())})
    return reached, cells, reasons


async def measured(sources: Path, names: Sequence[str]) -> None:
    print(f"{'package':<18}{'taken':>5}{'not':>3}{'ms':>8}{'10th':>6}{'MB':>7}{'10th':>6}{'passed':>7}{'not':>6}  goal")
    reached = 0
    for name in names or PACKAGES:
        is_reached, cells, reasons = await row(name, sources)
        reached += is_reached
        print(cells, flush=True)
        for reason, times in reasons.most_common(4):
            print(f"    {times:>4} × {reason[:150]}", flush=True)
    print(f"{reached} of {len(names or PACKAGES)} packages reach the goal of {GOAL:.0%}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("names", nargs="*", metavar="name")
    chosen = parser.parse_args()
    logging.disable()  # of each host call that tests ask for in vain
    asyncio.run(measured(chosen.sources, chosen.names))


if __name__ == "__main__":
    main()
