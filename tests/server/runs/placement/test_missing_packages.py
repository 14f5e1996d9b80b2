"""What a refused or slow run is told of full Python and packages, and who is asked before it runs in a container."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from sealab.sandbox.job import Failure, Isolation, Job, Outcome, Status
from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.governance.questions import NO, Question, Reply
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.placement import escalation
from sealab.server.use_cases.runs.placement.escalation import with_full_python_hint
from sealab.server.use_cases.runs.request import CodeRequest

from ...managed_python.kernel import needs_kernel

ALONE = Settings(workers_spare=0)


@pytest.fixture(scope="module")
async def app(home: Home) -> AsyncIterator[App]:
    async with running(ALONE, home) as app:
        yield app


async def hint(app: App, code: str, **request: object) -> str:
    report = (await execute(app.executor, CodeRequest(code, **request))).report  # type: ignore[arg-type]  # as given
    assert report["error"] is not None, report
    return str(report["error"]["hint"])


async def test_where_full_python_is_not_set_up_a_package_of_it_names_the_command(tmp_path: Path) -> None:
    async with running(ALONE, Home(tmp_path)) as app:
        for module in ("pandas", "numpy", "sklearn.linear_model"):
            assert "once the operator has run `sealab data setup`" in await hint(app, f"import {module}")
        for module in ("requests", "plotly", "no_such_module", "skills.none"):
            assert "data setup" not in await hint(app, f"import {module}")


@needs_kernel
@pytest.mark.parametrize("isolation", ["auto", "restricted", "process"])
async def test_a_package_that_full_python_lacks_names_the_command_that_adds_it(app: App, isolation: str) -> None:
    told = await hint(app, "import plotly.express as px", isolation=isolation)
    assert "`sealab packages add plotly`" in told
    assert 'isolation="process"' not in told
    assert "`sealab packages add scikit-learn`" in await hint(app, "import sklearn", isolation=isolation)


@needs_kernel
async def test_beside_a_package_that_is_there_the_one_that_is_not_is_named(app: App) -> None:
    assert "`sealab packages add altair`" in await hint(app, "import pandas, altair")


@needs_kernel
@pytest.mark.parametrize(
    "said",
    [
        "Missing optional dependency 'lxml'.  Use pip or conda to install lxml.",
        "`Import lxml` failed.  Use pip, conda, or your preferred package management tool to install the lxml package.",
    ],
)
async def test_a_package_that_pandas_would_use_is_named_too(app: App, said: str) -> None:
    told = await hint(app, f"import pandas\nraise ImportError({said!r})")
    assert "`sealab packages add lxml`" in told


@needs_kernel
@pytest.mark.parametrize("module", ["no_such_module", "requests", "skills.none"])
async def test_of_what_no_package_is_known_to_bring_nothing_is_said(app: App, module: str) -> None:
    assert "packages add" not in await hint(app, f"import {module}")


@needs_kernel
async def test_a_module_of_the_standard_library_still_names_full_python(app: App) -> None:
    assert 'isolation="process"' in await hint(app, "import ctypes", isolation="restricted")


REFUSED = Outcome(status=Status.REFUSED, error=Failure("ImportError", "module 'numpy' is not available here"))


async def test_where_nobody_can_be_asked_the_hint_says_what_the_operator_can_do() -> None:
    assert "APPROVE_CONTAINER" in (await escalation._not_approved(REFUSED, None) or "")


@pytest.mark.parametrize("approves", [True, False])
async def test_the_user_is_told_why_and_decides(approves: bool) -> None:
    asked: list[str] = []

    async def user(question: Question) -> Reply:
        asked.append(question.text)
        return Reply(choice="") if approves else NO

    obstacle = await escalation._not_approved(REFUSED, user)
    assert "module 'numpy' is not available here" in asked[0]
    assert (obstacle is None) is approves


BOTH = (Isolation.RESTRICTED, Isolation.PROCESS)
TIMED_OUT = Failure("TimeoutError", "It ran longer than its 2 seconds.", hint="Do less at once.")


def hint_after(
    cpu_ms: float | None,
    *,
    status: Status = Status.TIMEOUT,
    isolation: Isolation = Isolation.RESTRICTED,
    session: str | None = None,
    offered: Collection[Isolation] = BOTH,
) -> str:
    outcome = Outcome(status, error=TIMED_OUT, isolation=isolation, duration_ms=2000.0, cpu_ms=cpu_ms)
    told = with_full_python_hint(Job("1", session=session), outcome, lambda: offered)
    assert told.error is not None
    return str(told.error.hint)


def test_one_that_computed_until_its_time_was_over_is_told_where_numbers_are_fast() -> None:
    assert hint_after(1900.0).startswith("Do less at once. Where it computes on many numbers")
    assert hint_after(1900.0).endswith('ask for isolation="process".')
    assert hint_after(1900.0, offered=(Isolation.RESTRICTED, Isolation.CONTAINER)).endswith('isolation="container".')


def test_one_that_waited_or_cannot_have_it_or_has_it_is_not() -> None:
    assert hint_after(20.0) == hint_after(None) == "Do less at once."
    assert hint_after(1900.0, offered=(Isolation.RESTRICTED,)) == "Do less at once."
    assert hint_after(1900.0, isolation=Isolation.PROCESS) == "Do less at once."
    assert hint_after(1900.0, session="kept") == "Do less at once."
    assert hint_after(1900.0, status=Status.ERROR) == "Do less at once."
