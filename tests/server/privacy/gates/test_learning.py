"""What a run is given is learned while it goes on, to the end of every file, and never much behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Json
from sealab.server.base.errors import PrivacyFailed
from sealab.server.base.host_work import Account
from sealab.server.privacy.gates import learning as module
from sealab.server.privacy.gates.learning import FilePieces, Learning
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.tokens.run_tokens import RunTokens

from ...conftest import in_this_process

SLICE = 3 * 1024 * 1024
"""Characters that `read_file` gets at once."""
ROWS = 12_000


class Held:
    """Stands for what learns: it goes on when it is let."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.learned: list[Json] = []
        self.fails = False

    async def learn(self, _scope: str, value: Json, _tokens: RunTokens) -> None:
        await self.go_on.wait()
        if self.fails:
            raise PrivacyFailed("The limit was reached, so nothing is shown.")
        self.learned.append(value)


def learning(held: Held) -> Learning:
    return Learning(cast("Privacy", held), "home", Account(1.0), RunTokens("home"))


async def test_a_run_that_reads_faster_than_is_learned_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEHIND_CHARS_MAX", 10)
    held = Held()
    behind = learning(held)
    await behind.add("x" * 8)
    waiting = asyncio.create_task(behind.add("y" * 8))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    held.go_on.set()
    await waiting
    await behind.all()
    assert held.learned == ["x" * 8, "y" * 8]
    assert behind.seconds > 0


async def test_where_learning_fails_the_run_is_given_nothing_more_and_nothing_of_it_is_shown() -> None:
    held = Held()
    held.fails = True
    held.go_on.set()
    behind = learning(held)
    await behind.add("one")
    with pytest.raises(PrivacyFailed):
        await behind.all()
    with pytest.raises(HostCallError, match="limit was reached"):
        await behind.add("two")
    with pytest.raises(PrivacyFailed):
        await behind.all()


async def test_of_a_run_that_is_dropped_nothing_more_is_learned() -> None:
    held = Held()
    behind = learning(held)
    await behind.add("one")
    behind.drop()
    await behind.all()
    held.go_on.set()
    assert held.learned == []


def test_slices_of_read_file_are_judged_with_the_heading_and_from_the_beginning_of_a_line() -> None:
    pieces = FilePieces()
    text = "customer_name,note\nJane Roe,ä\nEva Li,ö\nAna Paz,ü\n"
    told = []
    for start, end in ((0, 25), (25, 40), (40, len(text))):
        arguments: dict[str, Json] = {"filename": "a.csv", "offset": start, "limit": end - start}
        told.append(pieces.text(arguments, {"filename": "a.csv", "content": text[start:end], "size": 1}))
    assert told[0] == text[:25]
    assert told[1] == "customer_name,note\nJane Roe,ä\nEva Li,ö\nA"
    assert told[2] == "customer_name,note\nAna Paz,ü\n"


@pytest.fixture(scope="module")
def names() -> list[str]:
    dice = random.Random(7)
    parts = ["bo", "ca", "dor", "el", "fi", "gar", "hol", "in", "ja", "kas", "la", "mar", "no", "or", "per"]
    return [" ".join("".join(dice.choices(parts, k=3)).capitalize() for _ in range(2)) for _ in range(ROWS)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> Path:
    home = tmp_path_factory.mktemp("home")
    Path(home, "workspace").mkdir()
    filling = "und sonst ist nichts zu berichten " * 7
    rows = "".join(
        f"{number},{name},Weg Nummer {number} im Hinterhaus {filling}\n" for number, name in enumerate(names)
    )
    assert SLICE < len(rows) < 2 * SLICE
    Path(home, "workspace", "people.csv").write_text("id,customer_name,note\n" + rows)
    return home


@pytest.fixture(scope="module")
async def client(home: Path) -> AsyncIterator[Client]:
    settings = {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast", "SEALAB_MAX_TIMEOUT_SECONDS": "600"}
    async with in_this_process(home, settings) as caller:
        yield caller.client


@pytest.mark.parametrize(
    "read",
    [
        "lines = read_file('people.csv').splitlines()",
        "lines = [line.rstrip() for line in open('people.csv')]",
        "lines = open('people.csv', 'rb').read().decode().splitlines()",
        "import csv\nlines = [','.join(row.values()) for row in csv.DictReader(open('people.csv'))]\nlines.insert(0, '')",
    ],
)
async def test_names_of_the_whole_file_are_known_when_code_prints_them_alone(
    client: Client, names: list[str], read: str
) -> None:
    wanted = [0, 1, ROWS // 2, *range(3 * ROWS // 4 - 40, 3 * ROWS // 4 + 40), ROWS - 1]
    code = f"{read}\nprint([lines[n + 1].split(',')[1] for n in {wanted}])"
    answer = await client.call_tool(
        "execute_code", {"code": code, "timeout_seconds": 300, "memory_mb": 1000}, read_timeout_seconds=300
    )
    report = cast("dict[str, Any]", answer.structured_content)
    assert report.get("status", "ok") == "ok", report
    assert report["output"].count("[PERSON_") == len({names[number] for number in wanted}) or (
        report["output"].count("[PERSON_") >= len(wanted)
    )
    assert not [names[number] for number in wanted if names[number] in answer.model_dump_json()]
    assert report["privacy"]["hidden"]["PERSON"] == len({names[number] for number in wanted})


async def test_the_report_says_how_long_was_spent_on_it(client: Client) -> None:
    code = "text = read_file('people.csv')\nwrite_file('other.csv', text.replace('Weg', 'Platz'))\nread_file('other.csv')[:4]"
    answer = await client.call_tool("execute_code", {"code": code, "timeout_seconds": 300, "memory_mb": 1000})
    report = cast("dict[str, Any]", answer.structured_content)
    assert report["privacy"]["ms"] > 0, report
    assert "looked for personal data for" in str(answer.content)


async def test_where_the_time_of_a_run_does_not_suffice_nothing_is_shown(client: Client) -> None:
    code = "text = read_file('people.csv').replace('Hinterhaus', 'Keller')\nfor n in range(9):\n    write_file('third.csv', text.replace('Weg', f'Gang {n}'))\n    read_file('third.csv')\nprint('end', text[30:60])"
    answer = await client.call_tool("execute_code", {"code": code, "timeout_seconds": 1, "memory_mb": 1000})
    report = cast("dict[str, Any]", answer.structured_content)
    assert report["status"] in {"timeout", "error"}
    assert "end" not in report.get("output", "")
