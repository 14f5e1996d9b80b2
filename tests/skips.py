"""One line at the end of a run: how many tests were skipped, and which targets install what they need."""

from __future__ import annotations

import re

import pytest

_TARGET = re.compile(r"`(make [a-z0-9-]+)`")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    if not reasons:
        return
    targets = sorted({target for reason in reasons for target in _TARGET.findall(reason)})
    curable = sum(bool(_TARGET.search(reason)) for reason in reasons)
    cured = f"{' and '.join(f'`{each}`' for each in targets)} install what {curable} of them need; " if targets else ""
    terminalreporter.write_line(
        f"{len(reasons)} tests were skipped: {cured}`.venv/bin/python -m pytest -rs` says why each was."
    )
