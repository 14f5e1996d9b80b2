"""Forwarded headers count from the proxies that the operator named, and whatever a client adds to them does not."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Scope

from sealab.server.interfaces.protocol.web.forwarded import Forwarded
from sealab.server.interfaces.protocol.web.header_checks import NamedHosts

from .asgi import Passed, asked_of

PROXIES = tuple(map(ipaddress.ip_network, ("10.0.0.7", "10.1.0.0/16", "2001:db8::/64")))
OWN = b"sealab.internal"


async def through(
    peer: str, *headers: tuple[str, str], only: bool = False, proxies: Any = PROXIES
) -> tuple[int, Scope | None]:
    """Send a request through the layer; return the status and what came out behind it."""
    behind = Passed()
    app = Forwarded(behind, proxies, only_through_proxies=only)
    answer = await asked_of(app, ("host", OWN.decode()), *headers, client=(peer, 5))
    return answer.status, behind.scopes[0] if behind.scopes else None


def told(scope: Scope | None) -> tuple[str, str, bytes]:
    assert scope is not None
    host = [value for key, value in scope["headers"] if key == b"host"]
    assert len(host) == 1
    assert {key for key, _value in scope["headers"]} == {b"host"}
    return scope["client"][0], scope["scheme"], host[0]


@pytest.mark.parametrize("proxies", [(), PROXIES])
async def test_what_others_forward_is_taken_out(proxies: Any) -> None:
    status, scope = await through(
        "192.0.2.9",
        ("x-forwarded-for", "203.0.113.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "sealab.example"),
        ("x-real-ip", "203.0.113.1"),
        proxies=proxies,
    )
    assert status == 200
    assert told(scope) == ("192.0.2.9", "http", OWN)
    assert told((await through("127.0.0.1", ("forwarded", "for=203.0.113.1"), proxies=proxies))[1])[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("x-forwarded-for", "203.0.113.1")], ("203.0.113.1", "http", OWN)),
        ([("x-forwarded-for", "1.1.1.1, 203.0.113.1")], ("203.0.113.1", "http", OWN)),
        ([("x-forwarded-for", "1.1.1.1, 203.0.113.1, 10.1.2.3")], ("203.0.113.1", "http", OWN)),
        ([("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.1")], ("203.0.113.1", "http", OWN)),
        ([("x-forwarded-for", "10.1.2.3, 10.0.0.7")], ("10.1.2.3", "http", OWN)),
        ([("x-forwarded-for", "203.0.113.1:4711")], ("203.0.113.1", "http", OWN)),
        ([("x-forwarded-for", "2001:db8:1::9")], ("2001:db8:1::9", "http", OWN)),
        ([("x-forwarded-for", "::ffff:203.0.113.1")], ("203.0.113.1", "http", OWN)),
        (
            [("x-forwarded-for", "203.0.113.1"), ("x-forwarded-proto", "HTTPS"), ("x-forwarded-host", "s.example")],
            ("203.0.113.1", "https", b"s.example"),
        ),
        (
            [("forwarded", 'for="[2001:db8:1::9]:47";proto=https;host=s.example')],
            ("2001:db8:1::9", "https", b"s.example"),
        ),
        ([("forwarded", "for=1.1.1.1, For=203.0.113.1; Proto=http")], ("203.0.113.1", "http", OWN)),
        ([], ("10.0.0.7", "http", OWN)),
    ],
)
async def test_a_proxy_of_ours_tells_whom_a_request_is_from(headers: Any, expected: Any) -> None:
    status, scope = await through("10.0.0.7", *headers)
    assert status == 200
    assert told(scope) == expected


@pytest.mark.parametrize(
    "headers",
    [
        [("x-forwarded-for", "203.0.113.1"), ("forwarded", "for=203.0.113.1")],
        [("x-forwarded-for", "unknown")],
        [("x-forwarded-for", "203.0.113.1,")],
        [("x-forwarded-for", ",".join(["203.0.113.1"] * 40))],
        [("x-forwarded-proto", "javascript")],
        [("x-forwarded-host", "s.example\r\nx: y")],
        [("x-forwarded-host", "é.example")],
        [("forwarded", "for=203.0.113.1;for=1.1.1.1")],
        [("forwarded", "for 203.0.113.1")],
    ],
)
async def test_what_contradicts_itself_or_cannot_be_read_is_refused(headers: Any) -> None:
    assert await through("10.0.0.7", *headers) == (400, None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x-forwarded-for", "x-forwarded-proto", "forwarded"]),
            st.text(st.characters(max_codepoint=255), max_size=40),
        ),
        max_size=4,
    )
)
async def test_nothing_that_is_forwarded_raises_or_makes_up_an_address(headers: Any) -> None:
    status, scope = await through("10.0.0.7", *headers)
    assert status in {200, 400}
    if scope is not None:
        ipaddress.ip_address(told(scope)[0])


async def test_in_clear_only_proxies_and_this_machine_are_served() -> None:
    assert (await through("192.0.2.9", only=True))[0] == 403
    assert (await through("10.0.0.7", only=True))[0] == 200
    assert (await through("::ffff:10.0.0.7", only=True))[0] == 200
    assert (await through("127.0.0.1", only=True))[0] == 200


async def named(public_url: str | None, host: str, origin: str | None = None) -> tuple[int, str]:
    """Return the status of a request and the scheme that it has behind the check of its names."""
    behind = Passed()
    app = NamedHosts(behind, ["127.0.0.1", "[::1]"], 8000, public_url=public_url)
    answer = await asked_of(app, ("host", host), *([] if origin is None else [("origin", origin)]))
    return answer.status, behind.scopes[0]["scheme"] if behind.scopes else ""


@pytest.mark.parametrize(
    ("public_url", "host", "origin", "status"),
    [
        ("https://sealab.example", "sealab.example", None, 200),
        ("https://sealab.example", "SEALAB.example:443", "https://sealab.example", 200),
        ("https://sealab.example", "sealab.example:8443", None, 421),
        ("https://sealab.example", "sealab.example.evil.example", None, 421),
        ("https://sealab.example", "evil.example", None, 421),
        ("https://sealab.example", "sealab.example", "http://sealab.example", 403),
        ("https://sealab.example", "sealab.example", "https://evil.example", 403),
        ("https://sealab.example:8443", "sealab.example:8443", "https://sealab.example:8443", 200),
        ("https://sealab.example:8443", "sealab.example", None, 421),
        ("https://[2001:db8::1]", "[2001:db8::1]", "https://[2001:db8::1]", 200),
        (None, "sealab.example", None, 421),
        (None, "127.0.0.1:8000", "http://127.0.0.1:8000", 200),
    ],
)
async def test_the_public_address_is_a_name_of_the_server_and_no_other_is(
    public_url: str | None, host: str, origin: str | None, status: int
) -> None:
    answered, scheme = await named(public_url, host, origin)
    assert answered == status
    if status == 200:
        assert scheme == ("http" if public_url is None else "https")
