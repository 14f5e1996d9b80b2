"""Which URLs are taken for the issuer of tokens and its endpoints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.secure_urls import fault_of_url, is_loopback


@pytest.mark.parametrize(
    "url",
    [
        "https://idp.example",
        "https://idp.example/",
        "https://idp.example:8443/realms/team",
        "http://127.0.0.1:8080/realms/team",
        "http://localhost:8080",
        "http://[::1]:8080",
        "https://[2001:db8::1]/a",
    ],
)
def test_https_is_secure_and_http_on_this_machine(url: str) -> None:
    assert fault_of_url(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://idp.example",
        "http://10.0.0.1",
        "http://127.0.0.1.idp.example",
        "http://localhost.idp.example",
        "ftp://idp.example",
        "file:///etc/passwd",
        "idp.example",
        "//idp.example",
        "https://",
        "https:idp.example",
        "https://:443",
        "https://idp.example:",
        "https://idp.example:x",
        "https://idp.example:99999",
        "https://user@idp.example",
        "https://a:b@idp.example",
        "http://127.0.0.1@idp.example",
        "https://idp.example\\@127.0.0.1",
        "https://idp.example#a",
        "https://idp.example?a",
        "https://idp.example/ a",
        "https://idp.example/\n",
        "https://idp.éxample",
        "https://idp.example/" + "a" * 500,
        "https://[::1",
        "",
    ],
)
def test_any_other_url_is_not(url: str) -> None:
    assert fault_of_url(url) is not None


def test_an_endpoint_may_have_a_query_and_need_not_be_of_this_machine() -> None:
    assert fault_of_url("https://idp.example/introspect?realm=a", query=True) is None
    for url in ("https://127.0.0.1/", "https://localhost/", "https://[::ffff:127.0.0.1]/", "https://0.0.0.0/"):
        assert fault_of_url(url, loopback=False) is not None


@given(st.ip_addresses())
def test_addresses_are_of_this_machine_as_the_standard_library_says(address: object) -> None:
    mapped = getattr(address, "ipv4_mapped", None)
    here = address.is_loopback or address.is_unspecified or bool(mapped and mapped.is_loopback)  # type: ignore[attr-defined]
    assert is_loopback(str(address)) is here
