"""An upstream server with accounts and its issuer in a process of its own, and browsers that sign in there."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from sealab.tools_registry.configuration import ServerConfig
from sealab.tools_registry.sign_in.authorization import begin, finish
from sealab.tools_registry.sign_in.token_endpoint import Granted, issuer_client

from ...waiting import until, wait_until
from ..conftest import Caller

PROGRAM = Path(__file__).resolve().parents[2] / "data" / "upstreams" / "accounts.py"


@dataclass(frozen=True)
class Accounts:
    """The running server, at its address."""

    address: str

    def set(self, **behaves: Any) -> None:
        httpx2.post(f"{self.address}/set", json=behaves).raise_for_status()

    def told(self, what: str) -> list[str]:
        return [str(each) for each in httpx2.get(f"{self.address}/told").json()[what]]

    def configure(self, home: Path, **more: Any) -> None:
        """Configure a home to call it, with the sign-ins of callers unless said otherwise."""
        entry = {"url": f"{self.address}/mcp", "sign_in": "caller", "approve": "never", **more}
        home.mkdir(exist_ok=True)
        home.joinpath("mcp.json").write_text(json.dumps({"mcpServers": {"accounts": entry}}))


@contextmanager
def accounts(folder: Path) -> Iterator[Accounts]:
    file = folder / "address-of-accounts"
    with subprocess.Popen([sys.executable, str(PROGRAM), "0", str(file)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: file.exists() or process.poll() is not None)
            assert process.poll() is None, "the server ended before it listened"
            yield Accounts(file.read_text())
        finally:
            process.kill()


def browser(account: str) -> httpx2.AsyncClient:
    """Return a browser whose user is signed in at the issuer as that account."""
    client = httpx2.AsyncClient(follow_redirects=True, timeout=50)
    client.cookies.set("account", account, domain="127.0.0.1")
    return client


@asynccontextmanager
async def calling(url: str, bearer: str, user: Any = None, mode: str = "auto") -> AsyncIterator[Caller]:
    """Give a client of a server over HTTP with that token, whose user is asked what the server asks."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}, timeout=55) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode=mode,  # type: ignore[arg-type]  # one of those that there are
            read_timeout_seconds=200,
            elicitation_callback=user,
        ) as client,
    ):
        yield Caller(client, Path())


async def granted(server: ServerConfig, account: str = "operator") -> Granted:
    """Sign in at the issuer of a server, as the operator does."""
    async with issuer_client() as client, browser(account) as theirs:
        flow = await begin(client, server, "http://127.0.0.1:9/callback", "a state")
        back = httpx2.URL((await theirs.get(flow.address, follow_redirects=False)).headers["location"])
        return await finish(client, flow.pending, back.params["code"], back.params["iss"])


async def token_sent(server: ServerConfig, auth: httpx2.Auth | None) -> str | None:
    """Return with which token a request is signed, None where it is not."""
    if auth is None:
        return None
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text=request.headers["authorization"]))
    async with httpx2.AsyncClient(transport=transport, auth=auth) as client:
        return (await client.post(server.url)).text.removeprefix("Bearer ")


async def renewed_once(upstream: Accounts, send: Callable[[int], Awaitable[str | None]], count: int, who: str) -> str:
    """Send so many requests at once until one of them renews the sign-in; return the new token."""
    old, found = upstream.told("secrets"), set[str | None]()
    upstream.set(lasts=3600, slow=0.3)

    async def is_renewed() -> bool:
        found.update(await asyncio.gather(*map(send, range(count))))
        return bool(upstream.told("renewed"))

    await until(is_renewed)
    assert upstream.told("renewed") == [who]
    assert upstream.told("reused") == []
    (new,) = found - set(old)
    assert new is not None
    return new


def origin_of(link: str) -> str:
    return str(httpx2.URL(link).copy_with(path="/", query=None)).rstrip("/")


async def begun(client: httpx2.AsyncClient, link: str, *, follow: bool = True) -> httpx2.Response:
    """Open the page of a link and press its button, as a browser does."""
    page = await client.get(link)
    assert page.status_code == 200, page.text
    assert re.search(r"Programs that <strong>.*</strong> runs", page.text)
    headers = {"Origin": origin_of(link)}
    return await client.post(link, data={"answer": "go"}, headers=headers, follow_redirects=follow)


@dataclass
class User:
    """A user of a client, who signs in with an account where they are asked to open a link."""

    account: str
    action: Any = "accept"
    asked: list[Any] = field(default_factory=list)

    async def __call__(self, _context: object, question: Any) -> ElicitResult:
        self.asked.append(question)
        if self.action == "accept":
            async with browser(self.account) as client:
                if "/sign-in/" in question.url:
                    await begun(client, question.url)
                else:
                    await client.get(question.url)  # straight to the issuer, and back to a port of this machine
        return ElicitResult(action=self.action)
