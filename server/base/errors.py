"""What this folder raises, and the one table from every folder's error codes to exit codes.

    ServerError
    ├── SettingsError     a setting is unknown, has a bad value, or is for something this version cannot do
    ├── HomeError         the home folder cannot be made or used
    ├── UsageError        a command was given something that is not there or not readable
    ├── AddressRefused    HTTP was asked to listen where it must not
    ├── RequestRefused    a request asks for more than the operator allows, or for something that is not there
    │   └── PolicyRefused     the policy does not permit it to this caller
    ├── RightMissing      the caller's token does not have the scope that the request needs
    ├── SkillUnfit        code cannot be a skill, or its tests do not pass; nothing was stored
    ├── SkillNameRefused  a skill cannot have this name
    ├── HostWorkRefused   a run asks the host to compute more than it may, or has ended
    │   └── HostWorkBusy      too much of the same kind waits, or waited too long; nothing of it was begun
    ├── PythonNotBuilt    the environment of full Python cannot be built
    ├── AuditUnwritten    the line of a request cannot be kept in the audit log, which is required
    └── ArgumentsRefused  the arguments of a skill do not fit its parameters

The folders' own trees are in their `errors.py`. Every error has a stable `code` and a message of two sentences: what
was wrong, then what to do. Over MCP that message is the text of a tool error, as it stands; on the command line it
goes to stderr and the code decides how the process ends.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar

from ...sandbox.errors import SandboxError
from ...sandbox.job import Status
from ...skills_db.errors import SkillsDbError
from ...tools_registry.errors import RegistryError
from ...workspace.errors import WorkspaceError


class ServerError(Exception):
    """The base of all errors of this folder; `code` is stable, the message is for people."""

    code: ClassVar[str] = "server"


class SettingsError(ServerError):
    """A setting is unknown, has a bad value, or is for something this version cannot do; the message names it."""

    code = "settings"


class HomeError(ServerError):
    """The home folder, or a folder below it, cannot be made or used."""

    code = "home"


class UsageError(ServerError):
    """A command was given something that is not there or cannot be read."""

    code = "usage"


class AddressRefused(ServerError):
    """HTTP was asked to listen on an address that other machines can reach, or that is not an address."""

    code = "address"


class RequestRefused(ServerError):
    """A request asks for more than the operator allows."""

    code = "request"


class PolicyRefused(RequestRefused):
    """The policy does not permit something to this caller; the message names the rules, never what they say.

    `rule` names them for the audit log.
    """

    code = "policy"

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class RightMissing(ServerError):
    """The caller's token does not have the scope that a request needs."""

    code = "right"


class TenantRefused(ServerError):
    """A tenant is not served: it was suspended or deleted, or is being deleted."""

    code = "tenant"


class TenantsBusy(ServerError):
    """As many tenants are at work in this process as may be."""

    code = "tenants_busy"


class SkillUnfit(ServerError):
    """Code cannot be a skill, or its tests do not pass; nothing was stored."""

    code = "skill_unfit"


class SkillNameRefused(ServerError):
    """A skill cannot have this name."""

    code = "skill_name"


class HostWorkRefused(ServerError):
    """A run has the host compute more than its time limit allows, or has ended."""

    code = "host_work"


class HostWorkBusy(HostWorkRefused):
    """Other work of the same kind is in the way; nothing of this was begun, so it may be asked for again."""

    code = "busy"


class PythonNotBuilt(ServerError):
    """The environment that full Python runs in cannot be built; the one before, if any, is as it was."""

    code = "python_not_built"


class AuditUnwritten(ServerError):
    """The audit log cannot be written, and a request is refused whose line cannot be kept."""

    code = "audit"


class ArgumentsRefused(ServerError):
    """The arguments of a skill do not fit its parameters; nothing ran."""

    code = "arguments"


class VaultKeyError(ServerError):
    """The key of the vault cannot be read, kept or used."""

    code = "vault_key"


class PrivacyFailed(ServerError):
    """Personal data could not be looked for, hidden or restored; nothing was shown."""

    code = "privacy"


KnownError = ServerError | SandboxError | WorkspaceError | RegistryError | SkillsDbError
KNOWN_ERRORS = (ServerError, SandboxError, WorkspaceError, RegistryError, SkillsDbError)
"""Errors whose message is meant for the caller. Anything else is a fault of sealab's own."""


_SHORTAGES: Mapping[int | None, str] = MappingProxyType(
    {
        errno.EMFILE: "file descriptor left. Call again in a moment; if it lasts, raise its limit of open files.",
        errno.ENFILE: "file descriptor left. Call again in a moment; if it lasts, raise the machine's limit of them.",
        errno.ENOSPC: "space left on its disk. Free some, then call again.",
        errno.EDQUOT: "space left in its quota of the disk. Free some, then call again.",
        errno.ENOMEM: "memory left. Call again in a moment.",
    }
)


def shortage_in(error: BaseException) -> str | None:
    """Return what to say of an error that came of something that the machine has run out of; None for any other."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _SHORTAGES:
            return f"The server has no {_SHORTAGES[seen.errno]} What the call did up to then is unknown."
        seen = seen.__cause__ or seen.__context__
    return None


class Exit(IntEnum):
    """How a `sealab` process ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    LIMIT = 4


EXIT_OF_CODE: Mapping[str, Exit] = MappingProxyType(
    {
        "settings": Exit.USAGE,
        "home": Exit.USAGE,
        "usage": Exit.USAGE,
        "address": Exit.USAGE,
        "vault_key": Exit.USAGE,
        "request": Exit.REFUSED,
        "policy": Exit.REFUSED,
        "audit": Exit.REFUSED,
        "right": Exit.REFUSED,
        "tenant": Exit.REFUSED,
        "tenants_busy": Exit.LIMIT,
        "skill_name": Exit.USAGE,
        "skill_not_found": Exit.USAGE,
        "skill_source": Exit.USAGE,
        "journal_not_found": Exit.USAGE,
        "journal_erased": Exit.USAGE,
        "arguments": Exit.USAGE,
        "refused": Exit.REFUSED,
        "limit": Exit.REFUSED,
        "level": Exit.REFUSED,
        "session": Exit.REFUSED,
        "tool_unknown": Exit.USAGE,
        "tool_ambiguous": Exit.USAGE,
        "category_unknown": Exit.USAGE,
        "server_unknown": Exit.USAGE,
        "configuration": Exit.USAGE,
        "stubs": Exit.USAGE,
    }
)
"""The exit code of each error code; a code that is not listed ends the process with `Exit.FAILED`."""

EXIT_OF_STATUS: Mapping[Status, Exit] = MappingProxyType(
    {
        Status.OK: Exit.OK,
        Status.ERROR: Exit.FAILED,
        Status.CRASHED: Exit.FAILED,
        Status.CANCELLED: Exit.FAILED,
        Status.REFUSED: Exit.REFUSED,
        Status.BUSY: Exit.FAILED,
        Status.TIMEOUT: Exit.LIMIT,
        Status.MEMORY: Exit.LIMIT,
    }
)
"""The exit code of `sealab run` for each way a run can end."""


def exit_of(error: KnownError) -> Exit:
    """Return the exit code for a known error."""
    return EXIT_OF_CODE.get(error.code, Exit.FAILED)
