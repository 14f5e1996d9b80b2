"""Reads and writes `mcp.json`: which upstream servers there are, how they are reached, and what they may be asked.

A missing file is an empty configuration. A file that is not valid JSON is an error; one server that is wrong is
reported by name in `Configuration.problems`, cannot be used, and leaves the others alone. `${VAR}` and
`${VAR:-default}` stand for environment variables in `command`, `args`, `env`, `cwd`, `url`, `openapi`, `headers` and
`token_exchange`;
as in a shell, the default also counts where the variable is empty. What other clients keep in the file is left as it
is, in its order.
"""

from __future__ import annotations

import difflib
import errno
import fcntl
import json
import logging
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from .errors import ConfigurationRefused, ServerUnknown, ServerUnusable
from .files import write_whole
from .itself import starts_sealab
from .models import Tool
from .names import test_of

_LOG = logging.getLogger(__name__)

Document = dict[str, object]
"""A whole `mcp.json` as it was read."""


class Transport(StrEnum):
    """How a server is reached: by its stdin and stdout, by HTTP with server-sent events, or by streamable HTTP.

    What an OpenAPI document describes is reached by plain HTTP.
    """

    STDIO = "stdio"
    SSE = "sse"
    HTTP = "http"
    OPENAPI = "openapi"


def transport_of(url: str) -> Transport:
    """Return how a server at that address is reached where its entry does not say: the old SSE has its own path."""
    return Transport.SSE if urlsplit(url).path.rstrip("/").endswith("/sse") else Transport.HTTP


class Approve(StrEnum):
    """Which calls need a user's yes: none, those of tools that may write, or all."""

    NEVER = "never"
    WRITES = "writes"
    ALWAYS = "always"


class SignInOf(StrEnum):
    """Whose account a server sees: that of the operator, of the tenant, or of the caller."""

    OPERATOR = "operator"
    TENANT = "tenant"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class TokenExchange:
    """Where a caller's own token is exchanged for one that the server takes (RFC 8693); empty texts are not sent."""

    token_endpoint: str
    audience: str
    scope: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, checked, with its variables expanded. Times are in seconds.

    `allow`, `deny`, `reads` and `writes` hold patterns of tool names (`*`, `?`, `[…]`); `allow` None allows all. What
    `reads` and `writes` say of a tool goes before what its server says. `openapi` is the address or the path of a
    document; `url` then says where its service is, or is empty where the document says it. `restore` is the privacy
    part of the server's policy, as written; `allow_tokens` holds patterns of the tools that may be given tokens of
    personal data as they are. `free_arguments` holds patterns of `tool.argument` whose values may come from anywhere,
    and `known_parties` of values that the operator vouches for. `max_connections` bounds the requests at once of all
    sealab servers on one database together to a server that is reached by HTTP. `sign_in` says whose account the server
    sees, and `token_exchange` how a caller's own token gets it. What may hold secrets is left out of the
    representation.
    """

    name: str
    type: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    openapi: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    category: str | None = None
    connect_timeout_seconds: float = 30.0
    call_timeout_seconds: float = 60.0
    idle_seconds: float = 300.0
    max_connections: int | None = None
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    approve: Approve = Approve.WRITES
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    restore: object = None
    allow_tokens: tuple[str, ...] = ()
    free_arguments: tuple[str, ...] = ()
    known_parties: tuple[str, ...] = ()
    sign_in: SignInOf = SignInOf.OPERATOR
    token_exchange: TokenExchange | None = None

    def permits(self, tool: str) -> bool:
        """Return whether a tool of this name may be seen and called; `deny` wins over `allow`."""
        if any(fnmatchcase(tool, pattern) for pattern in self.deny):
            return False
        return self.allow is None or any(fnmatchcase(tool, pattern) for pattern in self.allow)

    def says_reads(self, tool: str) -> bool | None:
        """Return whether the operator says that a tool of this name only reads; None where nothing is said."""
        if any(fnmatchcase(tool, pattern) for pattern in self.writes):
            return False
        return True if any(fnmatchcase(tool, pattern) for pattern in self.reads) else None

    def takes_tokens(self, tool: str) -> bool:
        """Return whether a tool of this name may be given tokens of personal data as they are."""
        return any(fnmatchcase(tool, pattern) for pattern in self.allow_tokens)

    def only_reads(self, tool: Tool) -> bool:
        """Return whether a tool of this server only reads, by the operator's word, else by the server's own."""
        said = self.says_reads(tool.name)
        return tool.read_only if said is None else said


@dataclass(frozen=True, slots=True)
class Configuration:
    """What `mcp.json` says: the servers that can be used, and for the others what is wrong with them."""

    servers: Mapping[str, ServerConfig] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def enabled(self) -> Mapping[str, ServerConfig]:
        """The servers that can be called."""
        return {name: server for name, server in self.servers.items() if not server.disabled}

    def server(self, name: str) -> ServerConfig:
        """Return a server that can be called.

        Raises `ServerUnknown` with the nearest names, and `ServerUnusable` where it is disabled or its entry is wrong.
        """
        if name in self.problems:
            raise self.unusable(name)
        if name not in self.servers:
            known = [*self.servers, *self.problems]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:10]
            offered = f"Use {' or '.join(near)}." if near else "Add one with `sealab servers add`."
            raise ServerUnknown(f"There is no server {name!r} in mcp.json. {offered}")
        server = self.servers[name]
        if server.disabled:
            raise ServerUnusable(f'The server {name!r} is disabled. Remove "disabled" from its entry in mcp.json.')
        return server

    def unusable(self, name: str) -> ServerUnusable:
        """Return the error for a server whose entry is wrong; why may hold what is configured, or a variable."""
        message = f"The entry of the server {name!r} in mcp.json cannot be used. See {test_of(name)}."
        return ServerUnusable(message, for_operator=self.problems[name])


def split_command(line: str) -> list[str]:
    """Return the program and the arguments of a command that was given as one text; one word for what is a file."""
    if not any(map(str.isspace, line)) or os.path.exists(line):
        return [line]
    try:
        return shlex.split(line) or [line]
    except ValueError:
        return [line]


def network_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which programs find proxies and certificates, those that are set."""
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
    proxies = [f"{scheme}_PROXY" for scheme in ("HTTP", "HTTPS", "ALL", "NO")]
    wanted = (*named, *proxies, *map(str.lower, proxies))
    return {name: environment[name] for name in wanted if environment.get(name)}


def read(path: Path, environment: Mapping[str, str], more: Mapping[str, object] | None = None) -> Configuration:
    """Read `mcp.json`; raise `ConfigurationRefused` where the file as a whole cannot be used.

    `more` are entries from elsewhere; those of `mcp.json` win.
    """
    servers: dict[str, ServerConfig] = {}
    problems: dict[str, str] = {}
    for name, entry in {**(more or {}), **servers_of(read_document(path), path)}.items():
        try:
            servers[name] = read_server(name, entry, environment)
        except ConfigurationRefused as error:
            problems[name] = f"{path.name}: {error}"
    return Configuration(MappingProxyType(servers), MappingProxyType(problems))


def read_server(name: str, entry: object, environment: Mapping[str, str]) -> ServerConfig:
    """Check one server's entry and expand its variables; raise `ConfigurationRefused`, which names server and key."""
    if not name.strip() or not name.isprintable():
        raise ConfigurationRefused(f"The server name {name!r} cannot be used. Give it a name of visible characters.")
    if not isinstance(entry, dict):
        raise ConfigurationRefused(f"The server {name!r} is not an object. Give it at least a command or a url.")
    return _Entry(name, entry, environment).read()


def read_document(path: Path) -> Document:
    """Read the file as it is; a missing one is empty. Raises `ConfigurationRefused`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unusable(f"{path} cannot be read", error) from None
    return document_of(data, str(path))


def unusable(what: str, error: OSError) -> ConfigurationRefused:
    """Return the error for a file that cannot be read or written."""
    return ConfigurationRefused(f"{what}: {error.strerror}. {_remedy(error)}")


def document_of(data: bytes, path: str) -> Document:
    """Return the JSON object that a file holds. Raises `ConfigurationRefused`, which names it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationRefused(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ConfigurationRefused(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}. Correct it there."
        ) from None
    except _Repeated as error:
        raise ConfigurationRefused(f"{path} has the key {error.args[0]!r} twice in one object. Remove one.") from None
    except ValueError:
        raise ConfigurationRefused(f"{path} holds a number of too many digits. Write it as a string.") from None
    except RecursionError:
        raise ConfigurationRefused(f"{path} is nested too deeply. Make it flatter.") from None
    if not isinstance(document, dict):
        raise ConfigurationRefused(f'{path} is not a JSON object. Write {{"mcpServers": {{}}}} into it.')
    return document


def servers_of(document: Document, path: Path) -> dict[str, object]:
    """Return the document's `mcpServers`; raise `ConfigurationRefused` where that is not an object."""
    servers = document.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise ConfigurationRefused(f'"mcpServers" in {path} is not an object. Make it one, with a key for each server.')
    return servers


@contextmanager
def editing(path: Path) -> Iterator[Document]:
    """Give the document to change, and write it whole if the block changed it and ended well; one editor at a time.

    The new file stands beside the old one until it is complete, so a crash leaves either the old or the new. A file
    that is made here can be read by its owner alone, since it may hold secrets. Raises `ConfigurationRefused`.
    """
    real = Path(os.path.realpath(path))
    try:
        folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationRefused(f"{real.parent} cannot be used: {error.strerror}. Name another home.") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        document = read_document(path)
        before = _as_text(document)
        yield document
        if _as_text(document) == before and real.exists():
            return
        try:
            mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
            write_whole(real, _as_text(document), mode=mode)
            os.fsync(folder)
        except OSError as error:
            raise unusable(f"{path} cannot be written", error) from None
    finally:
        os.close(folder)


_ADDRESS_CHARS_MAX = 2_000
_PLAIN = f"an address of at most {_ADDRESS_CHARS_MAX} ASCII characters without a user; a password goes into a header"


def _is_plain(address: str) -> bool:
    return len(address) <= _ADDRESS_CHARS_MAX and address.isascii() and "@" not in urlsplit(address).netloc


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _as_text(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _remedy(error: OSError) -> str:
    """Return what to do about a file that cannot be read or written."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "Free some space there."
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return "Raise the limit of open files."
    return "Change its permissions."


class _Repeated(ValueError):
    """A key stands twice in one object: which of the two counts would be a guess."""


def _without_repeats(pairs: list[tuple[str, object]]) -> Document:
    result: Document = {}
    for key, value in pairs:
        if key in result:
            raise _Repeated(key)
        result[key] = value
    return result


# One without its end is taken to the end of the text, or each that begins in it would be looked at anew.
_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_NAMED = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Mapping[str, Transport] = MappingProxyType(
    {
        "stdio": Transport.STDIO,
        "sse": Transport.SSE,
        "http": Transport.HTTP,
        "streamable-http": Transport.HTTP,
        "streamable_http": Transport.HTTP,
        "streamablehttp": Transport.HTTP,
        "openapi": Transport.OPENAPI,
    }
)
_POLICY = (
    "allow",
    "deny",
    "approve",
    "reads",
    "writes",
    "restore",
    "allow_tokens",
    "free_arguments",
    "known_parties",
    "disabled",
    "allow_self",
    "sign_in",
    "token_exchange",
)
_CONNECTIONS_MAX = 10_000
_EXCHANGE_KEYS = ("token_endpoint", "audience", "scope", "client_id", "client_secret")
_MISSPELLED_ABOVE = 0.84
_LONGEST_SECONDS = 86_400.0


class _Entry:
    """Reads one server's entry: `read` has a line for each key, and every error names the key and what to give.

    pydantic would be imported for it alone: 0.13 s of CPU time, where `sealab servers list` takes 0.16 s in all.
    """

    def __init__(self, name: str, entry: Mapping[str, object], environment: Mapping[str, str]) -> None:
        self.name = name
        self.entry = entry
        self.environment = environment

    def read(self) -> ServerConfig:
        self._refuse_misspelled_policy()
        if starts_sealab(self.entry) and not self._flag("allow_self"):
            raise ConfigurationRefused(
                f"The server {self.name!r} is sealab, which would start itself without an end. Remove it, or give it a "
                'home of its own in "env" and say "allow_self": true.'
            )
        kind = self._transport()
        here, described = kind is Transport.STDIO, kind is Transport.OPENAPI
        command, *more = [""] if not here else [self._text("command")] if "args" in self.entry else self._command()
        return ServerConfig(
            name=self.name,
            type=kind,
            command=command,
            args=(*more, *(self._texts("args") if here else ())),
            env=self._mapping("env") if here else {},
            cwd=os.path.expanduser(self._text("cwd")) if here and self.entry.get("cwd") is not None else None,
            url="" if here or (described and self.entry.get("url") is None) else self._url(plain=described),
            openapi=self._openapi() if described else "",
            headers={} if here else self._headers(),
            disabled=self._flag("disabled"),
            category=self._text("category") if self.entry.get("category") is not None else None,
            connect_timeout_seconds=self._seconds("connect_timeout_seconds", 30.0),
            call_timeout_seconds=self._seconds("call_timeout_seconds", 60.0),
            idle_seconds=self._seconds("idle_seconds", 300.0),
            max_connections=self._max_connections(kind),
            allow=self._patterns("allow"),
            deny=self._patterns("deny") or (),
            approve=self._approve(),
            reads=self._patterns("reads") or (),
            writes=self._patterns("writes") or (),
            restore=self._restore(),
            allow_tokens=self._tokens(),
            free_arguments=self._patterns("free_arguments") or (),
            known_parties=self._patterns("known_parties") or (),
            sign_in=self._sign_in(kind),
            token_exchange=self._token_exchange(),
        )

    def _command(self) -> list[str]:
        """Return a command without `args`, as which people give a whole line too."""
        line = self._text("command")
        parts = split_command(line)
        if len(parts) > 1:
            _LOG.warning("The command of the server %r is one text. It is started as: %s", self.name, shlex.join(parts))
        return parts

    def _wrong(self, key: str, wanted: str) -> ConfigurationRefused:
        return ConfigurationRefused(f"{key!r} of the server {self.name!r} cannot be used. Give {wanted}.")

    def _refuse_misspelled_policy(self) -> None:
        """Other clients' keys pass, but a policy that is misspelled would be a policy that does not hold."""
        for key in self.entry:
            near = difflib.get_close_matches(key.lower(), _POLICY, n=1, cutoff=_MISSPELLED_ABOVE)
            if near and key not in _POLICY:
                raise ConfigurationRefused(
                    f"The server {self.name!r} has a key {key!r}, which looks like {near[0]!r}. Correct or remove it."
                )

    def _transport(self) -> Transport:
        given = self.entry.get("type", self.entry.get("transport"))
        has_command, has_url = (self.entry.get(key) is not None for key in ("command", "url"))
        if given is not None:
            kind = _TYPES.get(given.lower()) if isinstance(given, str) else None
            if kind is None:
                raise self._wrong("type", "stdio, sse, http or openapi")
            needed = {Transport.STDIO: "command", Transport.OPENAPI: "openapi"}.get(kind, "url")
            if self.entry.get(needed) is None:
                raise ConfigurationRefused(f"The server {self.name!r} has no {needed!r}. Its type {given!r} needs one.")
            return kind
        if self.entry.get("openapi") is not None:
            if has_command:
                raise ConfigurationRefused(
                    f"The server {self.name!r} has a command and an OpenAPI document. Keep one of the two."
                )
            return Transport.OPENAPI
        if has_command and has_url:
            raise ConfigurationRefused(
                f"The server {self.name!r} has a command and a url. Keep one, or say which with 'type'."
            )
        if has_command:
            return Transport.STDIO
        if has_url:
            return transport_of(self._text("url"))
        raise ConfigurationRefused(f"The server {self.name!r} has neither a command nor a url. Give it one.")

    def _expanded(self, key: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._wrong(key, "text")
        text = _VARIABLE.sub(
            lambda found: self._variable(key, found[1]) if found[0].endswith("}") else found[0], str(value)
        )
        if "\0" in text:
            raise self._wrong(key, "text without NUL")
        return text

    def _variable(self, key: str, inner: str) -> str:
        named = _NAMED.fullmatch(inner)
        if named is None:
            raise ConfigurationRefused(
                f"The server {self.name!r} has ${{{inner}}} in {key!r}, which is not an environment variable. "
                "Write ${NAME} or ${NAME:-default}."
            )
        variable, default = named.groups()
        value = self.environment.get(variable)
        if value is None and default is None and self.entry.get("disabled") is True:
            return f"${{{inner}}}"
        if value is None and default is None:
            raise ConfigurationRefused(
                f"The server {self.name!r} needs the environment variable {variable} for {key!r}, which is not set. "
                f"Set it, or write ${{{variable}:-default}}."
            )
        return default if default is not None and not value else value or ""

    def _text(self, key: str) -> str:
        text = self._expanded(key, self.entry[key])
        if not text.strip():
            raise self._wrong(key, "a text that is not empty")
        return text

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self.entry.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._wrong(key, "a list of texts")
        return tuple(self._expanded(key, each) for each in value)

    def _mapping(self, key: str) -> dict[str, str]:
        value = self.entry.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(key, "an object of texts")
        return {name: self._expanded(f"{key}.{name}", each) for name, each in value.items()}

    def _headers(self) -> dict[str, str]:
        headers = self._mapping("headers")
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not value.isascii() or any(mark in value for mark in "\r\n"):
                raise self._wrong(f"headers.{name}", "a header of ASCII characters on one line")
        return headers

    def _url(self, *, plain: bool) -> str:
        url = self._text("url").strip()
        if not _is_address(url):
            raise self._wrong("url", "an address that begins with http:// or https://")
        if plain and not _is_plain(url):
            raise self._wrong("url", _PLAIN)
        return url

    def _openapi(self) -> str:
        where = self._text("openapi").strip()
        if _is_address(where):
            if not _is_plain(where):
                raise self._wrong("openapi", _PLAIN)
            return where
        path = os.path.expanduser(where)
        if not os.path.isabs(path):
            raise self._wrong("openapi", "an address that begins with http:// or https://, or an absolute path")
        return path

    def _flag(self, key: str) -> bool:
        value = self.entry.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def _seconds(self, key: str, default: float) -> float:
        value = self.entry.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number of seconds")
        if not 0 < value <= _LONGEST_SECONDS:
            raise self._wrong(key, f"a number of seconds above 0, up to {_LONGEST_SECONDS:g}")
        return float(value)

    def _max_connections(self, kind: Transport) -> int | None:
        value = self.entry.get("max_connections")
        if value is None:
            return None
        if kind is Transport.STDIO:
            raise ConfigurationRefused(
                f"The server {self.name!r} has max_connections, which is for servers that are reached by HTTP. "
                "Remove it."
            )
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _CONNECTIONS_MAX:
            raise self._wrong("max_connections", f"a whole number from 1 to {_CONNECTIONS_MAX}")
        return value

    def _patterns(self, key: str) -> tuple[str, ...] | None:
        value = self.entry.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self._wrong(key, "a list of tool name patterns")
        return tuple(value)

    def _approve(self) -> Approve:
        value = self.entry.get("approve", Approve.WRITES)
        try:
            return Approve(str(value))
        except ValueError:
            raise self._wrong("approve", f"one of {', '.join(Approve)}") from None

    def _sign_in(self, kind: Transport) -> SignInOf:
        value = self.entry.get("sign_in", SignInOf.OPERATOR)
        try:
            whose = SignInOf(str(value))
        except ValueError:
            raise self._wrong("sign_in", f"one of {', '.join(SignInOf)}") from None
        if whose is SignInOf.OPERATOR:
            return whose
        if kind not in {Transport.HTTP, Transport.SSE}:
            raise self._wrong("sign_in", "operator: only a server that is reached by its url has a sign-in of another")
        if any(name.lower() == "authorization" for name in self._headers()):
            raise self._wrong("sign_in", "operator, or remove the header Authorization, which would be sent for all")
        return whose

    def _token_exchange(self) -> TokenExchange | None:
        value = self.entry.get("token_exchange")
        if value is None:
            return None
        if self.entry.get("sign_in") != SignInOf.CALLER:
            raise self._wrong("token_exchange", 'it together with "sign_in": "caller"')
        if not isinstance(value, dict) or not {"token_endpoint", "audience"} <= value.keys():
            raise self._wrong("token_exchange", "an object with token_endpoint and audience")
        for key in value:
            if key not in _EXCHANGE_KEYS:
                raise self._wrong(f"token_exchange.{key}", f"only {', '.join(_EXCHANGE_KEYS)}")
        given = {key: self._expanded(f"token_exchange.{key}", each).strip() for key, each in value.items()}
        if not _is_address(given["token_endpoint"]) or not _is_plain(given["token_endpoint"]):
            raise self._wrong("token_exchange.token_endpoint", _PLAIN)
        if not given["audience"]:
            raise self._wrong("token_exchange.audience", "a text that is not empty")
        if given.get("client_secret") and not given.get("client_id"):
            raise self._wrong("token_exchange.client_secret", "it together with client_id")
        return TokenExchange(**given)

    def _tokens(self) -> tuple[str, ...]:
        if isinstance(self.entry.get("allow_tokens"), bool):
            return ("*",) if self._flag("allow_tokens") else ()
        return self._patterns("allow_tokens") or ()

    def _restore(self) -> object:
        value = self.entry.get("restore")
        if value is not None and not isinstance(value, bool | str | list | dict):
            raise self._wrong("restore", "true, false, a list of patterns or an object")
        return value
