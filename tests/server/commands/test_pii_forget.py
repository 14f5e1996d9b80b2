"""`sealab pii forget`: what is kept of a person is shown, and erased where that is asked for."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ..command_line import Ended, sealab
from ..conftest import in_this_process

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
    ended = pii(home, "forget", *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
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


def kept_files(home: Path) -> list[Path]:
    return [path for path in (home / "workspace.runs").rglob("*") if path.is_file()]


def everything(home: Path) -> set[str]:
    texts = [path.read_bytes() for path in kept_files(home)]
    return {value for value in HERS if any(value.encode() in text for text in texts)}
