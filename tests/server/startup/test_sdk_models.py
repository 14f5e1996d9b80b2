"""The SDK's models are the same whenever they are built: at the import, at their use, or when a client has its tools."""

from __future__ import annotations

import json
import subprocess
import sys

import pydantic
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from sealab.server.base.startup.sdk_models import deferring_models

_SHAPES = """
import gc, json, sys
from contextlib import nullcontext
from sealab.server.base.startup.sdk_models import deferring_models

with deferring_models() if sys.argv[1] == "later" else nullcontext():
    import mcp.server
    import mcp.types as types
from mcp.types import methods

adapters = {name: adapter for name, adapter in vars(types).items() if name.endswith("_adapter")}
models = {
    name: model
    for name, model in vars(types).items()
    if isinstance(model, type) and issubclass(model, types.Result | types.Request | types.Notification)
}
built = sum("__pydantic_validator__" in vars(model) and model.__pydantic_complete__ for model in models.values())
params = lambda model: model.__pydantic_generic_metadata__["parameters"]
call = {"name": "x", "arguments": {"a": 1}}
told = {
    "adapters": {name: adapter.json_schema() for name, adapter in adapters.items()},
    "models": {name: model.model_json_schema() for name, model in models.items() if not params(model)},
    "parsed": repr(methods.parse_client_request("tools/call", "2025-11-25", call)),
    "answered": methods.serialize_server_result("tools/list", "2025-11-25", {"tools": []}),
}
print(json.dumps([built / len(models), gc.isenabled(), told]))
"""


def _shapes(when: str) -> tuple[float, bool, object]:
    told = subprocess.run([sys.executable, "-c", _SHAPES, when], capture_output=True, check=True, text=True).stdout
    built, collecting, shapes = json.loads(told)
    return built, collecting, shapes


def test_messages_have_the_same_shapes_when_their_models_are_built_later() -> None:
    built_at_once, _, shapes_at_once = _shapes("at once")
    built_later, collecting, shapes_later = _shapes("later")
    assert shapes_at_once == shapes_later
    assert collecting
    assert built_at_once > 0.9
    assert built_later < 0.2


def test_only_what_is_defined_in_the_block_is_built_later() -> None:
    with deferring_models():

        class Inner(BaseModel):
            number: int

        either = pydantic.TypeAdapter(Inner | list[str])
        assert not Inner.__pydantic_complete__
        assert not either.pydantic_complete

    class Outer(BaseModel):
        number: int

    assert Outer.__pydantic_complete__
    assert pydantic.TypeAdapter is TypeAdapter
    assert isinstance(either, TypeAdapter)
    assert either.validate_python({"number": "3"}) == Inner(number=3)
    assert either.json_schema()["anyOf"][1] == {"items": {"type": "string"}, "type": "array"}
    with pytest.raises(ValidationError):
        Inner.model_validate({"number": "many"})


_WARMED = """
import asyncio, json, sys
from sealab.server.base.startup.light_import import imported

def load():
    from sealab.server.interfaces.protocol import warming
    from sealab.server.interfaces.protocol.answers import READS, answered
    from sealab.server.interfaces.protocol.strict_tool import StrictTool
    return warming, StrictTool, READS, answered

warming, StrictTool, READS, answered = imported(load, http=False)
from mcp.types import CallToolResult, methods
from mcp_types import version

async def shown(text: str) -> CallToolResult:
    return answered({}, text)

async def hidden(text: str) -> CallToolResult:
    return answered({}, text)

tools = [StrictTool.published(shown, "", READS, always_loaded=True), StrictTool.published(hidden, "", READS)]
models = [methods.CLIENT_REQUESTS["tools/call", version] for version in ("2026-07-28", "2025-11-25")]
models += [methods.MONOLITH_REQUESTS["tools/call"], CallToolResult]

def built():
    return [model.__pydantic_complete__ for model in models] + [tool._arguments is not None for tool in tools]

async def main():
    told = [built()]
    with warming.warming(tools):
        while not built()[-2]:
            await asyncio.sleep(0.01)
    told.append(built())
    print(json.dumps(told))

if sys.argv[1:]:
    delattr(version, sys.argv[1])
asyncio.run(asyncio.wait_for(main(), 30))
"""


def test_what_the_first_call_needs_is_built_a_moment_after_the_start() -> None:
    told = subprocess.run([sys.executable, "-c", _WARMED], capture_output=True, check=True, text=True).stdout
    before, after = json.loads(told)
    assert before == [False] * 6
    assert after == [True] * 5 + [False]


def test_a_step_that_fails_leaves_the_others_to_be_done() -> None:
    command = [sys.executable, "-c", _WARMED, "LATEST_MODERN_VERSION"]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    _before, after = json.loads(told)
    assert after == [False, *[True] * 4, False]
