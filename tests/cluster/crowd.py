"""Two hundred clients that work while something goes wrong, what each was told, and what was acknowledged to them."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.load_client import ANY_RESULT, MODERN, Client, Load, body_of
from tests.chaos.client import Client as Asker

from .harness import Running

SESSIONS = 6
"""How many of the clients have a session; a server keeps eight alive."""
PAUSE_SECONDS = 20.0
"""The mean of what a client thinks between two calls, by an exponential distribution."""
ANSWER_SECONDS = 45.0
READERS = 8
_SENTENCE = re.compile(r"[A-Z][^.]* [^.]*\S[.?!]")
_SHOWN = re.compile(r"[0-9a-z]*\d[0-9a-z]*")
_FAULTS = ("Traceback (most recent call last)", "fault of sealab itself", "Internal Server Error", "Internal error")


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: when it began, by the monotonic clock, how long it took, what came of it and what was said.

    `outcome` is `ok`, `clear` (an error that says what is wrong), `cut` (the connection ended), `wrong` or `silent`.
    """

    began: float
    seconds: float
    kind: str
    outcome: str
    text: str = ""

    @property
    def ended(self) -> float:
        return self.began + self.seconds


@dataclass
class Told:
    """What clients saw, and what was acknowledged to them."""

    samples: list[Sample] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    skills: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def between(self, begin: float, end: float = math.inf) -> list[Sample]:
        """Return the calls that began within a time."""
        return [each for each in self.samples if begin <= each.began < end]

    def p99_ms(self, begin: float, end: float = math.inf) -> float:
        """Return the 99th percentile of the short calls that began within a time and were answered right."""
        took = sorted(each.seconds for each in self.between(begin, end) if each.outcome == "ok" and each.kind == "add")
        return took[min(len(took) - 1, math.ceil(len(took) * 0.99))] * 1000 if took else math.inf

    def p99_is_back(self, fault: float, normal_ms: float, until: float) -> float:
        """Return how many seconds after a fault the p99 of the next five seconds is that of before, or infinity."""
        for late in range(int(until - fault) - 4):
            if self.p99_ms(fault + late, fault + late + 5) <= max(2 * normal_ms, normal_ms + 250):
                return float(late)
        return math.inf

    def failures(self, begin: float = 0, end: float = math.inf) -> Counter[str]:
        """Return what was no right answer, by what it was and what it said."""
        return Counter(
            f"{each.outcome}: {_SHOWN.sub('#', each.text)[:110]}".rstrip(": ")
            for each in self.between(begin, end)
            if each.outcome != "ok"
        )

    def unclear(self) -> list[Sample]:
        """Return answers that no fault excuses."""
        return [each for each in self.samples if each.outcome in {"wrong", "silent"}]


class Crowd:
    """Clients that work until they are told to end, in a thread.

    Some have a session, and some leave files for others: what takes several servers that are one.
    """

    def __init__(self, running: Running, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self.told = Told()
        self.running, self._pause = running, pause_seconds
        mark = secrets.token_hex(3)
        self._tokens = running.tokens([f"crowd-{mark}-{number}" for number in range(running.clients)])
        self._ends = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)

    @property
    def tokens(self) -> Sequence[str]:
        return self._tokens

    @contextmanager
    def working(self) -> Iterator[Told]:
        """Let them work meanwhile; on the way out those at work are waited for."""
        self._thread.start()
        try:
            yield self.told
        finally:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._ends.set)
            self._thread.join(ANSWER_SECONDS + 20)

    async def _all(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.gather(*(self._work(number) for number in range(len(self._tokens))))

    async def _work(self, number: int) -> None:
        rng = random.Random(number)
        load = Load(self.running.balancer.url, era=MODERN, tokens=[self._tokens[number]], expected=ANY_RESULT)
        count = _Count()
        await asyncio.sleep(rng.uniform(0, self._pause))
        while not self._ends.is_set():
            await self._call(Client(load, "client-0"), rng, number, count)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), rng.expovariate(1 / self._pause))

    async def _call(self, client: Client, rng: random.Random, number: int, count: _Count) -> None:
        key, chance = next(self._numbers), rng.random()
        given: dict[str, Any] = {}
        text = f"{number}-{rng.getrandbits(48):012x}"
        if number < SESSIONS:
            kind, code, given = "session", "try:\n    k += 1\nexcept NameError:\n    k = 1\nk", {"session": "main"}
        elif chance < 0.1:
            kind, code = "wait", f"import asyncio\nawait asyncio.sleep(2)\n{key} + 1"
        elif chance < 0.25:
            kind, code = "file", f"write_file('crowd/{text}.txt', {text!r})\n{key} + 1"
        elif 0.25 <= chance < 0.28:
            name = f"crowd_{text.replace('-', '_')}"
            source = f'def {name}() -> str:\n    """Say."""\n    return "{text}"\n'
            kind, code = "skill", f"save_skill({name!r}, {source!r})\n{key} + 1"
        else:
            kind, code = "add", f"{key} + 1"
        count.sent += kind == "session"
        began = time.monotonic()
        outcome, said, result = await _answer(client, key, code, given)
        took = time.monotonic() - began
        if outcome == "ok":
            if kind == "session":
                outcome, said = count.judged(result)
            elif result != key + 1:
                outcome, said = "wrong", f"{result} instead of {key + 1}"
            elif kind == "file":
                self.told.files[f"crowd/{text}.txt"] = text
            elif kind == "skill":
                self.told.skills[name] = source
        if kind == "session" and outcome == "wrong":
            self.told.lost.append(f"session of client {number}: {said}")
        self.told.samples.append(Sample(began, took, kind, outcome, said))

    def reread(self, most: int = 300) -> str:
        """Read what was acknowledged, via all replicas in turn; return how much of it, and note what is lost."""
        told, client = self.told, Asker(self.running.url(), MODERN, self._tokens[-1])
        some = random.Random(1).sample(sorted(told.files), min(most, len(told.files)))
        for name in some:
            read = client.call("read_workspace_file", {"filename": name})
            if read.content.get("content") != told.files[name]:
                told.lost.append(f"{name}: {read.status} {read.text[:120]}")
        for name, source in list(told.skills.items())[:most]:
            read = client.call("load_skill", {"name": name})
            if read.content.get("code") != source:
                told.lost.append(f"{name}: {read.status} {read.text[:120]}")
        return f"{len(some)} files and {min(most, len(told.skills))} skills read again, {len(told.lost)} lost"


@dataclass
class _Count:
    """What a session counts: each call adds one, acknowledged or not."""

    sent: int = 0
    acknowledged: int = 0

    def judged(self, result: Any) -> tuple[str, str]:
        """Take a count; return an outcome."""
        if not isinstance(result, int) or not self.acknowledged < result <= self.sent:
            return "wrong", f"{result} after {self.acknowledged} was acknowledged and {self.sent} sent"
        self.acknowledged = result
        return "ok", ""


async def _answer(client: Client, key: int, code: str, given: dict[str, Any]) -> tuple[str, str, Any]:
    """Make one call over a connection of its own; return its outcome, what was said, and the result."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            status, _headers, data = await client.post(body_of(key, code, {"timeout_seconds": 30, **given}, MODERN))
    except TimeoutError:
        return "silent", f"no answer in {ANSWER_SECONDS:g} s", None
    except (OSError, EOFError, ValueError) as error:
        return "cut", type(error).__name__, None
    finally:
        client.close()
    text = data.decode(errors="replace")
    if status >= 400:
        return ("clear" if _SENTENCE.search(text) and status != 500 else "wrong"), f"HTTP {status}: {text}", None
    return _judged(text)


def _judged(text: str) -> tuple[str, str, Any]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")] or [text]
    message: dict[str, Any] = {}
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            return "cut", "an answer that ends in its middle", None
    if "error" in message:
        said = str(message["error"].get("message"))
        return ("clear" if _is_clear(said) else "wrong"), said, None
    if "result" not in message:
        return "cut", "a stream without an answer", None
    result = message["result"]
    report = result.get("structuredContent") or {}
    if not result.get("isError") and report.get("status", "ok") == "ok":
        return "ok", "", report.get("result")
    error = report.get("error") or {}
    said = " ".join(str(error.get(name) or "") for name in ("type", "message")).strip()
    said = said or " ".join(each.get("text", "") for each in result.get("content", ()))
    return ("clear" if _is_clear(said) else "wrong"), f"{report.get('status', 'tool error')}: {said}", None


def _is_clear(said: str) -> bool:
    return bool(_SENTENCE.search(said)) and not any(fault in said for fault in _FAULTS)
