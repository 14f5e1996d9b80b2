"""A program that another server runs is made once, whatever of the connection to that server fails, and when."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.types import Message

from sealab.server.governance.caller import Caller
from sealab.server.governance.questions import Question, Reply
from sealab.server.interfaces.protocol.replicas.peer_calls import _end, _Lines
from sealab.server.use_cases.replicas.membership import Membership
from sealab.server.use_cases.replicas.peer_link import PeerLink, PeerUnreached
from sealab.server.use_cases.replicas.remote_runs import RemoteRuns
from sealab.server.use_cases.replicas.replica_errors import OutcomeUnknown, SessionElsewhere
from sealab.server.use_cases.replicas.replica_keys import ReplicaKeys
from sealab.server.use_cases.runs.request import CodeRequest, Execution
from sealab.skills_db.engine import Database
from sealab.skills_db.replicas import ReplicaRow, ReplicaStore

KEYS = ReplicaKeys(b"k" * 32)


class Peer:
    """A server that begins a run, has a question, and lets nobody in any more: `runs` were begun."""

    def __init__(self) -> None:
        self.runs = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> ReplicaRow:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return ReplicaRow("b" * 16, 1, f"http://{host}:{port}", "", "1", 1000.0, is_leaving=False, is_alive=True)

    def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def end(self) -> None:
        for writer in self._writers:
            writer.close()
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        asked = json.loads((await reader.readexactly(length)).partition(b"\n")[0])
        if asked["kind"] == "run":
            self.runs += 1
            said = b'{"ask":["q",{"plain":"Go on?","choices":["yes"]}]}\n'
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(said), said))
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()


async def _nothing_lost() -> None:
    raise AssertionError("The lease was never lost.")


async def test_an_answer_that_cannot_be_delivered_never_counts_as_a_run_that_did_not_begin(shared: Database) -> None:
    peer = Peer()
    row = await peer.start()
    membership = Membership(lambda: ReplicaStore(shared), KEYS, "http://127.0.0.1:1", version="1", lost=_nothing_lost)
    await membership.start()
    link = PeerLink(membership, KEYS)

    async def ask(_question: Question) -> Reply:
        peer.close()  # so that the answer reaches nobody
        return Reply(choice="yes")

    try:
        request = CodeRequest(code="ask()", session="s", caller=Caller(ask=ask))
        with pytest.raises(OutcomeUnknown, match="may stand"):
            await RemoteRuns(link, KEYS).run(row, "default", request, None)
        assert peer.runs == 1
        with pytest.raises(PeerUnreached):
            await link.ask(row, {"kind": "still"})
    finally:
        await link.close()
        await peer.end()
        await membership.leave()


async def test_a_run_that_a_server_without_its_lease_did_not_begin_is_not_refused_for_good() -> None:
    said: list[bytes] = []

    async def send(message: Message) -> None:
        said.append(message.get("body", b""))

    async def without_a_lease() -> Execution:
        raise SessionElsewhere("This server has lost touch with the database, so nothing of this call ran.")

    working = asyncio.create_task(without_a_lease())
    await asyncio.wait({working})
    await _end(_Lines(send), working)
    # The server that sent it asks again, for as long as the call may wait: a refusal would be the answer to its client.
    assert json.loads(b"".join(said)) == {"not_here": True}
