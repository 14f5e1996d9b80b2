"""The page of limits says what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sealab.server.settings import Settings

PAGE = (Path(__file__).parent.parent.parent / "docs" / "limits.md").read_text()
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| what", "| ---"))
]
FIXED = [(row[1], found[1], found[2]) for row in ROWS if (found := re.fullmatch(r"`([\w.]+):([\w.]+)`", row[2]))]
SET = [(row[1], row[2].strip("`")) for row in ROWS if re.fullmatch(r"`[A-Z_]+`", row[2])]
IN_THE_PAGE = re.compile(r"(_MAX|_MAX_CHARS|_MB|_SECONDS|_DAYS|_KEPT)$|^(CPUS|WORKERS_SPARE)$")


def number(text: str) -> float:
    found = re.match(r"([\d,.]*\d)(?: (KiB|MiB))?", text)
    assert found, text
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1)


@pytest.mark.parametrize(("shown", "module", "name"), FIXED)
def test_what_is_fixed_is_as_the_page_says(shown: str, module: str, name: str) -> None:
    found: Any = import_module(module if module.startswith("mcp.") else f"sealab.{module}")
    owner, _, attribute = name.partition(".")
    found = getattr(found, owner)
    if attribute:
        found = getattr(found(), attribute)  # a default
    assert number(shown) == found


@pytest.mark.parametrize(("shown", "name"), SET)
def test_what_can_be_set_has_the_default_that_the_page_says(shown: str, name: str) -> None:
    default = getattr(Settings(), name.lower())
    assert default is None or shown.startswith("its own") or number(shown) == default


def test_every_setting_that_bounds_something_is_on_the_page() -> None:
    bounds = {each.name.upper() for each in fields(Settings) if IN_THE_PAGE.search(each.name.upper())}
    assert bounds == {name for _, name in SET}
