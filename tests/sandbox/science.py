"""An interpreter with numpy, pandas and matplotlib, for the tests that need them."""

from __future__ import annotations

import os

import pytest

VARIABLE = "TEST_SCIENCE_PYTHON"


def science_python() -> str:
    """Give the interpreter that the environment names, or skip the test."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip("it needs an interpreter with numpy, pandas and matplotlib: `make science` makes it")
    return python
