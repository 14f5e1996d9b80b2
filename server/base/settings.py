"""What the operator decides: limits, levels, sizes. Read once at start, then frozen.

The command line wins over the environment (`SEALAB_<NAME>`), which wins over `<home>/sealab.toml`, which wins over the
defaults below. An unknown key or a bad value stops the start with an error that names the key.

Parsed by functions, not by a pydantic model: commands such as `sealab servers list` need no pydantic, and would take
1.6 times the CPU time with it (median of 12 starts each in turns).
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from ...sandbox.job import Isolation
from ...sandbox.levels import Level, default_level
from .errors import SettingsError
from .secure_urls import fault_of_url

PREFIX = "SEALAB_"
_DIGITS_MAX = 18
_SHOWN_CHARS_MAX = 200
_NOT_SETTINGS = frozenset({"SEALAB_HOME"})
_OF_OTHERS = frozenset(
    "DATABASE_URL LOG_LEVEL PUBLIC_URL OAUTH_CLIENT_ID OAUTH_CLIENT_SECRET CONTAINER_IMAGE CONTAINER_RUNTIME CPUS "  # noqa: SIM905 - a table of words
    "PACKAGES CONSOLE".split()
)
"""Names of settings that other programs have in the environment too."""
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|[0-9a-f.]*:[0-9a-f:.]*")
_TYPE = re.compile(r"[A-Z](?:[A-Z0-9_]{0,30}[A-Z0-9])?")


class Surface(StrEnum):
    """Which tools a client sees: all of them, `execute_code` alone, or `run_python` alone, as the bridge had it."""

    FULL = "full"
    CODE = "code"
    BRIDGE = "bridge"


class OutputFormat(StrEnum):
    """How results are written for a model.

    `auto` shows each in the form with the fewest tokens, and leaves it JSON in the structured content.
    """

    AUTO = "auto"
    JSON = "json"
    TOON = "toon"
    MARKDOWN = "markdown"


class LogLevel(StrEnum):
    """From which level on a message goes to stderr."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class PrivacyLevel(StrEnum):
    """What hides personal data from the model: nothing, the tools when called, or everything sealab sends."""

    OFF = "off"
    TOOLS = "tools"
    AUTO = "auto"


class Switch(StrEnum):
    """Whether something is done."""

    ON = "on"
    OFF = "off"


class Auth(StrEnum):
    """Who may call over HTTP: everybody who reaches the server, or who has a token that it or an issuer gave out."""

    OFF = "off"
    TOKENS = "tokens"
    OAUTH = "oauth"


class AuditMode(StrEnum):
    """Whether what happens is kept in the audit log, and whether a request is refused whose line cannot be kept."""

    ON = "on"
    OFF = "off"
    REQUIRED = "required"


class Profile(StrEnum):
    """What becomes of a value that is known only from a text that was read, where a call would act on it."""

    OPEN = "open"
    CAREFUL = "careful"
    STRICT = "strict"


class PrivacyMode(StrEnum):
    """How much is spent on looking for personal data: patterns and context alone, or a model of names too."""

    FAST = "fast"
    BALANCED = "balanced"


_Value = TypeVar("_Value", bound=StrEnum)
_Kept = TypeVar("_Kept")
_Parser = Callable[[object], _Kept]
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, re.error)


def _reading(wanted: str, read: _Parser[_Kept]) -> _Parser[_Kept]:
    """Return what reads a value by `read`, or raises `ValueError` with what to give instead."""

    def parse(value: object) -> _Kept:
        try:
            return read(value)
        except _UNREADABLE:
            raise ValueError(wanted) from None

    return parse


def _if(fits: object, value: _Kept) -> _Kept:
    """Return a value that fits. Raises `ValueError` for others."""
    if not fits:
        raise ValueError
    return value


def _number(least: float, most: float = float("inf"), wanted: str = "") -> _Parser[float]:
    def read(value: object) -> float:
        number = float(_if(isinstance(value, str | int | float) and not isinstance(value, bool), value))  # type: ignore[arg-type]
        return _if(least <= number <= most and number != float("inf"), number)

    return _reading(wanted or f"a number from {least:g} up", read)


def _whole(least: int) -> _Parser[int]:
    def read(value: object) -> int:
        if isinstance(value, str):
            value = int(_if(value.strip().isdecimal() and len(value) <= _DIGITS_MAX, value))
        return _if(type(value) is int and value >= least, cast("int", value))

    return _reading(f"a whole number from {least} up", read)


def _one_of(kind: type[_Value], *, fold: Callable[[str], str] = str.lower) -> _Parser[_Value]:
    return _reading(f"one of {', '.join(kind)}", lambda value: kind(fold(str(value).strip())))


def _some_of(kind: type[_Value]) -> _Parser[tuple[_Value, ...]]:
    one = _one_of(kind)

    def read(value: object) -> tuple[_Value, ...]:
        parts = value if isinstance(value, list) else str(value).split(",")
        return _if(parts, tuple(dict.fromkeys(map(one, parts))))

    return _reading(f"at least one of {', '.join(kind)}", read)


def _listed(value: object) -> tuple[str, ...]:
    """Read a list; in the environment a JSON list, or what commas part."""
    if isinstance(value, str):
        value = _json(value) if value.lstrip().startswith("[") else [part.strip() for part in value.split(",")]
    _if(isinstance(value, list) and all(isinstance(part, str) and part for part in value), value)
    return tuple(cast("list[str]", value))


def _types_in(value: object) -> tuple[str, ...]:
    chosen = tuple(part.upper() for part in _listed(value))
    return _if(all(map(_TYPE.fullmatch, chosen)), chosen)


def _table(read: _Parser[_Kept], wanted: str) -> _Parser[dict[str, _Kept]]:
    """Read a table of types of personal data; in the environment a JSON object."""

    def table(value: object) -> dict[str, _Kept]:
        found = cast("dict[object, object]", _json(value) if isinstance(value, str) else value)
        return {str(_if(_TYPE.fullmatch(str(name)), name)): read(each) for name, each in found.items()}

    return _reading(wanted, table)


def _pattern(value: object) -> str:
    pattern = _if(isinstance(value, str), cast("str", value))
    return re.compile(pattern).pattern


def _json(text: str) -> object:
    return json.loads(text)


def _plain(value: object) -> str:
    return _if(isinstance(value, str) and value.strip() and "\0" not in value, cast("str", value)).strip()


_YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_text = _reading("a text that is not empty", _plain)
_yes_or_no = _reading("true or false", lambda value: _YES[str(value).strip().lower()])
_list = _reading("a list of texts that are not empty", _listed)
_types = _reading("types such as EMAIL,PERSON", _types_in)
_share = _number(0, 1, "a number from 0 to 1")
_thresholds = _table(_share, "a table of types to numbers from 0 to 1")
_patterns = _table(_pattern, "a table of types (capitals, digits, underscores) to regular expressions")


def _days(value: object) -> float | None:
    """Read days; 0 means without end."""
    return _number(0)(value) or None


def _issuer(value: object) -> str:
    """Read the identifier of an issuer, which is a URL (RFC 8414, 2)."""
    return _url(value, query=False)


def _endpoint(value: object) -> str:
    return _url(value, query=True)


def _url(value: object, *, query: bool) -> str:
    text = _text(value)
    if (fault := fault_of_url(text, query=query)) is not None:
        raise ValueError(fault)
    return text


def _store_address(value: object) -> str:
    from ...workspace.objects.store_url import parse_url

    text = _text(value)
    parse_url(text)
    return text


def _address(value: object) -> str:
    """Read the address that clients use: a scheme and a host, perhaps with a port; in lower case, without a slash."""
    parts = urlsplit(str(value).strip().lower())
    host, port = parts.hostname or "", parts.port
    _if(parts.scheme in {"http", "https"} and parts.path in {"", "/"} and parts.netloc.isascii(), parts)
    _if(not (parts.query or parts.fragment or "@" in parts.netloc) and _HOST.fullmatch(host), host)
    in_url = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{in_url}" + ("" if port is None else f":{port}")


_public_url = _reading("a URL without a path, such as https://sealab.example", _address)


def _setting(parser: _Parser[_Kept], default: _Kept, *, secret: bool = False) -> _Kept:
    """Declare a setting: what reads its value, and its default; a secret is never shown."""
    return field(default_factory=lambda: copy(default), repr=not secret, metadata={"parser": parser, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, in the units its name says. `None` stands for "as this machine and version allow"."""

    timeout_seconds: float = _setting(_number(0.001), 30.0)
    """Wall clock of a run, tool calls included."""
    max_timeout_seconds: float = _setting(_number(0.001), 120.0)
    """The most that a call may ask for. A request above it is refused."""
    memory_mb: int = _setting(_whole(1), 500)
    """Memory of a run, above what the interpreter itself holds."""
    max_memory_mb: int = _setting(_whole(1), 2000)
    """The most that a call may ask for. A request above it is refused."""
    pids_max: int = _setting(_whole(1), 64)
    """Processes and threads of a run, where code can start any."""
    cpus: float | None = _setting(_number(0.01), None)
    """Processors that code may use, such as `1.5`: all runs of an isolation together, in `container` each."""
    allowed_isolation: tuple[Isolation, ...] | None = _setting(_some_of(Isolation), None)
    """What a caller may ask for. By default `restricted,container`, and `process` too once `sealab data setup` was run,
    where the level is `kernel`. Name `process` to allow it elsewhere, or leave it out to forbid it.
    """
    required_level: Level = _setting(_one_of(Level), default_level())
    """The protection below which the server refuses to serve. `limits` has it run on macOS itself instead of in a
    container.
    """
    workspace_quota_mb: int = _setting(_whole(0), 1000)
    """Megabytes in the workspace."""
    scratch_mb: int = _setting(_whole(64), 2000)
    """Megabytes that one run of full Python (`isolation="process"`) may have on disk at a time: what it writes to the
    workspace, which comes home when it ends, and temporary files, to which libraries move what memory cannot hold.
    """
    workspace_url: str | None = _setting(_store_address, None)
    """Where the files of the workspace are: `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix` with
    the `store` extra, which several servers may share, or `file:///folder`. By default `<home>/workspace`. See
    [files in an object store](../object-store.md).
    """
    workspace_cache_mb: int = _setting(_whole(1), 2000)
    """Megabytes of copies of files that a server has of a workspace in an object store. A file that is larger cannot be
    read.
    """
    skills_quota_mb: int = _setting(_whole(1), 256)
    """What all versions of all skills of a tenant may take. Past it nothing is saved."""
    vault_values_max: int = _setting(_whole(1), 12_000_000)
    """Values of one caller in the vault. Past it nothing more is hidden, and so nothing with new values is shown."""
    output_max_chars: int = _setting(_whole(200), 20_000)
    """What the model sees of output and result together, and of any other answer. The rest is kept and named."""
    output_format: OutputFormat = _setting(_one_of(OutputFormat), OutputFormat.AUTO)
    """How tables are written: `auto` shows them in the form with the fewest tokens and leaves them JSON in the
    structured content. The others have all of them written so.
    """
    tool_calls_max: int = _setting(_whole(0), 1000)
    """Calls to the host in one run."""
    runs_kept: int = _setting(_whole(1), 200)
    """Reports kept, read as `.runs/<run_id>/…`."""
    workers_spare: int = _setting(_whole(0), 2)
    """Processes made ahead."""
    workers_max: int = _setting(_whole(1), 8)
    """Runs that compute at once. Those that wait for a tool, a user or a sleep do not count."""
    queue_max: int = _setting(_whole(0), 1000)
    """Runs that wait to begin. Past it the answer has the status `busy` and says when to come back."""
    queue_seconds: float = _setting(_number(0.001), 30.0)
    """How long a run waits to begin. Past it the answer has the status `busy`."""
    sessions_max: int = _setting(_whole(0), 8)
    """Sessions alive at once, of which one caller may have three quarters."""
    session_idle_seconds: float = _setting(_number(0.001), 600.0)
    """How long an idle session keeps its process. With a journal its next call rebuilds it."""
    caller_runs_max: int = _setting(_whole(0), 0)
    """Foreground runs of one caller at once; further ones wait. 0 leaves it to fairness. See
    [shares](../shares.md).
    """
    tenant_runs_max: int = _setting(_whole(0), 0)
    """The same of all callers of a tenant together."""
    caller_runs_per_minute: int = _setting(_whole(0), 0)
    """Runs that one caller may begin or queue within any minute. Past it the answer has the status `busy`. 0 is no
    bound.
    """
    tenant_runs_per_minute: int = _setting(_whole(0), 0)
    """The same of all callers of a tenant together."""
    caller_cpu_seconds_per_day: float = _setting(_number(0), 0.0)
    """CPU seconds of one caller on a day of UTC, kept in the operator's database. Past it no run of it begins before
    the next day: the status is `busy`. 0 is no bound.
    """
    tenant_cpu_seconds_per_day: float = _setting(_number(0), 0.0)
    """The same of all callers of a tenant together."""
    caller_sessions_max: int = _setting(_whole(0), 0)
    """Sessions of one caller. 0 leaves it to three quarters of SESSIONS_MAX."""
    tenant_sessions_max: int = _setting(_whole(0), 0)
    """Sessions of all callers of a tenant. 0 leaves it to three quarters of SESSIONS_MAX."""
    discover: bool = _setting(_yes_or_no, False)
    """Use the servers of Claude's programs and of plain MCP files too, those of the folder that sealab starts in among
    them: anyone who can write these can start programs as you.
    """
    packages: tuple[str, ...] = _setting(_list, ())
    """Pure-Python packages that restricted code may import, such as `more-itertools,toolz`. See
    [packages](../packages.md).
    """
    process_python: str | None = _setting(_text, None)
    """The interpreter (3.11 or newer) whose packages `process` code sees. By default that of `sealab data setup`, else
    the server's own.
    """
    data_setup: Switch = _setting(_one_of(Switch), Switch.OFF)
    """`on`: when code first asks for a package of `sealab data setup`, the server makes that environment by itself, in
    the background, from the index that pip uses. Until then the code is refused, with a note to run it again later.
    """
    container_runtime: str | None = _setting(_text, None)
    """`podman`, `docker` or a path, with `:runsc` for gVisor. By default what is found."""
    container_image: str | None = _setting(_text, None)
    """The image for `container`. By default the one that `sealab container build` makes."""
    approve_container: bool = _setting(_yes_or_no, False)
    """Ask the user before code that the dialect refused runs in a container."""
    privacy: PrivacyLevel = _setting(_one_of(PrivacyLevel), PrivacyLevel.TOOLS)
    """`tools`: `sanitize_pii` and `restore_pii` when called. `auto`: everything that goes to the model is filtered.
    `off`: neither. See [privacy](../privacy.md).
    """
    restore_to_model: bool | None = _setting(_yes_or_no, None)
    """Whether `restore_pii` shows the model values. By default true under `tools`, false under `auto`."""
    privacy_mode: PrivacyMode = _setting(_one_of(PrivacyMode), PrivacyMode.BALANCED)
    """`fast`: patterns and context. `balanced`: the names and places of prose too, by a small model."""
    privacy_types: tuple[str, ...] = _setting(_types, ())
    """Look for these types only, such as `EMAIL,PERSON,CARD`. By default all."""
    privacy_threshold: float = _setting(_share, 0.4)
    """Findings scored lower are dropped."""
    privacy_thresholds: Mapping[str, float] = _setting(_thresholds, {})
    """The same by type, such as `{"PERSON": 0.7}`."""
    privacy_allow: tuple[str, ...] = _setting(_list, ())
    """Values that are never personal, such as `support@corp.example,/build-[0-9]+/`."""
    privacy_patterns: Mapping[str, str] = _setting(_patterns, {})
    """Types of your own, such as `{"STAFF_ID": "E-[0-9]{6}"}`."""
    privacy_recognizers: str | None = _setting(_text, None)
    """A file of recognizers in the format of Presidio's registry, absolute or within the home. See
    [privacy](../privacy.md#recognizers-of-your-own).
    """
    privacy_ttl_days: float | None = _setting(_days, 90.0)  # type: ignore[arg-type]  # mypy drops the None
    """Days that the vault keeps a value after it was last met. 0 keeps it without end."""
    vault_key: str | None = _setting(_text, None, secret=True)
    """The vault's key: 32 bytes in base64 or hexadecimal, or a passphrase of 20 characters. By default one is made."""
    vault_keyring: bool = _setting(_yes_or_no, True)
    """Whether the system's keyring may keep the key. Else `<home>/vault.key` does."""
    database_url: str | None = _setting(_text, None, secret=True)
    """Where skills, runs and the vault are: `postgresql://user:password@host:5432/name` with the `postgres` extra. By
    default `<home>/sealab.db`.
    """
    journal: Switch = _setting(_one_of(Switch), Switch.ON)
    """`on`: each run is written down, encrypted with the vault's key: its code, its calls with their answers, its end.
    A call that may change something is written down before it is sent, or is not sent. `off`: none is.
    """
    journal_days: float | None = _setting(_days, 7.0)  # type: ignore[arg-type]  # mypy drops the None
    """Days that the journal of a run is kept. 0 keeps it until the quota drops it."""
    journal_quota_mb: int = _setting(_whole(1), 200)
    """What the journals of one caller may take. Past it the oldest are dropped."""
    audit: AuditMode = _setting(_one_of(AuditMode), AuditMode.ON)
    """`on`: runs, calls of tools, approvals and admin acts are kept in the audit log, without values. `required`: what
    cannot be kept there is refused. `off`: nothing is kept. See [audit](../audit.md).
    """
    session_rebuild_seconds: float = _setting(_number(0.001), 10.0)
    """CPU seconds that it may take to rebuild a session that has lost its process. Beyond it the session ends."""
    background_timeout_seconds: float = _setting(_number(0.001), 3600.0)
    """Wall clock of a background run. See [long work](../long-work.md)."""
    background_runs_max: int = _setting(_whole(1), 16)
    """Background runs at once, of which one caller may have half. They compute on half of the processors."""
    background_queue_max: int = _setting(_whole(0), 1000)
    """Background runs of one caller that wait to begin. Past it they are refused."""
    drain_seconds: float = _setting(_number(0), 30.0)
    """At SIGTERM, how long calls at work may go on."""
    http_sessions_max: int = _setting(_whole(1), 2000)
    """MCP sessions of one caller. Then its idlest ends."""
    tenants_open_max: int = _setting(_whole(1), 50)
    """Tenants open at once besides `default`. Then the idlest that nothing is at work in is closed."""
    http_bodies_mb: int = _setting(_whole(16), 128)
    """Request bodies held at once."""
    http_receive_seconds: float = _setting(_number(0.001), 30.0)
    """How long a header, and after it a body, may take to arrive."""
    auth: Auth = _setting(_one_of(Auth), Auth.OFF)
    """Who may call over HTTP. `off`: everybody who reaches it, so that it listens on loopback only. `tokens`: who has
    one of `sealab tokens create`. `oauth`: who has one of `OAUTH_ISSUER`. See [a team](../team.md).
    """
    public_url: str | None = _setting(_public_url, None)
    """The address that clients use where it is not the one listened on, such as `https://sealab.example`."""
    oauth_issuer: str | None = _setting(_issuer, None)
    """Who makes the access tokens that callers send, as it stands in these, such as `https://idp.example/realms/team`.
    See [OAuth](../oauth.md).
    """
    oauth_audience: str | None = _setting(_text, None)
    """What stands in tokens that are for this server (`aud`), best its own URL, `https://sealab.example/mcp`."""
    oauth_tenant_claim: str | None = _setting(_text, None)
    """The claim that names the tenant of a caller, such as `tenant` or `org.name`. By default all are of one tenant."""
    oauth_introspection_url: str | None = _setting(_endpoint, None)
    """Where the issuer says whether a token is active. By default where its metadata says."""
    oauth_client_id: str | None = _setting(_text, None)
    """The name by which this server asks there. Without it, tokens that are not JWTs are refused."""
    oauth_client_secret: str | None = _setting(_text, None, secret=True)
    """The secret that goes with the name."""
    policy: str | None = _setting(_text, None)
    """A policy in Cedar: a file, or a folder of `*.cedar` files, absolute or within the home, with the `policy` extra.
    What no rule of it permits is refused. See [policy](../policy.md).
    """
    provenance: Switch = _setting(_one_of(Switch), Switch.ON)
    """`on`: of each argument of a call that writes it is known where its value stood before: in a field, in a text, in
    the program. `off`: it is not looked for. See [what data may do](../provenance.md).
    """
    profile: Profile = _setting(_one_of(Profile), Profile.CAREFUL)
    """`careful`: a write to a party that is known only from a text is asked about by itself, and refused where nobody
    can be asked; so is a read of an address in a text that gives orders. `strict`: so is each read that carries a value
    of a text out. `open`: neither.
    """
    metrics: Switch = _setting(_one_of(Switch), Switch.ON)
    """`on`: `/metrics` over HTTP has counts of runs, calls, workers and sessions in Prometheus's format, for whoever
    reaches the port; names of tenants, servers and tools under `AUTH` for a token with the scope `admin` alone. See
    [scale](../scale.md#metrics).
    """
    console: Switch = _setting(_one_of(Switch), Switch.ON)
    """`on`: a server over HTTP has pages for people at `/console`. Who opens them has a token with the scopes for what
    they show, or a link of `sealab console`. See [operations](../operations.md).
    """
    replica_address: str | None = _setting(_public_url, None)
    """Where other servers of the same sealab reach this one, such as `http://10.0.0.3:8000`, where several share one
    DATABASE_URL and one VAULT_KEY. Without it this server is alone. See [scale](../scale.md).
    """
    surface: Surface = _setting(_one_of(Surface), Surface.FULL)
    """`full` shows all tools, `code` `execute_code` alone, `bridge` `run_python(code, servers, timeout)` alone."""
    log_level: LogLevel = _setting(_one_of(LogLevel, fold=str.upper), LogLevel.WARNING)
    """From which level on a message goes to stderr."""


def sources_of(settings: Settings, *, file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return of each setting, by its name in capitals, where its value is from. Raises `SettingsError` as reading does.

    What is neither in the file nor in the environment, and not the default, the command chose, or its options did.
    """
    found, in_file, named = {}, _from_file(file, required=False), _from_environment(environment)
    for name, field_name in _NAMES.items():
        if field_name in named:
            found[name] = named[field_name][0]
        elif field_name in in_file:
            found[name] = str(file)
        else:
            is_default = getattr(settings, field_name) == getattr(Settings(), field_name)
            found[name] = "default" if is_default else "the command"
    return found


def shown_settings(settings: Settings) -> dict[str, object]:
    """Return every setting by its name in capitals; of a secret, whether it is set."""
    return {
        name: bool(getattr(settings, field_name)) if _DECLARED[field_name]["secret"] else getattr(settings, field_name)
        for name, field_name in _NAMES.items()
    }


def background_settings(settings: Settings) -> Settings:
    """Return the settings for background runs: their own time limit, no spares, and half of the processors at most."""
    most = settings.background_timeout_seconds
    return replace(
        settings,
        timeout_seconds=most,
        max_timeout_seconds=most,
        queue_seconds=most,
        caller_runs_max=0,
        tenant_runs_max=0,
        workers_spare=0,
        workers_max=max(1, min(settings.workers_max, (os.cpu_count() or 1) // 2)),
    )


def read_settings(
    *, file: Path, file_required: bool, environment: Mapping[str, str], command_line: Mapping[str, object]
) -> Settings:
    """Read the settings in order of precedence; `command_line` maps field names to values, `None` meaning not given.

    `file_required` says that the file was named by the user, so that its absence is an error.
    Raises `SettingsError`, which names the key.
    """
    chosen: dict[str, object] = {}
    for source in (
        _from_file(file, required=file_required),
        _from_environment(environment),
        {name: (f"--{name.replace('_', '-')}", value) for name, value in command_line.items() if value is not None},
    ):
        for name, (shown, value) in source.items():
            chosen[name] = _parsed(name, shown, value)
    settings = Settings(**_lowered_defaults(chosen) | chosen)  # type: ignore[arg-type]  # parsed field by field
    _check(settings)
    return settings


def _from_file(file: Path, *, required: bool) -> dict[str, tuple[str, object]]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return {_known(key, f"{key} in {file}"): (f"{key} in {file}", value) for key, value in table.items()}
    except (FileNotFoundError, NotADirectoryError):
        if not required:
            return {}
        raise SettingsError(f"There is no settings file {file}. Name an existing one with --config.") from None
    except OSError as error:
        wrong = (
            f"cannot be read: {error.strerror}. Change the permissions of the file or its folder, or name another home "
            "with --home."
        )
    except UnicodeDecodeError as error:
        wrong = f"is not UTF-8 text (byte {error.start}). Save it as UTF-8."
    except tomllib.TOMLDecodeError as error:
        wrong = f"is not valid TOML: {error}. Correct that line."
    except ValueError:
        wrong = "holds a number of too many digits. Shorten it."
    except RecursionError:
        wrong = "is nested too deeply. Make it flatter."
    raise SettingsError(f"The settings file {file} {wrong}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[str, object]]:
    return {
        _known(key, key): (key, value)
        for key, value in environment.items()
        if key.startswith(PREFIX) and key not in _NOT_SETTINGS
    }


def without_prefix(environment: Mapping[str, str]) -> list[str]:
    """Return the names of settings that stand in an environment without their prefix, where nothing reads them."""
    return [key for key in environment if key in _NAMES.keys() - _OF_OTHERS and f"{PREFIX}{key}" not in environment]


def _known(key: str, shown: str) -> str:
    name = key.removeprefix(PREFIX)
    if name not in _NAMES:
        near = difflib.get_close_matches(name.upper(), _NAMES, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The settings are {', '.join(sorted(_NAMES))}."
        raise SettingsError(f"{shown} is not a setting. {hint}")
    return _NAMES[name]


def _parsed(name: str, shown: str, value: object) -> object:
    declared = _DECLARED[name]
    try:
        parsed: object = declared["parser"](value)
    except ValueError as error:
        given = "set to something" if declared["secret"] else _repr_cut(value)
        raise SettingsError(f"{shown} is {given}, which cannot be used. Give {error}.") from None
    return parsed


def parsed_setting(name: str, value: object) -> Any:
    """Return the value of one setting, by its field's name, as a text of the command line says it.

    Raises `SettingsError`.
    """
    return _parsed(name, name.upper(), value)


def _repr_cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _lowered_defaults(chosen: Mapping[str, object]) -> dict[str, object]:
    """Return defaults below a maximum that was chosen: who lowers only the maximum has said enough."""
    defaults = Settings()
    return {
        usual: min(getattr(defaults, usual), chosen[most])
        for usual, most in _USUAL_AND_MOST
        if most in chosen and usual not in chosen
    }


def _check(settings: Settings) -> None:
    for usual, most in _USUAL_AND_MOST:
        if getattr(settings, usual) > getattr(settings, most):
            raise SettingsError(
                f"{usual.upper()} is {getattr(settings, usual):g}, which is above {most.upper()}, "
                f"{getattr(settings, most):g}. Lower the one or raise the other."
            )
    for name, needed in _NEEDED_WITH:
        if getattr(settings, name) is not None and getattr(settings, needed) is None:
            raise SettingsError(f"{name.upper()} is set without {needed.upper()}. Set that too, or neither.")
    if settings.auth is Auth.OAUTH and settings.oauth_issuer is None:
        raise SettingsError("AUTH is oauth without an issuer. Set OAUTH_ISSUER and OAUTH_AUDIENCE.")
    if settings.replica_address is None:
        return
    if not (settings.database_url or "").startswith(("postgresql:", "postgresql+", "postgres:")):
        raise SettingsError(
            "REPLICA_ADDRESS is set, but DATABASE_URL names no PostgreSQL server, which servers of one sealab share. "
            "Set DATABASE_URL, or leave REPLICA_ADDRESS out."
        )
    if settings.vault_key is None:
        raise SettingsError(
            "REPLICA_ADDRESS is set without VAULT_KEY, by which servers of one sealab know each other. Set the same "
            "VAULT_KEY on all of them, or leave REPLICA_ADDRESS out."
        )


_NEEDED_WITH = (
    ("oauth_issuer", "oauth_audience"),
    ("oauth_audience", "oauth_issuer"),
    ("oauth_tenant_claim", "oauth_issuer"),
    ("oauth_introspection_url", "oauth_client_id"),
    ("oauth_client_id", "oauth_client_secret"),
    ("oauth_client_secret", "oauth_client_id"),
    ("oauth_client_id", "oauth_issuer"),
)
_USUAL_AND_MOST = (
    ("timeout_seconds", "max_timeout_seconds"),
    ("memory_mb", "max_memory_mb"),
    ("workers_spare", "workers_max"),
)
_NAMES: Mapping[str, str] = MappingProxyType({each.name.upper(): each.name for each in fields(Settings)})
_DECLARED: Mapping[str, Mapping[str, Any]] = MappingProxyType({each.name: each.metadata for each in fields(Settings)})
