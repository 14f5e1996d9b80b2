"""The records of an attack corpus, and the placeholders that their text holds.

A record is one line of `cases.jsonl`: what to submit (`code`, `then`, `steps`), what must be true afterwards (`oracle`)
and in which `mode` to run it: `sandboxed`, `raw` (language layer off) or `both`. `own_cases.jsonl` beside this file
holds our own in the same format.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

OWN_CASES = Path(__file__).with_name("own_cases.jsonl")
_PLACEHOLDER = re.compile(r"@@([A-Z_]+)@@")


class Mode(StrEnum):
    """What stands between the code and the machine: every layer, or all but the language."""

    SANDBOXED = "sandboxed"
    RAW = "raw"


class Corpus(ValueError):
    """A record cannot be read, or names a placeholder that nobody fills."""


@dataclass(frozen=True)
class Case:
    """One record. `code` is None for records made of `steps`.

    `may_complete`: its words say that it holds when the code completes, whatever kinds its oracle lists.
    """

    id: str
    category: str
    layer: str
    title: str
    severity: str
    modes: tuple[Mode, ...]
    oracle: Mapping[str, Any]
    code: str | None = None
    then: str | None = None
    needs: Mapping[str, Any] = field(default_factory=dict)
    setup: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()
    may_complete: bool = False

    def unmet_need(self) -> str | None:
        """Return which need of the record this machine or interpreter does not meet."""
        least = self.needs.get("python_min")
        if least and sys.version_info[:2] < tuple(int(part) for part in least.split(".")[:2]):
            return f"needs Python {least}"
        most = self.needs.get("python_max")
        if most and sys.version_info[:2] > tuple(int(part) for part in most.split(".")[:2]):
            return f"is about Python up to {most}"
        wanted = self.needs.get("arch")
        if wanted and platform.machine() != wanted:
            return f"needs {wanted}"
        return None


def load(*sources: Path) -> list[Case]:
    """Read every record of the files or folders; ids must not repeat."""
    cases: list[Case] = []
    seen: set[str] = set()
    for source in sources:
        file = source / "cases.jsonl" if source.is_dir() else source
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip():
                continue
            case = _case(json.loads(line), f"{file.name}:{number}")
            if case.id in seen:
                raise Corpus(f"{file.name}:{number}: the id {case.id} is there twice.")
            seen.add(case.id)
            cases.append(case)
    return cases


def choose(cases: Iterable[Case], layers: set[str], ids: list[str]) -> list[Case]:
    """Keep the cases of those layers and those ids (or beginnings of ids); without either, all."""
    return [
        case
        for case in cases
        if (not layers or case.layer in layers) and (not ids or any(case.id.startswith(each) for each in ids))
    ]


def filled(value: Any, places: Mapping[str, str]) -> Any:
    """Put the places of this machine in for the placeholders, in texts at any depth."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _place(match[1], places), value)
    if isinstance(value, list | tuple):
        return type(value)(filled(each, places) for each in value)
    if isinstance(value, Mapping):
        return {key: filled(each, places) for key, each in value.items()}
    return value


def _place(name: str, places: Mapping[str, str]) -> str:
    if name not in places:
        raise Corpus(f"Nobody fills the placeholder @@{name}@@.")
    return places[name]


def _case(record: Mapping[str, Any], where: str) -> Case:
    try:
        mode = record["mode"]
        generator = record.get("code_gen")
        return Case(
            id=record["id"],
            category=record["category"],
            layer=record["layer"],
            title=record["title"],
            severity=record["severity"],
            modes=(Mode.SANDBOXED, Mode.RAW) if mode == "both" else (Mode(mode),),
            oracle=record["oracle"],
            # A trusted expression of the corpus, which its README asks the runner to evaluate.
            code=eval(generator, {}) if generator else record.get("code"),
            then=record.get("then"),
            needs=record.get("needs") or {},
            setup=record.get("setup") or {},
            limits=record.get("limits") or {},
            steps=tuple(record.get("steps") or ()),
            may_complete=record["holds_when"].startswith("completes"),
        )
    except (KeyError, ValueError) as error:
        raise Corpus(f"{where} is no record: {error!r}") from error
