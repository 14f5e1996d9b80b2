"""What a test costs in processor time, its own and that of all processes below it, and the tier that follows from it.

`tests/costs.tsv` lists the tests and shared fixtures that took `LISTED_SECONDS` or more when `make costs` last ran. The
cost of a shared fixture is divided among the tests that use it. A test whose cost is above `QUICK_SECONDS` belongs to
the long tier (`make long`), every other one to `make test`: no mark says which tests are slow. A test of the quick tier
that the file does not list, and that takes more than `NEW_SECONDS_MAX`, fails. Such a test is run up to three times more
first, and the least figure counts: the first one may have paid for imports, and for what a server prepares after its
start. Of these runs only the call and the test's own fixtures count.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

FILE = Path(__file__).with_name("costs.tsv")
QUICK_SECONDS = 0.4
"""With it the quick tests take ten minutes of processor time, five on two processors."""
NEW_SECONDS_MAX = 1.0
LISTED_SECONDS = 0.3
_UNLISTED_SECONDS = 0.02
_EXAMPLES = 15
"""How many examples a test of Hypothesis draws in `make test`; `make long` draws all."""
_ONCE_MORE_SECONDS_MAX, _TRIES_MORE = 10.0, 3
_YARDSTICK_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


def read() -> dict[str, float]:
    """Return the seconds of each listed test and fixture by its name."""
    if not FILE.exists():
        return {}
    rows = (line.split("\t") for line in FILE.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


def write(costs: dict[str, float]) -> None:
    """Write the costs that are worth a row, dearest first."""
    listed = {name: seconds for name, seconds in costs.items() if seconds >= LISTED_SECONDS}
    rows = sorted(listed.items(), key=lambda row: (-round(row[1], 1), row[0]))
    FILE.write_text("".join(f"{seconds:.1f}\t{name}\n" for name, seconds in rows))


def processor_seconds() -> float:
    """Return what this process, all that run below it, and all that these have waited for, have computed."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime + sum(map(_computed, _below("self")))


def _below(process: str) -> Iterator[str]:
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{process}/task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in Path(f"/proc/{process}/task/{task}/children").read_text().split():
                    yield child
                    yield from _below(child)


def _computed(process: str) -> float:
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def _speed() -> float:
    """Return how fast this machine is now, of the one on which the limits were set: what runs beside slows it."""
    return _YARDSTICK_SECONDS / min(_yardstick() for _ in range(3))


def _yardstick() -> float:
    begun = time.process_time()
    words = [f"word {number % 977}" for number in range(100_000)]
    sorted({word: len(re.findall(r"\d+", word)) for word in words}.items())
    return time.process_time() - begun


class Costs:
    """Measures tests and shared fixtures, in seconds of the machine on which the limits were set."""

    def __init__(self, rows: str | None, judges: bool) -> None:
        self._rows = rows and Path(rows)
        self._judges = judges
        self._known = read()
        self._speed = _speed()
        self._shared = 0.0
        """Seconds that the fixtures of more than one test took during this test."""
        self._own: float | None = None
        """Seconds that the call and its own fixtures took, where a test is run once more."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield from self._counted())
        before, shared = processor_seconds(), self._shared
        try:
            return (yield)
        finally:
            spent = processor_seconds() - before
            self._record(f"fixture {fixturedef.baseid}::{fixturedef.argname}", spent - (self._shared - shared))
            self._shared = shared + spent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self._counted())

    def _counted(self) -> Generator[None, object, object]:
        """Run a part of a test, and add to `_own` what it took without what was counted within it."""
        if (own := self._own) is None:
            return (yield)
        before, shared = processor_seconds(), self._shared
        try:
            return (yield)
        finally:
            self._own = own + processor_seconds() - before - (self._shared - shared)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        before, self._shared = processor_seconds(), 0.0
        result = yield
        seconds = (processor_seconds() - before - self._shared) * self._speed
        # What was compiled ahead beside another test is counted when it has ended.
        tries = most = _TRIES_MORE if self._rows or item.nodeid not in self._known else 0
        # With one of the same file as the next, what that file shares stays: the first use of a server costs more.
        beside = next(
            (each for each in item.session.items if each.parent is item.parent and each is not item), nextitem
        )
        while tries and NEW_SECONDS_MAX < seconds <= _ONCE_MORE_SECONDS_MAX:
            tries -= 1
            self._own = self._shared = 0.0
            runtestprotocol(item, log=False, nextitem=beside)
            seconds, self._own = min(seconds, self._own * min(self._speed, _speed())), None
        if tries < most:
            item.session._setupstate.teardown_exact(nextitem)
        self._record(item.nodeid, seconds)
        if seconds > NEW_SECONDS_MAX and self._judges and item.nodeid not in self._known:
            reason = f"It takes {seconds:.1f} processor seconds. Make it cheaper, or have `make costs` move it to `make long`."
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", reason, "teardown")
            item.ihook.pytest_runtest_logreport(report=report)
        return result

    def _record(self, name: str, seconds: float) -> None:
        if self._rows:
            with self._rows.open("a") as rows:
                rows.write(f"{seconds:.3f}\t{name}\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--tier", choices=("all", "quick", "long"), default="all", help="which tests, by tests/costs.tsv")
    group.addoption("--record-costs", metavar="FILE", help="add a row for each test and shared fixture to FILE")
    group.addoption("--judge-costs", action="store_true", help="fail a test that costs too much and is not listed")
    group.addoption("--shard", metavar="K/N", help="of the files with tests, those of the K-th of N shards")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Costs(config.getoption("--record-costs"), config.getoption("--judge-costs")))
    config.pluginmanager.register(_Choice(config))


class _Choice:
    """Keeps the tests of the tier and the shard that are asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self._tier = config.getoption("--tier")
        number, _, count = (config.getoption("--shard") or "1/1").partition("/")
        self._shard, self._shards = int(number) - 1, int(count)
        if not 0 <= self._shard < self._shards:
            raise pytest.UsageError("--shard must be K/N with K from 1 to N, as 2/3.")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = read()
        shares = _shares(items, known)
        of_tier = [item for item in items if self._has(item, known.get(item.nodeid, 0.0) + shares[item.nodeid])]
        files = _shards(of_tier, known, self._shards)[self._shard]
        kept = [item for item in of_tier if item.path in files]
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept
        if self._tier != "long":
            for item in items:
                _draw_few(item)

    def _has(self, item: pytest.Item, seconds: float) -> bool:
        quick = seconds <= QUICK_SECONDS
        return self._tier == "all" or (quick if self._tier == "quick" else not quick or _draws_more(item))


def _shares(items: list[pytest.Item], known: dict[str, float]) -> dict[str, float]:
    """Return what each test bears of its listed fixtures: one of a module is made for each file, another for all."""
    users: dict[str, list[pytest.Item]] = defaultdict(list)
    scopes: dict[str, str] = {}
    for item in items:
        fixtures: Mapping[str, Sequence[pytest.FixtureDef[object]]] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]  # pytest's own
        for name, defined in fixtures.items():
            fixture = f"fixture {defined[-1].baseid}::{name}"
            if fixture in known:
                users[fixture].append(item)
                scopes[fixture] = defined[-1].scope
    shares: dict[str, float] = defaultdict(float)
    for fixture, using in users.items():
        made = 1 if scopes[fixture] == "session" else len({item.path for item in using})
        for item in using:
            shares[item.nodeid] += known[fixture] * made / len(using)
    return shares


def _shards(items: list[pytest.Item], known: dict[str, float], count: int) -> list[set[Path]]:
    """Deal the files of tests to so many shards of about the same cost: the dearest first, each to the cheapest shard."""
    costs: dict[Path, float] = defaultdict(float)
    for item in items:
        costs[item.path] += known.get(item.nodeid, _UNLISTED_SECONDS)
    shards: list[set[Path]] = [set() for _ in range(count)]
    for path in sorted(costs, key=lambda path: (-costs[path], path)):
        min(shards, key=lambda shard: sum(costs[each] for each in shard)).add(path)
    return shards


_SETTINGS = "_hypothesis_internal_use_settings"


def _draws_more(item: pytest.Item) -> bool:
    """Return whether a test is one of Hypothesis with more than `_EXAMPLES` examples."""
    return getattr(getattr(getattr(item, "obj", None), _SETTINGS, None), "max_examples", 0) > _EXAMPLES


def _draw_few(item: pytest.Item) -> None:
    """Bound a test of Hypothesis to `_EXAMPLES` examples."""
    if _draws_more(item):
        test = getattr(item.obj, "__func__", item.obj)
        setattr(test, _SETTINGS, settings(getattr(test, _SETTINGS), max_examples=_EXAMPLES))


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew the costs of the tests that have rows: of each the least, of a fixture the mean. Tests that are gone go."""
    parser = argparse.ArgumentParser(prog="python -m tests.costs", description="Renew tests/costs.tsv.")
    parser.add_argument("rows", type=Path, help="what pytest wrote with --record-costs")
    found: dict[str, list[float]] = defaultdict(list)
    for line in parser.parse_args(arguments).rows.read_text().splitlines():
        seconds, name = line.split("\t")
        found[name].append(float(seconds))
    kept = {name: seconds for name, seconds in read().items() if _is_there(name)}
    new = {name: fmean(each) if name.startswith("fixture ") else min(each) for name, each in found.items()}
    write(kept | new)


def _is_there(name: str) -> bool:
    """Return whether the file of a test or fixture has a function of its name, or of its class's."""
    path, _, test = name.removeprefix("fixture ").partition("::")
    function = re.sub(r"\[.*", "", test).rpartition("::")[2]
    return Path(path).is_dir() or (Path(path).exists() and f" {function}(" in Path(path).read_text())


if __name__ == "__main__":
    main()
