"""A guard between a client that writes lines and a server that says what it is told to: `tests/data/upstreams/scripted.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psutil

from ...waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SCRIPTED = ROOT / "tests" / "data" / "upstreams" / "scripted.py"
GUARD = [sys.executable, "-P", "-m", "sealab.server", "guard"]
Message = dict[str, Any]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SEALAB_")}
    return {**kept, "SEALAB_VAULT_KEYRING": "false", **more}


class Guarded:
    """The two ends of a guard: what a client sees of it, and what its server was sent."""

    def __init__(self, process: subprocess.Popen[bytes], received: Path) -> None:
        self.process = process
        self._received = received
        self._number = 0
        self.seen: list[Message] = []
        """What came from the guard beside the answers that were asked for."""

    def send(self, *messages: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        self.process.stdin.flush()

    def ask(self, method: str = "tools/call", *, script: Message | None = None, **params: Any) -> int:
        """Send a request, and return its number."""
        self._number += 1
        meta = {"script": {"answer": {"result": {}}, **(script or {})}}
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, "_meta": meta}})
        return self._number

    def read(self) -> Message:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the guard ended"
        return json.loads(line)

    def answer_to(self, number: int | str) -> Message:
        """Read until an answer has come, and return it; the rest is in `seen`."""
        for at, each in enumerate(self.seen):
            if each.get("id") == number and "method" not in each:
                return self.seen.pop(at)
        while (message := self.read()).get("id") != number or "method" in message:
            self.seen.append(message)
        return message

    def answer(self, method: str = "tools/call", *, script: Message | None = None, **params: Any) -> Message:
        return self.answer_to(self.ask(method, script=script, **params))

    def result(
        self, result: Message, method: str = "tools/call", *, script: Message | None = None, **params: Any
    ) -> Message:
        """Send a result from the server, and return what the client gets of it."""
        return self.answer(method, script={"answer": {"result": result}, **(script or {})}, **params)["result"]

    def text(self, text: str) -> str:
        """Send a text from the server, and return what the client gets of it."""
        return self.result({"content": [{"type": "text", "text": text}]})["content"][0]["text"]

    def received(self, method: str) -> list[Message]:
        """What the server was sent of a method, `""` for answers, as parameters or whole."""
        messages = [json.loads(line) for line in self._received.read_text().splitlines()]
        return [each for each in messages if each.get("method", "") == method]

    def last_received(self, method: str = "tools/call") -> Message:
        wait_until(lambda: self.received(method))
        return self.received(method)[-1]

    def server(self) -> psutil.Process:
        (child,) = psutil.Process(self.process.pid).children()
        return child

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        with self.process:  # which closes its pipes
            pass


@contextmanager
def guarded(
    folder: Path, *options: str, env: Mapping[str, str] | None = None, stderr: int | None = None, home: str = "home"
) -> Iterator[Guarded]:
    folder.mkdir(parents=True, exist_ok=True)
    received = folder / f"received-{len(list(folder.iterdir()))}"
    received.touch()
    command: Sequence[str] = [
        *GUARD, "--home", str(folder / home), "--mode", "fast", *options, "--", sys.executable, str(SCRIPTED), str(received),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment(**(env or {}))
    )
    with Guarded(process, received) as running:
        yield running
