"""Security boundary: what the MCP SDK may tell of messages to OpenTelemetry, which is nothing unless it is said how.

The SDK makes a span of each message, with texts of errors as they are, and puts the trace context of the process into
each request. Both would pass by the privacy filter as soon as an SDK of OpenTelemetry is in the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

CARRIED = ("traceparent", "tracestate", "baggage")
"""The names of a context in `_meta` and in headers (W3C Trace Context, W3C Baggage)."""


class SdkTracing(NamedTuple):
    """What makes spans of the messages that come in, and what puts a context into those that go out."""

    tracer: Tracer
    inject: Callable[[MutableMapping[str, Any]], None]


_tracing: SdkTracing | None = None


def trace_sdk(tracing: SdkTracing | None) -> None:
    """Make the SDK open spans of what it serves, and put a context into what it sends; with None neither."""
    global _tracing  # noqa: PLW0603 - the SDK's names are the process's too
    _tracing = tracing
    untrace_sdk()


def untrace_sdk() -> None:
    """Let the SDK open no spans in this process but those of `trace_sdk`, and none of what it sends.

    A server leaves its middleware out. A client has no such option in 2.3, so the two names that it uses are replaced.
    Raises ImportError for an SDK that lacks one of them.
    """
    from mcp.shared import _otel
    from opentelemetry.trace import NoOpTracer

    if not {"_tracer", "inject"} <= vars(_otel).keys():
        raise ImportError("This version of the package mcp traces in another way. Install one that sealab knows.")
    if _tracing is None:
        vars(_otel).update(_tracer=NoOpTracer(), inject=_put_nothing)
    else:
        vars(_otel).update(_tracer=_OfServer(_tracing.tracer), inject=_tracing.inject)


def headers_of(content: bytes) -> dict[str, str]:
    """Return the context in the `_meta` of a request as headers; nothing where tracing is off."""
    if _tracing is None:
        return {}
    try:
        meta = json.loads(content)["params"]["_meta"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return {name: meta[name] for name in CARRIED if isinstance(meta, dict) and isinstance(meta.get(name), str)}


class _OfServer:
    """A tracer that makes spans of what is served alone: what is sent has spans of its own, with more in them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start_as_current_span(self, name: str, *, kind: Any, **more: Any) -> AbstractContextManager[Span]:
        from opentelemetry.trace import INVALID_SPAN, SpanKind

        return (
            nullcontext(INVALID_SPAN)
            if kind is SpanKind.CLIENT
            else self._tracer.start_as_current_span(name, kind=kind, **more)
        )


def _put_nothing(_carrier: MutableMapping[str, Any]) -> None:
    """Stand in for the propagation of a context."""
