"""What has come to the address of a server that is gone gets no program, and its answers count as none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing

import pytest
from starlette.types import Message, Receive, Scope, Send

from sealab.server.governance.caller import Caller
from sealab.server.governance.rights import REPLICA_PATH
from sealab.server.interfaces.protocol.replicas.door import Door
from sealab.server.use_cases.replicas import peer_link
from sealab.server.use_cases.replicas.peer_link import PeerLink, PeerLost, PeerUnreached
from sealab.server.use_cases.replicas.remote_runs import RemoteRuns
from sealab.server.use_cases.replicas.replica_keys import ReplicaKeys
from sealab.server.use_cases.replicas.seals import ANSWER_HEADER, HEADER, SealCheck, answer_mark, sealed
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.skills_db.replicas import ReplicaRow

KEYS = ReplicaKeys(b"k" * 32)
ME, OTHER = "a" * 16, "b" * 16


class Timed:
    """What a link and a door ask a membership for."""

    id = ME

    def now(self) -> float:
        return 1000.0


class Answering:
    """What answers at an address, with the key or without one; `got` are the questions that it was sent."""

    def __init__(self, key: bytes | None, said: bytes = b"{}") -> None:
        self.key = key
        self.said = said
        self.got: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.split(": ", 1) for line in head.lower().splitlines()[1:] if line)
            asked = await reader.readexactly(int(fields["content-length"]))
            self.got.append(json.loads(asked.partition(b"\n")[0])["kind"])
            mark = "" if self.key is None else f"{ANSWER_HEADER}: {answer_mark(self.key, fields[HEADER], 200)}\r\n"
            length = len(self.said)
            writer.write(f"HTTP/1.1 200 OK\r\n{mark}connection: close\r\ncontent-length: {length}\r\n\r\n".encode())
            writer.write(self.said)
            await writer.drain()


@pytest.fixture
async def link() -> AsyncIterator[PeerLink]:
    made = PeerLink(Timed(), KEYS)  # type: ignore[arg-type]
    yield made
    await made.close()


def row(server: asyncio.Server) -> ReplicaRow:
    host, port = server.sockets[0].getsockname()
    return ReplicaRow(OTHER, 1, f"http://{host}:{port}", "", "1", 1000.0, is_leaving=False, is_alive=True)


@pytest.mark.parametrize("key", [None, b"x" * 32])
async def test_who_took_the_address_of_a_server_is_sent_no_program(
    link: PeerLink, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_link, "HEARD_SECONDS", -1.0)
    real, other = Answering(KEYS.seal), Answering(key, b'{"end": {}}')
    async with await asyncio.start_server(real, "127.0.0.1", 0) as server:
        await link.reach(row(server))
    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        with pytest.raises(PeerUnreached, match="is not"):
            await RemoteRuns(link, KEYS).run(row(server), "default", CodeRequest(code="1", caller=Caller("a")), None)
        with pytest.raises(PeerLost, match="is not"):
            await link.ask(row(server), {"kind": "sessions"})
    assert other.got == ["still", "sessions"]


async def test_an_answer_without_a_mark_is_that_of_a_stranger_from_the_first(link: PeerLink) -> None:
    async with await asyncio.start_server(Answering(None), "127.0.0.1", 0) as server:
        with pytest.raises(PeerLost, match="is not"):
            await link.ask(row(server), {"kind": "still"})


@pytest.mark.parametrize("said", [b"[]", b"{", b"[" * 100_000, b'{"a": "' + b"x" * peer_link._ANSWER_BYTES_MAX + b'"}'])
async def test_an_answer_that_is_none_or_has_no_end_counts_as_lost(link: PeerLink, said: bytes) -> None:
    async with await asyncio.start_server(Answering(KEYS.seal, said), "127.0.0.1", 0) as server:
        with pytest.raises(PeerLost):
            await link.ask(row(server), {"kind": "sessions"})


async def test_the_door_marks_what_answers_a_right_seal_and_nothing_else(link: PeerLink) -> None:
    sent: list[Message] = []

    class Replicas:
        keys, membership, seals = KEYS, Timed(), SealCheck(KEYS.seal, ME)

    async def calls(_head: object, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body"})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}\n"}

    door = Door(calls, calls, calls, Replicas(), "/mcp")  # type: ignore[arg-type]
    seal = sealed(KEYS.seal, sender=OTHER, to=ME, now=1000.0, method="POST", path=REPLICA_PATH, body=b"{}\n")
    for given in (seal, seal[:-1] + "!"):
        headers = [(HEADER.encode(), given.encode())]
        await door({"type": "http", "method": "POST", "path": REPLICA_PATH, "headers": headers}, receive, send)
    right, wrong = (dict(each["headers"]) for each in sent if each["type"] == "http.response.start")
    assert right[ANSWER_HEADER.encode()] == answer_mark(KEYS.seal, seal, 202).encode()
    assert ANSWER_HEADER.encode() not in wrong
