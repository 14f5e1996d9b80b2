"""The dashboard and the alerts ask for what `/metrics` has, and each alert says what to do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ..server.conftest import http_server
from ..server.protocol.web.raw import MODERN, call, connected, post

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]
OPERATIONS = (FOLDER.parents[1] / "docs" / "operations.md").read_text()
METRIC = re.compile(r"\b(sealab_\w+)(?:\{([^}]*)\})?")
BY = re.compile(r"by \(([^)]*)\)")
OF_PROMETHEUS = frozenset(("instance", "job", "le"))


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in json.loads((FOLDER / "sealab.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The names and labels of the page, of a server that has run something."""
    home = tmp_path_factory.mktemp("home")
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"gone": {"command": "no", "disabled": True}}}))
    code = "try:\n    await call_tool('no.such', {})\nexcept Exception:\n    pass"
    with http_server(home) as url:
        post(url, call(code), **MODERN)
        connection = connected(url)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_metric_and_label_that_is_asked_for_is_there(shown: dict[str, set[str]]) -> None:
    asked = [*expressions()]
    assert len(asked) > len(RULES)
    for expression in asked:
        names = METRIC.findall(expression)
        labels = {re.split(r"[=!~]", part)[0].strip() for _, given in names for part in given.split(",") if part}
        labels |= {each.strip() for given in BY.findall(expression) for each in given.split(",")}
        assert {name for name, _ in names} <= shown.keys(), expression
        assert labels - OF_PROMETHEUS <= set().union(*(shown[name] for name, _ in names)), expression


def test_each_alert_says_what_to_do_and_no_section_is_without_its_alert() -> None:
    alerts = [rule["alert"] for rule in RULES]
    assert re.findall(r"^### (Sealab\w+)$", OPERATIONS, re.MULTILINE) == alerts
    assert [rule["annotations"]["runbook"] for rule in RULES] == [
        f"docs/operations.md#{each.lower()}" for each in alerts
    ]


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: apt install prometheus)"
)
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", FOLDER / "alerts.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
