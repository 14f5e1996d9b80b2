"""What the conformance suite drives to judge our side as a client: `client.py URL`, over `Upstreams` alone.

The suite tells the scenario and the protocol version by the environment variables MCP_CONFORMANCE_SCENARIO and
MCP_CONFORMANCE_PROTOCOL_VERSION. Every tool the server lists is called once with arguments made from its schema.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.session import ClientRequestContext
from mcp.shared.auth import AuthorizationCodeResult
from mcp.types import ElicitRequestParams, ElicitResult

from sealab.tools_registry.configuration import Configuration, ServerConfig, Transport
from sealab.tools_registry.errors import RegistryError
from sealab.tools_registry.sign_in.browsers import provider
from sealab.tools_registry.sign_in.kept_sign_ins import KeptSignIn
from sealab.tools_registry.upstream.upstreams import RawTool, Upstreams

CLIENT = "https://conformance-test.local/client-metadata.json"
OF_TYPE = {"number": 5, "integer": 5, "string": "x", "boolean": True, "array": [], "object": {}}


async def accept_defaults(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Answer what the server asks of the user with the defaults it names."""
    schema = getattr(params, "requested_schema", None) or {}
    properties = schema.get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return ElicitResult(action="accept", content=defaults)


def signed(config: ServerConfig, folder: Path) -> OAuthClientProvider:
    """Sign in as a user would whose browser agrees to everything at once."""
    came: list[dict[str, str]] = []

    async def open_address(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            sent_to = (await browser.get(address)).headers["location"]
        came.append({name: values[0] for name, values in parse_qs(urlsplit(sent_to).query).items()})

    async def answered() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(came.pop())

    kept = KeptSignIn(folder, config)
    return provider(config, kept, "http://localhost:3000/callback", open_address, answered, client_metadata_url=CLIENT)


def arguments_for(tool: RawTool) -> dict[str, object]:
    schema = tool["input_schema"]
    assert isinstance(schema, dict)
    return {name: OF_TYPE.get(schema["properties"][name].get("type"), {}) for name in schema.get("required", [])}


def calls(tools: Sequence[RawTool]) -> Iterator[tuple[str, dict[str, object]]]:
    """Say what to call: what the suite asks for, else each tool; its echo gets the schema of the tool beside it."""
    asked = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls", [])
    for call in asked:
        yield call["name"], call["arguments"]
    for tool in () if asked else tools:
        schemas = [other["input_schema"] for other in tools if other is not tool]
        is_echo = tool["name"] == "json_schema_echo"
        yield str(tool["name"]), {"schema": schemas[0]} if is_echo else arguments_for(tool)


async def main() -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2026-07-28") >= "2026-07-28"
    config = ServerConfig("tested", Transport.HTTP, url=sys.argv[-1], connect_timeout_seconds=60)
    with tempfile.TemporaryDirectory(prefix="sealab-conformance-") as state:
        upstreams = Upstreams(
            Configuration({config.name: config}),
            state=Path(state),
            elicit=accept_defaults,
            sign_in=lambda config: signed(config, Path(state)) if scenario.startswith("auth/") else None,
            era="auto" if modern else "legacy",
        )
        async with upstreams:
            tools = (await upstreams.list_tools(config.name)).tools
            for name, arguments in calls(tools):
                try:
                    await upstreams.call(config.name, name, arguments)
                except RegistryError as error:
                    print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
