"""Of a package that code lacks, the hint names the command that brings it, where one does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealab.server.app import App, running
from sealab.server.home import Home
from sealab.server.runs.execute import CodeRequest, execute
from sealab.server.settings import Settings

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
