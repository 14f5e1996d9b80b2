"""HTTP: who may speak to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ...conftest import http_server

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with http_server(tmp_path_factory.mktemp("home")) as url:
        yield url


MODERN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
MODERN_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}


def post(url: str, message: dict[str, Any] = INITIALIZE, **headers: str) -> int:
    where = urlsplit(url)
    assert where.hostname is not None
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    if message is MODERN:
        given |= MODERN_HEADERS
    connection.request("POST", where.path, json.dumps(message), given)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_client_on_this_machine_is_served(url: str) -> None:
    assert post(url) == 200
    assert post(url, MODERN) == 200
    assert post(url, Host="localhost:8000", Origin=f"http://localhost:{urlsplit(url).port}") == 200


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:8000",
        "127.0.0.1.attacker.example:80",
        "127.0.0.1:80@attacker.example",
        "127.0.0.1:",
        "localhost:8000/",
        "",
    ],
)
def test_a_name_that_was_made_to_stand_for_this_machine_is_refused(url: str, host: str) -> None:
    assert post(url, Host=host) == 421
    assert post(url, MODERN, Host=host) == 421


@pytest.mark.parametrize(
    "origin", ["http://attacker.example", "https://127.0.0.1.attacker.example", "http://127.0.0.1:9", "null"]
)
def test_a_web_page_from_elsewhere_is_refused(url: str, origin: str) -> None:
    assert post(url, Origin=origin) == 403
    assert post(url, MODERN, Origin=origin) == 403


def status_of(url: str, *headers: tuple[str, str]) -> int:
    """Return the status of a request that is sent with these headers, each of them as often as it is given."""
    where = urlsplit(url)
    assert where.hostname is not None
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
    connection.putrequest("POST", where.path, skip_host=True)
    body = json.dumps(INITIALIZE).encode()
    given = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"))
    for name, value in (*given, ("Content-Length", str(len(body))), *headers):
        connection.putheader(name, value)
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_second_name_behind_a_good_one_is_refused(url: str) -> None:
    here = f"127.0.0.1:{urlsplit(url).port}"
    host, origin = ("Host", here), ("Origin", f"http://{here}")
    assert status_of(url, host, origin) == 200
    assert status_of(url, host, origin, ("Origin", "http://attacker.example")) == 403
    assert status_of(url, host, ("Origin", "http://attacker.example"), origin) == 403
    assert status_of(url, host, origin, origin) == 403
    assert status_of(url, host, ("Host", "attacker.example")) in {400, 421}
    assert status_of(url) in {400, 421}


def test_only_loopback_is_listened_on(url: str) -> None:
    port = urlsplit(url).port
    listening = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
    ]
    assert [entry.split(":")[0] for entry in listening if int(entry.split(":")[1], 16) == port] == ["0100007F"]
