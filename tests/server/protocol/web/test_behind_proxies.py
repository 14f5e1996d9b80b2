"""The configurations that stand in the documents put nginx and Caddy before a server, and clients work through them."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from ....docs.blocks import blocks_of
from ....waiting import wait_until
from ...conftest import SEALAB, environment
from .raw import HEADERS, MODERN, call
from .test_http import certificate
from .tokens import Made, made, revoked

NAME = "sealab.example"
PAGE = "docs/team.md"
PROXIES = ("nginx", "caddy")
UNTIL_GO = """\
import time

write_file("begun", "")
while "go" not in [file["name"] for file in list_files()]:
    time.sleep(0.05)
"whole"
"""


class _Connection(http.client.HTTPSConnection):
    """A connection to this machine that asks for the public name, which no name server knows."""

    def __init__(self, port: int, trusted: ssl.SSLContext) -> None:
        super().__init__(NAME, port, timeout=50)
        self._trusted = trusted

    def connect(self) -> None:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=50)
        self.sock = self._trusted.wrap_socket(plain, server_hostname=NAME)


@dataclass(frozen=True)
class Proxied:
    """A server behind a proxy: its home and process, the proxy's port, and what trusts the proxy's certificate."""

    home: Path
    server: subprocess.Popen[str]
    port: int
    trusted: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/mcp"

    def asked(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Send one request to the proxy; return the status and the body of the answer."""
        connection = _Connection(self.port, self.trusted)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def called(self, token: Made, code: str, **headers: str) -> tuple[int, bytes]:
        """Run code over one plain request."""
        plain = {**HEADERS, **token.header, **headers}
        named = {key.replace("_", "-"): value for key, value in MODERN.items()}
        return self.asked("POST", "/mcp", json.dumps(call(code)).encode(), **plain, **named)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def documented(proxy: str) -> str:
    """Return the configuration of a proxy that stands in the page for operators."""
    begins = {"nginx": "server {", "caddy": f"{NAME} {{"}[proxy]
    (block,) = [block for block in blocks_of(PAGE) if block.first_line == begins]
    return block.text


def placed(proxy: str, folder: Path, port: int, backend: int) -> list[str]:
    """Write the documented configuration with the ports and files of this test; return how the proxy is started."""
    text = documented(proxy)
    for before, after in (
        ("/etc/ssl/sealab/chain.pem", str(folder / "cert.pem")),
        ("/etc/ssl/sealab/key.pem", str(folder / "key.pem")),
        ("127.0.0.1:8000", f"127.0.0.1:{backend}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        (f"{NAME} {{", f"{NAME}:{port} {{\n    bind 127.0.0.1"),
    ):
        text = text.replace(before, after)
    if proxy == "caddy":
        file = folder / "Caddyfile"
        file.write_text("{\n    admin off\n    auto_https disable_redirects\n}\n" + text)
        return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    user = "user root;\n" if os.geteuid() == 0 else ""  # its own user may not write below the folder of a test
    file = folder / "nginx.conf"
    file.write_text(
        f"{user}daemon off;\npid {folder / 'nginx.pid'};\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}}}\n"
    )
    return [shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(file), "-e", "stderr"]


@contextmanager
def running(command: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


@contextmanager
def behind(proxy: str, folder: Path) -> Iterator[Proxied]:
    """Run a server, and the proxy before it as the page says."""
    if shutil.which(proxy, path=f"{os.environ['PATH']}:/usr/sbin") is None:
        missing = f"There is no {proxy} on this machine. `make system` installs it."
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    cert, _key = certificate(folder)
    home, port, backend = folder / "home", free_port(), free_port()
    env = environment(SEALAB_AUTH="tokens", SEALAB_PUBLIC_URL=f"https://{NAME}:{port}", SEALAB_DRAIN_SECONDS="20")
    options = ["--home", str(home), "--http", f"127.0.0.1:{backend}", "--behind-proxy", "127.0.0.1"]
    trusted = ssl.create_default_context(cafile=str(cert))
    with (
        running([*SEALAB, "serve", *options], env) as server,
        running(placed(proxy, folder, port, backend), {**os.environ, "HOME": str(folder)}),
    ):
        proxied = Proxied(home, server, port, trusted)
        wait_until(lambda: _is_ready(proxied))
        yield proxied


def _is_ready(proxied: Proxied) -> bool:
    try:
        return proxied.asked("GET", "/readyz")[0] == 200
    except OSError:
        return False


@pytest.fixture(scope="module", params=PROXIES)
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    with behind(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


class _ToThisMachine(httpx2.AsyncHTTPTransport):
    """Sends requests for the public name to this machine."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {**request.extensions, "sni_hostname": NAME}
        request.url = request.url.copy_with(host="127.0.0.1")
        return await super().handle_async_request(request)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_people_of_two_tenants_work_through_a_proxy_and_do_not_meet(proxied: Proxied, mode: Any) -> None:
    for name, tenant in ((f"ada-{mode}", "acme"), (f"ben-{mode}", "globex")):
        token = made(proxied.home, name, "--tenant", tenant)
        progress = AsyncMock()
        async with (
            httpx2.AsyncClient(
                headers=token.header, timeout=50, transport=_ToThisMachine(verify=proxied.trusted)
            ) as http,
            Client(
                streamable_http_client(proxied.url, http_client=http), mode=mode, read_timeout_seconds=200
            ) as client,
        ):
            code = f"write_file({tenant!r} + '.txt', 'x')\nprogress(0.5)\n[file['name'] for file in list_files()]"
            answer = await client.call_tool("execute_code", {"code": code}, progress_callback=progress)
            assert answer.structured_content is not None
            assert answer.structured_content["result"] == [f"{tenant}.txt"], answer.structured_content["error"]
            assert [given.args[0] for given in progress.await_args_list] == [0.5]
            large = {"filename": "large", "content": "x" * 3_900_000}
            assert not (await client.call_tool("write_workspace_file", large)).is_error
            assert not (await client.call_tool("delete_workspace_file", {"filename": "large"})).is_error


def test_what_is_too_large_or_has_a_revoked_token_is_refused_by_the_server_and_what_a_client_forwards_does_not_count(
    proxied: Proxied,
) -> None:
    token = made(proxied.home, "plain")
    status, said = proxied.asked("POST", "/mcp", b" " * (4 * 1024 * 1024 + 1), **HEADERS, **token.header)
    assert status == 413
    assert b"Send large data in parts" in said
    for forged in ({"X-Forwarded-Host": "evil.example"}, {"Forwarded": "for=10.0.0.1"}, {"X-Forwarded-For": "?"}):
        assert proxied.called(token, "1", **forged)[0] == 200
    revoked(proxied.home, token)
    wait_until(lambda: proxied.called(token, "1")[0] == 401)


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_call_at_work_is_answered_through_a_proxy_when_the_server_is_told_to_stop(proxy: str, tmp_path: Path) -> None:
    with behind(proxy, tmp_path) as proxied:
        token = made(proxied.home, "ada")
        connection = _Connection(proxied.port, proxied.trusted)
        named = {key.replace("_", "-"): value for key, value in MODERN.items()}
        connection.request("POST", "/mcp", json.dumps(call(UNTIL_GO)), {**HEADERS, **token.header, **named})
        workspace = proxied.home / "workspace"
        wait_until((workspace / "begun").exists)
        proxied.server.terminate()
        wait_until(lambda: proxied.asked("GET", "/readyz")[0] == 503)
        (workspace / "go").write_text("")
        answer = connection.getresponse()
        assert answer.status == 200
        assert re.search(rb'"result": ?"whole"', answer.read())
        connection.close()
        assert proxied.server.wait(60) == 0
        wait_until(lambda: proxied.asked("GET", "/readyz")[0] == 502)
