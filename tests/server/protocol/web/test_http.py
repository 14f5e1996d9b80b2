"""HTTP: who may speak to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...conftest import server_over_http
from .raw import HEADERS, INITIALIZE, METADATA, connected, post, read

MODERN: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": METADATA}}
MODERN_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}


url = server_over_http()


def test_a_name_or_a_web_page_from_elsewhere_is_refused_in_both_eras(url: str) -> None:
    for status, headers in (
        (200, {}),
        (200, {"Host": "localhost:8000", "Origin": f"http://localhost:{urlsplit(url).port}"}),
        (421, {"Host": "attacker.example"}),
        (421, {"Host": "attacker.example:8000"}),
        (421, {"Host": "127.0.0.1.attacker.example:80"}),
        (421, {"Host": "127.0.0.1:80@attacker.example"}),
        (421, {"Host": "127.0.0.1:"}),
        (421, {"Host": "localhost:8000/"}),
        (421, {"Host": ""}),
        (403, {"Origin": "http://attacker.example"}),
        (403, {"Origin": "https://127.0.0.1.attacker.example"}),
        (403, {"Origin": "http://127.0.0.1:9"}),
        (403, {"Origin": "null"}),
    ):
        assert (headers, post(url, INITIALIZE, **headers).status) == (headers, status)
        assert (headers, post(url, MODERN, **MODERN_HEADERS, **headers).status) == (headers, status)


def status_of(url: str, *headers: tuple[str, str]) -> int:
    """Return the status of a request that is sent with these headers, each of them as often as it is given."""
    connection = connected(url)
    connection.putrequest("POST", "/mcp", skip_host=True)
    body = json.dumps(INITIALIZE).encode()
    for name, value in (*HEADERS.items(), ("Content-Length", str(len(body))), *headers):
        connection.putheader(name, value)
    connection.endheaders(body)
    return read(connection).status


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
