"""The kept schemas of the tools are those that their functions have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp.types import CallToolResult

from sealab.server.kept_schemas import FILE, kept_schemas

from .write_schemas import schemas_of_all_tools


@pytest.mark.anyio
async def test_the_kept_schemas_are_those_of_the_functions(tmp_path: Path) -> None:
    derived = await schemas_of_all_tools(tmp_path)
    assert json.loads(FILE.read_bytes()) == derived, "Run `make schemas`."


def test_defaults_that_the_operator_set_are_published() -> None:
    @dataclass
    class Operator:
        memory_mb: int

    operator = Operator(700)

    async def run_skill(name: str, memory_mb: int = operator.memory_mb) -> CallToolResult:
        raise NotImplementedError(name, memory_mb)

    schemas = kept_schemas(run_skill)
    assert schemas is not None
    properties = schemas.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["memory_mb"] == {"default": 700, "type": "integer"}
    assert "default" not in properties["name"]


def test_a_tool_that_is_not_kept_has_none() -> None:
    async def unheard_of() -> CallToolResult:
        raise NotImplementedError

    assert kept_schemas(unheard_of) is None
