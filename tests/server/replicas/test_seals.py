"""A server takes from another one what was sealed for it, once, and from nobody else anything at all."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sealab.server.base.identity import Right
from sealab.server.governance.rights import REPLICA_PATH
from sealab.server.use_cases.replicas.peer_link import PeerLink
from sealab.server.use_cases.replicas.replica_keys import ReplicaKeys
from sealab.server.use_cases.replicas.seals import (
    ANSWER_HEADER,
    ERA_HEADER,
    FIRST_ERA,
    FRESH_SECONDS,
    HEADER,
    EraPassed,
    SealCheck,
    SealRefused,
    WrongReceiver,
    answer_mark,
    sealed,
)
from sealab.skills_db.engine import open_database
from sealab.skills_db.replicas import ReplicaRow
from sealab.skills_db.vault_root import root_of

from ...waiting import wait_until
from ..protocol.web.raw import MODERN, Answer, call, connected, opened, post, read
from .conftest import KEY, Sealab
from .test_sessions_on_replicas import bearer, report, run

ME, OTHER = "a" * 16, "b" * 16
SECRET = b"k" * 32


def seal(**changed: Any) -> str:
    given = {"sender": OTHER, "to": ME, "now": 1000.0, "method": "POST", "path": REPLICA_PATH, "body": b"x"}
    key = changed.pop("key", SECRET)
    return sealed(key, **{**given, **changed})


def check(text: str, now: float | None = 1000.0, **changed: str) -> Any:
    return SealCheck(SECRET, ME).opened(text, now=now, **{"method": "POST", "path": REPLICA_PATH, **changed})


def test_a_seal_for_another_server_is_told_from_one_that_is_wrong() -> None:
    with pytest.raises(WrongReceiver):
        check(seal(to=OTHER))
    with pytest.raises(SealRefused) as refused:
        check(seal(to=OTHER, key=b"x" * 32))
    assert not isinstance(refused.value, WrongReceiver)


def test_what_was_sealed_is_taken_and_covers_its_body_alone() -> None:
    found = check(seal())
    assert found.sender == OTHER
    assert found.covers(b"x")
    assert not found.covers(b"y")


@pytest.mark.parametrize(
    ("text", "now", "changed"),
    [
        ("", 1000.0, {}),
        (seal(key=b"x" * 32), 1000.0, {}),
        (seal(to=OTHER), 1000.0, {}),
        (seal(), 1000.0 + FRESH_SECONDS + 1, {}),
        (seal(), 1000.0 - FRESH_SECONDS - 1, {}),
        (seal(), None, {}),
        (seal(), 1000.0, {"method": "GET"}),
        (seal(), 1000.0, {"path": "/mcp"}),
        (seal()[:-1] + "x", 1000.0, {}),
        (seal().replace("1000.000", "1001.000"), 1000.0, {}),
        (seal().replace(OTHER, "c" * 16), 1000.0, {}),
    ],
)
def test_a_seal_that_was_forged_changed_redirected_or_is_too_old_is_refused(
    text: str, now: float | None, changed: dict[str, str]
) -> None:
    with pytest.raises(SealRefused):
        check(text, now, **changed)


def test_a_seal_counts_once_for_as_long_as_it_is_fresh() -> None:
    checks = SealCheck(SECRET, ME)
    first = seal()
    for moment in (1000.0, 1000.0 + FRESH_SECONDS):
        checks.opened(seal(now=moment), now=moment, method="POST", path=REPLICA_PATH)
        if moment == 1000.0:
            checks.opened(first, now=moment, method="POST", path=REPLICA_PATH)
        with pytest.raises(SealRefused):
            checks.opened(first, now=moment, method="POST", path=REPLICA_PATH)


@pytest.mark.parametrize("ahead", [0.0, 40.0, 4000.0])
def test_a_seal_counts_once_wherever_the_clock_of_the_database_goes(ahead: float) -> None:
    checks = SealCheck(SECRET, ME)

    def opened_at(now: float, text: str) -> None:
        checks.opened(text, now=now, method="POST", path=REPLICA_PATH)

    first = seal()
    opened_at(1000.0, first)
    for later in (1000.0 + ahead, 1100.0 + ahead):  # by which all is forgotten that came before
        opened_at(later, seal(now=later))
    for _ in range(2):
        with pytest.raises(SealRefused):
            opened_at(1000.0, first)  # the clock went back
    assert checks.era != FIRST_ERA
    again = seal(now=1001.0, era=checks.era)
    opened_at(1001.0, again)
    for text in (again, first, seal(now=1001.0)):
        with pytest.raises(SealRefused):
            opened_at(1001.0, text)


def test_a_clock_that_goes_back_by_less_than_seals_are_fresh_changes_nothing() -> None:
    checks = SealCheck(SECRET, ME)
    for now in (1000.0, 1100.0, 1200.0, 1200.0 - FRESH_SECONDS + 1):
        checks.opened(seal(now=now), now=now, method="POST", path=REPLICA_PATH)
    assert checks.era == FIRST_ERA


async def test_a_server_whose_era_has_passed_is_sent_the_request_once_more_with_the_new_one() -> None:
    checks, taken = SealCheck(SECRET, ME), 0

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
            await reader.readexactly(int(fields["content-length"]))
            try:
                checks.opened(fields[HEADER], now=1000.0, method="POST", path=REPLICA_PATH)
            except EraPassed:
                writer.write(f"HTTP/1.1 409 C\r\n{ERA_HEADER}: {checks.era}\r\ncontent-length: 0\r\n".encode())
            else:
                taken += 1
                mark = answer_mark(SECRET, fields[HEADER], 200)
                writer.write(f"HTTP/1.1 200 OK\r\n{ANSWER_HEADER}: {mark}\r\ncontent-length: 2\r\n".encode())
            writer.write(b"connection: close\r\n\r\n" + (b"{}" if taken else b""))
            await writer.drain()

    for now in (1000.0, 2000.0):
        checks.opened(seal(now=now), now=now, method="POST", path=REPLICA_PATH)
    checks.opened(seal(now=3000.0), now=3000.0, method="POST", path=REPLICA_PATH)
    keys = ReplicaKeys(bytes.fromhex(KEY))
    keys.seal = SECRET
    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        link = PeerLink(Timed(), keys)  # type: ignore[arg-type]
        peer = ReplicaRow(ME, 1, f"http://{host}:{port}", "", "1", 1000.0, is_leaving=False, is_alive=True)
        try:
            assert await link.ask(peer, {"kind": "still"}) == {}
            assert await link.ask(peer, {"kind": "still"}) == {}
        finally:
            await link.close()
    assert taken == 2


class Timed:
    """What a link asks a membership for."""

    id = OTHER

    def now(self) -> float:
        return 1000.0


def _sent(url: str, body: bytes, text: str, method: str = "POST") -> Answer:
    connection = connected(url)
    connection.request(method, REPLICA_PATH, body, {HEADER: text})
    return read(connection)


@pytest.mark.timeout(120)
def test_a_server_refuses_what_is_forged_or_sent_twice_and_sends_nothing_on_a_second_time(team: Sealab) -> None:
    rows = team.execute("SELECT id, address, extract(epoch FROM clock_timestamp())::float FROM sealab_replica")
    ids = {str(address): str(each) for each, address, _now in rows}
    now = float(str(rows[0][2]))
    first, second = team.replicas[:2]
    with open_database(team.database_url, team.folder) as database:
        keys = ReplicaKeys(root_of(database, bytes.fromhex(KEY)))
    alice = team.token("acme", "alice")
    session = opened(second.url, **bearer(alice))
    identity = {"tenant": "acme", "principal": "alice", "rights": [*Right], "credential": ""}
    head = {
        "kind": "mcp",
        "headers": [["mcp-session-id", session], ["content-type", "application/json"], ["accept", "*/*"]],
        "client": ["127.0.0.1", 1],
        "scheme": "http",
        "identity": identity,
        "bearer": "",
    }
    body = json.dumps(head).encode() + b"\n" + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()

    def by(to: str, content: bytes = body, key: bytes = keys.seal) -> str:
        return sealed(key, sender=ids[first.address], to=to, now=now, method="POST", path=REPLICA_PATH, body=content)

    good = by(ids[second.address])
    assert _sent(second.url, body, good).status == 200
    assert _sent(second.url, body, good).status == 403
    assert _sent(second.url, body + b" ", by(ids[second.address])).status == 403
    assert _sent(second.url, body, by(ids[second.address], key=b"x" * 32)).status == 403
    assert _sent(second.url, body, "").status == 403
    assert _sent(second.url, body, by(ids[first.address])).status == 421
    # The first server does not have the session, and does not send it on to the one that has: it came from another.
    assert _sent(first.url, body, by(ids[first.address])).status == 404
    nobody = json.dumps({**head, "identity": None}).encode() + b"\n{}"
    assert _sent(second.url, nobody, by(ids[second.address], nobody)).status == 401
    assert sum("come as if from another server" in line for line in second.said) == 1
    # So it is with a program for a session of code.
    assert run(second.url, "n = 1", "looped", alice)["success"]
    program = {
        "kind": "run", "tenant": "acme", "scope": "principal alice", "identity": identity, "origin": "", "bearer": "",
        "asks": False, "opens": False, "code": "n", "context_vars": {}, "timeout_seconds": 5, "memory_mb": None,
        "session": "looped", "isolation": "auto", "dry_run": False, "arguments": [],
    }  # fmt: skip
    content = json.dumps(program).encode() + b"\n"
    answer = _sent(first.url, content, by(ids[first.address], content))
    assert json.loads(answer.body.splitlines()[-1]) == {"not_here": True}
    content = json.dumps({**program, "tenant": "beta"}).encode() + b"\n"
    assert _sent(first.url, content, by(ids[first.address], content)).status == 400
    weak = json.dumps({**program, "identity": {**identity, "rights": ["files"]}}).encode() + b"\n"
    assert _sent(second.url, weak, by(ids[second.address], weak)).status == 400


@pytest.mark.timeout(120)
def test_no_request_goes_to_an_address_that_somebody_else_wrote_into_the_database(
    sealab: Callable[..., Sealab],
) -> None:
    running = sealab(2)
    owner, other = running.replicas
    assert report(post(owner.url, call("n = 1", session="s"), **MODERN))["success"]
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        address = f"http://127.0.0.1:{trap.getsockname()[1]}"
        running.execute("UPDATE sealab_replica SET address = %s WHERE address = %s", address, owner.address)
        wait_until(lambda: any("not entered with the VAULT_KEY" in line for line in other.said))
        refused = post(other.url, call("n", session="s", timeout_seconds=1), **MODERN)
        assert "cannot be reached now, so nothing of this call ran" in refused.message["result"]["content"][0]["text"]
        with pytest.raises(BlockingIOError):
            trap.accept()
