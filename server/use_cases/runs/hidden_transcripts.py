"""A run as it is shown to people and exported: with tokens of its owner in place of personal data.

A security boundary: a journal holds what the code saw. Bytes that are no text cannot be looked through, so they are
left out, and what stands in their place says how many.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...privacy.tokens.parts import Exchange, collected, part_of, replaced
from ..journal.transcript import Transcript, transcript
from .background.background_listing import LISTED_TEXTS, ListedRun

if TYPE_CHECKING:
    from ....skills_db.journal.records import StoredJournal
    from ...governance.questions import Question
    from ...privacy.privacy import Privacy

_OF_ALL = (*LISTED_TEXTS, "context_vars", "arguments", "incomplete", "session", "tools")
_OF_CALLS = ("arguments", "answer", "error", "sources")
_OF_ENDS = ("result", "output", "stderr", "error", "notes")
_CONTENTS = ("data", "content")
"""What files have in calls and answers, as text or as base64."""
_KEEP = "keep"
"""The call whose content is base64 and does not say so."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_NOTED_BYTES = "bytes as base64"


async def hidden_transcript(privacy: Privacy, record: StoredJournal) -> Transcript:
    """Return what a run did, as its owner may see it. Raises `PrivacyFailed`."""
    shown = transcript(record)
    if privacy.is_off:
        return shown
    shown = _without_bytes(shown)
    parts = collected(shown, _contents)
    hidden = await privacy.hide(record.scope, parts, destination="terminal")
    return replaced(shown, _contents, hidden.parts)


async def hidden_list(privacy: Privacy, runs: Sequence[ListedRun]) -> list[Transcript]:
    """Return what a list says of runs, as their owners may see it. Raises `PrivacyFailed`."""
    if privacy.is_off:
        return [run.summary for run in runs]
    hidden: dict[int, Transcript] = {}
    for scope in {run.scope for run in runs}:
        own = {at: run.summary for at, run in enumerate(runs) if run.scope == scope}
        entries = list(own.values())
        found = await privacy.hide(scope, collected(entries, _listed), destination="terminal")
        entries = replaced(entries, _listed, found.parts)
        hidden |= zip(own, entries, strict=True)
    return [hidden[at] for at in range(len(runs))]


async def hidden_question(privacy: Privacy, scope: str, question: Question) -> Question:
    """Return a question as it is shown beside its client: what names parties, places and sums stays as it is.

    Without that nobody can answer it. Raises `PrivacyFailed`.
    """
    if privacy.is_off:
        return question
    texts = cast("Json", question.texts())
    return question.with_texts(cast("list[list[object]]", await privacy.hide_value(scope, texts)))


def _listed(entries: list[Transcript], exchange: Exchange) -> list[Transcript]:
    return [_exchanged(each, LISTED_TEXTS, exchange) for each in entries]


def _contents(shown: Transcript, exchange: Exchange) -> Transcript:
    calls = [_exchanged(each, _OF_CALLS, exchange) for each in _calls(shown)]
    changed = _exchanged(shown, _OF_ALL, exchange) | {"calls": cast("Json", calls)}
    if shown["end"] is not None:
        changed["end"] = _exchanged(cast("Transcript", shown["end"]), _OF_ENDS, exchange)
    return changed


def _exchanged(entry: Transcript, names: Sequence[str], exchange: Exchange) -> Transcript:
    return entry | {name: exchange(part_of(entry[name])) for name in names if entry.get(name) is not None}


def _calls(shown: Transcript) -> list[Transcript]:
    return cast("list[Transcript]", shown["calls"])


def _without_bytes(shown: Transcript) -> Transcript:
    changed = shown | {"calls": cast("Json", [_call_without_bytes(each) for each in _calls(shown)])}
    end = cast("Transcript | None", shown["end"])
    notes = {} if end is None else cast("Mapping[str, str]", end.get("notes") or {})
    if end is not None and any(_NOTED_BYTES in note for note in notes.values()):
        changed["end"] = end | {"result": _leaves_without_bytes(end.get("result"))}
    return changed


def _call_without_bytes(call: Transcript) -> Transcript:
    arguments, answer = call["arguments"], call.get("answer")
    asks = isinstance(arguments, Mapping) and arguments.get("encoding") == "base64"
    changed = call | {"arguments": _file_without_bytes(arguments, asks=asks or call["call"] == _KEEP)}
    return changed | ({"answer": _file_without_bytes(answer, asks=asks)} if "answer" in call else {})


def _file_without_bytes(file: Json, *, asks: bool) -> Json:
    if not isinstance(file, Mapping) or not (file.get("encoding") == "base64" or ("encoding" not in file and asks)):
        return file
    return {name: _without(value) if name in _CONTENTS else value for name, value in file.items()}


def _leaves_without_bytes(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _leaves_without_bytes(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_leaves_without_bytes(each) for each in value]
    return _without(value)


def _without(value: Json) -> Json:
    """Return what stands in place of the base64 of bytes that are no text; anything else as it is."""
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        return value
    try:
        data = base64.b64decode(value, validate=True)
    except binascii.Error:
        return value
    return value if _is_text(data) else f"[{len(data)} bytes that are not text, left out]"


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
