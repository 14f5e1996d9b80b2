"""The promises of earlier systems, and the tests that are named for them, agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE / "promises.md"
SYSTEMS = {
    "Enhanced Edition": 72,
    "Bridge": 52,
    "code-execution-mcp": 23,
}


def rows(system: str) -> list[tuple[str, str, str]]:
    """Return the promises of a system, several of which may share a row: each, what became of it, and its test."""
    section = PAGE.read_text().split(f"\n## {system}\n", 1)[1].partition("\n## ")[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [
        (promise, here.strip(), test.strip(" `"))
        for promises, here, test in cells
        for promise in promises.strip().split("; ")
    ]


def test_there_are_147_promises() -> None:
    assert sum(SYSTEMS.values()) == 147
    for system, count in SYSTEMS.items():
        assert len(rows(system)) == count, system
        assert len({promise for promise, _, _ in rows(system)}) == count, "each promise once"


def test_each_row_says_what_became_of_it_and_names_a_test() -> None:
    sources = [path.read_text() for path in HERE.parent.rglob("test_*.py")]
    defined = {name for text in sources for name in re.findall(r"^(?:async )?def test_(\w+)\(", text, re.MULTILINE)}
    for system in SYSTEMS:
        for promise, here, test in rows(system):
            assert re.match(r"same\b|better: |left out\b", here), promise
            assert test in defined or (not test and here.startswith("left out")), (promise, test)


@pytest.mark.parametrize("row", [row for system in SYSTEMS for row in rows(system) if row[1].startswith("left out")])
def test_what_is_left_out_has_its_reason(row: tuple[str, str, str]) -> None:
    _, reason = row[1].split(": ", 1)
    assert len(reason) > 30
