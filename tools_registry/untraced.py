"""Security boundary: what the MCP SDK tells OpenTelemetry of messages, and other servers of spans, by itself: nothing.

The SDK makes a span of each message, with texts of errors as they are, and puts the trace context of the process into
each request. Both would pass by the privacy filter as soon as an SDK of OpenTelemetry is in the process.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any


def untrace_sdk() -> None:
    """Have the SDK make no spans in this process and put no trace context into requests.

    For a server it is enough to leave its middleware out; the sending of requests has no such seam in 2.3, so that the
    two things are replaced of which it makes use. Where a later SDK has neither, this fails.
    """
    from mcp.shared import _otel
    from opentelemetry.trace import NoOpTracer

    if not {"_tracer", "inject"} <= vars(_otel).keys():
        raise ImportError("This version of the package mcp traces in another way. Install one that sealab knows.")
    vars(_otel).update(_tracer=NoOpTracer(), inject=_put_nothing)


def _put_nothing(_carrier: MutableMapping[str, Any]) -> None:
    """Stand in for the propagation of a context."""
