"""Runs the records made of steps: raw lines, requests, HTTP, cancelled and parallel calls.

What a step expects is written in words, of which this reads the alternatives it names (an error code, an HTTP status,
"result", "refused", "ignored" …). A step whose words name none it knows, or whose action it has not, is not readable.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

import product
from cases import Case
from planting import Ground
from product import Gone, Server, Silent

_ANSWER_SECONDS = 30.0
_TRIES_TO_END = 4
"""How long an answer may take that must come: the machine may be busy with other attacks."""
_REFUSALS = set(range(400, 500))
_IGNORED_SECONDS = 0.5
_BUSY_LOOP = (
    "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end:\n    pass\nresult = {nonce!r}"
)
_HTTP_BODY = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "attacks", "version": "1"}},
}


class NotReadable(Exception):
    """A step cannot be carried out or judged by this machine."""


def run(case: Case, server: Server, ground: Ground, *, as_user: bool) -> tuple[str, ...]:
    """Carry out the steps and return what went otherwise than expected."""
    conversation = _Conversation(server, ground, as_user=as_user)
    try:
        for step in case.steps:
            verb = getattr(conversation, f"do_{step['do']}", None)
            if verb is None:
                raise NotReadable(f"the runner has no step {step['do']!r}")
            verb(step)
    except (Gone, Silent) as error:
        conversation.wrong.append(f"the server failed: {error}")
    finally:
        conversation.close()
    return tuple(conversation.wrong)


class _Conversation:
    def __init__(self, server: Server, ground: Ground, *, as_user: bool) -> None:
        self.wrong: list[str] = []
        self._server = server
        self._ground = ground
        self._as_user = as_user
        self._asked: list[object] = []
        self._sessions: set[str] = set()
        self._web: subprocess.Popen[str] | None = None
        self._port = 0

    def close(self) -> None:
        """End what still runs: the processes that are left after that are left over."""
        with contextlib.suppress(Gone):
            for number in self._asked:
                self._cancel(number)
            for session in self._sessions:
                self._end(session)
        if self._web is not None:
            self._web.terminate()
            self._web.wait(10)

    def _end(self, session: str) -> None:
        """End a session: it is kept until it is idle, or a call in it is cancelled that has begun."""
        for _ in range(_TRIES_TO_END):
            sleeping = {"code": "import time\ntime.sleep(60)", "session": session}
            number = self._server.ask("tools/call", {"name": "execute_code", "arguments": sleeping})
            time.sleep(0.5)
            self._cancel(number)
            if not product.leftovers(self._server.pid, {self._server.pid}, seconds=0.5):
                return

    def _cancel(self, number: object) -> None:
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": number}}
        self._server.send({"jsonrpc": "2.0", **cancelled})

    # Lines and requests.

    def do_send_raw(self, step: Mapping[str, Any]) -> None:
        self._server.send_bytes(step["data"].encode())
        # An answer to what is no request cannot be told from silence by number: the ping at the end judges.

    def do_send_raw_hex(self, step: Mapping[str, Any]) -> None:
        self._server.send_bytes(bytes.fromhex(step["data"]))

    def do_request(self, step: Mapping[str, Any]) -> None:
        body = _ping_batch(step["body_gen"]) if "body_gen" in step else step["body"]
        seen = len(self._server.numbered), len(self._server.unnumbered)
        self._server.send(body)
        expected = _Expected(step.get("expect", "result"))
        number = body.get("id") if isinstance(body, dict) else None
        if isinstance(number, str | int) and not isinstance(number, bool) and "method" in body:
            self._judge(step, expected, self._answer(number, 3.0 if expected.ignored else _ANSWER_SECONDS))
            return
        deadline = time.monotonic() + (_IGNORED_SECONDS if expected.ignored else 1.5)
        while time.monotonic() < deadline and (len(self._server.numbered), len(self._server.unnumbered)) == seen:
            time.sleep(0.01)
        news = self._server.numbered[seen[0] :] + self._server.unnumbered[seen[1] :]
        # What is no request needs no answer; but the server must live, which the ping at the end judges.
        if news:
            self._judge(step, expected, news[0])

    def do_new_connection(self, _step: Mapping[str, Any]) -> None:
        self._server.start(handshake=False)

    def do_initialize(self, step: Mapping[str, Any]) -> None:
        params = step.get("params")
        if params is not None:
            params = {"capabilities": {}, "clientInfo": {"name": "attacks", "version": "1"}, **params}
        answer = self._server.initialize(params)
        if "error" not in answer and not answer["result"].get("protocolVersion"):
            self.wrong.append(f"initialize answered {json.dumps(answer)[:200]}")

    def do_notify(self, step: Mapping[str, Any]) -> None:
        body = json.loads(json.dumps(step["body"]).replace('"<id>"', json.dumps(self._last())))
        time.sleep(0.3)
        self._server.send({"jsonrpc": "2.0", **body})

    # Calls of tools.

    def do_call(self, step: Mapping[str, Any]) -> None:
        arguments = dict(step["args"])
        if step.get("session"):
            arguments["session"] = step["session"]
            self._sessions.add(step["session"])
        expected = _Expected(step.get("expect", "result"))
        seconds = 5.0 * product.slowness() if "within 5 s" in step.get("expect", "") else 40.0
        number = self._server.ask("tools/call", {"name": step["tool"], "arguments": arguments})
        self._judge(step, expected, self._answer(number, seconds))

    def do_repeat_call(self, step: Mapping[str, Any]) -> None:
        if "args" not in step:
            raise NotReadable("what each call gives is said in words alone")
        for _ in range(step["n"]):
            reply = self._server.call(step["tool"], step["args"], 40)
            if not _is_success(reply):
                self.wrong.append(f"a repeated call gave {json.dumps(reply)[:200]}")
                return

    def do_call_async(self, step: Mapping[str, Any]) -> None:
        number = self._server.ask("tools/call", {"name": step["tool"], "arguments": step["args"]}, step.get("id"))
        self._asked.append(number)

    def do_parallel_call(self, step: Mapping[str, Any]) -> None:
        codes = [_code_of(step, nonce) for nonce in range(step["n"])]
        asked = [self._server.ask("tools/call", {"name": step["tool"], "arguments": args}) for args in codes]
        self._asked += asked
        if "expect" not in step:
            return
        for nonce, number in enumerate(asked):
            reply = self._answer(number, 60) or {}
            got = (reply.get("result", {}).get("structuredContent") or {}).get("result")
            if got != f"nonce {nonce}":
                self.wrong.append(f"reply {nonce} carries {got!r}: {json.dumps(reply)[:200]}")
                return

    def do_expect_no_response(self, _step: Mapping[str, Any]) -> None:
        reply = self._answer(self._last(), 1.0)
        if reply is not None and _is_success(reply):
            self.wrong.append("a cancelled call has an answer that looks like success")

    def do_measure(self, step: Mapping[str, Any]) -> None:
        if step["what"] != "child processes":
            raise NotReadable(f"the runner cannot measure {step['what']}")
        left = product.leftovers(self._server.pid, {self._server.pid}, seconds=1.0)
        self.wrong += [f"processes left: {left}"] if left else []

    def do_kill_child(self, step: Mapping[str, Any]) -> None:
        time.sleep(0.5)
        busiest = max(product.workers_and_below(self._server.pid), key=product.cpu_seconds)
        os.kill(busiest, getattr(signal, f"SIG{step['signal']}", step["signal"]))

    def do_expect(self, step: Mapping[str, Any]) -> None:
        what = step["what"]
        if "kind=crash" in what:
            reply = self._answer(self._last(), 1.5)
            status = ((reply or {}).get("result", {}).get("structuredContent") or {}).get("status")
            self.wrong += [] if status == "crashed" else [f"no crash within 1 s, but {json.dumps(reply)[:200]}"]
        elif "two answers in order" in what:
            time.sleep(2)
            answers = [each for each in self._server.numbered if each.get("id") == self._last()]
            told = [(each.get("result", {}).get("structuredContent") or {}).get("result") for each in answers]
            good = (
                ["first", "second"],
                ["second", "first"],
                ["first", None],
                [None, "first"],
                [None],
                ["first"],
                ["second"],
            )
            self.wrong += [] if told in good else [f"the answers hold {told}"]
        else:
            raise NotReadable(f"the runner cannot judge {what!r}")

    # HTTP and starting.

    def do_http(self, step: Mapping[str, Any]) -> None:
        self._serve_http()
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name: value for name, value in step["headers"].items() if value is not None},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request(step["method"], step["path"], json.dumps(_HTTP_BODY), headers)
        answer = connection.getresponse()
        connection.close()
        allowed = answer.getheader("Access-Control-Allow-Origin")
        if allowed is not None and allowed in ("*", step["headers"].get("Origin")) and "Origin" in step["headers"]:
            self.wrong.append(f"Access-Control-Allow-Origin: {allowed}")
        statuses = {int(status) for status in re.findall(r"\b[1-5]\d\d\b", step["expect"])}
        if not statuses and "Access-Control" not in step["expect"]:
            raise NotReadable(f"the runner cannot judge {step['expect']!r}")
        # Which of the refusals it is matters less than that it is one.
        statuses = _REFUSALS if statuses and statuses <= _REFUSALS else statuses
        if statuses and answer.status not in statuses:
            self.wrong.append(
                f"{step['method']} {step['path']} {step['headers']}: {answer.status}, wanted {step['expect']!r}"
            )

    def do_start(self, step: Mapping[str, Any]) -> None:
        host = step["config"].get("host")
        if host is None:
            self._serve_http()
            open_to = _listening_addresses(self._web.pid)
            self.wrong += [] if open_to == {"127.0.0.1"} else [f"it listens on {open_to}"]
            return
        with subprocess.Popen(self._web_command(f"{host}:0"), stderr=subprocess.PIPE, text=True, **self._who()) as web:
            try:
                status = web.wait(20)
            except subprocess.TimeoutExpired:
                status = 0
                web.kill()
        self.wrong += [] if status else [f"it starts on {host}"]

    def _serve_http(self) -> None:
        if self._web is not None:
            return
        self._web = subprocess.Popen(self._web_command("127.0.0.1:0"), stderr=subprocess.PIPE, text=True, **self._who())
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(self._web.stderr.readline()), daemon=True)
        reader.start()
        reader.join(product.START_SECONDS)
        match = re.search(r"127\.0\.0\.1:(\d+)", "".join(lines))
        if match is None:
            raise Gone(f"HTTP does not start: {lines}")
        self._port = int(match[1])
        threading.Thread(target=self._web.stderr.read, daemon=True).start()

    def _web_command(self, address: str) -> list[str]:
        home = self._ground.base / f"{product.HOMES}web"
        home.mkdir(exist_ok=True)
        if self._as_user:
            os.chown(home, product.NOBODY, product.NOBODY)
        return product.command(home, "--http", address)

    def _who(self) -> dict[str, Any]:
        who = {"env": product.environment(self._ground.environment())}
        return {**who, "user": product.NOBODY, "group": product.NOBODY, "extra_groups": []} if self._as_user else who

    # Judging.

    def _last(self) -> Any:
        return self._asked[-1]

    def _answer(self, number: object, seconds: float = _ANSWER_SECONDS) -> dict[str, Any] | None:
        try:
            return self._server.wait(number, seconds)
        except Silent:
            return None

    def _judge(self, step: Mapping[str, Any], expected: _Expected, answer: dict[str, Any] | None) -> None:
        if not expected.fits(answer):
            shown = {key: value for key, value in step.items() if key != "expect"}
            self.wrong.append(
                f"{json.dumps(shown)[:160]} gave {json.dumps(answer)[:200]}, wanted {step.get('expect')!r}"
            )


class _Expected:
    """The alternatives that a step's words name."""

    def __init__(self, words: str) -> None:
        self.codes = {int(code) for code in re.findall(r"-32\d{3}", words)}
        self.result = bool(re.search(r"\bresults?\b|\bserved\b|runs guarded|answers with a version|budget", words))
        self.ignored = bool(re.search(r"ignored|dropped", words))
        self.error = bool(re.search(r"\berror\b|refused|isError|-32600", words))
        self.ended = "ends by the server's maximum" in words
        if not (self.codes or self.result or self.ignored or self.error):
            raise NotReadable(f"the runner cannot judge {words!r}")

    def fits(self, answer: Mapping[str, Any] | None) -> bool:
        if answer is None:
            return self.ignored
        if "error" in answer:
            return self.error or answer["error"].get("code") in self.codes
        report = answer["result"].get("structuredContent")
        if self.ended and report and report.get("status") == "timeout":
            return True
        return self.error if answer["result"].get("isError") else self.result


def _is_success(reply: Mapping[str, Any]) -> bool:
    return bool((reply.get("result", {}).get("structuredContent") or {}).get("success"))


def _code_of(step: Mapping[str, Any], nonce: int) -> dict[str, Any]:
    if "args" in step:
        return dict(step["args"])
    return {"code": _BUSY_LOOP.format(seconds=nonce % 5 * 0.02, nonce=f"nonce {nonce}")}


def _ping_batch(generator: str) -> list[dict[str, Any]]:
    match = re.fullmatch(r"\[ping\]\*(\d+)", generator)
    if match is None:
        raise NotReadable(f"the runner cannot make {generator!r}")
    return [{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * int(match[1])


def _listening_addresses(pid: int) -> set[str]:
    import psutil

    return {
        connection.laddr.ip
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.family in (socket.AF_INET, socket.AF_INET6)
    }
