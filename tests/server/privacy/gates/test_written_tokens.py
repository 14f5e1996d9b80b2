"""What becomes of tokens in what code writes to files: values, or tokens where it asks for them; and it is told which."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ...conftest import Caller, in_process_server, in_this_process

ALL = {"SEALAB_PRIVACY_MODE": "fast", "SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_WORKERS_SPARE": "1"}
TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-hjkmnp-tv-z]{10}\]")
UNKNOWN = "[EMAIL_0000000000]"
PEOPLE = [("Ulrike Brandt", "u.brandt@example.com"), ("Jonas Weiler", "jonas.w@example.org")]
TABLE = "customer_name,email\n" + "".join(f"{name},{email}\n" for name, email in PEOPLE)
PERSONAL = [value for row in PEOPLE for value in row]
ISOLATIONS = pytest.mark.parametrize("isolation", ["restricted", "process"])
READ = "table = read_file('people.csv')\n"


filtering = in_process_server({**ALL, "SEALAB_PRIVACY": "auto"})


@pytest.fixture(autouse=True)
def people(filtering: Caller) -> None:
    (filtering.home / "workspace" / "people.csv").write_text(TABLE, encoding="utf-8")


def content(caller: Caller, name: str) -> str:
    return (caller.home / "workspace" / name).read_text(encoding="utf-8")


def shows_a_value(told: Any) -> bool:
    return any(value in json.dumps(told) for value in PERSONAL)


@ISOLATIONS
async def test_a_file_of_tokens_can_be_made_and_is_told_to_be_one(filtering: Caller, isolation: str) -> None:
    code = READ + "write_file('shared.csv', sanitize_pii(table), tokens=True)"
    report = await filtering.run(code, isolation=isolation)
    shared = content(filtering, "shared.csv")
    assert len(TOKEN.findall(shared)) == 4
    assert not shows_a_value(shared)
    assert report["result"] == {"filename": "shared.csv", "size": len(shared), "tokens": {"kept": 4}}
    assert report["privacy"]["files"] == {"kept": 4}


@ISOLATIONS
async def test_tokens_become_values_in_a_file_otherwise_and_the_answer_says_so(
    filtering: Caller, isolation: str
) -> None:
    code = READ + f"write_file('real.csv', sanitize_pii(table) + {UNKNOWN!r}, allow_tokens=True)"
    report = await filtering.run(code, isolation=isolation)
    assert content(filtering, "real.csv") == TABLE + UNKNOWN
    assert report["result"]["tokens"] == {"restored": 4, "unknown": [UNKNOWN]}
    assert report["privacy"]["files"] == {"restored": 4, "unknown": 1}


async def test_what_is_read_of_a_file_of_tokens_is_tokens(filtering: Caller) -> None:
    written = await filtering.run(READ + "write_file('shared.csv', sanitize_pii(table), tokens=True)")
    assert written["success"], written
    shared = content(filtering, "shared.csv")
    report = await filtering.run("read = read_file('shared.csv')\nresult = [len(read), read]")
    assert report["result"] == [len(shared), shared]
    read = await filtering.told("read_workspace_file", filename="shared.csv")
    assert read["content"] == shared
    copied = await filtering.run("write_file('back.csv', read_file('shared.csv'))")
    assert copied["result"]["tokens"] == {"restored": 4}
    assert content(filtering, "back.csv") == TABLE


@ISOLATIONS
@pytest.mark.parametrize("between", ["\\n", "."])
async def test_a_long_text_keeps_every_token_of_every_part_and_counts_them_together(
    filtering: Caller, isolation: str, between: str
) -> None:
    code = f"""
token = sanitize_pii(read_file('people.csv').splitlines()[1].split(',')[1])
text = (token + "{between}") * 100_000
kept = write_file('kept.txt', text, tokens=True)
assert kept["tokens"] == {{"kept": 100_000}}, kept
real = write_file('real.txt', text + {UNKNOWN!r}, allow_tokens=True)
assert real["tokens"] == {{"restored": 100_000, "unknown": [{UNKNOWN!r}]}}, real
result = token
"""
    report = await filtering.run(code, isolation=isolation, timeout_seconds=30)
    assert report["success"], report
    assert content(filtering, "kept.txt").count(report["result"]) == 100_000
    assert content(filtering, "real.txt").count(PEOPLE[0][1]) == 100_000
    assert report["privacy"]["files"] == {"kept": 100_000, "restored": 100_000, "unknown": 1}


async def test_tokens_that_are_kept_are_not_looked_up_however_many_there_are(filtering: Caller) -> None:
    code = "write_file('foreign.txt', ' '.join(f'[EMAIL_{n:010}]' for n in range(3000)), tokens=True)"
    report = await filtering.run(code)
    assert report["result"]["tokens"] == {"kept": 3000}
    assert content(filtering, "foreign.txt").count("[EMAIL_") == 3000


@ISOLATIONS
async def test_tokens_of_the_program_itself_stay_tokens_where_they_are_kept(filtering: Caller, isolation: str) -> None:
    (token,) = (await filtering.run("result = [read_file('people.csv').splitlines()[1].split(',')[1]]"))["result"]
    assert TOKEN.fullmatch(token)
    written = f"write_file('kept.txt', f'to {{1 + 1}} {token}', tokens=True)\nwrite_file('real.txt', 'to {token}')"
    report = await filtering.run(written, isolation=isolation)
    assert report["success"], report
    assert content(filtering, "kept.txt") == f"to 2 {token}"
    assert content(filtering, "real.txt") == f"to {PEOPLE[0][1]}"
    skill = f"def mine(address: str) -> bool:\n    return address == {token!r}"
    report = await filtering.run(
        f"save_skill('mine', {skill!r})\nresult = load_skill('mine')['code']", isolation=isolation
    )
    assert token in report["result"], report
    database = b"".join(path.read_bytes() for path in filtering.home.glob("sealab.db*"))
    assert PEOPLE[0][1].encode() not in database


async def test_a_token_for_the_name_of_a_file_still_finds_the_file(filtering: Caller) -> None:
    code = READ + "name = sanitize_pii(table.splitlines()[1].split(',')[1])\nwrite_file(name, name, tokens=True)"
    report = await filtering.run(code)
    assert TOKEN.fullmatch(content(filtering, PEOPLE[0][1]))
    assert not shows_a_value(report)


async def test_a_file_without_a_token_is_answered_as_ever(filtering: Caller) -> None:
    report = await filtering.run("write_file('plain.txt', 'a [b] c', tokens=True)")
    assert report["result"] == {"filename": "plain.txt", "size": 7}
    assert "privacy" not in report


async def test_what_is_written_by_open_is_counted_in_the_report_too(filtering: Caller) -> None:
    code = READ + "with open('opened.csv', 'w') as file:\n    file.write(sanitize_pii(table))"
    report = await filtering.run(code)
    assert content(filtering, "opened.csv") == TABLE
    assert report["privacy"]["files"] == {"restored": 4}
    answer = await filtering.call("execute_code", code=code)
    assert "tokens written to files: 4 restored" in answer.content[0].text  # type: ignore[union-attr]


async def test_what_was_not_written_is_not_counted(filtering: Caller) -> None:
    report = await filtering.run("write_file('../out.txt', '[EMAIL_0000000000]', tokens=True)")
    assert not report["success"]
    assert "files" not in report.get("privacy", {})


async def test_only_true_and_false_say_what_becomes_of_tokens(filtering: Caller) -> None:
    report = await filtering.run("write_file('odd.txt', 'x', tokens=1)")
    assert report["error"]["type"] == "TypeError"
    assert "write_file() got int for tokens. Give a bool." in report["error"]["message"]


async def test_a_dry_run_finds_tokens_in_what_it_would_have_written_and_notes_that_they_are_kept(
    filtering: Caller,
) -> None:
    code = (
        READ + "told = write_file('dry.csv', sanitize_pii(table), tokens=True)\nresult = [told, read_file('dry.csv')]"
    )
    report = await filtering.run(code, dry_run=True)
    told, read = report["result"]
    assert told["tokens"] == {"kept": 4}
    assert len(TOKEN.findall(read)) == 4
    assert report["dry_run"] == [
        {"tool": "write_file", "arguments": {"filename": "dry.csv", "size": told["size"], "tokens": True}}
    ]
    assert not (filtering.home / "workspace" / "dry.csv").exists()


@pytest.mark.parametrize("level", ["tools", "off"])
async def test_where_nothing_is_filtered_tokens_stay_tokens_either_way(tmp_path: Path, level: str) -> None:
    async with in_this_process(tmp_path, {**ALL, "SEALAB_PRIVACY": level}) as caller:
        token = (await caller.run("sanitize_pii('jonas.w@example.org')"))["result"] if level == "tools" else UNKNOWN
        for kept in (True, False):
            report = await caller.run(f"write_file('a.txt', {token!r}, tokens={kept})")
            assert report["result"] == {"filename": "a.txt", "size": len(token)}
            assert content(caller, "a.txt") == token
