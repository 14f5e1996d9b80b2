"""Saves of skills while whoever makes them is killed at random moments: what was acknowledged must be there.

`StoreLife` writes through `SkillStore` in processes of its own, four threads each; `ServerLife` through the tool
`save_skill` of `sealab serve` over stdio, four calls at a time. With PostgreSQL the database server is killed now and then
as well. Wrong is a save that was acknowledged and is not there as it was, versions that are not consecutive, and a
database that is damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from sealab.skills_db import DATABASE_FILE
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import open_database
from sealab.skills_db.skills import SkillStore

from .places import Place

NAMES = 10
AT_ONCE = 4
OPENING_DEATHS = 0.2
DATABASE_DEATHS = 0.1
PADDING = 60_000
START_SECONDS = 60


@dataclass(frozen=True)
class Ack:
    """A save that was said to have happened."""

    name: str
    version: int
    digest: str


@dataclass
class Record:
    """What one kind of database lived through."""

    acks: list[Ack] = field(default_factory=list)
    deaths: int = 0
    database_deaths: int = 0
    in_flight: int = 0


def skill_code(name: str, rng: random.Random) -> str:
    token = rng.randbytes(12).hex()
    padding = "# " + rng.choice("abcdef") * rng.randrange(PADDING) + "\n" if rng.random() < 0.5 else ""
    return f'def {name}() -> str:\n    """Return a token."""\n    return "{token}"\n{padding}'


def digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


class StoreLife:
    """A process that saves through the store until it is killed; its acknowledgements come through a pipe."""

    MOST_SAVES, OPENING_SECONDS = 20, 0.3

    def __init__(self, place: Place, seed: int) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(reading)
                _write_for_ever(place, seed, writing)
            finally:
                os._exit(1)
        os.close(writing)
        self._lines = _Lines(reading)

    def acks(self, wanted: int, seconds: float) -> Iterator[Ack]:
        """Give acknowledgements until there were `wanted` of them or the time is over."""
        for line in self._lines.take(wanted, seconds):
            yield Ack(**json.loads(line))

    def kill(self) -> Iterator[Ack]:
        """End the process at once; give what it had still acknowledged."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for line in self._lines.rest():
            yield Ack(**json.loads(line))


def _write_for_ever(place: Place, seed: int, pipe: int) -> None:
    store = SkillStore(open_database(place.url, place.home))

    def save_on(number: int) -> None:
        rng = random.Random(seed * AT_ONCE + number)
        while True:
            name = f"skill_{rng.randrange(NAMES)}"
            code = skill_code(name, rng)
            try:
                saved = store.save(SkillDraft(name=name, code=code, tags=("crash",)))
            except Exception:
                # The database server died: what was not acknowledged does not count.
                return
            ack = json.dumps({"name": saved.name, "version": saved.version, "digest": digest(code)})
            os.write(pipe, ack.encode() + b"\n")

    threads = [threading.Thread(target=save_on, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class ServerLife:
    """A `sealab serve` over stdio whose `save_skill` is called until it is killed.

    It takes seconds to start, so each of its lives has to be longer.
    """

    MOST_SAVES, OPENING_SECONDS = 80, 3

    def __init__(self, place: Place, seed: int) -> None:
        self._rng = random.Random(seed)
        self._sent: dict[int, tuple[str, str]] = {}
        self._next = 1
        environment = dict(os.environ) | ({} if place.url is None else {"SEALAB_DATABASE_URL": place.url})
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sealab.server", "serve", "--home", str(place.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._lines = _Lines(os.dup(self._process.stdout.fileno()))
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "crash", "version": "1"}}
        self._send({"id": 0, "method": "initialize", "params": client})

    def acks(self, wanted: int, seconds: float) -> Iterator[Ack]:
        """Call the tool, four calls at a time, until there were `wanted` answers or the time is over."""
        deadline = time.monotonic() + seconds
        while wanted > 0:
            line = next(self._lines.take(1, deadline - time.monotonic()), None)
            if line is None:
                return
            message = json.loads(line)
            if message.get("id") == 0:
                self._send({"method": "notifications/initialized"})
                for _ in range(AT_ONCE):
                    self._save()
            elif ack := self._ack(message):
                wanted -= 1
                yield ack
                self._save()

    def kill(self) -> Iterator[Ack]:
        """End the server at once; give what it had still answered."""
        self._process.kill()
        self._process.wait()
        for line in self._lines.rest():
            if ack := self._ack(json.loads(line)):
                yield ack

    def _save(self) -> None:
        name = f"skill_{self._rng.randrange(NAMES)}"
        code = skill_code(name, self._rng)
        self._sent[self._next] = name, digest(code)
        arguments = {"name": name, "code": code, "description": "A token.", "tags": ["crash"]}
        self._send({"id": self._next, "method": "tools/call", "params": {"name": "save_skill", "arguments": arguments}})
        self._next += 1

    def _send(self, message: dict) -> None:
        try:
            self._input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            pass

    def _ack(self, message: dict) -> Ack | None:
        sent = self._sent.pop(message.get("id"), None)
        if sent is None:
            return None
        result = message.get("result", {})
        if result.get("isError") or "result" not in message:
            text = json.dumps(message)[:300]
            if "database" not in text.lower():
                raise SystemExit(f"save_skill failed: {text}")
            return None
        name, code_digest = sent
        return Ack(name, result["structuredContent"]["version"], code_digest)


class _Lines:
    """Whole lines from a descriptor, as they come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    def take(self, wanted: int, seconds: float) -> Iterator[bytes]:
        deadline = time.monotonic() + seconds
        while wanted > 0:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                wanted -= 1
                yield line
                continue
            ready = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
            chunk = os.read(self._descriptor, 1 << 16) if ready else b""
            if not chunk:
                return
            self._buffer += chunk

    def rest(self) -> Iterator[bytes]:
        """Give the whole lines that are left; a last one that was cut short was acknowledged to nobody."""
        while chunk := os.read(self._descriptor, 1 << 16):
            self._buffer += chunk
        os.close(self._descriptor)
        yield from self._buffer.split(b"\n")[:-1]


def live_and_die(place: Place, kind: type[StoreLife | ServerLife], record: Record, rng: random.Random) -> None:
    """Let one writer live to a random moment: while it opens the database, or after some saves."""
    life = kind(place, rng.randrange(1 << 30))
    if rng.random() < OPENING_DEATHS:
        record.acks += life.acks(1 << 30, rng.uniform(0, kind.OPENING_SECONDS))
    else:
        record.acks += life.acks(rng.randint(1, kind.MOST_SAVES), START_SECONDS)
        time.sleep(rng.uniform(0, 0.03))
        if place.cluster is not None and rng.random() < DATABASE_DEATHS:
            place.cluster.stop(signal.SIGKILL)
            record.database_deaths += 1
    record.acks += life.kill()
    record.deaths += 1
    if place.cluster is not None and place.cluster.process.poll() is not None:
        place.cluster.start()


def faults(place: Place, record: Record) -> list[str]:
    """Return what is wrong with the database after all that."""
    wrong = []
    with open_database(place.url, place.home) as database:
        store = SkillStore(database)
        stored = {(name, each.version) for name in store.names() for each in store.versions(name)}
        for ack in record.acks:
            if (ack.name, ack.version) not in stored:
                wrong.append(f"{ack.name} version {ack.version} was acknowledged and is not there")
            elif digest(store.load(ack.name, ack.version).draft.code) != ack.digest:
                wrong.append(f"{ack.name} version {ack.version} has other code than was acknowledged")
        for name in store.names():
            numbers = [each.version for each in store.versions(name)]
            if numbers != list(range(1, len(numbers) + 1)):
                wrong.append(f"the versions of {name} are not consecutive: {numbers}")
        for name, version in stored:
            skill = store.load(name, version)
            if skill.draft.content_hash() != skill.content_hash:
                wrong.append(f"{name} version {version} is half-written")
        record.in_flight = len(stored) - len({(ack.name, ack.version) for ack in record.acks})
        if record.in_flight > AT_ONCE * record.deaths:
            wrong.append(f"{record.in_flight} versions are there that nobody can have saved")
        if store.list(tag="crash").total == 0:
            wrong.append("the list of a tag is empty")
    if place.url is None:
        connection = sqlite3.connect(place.home / DATABASE_FILE)
        for check in ("integrity_check", "foreign_key_check"):
            rows = connection.execute(f"PRAGMA {check}").fetchall()
            wrong += [f"{check}: {row}" for row in rows if row != ("ok",)]
        connection.close()
    return wrong


def saves_survive(
    place: Place, life: type[StoreLife | ServerLife], saves: int, dice: random.Random
) -> tuple[str, list[str]]:
    """Let so many saves be acknowledged in lives of one kind; return figures, and what is wrong."""
    record = Record()
    while len(record.acks) < saves:
        live_and_die(place, life, record, dice)
    wrong = faults(place, record)
    figures = f"{len(record.acks)} acknowledged, {record.in_flight} unheard, killed {record.deaths} times"
    return f"{figures}, and the database {record.database_deaths}", wrong
