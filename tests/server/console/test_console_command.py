"""`sealab console` serves the console alone to whoever has its link, for those whose server speaks on stdin and stdout."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import httpx2

from ..command_line import sealab
from ..conftest import SEALAB, environment
from .conftest import Person


def test_the_command_serves_the_console_alone_until_ctrl_c_and_its_link_opens_it_once(tmp_path: Path) -> None:
    command = [*SEALAB, "console", "--home", str(tmp_path), "--json"]
    env = environment(SEALAB_VAULT_KEYRING="false")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as process:
        try:
            assert process.stdout is not None
            link = json.loads(process.stdout.readline())["url"]
            origin = link.partition("/console")[0]
            person = Person(origin, httpx2.Client(limits=httpx2.Limits(max_keepalive_connections=0)))
            assert origin.startswith("http://127.0.0.1:")
            assert person.opened().status_code == 401
            assert person.client.get(link).status_code == 303
            assert person.told("/tenants")["tenants"][0]["tenant"] == "default"
            assert person.client.get(link, headers={"Cookie": ""}).status_code == 403
            for path in ("/mcp", "/healthz"):
                assert person.client.post(f"{origin}{path}", json={}).status_code in {401, 404, 415}
            assert person.client.get(f"{origin}/console", headers={"Host": "evil.example"}).status_code == 421
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def test_an_address_that_is_none_and_a_tenant_are_refused(tmp_path: Path) -> None:
    assert "is no address of a server" in sealab("console", "--url", "x", "--home", str(tmp_path)).refusal()
