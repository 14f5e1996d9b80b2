"""Exports spans and durations by OTLP over HTTP, in threads of its own, as the standard variables OTEL_… say.

A security boundary: whatever made a span, only names that are listed here leave, with values that are numbers, or texts
which no caller can have chosen. Descriptions of a status, events and their texts, and what baggage holds stay.

Imported only where it is on: it needs the extra `otel`.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from ....tools_registry.untraced import CARRIED

Attributes = Mapping[str, str | int | float | bool]

SDK_TRACER = "mcp-python-sdk"
OTHER = "_OTHER"
BOUNDS_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Bounds of the buckets, as the conventions advise for operations of MCP."""
_NAMES = frozenset(("gen_ai.tool.name", "gen_ai.prompt.name", "mcp.method.name"))
"""Attributes whose values a client sends: only those that are known leave."""
_TEXTS: Mapping[str, re.Pattern[str]] = {
    "gen_ai.operation.name": re.compile("execute_tool"),
    "mcp.protocol.version": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "error.type": re.compile(r"[A-Za-z_][\w.]{0,99}|-?\d{1,9}"),
    "rpc.response.status_code": re.compile(r"-?\d{1,9}"),
    "network.transport": re.compile("pipe|tcp"),
    "network.protocol.name": re.compile("http"),
    "server.address": re.compile(r"[\w.:\[\]-]{1,255}"),
    "sealab.server": re.compile(r"[\w.@ -]{1,200}"),
    "sealab.tenant": re.compile(r"[a-z0-9-]{1,63}"),
    "sealab.run.id": re.compile(r"[0-9A-Za-z]{1,40}"),
    "sealab.run.isolation": re.compile("restricted|process|container"),
    "sealab.run.outcome": re.compile("[a-z]{1,20}"),
}
_NUMBERS = frozenset(("server.port", "sealab.run.tool_calls", "sealab.run.cpu_seconds", "sealab.run.background"))
_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}


@lru_cache(1000)
def _is_harmless(name: str, value: str) -> bool:
    return _TEXTS[name].fullmatch(value) is not None


class LoggedOnce(logging.Filter):
    """Lets one record of an exporter pass: that it cannot send is logged once, and not each five seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show it; its arguments may hold what a collector answered, and stay."""
        if record.levelno < logging.WARNING or not self._turn.acquire(blocking=False):
            return False
        record.msg, record.args, record.exc_info = (
            "Telemetry cannot be sent, and is lost meanwhile (%s).",
            (record.name,),
            None,
        )
        return True


class JudgedSpans(SpanExporter):
    """Gives another exporter spans with nothing in them but what may leave."""

    def __init__(self, exporter: SpanExporter, exporting: Exporting) -> None:
        self._exporter = exporter
        self._exporting = exporting

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        return self._exporter.export([self._judged(each) for each in spans])

    def shutdown(self) -> None:
        """Send nothing any more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits."""
        return self._exporter.force_flush(timeout_millis)

    def _judged(self, span: ReadableSpan) -> ReadableSpan:
        attributes = self._exporting.judged(dict(span.attributes or {}))
        name = span.name
        method = attributes.get("mcp.method.name")
        if method is not None:  # the name holds what a client sent
            target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
            name = str(method) if target is None else f"{method} {target}"
        return ReadableSpan(
            name,
            span.context,
            span.parent,
            span.resource,
            attributes,
            links=[Link(each.context) for each in span.links],
            kind=span.kind,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )


class Exporting:
    """Exports spans and durations. `traces` and `metrics` set whether each is sent."""

    def __init__(self, version: str, *, traces: bool = True, metrics: bool = True) -> None:
        self.known: set[str] = set()
        resource = Resource.create({"service.name": "sealab", "service.version": version}).merge(
            Resource.create()  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES count before
        )
        if str(resource.attributes.get("service.name")).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": "sealab"}))
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if metrics else []
        self._meters = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        if traces:
            self._tracers.add_span_processor(BatchSpanProcessor(JudgedSpans(OTLPSpanExporter(), self)))
        self._tracer = self._tracers.get_tracer("sealab", version)
        self.duration = lru_cache(100)(self._duration)
        quiet = LoggedOnce()
        for name in ("opentelemetry.exporter", "opentelemetry.sdk", "urllib3", "requests"):
            _filter_all(name, quiet)

    def close(self) -> None:
        """Send what waits, and no more. Blocks for as long as the collector does not answer."""
        self._tracers.shutdown()
        self._meters.shutdown()

    def sdk_tracer(self) -> trace.Tracer:
        """Return the tracer that the SDK of MCP is given for its server."""
        return self._tracers.get_tracer(SDK_TRACER)

    @contextmanager
    def span(self, name: str, attributes: Attributes, *, kind: str, link: str | None) -> Iterator[trace.Span]:
        """Give a span, see `tracing.span`."""
        links, around = [], None
        if link is not None:
            around = context.Context()
            asked = trace.get_current_span(propagate.extract({"traceparent": link}, around)).get_span_context()
            links = [Link(asked)] if asked.is_valid else []
        made = self._tracer.start_span(name, around, _KINDS[kind], attributes, links)
        with trace.use_span(made, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield made
            except BaseException as error:
                if "error.type" not in (getattr(made, "attributes", None) or {}):
                    made.set_attribute("error.type", type(error).__qualname__)
                made.set_status(StatusCode.ERROR)
                raise

    def past(self, name: str, began: float, ended: float) -> None:
        """Export a span that is over; times are seconds since 1970."""
        self._tracer.start_span(name, start_time=int(began * 1e9)).end(int(ended * 1e9))

    def judged(self, attributes: Attributes | Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that may leave."""
        return {name: value for name, each in attributes.items() if (value := self._may_leave(name, each)) is not None}

    def _may_leave(self, name: str, value: object) -> object:
        if name in _NUMBERS:
            return value if isinstance(value, int | float) else None
        if name in _NAMES:
            if value in self.known:
                return value
            return OTHER if name == "mcp.method.name" else None
        return value if name in _TEXTS and _is_harmless(name, str(value)) else None

    def _duration(self, name: str) -> Histogram:
        meter = self._meters.get_meter("sealab")
        return meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=BOUNDS_SECONDS)

    def mark(self, attributes: Attributes) -> None:
        """Add attributes to the span around it."""
        trace.get_current_span().set_attributes(attributes)

    def current(self) -> context.Context:
        """Return where in a trace this is."""
        return context.get_current()

    @contextmanager
    def within(self, there: context.Context) -> Iterator[None]:
        """Be there."""
        token = context.attach(there)
        try:
            yield
        finally:
            context.detach(token)

    def extracted(self, carrier: Mapping[str, Any]) -> context.Context:
        """Return where a carrier says that its sender is."""
        texts = {name: each for name in CARRIED if isinstance(each := carrier.get(name), str)}
        return propagate.extract(texts, context.get_current())

    def inject(self, carrier: MutableMapping[str, Any]) -> None:
        """Put the trace context into a carrier, and the baggage as it came unless OTEL_PROPAGATORS leaves it out."""
        propagate.inject(carrier)


def _filter_all(name: str, quiet: logging.Filter) -> None:
    """Put a filter before the records of a logger and of those below it, which do not pass its filters."""
    below = [each for each in logging.Logger.manager.loggerDict if each == name or each.startswith(f"{name}.")]
    for each in (name, *below):
        logging.getLogger(each).addFilter(quiet)
