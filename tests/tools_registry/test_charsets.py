"""Character sets that a server names: text is decoded by them only where that takes no longer than the text is long."""

from __future__ import annotations

import base64

import httpx2
import pytest

from sealab.server.interfaces.guard.base64_texts import exchanged_base64
from sealab.tools_registry.charsets import charset_named
from sealab.tools_registry.openapi.answers import _decoded
from sealab.tools_registry.openapi.exchange import ServiceResponse

LONG = b"99" * 1_000_000


def answer(charset: str, body: bytes) -> ServiceResponse:
    return ServiceResponse(200, "OK", httpx2.Headers({"content-type": f"text/plain; charset={charset}"}), body)


@pytest.mark.parametrize(
    "charset", ["punycode", "PUNYCODE", "idna", "unicode_escape", "hex", "rot13", "undefined", "no\0ne"]
)
def test_a_codec_that_is_no_character_set_of_documents_is_not_used(charset: str) -> None:
    assert charset_named(charset) is None


@pytest.mark.parametrize("charset", ["utf-8", "latin1", "windows-1252", "Shift_JIS", "utf-16", "koi8-r", "gb18030"])
def test_character_sets_of_documents_are_known_by_every_name(charset: str) -> None:
    assert charset_named(charset) is not None


def test_a_long_answer_in_punycode_is_read_as_utf_8() -> None:
    """Its codec takes the square of the length, and answers are decoded in the event loop."""
    assert _decoded(answer("punycode", LONG)) == LONG.decode()
    assert _decoded(answer("latin1", b"\xe9t\xe9")) == "été"


def test_a_long_text_in_punycode_in_a_message_is_filtered_as_what_it_is() -> None:
    encoded = base64.b64encode(LONG).decode()
    assert (
        exchanged_base64(encoded, "text/plain; charset=punycode", lambda _part: "x") == base64.b64encode(b"x").decode()
    )
