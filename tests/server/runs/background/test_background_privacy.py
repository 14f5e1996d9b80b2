"""What is told of a run later has tokens in place of personal data, as its report has."""

from __future__ import annotations

import json
from pathlib import Path

from ...conftest import in_this_process
from .test_background import ONE_SPARE, begun, ended, told

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


async def test_a_run_is_told_with_tokens_as_it_was_reported_by_the_next_server_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "people.csv").write_text(PEOPLE)
    reports = []
    async with in_this_process(tmp_path, AUTO) as caller:
        for code in (CODE, FAILING):
            reports.append(await caller.run(code))
            nothing_personal(reports[-1])
            nothing_personal(await told(caller, reports[-1]["run_id"]))
        in_background = [await begun(caller, code) for code in (CODE, FAILING)]
        for run_id in in_background:
            nothing_personal(await ended(caller, run_id))
    async with in_this_process(tmp_path, AUTO) as caller:
        for report in reports:
            later = await told(caller, report["run_id"])
            nothing_personal(later)
            assert later["status"] == report["status"]
            assert later["output"].startswith("to [EMAIL_")
        for run_id in in_background:
            nothing_personal(await told(caller, run_id))
