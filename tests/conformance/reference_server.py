"""A server over standard streams that has what the conformance suite asks for, in both protocol eras.

The suite names the tools, resources and prompts and says what they return; `check_guard.py` runs it on this server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any]
Given = dict[str, Any]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\0\0\0\0").decode()
PAUSE_SECONDS = 0.05
KEY = os.urandom(16)


def text(said: str) -> Given:
    return {"type": "text", "text": said}


def form(message: str, *required: str, **properties: Given) -> Given:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt: str, tokens: int) -> Given:
    message = {"role": "user", "content": text(prompt)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


STRING = {"type": "string"}
ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", "name", name=STRING)
CAPITAL = sampling("What is the capital of France?", 100)
CONFIRM = form("Please confirm", "ok", ok={"type": "boolean"})
GREETING = sampling("Generate a greeting", 50)
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS, LEGACY = ["option1", "option2", "option3"], ["opt1", "opt2", "opt3"]
TITLED = [
    {"const": f"value{number}", "title": f"{each} Option"}
    for number, each in enumerate(("First", "Second", "Third"), 1)
]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": LEGACY, "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"enum": ["phone", "email"]}, "phone": STRING, "email": STRING},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}  # fmt: skip

CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [{"type": "image", "data": PNG, "mimeType": "image/png"}],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [{"type": "resource", "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}},
    ],
}  # fmt: skip
"""What tools return that do nothing else."""
ROUNDS: dict[str, list[dict[str, Given]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": CAPITAL}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [{"user_name": NAME, "greeting": GREETING, "client_roots": ROOTS}],
    "test_input_required_result_multi_round": [
        {"step1": form("Step 1: What is your name?", "name", name=STRING)},
        {"step2": form("Step 2: What is your favorite color?", "color", color=STRING)},
    ],
    "test_input_required_result_capabilities": [
        {"user_name": NAME, "capital_question": CAPITAL, "client_roots": ROOTS}
    ],
}
"""Tools that ask, and what they ask in each round."""
STATEFUL = ("request_state", "tampered_state", "multiple_inputs", "multi_round")
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
SCHEMAS = {
    "test_sampling": {"type": "object", "properties": {"prompt": STRING}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": STRING}, "required": ["message"]},
    "json_schema_2020_12_tool": RICH_SCHEMA,
}
TOOLS = [*CONTENT, "test_tool_with_logging", "test_error_handling", "test_tool_with_progress", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", *SCHEMAS, *ROUNDS]  # fmt: skip
RESOURCES: dict[str, Given] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}
PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}
CONTEXT = {"user_context": form("What context should the prompt use?", "context", context=STRING)}


def signed(tool: str, done: int) -> str:
    body = f"{tool}:{done}"
    return f"{body}:{hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest()}"


def rounds_done(tool: str, state: str | None) -> int:
    """How many rounds the client has been through, by the state that it gives back."""
    if state is None:
        return 0
    done = state.split(":")[1] if state.count(":") == 2 else "0"
    if not hmac.compare_digest(state, signed(tool, int(done) if done.isdecimal() else 0)):
        raise MCPError(types.INVALID_PARAMS, "The request state was changed.")
    return int(done)


def asked(ctx: Context, tool: str, params: types.CallToolRequestParams) -> types.InputRequiredResult | None:
    rounds = ROUNDS[tool]
    done = rounds_done(tool, params.request_state)
    given = params.input_responses or {}
    capabilities = ctx.session.client_capabilities
    known = set() if capabilities is None else set(capabilities.model_dump(exclude_none=True))
    current = rounds[min(done, len(rounds) - 1)]
    wanted = (
        {key: each for key, each in current.items() if NEEDS[each["method"]] in known}
        if tool.endswith("capabilities")
        else current
    )
    if wanted.keys() <= given.keys():
        if done + 1 >= len(rounds):
            return None
        done, wanted = done + 1, rounds[done + 1]
    result: Given = {"resultType": "input_required", "inputRequests": wanted}
    if tool.endswith(STATEFUL):
        result["requestState"] = signed(tool, done)
    return types.InputRequiredResult.model_validate(result)


async def list_tools(_ctx: Context, _params: object) -> types.ListToolsResult:
    tools = [
        {"name": name, "description": f"The tool {name}.", "inputSchema": SCHEMAS.get(name, {"type": "object"})}
        for name in TOOLS
    ]
    return types.ListToolsResult.model_validate({"tools": tools, "ttlMs": 1000, "cacheScope": "public"})


async def call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    name, arguments = params.name, params.arguments or {}
    content: list[Given] = CONTENT.get(name, [text("Done.")])
    if name in ROUNDS:
        question = asked(ctx, name, params)
        if question is not None:
            return question
        answers = {
            key: each.model_dump(mode="json", exclude_none=True) for key, each in (params.input_responses or {}).items()
        }
        content = [text(f"state-ok, Hello: {json.dumps(answers)}")]
    elif name == "test_tool_with_logging":
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
            await anyio.sleep(PAUSE_SECONDS)
    elif name == "test_tool_with_progress":
        for progress in (0, 50, 100):
            await ctx.session.report_progress(progress, 100)
            await anyio.sleep(PAUSE_SECONDS)
    elif name == "test_sampling":
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=arguments["prompt"]))
        said = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
        content = [text(f"LLM response: {getattr(said.content, 'text', '')}")]
    elif name.startswith("test_elicitation"):
        properties = {"test_elicitation_sep1034_defaults": DEFAULTS, "test_elicitation_sep1330_enums": ENUMS}.get(name)
        own = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        schema = {"type": "object", "properties": properties or own, "required": [] if properties else list(own)}
        said = await ctx.session.elicit_form(
            arguments.get("message", "Please answer"), schema, related_request_id=ctx.request_id
        )
        head = "Elicitation completed" if properties else "User response"
        content = [text(f"{head}: action={said.action}, content={json.dumps(said.content)}")]
    elif name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {name}.")
    failed = name == "test_error_handling"
    if failed:
        content = [text("This tool intentionally returns an error for testing")]
    return types.CallToolResult.model_validate({"content": content, "isError": failed})


async def list_resources(_ctx: Context, _params: object) -> types.ListResourcesResult:
    listed = [
        {"uri": uri, "name": uri.partition("://")[2], "mimeType": each["mimeType"]} for uri, each in RESOURCES.items()
    ]
    return types.ListResourcesResult.model_validate({"resources": listed})


async def list_templates(_ctx: Context, _params: object) -> types.ListResourceTemplatesResult:
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})


async def read_resource(_ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    found = RESOURCES.get(uri)
    if found is None and uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        found = {
            "mimeType": "application/json",
            "text": json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"}),
        }
    if found is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **found}]})


async def list_prompts(_ctx: Context, _params: object) -> types.ListPromptsResult:
    listed = [
        {
            "name": name,
            "description": f"The prompt {name}.",
            "arguments": [{"name": each, "required": True} for each in names],
        }
        for name, names in PROMPTS.items()
    ]
    return types.ListPromptsResult.model_validate({"prompts": listed})


async def get_prompt(
    _ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    if params.name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
        return types.InputRequiredResult.model_validate({"resultType": "input_required", "inputRequests": CONTEXT})
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    resource = {
        "uri": given.get("resourceUri", ""),
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    contents = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")],
        "test_prompt_with_embedded_resource": [{"type": "resource", "resource": resource}, text("Please process the embedded resource above.")],
        "test_prompt_with_image": [image, text("Please analyze the image above.")],
        "test_input_required_result_prompt": [text("With your context.")],
    }  # fmt: skip
    messages = [{"role": "user", "content": each} for each in contents[params.name]]
    return types.GetPromptResult.model_validate({"messages": messages})


async def complete(_ctx: Context, _params: object) -> types.CompleteResult:
    return types.CompleteResult.model_validate(
        {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}
    )


async def accept(_ctx: Context, _params: object) -> types.EmptyResult:
    return types.EmptyResult()


async def main() -> None:
    server = Server(
        "reference",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=accept,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
