"""`sealab pii forget`: what is kept of a person is shown and erased, in files, journals and background runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sealab.server.cli import main

from ..command_line import Ended, sealab
from ..conftest import in_this_process
from ..journal.test_journaled_runs import CLAIMED, served_notes, store
from ..runs.background.test_background import begun, ended, until
from ..runs.background.test_parked_runs import asks, served

ROWS = [
    ("Ulrike Brandtner", "u.brandtner@example.com", "+49 30 9018201", "Halle"),
    ("Jonas Weilerich", "jonas.w@example.org", "+49 30 9018202", "Halle"),
    ("Ulrike Brandtner", "ulrike@private.example", "+49 30 9018201", "Ulm-Eggingen"),
]
TABLE = "customer_name,email,phone,city\n" + "".join(",".join(row) + "\n" for row in ROWS)
HERS = {"Ulrike Brandtner", "u.brandtner@example.com", "ulrike@private.example", "+49 30 9018201"}


def pii(home: Path, *arguments: str, text: bytes = b"", **more: str) -> Ended:
    return sealab("pii", *arguments, "--home", str(home), stdin=text, SEALAB_PRIVACY_MODE="fast", **more)


def forget(home: Path, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = pii(home, "forget", *arguments, "--json").told
    return told


def values(told: Mapping[str, Any], *of: str) -> set[str]:
    return {each["value"] for name in of for each in told[name]}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("csv", "Ulrike Brandtner"),
        ("text", "u.brandtner@example.com"),
        ("json", "token"),
        ("lines", "Ulrike Brandtner"),
    ],
)
def test_what_stood_in_one_record_is_one_person_and_what_others_have_too_is_left(
    tmp_path: Path, kind: str, asked: str
) -> None:
    rows = [dict(zip(("customer_name", "email", "phone", "city"), row, strict=True)) for row in ROWS]
    lines = "".join(f"customer_name={row[0]!r} email={row[1]} phone={row[2]!r} city={row[3]!r}\n" for row in ROWS)
    written = {"csv": TABLE, "text": TABLE, "json": json.dumps({"people": rows}), "lines": lines}[kind]
    hidden = pii(tmp_path, "sanitize", "--as", kind if kind != "lines" else "text", text=written.encode()).stdout
    if asked == "token":
        asked = hidden[hidden.index("[PERSON_") :][: len("[PERSON_0123456789]")]
    told = forget(tmp_path, asked)
    assert not told["erased"]
    assert values(told, "found", "linked") >= HERS
    assert "Halle" not in values(told, "found", "linked")
    assert values(told, "shared") <= {"Halle"}
    assert not values(told, "found", "linked", "shared") & {"Jonas Weilerich", "jonas.w@example.org", "+49 30 9018202"}
    assert forget(tmp_path, asked)["forgotten"] == told["forgotten"]

    assert forget(tmp_path, asked, "--yes")["forgotten"] == told["forgotten"]
    assert values(forget(tmp_path, asked), "found", "linked", "shared") == set()
    back = pii(tmp_path, "restore", text=hidden.encode()).stdout
    assert not any(value in back for value in HERS)
    assert all(value in back for value in ROWS[1])


def test_a_value_of_very_many_people_leads_to_none_of_them(tmp_path: Path) -> None:
    rows = "".join(
        f"Anneliese Krug{chr(97 + n)}{chr(97 + n)},anna{n}@example.org,sales@example.com\n" for n in range(20)
    )
    pii(tmp_path, "sanitize", "--as", "csv", text=f"customer_name,email,account_manager_email\n{rows}".encode())
    told = forget(tmp_path, "anna3@example.org")
    assert values(told, "found", "linked") == {"anna3@example.org", "Anneliese Krugdd"}
    assert values(told, "shared") == {"sales@example.com"}


def test_a_town_leads_to_nobody_and_only_leaves_what_is_linked(tmp_path: Path) -> None:
    pii(tmp_path, "sanitize", "--as", "csv", text=TABLE.encode())
    told = forget(tmp_path, "Halle")
    assert (values(told, "found"), values(told, "linked", "shared")) == ({"Halle"}, set())
    assert forget(tmp_path, "Ulrike Brandtner", "--only", "--yes")["types"] == {"PERSON": 1}
    assert values(forget(tmp_path, "ulrike@private.example"), "found") == {"ulrike@private.example"}


def test_the_terminal_says_what_would_go_and_how_to_have_it_go(tmp_path: Path) -> None:
    pii(tmp_path, "sanitize", "--as", "csv", text=TABLE.encode())
    shown = pii(tmp_path, "forget", "Ulrike Brandtner")
    assert "Would be forgotten: 1 PERSON.\n  PERSON       Ulrike Brandtner" in shown.stdout
    assert "Would be forgotten, since it stood in one record:" in shown.stdout
    assert "Nothing was erased. Say --yes to erase it." in shown.stderr
    gone = pii(tmp_path, "forget", "Ulrike Brandtner", "--yes")
    assert gone.stdout.startswith("Forgotten: 1 PERSON.")
    assert "Nothing was erased" not in gone.stderr


async def test_kept_runs_recordings_and_files_are_found_and_erased(tmp_path: Path) -> None:
    """Where nothing is hidden, values are kept as they are."""
    workspace = tmp_path / "workspace"
    async with in_this_process(tmp_path, {"SEALAB_PRIVACY": "tools", "SEALAB_PRIVACY_MODE": "fast"}) as caller:
        (workspace / "deep").mkdir()
        (workspace / "deep" / "people.csv").write_text(TABLE, encoding="utf-16")
        (workspace / "old.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
        (workspace / "other.txt").write_text("Nothing of hers, in Ulm-Eggingen", encoding="utf-8")
        code = f"sanitize_pii({TABLE!r})\nprint({TABLE!r} * 200)\nresult = 1"
        report = await caller.run(code)
        assert report["success"], report
        saved = await caller.run("save_skill('greet', 'def greet(who: str) -> str:\\n    return who')")
        assert saved["success"], saved
    recorded = [{"tool": "crm.find", "arguments": {"n": 1}, "answer": {"name": ROWS[0][0], "mails": [ROWS[0][1]]}}]
    with sqlite3.connect(tmp_path / "sealab.db") as database:
        database.execute("UPDATE sealab_skill_version SET recordings = ?", (json.dumps(recorded),))
    database.close()

    told = forget(tmp_path, "Ulrike Brandtner")
    kept = {name.rpartition("/")[2] for name in told["archive"]}
    assert kept >= {"code.py", "output.txt"}
    assert told["recordings"] == ["greet 1"]
    assert (told["files"], told["fixed"]) == (["deep/people.csv"], ["old.csv.gz"])
    assert everything(tmp_path) >= HERS

    forget(tmp_path, "Ulrike Brandtner", "--yes")
    assert (workspace / "deep" / "people.csv").read_text(encoding="utf-16") == TABLE
    again = forget(tmp_path, "Ulrike Brandtner")
    assert (again["archive"], again["recordings"], again["files"]) == ([], [], ["deep/people.csv"])
    assert not any(value.encode() in path.read_bytes() for path in kept_files(tmp_path) for value in HERS)

    erased = pii(tmp_path, "forget", "Ulrike Brandtner", "--yes", "--files")
    assert "Erased from workspace files: deep/people.csv" in erased.stdout
    assert "cannot be changed here: old.csv.gz" in erased.stdout
    left = (workspace / "deep" / "people.csv").read_text(encoding="utf-16")
    assert "Ulrike Brandtner" not in left
    assert ROWS[1][0] in left
    assert (workspace / "other.txt").read_text(encoding="utf-8") == "Nothing of hers, in Ulm-Eggingen"


async def test_skills_that_name_or_hold_a_person_are_found_and_what_runs_is_erased_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with in_this_process(tmp_path, {"SEALAB_PRIVACY": "tools", "SEALAB_PRIVACY_MODE": "fast"}) as caller:
        code = "def {name}() -> str:\n    return 'Dear {who}'\n"
        for name, who, about in (("greet", NAME, "Greets."), ("mail_ulrike_brandtner", "all", f"Tells {NAME}.")):
            saved = await caller.call("save_skill", name=name, code=code.format(name=name, who=who), description=about)
            assert not saved.is_error, saved.content

    def asked(*words: str) -> str:
        command = ["pii", "forget", NAME, *words, "--home", str(tmp_path)]
        assert main(command) == 0
        return capsys.readouterr().out

    told = json.loads(asked("--json"))
    assert told["descriptions"] == ["mail_ulrike_brandtner 1"]
    assert told["skills"] == ["greet 1", "mail_ulrike_brandtner 1"]
    assert told["skill_names"] == ["mail_ulrike_brandtner"]
    assert len(told["audit_lines"]) == 1
    assert "Left in (--skills erases it) code and tests of skills: greet 1" in asked("--yes")

    said = asked("--yes", "--skills")
    assert "Erased from code and tests of skills: greet 1" in said
    assert "Removed for good, with all versions: skills named so: mail_ulrike_brandtner" in said
    assert "`sealab skills test` shows whether they still do" in said
    assert f"Left in lines {told['audit_lines'][0]} of the audit log" in said
    assert "descriptions" not in said, "the command before erased it there"
    with sqlite3.connect(tmp_path / "sealab.db") as database:
        tables = ("sealab_skill", "sealab_skill_version", "sealab_run")
        kept = [database.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    database.close()
    assert [len(kept[0]), len(kept[1])] == [1, 1]
    assert "brandtner" not in str(kept).lower()


def kept_files(home: Path) -> list[Path]:
    return [path for path in (home / "workspace.runs").rglob("*") if path.is_file()]


def everything(home: Path) -> set[str]:
    texts = [path.read_bytes() for path in kept_files(home)]
    return {value for value in HERS if any(value.encode() in text for text in texts)}


NAME, MAIL, PHONE = "Ulrike Brandtner", "u.brandtner@example.com", "+49 30 9018201"
ROW = f"customer_name,email,phone\n{NAME},{MAIL},{PHONE}\n"
ENV = CLAIMED | {"SEALAB_WORKERS_SPARE": "1", "SEALAB_PRIVACY_MODE": "fast"}
LARGE = "x" * 3_000_000


async def command(home: Path, *words: str) -> Ended:
    return await asyncio.to_thread(lambda: sealab(*words, "--home", str(home), **ENV))


async def forgotten(home: Path, *words: str) -> dict[str, Any]:
    told: dict[str, Any] = (await command(home, "pii", "forget", *words, "--json")).told
    return told


async def statuses(home: Path) -> dict[str, str]:
    listed = json.loads((await command(home, "runs", "list", "--json")).stdout)
    return {run["run_id"]: run["status"] for run in listed["runs"]}


HOLDING = {
    "code": f"who = {NAME!r}",
    "comment": f"1  # for {MAIL}",
    "answer": "await tools.notes.look(name='x')\nread_file('people.csv')",
    "bytes": "open('people.csv', 'rb').read()",
    "utf-16": "open('people.utf16', 'rb').read()",
    "packed": "import zipfile\nzipfile.ZipFile('people.zip').read('people.csv')",
    "large": "open('large.txt').read()[-1]",
    "key": "await tools.notes.look(name=chr(85) + 'x')\n{''.join(map(chr, CODES)): 1}",
    "nested": "import json\njson.dumps({'a': json.dumps([''.join(map(chr, CODES))])})",
    "output": "print(''.join(map(chr, CODES)))",
    "error": "raise ValueError(''.join(map(chr, CODES)))",
    "number": "4930901 * 10_000 + 8201",
}


@pytest.mark.parametrize("privacy", ["tools", "auto", "off"])
async def test_runs_that_met_a_person_are_erased_and_no_others(tmp_path: Path, privacy: str) -> None:
    served_notes(tmp_path)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "people.csv").write_text(ROW)
    (workspace / "people.utf16").write_text(ROW, encoding="utf-16")
    (workspace / "large.txt").write_text(LARGE + ROW)
    codes = f"CODES = {list(map(ord, NAME))}\n"
    async with in_this_process(tmp_path, ENV | {"SEALAB_PRIVACY": privacy}) as caller:
        await caller.run(
            "import zipfile\nzipfile.ZipFile('people.zip', 'w').writestr('people.csv', open('people.csv').read())"
        )
        runs = {name: (await caller.run(codes + code))["run_id"] for name, code in HOLDING.items()}
        given = await caller.run("len(who)", context_vars={"who": {NAME: 1}})
        innocent = await caller.run(codes + "await tools.notes.look(name='Ada Lovelace')\nresult = 2")
    if privacy == "off":
        refused = sealab("pii", "forget", NAME, "--home", str(tmp_path), **ENV, SEALAB_PRIVACY="off")
        assert "PRIVACY is off" in refused.stderr
    await forgotten(tmp_path, "+49309018201", "--yes")
    before = await statuses(tmp_path)  # a list hides what programs hold, and so keeps a token of it
    told = await forgotten(tmp_path, NAME)
    assert told["at_work"] == []
    assert await forgotten(tmp_path, NAME) == told
    assert await statuses(tmp_path) == before
    await forgotten(tmp_path, MAIL, "--yes")
    await forgotten(tmp_path, NAME, "--yes")
    after = await statuses(tmp_path)
    kept = {name for name, run_id in runs.items() if after[run_id] != "erased"}
    assert kept == set()
    assert after[given["run_id"]] == "erased"
    assert after[innocent["run_id"]] == "ok"
    assert (await forgotten(tmp_path, NAME))["runs"] == []
    for words in (("show",), ("export",), ("replay",), ("replay", "--edit", "-"), ("resume",)):
        refused = await command(tmp_path, "runs", words[0], runs["answer"], *words[1:])
        assert refused.returncode == 2
        assert f"the run {runs['answer']} was erased by `sealab pii forget`" in refused.stderr
        assert not refused.stdout
    with sqlite3.connect(tmp_path / "sealab.db") as database:
        (pieces,) = database.execute("SELECT sum(length(sealed)) FROM sealab_journal_piece").fetchone()
    database.close()
    assert pieces < 100_000


async def test_runs_that_wait_run_and_are_parked_end_and_say_so(tmp_path: Path) -> None:
    sent = served(tmp_path)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "people.csv").write_text(ROW)
    sleeps = "import asyncio\nseen = read_file('people.csv')\nwrite_file('seen.txt', '1')\nprogress(0.5, 'seen')\nawait asyncio.sleep(600)"
    asking = "seen = read_file('people.csv')\nname = 'send'\nawait call_tool('notes.' + name, {'text': seen[:3]})"
    async with in_this_process(tmp_path, ENV | {"SEALAB_BACKGROUND_RUNS_MAX": "4"}) as caller:
        parked = await begun(caller, asking)
        await until(caller, parked, asks)
        runs = [await begun(caller, sleeps), await begun(caller, "import asyncio\nawait asyncio.sleep(600)")]
        await until(caller, runs[0], lambda state: "progress" in state)
        await until(caller, runs[1], lambda state: bool(state["status"] == "running"))
        waits = await begun(caller, f"print({NAME!r})")
        other = await begun(caller, "result = 'other'")
        told = await forgotten(tmp_path, NAME, "--yes")
        assert set(told["runs"]) == {parked, runs[0], waits}
        for run_id in told["runs"]:
            answer = await caller.call("get_run", run_id=run_id)
            assert answer.is_error
            assert f"the run {run_id} was erased by `sealab pii forget`" in answer.content[0].text  # type: ignore[union-attr]
        cancelled = await command(tmp_path, "runs", "cancel", parked)
        assert "was erased by `sealab pii forget`" in cancelled.stderr
        assert json.loads((await command(tmp_path, "approvals", "list", "--json")).stdout)["approvals"] == []
        approved = await command(tmp_path, "approvals", "approve", f"{parked}.1")
        assert "was erased by `sealab pii forget`" in approved.stderr
        assert (await caller.call("get_run", run_id=runs[1], cancel=True)).structured_content["status"] == "cancelled"  # type: ignore[index]
        assert (await ended(caller, other))["result"] == "other"
    assert not sent.exists()
    assert (await forgotten(tmp_path, NAME))["runs"] == []
    found = await statuses(tmp_path)
    assert (found[parked], found[runs[0]]) == ("erased", "erased")


async def test_a_run_at_work_whose_journal_says_nothing_yet_of_the_person_is_named(tmp_path: Path) -> None:
    served_notes(tmp_path)
    async with in_this_process(tmp_path, ENV) as caller:
        code = "import asyncio\nawait tools.notes.send(text='1')\nawait asyncio.sleep(600)"
        run_id = await begun(caller, code)
        await until(caller, run_id, lambda _state: (tmp_path / "sent.txt").exists())
        told = await forgotten(tmp_path, NAME, "--yes")
        said = (await command(tmp_path, "pii", "forget", NAME)).stdout
        await caller.call("get_run", run_id=run_id, cancel=True)
    assert (told["runs"], told["at_work"]) == ([], [run_id])
    assert f"Still at work, and may yet write of the person: {run_id}. Forget again once they have ended." in said


async def test_a_scope_is_forgotten_with_its_runs(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ENV) as caller:
        report = await caller.run(f"sanitize_pii({MAIL!r})")
    shown = await forgotten(tmp_path, "--scope", "home")
    assert (shown["runs"], await statuses(tmp_path)) == ([report["run_id"]], {report["run_id"]: "ok"})
    await forgotten(tmp_path, "--scope", "home", "--yes")
    assert await statuses(tmp_path) == {report["run_id"]: "erased"}
    assert store(tmp_path).forget(lambda _text: True) == []
