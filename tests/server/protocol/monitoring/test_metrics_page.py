"""`/metrics`: what a monitoring system reads, where the operator says so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from ...conftest import http_server
from ..web.raw import MODERN, call, connected, post, run
from ..web.tokens import made

CODE = "print('a private text')\nraise ValueError('no')"


def page(url: str, method: str = "GET") -> tuple[int, str, str]:
    connection = connected(url)
    connection.request(method, "/metrics")
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type") or "", body


def read(url: str) -> Counter[tuple[str, str]]:
    """Return what the page counts; of a server in the tests' process it counts what those before it did, too."""
    return Counter(
        {
            (sample.name, next(iter(sample.labels.values()), "")): int(sample.value)
            for family in text_string_to_metric_families(page(url)[2])
            for sample in family.samples
        }
    )


def test_without_the_setting_there_is_no_such_page(tmp_path: Path) -> None:
    with http_server(tmp_path) as url:
        assert page(url)[0] == 404


def test_the_page_counts_the_runs_of_all_tenants_by_status_and_duration_and_names_nobody(tmp_path: Path) -> None:
    env = {"SEALAB_METRICS": "on", "SEALAB_AUTH": "tokens"}
    ada = made(tmp_path, "ada-lovelace", "--tenant", "acme", **env)
    ben = made(tmp_path, "ben-franklin", "--tenant", "globex", **env)
    with http_server(tmp_path, **env) as url:
        before = read(url)
        run(url, "result = 1", **ada.header)
        run(url, "result = 2", **ben.header)
        run(url, CODE, **ben.header)
        status, kind, text = page(url)
        now = read(url)
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
    with http_server(tmp_path, SEALAB_METRICS="on") as url:
        assert page(url, "POST")[0] == 405
        assert page(url, "HEAD")[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
        before = read(url)
        assert "no.such" in str(post(url, call(code, session="s"), **MODERN).message)
        now = read(url)
    assert now["sealab_sessions", ""] == 1
    assert now["sealab_tool_calls_total", "failed"] == before["sealab_tool_calls_total", "failed"] + 1
