"""Under `AUTH=oauth` a browser signs in to the console at the issuer, and sees what its token allows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ...identity_provider.running import SERVER, IdentityProvider, identity_provider, needs_identity_provider
from ..conftest import http_server
from ..protocol.web.browser import CHROMIUM, browser
from .conftest import Person, nobody

pytestmark = needs_identity_provider
_CLAIMS = {"ada": {"tenant": "default"}}


@dataclass(frozen=True)
class Seen:
    """A server whose callers have tokens of a real provider."""

    provider: IdentityProvider
    url: str

    def begun(self) -> tuple[Person, str]:
        """Return a browser that has begun to sign in, and where it was sent."""
        person = nobody(self.url)
        sent = person.opened("/sign-in")
        assert sent.status_code == 303
        return person, sent.headers["location"]

    def back(self, person: Person, sent: str) -> str:
        """Sign in at the provider as the browser does; return where it is sent then."""
        for _ in range(5):
            sent = person.client.get(sent).headers["location"]
            sent = sent if sent.startswith("http") else f"{self.provider.issuer}{sent}"
            if sent.startswith(person.origin):
                return sent
        raise AssertionError(sent)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public = f"http://127.0.0.1:{port}"
    with identity_provider(claims=_CLAIMS, callback=f"{public}/console/signed-in") as provider:
        env = {
            "SEALAB_AUTH": "oauth",
            "SEALAB_OAUTH_ISSUER": provider.issuer,
            "SEALAB_OAUTH_AUDIENCE": f"{public}/mcp",
            "SEALAB_OAUTH_CLIENT_ID": SERVER[0],
            "SEALAB_OAUTH_CLIENT_SECRET": SERVER[1],
            "SEALAB_VAULT_KEYRING": "false",
        }
        with http_server(tmp_path_factory.mktemp("home"), port=port, **env) as url:
            yield Seen(provider, url)


def test_who_signs_in_at_the_issuer_sees_what_the_token_allows(seen: Seen) -> None:
    person, sent = seen.begun()
    asked = {name: each[0] for name, each in parse_qs(urlsplit(sent).query).items()}
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    arrived = person.client.get(seen.back(person, sent))
    assert arrived.status_code == 200
    cookies = arrived.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookies[0].split("; "))
    assert 'http-equiv="refresh" content="0; url=/console"' in arrived.text
    shown = person.page()
    assert f"default/{seen.provider.issuer}#ada" in shown
    assert person.opened("/settings").status_code == 200  # the token has the scope admin


def test_a_sign_in_counts_in_the_browser_that_began_it_and_once(seen: Seen) -> None:
    person, sent = seen.begun()
    back = seen.back(person, sent)
    stranger = nobody(seen.url)
    assert stranger.client.get(back).status_code == 403
    assert stranger.opened().status_code == 401
    other, _ = seen.begun()
    assert other.client.get(back).status_code == 403
    assert person.client.get(f"{back}&iss=https://evil.example").status_code == 403
    changed = back.replace("code=", "code=x")
    assert person.client.get(changed).status_code == 401
    assert person.client.get(back).status_code == 200
    assert person.client.get(back).status_code == 403
    assert nobody(seen.url).opened("/signed-in?error=access_denied&state=").status_code == 403


def test_the_way_in_names_the_issuer_and_a_token_without_scopes_sees_nothing(seen: Seen) -> None:
    page = httpx2.get(f"{seen.url.removesuffix('/mcp')}/console")
    assert page.status_code == 401
    assert f"Sign in at {seen.provider.issuer}" in page.text
    person, sent = seen.begun()
    scoped: Any = httpx2.URL(sent).copy_set_param("scope", "files")
    arrived = person.client.get(seen.back(person, str(scoped)))
    assert arrived.status_code == 200
    assert person.opened("/runs").status_code == 403


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: `make system` installs it")
def test_a_real_browser_goes_there_and_back_by_one_click(seen: Seen, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.open(f"{seen.url.removesuffix('/mcp')}/console")
        shown = page.follow("a[href$=sign-in]", pages=2)  # that of the sign-in, and what that leads to
        assert "Sign out" in shown
        assert page.run("location.pathname") == "/console"
