"""Spans and durations, where the operator wants them (OTEL_…); else every function here returns at once.

Names are those of OpenTelemetry's semantic conventions for MCP and GenAI, which `tests/data/telemetry` pins, and
`sealab.…` for what these have no name for. Values are names of tools and methods, outcomes and counts; what may leave
the process is judged once more in `exporting`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ....tools_registry.errors import ToolFailed
from ....tools_registry.untraced import CARRIED

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from .exporting import Exporting

Attributes = Mapping[str, str | int | float | bool]
PART_SECONDS = 0.05
"""Parts of a run that took this long get a span, which costs about a tenth of a millisecond until it is sent."""
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_{}_ENDPOINT")
_LOG = logging.getLogger(__name__)

_exporting: Exporting | None = None
_NO_SPAN: AbstractContextManager[None] = nullcontext()


def wanted(environment: Mapping[str, str]) -> frozenset[str]:
    """Return which of `traces` and `metrics` are to be sent: those that have an exporter or an endpoint, and no `none`.

    Without any of these variables nothing is sent: a server without a configured collector looks for none.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return frozenset()
    found: set[str] = set()
    for signal in ("traces", "metrics"):
        exporter = environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
        has_endpoint = any(environment.get(name.format(signal.upper())) for name in _ENDPOINTS)
        if exporter not in {"", "none", "otlp"}:
            _LOG.warning("OTEL_%s_EXPORTER is not otlp or none, so no %s are sent.", signal.upper(), signal)
        elif exporter == "otlp" or (not exporter and has_endpoint):
            found.add(signal)
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if found and protocol != "http/protobuf":
        _LOG.warning("Telemetry is sent by http/protobuf alone, not by what OTEL_EXPORTER_OTLP_PROTOCOL says.")
    return frozenset(found)


def start(environment: Mapping[str, str]) -> None:
    """Export spans and metrics from now on, where that is wanted and the extra `otel` is installed."""
    global _exporting  # noqa: PLW0603 - one for the process, as OpenTelemetry has it
    found = wanted(environment)
    if not found:
        return
    try:
        from .exporting import Exporting
    except ImportError:
        _LOG.warning('OTEL_… asks for telemetry, which needs the extra otel. Install it: pip install "sealab[otel]".')
        return
    from importlib.metadata import version

    from ....tools_registry.untraced import SdkTracing, trace_sdk

    _exporting = Exporting(version("sealab"), traces="traces" in found, metrics="metrics" in found)
    trace_sdk(SdkTracing(_exporting.sdk_tracer(), _exporting.inject))


def stop() -> Exporting | None:
    """Stop exporting; return what was exported until now."""
    global _exporting
    stopped, _exporting = _exporting, None
    return stopped


def is_on() -> bool:
    """Return whether spans or durations are exported."""
    return _exporting is not None


def knows(names: Iterable[str]) -> None:
    """Set which names of tools, prompts and methods may be exported though a client sent them."""
    if _exporting is not None:
        _exporting.known.update(names)


def span(
    name: str, attributes: Attributes | None = None, *, kind: str = "internal", link: str | None = None
) -> AbstractContextManager[Span | None]:
    """Open a span around what is within, as a child of the one around it; an error is named by its class alone.

    With a `link`, the `traceparent` of what asked for it, it has no parent. None where nothing is exported.
    """
    return _NO_SPAN if _exporting is None else _exporting.span(name, attributes or {}, kind=kind, link=link)


def phase(name: str) -> AbstractContextManager[None]:
    """Record one part of a run, see `part`."""
    return _NO_SPAN if _exporting is None else _phase(name)


@contextmanager
def _phase(name: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        part(name, time.perf_counter() - began, time.time())


def part(name: str, seconds: float, ended: float) -> None:
    """Add a part to the span around it that ended at a time in seconds since 1970, if it took long."""
    if _exporting is not None and seconds >= PART_SECONDS:
        _exporting.past(name, ended - seconds, ended)


def took(name: str, seconds: float, attributes: Attributes) -> None:
    """Measure a duration."""
    if _exporting is not None:
        _exporting.duration(name).record(seconds, _exporting.judged(attributes))


@contextmanager
def timed(name: str, attributes: MutableMapping[str, str | int | float | bool]) -> Iterator[None]:
    """Measure how long what is within took; what is put into the attributes meanwhile counts, and an error's class."""
    if _exporting is None:
        yield
        return
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        attributes.setdefault("error.type", type(error).__qualname__)
        raise
    finally:
        took(name, time.perf_counter() - began, attributes)


def mark(attributes: Attributes) -> None:
    """Add attributes to the span around it."""
    if _exporting is not None:
        _exporting.mark(attributes)


def nothing() -> AbstractContextManager[None]:
    """Return a context that does nothing."""
    return nullcontext()


def here() -> Context | None:
    """Return where in a trace this is, for `within`; None where nothing is exported."""
    return None if _exporting is None else _exporting.current()


def within(context: Context | None) -> AbstractContextManager[Any]:
    """Be there in a trace, whichever task this is."""
    return nullcontext() if context is None or _exporting is None else _exporting.within(context)


def came_with(carrier: Mapping[str, Any] | None) -> AbstractContextManager[Any]:
    """Be where `_meta` or headers say that the caller is; where they say nothing, where this is."""
    if _exporting is None or not carrier or not any(name in carrier for name in CARRIED):
        return nullcontext()
    return within(_exporting.extracted(carrier))


def carry(carrier: MutableMapping[str, Any]) -> None:
    """Put the trace context into `_meta` or headers."""
    if _exporting is not None:
        _exporting.inject(carrier)


def traceparent() -> str | None:
    """Return where this is as one text, to be linked to later; None outside of a trace."""
    carrier: dict[str, str] = {}
    carry(carrier)
    return carrier.get(CARRIED[0])


@contextmanager
def upstream_call(tool: str, server: str, url: str) -> Iterator[None]:
    """Open a span of a call of a tool of the server at `url`, which is empty for one on the standard streams."""
    if not is_on():
        yield
        return
    from urllib.parse import urlsplit

    knows([tool])
    address = urlsplit(url)
    attributes: dict[str, str | int | float | bool] = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "network.transport": "tcp" if url else "pipe",
        "sealab.server": server,
    }
    if address.hostname:
        attributes["server.address"] = address.hostname
        attributes["server.port"] = address.port or (443 if address.scheme == "https" else 80)
    with (
        timed("mcp.client.operation.duration", attributes),
        span(f"tools/call {tool}", attributes, kind="client"),
    ):
        try:
            yield
        except ToolFailed:
            attributes["error.type"] = "tool_error"
            mark({"error.type": "tool_error"})
            raise
