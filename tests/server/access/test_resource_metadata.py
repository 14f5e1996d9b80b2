"""What clients learn of where to get a token."""

from __future__ import annotations

import httpx2
import pytest
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth, extract_scope_from_www_auth
from mcp.shared.auth import ProtectedResourceMetadata
from starlette.responses import PlainTextResponse

from sealab.server.access.resource_metadata import ResourceMetadata, challenge
from sealab.server.identity import Right


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
async def test_the_metadata_is_what_a_client_of_the_sdk_reads(path: str) -> None:
    app = ResourceMetadata(PlainTextResponse("inner"), "https://sealab.example/mcp", "https://idp.example")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://sealab.example") as client:
        answer = await client.get(path)
        found = ProtectedResourceMetadata.model_validate_json(answer.text)
        assert str(found.resource) == "https://sealab.example/mcp"
        assert [str(each).rstrip("/") for each in found.authorization_servers] == ["https://idp.example"]
        assert found.scopes_supported == list(Right)
        assert found.bearer_methods_supported == ["header"]
        assert answer.headers["content-type"] == "application/json"
        assert (await client.head(path)).status_code == 200
        assert (await client.post(path)).status_code == 405
        for other in (f"{path}x", f"{path}/", "/mcp", "/"):
            assert (await client.get(other)).text == "inner"


def test_a_challenge_says_where_the_metadata_is_and_what_is_missing() -> None:
    app = ResourceMetadata(PlainTextResponse("inner"), "https://sealab.example/mcp", "https://idp.example")
    value = challenge(app.url, error="insufficient_scope", scopes=[Right.RUN_PROCESS, Right.FILES])
    response = httpx2.Response(401, headers={"WWW-Authenticate": value})
    assert extract_resource_metadata_from_www_auth(response) == (
        "https://sealab.example/.well-known/oauth-protected-resource/mcp"
    )
    assert extract_scope_from_www_auth(response) == "files run:process"
    assert 'error="insufficient_scope"' in value
    assert challenge() == "Bearer"
