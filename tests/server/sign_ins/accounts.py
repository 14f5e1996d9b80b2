"""An upstream server with accounts and its issuer in a process of its own, and browsers that sign in there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp.types import ElicitResult

from ...waiting import wait_until

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
        """Have a home call it, with the sign-ins of callers unless said otherwise."""
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
