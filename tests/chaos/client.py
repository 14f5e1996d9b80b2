"""Clients of both eras that write their own HTTP, and what may be said of an answer whatever was asked."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60.0
LEGACY, MODERN = "2025-11-25", "2026-07-28"
_META = "io.modelcontextprotocol/"
_INFO = {"name": "chaos", "version": "1"}
_SENTENCE = re.compile(r"[A-Z][^.]* [^.]*\S[.?!]")
_FAULTS = ("Traceback (most recent call last)", "fault of sealab itself", "Internal Server Error", "Internal error")
Question = Callable[[], str]
"""Says what the user answers: `accept` or `decline`; or `vanish`, where the client goes away instead."""


@dataclass(frozen=True)
class Answer:
    """What came back.

    `status` is `ok`, a run's own, `tool error`, `rpc error`, `http …`, `question gone`, `cut`, `unreachable`, `silent`.
    """

    status: str
    text: str = ""
    content: dict[str, Any] = field(default_factory=dict)
    sent: float = 0.0

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def dishonest(self) -> str | None:
        """Return what no answer may be, whatever was asked and whatever went wrong."""
        for fault in _FAULTS:
            if fault in self.text:
                return f"{self.status} that says {fault!r}"
        if self.status in {"silent", "http 500", "http 502"}:
            return f"{self.status}: {self.text}"
        if self.status in {"tool error", "rpc error"} and not _SENTENCE.search(self.text):
            return f"{self.status} without a sentence: {self.text}"
        return None


class Client:
    """One caller, by its credentials, that speaks one era. Each message goes over a connection of its own."""

    def __init__(self, url: Callable[[], str], era: str, caller: str) -> None:
        self.era = era
        self.url = url
        self.caller = caller
        self._session: str | None = None
        self._ids = itertools.count(1)
        self._beginning = threading.Lock()

    def run(self, code: str, question: Question | None = None, **arguments: Any) -> Answer:
        return self.call("execute_code", {"code": code, **arguments}, question)

    def call(self, tool: str, arguments: dict[str, Any], question: Question | None = None) -> Answer:
        """Call a tool and return what came of it; a question to the user is answered as `question` says."""
        sent = time.monotonic()
        try:
            message = self._exchange("tools/call", {"name": tool, "arguments": arguments}, question)
        except TimeoutError:
            return Answer("silent", f"no answer to {tool} in {PATIENCE_SECONDS:g} s", sent=sent)
        except ConnectionRefusedError as error:
            return Answer("unreachable", str(error), sent=sent)
        except (OSError, http.client.HTTPException) as error:
            return Answer("cut", f"{type(error).__name__}: {error}", sent=sent)
        except _Refused as refused:
            # What the SDK says of a question of another server, or of one that by the wall clock is too old or not yet.
            expired = refused.status == 400 and '"invalid_request_state"' in refused.body
            return Answer("question gone" if expired else f"http {refused.status}", refused.body, sent=sent)
        except _Vanished:
            return Answer("vanished", sent=sent)
        if error := message.get("error"):
            return Answer("rpc error", f"{error['message']} {error.get('data') or ''}", sent=sent)
        result = message["result"]
        text = "\n".join(each.get("text", "") for each in result.get("content", ()))
        content = result.get("structuredContent") or {}
        if "run_id" in content:
            # The traceback in a report is that of the code's own lines.
            error = content.get("error") or {}
            said = " ".join(str(error[key]) for key in ("type", "message", "hint") if error.get(key))
            return Answer(content["status"], said or text, content, sent)
        return Answer("tool error" if result.get("isError") else "ok", text, content, sent)

    def _exchange(self, method: str, params: dict[str, Any], question: Question | None) -> dict[str, Any]:
        if self.era == MODERN:
            return self._rounds(method, params, question)
        for again in (False, True):
            with self._beginning:  # an answer to a question goes by the session that asked it
                session = self._session or self._initialize()
            try:
                return next(self._messages(method, params, question))
            except _Refused as refused:
                # A session does not outlive its server: that is said by 404, and a client begins another.
                if refused.status != 404 or again:
                    raise
                with self._beginning:
                    if self._session == session:
                        self._session = None
        raise AssertionError

    def _initialize(self) -> str:
        params = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": _INFO}
        with self._post({"id": 0, "method": "initialize", "params": params}) as response:
            session = response.getheader("Mcp-Session-Id")
            response.read()
        assert session is not None
        self._session = session
        with self._post({"method": "notifications/initialized"}) as response:
            response.read()
        return session

    def _messages(self, method: str, params: dict[str, Any], question: Question | None) -> Iterator[dict[str, Any]]:
        number = next(self._ids)
        asked = time.monotonic()
        with self._post({"id": number, "method": method, "params": params}) as response:
            for message in _read(response, asked + PATIENCE_SECONDS):
                if message.get("method") == "elicitation/create":
                    action = question() if question else "decline"
                    if action == "vanish":
                        raise _Vanished
                    result = {"action": action, "content": {"approve": True}}
                    with self._post({"id": message["id"], "result": result}) as taken:
                        taken.read()
                elif message.get("id") == number:
                    yield message
                    return
        raise http.client.IncompleteRead(b"a stream that ended before its answer")

    def _rounds(self, method: str, params: dict[str, Any], question: Question | None) -> dict[str, Any]:
        meta = {"protocolVersion": MODERN, "clientInfo": _INFO, "clientCapabilities": {"elicitation": {}}}
        params = {**params, "_meta": {_META + key: value for key, value in meta.items()}}
        while True:
            with self._post({"id": next(self._ids), "method": method, "params": params}) as response:
                message = next((each for each in _read(response) if "result" in each or "error" in each), None)
            if message is None:
                raise http.client.IncompleteRead(b"a stream that ended before its answer")
            result = message.get("result", {})
            if result.get("resultType") != "input_required":
                return message
            action = question() if question else "decline"
            if action == "vanish":
                raise _Vanished
            answers = {name: {"action": action, "content": {"approve": True}} for name in result["inputRequests"]}
            params = {**params, "requestState": result["requestState"], "inputResponses": answers}

    def _post(self, message: dict[str, Any]) -> http.client.HTTPResponse:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        where = urlsplit(self.url())
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE_SECONDS)
        connection.request("POST", where.path, body, self.headers(message))
        response = connection.getresponse()
        connection.close()  # the response holds the socket
        if response.status >= 400:
            with response:
                raise _Refused(response.status, response.read().decode(errors="replace"))
        return response

    def headers(self, message: dict[str, Any]) -> dict[str, str]:
        """Return the headers that this client gives with a message."""
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        given |= {"Authorization": f"Bearer {self.caller}", "Connection": "close"}
        if self.era == MODERN:
            given |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message.get("method", "")}
            return given | {"Mcp-Name": message["params"]["name"]}
        if self._session is not None:
            given |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": self._session}
        return given

    def forget(self, code: str, seconds: float) -> None:
        """Ask for a run, and go away in the middle of it."""
        params: dict[str, Any] = {"name": "execute_code", "arguments": {"code": code}}
        if self.era == MODERN:
            meta = {"protocolVersion": MODERN, "clientInfo": _INFO, "clientCapabilities": {}}
            params["_meta"] = {_META + key: value for key, value in meta.items()}
        else:
            with self._beginning:
                self._session = self._session or self._initialize()
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        body = json.dumps(message).encode()
        head = "".join(f"{key}: {value}\r\n" for key, value in self.headers(message).items())
        self.raw(f"Host: 127.0.0.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, seconds)

    def connect(self) -> socket.socket:
        where = urlsplit(self.url())
        return socket.create_connection((where.hostname, where.port), timeout=5)

    def raw(self, after_request_line: bytes, seconds: float) -> bytes:
        """Send bytes, and return what comes within some seconds; then go away."""
        with self.connect() as connection:
            connection.sendall(f"POST {urlsplit(self.url()).path} HTTP/1.1\r\n".encode() + after_request_line)
            connection.settimeout(seconds)
            try:
                return connection.recv(4096)
            except TimeoutError:
                return b""


class _Refused(Exception):
    def __init__(self, status: int, body: str) -> None:
        self.status, self.body = status, body


class _Vanished(Exception):
    pass


def _read(response: http.client.HTTPResponse, until: float = float("inf")) -> Iterator[dict[str, Any]]:
    """Give the messages of an answer, which is one of them or a stream. Raises `TimeoutError` for one without an end."""
    if response.getheader("Content-Type", "").startswith("application/json"):
        yield json.loads(response.read())
        return
    while line := response.readline():
        if time.monotonic() > until:
            raise TimeoutError
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])
