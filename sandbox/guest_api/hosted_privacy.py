"""The helpers that hide personal data and give it back."""

from __future__ import annotations

from typing import cast

from ..guest.guest import GUEST
from ..job import Json


def sanitize_pii(content: object) -> object:
    """Return a text, or a value made of JSON's types, with a token in place of everything personal in it.

    The same value always has the same token, so that values can be compared with tokens. Raises TypeError for what is
    not JSON, RuntimeError where it could not be looked for.
    """
    return GUEST.call_host("sanitize_pii", {"content": cast("Json", content)})


def restore_pii(content: object) -> object:
    """Return a text, or a value made of JSON's types, with the values that its tokens stand for.

    Tokens that the vault does not know stay. Raises PermissionError where values may not be given back.
    """
    return GUEST.call_host("restore_pii", {"content": cast("Json", content)})


def helpers() -> dict[str, object]:
    """Give the helpers by the name under which code finds them."""
    return {"sanitize_pii": sanitize_pii, "restore_pii": restore_pii}
