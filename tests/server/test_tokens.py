"""What the tools cost a model's context before their first use."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from sealab.server.settings import Surface


@pytest.fixture(scope="module")
def tokens() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tokens", Path(__file__).parents[1] / "benchmarks" / "tokens.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_code_surface_stays_within_260_tokens_and_the_full_one_within_1800(tokens: ModuleType) -> None:
    assert sum((await tokens.tokens_of(Surface.CODE)).values()) <= 260
    counted = await tokens.tokens_of(Surface.FULL)
    assert sum(counted.values()) <= 1800
