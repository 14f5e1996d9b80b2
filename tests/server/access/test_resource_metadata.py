"""What clients learn of where to get a token."""

from __future__ import annotations

import httpx2
import pytest
from mcp.shared.auth import ProtectedResourceMetadata
from starlette.responses import PlainTextResponse

from sealab.server.access.names import DEFAULT_RIGHTS
from sealab.server.access.resource_metadata import MetadataPages, ResourceMetadata

URL = "https://sealab.example/mcp"


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
@pytest.mark.parametrize("audience", [URL, "api://sealab", "urn:sealab"])
async def test_the_metadata_is_what_a_client_of_the_sdk_reads(path: str, audience: str) -> None:
    metadata = ResourceMetadata(URL, audience, "https://idp.example")
    assert metadata.url == "https://sealab.example/.well-known/oauth-protected-resource/mcp"
    app = MetadataPages(PlainTextResponse("inner"), metadata)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://sealab.example") as client:
        answer = await client.get(path)
        found = ProtectedResourceMetadata.model_validate_json(answer.text)
        assert str(found.resource) == URL
        assert [str(each).rstrip("/") for each in found.authorization_servers] == ["https://idp.example"]
        assert set(found.scopes_supported or ()) == DEFAULT_RIGHTS
        assert found.bearer_methods_supported == ["header"]
        assert answer.headers["content-type"] == "application/json"
        assert (await client.head(path)).status_code == 200
        assert (await client.post(path)).status_code == 405
        for other in (f"{path}x", f"{path}/", "/mcp", "/"):
            assert (await client.get(other)).text == "inner"


@pytest.mark.parametrize(("audience", "path"), [("https://sealab.example", ""), ("https://sealab.example/a", "/a")])
def test_an_audience_that_is_another_url_is_what_clients_ask_a_token_for(audience: str, path: str) -> None:
    metadata = ResourceMetadata(URL, audience, "https://idp.example")
    assert metadata.content["resource"] == audience
    assert metadata.url == f"https://sealab.example/.well-known/oauth-protected-resource{path}"
    assert metadata.url.removeprefix("https://sealab.example") in metadata.paths
