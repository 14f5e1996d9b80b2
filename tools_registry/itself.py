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
    """Return whether the command of an entry is sealab, by itself or through a runner such as `uvx`.

    `sealab guard` is what it guards.
    """
    command, args = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return False
    given = [each for each in args if isinstance(each, str)] if isinstance(args, Sequence) else []
    given = [] if isinstance(args, str) else given
    program = _program(command)
    if _ITSELF.fullmatch(program):
        return not _guards_another(given)
    if not _RUNNERS.fullmatch(program):
        return False
    found = [
        at
        for at, (before, word) in enumerate(pairwise(["", *given]))
        if _ITSELF.fullmatch(word) and (not before.startswith("--") or before in _BEFORE_A_PROGRAM)
    ]
    return bool(found) and not _guards_another(given[found[0] + 1 :])


def _guards_another(words: Sequence[str]) -> bool:
    """Return whether the words after sealab's name have it guard a server that is not sealab."""
    end = words.index("--") if "--" in words else len(words)
    own, guarded = words[:end], words[end + 1 :]
    if not any(word == "guard" and not before.startswith("--") for before, word in pairwise(["", *own])):
        return False
    return not guarded or not starts_sealab({"command": guarded[0], "args": guarded[1:]})


def _program(command: str) -> str:
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    return re.sub(r"\.(exe|cmd|bat)$", "", name, flags=re.IGNORECASE)
