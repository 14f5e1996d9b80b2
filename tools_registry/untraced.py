"""Security boundary: keeps the MCP SDK from tracing messages.

The SDK makes a span of each message, with texts of errors as they are, and puts the trace context of the process into
each request. Both would pass by the privacy filter as soon as an SDK of OpenTelemetry is in the process.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any


def untrace_sdk() -> None:
    """Have the SDK make no spans in this process and put no trace context into requests.

    A server leaves its middleware out. A client has no such option in 2.3, so the two names that it uses are replaced.
    Raises ImportError for an SDK that lacks one of them.
    """
    from mcp.shared import _otel
    from opentelemetry.trace import NoOpTracer

    if not {"_tracer", "inject"} <= vars(_otel).keys():
        raise ImportError("This version of the package mcp traces in another way. Install one that sealab knows.")
    vars(_otel).update(_tracer=NoOpTracer(), inject=_put_nothing)


def _put_nothing(_carrier: MutableMapping[str, Any]) -> None:
    """Stand in for the propagation of a context."""
