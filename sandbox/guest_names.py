"""The names that code finds without defining them: where the server reads the side of hostile code.

What is imported here only defines names; nothing of it runs code.
"""

from __future__ import annotations


def importable_modules() -> frozenset[str]:
    """Return the modules that the restricted dialect can import, but for what lies below packages of guest code."""
    from .dialect import facades, guest_modules

    outer = (name for name in guest_modules.names() if not guest_modules.exists(name.rpartition(".")[0]))
    return frozenset(name for name in (*facades.exports(), *outer) if not name.startswith("_"))


def needs_network(module: str) -> bool:
    """Return whether a module is there to reach other machines, which no isolation lets code do."""
    from .report.substitutes import NO_NETWORK, instead_of

    return instead_of(module) == NO_NETWORK


def given_names() -> frozenset[str]:
    """Return the names of the helpers, and of the modules that need no import."""
    from .guest.runtime import PRELOADED
    from .guest_api import data_helpers, hosted

    return frozenset({*hosted.helpers(), *data_helpers.helpers(), *PRELOADED, "keep"})
