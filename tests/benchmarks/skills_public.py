"""Public Agent Skills: how many folders of each collection are imported, can be called, and answer in the sandbox.

Each collection is a folder of `SOURCES`, unpacked. A skill with scripts counts as callable where one of them has become
a function, and as answering where one answers `--help`, or else tells how to call it. A home where `sealab data setup`
was run, with the packages that the import names, is given by `--home`; without one only the import is measured.

    python -m tests.benchmarks.skills_public SOURCES [--home DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.server.use_cases.skills.files import Imported, import_from

_ASKING = """
answers = {}
for name in scripts:
    try:
        getattr(skills[skill], name)(argv=["--help"])
        answers[name] = ""
    except BaseException as error:
        told = f"{type(error).__name__}: {error}"
        answers[name] = "" if "usage" in told.lower() else told[:150]
result = answers
"""


@dataclass(slots=True)
class Collection:
    """What became of one collection; `why_not` counts reasons, of folders that were refused and of scripts."""

    folders: int = 0
    imported: int = 0
    with_scripts: int = 0
    answered: int = 0
    scripts: int = 0
    scripts_answered: int = 0
    why_not: Counter[str] = field(default_factory=Counter)


async def measured(app: App, source: Path) -> Collection:
    """Import a collection, and ask each of its scripts for help."""
    told = Collection()
    for each in await import_from(app.skills, source):
        told.folders += 1
        if each.refused is not None:
            told.why_not[f"refused: {each.refused}"[:150]] += 1
            continue
        told.imported += 1
        if each.scripts:
            told.with_scripts += 1
            answers = await _asked(app, each)
            told.scripts += len(answers)
            told.scripts_answered += sum(not why for why in answers.values())
            told.answered += any(not why for why in answers.values())
            told.why_not.update(why for why in answers.values() if why)
    return told


async def _asked(app: App, each: Imported) -> dict[str, str]:
    if app.executor.offer.full_python.why_not() is not None:
        return dict.fromkeys(each.scripts, "full Python is not set up")
    request = CodeRequest(
        _ASKING, {"skill": each.name, "scripts": list(each.scripts)}, timeout_seconds=60, isolation="process"
    )
    report = (await execute(app.executor, request)).report
    if isinstance(report["result"], dict):
        return {str(name): str(why) for name, why in report["result"].items()}
    error = report["error"]
    return dict.fromkeys(each.scripts, f"{report['status']}: {error and error['message']}"[:150])


async def table(sources: Sequence[Path], home: Path | None, most: int) -> None:
    """Print a row for each collection, and below each why what is missing is missing."""
    row = "{:<34}{:>8}{:>9}{:>14}{:>9}{:>20}"
    print(row.format("collection", "folders", "imported", "with scripts", "answered", "scripts answered"))
    with tempfile.TemporaryDirectory() as place:
        if home is not None:
            (Path(place) / "python").symlink_to(home / "python")
        async with running(Settings(), Home(Path(place)), serves=True) as app:
            for source in sources:
                told = await measured(app, source)
                scripts = f"{told.scripts_answered}/{told.scripts}"
                numbers = told.folders, told.imported, told.with_scripts, told.answered, scripts
                print(row.format(source.name[:33], *numbers), flush=True)
                for why, count in told.why_not.most_common(most):
                    print(f"    {count} x {' '.join(why.split())}")


def main() -> int:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="a folder with one folder for each collection")
    parser.add_argument("--home", type=Path, help="a home where full Python is set up")
    parser.add_argument("--reasons", type=int, default=5, help="how many reasons to show for each (default: 5)")
    given = parser.parse_args()
    sources = sorted(path for path in given.sources.iterdir() if path.is_dir())
    home = None if given.home is None else given.home.absolute()
    asyncio.run(table(sources, home, given.reasons))
    return 0


if __name__ == "__main__":
    sys.exit(main())
