"""What the vault is asked for and what it answers: values, their entries, and lines of its audit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Form(StrEnum):
    """How a value stood where it was found, and so how it is put back."""

    TEXT = "text"
    NUMBER = "number"
    """A whole number of JSON, whose token became a string."""
    JSON = "json"
    """Part of a JSON string, escaped in a way that `json.dumps` would not choose."""


@dataclass(frozen=True, slots=True)
class Value:
    """Something personal, as it stood."""

    type: str
    text: str
    form: Form = Form.TEXT
    akin: str = field(default="", compare=False)
    """The token of the value that this is another form of; its first letters begin this one's token too."""

    @property
    def plain(self) -> str:
        """The value without the escapes of JSON."""
        return str(json.loads(f'"{self.text}"', strict=False)) if self.form is Form.JSON else self.text


@dataclass(frozen=True, slots=True)
class VaultEntry:
    """A value and its token; `number` counts the vault's entries, `expires` is seconds since 1970 or None.

    `apart` says that the token is not the scope's own for this value.
    """

    number: int
    token: str
    value: Value
    expires: float | None
    apart: bool = False

    @property
    def shown(self) -> str:
        """The token as the model sees it."""
        return f"[{self.value.type}_{self.token}]"


NEVER_PURGED = -1


@dataclass(frozen=True, slots=True)
class PersonValue:
    """A value of a person, and what the database calls its scope."""

    scope: str
    entry: VaultEntry


@dataclass(frozen=True, slots=True)
class Person:
    """What is kept of a person: the values that were `found`, and those `linked` to them by a record.

    Those that are `shared` stand in records of other people too.
    """

    found: tuple[PersonValue, ...]
    linked: tuple[PersonValue, ...]
    shared: tuple[PersonValue, ...]


@dataclass(frozen=True, slots=True)
class NewEntries:
    """The newest of what a scope got since it was last asked.

    Where `purges` has changed, entries of the scope have gone too: begin anew. It is `NEVER_PURGED` where the scope has
    none, and had none lately.
    """

    entries: tuple[VaultEntry, ...]
    purges: int


@dataclass(frozen=True, slots=True)
class ManyShown:
    """The tokens of many values as the model sees them; `last` is the number of the newest of the entries, if known.

    It is known where all entries after `before` are those that were just made.
    """

    shown: list[str]
    new: int
    before: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something done with values, for the audit: how many of each type, where to; never what they are.

    `at` is seconds since 1970. `run` is that of the run that had it done, if one did.
    """

    at: float
    scope: str
    action: str
    destination: str
    counts: Mapping[str, int]
    run: str = ""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What was done with how many values of a type. `destination` is a tool, a file's kind, or the model.

    All that one run did alike is one line, whose time is that of the last.
    """

    at: float
    scope: str
    action: str
    destination: str
    type: str
    count: int
    run: str = ""


@dataclass(frozen=True, slots=True)
class VaultTotals:
    """How much the vault holds."""

    values: int
    scopes: int
    types: Mapping[str, int]
