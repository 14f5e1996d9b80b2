"""The gate around a run under `PRIVACY=auto`: it opens with the request, and all that leaves a run goes through it.

A security boundary. What code is given (answers of tools, files) is real, and learned, so that a name is known wherever
it shows up; what code sends to files is restored. Questions to the user and progress have tokens. Of an ended run
nothing may be shown, cut, kept or logged but what `Gate.shown` returns.
"""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeVar, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Failure, Json, Outcome, Status
from ....workspace.run_files import HERE
from ...base.errors import PrivacyFailed, ServerError
from ...base.host_call import Answer, Answers, HostCall
from ...base.host_work import Account, charged_to
from ...governance.caller import RUNNING, Caller, OnProgress
from ...governance.questions import Question, Reply
from ..privacy import FileText, Privacy, is_harmless
from ..reading.file_texts import is_packed
from ..tokens.parts import Exchange, Text, Tree, collected, part_of, replaced
from ..tokens.run_tokens import RunTokens
from .learning import FilePieces, Learning

_FILE_PIECES = frozenset({"file_open", "file_read", "read_file"})
"""Host functions that give a piece of a file."""
_LEARNED_FROM = _FILE_PIECES | {
    "call_tool",
    "list_files",
    "list_folder",
    "list_prompts",
    "list_resources",
    "read_resource",
}
"""Host functions whose answers hold what the model did not write."""
FILE_ARGUMENTS = ("filename", "subpath", "content", "target")
_LEAVES_BY = frozenset({"call_tool", "read_resource", "sanitize_pii", "hide_labels", "save_skill"})
"""Host functions whose arguments leave, are hidden, or are noted: that is judged by all that code was given before."""
_KEPT_AS_WRITTEN = frozenset({"content", "code", "description", "tests"})
"""Arguments in which tokens of the program stay tokens, where they are kept as the program has them."""
LEARN_PATH = "learn_path"
"""The host function by which a file is learned as a whole."""
_BEGINNING_CHARS = 64
_PROGRESS_CPU_SECONDS = 1.0
_OF_THE_HOST = frozenset({"layers", "tool"})
"""Fields whose texts come from the host itself: the names of layers, and those that tools have in the catalog."""
_T = TypeVar("_T")
_RESTORED_FOR = _FILE_PIECES | frozenset(
    "write_file list_files delete_file file_write file_truncate file_close file_sync file_status list_folder "  # noqa: SIM905 - a table of words
    "make_folder remove_path remove_folder rename_path set_modified".split()
)
"""Host functions that reach files: the names and contents that they are given become real."""


@dataclass(frozen=True, slots=True)
class WrittenName:
    """The name of a file that a run wrote in the workspace, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class ChangedNames:
    """The names of files of the workspace that full Python changed, and of those that are `kept` with a failed run."""

    new: tuple[WrittenName, ...] = ()
    changed: tuple[WrittenName, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[WrittenName, ...] = ()


@dataclass(frozen=True, slots=True)
class CalledTool:
    """One call of an upstream tool; `unknown` is the name as the code wrote it, where no tool has it."""

    tool: str
    ok: bool
    ms: float
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class ReturnedShape:
    """What a tool returns, as a Python type; its keys are those of answers."""

    tool: str
    shape: str


@dataclass(frozen=True, slots=True)
class LeftTokens:
    """What calls of a tool were not given: see `tool_gate.LeftInCall`; `refused` of them were not made."""

    tool: str
    refused: int
    withheld: tuple[str, ...]
    unknown: tuple[str, ...]
    values: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourcedWrite:
    """An argument of a call that writes, and where its value comes from: see `governance.provenance`."""

    tool: str
    argument: str
    source: str


@dataclass(frozen=True, slots=True)
class EndedRun:
    """All that the host has of an ended run: behind the gate as it is, in front of it as it may be shown.

    `code` and `attached` are kept and not shown. `dry_calls` is None where they may not be shown.
    """

    outcome: Outcome
    code: str = ""
    written: tuple[WrittenName, ...] = ()
    called: tuple[CalledTool, ...] = ()
    returns: tuple[ReturnedShape, ...] = ()
    left: tuple[LeftTokens, ...] = ()
    dry_calls: Sequence[Json] | None = ()
    attached: Mapping[str, bytes] = field(default_factory=dict)
    changed: ChangedNames | None = None
    writes: tuple[SourcedWrite, ...] = ()
    orders: tuple[str, ...] = ()
    """The calls whose answers gave orders to an assistant."""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """What may be shown of an ended run, and how many different values of each type were hidden in it.

    `files` counts what became of the tokens that it wrote to files: see `WrittenTokens`.
    """

    run: EndedRun
    types: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    privacy_ms: float = 0.0
    """How long personal data was looked for, in what the run was given and in what it shows."""


class WrittenTokens:
    """Counts what became of the tokens in all that a run wrote to files."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._unknown: set[str] = set()

    def add(self, content: FileText) -> None:
        """Count the tokens of a text that was written."""
        self._counts["restored"] += content.restored
        self._counts["kept"] += content.kept
        self._unknown.update(content.unknown)

    def counts(self) -> Mapping[str, int]:
        """Return how many became values, were kept, and how many different ones are unknown: those above 0."""
        return {what: count for what, count in {**self._counts, "unknown": len(self._unknown)}.items() if count}


class Gate:
    """What stands between one run on one side, and files, the user and the model on the other.

    Learning goes on after the run has ended, so it is charged to an account of its own: the one of the filter.
    """

    def __init__(
        self,
        privacy: Privacy,
        caller: Caller,
        account: Account,
        tokens: RunTokens | None = None,
        *,
        run: str = "",
        literals: Mapping[str, Json] = MappingProxyType({}),
    ) -> None:
        """Open it for a run; `literals` are the values that its program has in place of tokens."""
        self._privacy = privacy
        self._run = run
        self._literals = literals
        self._scope = caller.scope
        self._of = caller
        self._account = account
        self._pieces = FilePieces()
        self._written = WrittenTokens()
        self.tokens = privacy.new_run_tokens(caller.scope) if tokens is None else tokens
        self._learning = Learning(privacy, caller.scope, account, self.tokens)
        self.caller = self._hiding(caller)
        """The caller, with tokens in what its user is asked: the question goes through the model's own client."""

    def around(self, calls: Answers) -> Answers:
        """Return what answers the run's host calls: what it gives is learned, what reaches files is restored."""
        if not self._privacy.filters:
            return calls

        async def answer(call: HostCall) -> Answer:
            content: FileText | None = None
            name, arguments = call.name, self._as_written(call.name, call.arguments)
            if name in _RESTORED_FOR:
                try:
                    arguments, content = await restored_for_file(self._privacy, self._of, arguments, run=self._run)
                except ServerError as error:
                    raise HostCallError(str(error)) from error
            if name in _LEAVES_BY:
                try:
                    await self.learned()
                except PrivacyFailed as failed:
                    raise HostCallError(f"Nothing was done. {failed}", type="ToolError") from failed
            try:
                answered = await calls(replace(call, arguments=arguments))
            except HostCallError as error:  # what a tool answered beside its failure is data too
                await self._learn_from(name, arguments, cast("Json", error.details), "")
                raise
            given = answered.value
            packed = _packed_path(name, arguments, given)
            if packed is not None:
                await calls(HostCall(LEARN_PATH, {"filename": packed}))
            if content is not None:
                self._written.add(content)
                given = _with_tokens(given, content) if name == "write_file" else given
            await self._learn_from(name, arguments, given, answered.tool)
            return replace(answered, value=given)

        return answer

    async def learn_given(self, name: str, arguments: Mapping[str, Json], given: Json) -> None:
        """Learn what the run was given by a call of an earlier process."""
        if self._privacy.filters:
            tool = arguments.get("name")
            await self._learn_from(name, arguments, given, tool if isinstance(tool, str) else "")

    async def _learn_from(self, name: str, arguments: Mapping[str, Json], given: Json, tool: str) -> None:
        to_learn = given if name in _LEARNED_FROM else None
        if name in _FILE_PIECES:
            to_learn = self._pieces.text(arguments, given)
        if not is_harmless(to_learn):
            await self._learning.add(to_learn, tool)

    def hiding_progress(self, progress: OnProgress | None) -> OnProgress | None:
        """Return what reports progress, with tokens in each message. A message that cannot be filtered is left out."""
        if progress is None or not self._privacy.filters:
            return progress

        async def report_with_tokens(elapsed_seconds: float, timeout_seconds: float, message: str) -> None:
            # Its own account: the last message of a tool may come when the run that called it has just ended.
            with suppress(PrivacyFailed), charged_to(Account(_PROGRESS_CPU_SECONDS)):
                said = RUNNING
                if message != RUNNING:
                    await self.learned()
                    said = await self._privacy.hide_text(self._scope, message)
                await progress(elapsed_seconds, timeout_seconds, said)

        return report_with_tokens

    @property
    def given(self) -> Mapping[str, Collection[str]]:
        """The values that tools gave the run, by the names of the tools."""
        return self._learning.given

    async def learned(self) -> None:
        """Wait until all is known that the code has been given by now. Raises `PrivacyFailed`."""
        await self._learning.all()

    def _as_written(self, name: str, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments with the program's own tokens, where a file keeps its tokens, and in a skill."""
        if not self._literals or not (name == "save_skill" or arguments.get("tokens") is True):
            return arguments
        written = dict(arguments)
        for key in _KEPT_AS_WRITTEN & arguments.keys():
            text = arguments[key]
            if isinstance(text, str):
                for token, value in self._literals.items():
                    text = text.replace(value if isinstance(value, str) else json.dumps(value), token)
                written[key] = text
        return written

    async def shown(self, run: EndedRun) -> ShownRun:
        """Return what of a run may be shown. Where that cannot be found out, nothing of it is but that it ended."""
        if not self._privacy.filters:
            return ShownRun(run)
        began = time.monotonic()
        behind = self._learning.seconds
        with charged_to(self._account):
            apart = replace(run, code="", dry_calls=(), attached={})
            parts = collected(apart, _exchanged)
            try:
                await self.learned()
                hidden = await self._privacy.hide(
                    self._scope, parts, kept=[Text(run.code)], run_tokens=self.tokens, run=self._run
                )
            except PrivacyFailed as failed:
                called = tuple(replace(each, unknown="") for each in run.called)
                cleared, types = EndedRun(_withheld(run.outcome, failed), called=called), {}
            else:
                *texts, code = hidden.parts
                cleared = replace(replaced(apart, _exchanged, texts), code=str(code))
                types = dict(hidden.types)
            return ShownRun(
                replace(
                    cleared,
                    dry_calls=await self._hidden_calls(run.dry_calls),
                    attached=await self._hidden_files(run.attached),
                ),
                types,
                self._written.counts(),
                1000 * (behind + time.monotonic() - began),
            )

    def drop(self) -> None:
        """Leave off: the run was cancelled, and nothing of it will be shown."""
        self._account.end()
        self._learning.drop()

    async def _hidden_calls(self, calls: Sequence[Json] | None) -> Sequence[Json] | None:
        if not calls:
            return calls
        try:
            hidden = await self._privacy.hide(self._scope, [Tree(list(calls))], run_tokens=self.tokens)
        except PrivacyFailed:
            return None
        return cast("list[Json]", hidden.parts[0])

    async def _hidden_files(self, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return files as they may be kept: texts with tokens in them, all others as they are."""
        kept: dict[str, bytes] = {}
        for name, content in files.items():
            try:
                text = content.decode()
            except UnicodeDecodeError:
                kept[name] = content
                continue
            with suppress(PrivacyFailed):
                kept[name] = (await self._privacy.hide_text(self._scope, text)).encode("utf-8", "surrogatepass")
        return kept

    def _hiding(self, caller: Caller) -> Caller:
        ask = caller.ask
        if ask is None or not self._privacy.filters:
            return caller

        async def ask_with_tokens(question: Question) -> Reply:
            await self.learned()
            hidden = await self._privacy.hide_value(caller.scope, cast("Json", question.as_json()))
            return await ask(Question.model_validate(hidden).changed(choices=question.choices))

        return replace(caller, ask=ask_with_tokens)


def _exchanged(value: _T, exchange: Exchange, *, is_json: bool = False) -> _T:
    """Return a value of a run with another text or value for each that the guest or a tool may have written.

    That is every one but numbers that the host measured and the fields in `_OF_THE_HOST`: a field that is new is
    exchanged unless somebody decides otherwise. Raises TypeError for what is neither.
    """
    changed: object = value
    if is_json or isinstance(value, list | dict | MappingProxyType):
        if not is_harmless(cast("Json", value)):
            changed = exchange(part_of(cast("Json", value)))
    elif value is None or isinstance(value, bool | int | float | bytes | Enum):
        pass
    elif isinstance(value, str):
        changed = str(exchange(Text(value))) if value else value
    elif isinstance(value, tuple):
        changed = tuple(_exchanged(each, exchange) for each in value)
    elif is_dataclass(value) and not isinstance(value, type):
        said = {
            each.name: _exchanged(getattr(value, each.name), exchange, is_json=each.type == "Json")
            for each in fields(value)
            if each.name not in _OF_THE_HOST
        }
        changed = replace(value, **said)
    else:
        raise TypeError(f"{type(value).__name__} cannot be looked through for personal data.")
    return cast("_T", changed)


async def restored_for_file(
    privacy: Privacy, caller: Caller, arguments: Mapping[str, Json], *, run: str = ""
) -> tuple[dict[str, Json], FileText | None]:
    """Return the arguments of a call that reaches a file, with real names in them, and its text as the file gets it.

    With `tokens` the text keeps its tokens: it then holds no more than the caller wrote. With `allow_tokens` it keeps
    those that stand for no value.
    """
    restored, content = dict(arguments), None
    for key in FILE_ARGUMENTS:
        text = arguments.get(key)
        if not isinstance(text, str) or (key == "content" and arguments.get("encoding") == "base64"):
            continue
        if key == "content":
            content = await privacy.for_file(
                caller,
                text,
                name=str(arguments.get("filename", "")),
                keeps_tokens=arguments.get("tokens") is True,
                allows_unknown=arguments.get("allow_tokens") is True,
                run=run,
            )
            restored[key] = content.text
        else:
            restored[key] = await privacy.restored(caller, text, destination="workspace", run=run)
    return restored, content


def _with_tokens(answer: Json, content: FileText) -> Json:
    """Return the answer of `write_file` with what became of the tokens in the text, if there were any."""
    tokens: dict[str, Json] = {"restored": content.restored, "kept": content.kept, "unknown": list(content.unknown)}
    there = {what: each for what, each in tokens.items() if each}
    return {**(answer if isinstance(answer, Mapping) else {}), "tokens": there} if there else answer


def _packed_path(name: str, arguments: Mapping[str, Json], answer: Json) -> str | None:
    """Return the path of a file that is packed, where the code is given its beginning."""
    key = {"file_open": "data", "file_read": "data", "read_file": "content"}.get(name)
    if key is None or not isinstance(answer, Mapping) or answer.get("encoding", arguments.get("encoding")) != "base64":
        return None
    if arguments.get("offset", 0) or not is_packed(base64.b64decode(str(answer.get(key, ""))[:_BEGINNING_CHARS])):
        return None
    path = str(arguments["filename"])
    return f"{HERE}/{path}" if name == "read_file" else path


def _withheld(outcome: Outcome, failed: PrivacyFailed) -> Outcome:
    """Return the outcome of a run of which nothing may be shown but what the host measured."""
    message = f"The run ended ({outcome.status.value}), but what it gave is withheld. {failed}"
    return Outcome(
        Status.ERROR,
        error=Failure(type="PrivacyFailed", message=message),
        duration_ms=outcome.duration_ms,
        queued_ms=outcome.queued_ms,
        cpu_ms=outcome.cpu_ms,
        isolation=outcome.isolation,
        layers=outcome.layers,
        session_ended=outcome.session_ended and "ended",
        diverged=outcome.diverged,
        rebuilt=outcome.rebuilt,
    )
