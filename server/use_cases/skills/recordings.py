"""The upstream answers that a skill's tests met, kept with the skill and given again offline.

A recording is `{"tool", "arguments"}` with the reply that a journal would have of the call. Unlike a run that is
replayed, the code may be another version of the skill: so calls are found by tool and arguments, wherever they come.
Those that are the same are answered in the order in which they were recorded, the last one again and again.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ...base.host_call import Answer
from ..host_functions.broker import Calls, Handler
from ..journal.replies import error_reply, given, shown

RECORDINGS_MAX = 1000


class AnswerRecorder:
    """Keeps what upstream tools answer while tests run."""

    def __init__(self) -> None:
        self._recorded: list[Json] = []

    def around(self, handler: Handler) -> Handler:
        """Return a handler that answers as `handler` does and keeps the answers."""

        async def call_tool(calls: Calls, *, name: str, arguments: Json, **more: Any) -> Answer | Json:
            entry: dict[str, Json] = {"tool": name, "arguments": arguments}
            try:
                answer: Answer | Json = await handler.answer(calls, name=name, arguments=arguments, **more)
            except HostCallError as error:
                self._keep(entry | error_reply(error))
                raise
            self._keep(entry | {"answer": answer.value if isinstance(answer, Answer) else answer})
            return answer

        return replace(handler, answer=call_tool)

    def recordings(self) -> Sequence[Json]:
        """Return what was recorded. Everything that is kept of upstream answers passes here."""
        return list(self._recorded)

    def _keep(self, entry: Json) -> None:
        if len(self._recorded) >= RECORDINGS_MAX:
            raise HostCallError(f"The tests call more than {RECORDINGS_MAX} tools, the most that is recorded.")
        self._recorded.append(entry)


class Replay:
    """Answers from recordings; `missed` names the first call that is not among them."""

    def __init__(self, recordings: Json) -> None:
        self.missed: str | None = None
        self._answers: dict[str, deque[Mapping[str, Json]]] = {}
        for entry in cast("Sequence[Mapping[str, Json]]", recordings or ()):
            self._answers.setdefault(_key(entry["tool"], entry["arguments"]), deque()).append(entry)

    def instead_of(self, handler: Handler) -> Handler:
        """Return a handler that answers from the recordings, with the arguments of `handler`."""

        async def call_tool(_calls: Calls, *, name: str, arguments: Mapping[str, Json], **_more: Any) -> Json:
            entries = self._answers.get(_key(name, arguments))
            if not entries:
                call = shown(name, arguments)
                self.missed = self.missed or call
                raise HostCallError(f"The call {call} was not recorded.", type="ToolError")
            return given(entries.popleft() if len(entries) > 1 else entries[0])

        return replace(handler, answer=call_tool)


def _key(tool: Json, arguments: Json) -> str:
    return json.dumps([tool, arguments], sort_keys=True, ensure_ascii=True)
