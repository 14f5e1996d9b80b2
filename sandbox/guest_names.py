"""The names that code finds without defining them: the one place where the server reads the side of hostile code.

What is imported here only defines names; nothing of it runs code.
"""

from __future__ import annotations


def importable_modules() -> frozenset[str]:
    """Return the modules that the restricted dialect can import."""
    from .dialect import facades, guest_modules

    names = (*facades.exports(), *guest_modules.names())
    return frozenset(name for name in names if not any(part.startswith("_") for part in name.split(".")))


def given_names() -> frozenset[str]:
    """Return the names of the helpers, and of the modules that need no import."""
    from .guest.runtime import PRELOADED
    from .guest_api import data_helpers, hosted

    return frozenset({*hosted.helpers(), *data_helpers.helpers(), *PRELOADED, "keep"})
