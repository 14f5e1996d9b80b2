"""Whether the operator wants telemetry, as the standard variables of OpenTelemetry say it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.metadata import version

from . import tracing

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_{}_ENDPOINT")
_LOG = logging.getLogger(__name__)


def wanted(environment: Mapping[str, str]) -> frozenset[str]:
    """Return which of `traces` and `metrics` are to be sent: those that have an exporter or an endpoint, and no `none`.

    Without any of these variables nothing is: a server that nobody told of a collector looks for none.
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
    """Tell of what is done from now on, where that is wanted and the extra `otel` is installed."""
    found = wanted(environment)
    if not found:
        return
    try:
        from .exporting import Exporting
    except ImportError:
        _LOG.warning('OTEL_… asks for telemetry, which needs the extra otel. Install it: pip install "sealab[otel]".')
        return
    from ....tools_registry.untraced import Told, trace_sdk

    exporting = Exporting(version("sealab"), traces="traces" in found, metrics="metrics" in found)
    tracing.start(exporting)
    trace_sdk(Told(exporting.sdk_tracer(), exporting.inject))
