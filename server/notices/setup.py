"""How this server is set up, in digests that can be compared with those of others and tell nothing.

The digests are keyed with `VAULT_KEY`, which servers on one database have in common: `mcp.json` may hold secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..settings import Settings

_DIGEST_BYTES = 8
_OWN = frozenset({"log_level", "public_url", "replica_address", "workers_max", "workers_spare", "cpus"})
"""Settings that may differ between servers that are one."""


class Setup:
    """The program, the settings and the files of one server."""

    def __init__(self, settings: Settings, servers_file: Path, policy: Path | None) -> None:
        self._key = hashlib.sha256((settings.vault_key or "").encode()).digest()
        self._files = {"mcp.json": servers_file, **({} if policy is None else {"the policy": policy})}
        shown = [
            f"{each.name}={getattr(settings, each.name)!r}"
            for each in fields(settings)
            if not each.metadata.get("secret") and each.name not in _OWN
        ]
        self._settings = self._digest("\n".join(sorted(shown)).encode())

    def now(self) -> Mapping[str, str]:
        """Return it by the name of each part; reads the files, so call it in a thread."""
        return {
            "the version": version("sealab"),
            "the settings": self._settings,
            **{name: self._digest(_content(path)) for name, path in self._files.items()},
        }

    def _digest(self, data: bytes) -> str:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def _content(path: Path) -> bytes:
    """Return what a file holds, or all `*.cedar` files of a folder; nothing where it cannot be read."""
    try:
        files = sorted(path.glob("*.cedar")) if path.is_dir() else [path]
        return b"\0".join(each.read_bytes() for each in files)
    except OSError:
        return b""
