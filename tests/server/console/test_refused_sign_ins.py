"""What a browser brings back from the issuer when nobody signed in there: it is bounded, written down and never used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ...identity_provider.running import RESOURCE, SERVER, SigningKey
from ..access.scripted_issuer import ScriptedIssuer, scripted_issuer
from ..audit.test_audited_requests import lines
from ..conftest import http_server
from .conftest import Person, nobody

KEY = SigningKey("first")
ENV = {"SEALAB_VAULT_KEY": "ab" * 32}


@pytest.fixture
def issuer() -> Iterator[ScriptedIssuer]:
    with scripted_issuer() as running:
        running.publish(KEY)
        more = {"authorization_endpoint": f"{running.url}/authorize", "token_endpoint": f"{running.url}/token"}
        running.answer("/.well-known/oauth-authorization-server", running.metadata(**more))
        running.answer("/token", {"error": "invalid_grant"}, 400)
        yield running


@contextmanager
def visited(issuer: ScriptedIssuer, home: Path) -> Iterator[Person]:
    """A server behind a proxy that has TLS, and passes on another `Host` than the public one."""
    env = {
        "SEALAB_AUTH": "oauth",
        "SEALAB_OAUTH_ISSUER": issuer.url,
        "SEALAB_OAUTH_AUDIENCE": RESOURCE,
        "SEALAB_OAUTH_CLIENT_ID": SERVER[0],
        "SEALAB_OAUTH_CLIENT_SECRET": SERVER[1],
        "SEALAB_PUBLIC_URL": "https://sealab.example",
    }
    with http_server(home, **env, **ENV) as url:
        yield nobody(url)


@pytest.fixture
def person(issuer: ScriptedIssuer, tmp_path: Path) -> Iterator[Person]:
    with visited(issuer, tmp_path) as person:
        yield person


def begun(person: Person) -> tuple[str, str]:
    """Begin to sign in; return the state that the issuer is sent, and the cookie as it is set."""
    sent = person.opened("/sign-in")
    return parse_qs(urlsplit(sent.headers["location"]).query)["state"][0], sent.headers["set-cookie"]


def back(person: Person, state: str, cookie: str) -> httpx2.Response:
    return person.opened(f"/signed-in?state={state}&code=junk", Cookie=cookie.partition(";")[0])


def test_sign_ins_that_are_refused_are_counted_by_address_and_written_down(
    issuer: ScriptedIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.governance.access.guesses.GUESSES_MAX", 5)
    with visited(issuer, tmp_path) as person:
        state, cookie = begun(person)
        statuses = [back(person, state, cookie).status_code for _ in range(10)]
        assert set(statuses) == {401, 429}
        assert issuer.asked["/token"] == statuses.count(401)
        assert back(person, f"{state[:-1]}{'1' if state.endswith('0') else '0'}", cookie).status_code == 403
    denied = {each["rule"]: each for each in lines(tmp_path, **ENV) if each["event"] == "access.denied"}
    assert denied.keys() == {"sign-in refused", "sign-in not begun here", "too many invalid tokens"}
    assert denied["sign-in not begun here"]["details"]["from"] == "127.0.0.1"


def test_a_sign_in_is_over_after_ten_minutes_whatever_the_browser_keeps(
    issuer: ScriptedIssuer, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, cookie = begun(person)
    monkeypatch.setattr(
        "sealab.server.interfaces.console.sessions.time", SimpleNamespace(time=lambda: time.time() + 601)
    )
    assert back(person, state, cookie).status_code == 403
    expires, mark = state.split(".")
    for late in (f"{int(expires) + 3600}.{mark}", f"{'9' * 5000}.{mark}", "."):
        assert back(person, late, cookie).status_code == 403
    assert issuer.asked["/token"] == 0


@pytest.mark.parametrize("token", ["t\u00f6ken", "\ud800", "two words", "a" * 9000])
def test_what_the_issuer_gives_and_no_request_could_have_as_its_token_is_refused(
    issuer: ScriptedIssuer, person: Person, token: str
) -> None:
    issuer.answer("/token", {"access_token": token})
    assert back(person, *begun(person)).status_code == 401
    assert issuer.asked["/introspect"] == 0


def test_cookies_are_secure_where_the_public_address_is(issuer: ScriptedIssuer, person: Person) -> None:
    token = KEY.sign({"iss": issuer.url, "aud": RESOURCE, "sub": "ada", "exp": 2**33})
    issuer.answer("/token", {"access_token": token})
    state, cookie = begun(person)
    arrived = back(person, state, cookie)
    assert arrived.status_code == 200
    given = person.client.post(f"{person.origin}/console/login", data={"token": token})
    assert given.status_code == 303
    for each in (cookie, *arrived.headers.get_list("set-cookie"), given.headers["set-cookie"]):
        assert "Secure" in each.split("; ")
