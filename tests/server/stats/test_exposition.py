"""`/metrics`, where the operator wants it: what Prometheus's own parser reads, and what it is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from sealab.server.base.stats.run_stats import BUCKETS_SECONDS, NAMES_MAX, OTHER, EndedCall, RunTotals
from sealab.server.interfaces.protocol.monitoring.metrics_page import counter, counters, gauge, histograms, information

from ..conftest import http_server
from ..protocol.web.raw import MODERN, call, connected, post, run
from ..protocol.web.tokens import made


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_each_kind_of_metric_is_read_with_its_type_and_its_help() -> None:
    text = (
        gauge("a", "One.", 3) + counter("b_total", "Two\nlines \\ here.", 2.5) + information("c", "Three.", {"v": "1"})
    )
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name: family.type for name, family in families.items()} == {"a": "gauge", "b": "counter", "c": "gauge"}
    assert families["b"].documentation == "Two\nlines \\ here."
    assert samples(text) == {("a", ()): 3, ("b_total", ()): 2.5, ("c", (("v", "1"),)): 1}


@given(st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1), st.floats(0, 1e300)))
def test_any_label_and_any_value_come_back_as_they_were(values: dict[str, float]) -> None:
    read = samples(counters("x_total", "Some.", ["of"], {(key,): value for key, value in values.items()}))
    assert read == {("x_total", (("of", key),)): value for key, value in values.items()}


@given(st.lists(st.floats(0, 1000), max_size=50))
def test_a_duration_is_in_the_first_bucket_that_bounds_it_and_in_all_beyond(seconds: list[float]) -> None:
    totals = RunTotals()
    for each in seconds:
        totals.count("acme", "restricted", "ok", each, 10.0)
    labels = ("tenant", "isolation")
    read = {
        (name, tuple(each for each in pairs if each[0] == "le")): value
        for (name, pairs), value in samples(histograms("d_seconds", "Durations.", labels, totals.durations)).items()
    }
    if not seconds:
        assert read == {}
        return
    for bound in BUCKETS_SECONDS:
        label = str(int(bound)) if bound.is_integer() else repr(bound)
        assert read["d_seconds_bucket", (("le", label),)] == sum(each <= bound for each in seconds)
    assert read["d_seconds_bucket", (("le", "+Inf"),)] == read["d_seconds_count", ()] == len(seconds)
    assert read["d_seconds_sum", ()] == totals.durations["acme", "restricted"].seconds


def test_a_run_that_did_not_begin_is_counted_and_has_no_duration() -> None:
    totals = RunTotals()
    totals.count("acme", "restricted", "busy", None, 0.0)
    assert totals.runs == {("acme", "restricted", "busy"): 1}
    assert not totals.durations


def test_however_many_tools_and_tenants_there_are_their_labels_are_bounded() -> None:
    totals = RunTotals()
    for each in range(2000):
        totals.count_tool_calls(f"t{each}", [EndedCall(f"s{each % 100}", f"tool{each}", ok=True, seconds=0.1)])
    for place, (label, most) in enumerate(NAMES_MAX.items()):
        found = {key[place] for key in totals.tool_calls}
        assert (len(found) <= most + 1, OTHER in found) == (True, True), label
    assert totals.tool_calls.total() == 2000


CODE = "print('a private text')\nraise ValueError('no')"


def page(url: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = connected(url)
    connection.request(method, "/metrics", headers={name.replace("_", "-"): each for name, each in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type") or "", body


def read(url: str) -> Counter[tuple[str, str]]:
    """Return what the page counts; of a server in the tests' process it counts what those before it did, too."""
    counts: Counter[tuple[str, str]] = Counter()
    for family in text_string_to_metric_families(page(url)[2]):
        for sample in family.samples:
            counts[sample.name, sample.labels.get("outcome") or sample.labels.get("le", "")] += int(sample.value)
    return counts


def test_where_the_operator_wants_none_there_is_no_such_page(tmp_path: Path) -> None:
    with http_server(tmp_path, SEALAB_METRICS="off") as url:
        assert page(url)[0] == 404


def test_the_page_counts_the_runs_of_all_tenants_and_names_tenants_to_an_admin_alone(tmp_path: Path) -> None:
    env = {"SEALAB_AUTH": "tokens"}
    admin = made(tmp_path, "root", "--scope", "admin", **env)
    ada = made(tmp_path, "ada-lovelace", "--tenant", "acme", **env)
    ben = made(tmp_path, "ben-franklin", "--tenant", "globex", **env)
    with http_server(tmp_path, **env) as url:
        before = read(url)
        run(url, "result = 1", **ada.header)
        run(url, "result = 2", **ben.header)
        run(url, CODE, **ben.header)
        status, kind, text = page(url)
        now = read(url)
        named = samples(page(url, **admin.header)[2])
        refused = [page(url, **each)[0] for each in (ada.header, {"authorization": "Bearer no"})]
        through_a_proxy = page(url, x_forwarded_for="203.0.113.9")
    assert refused == [403, 401]
    assert (through_a_proxy[0], "sealab_runs" in through_a_proxy[2]) == (403, False)
    assert named["sealab_runs_total", (("isolation", "restricted"), ("outcome", "error"), ("tenant", "globex"))] == 1
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    more = {name: now[name] - before[name] for name in now}
    assert more["sealab_runs_total", "ok"] == 2
    assert more["sealab_runs_total", "error"] == 1
    assert more["sealab_run_duration_seconds_count", ""] == more["sealab_run_duration_seconds_bucket", "+Inf"] == 3
    assert now["sealab_tenants_open", ""] == 2
    assert now["sealab_runs_waiting", ""] == now["sealab_runs_running", ""] == 0
    for secret in ("ada", "ben", "acme", "globex", "private", "ValueError", ada.token, urlsplit(url).netloc):
        assert secret not in text


def test_only_reading_the_page_is_answered_and_sessions_and_tool_calls_are_counted(tmp_path: Path) -> None:
    code = "try:\n    await call_tool('no.such', {})\nexcept Exception as e:\n    result = str(e)"
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"gone": {"command": "no", "disabled": True}}}))
    with http_server(tmp_path) as url:
        assert page(url, "POST")[0] == 405
        assert page(url, "HEAD")[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
        before = read(url)
        assert "no.such" in str(post(url, call(code, session="s"), **MODERN).message)
        now = read(url)
        told = samples(page(url)[2])
        of_others = page(url, origin="http://evil.example")[2], page(url, host="evil.example")[2]
    names = (("outcome", "failed"), ("server", ""), ("tenant", "default"), ("tool", ""))
    assert told["sealab_tool_calls_total", names] >= 1
    assert told["sealab_upstream_servers", (("server", "gone"), ("state", "disabled"))] == 1
    assert not [each for each in of_others if "default" in each or "gone" in each]
    assert 'sealab_upstream_servers{state="disabled"} 1' in of_others[0]
    assert now["sealab_sessions", ""] == 1
    assert now["sealab_tool_calls_total", "failed"] == before["sealab_tool_calls_total", "failed"] + 1
