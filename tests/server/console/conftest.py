"""A console as people have it: a server over HTTP, and a browser that keeps cookies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2

from ..command_line import sealab

JSON = {"Accept": "application/json"}


@dataclass(frozen=True)
class Person:
    """Somebody at a console: what they open, and the forms that they send."""

    origin: str
    client: httpx2.Client

    def opened(self, path: str = "", **headers: str) -> httpx2.Response:
        return self.client.get(f"{self.origin}/console{path}", headers=headers)

    def page(self, path: str = "") -> str:
        found = self.opened(path, Accept="text/html")
        assert found.status_code == 200, found.text
        return found.text

    def told(self, path: str = "", **query: str) -> Any:
        found = self.client.get(f"{self.origin}/console{path}", params=query, headers=JSON)
        assert found.status_code == 200, found.text
        return found.json()

    def sent(self, path: str, form: dict[str, str], *, mark: str | None = None, **headers: str) -> httpx2.Response:
        """Send a form with the mark that this person's pages carry."""
        given = self.mark if mark is None else mark
        headers = {"Origin": self.origin, **headers}
        return self.client.post(f"{self.origin}/console{path}", data={"mark": given, **form}, headers=headers)

    @cached_property
    def mark(self) -> str:
        found = re.search(r'name="mark" value="([0-9a-f]{64})"', self.page("/approvals"))
        assert found is not None
        return found[1]


def nobody(url: str) -> Person:
    """Return somebody whom no server knows yet."""
    kept = httpx2.Limits(max_keepalive_connections=0)  # so that none is left open
    return Person(url.removesuffix("/mcp"), httpx2.Client(timeout=60, limits=kept))


def link(home: Path, url: str, **env: str) -> str:
    return str(sealab("console", "--url", url, "--json", "--home", str(home), **env).told["url"])


def member(url: str, token: str) -> Person:
    """Return somebody who has signed in with a token."""
    person = nobody(url)
    signed_in = person.client.post(f"{person.origin}/console/login", data={"token": token})
    assert signed_in.status_code == 303, signed_in.text
    return person
