"""Tokens of a server's own home, made as its operator makes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...command_line import Ended, sealab


@dataclass(frozen=True)
class Made:
    """A token that was made, and what was told of it."""

    token: str
    told: dict[str, Any]

    @property
    def header(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


def tokens(home: Path, *arguments: str, **env: str) -> Ended:
    """Run `sealab tokens …` on a home."""
    return sealab("tokens", *arguments, "--home", str(home), **env)


def made(home: Path, name: str, *options: str, **env: str) -> Made:
    told = tokens(home, "create", name, *options, "--json", **env).told
    return Made(told.pop("token"), told)


def revoked(home: Path, made_before: Made, **env: str) -> None:
    ended = tokens(home, "revoke", made_before.told["id"], "--json", **env)
    assert json.loads(ended.stdout)["revoked"], ended.stderr
