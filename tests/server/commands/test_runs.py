"""`sealab runs`: what was journaled is listed, shown with tokens in place of values, exported and run again."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealab.skills_db.journal.records import Record, RecordKind, RunBegin, RunChange, RunEnd, joined

from ...waiting import until as wait_until
from ..command_line import Ended, sealab
from ..conftest import Caller, in_this_process
from ..journal.test_journaled_runs import CLAIMED, served_notes, store
from ..runs.background.test_background import begun, until
from ..runs.background.test_background import ended as ended_run
from ..upstream_tools.test_registry import ONE_SPARE

MAIL = "jane.roe@corp.example"
BYTES = f"""import gzip
for number, data in enumerate(['{MAIL}'.encode('utf-16'), gzip.compress(b'{MAIL}'), b'{MAIL} is text']):
    with open(f'{{number}}.bin', 'wb') as file:
        file.write(data)
    with open(f'{{number}}.bin', 'rb') as file:
        assert file.read() == data
    write_file(f'{{number}}.copy', data)
result = {{'wide': '{MAIL}'.encode('utf-16'), 'said': 'kept'}}"""
"""Personal data in bytes, which no recognizer reads."""
CODE = f"""import random, time, uuid
seen = await tools.notes.look(name='{MAIL}')
await tools.notes.send(text=seen)
write_file('a.txt', seen)
print(time.time(), random.random(), uuid.uuid4(), {{'b', 'a', 'c'}}, read_file('a.txt'))
result = [seen, id(object()) > 0]"""


@pytest.fixture(scope="module")
def journaled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home with runs, and these by name."""
    home = tmp_path_factory.mktemp("home")
    served_notes(home)
    return home, asyncio.run(made_runs(home))


async def made_runs(home: Path) -> dict[str, str]:
    async with in_this_process(home, ONE_SPARE | CLAIMED) as caller:
        runs = {"cut": await cancelled_run(home, caller)}
        runs |= {"calls": await caller.run(CODE), "fails": await caller.run("print('before')\n1 / 0")}
        runs["dry"] = await caller.run("result = 1", dry_run=True)
        for number in range(3):
            code = "import random\nx = [random.random()]" if not number else "x.append(random.random())\nresult = x"
            runs[f"program{number}"] = await caller.run(code, session="counted")
    return {name: report["run_id"] for name, report in runs.items()}


async def cancelled_run(home: Path, caller: Caller) -> dict[str, Any]:
    """End a run as the operator while somebody waits for it, and return its report."""
    running = asyncio.create_task(caller.run("await tools.notes.look(name='x')\nawait tools.notes.look(name='slow')"))
    journals = store(home)
    await wait_until(lambda: any(each.ended is None for each in journals.runs()))
    words = ("--json", "--home", str(home))
    ended = await asyncio.to_thread(sealab, "runs", "list", "--outcome", "running", *words, **CLAIMED)
    (found,) = ended.told["runs"]
    assert found["ms"] is None
    assert found["elapsed_ms"] > 0
    ended = await asyncio.to_thread(sealab, "runs", "cancel", found["run_id"], *words, **CLAIMED)
    assert ended.told == {"run_id": found["run_id"], "status": "cancelled"}
    report = await running
    assert (report["run_id"], report["status"]) == (found["run_id"], "cancelled")
    return report


def runs(journaled: tuple[Path, dict[str, str]], *arguments: str, **env: str) -> Ended:
    home, ids = journaled
    words = [ids.get(word, word) for word in arguments]
    return sealab("runs", words[0], *words[1:], "--home", str(home), **CLAIMED, **env)


def listed(journaled: tuple[Path, dict[str, str]], *arguments: str) -> list[str]:
    names = {run_id: name for name, run_id in journaled[1].items()}
    found = runs(journaled, "list", "--json", *arguments).told
    return [names[run["run_id"]] for run in found["runs"]]  # type: ignore[attr-defined]


def test_runs_are_listed_by_status_tool_and_time(journaled: tuple[Path, dict[str, str]]) -> None:
    assert listed(journaled) == ["program2", "program1", "program0", "dry", "fails", "calls", "cut"]
    assert listed(journaled, "--status", "error") == ["fails"]
    assert listed(journaled, "--tool", "notes.send") == ["calls"]
    assert listed(journaled, "--since", "2h", "--limit", "1") == ["program2"]
    assert listed(journaled, "--since", "2100-01-01") == []
    line = runs(journaled, "list", "--tool", "notes.send").stdout
    assert "notes.look 1, notes.send 1" in line
    assert "session counted #2" in runs(journaled, "list").stdout


def test_a_list_says_who_ran_what_for_how_long_and_why_it_failed(journaled: tuple[Path, dict[str, str]]) -> None:
    (failed,) = runs(journaled, "list", "--failed", "--json").told["runs"]
    assert failed["run_id"] == journaled[1]["fails"]
    assert (failed["tenant"], failed["who"], failed["code"]) == ("default", "local", "print('before')")
    assert failed["reason"] == "ZeroDivisionError: division by zero"
    assert failed["elapsed_ms"] == failed["ms"] > 0
    head, code, reason = runs(journaled, "list", "--outcome", "error", "--who", "local").stdout.splitlines()
    assert f"{failed['ms']} ms  default/local" in head
    assert (code.strip(), reason.strip()) == (failed["code"], failed["reason"])
    assert listed(journaled, "--who", "ann") == []
    assert listed(journaled, "--tenant", "default", "--failed") == ["fails"]


def test_times_are_shown_and_read_in_the_zone_of_the_machine(
    journaled: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = store(journaled[0]).journal(journaled[1]["calls"]).run.began
    of_tool = ("list", "--tool", "notes.send", "--json")
    try:
        for zone, offset in (("XYZ-05:30", timedelta(hours=5, minutes=30)), ("UTC", timedelta())):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            shown = datetime.fromisoformat(runs(journaled, *of_tool, TZ=zone).told["runs"][0]["began"])
            assert shown.utcoffset() == offset
            assert abs(shown.timestamp() - began) < 0.002
            for seconds, count in ((-1, 1), (1, 0)):
                since = (shown + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
                assert runs(journaled, *of_tool, "--since", since, TZ=zone).told["count"] == count
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_time_and_a_status_that_are_none_are_refused(journaled: tuple[Path, dict[str, str]]) -> None:
    for option, value, give in (
        ("--since", "yesterday", "30m, 12h, 7d"),
        ("--since", "99999999999d", "30m, 12h, 7d"),
        ("--since", "2026-13-01", "30m, 12h, 7d"),
        ("--status", "canceled", "one of ok, error,"),
    ):
        assert f"{option} cannot be {value}. Give {give}" in runs(journaled, "list", option, value).refusal()


def test_a_run_that_has_ended_is_neither_resumed_nor_cancelled(journaled: tuple[Path, dict[str, str]]) -> None:
    run_id = journaled[1]["fails"]
    assert f"The run {run_id} has ended: error." in runs(journaled, "resume", "fails").refusal(3)
    assert runs(journaled, "cancel", "fails").stdout == f"The run {run_id} had ended before: error.\n"


def test_a_run_is_shown_with_its_calls_and_its_end_and_no_value(journaled: tuple[Path, dict[str, str]]) -> None:
    shown = runs(journaled, "show", "calls").stdout
    assert MAIL not in shown
    assert "    2  seen = await tools.notes.look(name='[EMAIL_" in shown
    assert 'notes.send({"text": "saw [EMAIL_' in shown
    assert "(changes something)" in shown
    assert "output: " in shown
    assert "ZeroDivisionError" in runs(journaled, "show", "fails").stdout


def test_a_run_is_shown_with_where_its_time_went_and_its_calls_from_1(journaled: tuple[Path, dict[str, str]]) -> None:
    told = runs(journaled, "show", "calls", "--json").told
    assert [call["n"] for call in told["calls"]] == [1, 2, 3, 4]
    times = told["timeline"]
    assert set(times) == {"waiting_ms", "program_ms", "compile_ms", "cpu_ms", "calls_ms", "worker_and_server_ms"}
    assert 0 < times["compile_ms"] < times["program_ms"]
    assert 0 < times["calls_ms"] < times["program_ms"] < told["ms"]
    assert "time: waiting " in runs(journaled, "show", "calls").stdout


def test_an_operator_ends_a_run_that_somebody_waits_for_and_sees_the_call_that_was_cut(
    journaled: tuple[Path, dict[str, str]],
) -> None:
    assert runs(journaled, "list", "--outcome", "cancelled", "--json").told["runs"][0]["run_id"] == journaled[1]["cut"]
    last = runs(journaled, "show", "cut", "--json").told["calls"][-1]
    assert (last["n"], last["call"], last["outcome"]) == (2, "notes.look", "cut with the run")
    assert last["ms"] > 0


def test_an_export_is_one_file_without_values_seed_or_trace(
    journaled: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    assert runs(journaled, "export", "calls", "--output", str(file)).returncode == 0
    text = file.read_text()
    found = json.loads(text)
    assert found["format"] == "sealab run 1"
    assert [call["call"] for call in found["calls"]] == ["notes.look", "notes.send", "write_file", "read_file"]
    assert MAIL not in text
    assert not {"seed", "trace", "time_ns"} & found.keys()


async def test_bytes_that_are_no_text_are_left_out_of_what_is_shown_and_exported(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE | CLAIMED) as caller:
        report = await caller.run(BYTES)
    assert report["status"] == "ok", report
    for command in ("show", "export"):
        ended = await asyncio.to_thread(sealab, "runs", command, report["run_id"], "--home", str(tmp_path), **CLAIMED)
        assert ended.returncode == 0, ended.stderr
        text = ended.stdout
        written = [base64.b64decode(each + "==") for each in re.findall(r"[A-Za-z0-9+/]{16,}", text)]
        assert not [each for each in written if MAIL.encode("utf-16-le") in each or each.startswith(b"\x1f\x8b")]
        assert MAIL not in text
        assert MAIL.encode() not in b"".join(written)
        assert f"[{2 + 2 * len(MAIL)} bytes that are not text, left out]" in text
        assert "kept" in text


def test_with_privacy_off_values_stay(journaled: tuple[Path, dict[str, str]]) -> None:
    assert MAIL in runs(journaled, "show", "calls", SEALAB_PRIVACY="off").stdout


@pytest.mark.parametrize(("run", "answered"), [("calls", 4), ("fails", 0), ("program0", 0), ("program2", 0)])
def test_a_replay_does_the_same_and_sends_nothing(
    journaled: tuple[Path, dict[str, str]], run: str, answered: int
) -> None:
    sent = (journaled[0] / "sent.txt").read_text()
    found = runs(journaled, "replay", run, "--json").told
    assert found == {"run_id": journaled[1][run], "same": True, "answered": answered, "difference": None}
    assert (journaled[0] / "sent.txt").read_text() == sent


def changed(home: Path, run_id: str, new_id: str, kind: RecordKind, **other: object) -> None:
    """Write a journal like that of a run, in whose first record of a kind something is different."""
    journals = store(home)
    found = journals.journal(run_id)
    records = list(found.records)
    at = next(at for at, each in enumerate(records) if each.kind is kind)
    records[at] = Record(kind, json.dumps({**records[at].value, **other}).encode())
    run = found.run
    header = json.dumps(found.header).encode()
    begin = RunBegin(new_id, found.scope, run.isolation, run.began, run.expires, 30.0, 500, header)
    change = RunChange(new_id, 0, begin, joined(records), RunEnd(run.status, run.began + 1, run.isolation))
    journals.write([change], {new_id: found.scope}, durable=True)


def test_a_replay_says_where_the_end_differs_first(journaled: tuple[Path, dict[str, str]]) -> None:
    home, ids = journaled
    changed(home, ids["fails"], "otherend", RecordKind.END, output="afore\n")
    ended = runs(journaled, "replay", "otherend")
    assert ended.returncode == 1
    assert ended.stdout == 'Different in otherend: output was "afore\\n" and is "before\\n".\n'
    store(home).forget(lambda text: text == "afore\n")


def test_a_program_that_asks_for_something_else_stops_with_its_line(journaled: tuple[Path, dict[str, str]]) -> None:
    home, ids = journaled
    recorded = {"name": "notes.send", "arguments": {"text": "other"}}
    changed(home, ids["calls"], "othercall", RecordKind.INTENT, arguments=recorded)
    found = json.loads(runs(journaled, "replay", "othercall", "--json").stdout)
    assert found["same"] is False
    assert found["difference"].startswith(
        'line 3: call 2 was notes.send({"text": "other"}) when it was recorded, and is notes.send({"text": "saw [EMAIL_'
    )
    store(home).forget(lambda text: text == "other")


def edited(journaled: tuple[Path, dict[str, str]], run: str, code: str) -> Ended:
    home, ids = journaled
    words = ("runs", "replay", ids[run], "--edit", "-", "--json", "--home", str(home))
    return sealab(*words, stdin=code, **CLAIMED)


def test_edited_code_has_the_recorded_answers_and_makes_only_the_calls_that_are_new(
    journaled: tuple[Path, dict[str, str]],
) -> None:
    file = journaled[0] / "sent.txt"
    sent = file.read_text()
    found = edited(journaled, "calls", CODE.replace("result = [seen", "result = ['new', seen")).told
    report = found["report"]
    assert report["result"][:2] == ["new", f"saw {MAIL}"]  # type: ignore[index]
    assert (found["answered"], found["made"]) == (4, [])
    assert file.read_text() == sent
    code = CODE.replace("write_file(", "await tools.notes.send(text='new')\nwrite_file(")
    found = edited(journaled, "calls", code).told
    assert found["answered"] == 2
    assert found["made"][0] == 'notes.send({"text": "new"})'  # type: ignore[index]
    assert file.read_text() == f"{sent}new\n"


def test_edited_code_of_a_dry_run_runs_dry(journaled: tuple[Path, dict[str, str]]) -> None:
    file = journaled[0] / "sent.txt"
    sent = file.read_text()
    found = edited(journaled, "dry", "await tools.notes.send(text='dry')").told
    assert found["report"]["dry_run"] == [{"tool": "notes.send", "arguments": {"text": "dry"}}]  # type: ignore[index]
    assert file.read_text() == sent


def test_edited_code_has_the_time_and_the_random_numbers_of_the_run_and_is_none_of_a_later_program_of_a_session(
    journaled: tuple[Path, dict[str, str]],
) -> None:
    code = "import random, time\nresult = [time.strftime('%Y-%m-%d %H'), random.random()]"
    first, second = (edited(journaled, "calls", code).told["report"] for _ in range(2))
    assert first["result"] == second["result"]  # type: ignore[index]
    refusal = edited(journaled, "program2", "1").refusal(3)
    assert "is program 2 of the session 'counted', and needs what those before it left." in refusal


@pytest.mark.parametrize("command", ["show", "export", "replay"])
def test_an_unknown_run_is_an_error_that_says_where_to_look(
    journaled: tuple[Path, dict[str, str]], command: str
) -> None:
    refusal = runs(journaled, command, "nothing").refusal()
    assert "There is no journal of the run nothing. `sealab runs list` shows those that are kept." in refusal


@pytest.mark.parametrize("journal", ["on", "off"])
async def test_background_runs_are_listed_cancelled_and_forgotten_before_and_without_a_journal(
    tmp_path: Path, journal: str
) -> None:
    async def asked(*words: str, of: str = "runs") -> Ended:
        return await asyncio.to_thread(sealab, of, *words, "--home", str(tmp_path), **CLAIMED)

    env = ONE_SPARE | CLAIMED | {"SEALAB_JOURNAL": journal, "SEALAB_BACKGROUND_RUNS_MAX": "1"}
    async with in_this_process(tmp_path, env) as caller:
        first = await begun(caller, "import asyncio\nawait asyncio.sleep(600)")
        await until(caller, first, lambda state: state["status"] == "running")
        listed = await asked("list")
        head, begins = listed.stdout.splitlines()
        assert [*head.split()[:3:2], *head.split()[4:]] == [
            first,
            "running",
            "ms",
            "default/local",
            *["in", "the", "background"],
        ]
        assert begins.strip() == "import asyncio"
        assert "is in the background: the server that runs it" in (await asked("resume", first)).refusal(3)
        assert f"The run {first} is running, and nothing is recorded of it yet." in (await asked("show", first)).stderr
        second, personal = await begun(caller, "1"), await begun(caller, f"result = '{MAIL}'")
        waiting = (await asked("list", "--status", "queued", "--json")).told["runs"]
        assert {(run["run_id"], run["background"]) for run in waiting} == {(second, True), (personal, True)}  # type: ignore[attr-defined]
        assert (await asked("cancel", second, "--json")).told == {"run_id": second, "status": "cancelled"}
        await asked("forget", MAIL, "--yes", of="pii")
        for command in ("show", "replay", "resume") if journal == "on" else ():
            assert f"What was kept of the run {personal} was erased" in (await asked(command, personal)).stderr
        assert (await asked("cancel", first, "--json")).told == {"run_id": first, "status": "cancelled"}
        assert (await caller.told("get_run", run_id=first))["status"] == "cancelled"
        assert first in (await asked("list", "--status", "cancelled")).stdout
    assert (await asked("cancel", first)).stdout == f"The run {first} had ended before: cancelled.\n"
    unknown = await asked("cancel", "0" * 26)
    assert unknown.returncode != 0
    assert "There is no background run" in unknown.stderr


async def test_a_background_run_is_replayed_under_its_own_limits(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ONE_SPARE | CLAIMED) as caller:
        run_id = await begun(caller, "result = 7")
        assert (await ended_run(caller, run_id))["status"] == "ok"
    lowered = {"SEALAB_TIMEOUT_SECONDS": "5", "SEALAB_MAX_TIMEOUT_SECONDS": "5", "SEALAB_MAX_MEMORY_MB": "400"}
    lowered |= {"SEALAB_MEMORY_MB": "400", "SEALAB_BACKGROUND_TIMEOUT_SECONDS": "5", **CLAIMED}
    ended = await asyncio.to_thread(sealab, "runs", "replay", run_id, "--home", str(tmp_path), **lowered)
    assert ended.stdout == "The same: 0 calls were answered from the journal, and the run ended as it had.\n"
    again = await asyncio.to_thread(
        sealab, "runs", "replay", run_id, "--edit", "-", "--home", str(tmp_path), stdin="result = 8", **lowered
    )
    assert (again.returncode, again.stdout) == (0, "8\n")
