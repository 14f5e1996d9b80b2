"""Messages on their way: what is personal is hidden from the client, and tokens become values for the server.

A security boundary. It fails closed: what cannot be looked through to its end is not sent on. What is sent instead is
an error that says so; of a notification the message without its texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ....sandbox.job import Json
from ....tools_registry.configuration import ServerConfig
from ...base.errors import PrivacyFailed, ServerError
from ...base.host_work import Kind, in_thread
from ...governance.caller import LOCAL
from ...privacy.gates.tool_gate import LeftInCall, Recipient, given_to
from ...privacy.privacy import Privacy
from ...privacy.tokens.parts import Part, Tree, collected, is_small, replaced
from .messages import INTERNAL_ERROR, Message, error_answer, id_of, mapping, method_of, params_of
from .shown_parts import OpaqueHandles, ShownParts, with_plain_tokens

SAID_CHARS_MAX = 1_000_000
SAID_VALUES_MAX = 50_000
"""Of a request that says more, every value of the answer counts as said."""


@dataclass(frozen=True, slots=True)
class SaidBy:
    """The texts and numbers of a request, folded; None where they are too much to look through."""

    text: str | None = ""

    @classmethod
    def of(cls, params: Mapping[str, Json]) -> SaidBy:
        """Return what is said in the parameters of a request."""
        pieces: list[str] = []
        size, waiting = 0, [value for key, value in params.items() if key != "_meta"]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += [*value.keys(), *value.values()]
            elif isinstance(value, list):
                waiting += value
            elif value is not None and not isinstance(value, bool):
                pieces.append(str(value))
                size += len(pieces[-1])
                if size > SAID_CHARS_MAX or len(pieces) > SAID_VALUES_MAX:
                    return cls(None)
        return cls("\n".join(pieces).casefold())

    def has(self, value: str) -> bool:
        """Return whether a value stands in it."""
        return self.text is None or value.casefold() in self.text


class NotSaid(set[str]):
    """All values but those that a request said."""

    def __init__(self, said: SaidBy) -> None:
        super().__init__()
        self._said = said

    def __contains__(self, value: object) -> bool:
        return not (isinstance(value, str) and self._said.has(value))


WITHHELD = "(withheld: personal data could not be looked for here)"
_RETURNED_HANDLES = ("cursor", "elicitationId", "requestState", "taskId")
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What one side asked the other: a method, what it is completed for, and what was said in it."""

    method: str | None = None
    key: str = "values"
    said: SaidBy = field(default_factory=SaidBy)

    @classmethod
    def by(cls, message: Message) -> Asked:
        """Return what a request asks."""
        params = params_of(message)
        name = mapping(params.get("argument")).get("name")
        return cls(method_of(message), name if isinstance(name, str) else "values", SaidBy.of(params))


@dataclass(frozen=True, slots=True)
class Unshown:
    """A message of the server before it was looked through, and what of it is to be."""

    message: Message
    walk: ShownParts
    parts: Sequence[Part]
    said: SaidBy

    @property
    def is_small(self) -> bool:
        """Whether it is looked through at once."""
        return is_small(self.parts)


class MessageFilter:
    """The filter of one server's messages. `known_only` hides known values, and looks for no others."""

    def __init__(self, privacy: Privacy, known_only: Privacy, server: ServerConfig) -> None:
        self._privacy = privacy
        self._known_only = known_only
        self._server = server
        self._handles = OpaqueHandles()

    async def unshown(self, message: Message, asked: Asked, *, is_large: bool) -> Unshown:
        """Return what of a message has to be looked through; of a large one in a thread. Raises `PrivacyFailed`."""
        walk = ShownParts(asked.method, asked.key, self._handles)
        with _withholding():
            parts = await _done(partial(collected, message, walk.exchanged), is_large)
        return Unshown(message, walk, parts, asked.said)

    async def shown(self, unshown: Unshown) -> Message:
        """Return a message as the client gets it. Raises `PrivacyFailed`."""
        if not unshown.parts:
            return replaced(unshown.message, unshown.walk.exchanged, ())
        privacy = self._known_only if unshown.walk.defines else self._privacy
        tokens = privacy.new_run_tokens(LOCAL.scope)
        tokens.met = NotSaid(unshown.said)
        with _withholding():
            hidden = await privacy.hide(LOCAL.scope, unshown.parts, run_tokens=tokens)
            put = partial(replaced, unshown.message, unshown.walk.exchanged, hidden.parts)
            return await _done(put, not unshown.is_small)

    async def for_server(self, message: Message, asked: Asked) -> Message:
        """Return a message as the server gets it; `asked` is what it answers, if it is an answer.

        Raises `PrivacyFailed`, and `RequestRefused` for tokens that nobody was given.
        """
        with _withholding():
            if "result" in message:
                return {**message, "result": await self._restored_result(message["result"], asked.method)}
            method, params = method_of(message), message.get("params")
            if method is None or not isinstance(params, Mapping):
                return message
            return {**message, "params": await self._restored_params(method, params)}

    async def _restored_params(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        made = dict(params)
        for key in _RETURNED_HANDLES:
            if isinstance(handle := made.get(key), str):
                made[key] = self._handles.given(handle)
        if isinstance(responses := params.get("inputResponses"), Mapping):
            made["inputResponses"] = {key: await self._restored_input(each) for key, each in responses.items()}
        name = str(params.get("name"))
        if method == "tools/call":
            made.update(await self._members(name, params, "arguments"))
        elif method == "prompts/get":
            made.update(await self._members(f"prompts/{name}", params, "arguments"))
        elif method in {"resources/read", "resources/subscribe", "resources/unsubscribe"}:
            made.update(await self._uri(method, params))
        elif method == "subscriptions/listen":
            made.update(await self._subscriptions(method, params))
        elif method == "completion/complete":
            if isinstance(ref := params.get("ref"), Mapping):
                made["ref"] = {**ref, **await self._uri(method, ref)}
            if isinstance(argument := params.get("argument"), Mapping):
                made["argument"] = {**argument, **await self._members(method, argument, "value")}
            if isinstance(context := params.get("context"), Mapping):
                made["context"] = {**context, **await self._members(method, context, "arguments")}
        return made

    async def _uri(self, method: str, params: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the address of a resource, as a member, with values in it; nothing where none were put in."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            return {}
        plain = with_plain_tokens(uri)
        restored = await self._restored(method, {"uri": plain})
        return {} if restored["uri"] == plain else restored

    async def _subscriptions(self, method: str, params: Mapping[str, Json]) -> Mapping[str, Json]:
        wanted = mapping(params.get("notifications"))
        uris = wanted.get("resourceSubscriptions")
        if not isinstance(uris, list):
            return {}
        each = [{"uri": uri, **await self._uri(method, {"uri": uri})}["uri"] for uri in uris]
        return {"notifications": {**wanted, "resourceSubscriptions": each}}

    async def _restored_input(self, response: Json) -> Json:
        """Return what the client says to one question of the server, which a result of it asked."""
        if not isinstance(response, Mapping):
            return response
        method = "elicitation/create" if "action" in response else "sampling/createMessage"
        return await self._restored_result(response, method) if "content" in response else response

    async def _restored_result(self, result: Json, method: str | None) -> Json:
        if method not in {"elicitation/create", "sampling/createMessage"} or not isinstance(result, Mapping):
            return result
        restored = dict(result)
        restored.update(await self._members(method, result, "content"))
        if method == "sampling/createMessage" and isinstance(restored.get("content"), Mapping | list):
            restored["content"] = self._with_handles(restored["content"])
        return restored

    def _with_handles(self, value: Json) -> Json:
        """Return blocks of content in which the numbers of calls are those that the server gave."""
        if isinstance(value, list):
            return [self._with_handles(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        return {
            key: self._handles.given(inner) if key in {"id", "toolUseId"} and isinstance(inner, str) else inner
            for key, inner in value.items()
        }

    async def _members(self, tool: str, params: Mapping[str, Json], key: str) -> Mapping[str, Json]:
        """Return one member with values in it; an argument's name is the key below it, where it is an object."""
        value = params.get(key)
        if key == "arguments" or isinstance(value, Mapping):
            return {key: dict(await self._restored(tool, value))} if isinstance(value, Mapping) else {}
        return await self._restored(tool, {key: value}) if key in params else {}

    async def _restored(self, tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        server = self._server
        to = Recipient(server.name, tool, server.restore, takes_tokens=server.takes_tokens(tool))
        return await given_to(self._privacy, LOCAL, to, arguments, note=partial(self._tell_of_left, tool))

    def _tell_of_left(self, tool: str, left: LeftInCall) -> None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(left.values.items()))
        reasons = [
            *([f"{len(left.withheld)} tokens withheld by its rule"] * bool(left.withheld)),
            *([f"{len(left.unknown)} unknown tokens"] * bool(left.unknown)),
            *([f"values withheld by its rule: {kinds}"] * bool(kinds)),
        ]
        what = "was not called" if left.refused else "was given tokens as they are"
        _LOG.warning("%s of the server %s %s (%s).", tool, self._server.name, what, "; ".join(reasons))


async def _done(work: Callable[[], _T], is_large: bool) -> _T:
    return await in_thread(Kind.ANSWERS, work, charged=False) if is_large else work()


def in_place_of(message: Message, failed: ServerError) -> Message | None:
    """Return what the client gets in place of a message that cannot be shown; None for a question to it.

    Of a notification that is the message without its texts; where it cannot be walked through, nothing is left of it.
    """
    if method_of(message) is None:
        return error_answer(id_of(message), INTERNAL_ERROR, str(failed))
    if "id" in message:
        return None
    try:
        return ShownParts().exchanged(message, _withheld)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing of the message is shown
        _log_fault(error)
        return None


def _withheld(part: Part) -> Json:
    return {} if isinstance(part, Tree) and isinstance(part.value, Mapping) else WITHHELD


@contextmanager
def _withholding() -> Iterator[None]:
    """Raise `PrivacyFailed` for whatever fails that is no known error: nothing of the message is sent on."""
    try:
        yield
    except ServerError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        _log_fault(error)
        raise PrivacyFailed(
            "A message could not be looked through, by a fault of sealab itself, so it is withheld."
        ) from None


def _log_fault(error: Exception) -> None:
    _LOG.error("A message could not be looked through: %s.", type(error).__name__)  # its text may be personal


def method_text(message: Message) -> str:
    """Return what to call a message in the log: nothing but its method, where that is a plain word."""
    method = method_of(message) or "an answer"
    return method if len(method) < _METHOD_CHARS and method.replace("/", "").isalnum() else "a message"


_METHOD_CHARS = 60
