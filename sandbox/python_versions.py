"""Security boundary: the versions of Python on which the restricted dialect may run.

The dialect holds only while no reachable object has a dangerous public attribute, and each version of Python gives old
classes new ones. So it runs on versions that were walked (`tests/sandbox/facades_walk.py`), and on no other.
"""

from __future__ import annotations

import sys
from typing import Final

from .errors import LevelMissing

WALKED: Final = ((3, 11), (3, 12), (3, 13), (3, 14))
"""The versions that were walked. 3.14 was walked without a kernel; there, each start tries the kernel layers."""


def require_walked() -> None:
    """Raise `LevelMissing` unless the version of this interpreter was walked."""
    version = tuple(sys.version_info[:2])
    if version not in WALKED:
        raise LevelMissing(
            f"The restricted dialect was not examined on Python {_said(version)}, so it does not run there. Install "
            f"sealab for Python {_said(WALKED[0])} to {_said(WALKED[-1])}, for instance with `uvx --python "
            f"{_said(WALKED[-2])} sealab`, or leave `restricted` out of ALLOWED_ISOLATION."
        )


def _said(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
