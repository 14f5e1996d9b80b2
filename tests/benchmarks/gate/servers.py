"""Running servers, asked as cheaply as can be: line by line over stdio, and by `load_client` over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.gate.processor_time import Family
from tests.benchmarks.load_client import _META as META
from tests.benchmarks.load_client import LEGACY, READY, Load, Told

LOAD_CLIENT = Path(__file__).parents[1] / "load_client.py"
START_SECONDS, END_SECONDS = 60.0, 10.0


class AnswerError(Exception):
    """A server gave no answer, or one that says what it could not do."""


class Server:
    """A server process with all that it starts; what it says on its standard error is in `log`."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.family = Family()
        self.log = tempfile.NamedTemporaryFile("w+", prefix="gate-", suffix=".log")  # noqa: SIM115 - closed by `end`
        self.process = subprocess.Popen(
            self.family.command(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
        )
        self.family.pid = self.process.pid
        self.url: str | None = None
        self._last = 0

    def end(self) -> None:
        """End it as a client does that closes its pipe; one over HTTP has none, and gets a signal."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        if self.url is not None:
            self.process.terminate()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.family.end()
        self.log.close()

    def said(self) -> str:
        """Return what it wrote to its standard error."""
        return Path(self.log.name).read_text()

    def listening(self) -> str:
        """Wait until it says where it listens. Raises `AnswerError`."""
        ends = time.monotonic() + START_SECONDS
        while self.url is None:
            if time.monotonic() > ends or self.process.poll() is not None:
                raise AnswerError(f"The server did not say where it listens: {self.said()[-500:]}")
            time.sleep(0.02)
            self.url = next((word for word in self.said().split() if word.startswith("http://")), None)
        return self.url

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request over stdio and return its result. Raises `AnswerError`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise AnswerError(f"The server has ended: {self.said()[-500:]}") from error
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") != self._last:
                continue
            if "result" not in answer:
                raise AnswerError(str(answer["error"])[:300])
            result: dict[str, Any] = answer["result"]
            return result
        raise AnswerError(f"The server has ended: {self.said()[-500:]}")

    def open(self) -> str:
        """Open a session of the older era; return the instructions."""
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "gate", "version": "1"}}
        answer = self.ask("initialize", params)
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        self.process.stdin.flush()
        return str(answer.get("instructions") or "")

    def tools(self) -> list[dict[str, Any]]:
        """Return its tools; as a first request that is one of the newer era, which needs no session."""
        found: list[dict[str, Any]] = self.ask("tools/list", {"_meta": META} if self._last == 0 else {})["tools"]
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured content. Raises `AnswerError` where the tool or the code failed."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise AnswerError(json.dumps(answer.get("structuredContent") or answer["content"])[:400])
        content: dict[str, Any] = answer["structuredContent"]
        return content

    def load(self, clients: int, calls: int) -> float:
        """Make so many calls by each client over HTTP; return the processor seconds of one call."""
        asked = Load(self.listening(), clients, calls, connects_ahead=True)
        command = [sys.executable, str(LOAD_CLIENT)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(json.dumps(asdict(asked)) + "\n")
            client.stdin.flush()
            if client.stdout.readline().strip() != READY:
                raise AnswerError("The clients did not connect.")
            before = self.family.rest()
            client.stdin.write("\n")
            client.stdin.flush()
            told = Told(**json.loads(client.stdout.readline()))
        spent = self.family.rest() - before
        if told.wrong or told.refused:
            raise AnswerError(f"{told.wrong} wrong answers, {told.refused} refused: {told.shown}")
        return spent / (clients * calls)


def to_the_end(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command to its end; return its wall seconds and the processor seconds of it and what it waited for."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _pid, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise AnswerError(f"{' '.join(command[-2:])} ended with {process.returncode}: {said[-300:].decode()}")
    return took, used.ru_utime + used.ru_stime
