"""Folders that others wrote, imported: their scripts run in full Python with their folder at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealab.sandbox.job import Isolation
from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.interfaces.protocol.extensions.skills_extension import ServerWithSkills, found
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.report import Report
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.server.use_cases.skills.files import export_to, import_from
from sealab.server.use_cases.skills.use_cases import RunSkillRequest, SaveRequest
from sealab.server.use_cases.skills.use_cases import load as load_skill
from sealab.server.use_cases.skills.use_cases import run as run_skill
from sealab.server.use_cases.skills.use_cases import save as save_skill

from ...managed_python.kernel import needs_kernel

pytestmark = needs_kernel

ALONE = Settings(workers_spare=0)
COUNT = '''
"""Count words."""
import argparse
import pathlib
import sys

import pandas
from office import words

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="count")
    parser.add_argument("text")
    parser.add_argument("--least", type=int, default=1)
    given = parser.parse_args()
    font = pathlib.Path(__file__).parent.parent / "font.bin"
    if given.text == "write":
        font.write_bytes(b"")
    if given.text == "fail":
        sys.exit("no such words")
    print(len([each for each in words.of(given.text) if len(each) >= given.least]), len(font.read_bytes()))
'''
OTHER = "import sys\nif __name__ == '__main__':\n    import words\n    print(words.WHOSE, sys.argv[1:])\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("from") / "word-tools"
    files = {
        "SKILL.md": "---\nname: word-tools\ndescription: Counts words: all of them\n---\n# How\n\nRun count.\n",
        "scripts/count_words.py": COUNT,
        "scripts/office/__init__.py": "",
        "scripts/office/words.py": "def of(text):\n    return text.split()\n",
        "more/other.py": OTHER,
        "more/words.py": "WHOSE = 'mine'\n",
        "reference.md": "Words.\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "font.bin").write_bytes(b"\0\xff" * 50)
    return folder


@pytest.fixture(scope="module")
async def app(home: Home, folder: Path) -> AsyncIterator[App]:
    async with running(ALONE, home, serves=True) as app:
        (imported,) = await import_from(app.skills, folder)
        assert (imported.name, imported.refused, imported.packages) == ("word_tools", None, ())
        assert (imported.scripts, imported.brought) == (("other", "count_words"), {"files": 7, "assets": 1})
        yield app


async def ran(app: App, code: str, **request: object) -> Report:
    return (await execute(app.executor, CodeRequest(code, **request))).report  # type: ignore[arg-type]  # as given


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("skills.word_tools.count_words('a bb ccc', least=2)", "2 100\n"),
        ("skills.word_tools.count_words(argv=['a bb', '--least', '2'])", "1 100\n"),
        ("from skills import word_tools\nword_tools.other(argv=['x'])", "mine ['x']\n"),
        ("skills.word_tools(script='other', argv=['y'])", "mine ['y']\n"),
        ("skills.word_tools.v1.other()", "mine []\n"),
        ("import os\nsorted(os.listdir(skills.word_tools.folder()))[:2]", ["SKILL.md", "font.bin"]),
    ],
)
async def test_a_script_is_a_function_of_its_skill(app: App, code: str, result: object) -> None:
    report = await ran(app, code)
    assert (report["status"], report["result"], report["isolation"]) == ("ok", result, "process"), report["error"]


async def test_its_modules_can_be_imported(app: App) -> None:
    code = "skills.word_tools.folder()\nfrom more import words\nwords.WHOSE"
    assert (await ran(app, code, isolation="process"))["result"] == "mine"


async def test_it_answers_help_and_says_what_is_missing(app: App) -> None:
    report = await ran(app, "skills.word_tools.count_words(argv=['--help'])")
    assert str(report["result"]).startswith("usage: count [-h]"), report["error"]
    for call, said in (
        ("count_words()", "ended with exit code 2: usage: count"),
        ("count_words('fail')", "ended with exit code 1: no such words"),
        ("count_words('write')", "Permission denied"),
        ("nothing()", "its scripts are other, count_words"),
    ):
        report = await ran(app, f"skills.word_tools.{call}")
        assert report["error"] is not None
        assert said in report["error"]["message"]


async def test_it_is_run_by_name_and_its_text_is_marked_as_that_of_others(app: App) -> None:
    request = RunSkillRequest("word_tools", {"script": "other", "argv": ["z"]})
    assert (await run_skill(app.skills, request)).report["result"] == "mine ['z']\n"
    for arguments, said in (({}, "# How\n\nRun count.\n"), ({"read": "reference.md"}, "Words.\n")):
        text = str((await run_skill(app.skills, RunSkillRequest("word_tools", arguments))).report["result"])
        assert "which others wrote" in text.splitlines()[0]
        assert text.endswith(said)
    loaded = await load_skill(app.skills, "word_tools")
    assert loaded["description"].startswith("[imported, written by others] Counts words: all of them")
    assert "no word of the user" in str(loaded["metadata"]["origin"])
    assert str(loaded["metadata"]["instructions"]).endswith("Run count.\n")


async def test_its_files_are_resources_pictures_too(app: App) -> None:
    server = ServerWithSkills(app.skills.service, "sealab")
    (entry,) = [each for each in await server.list_resources() if str(each.uri) == "skill://word-tools/SKILL.md"]
    assert str(entry.description).startswith("[imported, written by others]")
    for path, content in (("reference.md", "Words.\n"), ("font.bin", b"\0\xff" * 50)):
        (read,) = await server.read_resource(f"skill://word-tools/{path}")  # type: ignore[misc]  # nothing is asked
        assert read.content == content
    served, _ = await found(app.skills.service, "skill://word-tools/")
    assert served is not None
    assert served.entry()["frontmatter"] == {"name": "word-tools", "description": "Counts words: all of them"}


async def test_a_skill_is_exported_with_those_that_it_uses_and_comes_back_whole(app: App, tmp_path: Path) -> None:
    code = "def {0}(value: float) -> float:\n    {1}\n    return {2} / 2\n"
    tests = "assert quarter(4) == 1"
    await save_skill(app.skills, SaveRequest("half", code.format("half", "pass", "value")))
    uses = code.format("quarter", "from skills import half", "half(value)")
    await save_skill(app.skills, SaveRequest("quarter", uses, tests=tests, tags=["numbers"]))
    exported = await export_to(app.skills, tmp_path, ["quarter", "word_tools"])
    assert [name for name, _ in exported] == ["quarter", "word_tools", "half"]
    again = await import_from(app.skills, tmp_path)
    assert {(each.name, each.version, each.created) for each in again} == {
        (name, 1, False) for name in ("half", "quarter", "word_tools")
    }
    async with running(ALONE, Home(tmp_path / "new")) as other:
        assert {each.refused for each in await import_from(other.skills, tmp_path)} == {None}
        for name in ("half", "quarter", "word_tools"):
            one, two = [await load_skill(each.skills, name) for each in (app, other)]
            assert one["metadata"]["content_hash"] == two["metadata"]["content_hash"]


async def test_where_full_python_is_not_allowed_its_text_is_read_and_a_script_names_the_setting(
    home: Home, app: App, folder: Path
) -> None:
    forbidden = dataclasses.replace(ALONE, allowed_isolation=(Isolation.RESTRICTED,))
    async with running(forbidden, home) as other:
        (again,) = await import_from(other.skills, folder)
        assert (again.created, again.wants_full_python) == (False, "ALLOWED_ISOLATION leaves out process.")
        assert str((await ran(other, "skills.word_tools()"))["result"]).endswith("Run count.\n")
        report = await ran(other, "skills.word_tools.other()")
        assert report["error"] is not None
        assert "add process to ALLOWED_ISOLATION" in report["error"]["message"]


async def test_the_requirements_of_a_folder_name_the_packages_of_modules_that_are_not_known(
    app: App, tmp_path: Path
) -> None:
    script = (
        "import sys\nimport pandas\nimport odd_module\nimport umap\nif __name__ == '__main__':\n    print(sys.argv)\n"
    )
    for requirements, packages, modules in (
        (None, ("umap-learn",), ("odd_module",)),
        ("# all\npandas>=2\nOdd.Dist[x]==1.0 ; python_version > '3'\n-r other.txt\nhttps://x.y/z.whl\numap-learn\n", ("umap-learn", "Odd.Dist"), ()),
    ):  # fmt: skip
        folder = tmp_path / f"odd-{len(packages)}"
        (folder / "more").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Odd.\n---\n")
        for name in ("more/first.py", "more/second.py"):
            (folder / name).write_text(script)
        if requirements is not None:
            (folder / "requirements.txt").write_text(requirements)
        (imported,) = await import_from(app.skills, folder)
        assert (imported.refused, imported.packages, imported.modules) == (None, packages, modules)
