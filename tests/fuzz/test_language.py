"""The fuzzer of the dialect: it finds what is put back, and a bounded run of it finds nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .planted import PLANTS
from .smallest import smallest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.adversarial


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=55,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_the_oracle_finds_each_known_way_out_that_is_put_back(name: str) -> None:
    done = python("tests.fuzz.planted", name)

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().startswith(PLANTS[name].reason)


def test_a_bounded_run_of_random_programs_finds_nothing() -> None:
    done = python("tests.fuzz.language", "--programs", "60", "--processes", "1", "--seed", "7")

    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-2000:]}"
    statements, kinds = map(int, re.search(r"(\d+) statements .* (\d+) kinds", done.stdout).groups())  # type: ignore[union-attr]  # it ends with these
    # What the programs contain follows from the words of the offered modules: every change of those is another draw.
    # 60 programs of other seeds have 1,600 to 2,000 statements.
    assert statements > 1200
    assert kinds > 700


def test_a_find_is_made_as_short_as_it_can_be() -> None:
    def shows(statements: list[str]) -> bool:
        text = "".join(statements)
        return "x = [" in text and "secret" in text and "del x" in text

    found = smallest(
        ["a = 1\n", "try:\n    x = [1, secret, f(2)]\nexcept E:\n    pass\n", "b = 2\n", "del x\n", "c = 3\n"], shows
    )

    assert found == ["x = [secret]\n", "del x\n"]
