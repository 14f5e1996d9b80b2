"""Composes programs of the dialect and looks for what code must never hold; see `make fuzz-language`.

    python -m tests.fuzz.language [--seconds S] [--programs N] [--processes N] [--seed N] [--finds DIR]

Ends with 1 on a find. A find is the shortest program that shows it, with what leaked and by which way. A crash of the
interpreter is shown and counted apart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_CRASH = "the interpreter ended by signal"
SESSION_LENGTH = 80
CORPUS_MAX = 3000
SHAPES_MAX = 4
"""Finds of one reason by different statements that are told; after that, the reason is known."""


@dataclass(frozen=True)
class Find:
    """A leak, and the shortest program that shows it."""

    reason: str
    path: str
    program: str
    seed: int
    cpu_seconds: float


def main() -> int:
    """Fuzz for the seconds given, in as many processes as given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of each process, wall time")
    parser.add_argument("--programs", type=int, default=sys.maxsize, help="of each process, at most")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--finds", type=Path, help="a folder to save finds in")
    options = parser.parse_args()
    if os.environ.get("SEALAB_DISPOSABLE") != "1":
        print(
            "this runs hostile code: use `make fuzz-language WRAPPER=…` with a command that gives it a throw-away machine",
            file=sys.stderr,
        )
        return 2
    if os.environ.get("PYTHONHASHSEED") != "0":  # so that a seed gives the same programs again
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.fuzz.language", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    readers = [
        _started(options.seed * 1000 + number, options.seconds, options.programs) for number in range(options.processes)
    ]
    finds: dict[str, Find] = {}
    totals: dict[str, float] = {}
    kinds: set[str] = set()
    for item in _heard(readers):
        if "program" in item:
            find = Find(**item)
            if find.program not in finds:
                finds[find.program] = find
                _show(find)
                if options.finds:
                    options.finds.mkdir(parents=True, exist_ok=True)
                    name = hashlib.sha256(find.program.encode()).hexdigest()[:12]
                    (options.finds / f"{name}.py").write_text(
                        f"# {find.reason}, by {find.path}; seed {find.seed}\n{find.program}"
                    )
        else:
            kinds.update(item.pop("kinds"))
            for name, value in item.items():
                totals[name] = totals.get(name, 0) + value
    # Code that makes CPython itself fail has left the language; what it does then is for the kernel layers.
    crashes = sum(find.reason.startswith(_CRASH) for find in finds.values())
    statements, seconds = totals.get("statements", 0), totals.get("cpu_seconds", 0)
    print(
        f"{statements:.0f} statements in {totals.get('sessions', 0):.0f} programs, {seconds:.0f} CPU seconds"
        f" ({statements / max(seconds, 1):.0f} statements a second), {totals.get('late', 0):.0f} stopped,"
        f" {len(kinds)} kinds of object, {len(finds) - crashes} finds, {crashes} crashes"
    )
    return 1 if len(finds) > crashes or not statements else 0


def _show(find: Find) -> None:
    print(
        f"--- {find.reason}\n    by {find.path or 'the state of the host'}; seed {find.seed}, after {find.cpu_seconds:.0f} CPU seconds",
        flush=True,
    )
    print("".join(f"    {line}\n" for line in find.program.splitlines()), flush=True)


def _started(seed: int, seconds: float, programs: int) -> int:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        try:
            _explore(seed, seconds, programs, writing)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.close(writing)
    return reading


def _heard(readers: list[int]) -> Iterator[dict]:
    import selectors

    waiting = selectors.DefaultSelector()
    for reader in readers:
        waiting.register(os.fdopen(reader, "rb", buffering=0), selectors.EVENT_READ, bytearray())
    while waiting.get_map():
        for key, _ in waiting.select():
            part = key.fileobj.read(1 << 16)
            if not part:
                waiting.unregister(key.fileobj)
                continue
            key.data.extend(part)
            while (end := key.data.find(b"\n")) >= 0:
                yield json.loads(key.data[:end])
                del key.data[: end + 1]


def _explore(seed: int, seconds: float, programs: int, writing: int) -> None:
    from .smallest import smallest
    from .worker import Worker

    def tell(item: dict) -> None:
        text = memoryview(encode(item).encode() + b"\n")
        while text:
            text = text[os.write(writing, text) :]

    encode = json.JSONEncoder().encode
    worker = Worker()
    rng = random.Random(seed)
    corpus = Corpus(rng)
    known: set[str] = set()
    shapes: dict[str, set[str]] = {}
    until = time.monotonic() + seconds
    totals = {"statements": 0, "sessions": 0, "late": 0}
    while time.monotonic() < until and totals["sessions"] < programs:
        session_seed = rng.getrandbits(48)
        session = worker.explore(session_seed, corpus.start(), SESSION_LENGTH, frozenset(known))
        totals["statements"] += len(session.statements)
        totals["sessions"] += 1
        totals["late"] += session.late
        corpus.learn(session)
        reason = _reason(session)
        if reason is None:
            continue
        if session.leak:
            shapes.setdefault(reason, set()).add(session.leak.kind)
            known |= shapes[reason] if session.leak.shape and len(shapes[reason]) < SHAPES_MAX else {reason}
        thorough = session.leak is not None and session.leak.shape in {"", "the end"}

        def shows(candidate: Sequence[str], reason: str = reason, thorough: bool = thorough) -> bool:
            return _reason(worker.replay(candidate, thorough=thorough)) == reason

        program = smallest(session.statements, shows) if shows(session.statements) else session.statements
        shown = worker.replay(program)
        path = shown.leak.path if shown.leak else (session.leak.path if session.leak else "")
        tell(asdict(Find(reason, path, "".join(program), session_seed, _cpu_seconds())))
    tell({**totals, "cpu_seconds": _cpu_seconds(), "kinds": sorted(corpus.kinds)})


def _reason(session) -> str | None:
    if session.crash:
        return f"{_CRASH} {session.crash}"
    return session.leak.reason if session.leak else None


def _cpu_seconds() -> float:
    times = os.times()
    return round(times.user + times.system + times.children_user + times.children_system, 1)


class Corpus:
    """Beginnings of sessions that made a kind of object for the first time: what new sessions start from."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._starts: list[list[str]] = []
        self.kinds: set[str] = set()

    def start(self) -> list[str]:
        """Return statements to begin with: none, or those of one or two beginnings."""
        if not self._starts or self._rng.random() < 0.4:
            return []
        chosen = [self._pick(), *([self._pick()] if self._rng.random() < 0.5 else [])]
        return [text for number, texts in enumerate(chosen) for text in _renamed(texts, number)][:40]

    def _pick(self) -> list[str]:
        # Recent ones are about what is new by now.
        return self._starts[-1 - int(len(self._starts) * self._rng.random() ** 1.7)]

    def learn(self, session) -> None:
        """Keep what led to kinds of objects that are new."""
        for index, kind in session.kinds:
            if kind in self.kinds:
                continue
            self.kinds.add(kind)
            if " ! " not in kind:
                self._starts.append(_slice(session.statements, index))
                if len(self._starts) > CORPUS_MAX:
                    self._starts.pop(self._rng.randrange(CORPUS_MAX // 2))


_VARIABLE = re.compile(r"\b[Cfv]\d+\b")


def _slice(statements: list[str], last: int) -> list[str]:
    """Return the statements up to `last` that it depends on by the variables it names."""
    wanted = set(_VARIABLE.findall(statements[last]))
    kept = [statements[last]]
    for text in reversed(statements[:last]):
        named = _VARIABLE.findall(text)
        if wanted.intersection(named):
            kept.append(text)
            wanted.update(named)
    return kept[::-1][-20:]


def _renamed(texts: list[str], number: int) -> list[str]:
    """Return the statements with variables that no other beginning has."""
    order: dict[str, str] = {}
    for text in texts:
        for word in _VARIABLE.findall(text):
            order.setdefault(word, f"{word[0]}{number * 400 + len(order) + 1}")
    return [_VARIABLE.sub(lambda found: order[found[0]], text) for text in texts]


if __name__ == "__main__":
    sys.exit(main())
