"""Runs programs as a restricted worker does, without the kernel's layers, in forks of a process that is ready for them.

A fork runs one session: statements that share their variables, the oracle after each. What it did, it tells its parent
before it does it, so that a program that ends the interpreter is known as well.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import os
import random
import re
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.restricted_python import RestrictedPython
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.worker.runner import definer
from tests.sandbox import facades_walk

from .composer import Composer
from .host_state import HostState
from .oracle import CANARY, Leak, Oracle
from .words import given_helpers, prelude

STATEMENT_SECONDS, SESSION_SECONDS, SESSION_CPU_SECONDS = 0.4, 6.0, 8
MEMORY_BYTES = 1 << 30
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})


@dataclass
class Session:
    """What one fork did."""

    statements: list[str] = field(default_factory=list)
    kinds: list[tuple[int, str]] = field(default_factory=list)
    leak: Leak | None = None
    crash: int | None = None
    late: bool = False


class _TooLong(BaseException):
    pass


class Worker:
    """A process prepared and sealed as the workers of `restricted` are, with an oracle that knows it."""

    def __init__(self) -> None:
        dialect = RestrictedPython()
        dialect.prepare(())
        importlib.import_module("sealab.sandbox.report.failures")
        self.oracle = Oracle()
        GUEST.call_host, GUEST.call_host_async = facades_walk._answer, facades_walk._answer_later  # type: ignore[assignment]  # answers are JSON
        GUEST.define = definer(dialect)
        GUEST.namespace = dialect.new_namespace(given_helpers())
        GUEST.write = _drop
        self._run(prelude())
        dialect.seal()
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType):
                vars(module)["_canary"] = CANARY
                vars(module).setdefault("__builtins__", builtins)  # as the first evaluation in a module's names does
        self.oracle.begin(given_helpers())
        self.seen: list[object] = GUEST.namespace["SEEN"]  # type: ignore[assignment]  # the prelude's list
        for name in ("Lie", "Two", "Spy"):
            self.oracle._host_classes.discard(GUEST.namespace[name])  # type: ignore[arg-type]  # classes
        gc.collect()
        gc.freeze()
        self._state = HostState()

    @staticmethod
    def _run(source: str) -> object:
        return run_program(compile_program(source, filename="<fuzz>"), GUEST.namespace)

    # In the parent

    def session(self, act: Callable[[Callable[[dict[str, object]], None]], None]) -> Session:
        """Fork, let the child `act`, and return what it told."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._child(act, reading, writing)
        os.close(writing)
        told, late = _told_by(reading, child)
        _, status = os.waitpid(child, 0)
        session = Session(late=late)
        for line in told.splitlines():
            with contextlib.suppress(ValueError):
                self._add(session, json.loads(line))
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _CRASHES:
            session.crash = os.WTERMSIG(status)
        return session

    @staticmethod
    def _add(session: Session, item: dict[str, str]) -> None:
        if "statement" in item:
            session.statements.append(item["statement"])
        elif "kind" in item:
            session.kinds.append((len(session.statements) - 1, item["kind"]))
        elif "reason" in item:
            session.leak = Leak(item["reason"], item["path"], item["shape"])

    def explore(self, seed: int, start: Sequence[str], length: int, known: frozenset[str]) -> Session:
        """Run the statements of `start` and then new ones, `length` in all."""

        def act(tell: Callable[[dict[str, object]], None]) -> None:
            rng = random.Random(seed)
            composer = Composer(rng, GUEST.namespace, first=1000 if start else 0)
            waiting: list[tuple[str, str | None]] = [(text, None) for text in start]
            history: list[tuple[str, str | None]] = []
            uses = 0
            for _ in range(length):
                if not waiting:
                    waiting = [composer.statement()] if rng.random() > 0.08 else composer.perturb_and_repeat(history)
                    uses = 1 if waiting and len(waiting) == 1 else 0
                    if not waiting:
                        continue
                text, name = waiting.pop(0)
                if self._step(text, name, tell, known):
                    return
                history.append((text, name))
                for variable in [name] if name else sorted(names_set_by(text)):
                    composer.learn(variable)
                    if uses and rng.random() < 0.5:
                        waiting += composer.uses(variable)
                uses = 0
            self._end(tell, known)

        return self.session(act)

    def replay(self, statements: Iterable[str], *, thorough: bool = True) -> Session:
        """Run exactly these statements."""

        def act(tell: Callable[[dict[str, object]], None]) -> None:
            for text in statements:
                if self._step(text, None, tell, frozenset()):
                    return
            if thorough:
                self._end(tell, frozenset())

        return self.session(act)

    # In the child

    def _child(self, act: Callable[[Callable[[dict[str, object]], None]], None], reading: int, writing: int) -> None:
        try:
            os.close(reading)
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            _limit()
            encode = json.JSONEncoder().encode
            write = os.write

            def tell(item: dict[str, object]) -> None:
                write(writing, f"{encode(item)}\n".encode())

            act(tell)
        except BaseException as error:  # a slip of the instrument itself
            with contextlib.suppress(BaseException):
                import traceback

                where = os.environ.get("FUZZ_TRACE")
                if where:
                    with open(where, "a") as log:
                        log.write("".join(traceback.format_exception(error)[-8:]))
        finally:
            os._exit(0)

    def _step(
        self, text: str, name: str | None, tell: Callable[[dict[str, object]], None], known: frozenset[str]
    ) -> bool:
        try:
            program = compile_program(text, filename="<fuzz>")
        except BaseException:  # refused, or no Python: nothing ran
            return False
        tell({"statement": text})
        list.clear(self.seen)  # what the composer itself asked the spies
        raised = self._bounded(lambda: run_program(program, GUEST.namespace))
        names = [name] if name else sorted(names_set_by(text))
        roots = [(word, GUEST.namespace[word]) for word in names if word in GUEST.namespace]
        roots += [(f"seen {index}", item) for index, item in enumerate(list.__getitem__(self.seen, slice(0, 40)))]
        if raised is not None:
            roots.append(("raised", raised))
        for path, value in roots[:4]:
            tell({"kind": self._kind(text, path, value)})
        list.clear(self.seen)
        if self._judged(roots, tell, known, shape=shape_of(text)):
            return True
        again = [(f"seen {index}", item) for index, item in enumerate(list.__getitem__(self.seen, slice(0, 40)))]
        list.clear(self.seen)
        return bool(again) and self._judged(again, tell, known, shape=shape_of(text))

    def _judged(
        self,
        roots: list[tuple[str, object]],
        tell: Callable[[dict[str, object]], None],
        known: frozenset[str],
        shape: str = "the end",
        **bounds: int,
    ) -> bool:
        found: list[Leak] = []
        self._bounded(lambda: found.extend(leak for leak in [self.oracle.leaks(roots, **bounds)] if leak is not None))
        for leak in found:
            if leak.reason not in known and f"{leak.reason} | {shape}" not in known:
                tell({"reason": leak.reason, "path": leak.path, "shape": shape})
                return True
        return False

    def _end(self, tell: Callable[[dict[str, object]], None], known: frozenset[str]) -> None:
        roots = [
            (name, value) for name, value in list(GUEST.namespace.items()) if type(name) is str and name[:1] in "Cfv"
        ]
        if self._judged(roots, tell, known, nodes=3000, depth=6):
            return
        list.clear(self.seen)
        for change in self._state.changes():
            if change not in known:
                tell({"reason": change, "path": "", "shape": ""})
                return

    @staticmethod
    def _bounded(act: Callable[[], object]) -> BaseException | None:
        """Do `act` for a bounded time and return what it raised."""
        signal.setitimer(signal.ITIMER_REAL, STATEMENT_SECONDS, 0.05)
        try:
            act()
        except _TooLong:
            return None
        except BaseException as error:
            return error
        finally:
            _stop_the_clock()
        return None

    @staticmethod
    def _kind(text: str, path: str, value: object) -> str:
        """Return what a statement gave, or handed to a spy, so that what is new can be told."""
        if path.startswith("seen"):
            kinds = [type(item) for part in value for item in (part if type(part) is tuple else (part,))]  # type: ignore[attr-defined]  # as `see` keeps it
            return f"{shape_of(text)} < {', '.join(kind.__qualname__ for kind in kinds[:4])}"[:160]
        cls = type(value)
        if issubclass(cls, BaseException) and cls.__module__ == "builtins":
            return f"{shape_of(text)} ! {cls.__name__}"
        return f"{shape_of(text)} > {cls.__module__}.{cls.__qualname__}"[:160]


def shape_of(text: str) -> str:
    """Return in a word what a statement does: `class`, `def`, `exec`, or what it calls, reads or writes."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line.strip() != "try:"]
    line = next((line for line in lines if not line.startswith("@")), "")
    for word in ("class", "def", "async", "exec", "match", "with"):
        if line.startswith((f"{word} ", f"{word}(")):
            return word
    named = re.sub(r"\b[Cfv]\d+ = ", "", line).partition("(")[0]
    return re.sub(r"\b[Cfv]\d+\b", "_", named)[:60]


def names_set_by(text: str) -> set[str]:
    """Return the variables of sessions that a statement may set."""
    found = set()
    for word in text.replace("(", " ").replace(":", " ").replace(")", " ").split():
        if word[:1] in "Cfv" and word[1:].isdigit():
            found.add(word)
    return found


def _drop(_text: str) -> None:
    """Write nowhere."""


def _stop_the_clock() -> None:
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except _TooLong:
            continue
        return


def _limit() -> None:
    def late(_signal: int, _frame: types.FrameType | None) -> None:
        raise _TooLong

    signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_CPU, (SESSION_CPU_SECONDS, SESSION_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _told_by(reading: int, child: int) -> tuple[str, bool]:
    until = time.monotonic() + SESSION_SECONDS
    parts: list[bytes] = []
    late = False
    with open(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                late = True
                until = time.monotonic() + SESSION_SECONDS
                continue
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts).decode(errors="replace"), late
            parts.append(part)
