"""Security boundary: which names tenants, principals and tokens may have, and which scopes there are.

A name that is not written in the one way that counts is refused and never folded into it: two names that look alike, or
that a file system or a database takes for the same one, can then not stand for two tenants.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from ...base.errors import RequestRefused
from ...base.identity import Right

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_SHOWN_CHARS_MAX = 80

DEFAULT_RIGHTS = frozenset(Right) - {Right.RUN_PROCESS, Right.APPROVE, Right.ADMIN}
"""The scopes of a token that is given none: what an agent needs, and nothing that widens what it may do by itself."""
DEFAULT_SCOPE = "default"
"""What stands for all of `DEFAULT_RIGHTS` among scopes."""


def is_tenant_name(text: object) -> bool:
    """Return whether that can be the name of a tenant."""
    return isinstance(text, str) and _TENANT.fullmatch(text) is not None


def tenant_name(text: str) -> str:
    """Return the name of a tenant as it was given. Raises `RequestRefused` for one that no tenant can have."""
    if is_tenant_name(text):
        return text
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    meant = f" Write it as {folded}." if is_tenant_name(folded) else ""
    raise RequestRefused(
        f"{_shown(text)} is not the name of a tenant: it takes 1 to 63 small letters, digits and dashes, and begins "
        f"with no dash.{meant or ' Give such a name.'}"
    )


def principal_name(text: str) -> str:
    """Return the name of a principal or of a token as it was given. Raises `RequestRefused` for any other text."""
    if _NAME.fullmatch(text):
        return text
    raise RequestRefused(
        f"{_shown(text)} cannot be a name: it takes 1 to 128 ASCII letters, digits and ._@+-, and begins with a letter "
        "or a digit. Give such a name."
    )


def rights_of(scopes: Iterable[str]) -> frozenset[Right]:
    """Return the rights that scopes stand for. Raises `RequestRefused` for one that there is not."""
    rights: set[Right] = set()
    for scope in scopes:
        if scope == DEFAULT_SCOPE:
            rights |= DEFAULT_RIGHTS
            continue
        try:
            rights.add(Right(scope))
        except ValueError:
            known = ", ".join((DEFAULT_SCOPE, *Right))
            raise RequestRefused(f"There is no scope {_shown(scope)}. Those that there are: {known}.") from None
    return frozenset(rights)


def known_rights(scopes: Iterable[str]) -> frozenset[Right]:
    """Return the rights that scopes stand for, without those that this version does not know."""
    known = frozenset(Right)
    return frozenset(Right(scope) for scope in scopes if scope in known)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…")
