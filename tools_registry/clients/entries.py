"""Turns one server, as another client writes it, into an entry of `mcp.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..configuration import transport_of
from ..errors import ConfigurationRefused

Entry = dict[str, object]

_TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "sse": "sse",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
}
_NOT_SERVERS = frozenset({"builtin", "platform", "frontend", "inline_python", "sdk", "ws", "websocket"})
_PATTERNS = (
    ("allow", "includeTools", "enabled_tools"),
    ("deny", "excludeTools", "disabled_tools", "disabledTools"),
)
# One without its end is taken to the end of the text, or each that begins in it would be looked at anew.
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}?|\{env:([A-Za-z_]\w*)\}")
_BARE_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?::-.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Read:
    """A server's entry for `mcp.json`, and what a user should know of how it was read."""

    entry: Entry
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Texts:
    """Translates a client's placeholders into `${VAR}`, and remembers what has to be said."""

    client: str
    user: Path
    project: Path
    server: str
    notes: list[str] = field(default_factory=list)

    def text(self, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int | float):
            raise ConfigurationRefused("a text was expected where something else stands")
        translated = _PLACEHOLDER.sub(self._placeholder, str(value))
        return _BARE_VARIABLE.sub(r"${\1}", translated) if self.client == "gemini" else translated

    def _placeholder(self, found: re.Match[str]) -> str:
        inner, braced = found.groups()
        if not found[0].endswith("}"):
            return found[0]
        if braced is not None:
            return f"${{{braced}}}"
        places = {
            "workspaceFolder": str(self.project),
            "workspaceRoot": str(self.project),
            "userHome": str(self.user),
            "pathSeparator": "/",
            "/": "/",
        }
        if inner in places:
            return places[inner]
        if inner.startswith("env:"):
            return f"${{{inner.removeprefix('env:')}}}"
        if inner.startswith("input:"):
            wanted = f"{self.server}_{inner.removeprefix('input:')}"
            variable = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_").upper() or "INPUT"
            self.notes.append(f"set {variable} in sealab's environment: the other client asks its user for it")
            return f"${{{variable}}}"
        if not _VARIABLE.fullmatch(inner):
            self.notes.append(f"{found[0]} means nothing to sealab: correct it in mcp.json")
        return found[0]


def read_entry(client: str, server: str, raw: object, user: Path, project: Path) -> Read:
    """Return the entry for a server as a client wrote it. Raises `ConfigurationRefused` where it is not a server."""
    if not isinstance(raw, Mapping):
        raise ConfigurationRefused("it is not an object")
    texts = _Texts(client, user, project, server)
    command, args = _command(raw, texts)
    url = _first(raw, "url", "serverUrl", "httpUrl", "uri", "endpoint")
    kind = _kind(client, raw)
    entry: Entry = {}
    if command and kind in {None, "stdio"}:
        entry["command"] = command
        entry |= {"args": args} if args else {}
        environment = _environment(raw, texts)
        entry |= {"env": environment} if environment else {}
        folder = _first(raw, "cwd", "workingDirectory", "working_directory")
        entry |= {"cwd": texts.text(folder)} if folder else {}
    elif isinstance(url, str) and url:
        entry["type"] = kind if kind in {"sse", "http"} else transport_of(url).value
        entry["url"] = texts.text(url)
        headers = _headers(raw, texts)
        entry |= {"headers": headers} if headers else {}
    else:
        raise ConfigurationRefused("it has neither a command nor a url")
    if raw.get("disabled") is True or raw.get("enabled") is False:
        entry["disabled"] = True
    _policy(client, raw, entry, texts)
    if raw.get("envFile"):
        texts.notes.append("its envFile is not read: set those variables in sealab's environment")
    return Read(entry, tuple(dict.fromkeys(texts.notes)))


def _command(raw: Mapping[str, object], texts: _Texts) -> tuple[str, list[str]]:
    """Return program and arguments from any of the shapes: two keys, one list, or an object with a path."""
    program, more = _first(raw, "command", "cmd"), raw.get("args")
    if isinstance(program, Mapping):
        more = program.get("args") or more
        program = _first(program, "path", "command")
    before: list[object] = []
    if isinstance(program, list):
        program, *before = program or [None]
    if program is None:
        return "", []
    if not isinstance(more, list | None):
        raise ConfigurationRefused("its args are not a list")
    return texts.text(program), [texts.text(each) for each in [*before, *(more or [])]]


def _environment(raw: Mapping[str, object], texts: _Texts) -> dict[str, str]:
    result: dict[str, str] = {}
    nested = raw.get("command")
    for holder in (nested if isinstance(nested, Mapping) else {}, raw):
        for key in ("env", "environment", "envs"):
            given = holder.get(key)
            if isinstance(given, Mapping):
                result |= {str(name): texts.text(value) for name, value in given.items() if value is not None}
    # Names alone: the client passes its own variable on (Codex), or keeps the value in a keyring (Goose).
    for key in ("env_vars", "env_keys"):
        names = raw.get(key)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and name not in result:
                result[name] = f"${{{name}}}"
                if key == "env_keys":
                    texts.notes.append(f"set {name} in sealab's environment: the other client keeps it in a keyring")
    return result


def _headers(raw: Mapping[str, object], texts: _Texts) -> dict[str, str]:
    result: dict[str, str] = {}
    request = raw.get("requestInit")
    for holder, key in ((request, "headers"), (raw, "headers"), (raw, "http_headers"), (raw, "httpHeaders")):
        given = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(given, Mapping):
            result |= {str(name): texts.text(value) for name, value in given.items() if value is not None}
    from_variables = raw.get("env_http_headers")
    if isinstance(from_variables, Mapping):
        result |= {str(name): f"${{{variable}}}" for name, variable in from_variables.items()}
    bearer = raw.get("bearer_token_env_var")
    if isinstance(bearer, str) and bearer:
        result["Authorization"] = f"Bearer ${{{bearer}}}"
    return result


def _kind(client: str, raw: Mapping[str, object]) -> str | None:
    given = _first(raw, "type", "transport", "transportType")
    if isinstance(given, str):
        folded = given.casefold()
        if folded in _NOT_SERVERS:
            raise ConfigurationRefused(f"its type {given} is not one that sealab can reach")
        return _TYPES.get(folded)
    if client == "gemini" and raw.get("url") and not raw.get("httpUrl"):
        return "sse"
    return None


def _policy(client: str, raw: Mapping[str, object], entry: Entry, texts: _Texts) -> None:
    """Keep what a user has said about tools and times; of approvals only what asks more often."""
    for ours, theirs in (
        ("allow", ("includeTools", "enabled_tools")),
        ("deny", ("excludeTools", "disabled_tools", "disabledTools")),
    ):
        given = _first(raw, *theirs)
        if isinstance(given, list) and given and all(isinstance(each, str) and each for each in given):
            entry[ours] = [*given]
    seconds = {
        "connect_timeout_seconds": raw.get("startup_timeout_sec"),
        "call_timeout_seconds": raw.get("tool_timeout_sec") or (raw.get("timeout") if client == "goose" else None),
    }
    if client == "gemini" and isinstance(raw.get("timeout"), int | float):
        seconds["call_timeout_seconds"] = float(str(raw["timeout"])) / 1000
    for key in ("category", "connect_timeout_seconds", "call_timeout_seconds", "allow", "deny"):
        value = seconds.get(key) or raw.get(key)
        if value is not None and key not in entry:
            entry[key] = value
    if raw.get("approve") == "always":
        entry["approve"] = "always"
    elif raw.get("approve") is not None:
        texts.notes.append("its approve is not taken, since it may ask less often: say it in mcp.json")


def _first(raw: Mapping[str, object], *keys: str) -> object:
    return next((raw[key] for key in keys if raw.get(key) is not None), None)
