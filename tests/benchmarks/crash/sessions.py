"""Sessions of thirty programs, killed after each: all variables must be what they are in a session that nobody disturbs.

After each program its worker, its zygote or the whole server is killed by SIGKILL, in turn; each session begins with
another of them. Every program tells all variables before and after it, with what is in them. They are compared with
those before the kill, and with those of the same programs in another home where nothing is killed, but there for what
depends on the seed and the clock. Wrong is any that differs, a session that was not rebuilt, and a write done again.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import psutil

from tests.chaos.served import Served

from .places import Place, called, is_upstream, killed_and_started, served_at, upstream_in, written_twice
from .programs import PROGRAMS, SHOW

KILLED = ("worker", "zygote", "server")
OWN = "own_"
"""How the names begin of what may differ between two sessions."""


@dataclass
class Session:
    """What one session said of its variables, before and after each of its programs."""

    before: list[dict[str, str]] = field(default_factory=list)
    after: list[dict[str, str] | None] = field(default_factory=list)
    """None where the program failed, as one does on purpose."""
    wrong: list[str] = field(default_factory=list)
    rebuilt: int = 0
    rebuilt_ms: float = 0.0


def program(number: int) -> str:
    """Return a program that tells all variables before and after it."""
    shows = SHOW if number == 0 else ""
    return f"{shows}\nbefore = everything()\n{PROGRAMS[number]}\nresult = [before, everything()]"


async def told(served: Served, name: str, session: Session, number: int, *, is_cut: bool) -> None:
    """Run one program of a session, and take what it tells."""
    code = program(number) if number < len(PROGRAMS) else "result = [everything(), everything()]"
    report = await called(served, "execute_code", code=code, session=name, context_vars={"own_writer": int(name)})
    rebuilt = report.get("session", {})
    if is_cut and rebuilt.get("programs") != number:
        session.wrong.append(f"before program {number} it was not rebuilt: {_short(report)}")
    session.rebuilt += bool(rebuilt.get("rebuilt"))
    session.rebuilt_ms += rebuilt.get("ms", 0.0)
    if report["status"] == "ok":
        session.before.append(report["result"][0])
        session.after.append(report["result"][1])
    elif "on purpose" in json.dumps(report["error"]):
        session.before.append({})
        session.after.append(None)
    else:
        raise SystemExit(f"program {number} of session {name} failed: {_short(report)}")


def killed(served: Served, what: str) -> None:
    """Kill what carries the session, and have the server be there again."""
    if what == "server":
        killed_and_started(served)
        return
    server = psutil.Process(served.process.pid)
    zygotes = [each for each in server.children() if not is_upstream(each)]
    gone = zygotes if what == "zygote" else [child for each in zygotes for child in each.children()]
    for each in gone:
        each.kill()
    psutil.wait_procs(gone, 10)


async def lived(served: Served, name: str, first: int | None) -> Session:
    """Run the programs of a session; kill something after each, in turn from `first` on, or nothing."""
    session = Session()
    for number in range(len(PROGRAMS) + 1):
        await told(served, name, session, number, is_cut=first is not None and number > 0)
        if first is not None:
            await asyncio.to_thread(killed, served, KILLED[(first + number) % len(KILLED)])
    return session


def differences(session: Session, undisturbed: Session) -> Iterator[str]:
    """Give what is not as it was before the kill, or not as in the session that nobody disturbed."""
    yield from session.wrong
    for number, (before, after) in enumerate(zip(session.before, session.after, strict=True)):
        if number and before and (last := session.after[number - 1]) is not None:
            yield from _differ(f"after the kill behind program {number - 1}", last, before, own=True)
        for mine, other in ((before, undisturbed.before[number]), (after, undisturbed.after[number])):
            yield from _differ(f"at program {number}", other or {}, mine or {}, own=False)


def _differ(where: str, wanted: dict[str, str], got: dict[str, str], *, own: bool) -> Iterator[str]:
    for name in sorted(wanted.keys() | got.keys()):
        is_own = name.startswith(OWN)
        if wanted.get(name) != got.get(name) and (own or not is_own or name not in wanted or name not in got):
            yield f"{where} {name} was {wanted.get(name)} and is {got.get(name)}"


async def live(place: Place, sessions: int) -> list[Session]:
    """Run one session that nobody disturbs, and so many that are."""
    (calm := place.home / "calm").mkdir()
    (hurt := place.home / "hurt").mkdir()
    upstream_in(calm)
    lines = upstream_in(hurt)
    # Two homes share no database on PostgreSQL, where a home is none: the calm one has a file.
    served = served_at(Place("sqlite", calm, None, None))
    try:
        undisturbed = await lived(served, "0", None)
    finally:
        served.end(signal.SIGTERM)
    served = served_at(replace(place, home=hurt))
    found = []
    try:
        for number in range(sessions):
            for each in ("a.txt", "b.txt"):
                (hurt / "workspace" / each).unlink(missing_ok=True)
            session = await lived(served, str(number), number)
            session.wrong = [*differences(session, undisturbed), *written_twice(lines)]
            found.append(session)
    finally:
        served.end(signal.SIGTERM)
    return found


def _short(value: Any) -> str:
    return json.dumps(value)[:500]


def sessions_survive(place: Place, sessions: int, dice: random.Random) -> tuple[str, list[str]]:
    """Run so many sessions, whose kills go by turns and use no dice; return figures, and what is wrong."""
    del dice
    found = asyncio.run(live(place, sessions))
    rebuilt = sum(each.rebuilt for each in found)
    each_ms = sum(each.rebuilt_ms for each in found) / max(rebuilt, 1)
    wrong = [f"session {number}: {why}" for number, each in enumerate(found) for why in each.wrong]
    return f"{len(found)} sessions of {len(PROGRAMS)} programs, {rebuilt} times rebuilt in {each_ms:.0f} ms each", wrong
