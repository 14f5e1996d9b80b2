"""Skills that import what only full Python has: saved, tested and run there, by whatever program uses them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealab.sandbox.job import Isolation
from sealab.server.app import App, running
from sealab.server.base.errors import SkillUnfit
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.placement.routing import skills_in
from sealab.server.use_cases.runs.report import Report
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.server.use_cases.skills.use_cases import RunSkillRequest, SaveRequest
from sealab.server.use_cases.skills.use_cases import run as run_skill
from sealab.server.use_cases.skills.use_cases import save as save_skill

from ...managed_python.kernel import needs_kernel

pytestmark = needs_kernel

ALONE = Settings(workers_spare=0)
TOTAL = '''
import pandas as pd

def total(values: list[float]) -> float:
    """Add up values.

    >>> total([1.0, 2.0])
    3.0
    """
    return pd.total(*values)
'''
DOUBLE = '''
from skills import total

def double(values: list[float]) -> float:
    """Add up values twice."""
    return 2 * total(values)
'''
PLAIN = '''
def plain(value: float) -> float:
    """Return a value."""
    return value
'''


@pytest.fixture(scope="module")
async def app(home: Home) -> AsyncIterator[App]:
    async with running(ALONE, home, serves=True) as app:
        for name, code, tests in (
            ("total", TOTAL, "assert total([40, 2]) == 42"),
            ("double", DOUBLE, "assert double([1, 2]) == 6"),
            ("plain", PLAIN, ""),
        ):
            await save_skill(app.skills, SaveRequest(name, code, tests=tests))
        yield app


async def ran(app: App, code: str, **request: object) -> Report:
    return (await execute(app.executor, CodeRequest(code, **request))).report  # type: ignore[arg-type]  # as given


@pytest.mark.parametrize(
    "code",
    [
        "skills.total([40, 2])",
        "from skills import total\ntotal([40, 2])",
        "from skills import (\n    plain,\n    total as add,\n)\nadd([plain(40), 2])",
        "skills['total@1']([40, 2])",
        "skills.total.v1([40, 2])",
        "load_skill('total')([40, 2])",
        "from skills import double\ndouble([20, 1])",
        "import asyncio\nawait asyncio.sleep(0)\nskills.total([40, 2])",
    ],
)
async def test_a_program_that_uses_such_a_skill_runs_in_full_python(app: App, code: str) -> None:
    report = await ran(app, code)
    assert (report["status"], report["result"], report["isolation"]) == ("ok", 42, "process"), report["error"]


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("skills.plain(42)", 42),
        ("# skills.total([1])\nskills.plain(42)", 42),
        ("'skills.total([1])'", "skills.total([1])"),
        ("[each['name'] for each in list_skills('total')['skills']][:1]", ["total"]),
    ],
)
async def test_any_other_program_with_skills_stays_in_the_dialect(app: App, code: str, result: object) -> None:
    report = await ran(app, code)
    assert (report["result"], report["isolation"]) == (result, "restricted"), report["error"]


async def test_it_is_run_by_its_name_there(app: App) -> None:
    report = (await run_skill(app.skills, RunSkillRequest("total", {"values": [40, 2]}))).report
    assert (report["result"], report["isolation"]) == (42, "process")


async def test_code_that_finds_it_by_chance_is_told_where_it_runs(app: App) -> None:
    report = await ran(app, "name = 'to' + 'tal'\nskills[name]([1])")
    assert (report["status"], report["isolation"]) == ("error", "restricted")
    assert report["error"] is not None
    assert report["error"]["hint"] == 'Ask for isolation="process", which can run it.'


async def test_a_session_of_full_python_can_use_it(app: App) -> None:
    await ran(app, "from skills import total\nkept = total([1, 2])", session="own")
    assert (await ran(app, "kept", session="own"))["result"] == 3


async def test_where_full_python_is_not_set_up_it_cannot_be_saved_and_the_answer_says_what_is_missing(
    tmp_path: Path,
) -> None:
    async with running(ALONE, Home(tmp_path)) as app:
        with pytest.raises(SkillUnfit, match=r"imports pandas needs full Python\. .*sealab data setup"):
            await save_skill(app.skills, SaveRequest("total", TOTAL))


async def test_where_the_operator_forbids_full_python_a_stored_one_says_so(home: Home, app: App) -> None:
    forbidden = dataclasses.replace(ALONE, allowed_isolation=(Isolation.RESTRICTED,))
    async with running(forbidden, home) as other:
        report = await ran(other, "skills.total([1])")
        assert report["status"] == "error"
        assert report["error"] is not None
        assert "full Python could run it, which is not offered here" in str(report["error"]["message"])
        with pytest.raises(SkillUnfit, match="ALLOWED_ISOLATION leaves out process"):
            await save_skill(other.skills, SaveRequest("again", TOTAL.replace("total(", "again(")))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import pandas", set()),
        ("skills.a(1); skills ['b']()", {"a", "b"}),
        ("from skills import a, b as c", {"a", "b", "as", "c"}),
        ("call_skill('a', 1, arguments)", {"a"}),
    ],
)
def test_skills_are_looked_for_in_the_text(code: str, names: set[str]) -> None:
    assert skills_in(code) == names


async def test_files_are_given_to_tests_there_and_none_of_theirs_come_home(app: App) -> None:
    code = "import pandas\ndef rows(path):\n    return open(path).read()\n"
    tests = "open('left.txt', 'w').write('x')\nassert rows('in/a.csv') == 'a,b'\nassert rows('in/a.csv') == 'c'"
    request = SaveRequest("rows", code, tests=tests, files={"in/a.csv": b"a,b"})
    with pytest.raises(SkillUnfit, match=r"line 3, \"assert rows\('in/a.csv'\) == 'c'\""):
        await save_skill(app.skills, request)
    await save_skill(app.skills, dataclasses.replace(request, tests=tests.rpartition("\n")[0]))
    assert app.workspace.list().files == ()
