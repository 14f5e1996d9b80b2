"""What one version of a skill holds, its bounds and its hash, and what a list shows of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from .errors import SkillRefused

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"

NAME_MAX_CHARS = 128
TAGS_MAX = 50
TAG_MAX_CHARS = 128
TEXT_MAX_BYTES = 1_000_000
"""The most that code or tests may each have, as UTF-8."""
LISTED_MAX_CHARS = 10_000
"""The most that description or signature may each have: they stand in lists and searches."""
JSON_MAX_BYTES = 10_000_000
"""The most that parameters, recordings or extra may each have, as JSON."""

VERSION_BYTES = 1000
"""What a version counts for besides its parts."""
STORE_BYTES_MAX = 256_000_000
"""The most that all versions of all skills may count for, those that were deleted and not purged too."""


class SkillKind(StrEnum):
    """What the code of a skill defines: the function of its name, or a script with a `main`."""

    FUNCTION = "function"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDraft:
    """A version of a skill before it is stored.

    `parameters` is the JSON Schema of the arguments. `modules`, `tools` (`server.tool`) and `skills` name what the code
    uses. `recordings` are the upstream answers that its tests met. `extra` is whatever else a SKILL.md brings
    (license, compatibility, metadata, allowed tools, texts of further files) and comes back as it was given.
    """

    name: str
    code: str
    kind: SkillKind = SkillKind.FUNCTION
    signature: str = ""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    description: str = ""
    tags: tuple[str, ...] = ()
    tests: str = ""
    modules: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    recordings: Json = None
    extra: Mapping[str, Json] = field(default_factory=dict)

    def check(self) -> None:
        """Raise `SkillRefused` when a part is too large, or holds what not every database can keep."""
        if not self.name:
            raise SkillRefused("The skill has no name. Give it one.")
        _check_chars("name", self.name, NAME_MAX_CHARS)
        if len(self.tags) > TAGS_MAX:
            raise SkillRefused(f"The skill has {len(self.tags)} tags. Give it {TAGS_MAX} at most.")
        for tag in self.tags:
            _check_chars("tag", tag, TAG_MAX_CHARS)
        for part in ("description", "signature"):
            _check_chars(part, getattr(self, part), LISTED_MAX_CHARS)
        for part in ("code", "tests"):
            _check_text(part, getattr(self, part))
        for part in ("parameters", "modules", "tools", "skills", "recordings", "extra"):
            _check_json(part, getattr(self, part))

    @property
    def size(self) -> int:
        """What it counts for in the store, in bytes: its parts, as UTF-8 or JSON, and what any version costs."""
        texts = (self.code, self.tests, self.description, self.signature)
        values = (self.parameters, self.modules, self.tools, self.skills, self.tags, self.recordings, self.extra)
        return VERSION_BYTES + sum(len(text.encode()) for text in texts) + sum(len(json_text(each)) for each in values)

    def content_hash(self) -> str:
        """Return the SHA-256, in hexadecimal, of all that the draft holds except its name."""
        content = asdict(self)
        del content["name"]
        return hashlib.sha256(json_text(content, sort_keys=True).encode()).hexdigest()


def json_text(value: object, *, sort_keys: bool = False) -> str:
    """Return compact JSON in ASCII: what databases refuse (NUL, lone surrogates) stands in it escaped.

    Raises `ValueError` or `TypeError` for what JSON cannot say.
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)


def storable(text: str) -> bool:
    """Return whether every database can hold this text; nothing that is stored has a text that is not."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def _check_chars(part: str, text: str, most: int) -> None:
    if len(text) > most:
        raise SkillRefused(f"The {part} {text[:20]!r}… has {len(text)} characters. Use {most} at most.")
    _check_text(part, text)


def _check_text(part: str, text: str) -> None:
    if "\0" in text:
        raise SkillRefused(f"The {part} holds a NUL character. Remove it, or write it as an escape.")
    if not storable(text):
        raise SkillRefused(f"The {part} holds half a surrogate pair. Remove it, or write it as an escape.")
    size = len(text.encode())
    if size > TEXT_MAX_BYTES:
        raise SkillRefused(f"The {part} has {size:,} bytes. Keep it below {TEXT_MAX_BYTES:,}.")


def _check_json(part: str, value: object) -> None:
    try:
        size = len(json_text(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise SkillRefused(f"The {part} cannot be kept as JSON: {error}. Use JSON's own types.") from None
    if size > JSON_MAX_BYTES:
        raise SkillRefused(f"The {part} has {size:,} bytes as JSON. Keep it below {JSON_MAX_BYTES:,}.")


@dataclass(frozen=True, slots=True)
class SkillSummary:
    """What a list says of a skill: its newest version in short, and how often and when last it ran."""

    name: str
    version: int
    kind: SkillKind
    description: str
    signature: str
    tags: tuple[str, ...]
    created_at: datetime
    runs: int
    last_run: datetime | None

    def has_tag(self, tag: str) -> bool:
        """Return whether a tag is one of the skill's, in whatever case."""
        return tag.casefold() in map(str.casefold, self.tags)


@dataclass(frozen=True, slots=True)
class SkillPage:
    """The first skills of a list, and how many there are in all."""

    total: int
    skills: tuple[SkillSummary, ...]
