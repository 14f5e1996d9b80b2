"""The filter in the data path: what a run goes through on its way to the model under `PRIVACY=auto`.

A security boundary with two gates, each the only way (`answer_gate` is the third, for all that is no run):

- `Gate` stands between the running code and the host. What code is given (answers of tools, files) is real, and
  learned, so that a name is known wherever it shows up; what code sends out to files is restored.
- `hidden_run` takes an ended run and gives what of it may be shown, before anything is cut, kept or logged.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Failure, HostCalls, Json, Outcome, Status
from ...caller import RUNNING, Caller, Progress
from ...errors import PrivacyFailed, ServerError
from ...host_work import Account, charged_to
from ..privacy import Privacy, is_harmless
from ..tokens.parts import Part, Text, Tree
from ..tokens.run_tokens import RunTokens

_LEARNED_FROM = frozenset({"call_tool", "read_file", "list_files"})
"""Host functions whose answers hold what the model did not write."""
FILE_ARGUMENTS = ("filename", "subpath", "content")
_PROGRESS_CPU_SECONDS = 1.0
_RESTORED_FOR = frozenset({"read_file", "write_file", "list_files", "delete_file"})
"""Host functions that reach files: the names and contents that they are given become real."""


@dataclass(slots=True)
class Gate:
    """The host calls of one run, with what they answer learned and what they send to files restored.

    Learning goes on after the run has ended, so it is charged to an account of its own: the one of the filter.
    """

    privacy: Privacy
    scope: str
    calls: HostCalls
    account: Account
    guest: RunTokens | None = None
    _learning: list[asyncio.Task[None]] = field(default_factory=list)

    async def answer(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Answer one call, as the pool asks for it."""
        if not self.privacy.filters:
            return await self.calls(name, arguments)
        if name in _RESTORED_FOR:
            try:
                arguments = await restored_for_file(self.privacy, self.scope, arguments)
            except ServerError as error:
                raise HostCallError(str(error)) from error
        answer = await self.calls(name, arguments)
        if name in _LEARNED_FROM and not is_harmless(answer):
            self._learning.append(asyncio.create_task(self._learn(name, answer)))
        return answer

    async def learned(self) -> None:
        """Wait until all that the code was given is known. Raises `PrivacyFailed`."""
        await asyncio.gather(*self._learning)

    async def _learn(self, name: str, answer: Json) -> None:
        with charged_to(self.account, ends=False):
            await self.privacy.learn(self.scope, _told(name, answer), self.guest)

    def drop(self) -> None:
        """Leave off: the run was cancelled, and nothing of it will be shown."""
        self.account.end()
        for task in self._learning:
            task.cancel()


@dataclass(frozen=True, slots=True)
class ShownRun:
    """What may be shown of an ended run: its outcome, its source, the names of its files, and what was hidden."""

    outcome: Outcome
    code: str
    written: Mapping[str, int]
    types: Mapping[str, int]


async def hidden_run(gate: Gate, outcome: Outcome, code: str, written: Mapping[str, int]) -> ShownRun:
    """Return what of a run may be shown. Where that cannot be found out, nothing of it is but that it ended."""
    privacy, scope = gate.privacy, gate.scope
    if not privacy.filters:
        return ShownRun(outcome, code, written, {})
    try:
        await gate.learned()
        error = outcome.error
        said: list[str] = [outcome.output, outcome.session_ended or "", *written]
        if error is not None:
            said += [error.type, error.message, error.hint or "", error.traceback or ""]
        notes = dict(outcome.notes)
        parts = parts_of([outcome.result, notes, *said])
        hidden = await privacy.hide(scope, parts, kept=parts_of([code]), guest=gate.guest)
    except PrivacyFailed as failed:
        return ShownRun(_withheld(outcome, failed), "", {}, {})
    result, noted, output, session_ended, *rest, kept_code = hidden.parts
    names, texts = rest[: len(written)], cast("list[str]", rest[len(written) :])
    if error is not None:
        error = replace(
            error,
            type=texts[0],
            message=texts[1],
            hint=error.hint and texts[2],
            traceback=error.traceback and texts[3],
        )
    cleared = replace(
        outcome,
        result=result,
        output=str(output),
        notes=cast("dict[str, str]", noted),
        error=error,
        session_ended=outcome.session_ended and str(session_ended),
    )
    real_sizes = dict(zip(map(str, names), written.values(), strict=True))
    return ShownRun(cleared, str(kept_code), real_sizes, dict(hidden.types))


async def hidden_value(gate: Gate, value: Json) -> Json:
    """Return what may be shown of a value that the host has of a run; nothing where that cannot be found out."""
    if not gate.privacy.filters or is_harmless(value):
        return value
    try:
        return (await gate.privacy.hide(gate.scope, parts_of([value]), guest=gate.guest)).parts[0]
    except PrivacyFailed:
        return None


async def hidden_files(gate: Gate, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of a run as they may be kept: texts with tokens in them, all others as they are."""
    if not gate.privacy.filters or not files:
        return files
    kept: dict[str, bytes] = {}
    for name, content in files.items():
        try:
            text = content.decode()
        except UnicodeDecodeError:
            kept[name] = content
            continue
        with suppress(PrivacyFailed):
            kept[name] = (await gate.privacy.hide_text(gate.scope, text)).encode("utf-8", "surrogatepass")
    return kept


def hiding_caller(privacy: Privacy, caller: Caller) -> Caller:
    """Return the caller with tokens in what its user is asked: the question goes through the model's own client."""
    ask = caller.ask
    if ask is None or not privacy.filters:
        return caller

    async def ask_with_tokens(question: str) -> bool:
        return await ask(await privacy.hide_text(caller.scope, question))

    return replace(caller, ask=ask_with_tokens)


def hiding_progress(privacy: Privacy, scope: str, progress: Progress | None) -> Progress | None:
    """Return what tells of progress, with tokens in what is told. What cannot be looked at is not told."""
    if progress is None or not privacy.filters:
        return progress

    async def tell_with_tokens(elapsed_seconds: float, timeout_seconds: float, message: str) -> None:
        # Its own account: what a tool says last may be told when the run that called it has just ended.
        with suppress(PrivacyFailed), charged_to(Account(_PROGRESS_CPU_SECONDS)):
            said = message if message == RUNNING else await privacy.hide_text(scope, message)
            await progress(elapsed_seconds, timeout_seconds, said)

    return tell_with_tokens


async def restored_for_file(privacy: Privacy, scope: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments of a call that reaches a file, with real names and real text in them."""
    restored = dict(arguments)
    for key in FILE_ARGUMENTS:
        text = arguments.get(key)
        if isinstance(text, str) and not (key == "content" and arguments.get("encoding") == "base64"):
            restored[key] = await privacy.restored(scope, text, destination="workspace")
    return restored


def _told(name: str, answer: Json) -> Json:
    """Return what of a host function's answer is new to the code: of a file its text."""
    if name == "read_file" and isinstance(answer, Mapping):
        content = str(answer.get("content", ""))
        with suppress(ValueError):
            return content if answer.get("encoding") != "base64" else base64.b64decode(content).decode()
        return None
    return answer


def _withheld(outcome: Outcome, failed: PrivacyFailed) -> Outcome:
    """Return the outcome of a run of which nothing may be shown."""
    message = f"The run ended ({outcome.status.value}), but what it gave is withheld. {failed}"
    return replace(
        outcome,
        status=Status.ERROR,
        result=None,
        output="",
        notes={},
        error=Failure(type="PrivacyFailed", message=message),
        session_ended=outcome.session_ended and "ended",
        figures=(),
    )


def parts_of(values: Sequence[Json]) -> list[Part]:
    """Return texts and values as the parts that are hidden together."""
    return [Text(value) if isinstance(value, str) else Tree(value) for value in values]
