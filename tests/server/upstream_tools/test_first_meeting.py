"""What programs write that meet the server for the first time, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import in_this_process
from .test_registry import ONE_SPARE


@pytest.mark.parametrize(
    "write", ["open('o3/deep/x.csv', 'w')", "import zipfile; zipfile.ZipFile('o3/deep/x.zip', 'w')"]
)
async def test_a_write_to_a_folder_that_is_missing_is_told_to_make_it(write: str, tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE) as caller:
        report = await caller.run(write)
    assert "Path('o3/deep').mkdir(parents=True, exist_ok=True)" in report["error"]["hint"]
