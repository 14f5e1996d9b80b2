"""Finds the servers of other clients, and says what importing them into `mcp.json` would do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from ..errors import ConfigurationRefused
from ..itself import starts_sealab
from . import documents
from .entries import Entry, read_entry
from .places import CandidateFile, Keys, clients, places
from .secrets import Concealer, Secret


class ImportAction(StrEnum):
    """What an import does with a server that was found."""

    ADD = "add"
    """It is new."""
    SAME = "same"
    """`mcp.json` has it already, or another client's file gave it."""
    CLASH = "clash"
    """Another server has its name; nothing is overwritten."""
    ITSELF = "itself"
    """It is sealab."""
    UNUSABLE = "unusable"
    """It is not a server that sealab can reach."""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server of one file. `scope` names the project that a file of the user keeps it for.

    `entry` is what `mcp.json` gets, `shown` the same without secrets.
    """

    name: str
    client: str
    file: Path
    action: ImportAction
    entry: Entry = field(default_factory=dict, repr=False)
    shown: Entry = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()
    notes: tuple[str, ...] = ()
    scope: str = ""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do; `problems` are files that could not be read, and why."""

    found: tuple[FoundServer, ...]
    problems: tuple[tuple[Path, str], ...]
    files: tuple[Path, ...]

    @property
    def added(self) -> dict[str, Entry]:
        """The entries that `mcp.json` would get."""
        return {each.name: each.entry for each in self.found if each.action is ImportAction.ADD}


def plan(
    present: Mapping[str, object],
    user: Path,
    project: Path,
    environment: Mapping[str, str],
    *,
    only: Collection[str] = (),
    copy_secrets: bool = False,
) -> ImportPlan:
    """Read every place and compare with the servers present in `mcp.json`.

    `only` names clients. Secrets become references to environment variables unless `copy_secrets`. Raises
    `ConfigurationRefused` for a client that is not known.
    """
    _check_known(only)
    found: list[FoundServer] = []
    problems: list[tuple[Path, str]] = []
    files: list[Path] = []
    concealer = Concealer(environment)
    known = dict(present)
    for place in places(user, project, environment):
        if only and place.client not in only:
            continue
        try:
            document = documents.read(place.path)
        except ConfigurationRefused as error:
            problems.append((place.path, str(error)))
            continue
        if document is None:
            continue
        files.append(place.path)
        for server in _servers(place, document, user, project):
            judged = _judged(server, known, concealer, copy_secrets=copy_secrets)
            if judged.action is ImportAction.ADD:
                known[judged.name] = judged.entry
            found.append(judged)
    return ImportPlan(tuple(found), tuple(problems), tuple(files))


def _check_known(asked: Collection[str]) -> None:
    for client in asked:
        if client not in clients():
            raise ConfigurationRefused(f"{client!r} is not a known client. Use one of {', '.join(clients())}.")


def found_at_start(environment: Mapping[str, str]) -> dict[str, Entry]:
    """Return the servers of Claude's programs and of plain MCP files, as `DISCOVER` adds them, secrets and all.

    Their places are those of this user and of the folder that the process runs in. None of them is sealab itself.
    """
    plan_ = plan({}, Path.home(), Path.cwd(), environment, only=_AT_START, copy_secrets=True)
    return plan_.added


_AT_START = ("claude-desktop", "claude-code", "mcp")


def _servers(place: CandidateFile, document: object, user: Path, project: Path) -> Iterator[FoundServer]:
    answered: list[Keys] = []
    for keys in place.keys:
        if any(longer[: len(keys)] == keys for longer in answered):
            continue  # an older layout of the same file, whose servers stood where the newer one has its folder
        for scope, servers in documents.objects_at(document, keys):
            answered.append(keys)
            for name, raw in servers.items():
                yield _read(place, str(name), raw, user, project=Path(scope) if scope else project, scope=scope)


def _read(place: CandidateFile, name: str, raw: object, user: Path, *, project: Path, scope: str) -> FoundServer:
    try:
        read = read_entry(place.client, name, raw, user, project)
    except ConfigurationRefused as refusal:
        return FoundServer(name, place.client, place.path, ImportAction.UNUSABLE, notes=(str(refusal),), scope=scope)
    action = ImportAction.ITSELF if name.casefold() == "sealab" or starts_sealab(read.entry) else ImportAction.ADD
    return FoundServer(name, place.client, place.path, action, read.entry, notes=read.notes, scope=scope)


def _judged(
    server: FoundServer, known: Mapping[str, object], concealer: Concealer, *, copy_secrets: bool
) -> FoundServer:
    """Return what becomes of a server, without the secrets in what is shown of it."""
    name = server.name
    concealed, secrets = concealer.conceal(name, server.entry)
    entry = server.entry if copy_secrets else concealed
    judged = replace(server, entry=entry, shown=concealed, secrets=tuple(secrets))
    if server.action is not ImportAction.ADD:
        return judged
    if not name.strip() or not name.isprintable():
        return replace(judged, action=ImportAction.UNUSABLE, notes=(*judged.notes, "its name cannot be used"))
    if name not in known:
        return judged
    same = known[name] in (entry, server.entry, concealed)
    return replace(judged, action=ImportAction.SAME if same else ImportAction.CLASH)
