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
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

import httpx2
from mcp.client.auth.utils import extract_scope_from_www_auth
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from sealab.tools_registry.configuration import Configuration, ServerConfig, Transport
from sealab.tools_registry.errors import RegistryError
from sealab.tools_registry.sign_in.authorization import begin, finish
from sealab.tools_registry.sign_in.token_endpoint import issuer_client
from sealab.tools_registry.upstream.upstreams import RawTool, Upstreams

OF_TYPE = {"number": 5, "integer": 5, "string": "x", "boolean": True, "array": [], "object": {}}


async def accept_defaults(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Answer what the server asks of the user with the defaults it names."""
    schema = getattr(params, "requested_schema", None) or {}
    properties = schema.get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return ElicitResult(action="accept", content=defaults)


class Signed(httpx2.Auth):
    """Signs as sealab does, and signs in as a user would whose browser agrees to everything at once."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._token = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for _ in range(3):
            if self._token:
                request.headers["authorization"] = f"Bearer {self._token}"
            response = yield request
            scope = extract_scope_from_www_auth(response)
            if response.status_code != 401 and not (response.status_code == 403 and scope):
                return
            await self._sign_in(scope if self._token else None)

    async def _sign_in(self, scope: str | None) -> None:
        async with issuer_client() as issuer, httpx2.AsyncClient() as browser:
            begun = await begin(issuer, self._config, "http://localhost:3000/callback", "a state", scope=scope)
            came = httpx2.URL((await browser.get(begun.address)).headers["location"]).params
            granted = await finish(issuer, begun.pending, came["code"], came.get("iss"))
        self._token = granted.tokens.access_token


def arguments_for(tool: RawTool) -> dict[str, object]:
    schema = tool["input_schema"]
    assert isinstance(schema, dict)
    return {name: OF_TYPE.get(schema["properties"][name].get("type"), {}) for name in schema.get("required", [])}


def calls(tools: Sequence[RawTool]) -> Iterator[tuple[str, dict[str, object]]]:
    """Return what to call: what the suite asks for, else each tool; its echo gets the schema of the tool beside it."""
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
    signed = Signed(config)
    with tempfile.TemporaryDirectory(prefix="sealab-conformance-") as state:
        upstreams = Upstreams(
            Configuration({config.name: config}),
            state=Path(state),
            elicit=accept_defaults,
            sign_for=lambda _config, _owner: signed if scenario.startswith("auth/") else None,
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
