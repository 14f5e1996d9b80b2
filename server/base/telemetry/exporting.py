"""Exports spans and durations by OTLP over HTTP, in threads of its own, as the standard variables OTEL_… say.

A security boundary: whatever made a span, only names that are listed here leave, with values that are numbers, or texts
which no caller can have chosen. Descriptions of a status, events and their texts, and what baggage holds stay.

Imported only where it is on: it needs the extra `otel`.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import starmap
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2 as pb
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    Metric,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TraceFlags
from typing_extensions import override  # of `typing` from Python 3.12 on

from ....tools_registry.untraced import CARRIED

Attributes = Mapping[str, str | int | float | bool]

OTHER = "_OTHER"
AT_ONCE = 100
"""So many durations are recorded together."""
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
_ENCODED_KINDS = {kind: pb.Span.SpanKind.Value(f"SPAN_KIND_{kind.name}") for kind in SpanKind}
_FAILED = Status(StatusCode.ERROR)
_STATUSES = {code: pb.Status(code=pb.Status.StatusCode.Value(f"STATUS_CODE_{code.name}")) for code in StatusCode}
_VALUES = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}  # of AnyValue


@lru_cache(1000)
def _is_harmless(name: str, value: str) -> bool:
    return _TEXTS[name].fullmatch(value) is not None


@lru_cache(1000, typed=True)
def _encoded(name: str, value: str | float) -> KeyValue:
    encoded = KeyValue(key=name)
    setattr(encoded.value, _VALUES[type(value)], value)
    return encoded


def _flags(other: trace.SpanContext | None) -> int:
    is_remote = other is not None and other.is_remote
    return pb.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | pb.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK * is_remote


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


class _Span(trace.Span, ReadableSpan):
    """A span with attributes alone: it keeps no events and no texts of errors. The SDK's takes three times as long."""

    _attributes: dict[str, Any]
    batch: BatchSpanProcessor

    @override
    def get_span_context(self) -> trace.SpanContext:
        assert self._context is not None
        return self._context

    @override
    def is_recording(self) -> bool:
        return self._end_time is None

    @override
    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self._attributes.update(attributes)

    @override
    def set_attribute(self, key: str, value: object) -> None:
        self._attributes[key] = value

    @override
    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self._status = _FAILED if StatusCode.ERROR in (status, getattr(status, "status_code", None)) else self._status

    @override
    def update_name(self, name: str) -> None:
        self._name = name

    @override
    def add_event(self, *_given: Any, **_named: Any) -> None:
        pass

    @override
    def record_exception(self, *_given: Any, **_named: Any) -> None:
        pass

    @override
    def end(self, end_time: int | None = None) -> None:
        if self._end_time is None:
            self._end_time = time.time_ns() if end_time is None else end_time
            self.batch.on_end(self)


class Tracer(trace.Tracer):
    """Makes spans as the SDK's tracers do: sampled, identified and sent as its variables say."""

    def __init__(self, scope: InstrumentationScope, tracers: TracerProvider, batch: BatchSpanProcessor) -> None:
        self._scope = scope
        self._tracers = tracers
        self._batch = batch

    @override
    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,
        links: Any = None,
        start_time: int | None = None,
        record_exception: bool = False,
        set_status_on_exception: bool = False,
    ) -> trace.Span:
        parent = trace.get_current_span(context).get_span_context()
        trace_id, flags, state = parent.trace_id, parent.trace_flags, parent.trace_state
        if not parent.is_valid or parent.is_remote:  # else what was decided for its parent holds for it
            ids = self._tracers.id_generator
            if not parent.is_valid:
                trace_id, flags = ids.generate_trace_id(), TraceFlags(2 * ids.is_trace_id_random())
            sampled = self._tracers.sampler.should_sample(context, trace_id, name, kind, attributes, links)
            is_sampled = sampled.decision is Decision.RECORD_AND_SAMPLE
            flags = TraceFlags(flags & TraceFlags.RANDOM_TRACE_ID | is_sampled)
            state = sampled.trace_state or state
        made = trace.SpanContext(trace_id, self._tracers.id_generator.generate_span_id(), False, flags, state)
        if not flags.sampled:
            return trace.NonRecordingSpan(made)
        span = _Span(
            name,
            made,
            parent if parent.is_valid else None,
            self._tracers.resource,
            dict(attributes or ()),
            links=links or (),
            kind=kind,
            start_time=time.time_ns() if start_time is None else start_time,
            instrumentation_scope=self._scope,
        )
        span.batch = self._batch
        return span

    @override
    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # it goes on as it is given
        self, name: str, *given: Any, **named: Any
    ) -> Iterator[trace.Span]:
        span = self.start_span(name, *given, **named)
        token = attach(trace.set_span_in_context(span))
        try:
            yield span
        finally:
            detach(token)
            span.end()


class JudgedSpans(OTLPSpanExporter):
    """Sends spans with nothing in them but what may leave. Raises ImportError for an exporter that sends otherwise.

    They are encoded here (opentelemetry/proto/trace/v1/trace.proto): the exporter takes three times as long for it,
    and the event loop waits meanwhile.
    """

    def __init__(self, exporting: Exporting) -> None:
        super().__init__()
        if not hasattr(getattr(self, "_client", None), "export"):
            raise ImportError("This version of the OTLP exporter sends in another way. Install one that sealab knows.")
        self._exporting = exporting

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        firsts = {each.instrumentation_scope: each for each in spans}
        request = encode_spans(
            [
                ReadableSpan("", each.context, resource=each.resource, instrumentation_scope=scope)
                for scope, each in firsts.items()
            ]
        )
        scopes = dict(zip(firsts, request.resource_spans[0].scope_spans, strict=True))
        for scope in scopes.values():
            del scope.spans[:]
        for each in spans:
            self._add(scopes[each.instrumentation_scope], each)
        is_sent = self._client.export(request.SerializeToString()).success
        return SpanExportResult.SUCCESS if is_sent else SpanExportResult.FAILURE

    def _add(self, scope: pb.ScopeSpans, span: ReadableSpan) -> None:
        attributes = self._exporting.judged(span.attributes or {})
        name = span.name
        method = attributes.get("mcp.method.name")
        if method is not None:  # the name holds what a client sent
            target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
            name = str(method) if target is None else f"{method} {target}"
        context, parent = span.context, span.parent
        scope.spans.add(
            trace_id=context.trace_id.to_bytes(16),
            span_id=context.span_id.to_bytes(8),
            trace_state=context.trace_state.to_header(),
            parent_span_id=parent.span_id.to_bytes(8) if parent else None,
            flags=_flags(parent),
            name=name,
            kind=_ENCODED_KINDS[span.kind],
            start_time_unix_nano=span.start_time,
            end_time_unix_nano=span.end_time,
            attributes=starmap(_encoded, attributes.items()),
            links=[
                pb.Span.Link(
                    trace_id=each.context.trace_id.to_bytes(16),
                    span_id=each.context.span_id.to_bytes(8),
                    flags=_flags(each.context),
                )
                for each in span.links
            ],
            status=_STATUSES[span.status.status_code],
        )


class DurationsOfTools(OTLPMetricExporter):
    """Sends durations of calls of tools by both names that the conventions have for them: they are recorded once."""

    @override
    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Send measurements."""
        resources = [
            replace(
                resource,
                scope_metrics=[
                    replace(scope, metrics=[*scope.metrics, *_durations_of_tools(scope.metrics)])
                    for scope in resource.scope_metrics
                ],
            )
            for resource in metrics_data.resource_metrics
        ]
        return super().export(MetricsData(resources), timeout_millis, **kwargs)


def _durations_of_tools(metrics: Sequence[Metric]) -> Iterator[Metric]:
    for each in metrics:
        if each.name == "mcp.server.operation.duration":
            points = [point for point in each.data.data_points if "gen_ai.operation.name" in (point.attributes or {})]
            if points:
                data = replace(each.data, data_points=points)  # type: ignore[arg-type]  # of the same kind
                yield replace(each, name="gen_ai.execute_tool.duration", data=data)


class Exporting:
    """Exports spans and durations. `traces` and `metrics` set whether each is sent."""

    def __init__(self, version: str, *, traces: bool = True, metrics: bool = True) -> None:
        self.known: set[str] = set()
        resource = Resource.create({"service.name": "sealab", "service.version": version}).merge(
            Resource.create()  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES count before
        )
        if str(resource.attributes.get("service.name")).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": "sealab"}))
        self._durations: deque[tuple[str, float, Attributes]] = deque()
        readers = [PeriodicExportingMetricReader(DurationsOfTools())] if metrics else []
        self._meters = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._meter = self._meters.get_meter("sealab")
        self._meter.create_observable_counter(
            "sealab.recorded", [self.record]
        )  # called before each export; has no value
        self._batch = BatchSpanProcessor(JudgedSpans(self)) if traces else None
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracer = self.tracer("sealab", version)
        self._duration = lru_cache(100)(self._new_duration)
        quiet = LoggedOnce()
        for name in ("opentelemetry.exporter", "opentelemetry.sdk", "urllib3", "requests"):
            _filter_all(name, quiet)

    def close(self) -> None:
        """Send what waits, and no more. Blocks for as long as the collector does not answer."""
        if self._batch is not None:
            self._batch.shutdown()  # type: ignore[no-untyped-call]  # of the SDK
        self._meters.shutdown()

    def tracer(self, name: str, version: str | None = None) -> trace.Tracer:
        """Return what makes spans in the name of a library."""
        if self._batch is None:
            return trace.NoOpTracer()
        return Tracer(InstrumentationScope(name, version), self._tracers, self._batch)

    @contextmanager
    def span(self, name: str, attributes: Attributes, *, kind: str, link: str | None) -> Iterator[trace.Span]:
        """Give a span, see `tracing.span`."""
        links, around = [], None
        if link is not None:
            around = Context()
            asked = trace.get_current_span(propagate.extract({"traceparent": link}, around)).get_span_context()
            links = [Link(asked)] if asked.is_valid else []
        with self._tracer.start_as_current_span(name, around, _KINDS[kind], attributes, links) as made:
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

    def took(self, name: str, seconds: float, attributes: Attributes) -> None:
        """Measure a duration. Many are recorded at once: one by one between calls, each takes several times as long."""
        self._durations.append((name, seconds, attributes))
        if len(self._durations) >= AT_ONCE:
            self.record()

    def record(self, _options: CallbackOptions | None = None) -> tuple[Observation, ...]:
        """Record the durations that were measured."""
        with suppress(IndexError):  # another thread may record them meanwhile
            while self._durations:
                name, seconds, attributes = self._durations.popleft()
                self._duration(name).record(seconds, self.judged(attributes))
        return ()

    def _new_duration(self, name: str) -> Histogram:
        return self._meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=BOUNDS_SECONDS)

    def mark(self, attributes: Attributes) -> None:
        """Add attributes to the span around it."""
        trace.get_current_span().set_attributes(attributes)

    def current(self) -> Context:
        """Return where in a trace this is."""
        return get_current()

    @contextmanager
    def within(self, there: Context) -> Iterator[None]:
        """Be there."""
        token = attach(there)
        try:
            yield
        finally:
            detach(token)

    def extracted(self, carrier: Mapping[str, Any]) -> Context:
        """Return where a carrier says that its sender is."""
        texts = {name: each for name in CARRIED if isinstance(each := carrier.get(name), str)}
        return propagate.extract(texts, get_current())

    def inject(self, carrier: MutableMapping[str, Any]) -> None:
        """Put the trace context into a carrier, and the baggage as it came unless OTEL_PROPAGATORS leaves it out."""
        propagate.inject(carrier)


def _filter_all(name: str, quiet: logging.Filter) -> None:
    """Put a filter before the records of a logger and of those below it, which do not pass its filters."""
    below = [each for each in logging.Logger.manager.loggerDict if each == name or each.startswith(f"{name}.")]
    for each in (name, *below):
        logging.getLogger(each).addFilter(quiet)
