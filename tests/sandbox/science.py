"""An interpreter with numpy, pandas and matplotlib, for the tests that need them."""

from __future__ import annotations

import os

import pytest

VARIABLE = "TEST_SCIENCE_PYTHON"


def science_python() -> str:
    """Give the interpreter that the environment names, or skip the test."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip("needs an interpreter with numpy, pandas and matplotlib: run `make science`, then `make unit`")
    return python
