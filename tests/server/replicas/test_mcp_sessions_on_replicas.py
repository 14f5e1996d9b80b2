"""An MCP session of 2025 is served through every server, and ends with the one that has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...waiting import wait_until
from ..protocol.web.raw import HEADERS, PING, asked, call, connected, opened, post
from .conftest import Sealab
from .test_sessions_on_replicas import bearer, report


@pytest.mark.timeout(120)
def test_a_session_is_used_listened_to_and_ended_through_servers_that_do_not_have_it(team: Sealab) -> None:
    alice = bearer(team.token("acme", "alice"))
    name = opened(team.urls[0], **alice)
    for url in team.urls:
        assert report(post(url, call("6 * 7"), mcp_session_id=name, **alice))["result"] == 42
    stream = connected(team.urls[1])
    stream.request("GET", "/mcp", headers={**HEADERS, "mcp-session-id": name, **alice})
    answer = stream.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
    assert answer.getheader("mcp-session-id") == name
    assert asked(team.urls[2], "DELETE", mcp_session_id=name, **alice).status == 200
    answer.read()  # until it ends
    stream.close()
    for url in team.urls:
        assert post(url, PING, mcp_session_id=name, **alice).status == 404


@pytest.mark.timeout(120)
def test_an_id_counts_with_its_signature_and_its_credentials_alone(team: Sealab) -> None:
    alice, bob = bearer(team.token("acme", "alice")), bearer(team.token("acme", "bob"))
    name = opened(team.urls[0], **alice)
    server, inner, signature = name.split(".")
    forged = [inner, f"{server}.{inner}", f"{server}.{inner}.{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"]
    forged += [f"{'0' * 16}.{inner}.{signature}", f"{server}.{inner[:-1]}.{signature}", "x"]
    for url in team.urls:
        for each in forged:
            assert post(url, PING, mcp_session_id=each, **alice).status == 404
        assert post(url, PING, mcp_session_id=name, **bob).status == 404
        assert post(url, PING, mcp_session_id=name, **alice).status == 200


@pytest.mark.timeout(180)
def test_a_session_whose_server_is_gone_is_not_found_once_that_is_certain(sealab: Callable[..., Sealab]) -> None:
    running = sealab(2)
    gone, stays = running.replicas
    name = opened(gone.url)
    assert post(stays.url, PING, mcp_session_id=name).status == 200
    gone.kill()
    running.execute("UPDATE sealab_replica SET leased_until = leased_until + 1000 WHERE address = %s", gone.address)
    refused = post(stays.url, PING, mcp_session_id=name)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    running.execute("DELETE FROM sealab_replica WHERE address = %s", gone.address)
    wait_until(lambda: post(stays.url, PING, mcp_session_id=name).status == 404)
    assert post(stays.url, PING, mcp_session_id=opened(stays.url)).status == 200
