"""Writes sealab's own entry into the configuration of another MCP client, takes others out, and undoes both.

A change is planned first, as the whole new text, and read again before it is offered: it says what the old text said
and the entry, nothing else. It is written whole or not at all, over the text that it was planned for, once a copy of
that text is kept. What cannot be done so is refused, and the file stays as it is.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import ConfigurationRefused
from ..files import locked, write_whole
from ..itself import starts_sealab
from .documents import parsed
from .entries import Entry, read_entry
from .insertion import Insertion, into_json, into_toml, into_yaml, out_of_json, out_of_toml, out_of_yaml
from .places import MCP_SERVERS, Keys, places

NAME = "sealab"


_EDITORS: Mapping[str, Callable[[str, Keys, str, Mapping[str, object]], Insertion]] = {
    ".toml": into_toml,
    ".yaml": into_yaml,
    ".yml": into_yaml,
}


_REMOVERS: Mapping[str, Callable[[str, Keys, Collection[str]], str]] = {
    ".toml": out_of_toml,
    ".yaml": out_of_yaml,
    ".yml": out_of_yaml,
}
_NOTES = "changes.json"
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The file in which a client that is on this machine keeps a user's servers, and under which keys."""

    client: str
    path: Path
    keys: Keys


@dataclass(frozen=True, slots=True)
class EntryChange:
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


def entry_of(client: str, command: Sequence[str], variables: Mapping[str, str] = _NO_VARIABLES) -> Entry:
    """Return the entry that starts a command with environment variables, in the form of a client."""
    program, *arguments = command
    given = {{"opencode": "environment", "goose": "envs"}.get(client, "env"): dict(variables)} if variables else {}
    match client:
        case "claude-code" | "vscode":
            return {"type": "stdio", "command": program, "args": arguments, **given}
        case "copilot":
            return {"type": "local", "command": program, "args": arguments, "tools": ["*"], **given}
        case "opencode":
            return {"type": "local", "command": [*command], "enabled": True, **given}
        case "zed":
            return {"source": "custom", "command": program, "args": arguments, "env": dict(variables)}
        case "goose":
            plain = {"type": "stdio", "name": NAME, "enabled": True, "cmd": program, "args": arguments, "timeout": 300}
            return {**plain, **given}
        case _:
            return {"command": program, "args": arguments, **given}


def plan_entry(
    file: ClientFile, command: Sequence[str], user: Path, variables: Mapping[str, str] = _NO_VARIABLES
) -> EntryChange | None:
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
    entry = entry_of(file.client, command, variables)
    try:
        text = "" if before is None else before.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationRefused("it is not UTF-8 text. Save it as UTF-8.") from None
    parts = _EDITORS.get(file.path.suffix.lower(), into_json)(text, file.keys, NAME, entry)
    after = "".join(parts)
    if not _says(after, file.path.suffix, _with_entry(document, file.keys, entry)):
        raise ConfigurationRefused("it is not laid out as its client writes it. Add the entry by hand.")
    return EntryChange(file, before, after, parts.added)


def plan_removal(file: ClientFile, names: Collection[str], user: Path) -> EntryChange | None:
    """Return the change that takes servers out of a client's file, or None where it has none of them.

    Sealab's own entry is taken out too where its name is among them. Raises as `plan_entry` does.
    """
    before = _content(file.path)
    document = None if before is None else parsed(before, file.path.suffix)
    if before is None or document is None:
        return None
    gone = [
        str(name)
        for name, raw in _servers(document, file.keys).items()
        if name in names and (name != NAME or _is_sealab(file.client, NAME, raw, user))
    ]
    if not gone:
        return None
    rest = copy.deepcopy(document)
    inner: Any = rest
    for key in file.keys:
        inner = inner[key]
    for name in gone:
        del inner[name]
    after = _REMOVERS.get(file.path.suffix.lower(), out_of_json)(before.decode(), file.keys, gone)
    if _without_empty(_read_again(after, file.path.suffix), file.keys) != _without_empty(rest, file.keys):
        raise ConfigurationRefused("it is not laid out as its client writes it. Remove the entries by hand.")
    return EntryChange(file, before, after, ", ".join(gone))


def write(change: EntryChange, backups: Path) -> Path | None:
    """Write a change and return the copy of what was there, which is kept in the folder `backups`; None for no file.

    It can be taken back by `undo`. Raises `ConfigurationRefused` where the file changed since, or cannot be written;
    then it is as it was.
    """
    path = Path(os.path.realpath(change.file.path))
    try:
        with locked(path):
            if _content(path) != change.before:
                raise ConfigurationRefused("it was changed meanwhile. Try again.")
            kept = None if change.before is None else _kept(change.before, path, backups)
            mode = 0o600 if change.before is None else stat.S_IMODE(path.stat().st_mode)
            write_whole(path, change.after, mode=mode)
            _note(backups, change, kept)
    except OSError as error:
        raise ConfigurationRefused(f"it cannot be written: {error.strerror}. Change its permissions.") from None
    return kept


def undo(backups: Path) -> Iterator[tuple[Path, str | None]]:
    """Put each file that was changed back as it was at first; give it, with why it stays where it does.

    A file that somebody changed since stays. One that was made is removed.
    """
    for place, written in _notes(backups).items():
        try:
            _restore(Path(place), written["before"], written["after"])
            _keep_notes(backups, {each: notes for each, notes in _notes(backups).items() if each != place})
        except ConfigurationRefused as refusal:
            yield Path(place), str(refusal)
        except OSError as error:
            yield Path(place), f"it cannot be written: {error.strerror}. Change its permissions."
        else:
            yield Path(place), None


def _restore(path: Path, kept: str | None, after: str) -> None:
    real = Path(os.path.realpath(path))
    with locked(real):
        now = _content(path)
        if now is None or _hashed(now) != after:
            where = "" if kept is None else f" What it was is kept in {kept}."
            raise ConfigurationRefused(f"it was changed since.{where}")
        if kept is None:
            path.unlink()
        else:
            write_whole(real, Path(kept).read_bytes().decode(), mode=stat.S_IMODE(path.stat().st_mode))


def _notes(backups: Path) -> dict[str, Any]:
    """Return what was written, by file: the copy of what was there at first, and the hash of what was written last."""
    try:
        found = json.loads((backups / _NOTES).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _note(backups: Path, change: EntryChange, kept: Path | None) -> None:
    """Note what was written: what was there at first is still that, unless somebody else changed the file since."""
    notes = _notes(backups)
    known = notes.get(str(change.file.path))
    before: str | None = None if kept is None else str(kept)
    if known is not None and change.before is not None and _hashed(change.before) == known["after"]:
        before = known["before"]
    notes[str(change.file.path)] = {"before": before, "after": _hashed(change.after.encode())}
    _keep_notes(backups, notes)


def _keep_notes(backups: Path, notes: Mapping[str, Any]) -> None:
    backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(backups / _NOTES, json.dumps(notes, indent=1), mode=0o600)


def _hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_again(text: str, suffix: str) -> object:
    try:
        return parsed(text.encode(), suffix)
    except ConfigurationRefused:
        return None


def _without_empty(document: object, keys: Keys) -> object:
    """Return a document without the tables that `keys` lead to where nothing is in them; in YAML they are null then."""
    if not keys or not isinstance(document, dict):
        return document
    inner = _without_empty(document.get(keys[0]), keys[1:])
    rest = {name: each for name, each in document.items() if name != keys[0]}
    return {**rest, keys[0]: inner} if inner else rest


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
    return _read_again(text, suffix) == document


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
