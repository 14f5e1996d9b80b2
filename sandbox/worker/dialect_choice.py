"""Chooses the kind of Python that a worker runs."""

from __future__ import annotations

from ..guest.runtime import Dialect
from ..job import Isolation
from ..python_versions import require_walked


def dialect_of(isolation: Isolation) -> Dialect:
    """Return the kind of Python that code runs in at an isolation; only that kind is imported.

    Raises `LevelMissing` for the restricted dialect on a version of Python that it was not examined on.
    """
    if isolation is Isolation.RESTRICTED:
        require_walked()
        from ..dialect.restricted_python import RestrictedPython

        return RestrictedPython()
    from ..full_python.full_python import FullPython

    return FullPython()
