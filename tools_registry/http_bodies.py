"""Reads the body of an HTTP answer whole, within a bound: the one place where that is done."""

from __future__ import annotations

from collections.abc import AsyncIterator


class BodyTooLarge(Exception):
    """An answer is larger than may be taken. What is left of it is not read."""


async def bounded_body(pieces: AsyncIterator[bytes], bytes_max: int) -> bytes:
    """Return the pieces of a body as one. Raises `BodyTooLarge` as soon as they are more than `bytes_max` bytes."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > bytes_max:
            raise BodyTooLarge(f"more than the {bytes_max} bytes that are taken")
    return bytes(body)
