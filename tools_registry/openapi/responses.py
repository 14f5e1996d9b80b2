"""Reads what an operation returns: the schema of its successful answers, as the output schema of a tool.

The value stands in `{"result": …}`, whatever it is, since the structured content of MCP has to be an object. The schema
is for signatures and stubs: documents are less exact than services, so no answer is refused by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..models import Json
from .document import Document, mapping
from .schema_conversion import Collection, Direction, SchemaConverter

VALUES_MAX: Final = 3_000
"""Values in the schema of what an operation returns; a larger one is left out."""


def output_schema_of(
    document: Document, converter: SchemaConverter, method: str, operation: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the output schema of an operation. Raises `LeftOut` where it is not known."""
    schemas = converter.collecting(Direction.RESPONSE, VALUES_MAX)
    result = {} if method == "head" else _result(document, schemas, mapping(operation.get("responses")))
    return {"type": "object", "properties": {"result": result}, "required": ["result"], **schemas.definitions()}


def _result(document: Document, schemas: Collection, responses: Mapping[str, Json]) -> Json:
    by_status = {str(status): each for status, each in responses.items()}  # YAML has them as numbers
    successes = [(status, each) for status, each in sorted(by_status.items()) if status.startswith("2")]
    alternatives: list[Json] = []
    for status, each in successes or ([("default", by_status["default"])] if "default" in by_status else []):
        content = mapping(document.resolved(each).get("content"))
        # A document mostly forgets to describe what it does not say is empty.
        found: Json = {"type": "null"} if status in _EMPTY else _of_content(schemas, content)
        if found not in alternatives:
            alternatives.append(found)
    if not alternatives or {} in alternatives:
        return {}
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _of_content(schemas: Collection, content: Mapping[str, Json]) -> Json:
    for media_type, media in content.items():
        plain = str(media_type).partition(";")[0].strip().lower()
        if is_json(plain):
            return schemas.add(mapping(media).get("schema", {}))
        if is_lines(plain):
            return {"type": "array", "items": schemas.add(mapping(media).get("schema", {}))}
    return {"type": "string"} if content and all(str(each).startswith("text/") for each in content) else {}


_EMPTY = frozenset({"204", "205"})
_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
                    "application/jsonlines", "application/x-jsonl", "application/stream+json",
                    "application/json-seq"})  # fmt: skip


def is_lines(media_type: str) -> bool:
    """Return whether what has this type, in lowercase and without parameters, is one JSON text on each line."""
    return media_type in _LINES


def is_json(media_type: str) -> bool:
    """Return whether what has this type, in lowercase and without parameters, is one JSON text."""
    return media_type in {"application/json", "text/json"} or (
        media_type.endswith("+json") and not is_lines(media_type)
    )
