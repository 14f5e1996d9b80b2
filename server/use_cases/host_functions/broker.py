"""Answers what running code asks of the host.

This is a security boundary: the name and the arguments of every call come from a hostile child. Which execution asks
is known from the channel the call came by, never from the call itself; each execution has its own `Calls`, with its
own budget, and ends with it. An answer is JSON; a failure is a `HostCallError`, which the code can catch.

A host function is a method marked by `host_function`, of the name that the code calls. What it takes its keyword-only
parameters say: their annotations are judged before it is called, so that it is given what it names.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json, Waits
from ....skills_db.errors import SkillsDbError
from ....tools_registry.errors import RegistryError
from ....workspace.errors import WorkspaceError
from ....workspace.run_files import RunFiles
from ...base.errors import RightMissing, ServerError, shortage_in
from ...base.host_call import AnnouncedChange, Answer, HostCall
from ...base.host_work import Kind, in_thread
from ...governance.audit.trail import UNAUDITED, AuditTrail
from ...governance.caller import LOCAL, Caller
from ...governance.rights import HOST_FUNCTIONS, require
from ...privacy.gates.read_gate import LearnedFiles
from ...privacy.tokens.run_tokens import RunTokens
from .approvals import Approvals
from .attachments import Attachments
from .call_log import CallLog, LoggedCall

if TYPE_CHECKING:
    from .sourced_calls import RunSources

_LOG = logging.getLogger(__name__)
Arguments = Mapping[str, Json]

OnChange = Callable[[str], Awaitable[None]]
"""Takes the progress of an upstream tool, in words."""

ReportProgress = Callable[[float, str], None]
"""Takes the progress that the code reports, from 0 to 1, and in words."""

PROGRESS_MAX = 10_000
"""How often a run may say how far it is; that is not a call of its budget."""

PRIVACY_CALLS_MAX = 100_000
"""How often a run may hide or restore: what that computes is charged to it, see `host_work`."""

FIGURE_CALLS_MAX = 100
"""Figures whose texts are hidden."""

_FREE: Mapping[str, int] = MappingProxyType(
    {
        "progress": PROGRESS_MAX,
        "judge_calls": 1,
        "skill_sources": 8,
        "hide_labels": FIGURE_CALLS_MAX,
        "sanitize_pii": PRIVACY_CALLS_MAX,
        "restore_pii": PRIVACY_CALLS_MAX,
    }
)
"""Host calls that are none of a run's budget: how many of them."""

TEXT_CHARS_MAX = 16_384
"""Characters of an argument that is a text, unless its function says otherwise: names, paths, queries."""

FILE_CALLS_MAX = 250_000
"""Calls for files that one run may make: ten thousand small ones are ordinary, and each takes a few."""
FILE_BYTES_MAX = 8 * 1024 * 1024 * 1024
"""Bytes of files that one run may read and write piece by piece."""

_SHOWN_CHARS_MAX = 80
_KINDS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "str": (str,),
        "Encoding": (str,),
        "Mode": (str,),
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "list[Json]": (list,),
        "Mapping[str, Json]": (dict,),
        "Json": (str, int, float, bool, list, dict, type(None)),
        "None": (type(None),),
    }
)
"""The types that an annotation of a host function's parameter stands for."""
_NAMES = {str: "a str", int: "an int", float: "a float", bool: "a bool", list: "a list", dict: "a dict"}


@dataclass(slots=True)
class Calls:
    """The host calls of one execution: which there are, what they may use, and what they did.

    `answer` is handed to the pool as the one way up from the child. `source` is the code that runs. What a running
    execution has run on its behalf, such as the tests of a skill that it saves, has `Calls` of its own that are
    `within` the execution's: it spends the same budget, notes its calls in the same log, and shares what the user
    approved and what a dry run did not write.
    """

    handlers: Mapping[str, Handler]
    budget: int
    caller: Caller = LOCAL
    made: int = 0
    free: Counter[str] = field(default_factory=Counter)
    file_calls: int = 0
    file_bytes: int = 0
    learned: LearnedFiles = field(default_factory=LearnedFiles)
    """Files whose personal values are known."""
    files: RunFiles | None = None
    """The files that it has open, from its first call for one on."""
    written: dict[str, int] = field(default_factory=dict)
    parts: dict[str, bytearray] = field(default_factory=dict)
    """What arrived of files whose last part has not, by their names."""
    parts_bytes: int = 0
    """Of all these together."""
    dry_run: bool = False
    tests_of: str | None = None
    """The skill whose tests these are, if they are such."""
    tell: OnChange | None = None
    report_progress: ReportProgress | None = None
    attachments: Attachments = field(default_factory=Attachments)
    log: CallLog = field(default_factory=CallLog)
    skills: dict[str, int] = field(default_factory=dict)
    run_tokens: RunTokens | None = None
    given: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The personal values that tools gave it, by the names of the tools."""
    source: str = ""
    skill_sources: dict[str, str] = field(default_factory=dict)
    """The code of skills that the program names, as it was read before the program started."""
    approvals: Approvals = field(default_factory=Approvals)
    within: Calls | None = None
    waits: Waits = field(default_factory=Waits)
    audit: AuditTrail = UNAUDITED
    sources: RunSources | None = None
    """Where the values of its calls come from; None where that is not looked for."""

    async def answer(self, call: HostCall) -> Answer:
        """Answer one call, or raise `HostCallError` with what was wrong and what to do."""
        name, arguments = call.name, call.arguments
        handler = self.handlers.get(name)
        self._spend(name, of_files=handler is not None and handler.of_files)
        if handler is None:
            raise HostCallError(
                f"There is no host function {name!r} in this version. Use {', '.join(sorted(self.handlers))}.",
                type="NotImplementedError",
            )
        try:
            if not self._uses_what_it_tests(name, arguments):
                require(self.caller.identity, HOST_FUNCTIONS, name)
        except RightMissing as error:
            raise HostCallError(str(error), type="PermissionError") from error
        handler.check(name, arguments)
        kept = self.attachments.read(arguments) if name == "read_file" else None
        if kept is not None:
            return Answer(kept)
        change = handler.changes(arguments) if callable(handler.changes) else handler.changes
        if change is not None and not self.dry_run:
            await call.before(change)
        with raised_in_code(name), self.waits.for_server() if handler.waits else nullcontext():
            answered = await handler.answer(self, **arguments, **({"call": call} if handler.takes_call else {}))
        return answered if isinstance(answered, Answer) else Answer(answered)

    def note_made_before(self, name: str, arguments: Arguments, *, ok: bool, ms: float) -> None:
        """Count a call that an earlier process made for the same run."""
        handler = self.handlers.get(name)
        with suppress(HostCallError):  # it was within the budget of its time
            self._spend(name, of_files=handler is not None and handler.of_files)
        if name == "call_tool":
            self.log.entries.append(LoggedCall(str(arguments.get("name")), found=True, ok=ok, seconds=ms / 1000))

    def move_file_bytes(self, count: int) -> None:
        """Count bytes of files that are read or written. Raises `HostCallError` where they are too many."""
        first = self.outermost
        first.file_bytes += count
        if first.file_bytes > FILE_BYTES_MAX:
            raise HostCallError(
                f"This run read and wrote more than {FILE_BYTES_MAX} bytes of files, which is its budget. "
                "Split the work into several runs.",
                type="OSError",
            )

    @property
    def outermost(self) -> Calls:
        """Return the calls of the execution itself."""
        return self if self.within is None else self.within.outermost

    @property
    def in_tests(self) -> bool:
        """Whether it is the tests of a skill that run."""
        return self.tests_of is not None

    @property
    def spares_files(self) -> bool:
        """Whether what it changes of the workspace is in a layer of its own, which ends with it."""
        return self.dry_run or self.in_tests

    @property
    def run_id(self) -> str:
        """Return the name of the run."""
        return self.outermost.attachments.run_id

    async def stored(self) -> str | None:
        """Store all files that the run wrote; return what could not be stored, or None."""
        if self.files is None:
            return None
        try:
            await asyncio.shield(in_thread(Kind.FILES, self.files.settle, charged=False))
        except WorkspaceError as error:
            return str(error)
        return None

    async def ended(self) -> None:
        """Close the files that the run had open, also where its caller is cancelled."""
        files, self.files = self.files, None
        if files is not None:
            await asyncio.shield(in_thread(Kind.FILES, files.close, charged=False))

    def _uses_what_it_tests(self, name: str, arguments: Arguments) -> bool:
        """Return whether it asks for nothing but the skill that is being saved: its author has that."""
        asked = {"use_skill": arguments.get("name"), "skill_sources": arguments.get("names")}.get(name)
        return self.in_tests and asked in (self.tests_of, [self.tests_of])

    def _spend(self, name: str, *, of_files: bool) -> None:
        if self.within is not None:
            self.within._spend(name, of_files=of_files)
        if self.free[name] < _FREE.get(name, 0):
            self.free[name] += 1
            return
        if of_files:
            self.file_calls += 1
            if self.file_calls > FILE_CALLS_MAX:
                raise HostCallError(
                    f"This run made more than {FILE_CALLS_MAX} calls for files, which is its budget. "
                    "Read and write larger pieces, or split it into several runs.",
                    type="RuntimeError",
                )
            return
        self.made += 1
        if self.made > self.budget:
            raise HostCallError(
                f"This run made more than {self.budget} calls to the host, which is its budget. "
                "Do more of the work inside the code, or split it into several runs.",
                type="RuntimeError",
            )


@dataclass(frozen=True, slots=True)
class Handler:
    """What answers one host function, and which arguments it takes; those without a default are in `required`."""

    answer: Callable[..., Awaitable[Any]]
    """Returns JSON, or an `Answer`."""
    takes: Mapping[str, tuple[type, ...]]
    required: Collection[str]
    takes_call: bool = False
    """Whether it is given the `HostCall` too, as `call`."""
    longest: Mapping[str, int] = field(default_factory=dict)
    """How many characters a text may have, for those that may have more than `TEXT_CHARS_MAX`."""
    of_files: bool = False
    """Whether it counts as a call for files, of which a run may make many more."""
    waits: bool = False
    """Whether all that it does is to wait for upstream servers."""
    changes: AnnouncedChange | Callable[[Arguments], AnnouncedChange | None] | None = None
    """What a call changes, or a call with these arguments; None where none does, or it says so itself."""

    @classmethod
    def of(cls, function: Callable[..., Any], **marks: Any) -> Handler:
        """Return what answers by a function, with the arguments that its keyword-only parameters name."""
        code = function.__code__
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        kinds = {each: _kinds_of(function.__annotations__[each]) for each in names if each != "call"}
        required = kinds.keys() - (function.__kwdefaults__ or {}).keys()
        return cls(function, kinds, required, takes_call="call" in names, **marks)

    def check(self, name: str, arguments: Arguments) -> None:
        """Raise `HostCallError` where the arguments are not those the function takes."""
        for missing in sorted(self.required - arguments.keys()):
            raise HostCallError(f"{name}() needs {missing}. Give it.", type="TypeError")
        for given, value in arguments.items():
            if given not in self.takes:
                raise HostCallError(
                    f"{name}() takes no {given[:_SHOWN_CHARS_MAX]!r}. It takes {', '.join(self.takes)}.",
                    type="TypeError",
                )
            kinds = self.takes[given]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                wanted = " or ".join(_NAMES.get(kind, "None") for kind in kinds)
                raise HostCallError(
                    f"{name}() got {type(value).__name__} for {given}. Give {wanted}.",
                    type="TypeError",
                )
            most = self.longest.get(given, TEXT_CHARS_MAX)
            if isinstance(value, str) and len(value) > most:
                raise HostCallError(
                    f"{name}() got {len(value)} characters for {given}. Give at most {most}.", type="ValueError"
                )


def _kinds_of(annotation: str) -> tuple[type, ...]:
    return tuple(kind for each in annotation.split(" | ") for kind in _KINDS[each])


class HostFunction:
    """A method that is a host function; see `host_function`."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def bound(self, owner: object) -> Handler:
        """Return what answers by the method of an object."""
        return replace(self._handler, answer=partial(self._handler.answer, owner))


def host_function(**marks: Any) -> Callable[[Callable[..., Awaitable[Any]]], HostFunction]:
    """Mark a method `(self, calls, *, …)` as a host function; `marks` are fields of its `Handler`."""
    return lambda function: HostFunction(Handler.of(function, **marks))


def handlers_of(*owners: object) -> dict[str, Handler]:
    """Return the host functions of some objects, by name."""
    return {
        name: each.bound(owner)
        for owner in owners
        for name, each in vars(type(owner)).items()
        if isinstance(each, HostFunction)
    }


def failed(message: str) -> HostCallError:
    """Return an error that code sees as a `ToolError`."""
    return HostCallError(message, type="ToolError")


@contextmanager
def raised_in_code(name: str) -> Iterator[None]:
    """Raise errors of the host as `HostCallError`, as which code can catch them."""
    try:
        yield
    except WorkspaceError as error:
        raise HostCallError(str(error), type=_EXCEPTION_OF_CODE.get(error.code, "OSError")) from error
    except RegistryError as error:
        raise failed(str(error)) from error
    except (ServerError, SkillsDbError) as error:
        raise HostCallError(str(error), type=_EXCEPTION_OF_CODE.get(error.code, "RuntimeError")) from error
    except HostCallError:
        raise
    except Exception as error:
        shortage = shortage_in(error)
        if shortage is None:
            raise
        _LOG.warning("%s failed: %s", name, error)
        raise HostCallError(shortage, type="OSError") from error


_EXCEPTION_OF_CODE: Mapping[str, str] = MappingProxyType(
    {
        "name": "ValueError",
        "reserved": "PermissionError",
        "not_found": "FileNotFoundError",
        "not_a_file": "PermissionError",
        "content": "ValueError",
        "skill_unfit": "ValueError",
        "skill_name": "ValueError",
        "skill_refused": "ValueError",
        "skill_not_found": "LookupError",
        "arguments": "TypeError",
        "right": "PermissionError",
        "policy": "ToolError",
        "request": "ValueError",
        "session_elsewhere": "OSError",
    }
)
"""The exception class that the code sees for each error code; else `OSError` for the workspace, or `RuntimeError`."""
