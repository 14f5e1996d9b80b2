"""A plugin of pytest that says in lines of standard output which tests began and failed, and the reader of these lines.

Standard output is what comes through any wrapper; a file would be gone with a throw-away machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

_MARK = "planted-observer:"


class _Observer:
    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say("began", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say("failed", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._say("ended", nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say("broken", report.nodeid)

    def _say(self, event: str, nodeid: str) -> None:
        self._terminal.write_line(f"{_MARK}{json.dumps([event, nodeid])}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(terminal, pytest.TerminalReporter)
    config.pluginmanager.register(_Observer(terminal))


@dataclass(slots=True)
class Seen:
    """What one process of pytest did: `failures` are the tests that failed, or during which the process ended."""

    passed: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Files that could not be imported."""

    @property
    def failed(self) -> str | None:
        """The first test that failed."""
        return self.failures[0] if self.failures else None


def seen(lines: Iterable[str]) -> Seen:
    """Read the lines that the plugin wrote among others."""
    found = Seen()
    running: str | None = None
    for line in lines:
        _, mark, told = line.partition(_MARK)
        if not mark:
            continue
        event, nodeid = json.loads(told)
        if event == "began":
            running = nodeid
            found.passed.add(nodeid)
        elif event == "ended":
            running = None
        elif event == "failed":
            found.failures.append(nodeid)
            found.passed.discard(nodeid)
        else:
            found.broken.append(nodeid)
    if running is not None:
        found.failures.append(running)
        found.passed.discard(running)
    return found
