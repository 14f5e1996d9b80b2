"""How fast personal data is learned and hidden, and how long another client waits meanwhile, over HTTP.

    python -m tests.benchmarks.privacy_speed [--only learn|hide|server] [--large]

The files are made of people that do not exist, all different. First: MB a CPU second of what a run is given (learned)
and of what is shown (hidden, with the vault's writes), where every value is new and where all are known. Then a server
under PRIVACY=auto: one client reads a file in code, another one asks for `1+1` again and again. `--large` adds 200 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
from mcp import Client

from sealab.server.database import HomeDatabase
from sealab.server.privacy.gates.file_pieces import FilePieces
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.tokens import streams
from sealab.server.privacy.tokens.parts import Text
from sealab.server.settings import PrivacyLevel, PrivacyMode, Settings

FIRST = [
    "Ana",
    "Jane",
    "Peter",
    "Mario",
    "Lucia",
    "Hans",
    "Sofie",
    "Omar",
    "Piotr",
    "Eva",
    "Marie",
    "Louis",
    "Carla",
    "Tom",
    "Julia",
    "Erik",
    "Nina",
    "Paul",
    "Laura",
    "David",
]
PARTS = [
    "ba",
    "ber",
    "bo",
    "ca",
    "da",
    "dor",
    "el",
    "fa",
    "gar",
    "hol",
    "in",
    "ja",
    "kas",
    "la",
    "mar",
    "no",
    "or",
    "per",
    "qui",
    "ro",
    "sal",
    "tan",
    "ul",
    "ver",
    "wi",
    "xa",
    "yo",
    "zen",
]
CITIES = ["Berlin", "Hamburg", "Köln", "München", "Leipzig", "Bremen"]
PROSE = (
    "Yesterday {customer_name} called about the delivery to {city}, and asked whether it could be moved to next week.",
    "We met {customer_name} at the office; the contract will be signed as soon as the budget is approved.",
    "The meeting lasted two hours and nothing was decided, but the team agreed on a new date in March.",
    "Please write to {email} if anything about the invoice is not clear.",
    "The figures for the second quarter look better than expected, although costs have risen again.",
)
GOALS = {"csv": (2, 8), "jsonl": (2, 8), "log": (3, 3), "prose": (2, 2)}
GOAL_BALANCED_PROSE = 0.2
GOAL_DELAY_MS = 250.0
GOAL_MEMORY_MB = 500
PIECE = 2 * 1024 * 1024
READS = {
    "read_file": "result = len(read_file({name!r}))",
    "open": "result = sum(1 for line in open({name!r}))",
}


def people(seed: int) -> Iterator[dict[str, str]]:
    """Give people without end, each with an address, a telephone and all the rest of their own."""
    dice = random.Random(seed)
    number = 0
    while True:
        number += 1
        first = dice.choice(FIRST) + dice.choice(["", dice.choice(PARTS)])
        last = "".join(dice.choice(PARTS) for _ in range(3)).capitalize()
        yield {
            "customer_id": str(100_000 + number),
            "customer_name": f"{first} {last}",
            "email": f"{first.lower()}.{last.lower()}{number}@{dice.choice(['example.com', 'mail.example.org'])}",
            "phone": f"+49 {dice.randrange(30, 999)} {dice.randrange(10**6, 10**8)}",
            "street": f"{last}straße {dice.randrange(1, 200)}",
            "city": dice.choice(CITIES),
            "postal_code": f"{dice.randrange(10_000, 99_999)}",
            "birth_date": f"{dice.randrange(1940, 2005)}-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02}",
            "amount": f"{dice.randrange(1, 10**6) / 100:.2f}",
            "status": dice.choice(["active", "closed", "pending"]),
        }


def csv_lines(seed: int) -> Iterator[str]:
    """Give the lines of a table."""
    for number, person in enumerate(people(seed)):
        if not number:
            yield ",".join(person) + "\n"
        yield ",".join(person.values()) + "\n"


def json_lines(seed: int) -> Iterator[str]:
    """Give records."""
    for person in people(seed):
        yield json.dumps(person, ensure_ascii=False) + "\n"


def log_lines(seed: int) -> Iterator[str]:
    """Give lines of a log, of which one in six holds an address."""
    dice = random.Random(seed)
    for number, person in enumerate(people(seed)):
        at = f"2026-11-{1 + number % 28:02}T10:{number % 60:02}:{number * 7 % 60:02}Z"
        yield (
            f"{at} INFO api.orders request_id={dice.getrandbits(48):012x} method=GET path=/v1/orders/{number} "
            f"status=200 duration_ms={dice.randrange(1, 900)}\n"
        )
        if number % 5 == 0:
            address = ".".join(["10", *(str(dice.randrange(256)) for _ in range(3))])
            yield f"{at} WARN auth login failed user={person['email']} ip={address}\n"


def prose_lines(seed: int) -> Iterator[str]:
    """Give sentences."""
    dice = random.Random(seed)
    for number, person in enumerate(people(seed)):
        yield dice.choice(PROSE).format(**person) + (" " if number % 6 else "\n\n")


LINES: dict[str, Callable[[int], Iterator[str]]] = {
    "csv": csv_lines,
    "jsonl": json_lines,
    "log": log_lines,
    "prose": prose_lines,
}


def write(file: Path, kind: str, size: int, seed: int = 1) -> None:
    """Write a file of that kind, of about that many bytes."""
    with file.open("w") as out:
        written = 0
        for line in LINES[kind](seed):
            written += out.write(line)
            if written >= size:
                return


def given(file: Path) -> Iterator[str]:
    """Give the pieces of a file as a run's gate has them learned."""
    pieces = FilePieces()
    with file.open("rb") as source:
        offset = 0
        while data := source.read(PIECE):
            answer = {"data": base64.b64encode(data).decode("ascii"), "encoding": "base64"}
            yield str(pieces.told({"identity": "1", "offset": offset}, answer))
            offset += len(data)


@contextmanager
def sanitizer(mode: str) -> Iterator[object]:
    """Give what hides, with a vault of its own, all loaded."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = Settings(privacy=PrivacyLevel.AUTO, privacy_mode=PrivacyMode(mode))
        database = HomeDatabase(None, home)
        privacy = Privacy(settings, home, database, durable=True)
        made = privacy.sanitizer()
        made.warm()
        made.learn("home", [Text("Jane Roe, jane.roe@example.com")])
        yield made
        privacy.close()
        database.close()


def learn_speed(only: str | None) -> None:
    """Print how fast a run's files are learned."""
    print(f"{'learned':<18}{'new MB/CPU s':>14}{'known':>10}{'goal':>12}{'resident MB':>14}")
    for kind, size in (("csv", 30), ("jsonl", 30), ("log", 10), ("prose", 2)):
        if only not in {None, kind}:
            continue
        with tempfile.TemporaryDirectory() as folder, sanitizer("balanced") as made:
            file = Path(folder, f"file.{kind}")
            write(file, kind, size * 1_000_000)
            told = list(given(file))
            speeds = []
            for _ in range(2):
                began = time.process_time()
                for piece in told:
                    made.learn("home", [Text(piece)])
                speeds.append(file.stat().st_size / 1e6 / (time.process_time() - began))
            resident = psutil.Process().memory_info().rss / 1e6
        goals = " / ".join(map(str, GOALS[kind]))
        print(f"{kind:<18}{speeds[0]:>14.2f}{speeds[1]:>10.1f}{goals:>12}{resident:>14.0f}", flush=True)


def hide_speed(only: str | None) -> None:
    """Print how fast files are hidden, as `sealab pii sanitize` does, with all that the vault writes."""
    print(f"{'hidden':<18}{'new MB/CPU s':>14}{'known':>10}{'goal':>12}")
    for kind, mode, size in (
        ("csv", "balanced", 10),
        ("jsonl", "balanced", 10),
        ("log", "balanced", 5),
        ("prose", "fast", 2),
        ("prose", "balanced", 1),
    ):
        if only not in {None, kind}:
            continue
        with tempfile.TemporaryDirectory() as folder, sanitizer(mode) as made:
            file = Path(folder, f"file.{kind}")
            write(file, kind, size * 1_000_000)
            text = file.read_text()
            speeds = []
            for _ in range(2):
                began = time.process_time()
                tally = streams.Tally()
                source = io.StringIO(text)
                for _piece in streams.sanitized(made, "home", source, streams.kind_of(file.name, text[:4096]), tally):
                    pass
                speeds.append(file.stat().st_size / 1e6 / (time.process_time() - began))
        goals = str(GOAL_BALANCED_PROSE) if (kind, mode) == ("prose", "balanced") else " / ".join(map(str, GOALS[kind]))
        print(f"{f'{kind}, {mode}':<18}{speeds[0]:>14.2f}{speeds[1]:>10.1f}{goals:>12}", flush=True)


@contextmanager
def served(home: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Run a server under PRIVACY=auto on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "sealab.server", "serve", "--home", str(home), "--http", address],
        env={**os.environ, "SEALAB_PRIVACY": "auto", "SEALAB_MAX_TIMEOUT_SECONDS": "600"},
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("SHOW") else subprocess.DEVNULL,
    ) as process:
        try:
            while True:
                try:
                    httpx2.get(f"http://{address}/mcp", timeout=1)
                    break
                except httpx2.HTTPError:
                    time.sleep(0.1)
            yield f"http://{address}/mcp", psutil.Process(process.pid)
        finally:
            process.terminate()


async def beside(name: str, how: str, home: Path, size: int) -> None:
    """Print how long another client waits while one reads a file."""
    with served(home) as (url, process):
        async with Client(url, read_timeout_seconds=700) as reader, Client(url) as other:
            for client in (reader, other):
                await client.call_tool("execute_code", {"code": "print('Jane Roe, jane@example.com')"})
            quiet = [await one_and_one(other) for _ in range(30)]
            spent = sum(process.cpu_times()[:2])
            began = time.monotonic()
            code = READS[how].format(name=name)
            arguments = {"code": code, "timeout_seconds": 600, "memory_mb": 2000}
            work = asyncio.create_task(reader.call_tool("execute_code", arguments))
            delays: list[float] = []
            resident = 0
            while not work.done():
                delays.append(await one_and_one(other))
                resident = max(resident, process.memory_info().rss)
                await asyncio.sleep(0.05)
            report = (await work).structured_content
            took = time.monotonic() - began
            cpu = sum(process.cpu_times()[:2]) - spent
    print(
        f"{f'{size} MB, {how}':<20}{took:>8.1f}{cpu:>8.1f}{resident / 1e6:>12.0f}{statistics.median(quiet):>12.0f}"
        f"{statistics.median(delays):>8.0f}{max(delays):>8.0f}   {report.get('status', 'ok')}, "
        f"{report.get('result')}, {report.get('privacy')} {str(report.get('error') or '')[:300]}",
        flush=True,
    )


async def one_and_one(client: Client) -> float:
    """Ask for 1+1 and return for how many milliseconds."""
    began = time.monotonic()
    answer = await client.call_tool("execute_code", {"code": "1+1"})
    if answer.structured_content["result"] != 2:
        raise SystemExit(f"1+1 was answered {answer}")
    return 1000 * (time.monotonic() - began)


def server_speed(*, large: bool) -> None:
    """Print how long another client waits while files are read."""
    print(
        f"{'one client reads':<20}{'s':>8}{'CPU s':>8}{'resident MB':>12}{'quiet p50':>12}{'p50':>8}{'max':>8} ms for 1+1"
        f" of another (goals: {GOAL_DELAY_MS:.0f} ms, {GOAL_MEMORY_MB} MB)"
    )
    for size, how in ((30, "read_file"), (30, "open"), *(((200, "open"),) if large else ())):
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder, "workspace")
            workspace.mkdir()
            write(workspace / "people.csv", "csv", size * 1_000_000)
            asyncio.run(beside("people.csv", how, Path(folder), size))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("learn", "hide", "server"))
    parser.add_argument("--kind", choices=tuple(LINES))
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args()
    if chosen.only in {None, "learn"}:
        learn_speed(chosen.kind)
    if chosen.only in {None, "hide"}:
        hide_speed(chosen.kind)
    if chosen.only in {None, "server"}:
        server_speed(large=chosen.large)


if __name__ == "__main__":
    main()
