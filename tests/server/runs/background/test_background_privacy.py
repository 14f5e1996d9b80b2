"""What is told of a run later has tokens in place of personal data, as its report has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ...conftest import in_this_process
from .test_background import ONE_SPARE, begun, told

AUTO = ONE_SPARE | {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast", "SEALAB_VAULT_KEYRING": "false"}
PEOPLE = "full_name,email\nZorbla Quindlethwaite,zq@corp.example\n"
CODE = (
    "name, mail = read_file('people.csv').splitlines()[1].split(',')\nprogress(0.5, name)\n"
    "print('to', mail)\nresult = [name.upper(), {'about': name}]"
)
FAILING = CODE + "\nraise ValueError(f'no {name} at {mail}')"
PERSONAL = ("zorbla", "quindlethwaite", "zq@corp")


def nothing_personal(report: object) -> None:
    text = json.dumps(report).lower()
    assert not [each for each in PERSONAL if each in text], report


@pytest.mark.parametrize("code", [CODE, FAILING])
async def test_a_run_in_the_foreground_is_told_as_it_was_reported(tmp_path: Path, code: str) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "people.csv").write_text(PEOPLE)
    async with in_this_process(tmp_path, AUTO) as caller:
        report = await caller.run(code)
        nothing_personal(report)
        nothing_personal(await told(caller, report["run_id"]))
    async with in_this_process(tmp_path, AUTO) as caller:
        later = await told(caller, report["run_id"])
    nothing_personal(later)
    assert later["status"] == report["status"]
    assert later["output"].startswith("to [EMAIL_")


@pytest.mark.parametrize("code", [CODE, FAILING])
async def test_a_background_run_is_told_with_tokens(tmp_path: Path, code: str) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "people.csv").write_text(PEOPLE)
    async with in_this_process(tmp_path, AUTO) as caller:
        run_id = await begun(caller, code)
        nothing_personal(await told(caller, run_id, wait_seconds=30))
    async with in_this_process(tmp_path, AUTO) as caller:
        nothing_personal(await told(caller, run_id))
