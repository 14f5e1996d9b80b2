"""Security boundary: how much one message of a client may hold, judged before anything decodes it.

The SDK decodes a message and validates it in the event loop, where each value costs as much as hundreds of bytes of a
text. Up to these bounds both take less than a tenth of a second.
"""

from __future__ import annotations

from functools import partial

from ....sandbox.wire import bounded_json
from ....tools_registry.json_lines import LARGE_CHARS, mended
from ...base.host_work import Kind, in_thread

VALUES_MAX = 250_000
"""JSON values in one message, or in one argument that is an object or a list given as its JSON text."""
NAMES_MAX = 100_000
"""Names of objects among them, which cost more than other values."""


def check(text: bytes) -> None:
    """Raise `ValueError` for JSON above the bounds, or too deep; decodes nothing."""
    bounded_json.check(text, values_max=VALUES_MAX, names_max=NAMES_MAX)


async def checked_message(text: bytes) -> bytes:
    """Return a message as readers take it, see `mended`; a large one is judged in a thread.

    Raises `ValueError` for one above the bounds, and `HostWorkBusy`.
    """
    if len(text) <= LARGE_CHARS:
        return _checked(text)
    return await in_thread(Kind.ANSWERS, partial(_checked, text), charged=False)


def _checked(text: bytes) -> bytes:
    check(text)
    return mended(text)
