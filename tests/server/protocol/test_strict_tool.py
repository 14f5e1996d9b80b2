"""What is wrong with the arguments of a call is found without looking at all that is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.interfaces.protocol.message_bounds import VALUES_MAX
from sealab.server.interfaces.protocol.tools import tools_of

from ..conftest import Caller

MANY = 10_000
ERRORS_MAX = 5
"""The ways in which one value can be wrong: one for each type that it may have."""
WRONG = ([1] * MANY, [[]] * MANY, {str(number): [] for number in range(MANY)}, json.dumps([1] * MANY))


async def test_every_parameter_is_described_and_no_list_of_wrong_items_makes_an_error_of_each(tmp_path: Path) -> None:
    async with running(Settings(workers_spare=0), Home(tmp_path)) as app:
        tools = tools_of(app)
        models = [tool.prepare() for tool in tools]
    for tool in tools:
        for name, schema in tool.parameters["properties"].items():
            assert schema["description"], (tool.name, name)
            assert schema["type"], (tool.name, name)
    errors: list[int] = []
    for model in models:
        for name in model.model_fields:
            for value in WRONG:
                try:
                    model.model_validate({name: value}, strict=True)
                except ValidationError as error:
                    errors.append(sum(each["loc"][0] == name for each in error.errors(include_input=False)))
    assert 0 < max(errors) <= ERRORS_MAX


async def test_null_for_an_optional_argument_is_its_default(in_process_caller: Caller) -> None:
    for tool in (await in_process_caller.client.list_tools()).tools:
        optional = tool.input_schema["properties"].keys() - set(tool.input_schema.get("required", ()))
        if not optional:
            continue
        texts = dict.fromkeys(tool.input_schema.get("required", ()), "nothing")
        plain = await in_process_caller.call(tool.name, **texts)
        nulls = await in_process_caller.call(tool.name, **texts, **dict.fromkeys(optional))
        assert nulls.is_error is plain.is_error, (tool.name, nulls.content)
        assert "cannot be null" not in str(nulls.content), tool.name


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert a schema as clients do for models that take a call's form strictly: all is required, nothing may be added.

    Raises `ValueError` for a schema that cannot be converted so.
    """
    if "type" not in schema:
        raise ValueError(f"{schema} has no type")
    if schema["type"] == "object":
        if schema.get("additionalProperties"):
            raise ValueError(f"{schema} may have more properties")
        properties = {name: strict(each) for name, each in schema.get("properties", {}).items()}
        return {**schema, "additionalProperties": False, "properties": properties, "required": list(properties)}
    return schema


@pytest.mark.parametrize("tool", ["execute_code", "run_skill"])
async def test_a_call_in_the_form_of_a_strict_client_is_taken(in_process_caller: Caller, tool: str) -> None:
    code = "def double(n: int = 21) -> int:\n    'Double it.'\n    return n * 2\n"
    await in_process_caller.call("save_skill", name="double", code=code)
    tools = {each.name: each for each in (await in_process_caller.client.list_tools()).tools}
    converted = strict(tools[tool].input_schema)
    given = {
        name: schema.get("default", None if "null" in schema["type"] else "" if schema["type"] == "string" else [])
        for name, schema in converted["properties"].items()
    }
    given |= {name: {} for name in ("context_vars", "arguments") if name in given}
    given |= {"code": "6 * 7"} if tool == "execute_code" else {"name": "double"}
    given |= {"format": "json", **({"dry_run": False, "background": False} if tool == "execute_code" else {})}
    answer = await in_process_caller.told(tool, **given)
    assert answer["result"] == 42


async def test_what_is_wrong_is_refused_by_its_first_item_within_the_bound_of_a_message_and_an_empty_text_is_none(
    in_process_caller: Caller,
) -> None:
    answer = await in_process_caller.refusal("save_skill", name="x", tags=["a", 7, *[1] * MANY])
    assert answer.startswith("The argument tags of save_skill cannot be 7. Its schema is ")
    text = "[" + "[]," * VALUES_MAX + "1]"
    for tool, given in (
        ("save_skill", {"name": "x", "tags": text}),
        ("execute_code", {"code": "1", "context_vars": text}),
    ):
        answer = await in_process_caller.call(tool, **given)
        assert answer.is_error, tool
        said = answer.content[0].text  # type: ignore[union-attr]
        assert f": it holds more than {VALUES_MAX} values. Its schema is " in said, tool
    answer = await in_process_caller.call("execute_code", code="1", session="")
    assert "session" in str(answer.content)
    assert answer.is_error
    assert not (await in_process_caller.call("execute_code", code="1", format="")).is_error


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search_tools", {"query": "x", "limit": 5.0}),
        ("search_tools", {"query": "x", "limit": " 5 "}),
        ("search_tools", {"query": "x", "limit": "5.0"}),
        ("list_skills", {"limit": "1e1"}),
        ("execute_code", {"code": "1", "timeout_seconds": "2.5", "memory_mb": 200.0, "dry_run": "False"}),
        ("execute_code", {"code": "1", "context_vars": '{"n": 4}', "background": "false", "session": None}),
        (
            "execute_code",
            {"code": "1", "toolCallId": "call_1", "_meta": {}, "sessionId": "s", "action": "call", "tool": "t"},
        ),
        ("read_workspace_file", {"filename": "/mnt/data/5", "offset": "0", "limit": "null"}),
        ("read_workspace_file", {"filename": "5", "limit": "", "agent_id": "a", "random_string": ""}),
        ("save_skill", {"name": "f", "code": "```python\ndef f(): 'Be it.'\n```", "tags": '["a"]', "tests": " f()"}),
        ("list_workspace_files", {"subpath": "/mnt/data"}),
        ("list_skills", {"tag": "5", "tool_call_id": "c", "wait-for-previous": "true"}),
    ],
    ids=str,
)
async def test_what_leaves_no_doubt_is_taken_and_what_clients_say_of_themselves_is_left_out_with_a_note(
    in_process_caller: Caller, tool: str, given: dict[str, Any]
) -> None:
    await in_process_caller.call("write_workspace_file", filename="5", content="true")
    answer = await in_process_caller.client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    known = {each.name: each.input_schema["properties"] for each in (await in_process_caller.client.list_tools()).tools}
    for name in given.keys() - known[tool].keys():
        assert json.dumps(name) in str(answer.content[-1])


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("search_tools", {"query": "x", "limit": 5.5}, "cannot be 5.5"),
        ("search_tools", {"query": "x", "limit": "five"}, 'cannot be "five"'),
        ("search_tools", {"query": 5}, "cannot be 5"),
        ("search_tools", {"query": "x", "limit": "true"}, 'cannot be "true"'),
        ("execute_code", {"code": "1", "dry_run": "1"}, 'cannot be "1"'),
        ("execute_code", {"code": "1", "timeout_seconds": "30s"}, 'cannot be "30s"'),
        ("execute_code", {"code": "1", "timeout_seconds": "1e999"}, "timeout_seconds is inf"),
        ("execute_code", {"code": "1", "session_id": "a"}, "Did you mean session?"),
        ("execute_code", {"code": "1", "sessionId": "a"}, "Did you mean session?"),
        ("execute_code", {"code": "1", "toolCallId": "c", "language": "python"}, 'takes no argument "language"'),
    ],
    ids=str,
)
async def test_what_leaves_a_doubt_is_refused(
    in_process_caller: Caller, tool: str, given: dict[str, Any], said: str
) -> None:
    assert said in await in_process_caller.refusal(tool, **given)


@pytest.mark.parametrize("text", ["5", "true", "null", '{"a": 1}', "5.0"])
async def test_a_text_stays_the_text_it_is(in_process_caller: Caller, text: str) -> None:
    await in_process_caller.call("write_workspace_file", filename="text", content=text)
    assert (await in_process_caller.told("read_workspace_file", filename="text"))["content"] == text
