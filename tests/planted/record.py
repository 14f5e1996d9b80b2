"""The record of what caught each patch last, which is asked first the next time: `caught.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.planted.patches import Patch

FILE = Path(__file__).with_name("caught.toml")


@dataclass(frozen=True, slots=True)
class Caught:
    """The name of a target and the test of it that failed."""

    target: str
    test: str


def read(file: Path = FILE) -> dict[str, Caught]:
    """Return what caught each patch, by its name."""
    if not file.exists():
        return {}
    return {name: Caught(**table) for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()}


def write(caught: Mapping[str, Caught], patches: Iterable[Patch], file: Path = FILE) -> None:
    """Write what caught those of these patches that were caught, in their order."""
    tables = [
        f"[{patch.name}]\ntarget = {json.dumps(each.target)}\ntest = {json.dumps(each.test)}\n"
        for patch in patches
        if (each := caught.get(patch.name))
    ]
    head = (
        "# Written by `make planted`: the target and the test that caught each patch last, asked first the next time.\n"
    )
    file.write_text("\n".join([head, *tables]), encoding="utf-8")
