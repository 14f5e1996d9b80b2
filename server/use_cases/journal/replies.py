"""What a call was answered, as journals and the recordings of skills keep it.

A reply is `{"answer": …}` or `{"error": {"type": …, "message": …, "details": …}}`, the last where there are some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json

_SHOWN_CHARS_MAX = 300


def error_reply(error: HostCallError) -> dict[str, Json]:
    """Return the reply of a call that failed."""
    error_json: dict[str, Json] = {"type": error.type, "message": error.message}
    return {"error": error_json if error.details is None else {**error_json, "details": error.details}}


def given(reply: Mapping[str, Json]) -> Json:
    """Return the answer of a reply. Raises `HostCallError` if that is an error."""
    error = reply.get("error")
    if isinstance(error, Mapping):
        details = cast("Mapping[str, Json] | None", error.get("details"))
        raise HostCallError(str(error["message"]), type=str(error["type"]), details=details)
    return reply["answer"]


def shown(name: str, arguments: Mapping[str, Json]) -> str:
    """Return a call in words, 300 characters of its arguments; of one of a tool, the tool's name."""
    if name == "call_tool" and isinstance(arguments.get("name"), str):
        name, arguments = str(arguments["name"]), cast("Mapping[str, Json]", arguments.get("arguments", {}))
    text = json.dumps(arguments, ensure_ascii=False)
    cut = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}… ({len(text)} characters)"
    return f"{name}({cut})"
