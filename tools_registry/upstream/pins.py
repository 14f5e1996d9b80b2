"""Pins what servers say about their tools, so that a server cannot change it behind the user's back.

Every tool is pinned by hash when it is first seen. A server that later says something else of a tool it has shown
before is quarantined, until a user accepts what it says now; a tool that is new is pinned and reported. Tools that are
gone stay pinned: one that comes back must come back the same. A user's yes to all calls of a tool stands beside its
pin, and ends when what is pinned changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import cast

from ..configuration import Document, document_of, unusable
from ..errors import ConfigurationRefused, Quarantined, StateUnavailable
from ..kept import KeptText, kept_at
from ..names import test_of
from .lenient import RawTool

PINNED_KEYS = ("title", "description", "input_schema", "output_schema", "annotations")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a list of tools says beside what was pinned: names of tools that are new, changed, or gone."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A user's yes to all calls of a tool whose arguments of these names are these, or numbers up to these limits.

    What a call names beside them makes it another call.
    """

    arguments: Mapping[str, object]
    limits: Mapping[str, object]

    def allows(self, naming: Mapping[str, object]) -> bool:
        """Return whether it allows a call that names these parties, places and sums."""
        if naming.keys() != self.arguments.keys() | self.limits.keys():
            return False
        if any(
            type(naming[name]) is not type(value) or naming[name] != value for name, value in self.arguments.items()
        ):
            return False
        return all(_is_within(naming[name], limit) for name, limit in self.limits.items())

    def as_json(self) -> _Rule:
        """Return it as JSON."""
        return {"arguments": dict(self.arguments), "limits": dict(self.limits)}


_Rule = dict[str, dict[str, object]]


def _is_within(value: object, limit: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isinstance(limit, int | float):
        return False
    return 0 <= value <= limit


def digest(tool: RawTool) -> str:
    """Return the SHA-256 of everything a model would read of a tool; the order of keys does not count."""
    pinned = {key: tool[key] for key in PINNED_KEYS if tool.get(key) is not None}
    return hashlib.sha256(json.dumps(pinned, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


PINS = "pins.json"
"""The file of pins, below the folder of what is known of upstream servers."""


class Pins:
    """The pins of all servers, in one text that servers may share, or in memory where there is none. Thread-safe."""

    def __init__(self, place: Path | KeptText | None) -> None:
        self._kept = kept_at(place)
        self._lock = Lock()
        self._quarantines: tuple[object, frozenset[str]] = None, frozenset()
        """The stamp of the text when it was read last, and the servers that were quarantined then."""

    def see(self, server: str, tools: Sequence[RawTool]) -> Seen:
        """Compare a server's tools with its pins; pin those that are new, and quarantine it if one changed.

        Raises `ConfigurationRefused` where the file of pins cannot be used.
        """
        with self._lock, self._editing() as document:
            pinned = _pinned(document, server)
            hashes = {str(tool["name"]): digest(tool) for tool in tools}
            known = _hashes(pinned)
            changed = tuple(name for name, now in hashes.items() if known.get(name, now) != now)
            new = tuple(name for name in hashes if name not in known)
            known.update({name: hashes[name] for name in new})
            pinned["tools"] = known
            if changed:
                pinned["quarantined"] = sorted({*_quarantined(pinned), *changed})
            return Seen(new, changed, tuple(name for name in known if name not in hashes))

    def quarantined(self, server: str) -> tuple[str, ...]:
        """Return the tools because of which a server is quarantined; none where it is not."""
        with self._lock:
            return tuple(_quarantined(_pinned(self._read(), server)))

    def quarantines(self) -> frozenset[str]:
        """Return the servers that are quarantined; none where the text cannot be used, which every call refuses."""
        with self._lock:
            try:
                stamp = self._kept.stamp()
                if self._quarantines[0] != stamp:
                    servers = self._read().get("servers", {})
                    found = servers.items() if isinstance(servers, dict) else ()
                    names = (name for name, pinned in found if isinstance(pinned, dict) and pinned.get("quarantined"))
                    self._quarantines = stamp, frozenset(names)
            except (OSError, ConfigurationRefused):
                return frozenset()
            return self._quarantines[1]

    def accept(self, server: str, tools: Sequence[RawTool]) -> None:
        """Pin what the server says now, and end its quarantine."""
        with self._lock, self._editing() as document:
            pinned = _pinned(document, server)
            known = _hashes(pinned)
            now = {str(tool["name"]): digest(tool) for tool in tools}
            pinned["tools"] = {**known, **now}
            pinned.pop("quarantined", None)
            changed = {name for name, digested in now.items() if known.get(name) != digested}
            approved = {
                scope: {name: rules for name, rules in tools.items() if name not in changed}
                for scope, tools in _approved(pinned).items()
            }
            if approved:
                pinned["approved"] = approved

    def approve(self, server: str, tool: str, scope: str, rule: StandingApproval) -> None:
        """Note that the user of a scope said yes to all calls of a tool that a rule allows."""
        with self._lock, self._editing() as document:
            pinned = _pinned(document, server)
            approved = _approved(pinned)
            rules = approved.setdefault(scope, {}).setdefault(tool, [])
            if rule.as_json() not in rules:
                rules.append(rule.as_json())
            pinned["approved"] = approved

    def approved(self, server: str, scope: str | None = None) -> dict[str, list[StandingApproval]]:
        """Return the rules by which the user of a scope said yes, by tool; without a scope, those of all."""
        with self._lock:
            approved = _approved(_pinned(self._read(), server))
        found: dict[str, list[StandingApproval]] = {}
        for tools in approved.values() if scope is None else [approved.get(scope, {})]:
            for name, rules in tools.items():
                found.setdefault(name, []).extend(StandingApproval(**each) for each in rules)
        return found

    def ask_again(self, server: str) -> None:
        """Forget every yes to all calls of a server's tools."""
        with self._lock, self._editing() as document:
            _pinned(document, server).pop("approved", None)

    def forget_scopes(self, which: Callable[[str], bool]) -> None:
        """Forget what the users of those scopes said to the tools of every server."""
        with self._lock, self._editing() as document:
            servers = document.get("servers")
            for pinned in servers.values() if isinstance(servers, dict) else ():
                if isinstance(pinned, dict) and (approved := _approved(pinned)):
                    pinned["approved"] = {scope: names for scope, names in approved.items() if not which(scope)}

    def forget(self, server: str) -> None:
        """Drop a server's pins: the next one of its name is another server, seen for the first time."""
        with self._lock, self._editing() as document:
            servers = document.get("servers")
            if isinstance(servers, dict):
                servers.pop(server, None)

    @contextmanager
    def _editing(self) -> Iterator[Document]:
        try:
            with self._kept.editing() as draft:
                document = {} if draft.data is None else document_of(draft.data, self._kept.where)
                before = _as_data(document)
                yield document
                after = _as_data(document)
                if after != before or draft.data is None:
                    draft.data = after
        except StateUnavailable:
            raise
        except OSError as error:
            raise unusable(f"{self._kept.where} cannot be used", error) from None

    def _read(self) -> Document:
        try:
            data = self._kept.read()
        except StateUnavailable:
            raise
        except OSError as error:
            raise unusable(f"{self._kept.where} cannot be read", error) from None
        return {} if data is None else document_of(data, self._kept.where)


def _as_data(document: Document) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def refusal(server: str, changed: Sequence[str]) -> Quarantined:
    """Return the error for a call to a quarantined server."""
    names = ", ".join(changed[:5]) + (" and others" if len(changed) > 5 else "")  # noqa: PLR2004 - a list one can read
    return Quarantined(
        f"The server {server!r} is quarantined: what it says about {names} changed since it was first seen. "
        f"Let the user look at it with {test_of(server)} and accept it with --accept."
    )


def _pinned(document: Document, server: str) -> Document:
    servers = document.setdefault("servers", {})
    pinned = servers.setdefault(server, {}) if isinstance(servers, dict) else None
    if not isinstance(pinned, dict):
        raise ConfigurationRefused("The file of pins is not as sealab writes it. Restore it from a backup.")
    return cast("Document", pinned)


def _hashes(pinned: Document) -> dict[str, str]:
    known = pinned.get("tools", {})
    if not isinstance(known, dict) or not all(isinstance(each, str) for each in known.values()):
        raise ConfigurationRefused("The file of pins is not as sealab writes it. Restore it from a backup.")
    return known


def _approved(pinned: Document) -> dict[str, dict[str, list[_Rule]]]:
    """Return the rules of each scope by tool. A list of names, of an earlier version, allows what names nothing."""
    approved = pinned.get("approved", {})
    if not isinstance(approved, dict) or not all(isinstance(each, dict | list) for each in approved.values()):
        raise ConfigurationRefused("The file of pins is not as sealab writes it. Restore it from a backup.")
    plain = StandingApproval({}, {}).as_json()
    found = {
        scope: tools if isinstance(tools, dict) else {str(name): [plain] for name in tools}
        for scope, tools in approved.items()
    }
    rules = (each for tools in found.values() for rules in tools.values() for each in rules)
    if not all(isinstance(each, dict) and each.keys() == plain.keys() for each in rules):
        raise ConfigurationRefused("The file of pins is not as sealab writes it. Restore it from a backup.")
    return found


def _quarantined(pinned: Document) -> list[str]:
    names = pinned.get("quarantined", [])
    if not isinstance(names, list):
        raise ConfigurationRefused("The file of pins is not as sealab writes it. Restore it from a backup.")
    return [str(name) for name in names]
