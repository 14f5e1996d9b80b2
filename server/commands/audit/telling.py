"""What a command itself tells its line in the audit log, such as the id of a token that it made."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ....skills_db.audit.chain import Detail


def tell(chosen: argparse.Namespace, **details: Detail) -> None:
    """Have the line of the command that was chosen say more: ids, counts and hashes, never a secret or a file's name.

    Without effect for a command that leaves no line.
    """
    chosen.audited = {**told_by(chosen), **details}


def told_by(chosen: argparse.Namespace) -> Mapping[str, Detail]:
    """Return what the command told so far."""
    return dict(getattr(chosen, "audited", {}))


def flat(told: Mapping[str, object]) -> dict[str, Detail]:
    """Return numbers and hashes of nested mappings as details, by their names joined with dots."""
    found: dict[str, Detail] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": each for inner, each in flat(value).items()}
        elif isinstance(value, int | float) or (isinstance(value, str) and name == "sha256"):
            found[name] = value
    return found
