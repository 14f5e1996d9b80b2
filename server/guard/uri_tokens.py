"""Tokens in the addresses of resources, with brackets that every parser of URIs takes: `%5B` and `%5D`."""

from __future__ import annotations

import re

from ..privacy.token_texts import TOKEN
from ..privacy.tokens.parts import Exchange, Text

_ESCAPED_TOKEN = re.compile(r"%5[Bb]([A-Z][A-Z0-9_]{0,31}_[0-9a-hjkmnp-tv-z]{10})%5[Dd]")


def exchanged_uri(uri: str, exchange: Exchange) -> str:
    """Return a URI with another text in it; tokens that it gains are escaped."""
    shown = str(exchange(Text(uri)))
    return uri if shown == uri else TOKEN.sub(lambda token: f"%5B{token[0][1:-1]}%5D", shown)


def with_plain_tokens(uri: str) -> str:
    """Return a URI with the brackets of its tokens as they are elsewhere."""
    return _ESCAPED_TOKEN.sub(r"[\1]", uri)
