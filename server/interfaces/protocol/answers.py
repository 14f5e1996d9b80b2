"""What the MCP tools share: the shape of an answer, and the annotations of a tool that only reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Literal, cast

from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BeforeValidator, WithJsonSchema

from ....sandbox.job import Json, Status
from ....skills_db.journal.records import ENDED, RUNNING
from ...base.lru import Lru
from ...base.settings import OutputFormat
from ...base.terminal_escaping import visible
from ...use_cases.runs.background.background_reports import RunState
from ...use_cases.runs.compact import in_form, why_json
from ...use_cases.runs.images import Picture
from ...use_cases.runs.report import Report, as_text, brief
from ...use_cases.runs.request import Execution
from ...use_cases.runs.truncation import SHOWN_CHARS, Cut, cut_members, fits
from .message_bounds import check


def parsed_if_text(value: object) -> object:
    """Read an object that came as its JSON text, which is how some clients send objects; else return it as it is.

    Raises `ValueError` for a text that would cost too much to decode.
    """
    if isinstance(value, str):
        check(value.encode("utf-8", "surrogatepass"))
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


OptionalText = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""A text, where an empty one says no more than none."""
OptionalName = Annotated[str | None, WithJsonSchema({"type": ["string", "null"]})]
"""A name, where an empty one is wrong."""
OptionalFormat = Annotated[
    Literal["json", "toon", "markdown"] | None, WithJsonSchema({"type": "string", "enum": ["json", "toon", "markdown"]})
]
OptionalSeconds = Annotated[float | None, WithJsonSchema({"type": "number"})]
OptionalWhole = Annotated[int | None, WithJsonSchema({"type": ["integer", "null"]})]
Megabytes = Annotated[int | None, WithJsonSchema({"type": "integer"})]
Variables = Annotated[dict[str, object], BeforeValidator(parsed_if_text), WithJsonSchema({"type": "object"})]

CONNECTIONS_MAX = 10_000

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def answered(structured: object, text: str, *, failed: bool = False) -> CallToolResult:
    """Return the answer of a tool: its structured content, and a short text for those who read that alone."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=cast("dict[str, object]", structured),
        is_error=failed,
    )


def visibly(answer: CallToolResult) -> CallToolResult:
    """Return an answer in whose text control characters are visible, since it may be shown as it is.

    The structured content is data, and exact. What asks a user first, in an answer's place, is left as it is.
    """
    for block in getattr(answer, "content", ()):
        if isinstance(block, TextContent):
            block.text = visible(block.text)
    return answer


def bounded(answer: CallToolResult, chars_max: int, rest: str) -> CallToolResult:
    """Return an answer with at most `chars_max` characters of data; what was cut is named under `truncated`.

    `rest` says how to get all of it. Of the text only `SHOWN_CHARS` are left where the structured content has more.
    """
    structured = cast("dict[str, Json]", answer.structured_content)
    cuts: dict[str, Cut] = {}
    if not fits(structured, "", max_chars=chars_max):
        structured, cuts = cut_members(structured, chars_max, rest)
        noted = cast("dict[str, Json]", structured.get("truncated", {}))
        answer.structured_content = {
            **structured,
            "truncated": {**noted, **{each: cuts[each].to_json() for each in cuts}},
        }
    text = cast("TextContent", answer.content[0])
    text.text = short_text(text.text, rest)
    return answer


def query_note(found: Mapping[str, object]) -> list[str]:
    """Return the line that says of a query how much of it was searched for, where that is not all of it."""
    cuts = cast("Mapping[str, Mapping[str, str]]", found.get("truncated", {}))
    return [cuts["query"]["note"]] if "query" in cuts else []


def short_text(text: str, rest: str) -> str:
    """Return the start of a text that says what the structured content holds too; its last line says what follows."""
    if len(text) <= SHOWN_CHARS:
        return text
    left_out = len(text) - SHOWN_CHARS
    return f"{text[:SHOWN_CHARS]}\n… [{left_out} more characters: see the structured content, or {rest}]"


def short_in_the_middle(text: str) -> str:
    """Return the start and the end of a long message: what is wrong stands first, what to do last."""
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]}… [{len(text) - 2 * half} characters left out] …{text[-half:]}"


class RunAnswers:
    """Makes the answers of tools that run code, in the operator's `form` unless a call asks for another.

    It notes which layers the reports of each connection named: they do so once, and again where they are others.
    """

    def __init__(self, form: OutputFormat) -> None:
        self._form = form
        self._reported: Lru[tuple[str, str], list[str]] = Lru(CONNECTIONS_MAX)

    def of(
        self, execution: Execution, connection: str | None, form: str | None = None, *, of_skill: bool = False
    ) -> CallToolResult:
        """Return the answer of a run: its report and its images; `connection` is None for a request without one.

        A table is text in the structured content too where TOON or Markdown was asked for. What is no table says so,
        unless the form is the operator's.
        """
        report, chosen = execution.report, self._form if form is None else OutputFormat(form)
        why = None if chosen is self._form else why_json(cast("Json", report["result"]), chosen)
        if why is not None:
            report["truncated"] = {**report.get("truncated", {}), "format": Cut(note=why).to_json()}
        text = as_text(report, chosen, of_skill=of_skill)
        report["result"] = in_form(cast("Json", report["result"]), chosen)
        if "displayed" in report:
            report["displayed"] = [in_form(cast("Json", each), chosen) for each in report["displayed"]]
        layers = self.are_new(connection, report)
        answer = answered(brief(report, layers=layers), text, failed=not report["success"])
        answer.content.extend(map(image_content, execution.images))
        if execution.label:
            answer.meta = {"ifc": dict(execution.label)}
        return answer

    def of_state(self, state: RunState, connection: str | None) -> CallToolResult:
        """Return the report of an ended run, as `execute_code` returns it, or the progress of one that goes on."""
        if state.execution is not None:
            answer = self.of(state.execution, connection)
            answer.is_error = answer.is_error and state.execution.report["status"] != Status.CANCELLED
            return answer
        status = RUNNING if state.status == ENDED else state.status
        report: dict[str, object] = {"run_id": state.run_id, "status": status}
        text = f"{status} (run {state.run_id})"
        if state.approval is not None:
            report["approval"] = {"id": state.approval.id, "question": state.approval.question}
            text = f"{text}: a user has to answer, by `sealab approvals`: {state.approval.question}"
        if state.progress is not None:
            report["progress"] = {"fraction": state.progress.fraction, "message": state.progress.message}
            text = f"{text}: {state.progress.fraction:.0%} {state.progress.message}".rstrip()
        return answered(report, text)

    def are_new(self, connection: str | None, report: Report) -> bool:
        """Return whether a report has to name its layers to a connection."""
        if connection is None or not report["layers"]:
            return bool(report["layers"])
        key = (connection, report["isolation"])
        known = self._reported.get(key)
        self._reported[key] = report["layers"]
        return known != report["layers"]


def image_content(picture: Picture) -> ImageContent:
    """Return an image as the model gets it."""
    data = base64.b64encode(picture.content).decode("ascii")
    return ImageContent(type="image", data=data, mime_type=picture.mime_type)
