"""Finds out whether a server's entry starts sealab itself, which would then start itself again, without an end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath, PureWindowsPath

_ITSELF = re.compile(r"sealab(?:\[[\w,-]+\])?(?:(?:@|==|>=|~=|:).*)?|sealab\.server(?:\.cli|\.__main__)?")
_RUNNERS = re.compile(r"uvx|uv|pipx|python[\d.]*|py|docker|podman|env|cmd|npx")
_BEFORE_A_PROGRAM = frozenset({"--", "--from", "--init", "--isolated", "--module", "--rm", "--spec"})
"""Long options of the runners that what is run may follow; what follows another one is its value."""


def starts_sealab(entry: Mapping[str, object]) -> bool:
    """Return whether the command of an entry is sealab, by itself or through a runner such as `uvx`."""
    command = entry.get("command")
    if not isinstance(command, str):
        return False
    program = _program(command)
    if _ITSELF.fullmatch(program):
        return True
    args = entry.get("args")
    if not _RUNNERS.fullmatch(program) or not isinstance(args, Sequence):
        return False
    words = ["", *(each for each in args if isinstance(each, str))]
    return any(
        _ITSELF.fullmatch(word) and (not before.startswith("--") or before in _BEFORE_A_PROGRAM)
        for before, word in pairwise(words)
    )


def _program(command: str) -> str:
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    return re.sub(r"\.(exe|cmd|bat)$", "", name, flags=re.IGNORECASE)
