"""Writes sealab's own entry into the configuration of another MCP client, which then starts it.

A change is planned first, as the whole new text, and read again before it is offered: it says what the old text said
and the entry, nothing else. It is written whole or not at all, over the text that it was planned for, once a copy of
that text is kept. What cannot be done so is refused, and the file stays as it is.
"""

from __future__ import annotations

import copy
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigurationRefused
from ..files import locked, write_whole
from ..itself import starts_sealab
from .documents import parsed
from .entries import read_entry
from .insertion import Insertion, into_json, into_toml, into_yaml
from .places import MCP_SERVERS, Keys, places

NAME = "sealab"

Entry = dict[str, object]

_EDITORS: Mapping[str, Callable[[str, Keys, str, Mapping[str, object]], Insertion]] = {
    ".toml": into_toml,
    ".yaml": into_yaml,
    ".yml": into_yaml,
}


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The file in which a client that is on this machine keeps a user's servers, and under which keys."""

    client: str
    path: Path
    keys: Keys


@dataclass(frozen=True, slots=True)
class Change:
    """What would be written: `before` is None where there is no such file, `added` what is put into it."""

    file: ClientFile
    before: bytes | None
    after: str
    added: str


def client_files(user: Path, environment: Mapping[str, str]) -> list[ClientFile]:
    """Return one file of each client that is on this machine: its file exists, or the folder that it belongs into."""
    found: dict[str, ClientFile] = {}
    for place in places(user, Path("/nonexistent"), environment):
        known = found.get(place.client)
        settings = (place.client, place.path.name) == ("vscode", "settings.json")
        if place.project or place.client == "mcp" or settings:
            continue
        folder = user / ".claude" if place.client == "claude-code" else place.path.parent
        first, better = known is None, known is None or not known.path.exists()
        if (better and place.path.exists()) or (first and folder.is_dir()):
            found[place.client] = ClientFile(place.client, place.path, _keys(place.client, place.keys))
    return list(found.values())


def _keys(client: str, keys: Sequence[Keys]) -> Keys:
    """Return the keys that a client writes today."""
    return {"opencode": ("mcp",)}.get(client, MCP_SERVERS if MCP_SERVERS in keys and client != "vscode" else keys[0])


def entry_of(client: str, command: Sequence[str]) -> Entry:
    """Return the entry that starts a command, in the form of a client."""
    program, *arguments = command
    match client:
        case "claude-code" | "vscode":
            return {"type": "stdio", "command": program, "args": arguments}
        case "copilot":
            return {"type": "local", "command": program, "args": arguments, "tools": ["*"]}
        case "opencode":
            return {"type": "local", "command": [*command], "enabled": True}
        case "zed":
            return {"source": "custom", "command": program, "args": arguments, "env": {}}
        case "goose":
            return {"type": "stdio", "name": NAME, "enabled": True, "cmd": program, "args": arguments, "timeout": 300}
        case _:
            return {"command": program, "args": arguments}


def plan_entry(file: ClientFile, command: Sequence[str], user: Path) -> Change | None:
    """Return the change that gives a client its entry, or None where it has one.

    Raises `ConfigurationRefused` where the file cannot be changed without doubt.
    """
    before = _content(file.path)
    document = {} if before is None else parsed(before, file.path.suffix)
    if document is None:
        document = {}
    servers = _servers(document, file.keys)
    for name, raw in servers.items():
        if _is_sealab(file.client, str(name), raw, user):
            return None
    if NAME in servers:
        raise ConfigurationRefused(f"it has another server of the name {NAME!r}. Rename that one.")
    entry = entry_of(file.client, command)
    try:
        text = "" if before is None else before.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationRefused("it is not UTF-8 text. Save it as UTF-8.") from None
    parts = _EDITORS.get(file.path.suffix.lower(), into_json)(text, file.keys, NAME, entry)
    after = "".join(parts)
    if not _says(after, file.path.suffix, _with_entry(document, file.keys, entry)):
        raise ConfigurationRefused("it is not laid out as its client writes it. Add the entry by hand.")
    return Change(file, before, after, parts.added)


def write(change: Change, backups: Path) -> Path | None:
    """Write a change and return the copy of what was there, which is kept in the folder `backups`; None for no file.

    Raises `ConfigurationRefused` where the file changed since, or cannot be written; then it is as it was.
    """
    path = Path(os.path.realpath(change.file.path))
    try:
        with locked(path):
            if _content(path) != change.before:
                raise ConfigurationRefused("it was changed meanwhile. Try again.")
            kept = None if change.before is None else _kept(change.before, path, backups)
            mode = 0o600 if change.before is None else stat.S_IMODE(path.stat().st_mode)
            write_whole(path, change.after, mode=mode)
    except OSError as error:
        raise ConfigurationRefused(f"it cannot be written: {error.strerror}. Change its permissions.") from None
    return kept


def _content(path: Path) -> bytes | None:
    """Return what stands in a file that may be written, None where there is none. Raises `ConfigurationRefused`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigurationRefused("it is a link to a file that is not there. Remove it.") from None
        return None
    except OSError as error:
        raise ConfigurationRefused(f"it cannot be read: {error.strerror}. Change its permissions.") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationRefused("it is not a file. Add the entry by hand.")
    if not found.st_mode & stat.S_IWUSR or found.st_uid != os.geteuid():
        raise ConfigurationRefused("it is read-only, or another user's. Add the entry by hand.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationRefused(f"it cannot be read: {error.strerror}. Change its permissions.") from None


def _servers(document: object, keys: Keys) -> Mapping[object, object]:
    for key in keys:
        if not isinstance(document, Mapping):
            raise ConfigurationRefused("it is not an object. Add the entry by hand.")
        document = document.get(key, {})
    if not isinstance(document, Mapping):
        raise ConfigurationRefused(f"its {'.'.join(keys)} is not an object. Add the entry by hand.")
    return document


def _is_sealab(client: str, name: str, raw: object, user: Path) -> bool:
    try:
        return starts_sealab(read_entry(client, name, raw, user, user).entry)
    except ConfigurationRefused:
        return False


def _with_entry(document: object, keys: Keys, entry: Entry) -> object:
    changed = copy.deepcopy(document)
    inner = changed
    for key in keys:
        assert isinstance(inner, dict)
        inner = inner.setdefault(key, {})
    assert isinstance(inner, dict)
    inner[NAME] = entry
    return changed


def _says(text: str, suffix: str, document: object) -> bool:
    try:
        return parsed(text.encode(), suffix) == document
    except ConfigurationRefused:
        return False


def _kept(content: bytes, path: Path, backups: Path) -> Path:
    """Keep a copy that only its owner can read, under a name that no other copy has; of equal ones the first."""
    backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = 1
    while True:
        copied = backups / f"{path.parent.name.lstrip('.')}-{path.name}.{number}"
        try:
            descriptor = os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if copied.read_bytes() == content:
                return copied
            number += 1
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        return copied
