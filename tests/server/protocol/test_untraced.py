"""With OpenTelemetry in the process, nothing is told to it, and no trace context leaves, until sealab does so itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.types import ElicitResult
from opentelemetry import baggage, context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ..conftest import in_this_process
from ..upstream_tools.test_registry import ONE_SPARE, configure

SECRET = "Ada Lovelace, 4711"
WIRE = f"""
import json, sys
for line in sys.stdin:
    open(sys.argv[1], "a").write(line)
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {{
        "initialize": {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}},
                       "serverInfo": {{"name": "w", "version": "1"}}}},
        "tools/list": {{"tools": [{{"name": "look", "inputSchema": {{"type": "object"}}}}]}},
    }}
    answer = {{"result": answers[asked["method"]]}} if asked["method"] in answers else {{
        "error": {{"code": -32050 if asked["method"] == "tools/call" else -32601, "message": {SECRET!r}}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **answer}}), flush=True)
"""


class Recording(trace.TracerProvider):
    """An implementation of OpenTelemetry, as far as the API asks for one: it keeps whatever it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def get_tracer(self, *named: Any, **_more: Any) -> trace.Tracer:
        return _Tracer(self.told, str(named[0]))


class _Tracer(trace.NoOpTracer):
    def __init__(self, told: list[str], name: str) -> None:
        self._told = told
        self._name = name

    def start_span(self, name: str, *_given: Any, **more: Any) -> trace.Span:
        self._told.append(f"{self._name}: {name} {more}")
        return _Span(self._told)


class _Span(trace.Span):
    def __init__(self, told: list[str]) -> None:
        self._told = told

    def get_span_context(self) -> SpanContext:
        return AMBIENT

    def is_recording(self) -> bool:
        return True

    def _tell(self, *said: Any, **more: Any) -> None:
        self._told.append(f"{said} {more}")

    set_attributes = set_attribute = add_event = set_status = record_exception = update_name = _tell

    def end(self, end_time: int | None = None) -> None:
        pass


AMBIENT = SpanContext(0x11, 0x22, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@contextmanager
def observed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Set up OpenTelemetry in the process, with a span and baggage that are there already."""
    provider = Recording()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    token = context.attach(baggage.set_baggage("who", SECRET, trace.set_span_in_context(NonRecordingSpan(AMBIENT))))
    try:
        with trace.get_tracer("its own").start_as_current_span("that the test sees"):
            yield provider.told
    finally:
        context.detach(token)


async def test_neither_spans_nor_trace_contexts_tell_of_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wire.py").write_text(WIRE)
    sent = tmp_path / "sent"
    configure(
        tmp_path,
        w={"command": sys.executable, "args": [str(tmp_path / "wire.py"), str(sent)], "approve": "always"},
    )

    async def user(_context: object, _question: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    async def seen(_self: object, ctx: Any, call_next: Any) -> Any:
        told.append(f"the SDK's middleware: {ctx.method}")
        return await call_next(ctx)

    monkeypatch.setattr(OpenTelemetryMiddleware, "__call__", seen)
    with observed(monkeypatch) as told:
        async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user, mode="legacy") as caller:
            ran = await caller.run(
                "try:\n    await tools.w.look()\nexcept ToolError as error:\n    result = str(error)"
            )
            assert SECRET in ran["result"]
    assert [each.partition(" {")[0] for each in told] == ["its own: that the test sees"]
    messages = [json.loads(line) for line in sent.read_text().splitlines()]
    assert "tools/call" in [each["method"] for each in messages]
    for each in messages:
        assert not {"traceparent", "tracestate", "baggage"} & {*each.get("params", {}).get("_meta", {})}
