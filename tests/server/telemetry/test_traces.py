"""What a real collector is sent of calls and runs: the names of the conventions, one whole trace, and nothing personal."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import SpanKind, StatusCode

from sealab.server.base.telemetry import tracing
from sealab.tools_registry.untraced import trace_sdk

from ...waiting import until
from ..conftest import http_server, in_this_process
from ..protocol.web.raw import MODERN, call, post
from ..upstream_tools.test_registry import configure
from .collector import Collector, collecting, said, wait_for

CONVENTIONS = yaml.safe_load((Path(__file__).parents[2] / "data" / "telemetry" / "conventions.yaml").read_text())
ENV = {"SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEYRING": "false"}
PERSON, MAIL = "Ulrike Brandtner", "u.brandtner@example.com"
PHOENIX = os.environ.get("SEALABTEST_PHOENIX", "")
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
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
        "tools/list": {{"tools": [{{"name": "look", "inputSchema": {{"type": "object"}}}},
                                  {{"name": "fail", "inputSchema": {{"type": "object"}}}}]}},
    }}
    answer = {{"result": answers[asked["method"]]}} if asked["method"] in answers else {{
        "error": {{"code": -32601, "message": "no"}}}}
    if asked["method"] == "tools/call":
        failed = asked["params"]["name"] == "fail"
        answer = {{"result": {{"content": [{{"type": "text", "text": {f"{PERSON} {MAIL}"!r}}}], "isError": failed}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **answer}}), flush=True)
"""


@contextmanager
def told(collector: Collector, monkeypatch: pytest.MonkeyPatch, **more: str) -> Iterator[None]:
    """Export what this process does to the collector, as `serve` does."""
    for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}.items():
        monkeypatch.setenv(name, value)
    tracing.start(os.environ)
    try:
        yield
    finally:
        trace_sdk(None)
        if (stopped := tracing.stop()) is not None and not collector.hangs:
            stopped.close()


def wire(home: Path) -> Path:
    (home / "wire.py").write_text(WIRE)
    configure(
        home, w={"command": sys.executable, "args": [str(home / "wire.py"), str(home / "sent")], "approve": "never"}
    )
    return home / "sent"


CODE = f"""
import asyncio
await asyncio.gather(*(tools.w.look(who={PERSON!r}, n=n) for n in range(20)))
try:
    await tools.w.fail(mail={MAIL!r})
except ToolError as error:
    result = str(error)
"""


@dataclass(frozen=True)
class Flow:
    """What a collector was sent of a call, of one of no tool, and of a background run; and what an upstream got."""

    collector: Collector
    sent: str
    asked: Any


@pytest.fixture(scope="module")
async def flow(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    home = tmp_path_factory.mktemp("home")
    sent = wire(home)
    env = ENV | {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"}
    with pytest.MonkeyPatch.context() as patch, collecting() as collector, told(collector, patch):
        patch.setattr(tracing, "PART_SECONDS", 0.0)
        async with in_this_process(home, env) as caller:
            meta = {"traceparent": PARENT, "baggage": f"who={PERSON[:6]}"}
            ran = await caller.client.call_tool("execute_code", {"code": CODE}, meta=meta)
            assert not ran.is_error, ran.content
            assert (await caller.call(PERSON)).is_error
            asked = await caller.run("1 + 1", background=True)
            await caller.call("get_run", run_id=asked["run_id"], wait_seconds=30)
    return Flow(collector, sent.read_text(), asked)


async def test_a_call_is_one_trace_from_the_client_to_the_upstream_and_names_are_those_of_the_conventions(
    flow: Flow,
) -> None:
    collector = flow.collector
    [run] = [each for each in collector.named("sealab.run") if each.parent_span_id]
    served = next(each for each in collector.named("tools/call execute_code") if each.span_id == run.parent_span_id)
    looks = collector.named("tools/call look")
    [failed] = collector.named("tools/call fail")
    assert {each.trace_id.hex() for each in (run, served, failed, *looks)} == {TRACE}
    assert served.parent_span_id.hex() == PARENT.split("-")[2]
    assert (run.parent_span_id, len(looks)) == (served.span_id, 20)
    assert {each.parent_span_id for each in (*looks, failed)} == {run.span_id}
    assert {each.kind for each in looks} == {3}  # CLIENT
    assert served.kind == 2  # SERVER
    attributes = said(looks[0])
    assert {
        "gen_ai.tool.name": "look",
        "mcp.method.name": "tools/call",
        "network.transport": "pipe",
    }.items() <= attributes.items()
    assert said(failed)["error.type"] == "tool_error"
    assert said(run)["sealab.run.outcome"] == "ok"
    parents = {
        json.loads(line)["params"]["_meta"]["traceparent"].split("-")[2]
        for line in flow.sent.splitlines()
        if '"tools/call"' in line
    }
    assert parents == {each.span_id.hex() for each in (*looks, failed)}
    assert {each.name for each in collector.spans if each.parent_span_id == served.span_id} == {"sealab.run"}
    named = {each.name for each in collector.spans if each.trace_id.hex() == TRACE}
    parts = {f"sealab.{part}" for part in ("run.queue", "run.worker", "run.compile", "run.privacy", "run.archive")}
    assert parts | {"sealab.privacy.detect"} <= named
    [worker] = [each for each in collector.named("sealab.run.worker") if each.parent_span_id == run.span_id]
    first, last = min(each.start_time_unix_nano for each in looks), max(each.end_time_unix_nano for each in looks)
    assert worker.start_time_unix_nano <= first <= last <= worker.end_time_unix_nano + 1_000_000
    assert all(
        "baggage" in json.loads(line)["params"]["_meta"] for line in flow.sent.splitlines() if "tools/call" in line
    )
    assert {each["service.name"] for each in collector.resources} == {"sealab"}
    check_names(collector)
    everything = b"".join(collector.bodies)
    for secret in (PERSON, MAIL, "Ulrike", "brandtner", "gather", "/tmp/"):
        assert secret.encode() not in everything


def check_names(collector: Collector) -> None:
    known = {each["key"] for each in CONVENTIONS["span_attributes"]}
    kinds = {each["kind"] for each in CONVENTIONS["spans"]}
    assert kinds == {"client", "server"}
    for span in collector.spans:
        attributes = said(span)
        assert {name for name in attributes if not name.startswith("sealab.")} <= known
        assert (span.events, span.status.message) == ([], "")
        if span.kind in {2, 3}:
            assert attributes["mcp.method.name"] in {*CONVENTIONS["methods"], "_OTHER"}
            assert span.name.split(" ")[0] == attributes["mcp.method.name"]
    ours = {name: metric for name, metric in collector.metrics.items() if not name.startswith(("sealab.", "otel."))}
    declared = {each["name"]: each for each in CONVENTIONS["metrics"]}
    assert ours.keys() <= declared.keys()
    for name, metric in ours.items():
        assert (metric.WhichOneof("data"), metric.unit) == (declared[name]["instrument"], declared[name]["unit"])
    assert {
        "mcp.server.operation.duration",
        "mcp.client.operation.duration",
        "gen_ai.execute_tool.duration",
    } <= ours.keys()


async def test_a_background_run_is_linked_to_what_asked_for_it_and_no_part_of_it(flow: Flow) -> None:
    [run] = [each for each in flow.collector.named("sealab.run") if not each.parent_span_id]
    [link] = run.links
    served = next(each for each in flow.collector.named("tools/call execute_code") if each.span_id == link.span_id)
    assert (run.trace_id != served.trace_id, said(run)["sealab.run.background"]) == (True, True)
    assert said(run)["sealab.run.id"] == flow.asked["run_id"]


async def test_a_collector_that_hangs_slows_no_run_and_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quick = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.2", "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
    with collecting(hangs=True) as collector, told(collector, monkeypatch, **quick):
        async with in_this_process(tmp_path, ENV) as caller:
            await caller.run("1")
            began = time.monotonic()
            for _ in range(5):
                assert (await caller.run("1"))["success"]
            assert time.monotonic() - began < 20
            await until(lambda: any("Telemetry cannot be sent" in each for each in caplog.messages))
            await asyncio.sleep(0.5)
    assert len([each for each in caplog.records if each.name.startswith("opentelemetry")]) == 1


def test_a_server_over_http_takes_the_context_of_headers_and_sends_what_it_was_told_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        try:
            with http_server(tmp_path, **ENV) as url:
                post(url, call("1 + 1"), traceparent=PARENT, **MODERN)
        finally:
            trace_sdk(None)
    [served] = collector.named("tools/call execute_code")
    assert (served.trace_id.hex(), served.parent_span_id.hex()) == (TRACE, PARENT.split("-")[2])
    assert said(served)["network.transport"] == "tcp"
    assert "mcp.server.operation.duration" in collector.metrics


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, set()),
        ({"OTEL_SERVICE_NAME": "x"}, set()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, {"traces", "metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, {"traces"}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, {"traces"}),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {"traces"}),
        ({"OTEL_TRACES_EXPORTER": "console"}, set()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, set()),
    ],
)
def test_what_is_sent_follows_from_the_standard_variables(environment: dict[str, str], found: set[str]) -> None:
    assert tracing.wanted(environment) == found


def test_spans_are_encoded_as_the_exporter_would_and_without_texts_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    with collecting() as collector, told(collector, monkeypatch, OTEL_METRICS_EXPORTER="none"):
        exporting = tracing._exporting
        assert exporting is not None
        assert exporting._batch is not None
        monkeypatch.setattr(exporting._batch, "on_end", kept.append)
        remote = {"traceparent": PARENT, "tracestate": "a=b,c=d"}
        with tracing.came_with(remote), suppress(KeyError), tracing.span("sealab.run", {"sealab.run.id": "r1"}):
            tracing.mark({"sealab.run.background": True, "sealab.run.tool_calls": 1, "sealab.run.cpu_seconds": 1.0})
            with tracing.span("sealab.run", {"sealab.run.tool_calls": True}, link=PARENT):
                exporting.past("sealab.run.queue", 1.0, 2.0)
            trace.get_current_span().add_event(MAIL)
            trace.get_current_span().set_status(StatusCode.ERROR, MAIL)
            raise KeyError(MAIL)
        with exporting.tracer("mcp-python-sdk").start_as_current_span("tools/call", kind=SpanKind.SERVER) as served:
            served.record_exception(ValueError(MAIL))
        exporting._batch.span_exporter.export(kept)
    [body] = collector.bodies
    assert ExportTraceServiceRequest.FromString(body) == encode_spans(kept)
    assert (len(kept), MAIL.encode() in body, said(collector.spans[2])["error.type"]) == (4, False, "KeyError")


@pytest.mark.parametrize(
    ("sampler", "flags", "sent"),
    [("", "01", 2), ("", "00", 0), ("always_on", "00", 2), ("always_off", "01", 0), ("traceidratio", "00", 2)],
)
def test_what_is_sampled_follows_from_the_standard_variables_and_goes_on_with_the_context(
    sampler: str, flags: str, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: dict[str, Any] = {}
    with (
        collecting() as collector,
        told(collector, monkeypatch, OTEL_TRACES_SAMPLER=sampler),
        tracing.came_with({"traceparent": PARENT[:-2] + flags}),
        tracing.span("a"),
        tracing.span("b"),
    ):
        tracing.carry(carried)
    assert (len(collector.spans), carried["traceparent"][:35]) == (sent, PARENT[:35])
    assert carried["traceparent"][-2:] == ("01" if sent else "00")


async def test_http_headers_say_where_a_caller_is_and_an_upstream_is_told_by_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sealab.tools_registry.untraced import headers_of

    body = json.dumps({"params": {"_meta": {"traceparent": PARENT, "other": 1}}}).encode()
    assert headers_of(body) == {}
    with collecting() as collector, told(collector, monkeypatch):
        assert headers_of(body) == {"traceparent": PARENT}
        assert headers_of(b"no") == {}
        with tracing.came_with({"traceparent": PARENT}), tracing.span("sealab.run"):
            carried: dict[str, Any] = {}
            tracing.carry(carried)
    assert carried["traceparent"].split("-")[1] == TRACE
    assert collector.named("sealab.run")[0].parent_span_id.hex() == PARENT.split("-")[2]


def test_where_nobody_asks_for_it_nothing_of_opentelemetry_is_imported() -> None:
    code = (
        "import sys; import sealab.server.serve; from sealab.server.base.telemetry import tracing\n"
        "tracing.start({})\n"
        "with tracing.span('sealab.run') as made, tracing.timed('x', {}): tracing.carry({})\n"
        "print(made, [name for name in sys.modules if name.partition('.')[0] == 'opentelemetry'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None []\n"


@pytest.mark.skipif(
    not PHOENIX, reason="no other collector runs: SEALABTEST_PHOENIX is the address of an Arize Phoenix"
)
async def test_a_collector_of_others_has_the_trace_of_twenty_calls_at_once_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire(tmp_path)
    trace = uuid.uuid4().hex
    with told(Collector(PHOENIX), monkeypatch, OTEL_METRICS_EXPORTER="none"):
        async with in_this_process(tmp_path, ENV) as caller:
            await caller.client.call_tool(
                "execute_code", {"code": CODE}, meta={"traceparent": PARENT.replace(TRACE, trace)}
            )
    spans: list[dict[str, Any]] = []

    def whole() -> bool:
        listed = httpx2.get(f"{PHOENIX}/v1/projects/default/spans?limit=1000").json()["data"]
        spans[:] = [each for each in listed if each["context"]["trace_id"] == trace]
        return "sealab.run" in {each["name"] for each in spans}

    wait_for(whole)
    [run] = [each for each in spans if each["name"] == "sealab.run"]
    looks = [each for each in spans if each["name"] == "tools/call look"]
    assert (len(looks), {each["parent_id"] for each in looks}) == (20, {run["context"]["span_id"]})
    known = {each["context"]["span_id"] for each in spans}
    assert [each["name"] for each in spans if each["parent_id"] not in known] == ["tools/call execute_code"]
    assert PERSON not in json.dumps(spans)
