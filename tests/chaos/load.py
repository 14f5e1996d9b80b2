"""What the clients do. Each kind of load says what is right; what was acknowledged is noted, to be read again later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from .client import LEGACY, MODERN, Answer, Client

CALLERS = ("ann", "ben", "cleo")
READERS, CROWD = 6, 30


class Judge(Protocol):
    """Judges an answer. Without a fault that excuses another one it must be `ok` or one of `allowed`, and right."""

    def __call__(
        self, what: str, answer: Answer, right: object = True, allowed: tuple[str, ...] = (), needs: str = ""
    ) -> None: ...


@dataclass
class Ledger:
    """What the server has acknowledged: skills by name and version, files, and texts of tokens by who has them."""

    skills: dict[tuple[str, int], str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    """The content by name; None for one whose removal was acknowledged."""
    tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    waiting: int = 0
    """Runs that wait for a user who went away; they may wait for minutes."""

    def __len__(self) -> int:
        return len(self.skills) + len(self.files) + len(self.tokens)

    def reread(self, clients: list[Client], rng: Random, most: int) -> list[str]:
        """Read some of it again; return what is lost."""
        url = clients[0].url
        reads: list[tuple[str, str, dict[str, Any], str, str | None]] = []
        for (name, version), code in list(self.skills.items()):
            reads.append(("", "load_skill", {"name": name, "version": version}, "code", code))
        for file, content in list(self.files.items()):
            whole = len(content or "") + 1
            reads.append(("", "read_workspace_file", {"filename": file, "limit": whole}, "content", content))
        for (caller, text), token in list(self.tokens.items()):
            reads.append((caller, "restore_pii", {"text": token}, "restored_text", text))

        def lost(owner: str, tool: str, given: dict[str, Any], key: str, right: str | None) -> str:
            client = rng.choice(clients)
            answer = (Client(url, client.era, owner) if owner else client).call(tool, given)
            right_now = answer.status == "tool error" if right is None else answer.content.get(key) == right
            return "" if right_now else f"lost: {tool} {given}: {answer.status} {answer.text[:300]}"

        chosen = reads if len(reads) <= most else rng.sample(reads, most)
        with ThreadPoolExecutor(READERS) as threads:
            return [each for each in threads.map(lambda read: lost(*read), chosen) if each]


@dataclass
class Visit:
    """One client's turn: who asks, with which chance, and who judges."""

    client: Client
    rng: Random
    name: str
    judge: Judge
    ledger: Ledger
    end: threading.Event
    """Set once the fault of this step is over."""

    @property
    def token(self) -> str:
        return f"{self.name}-{self.rng.getrandbits(64):016x}"

    def run(self, what: str, code: str, right: object = True, **options: Any) -> Answer:
        """Run code whose result must be `right`."""
        judged = {key: options.pop(key) for key in ("allowed", "needs") if key in options}
        answer = self.client.run(code, timeout_seconds=20, **options)
        self.judge(what, answer, right=not answer.ok or answer.content["result"] == right, **judged)
        return answer


def compute(visit: Visit) -> None:
    number = visit.rng.randrange(10**4, 10**6)
    visit.run("compute", f"sum(i * i for i in range({number}))", (number - 1) * number * (2 * number - 1) // 6)


def sleep(visit: Visit) -> None:
    module = visit.rng.choice(["import time\ntime.", "import asyncio\nawait asyncio."])
    text = visit.token
    visit.run("sleep", f"{module}sleep({visit.rng.uniform(0.2, 2.5):.2f})\n{text!r}", text)


def many(visit: Visit) -> None:
    for number in range(visit.rng.randint(5, 20)):
        visit.run("trivial", f"{number} + 1", number + 1)


def crowd(visit: Visit) -> None:
    """Come with many others at once."""
    with ThreadPoolExecutor(CROWD) as threads:
        list(threads.map(lambda number: visit.run("crowd", f"{number} + 1", number + 1), range(CROWD)))


def tools(visit: Visit) -> None:
    count, seconds = visit.rng.randint(1, 12), round(visit.rng.uniform(0, 1), 2)
    calls = f"[tools.steady.echo(text=str(i), seconds={seconds}) for i in range({count})]"
    code = f"import asyncio\nawait asyncio.gather(*{calls})"
    visit.run("tools", code, [str(i) for i in range(count)], needs="tools")


def shaky(visit: Visit) -> None:
    tool = visit.rng.choice(["hang", "die", "garbage", "echo"])
    argument = "text='x'" if tool == "echo" else ""
    code = (
        f"try:\n    r = await tools.shaky.{tool}({argument})\nexcept ToolError as e:\n    r = 'ToolError: ' + str(e)\nr"
    )
    answer = visit.client.run(code, timeout_seconds=20)
    result = str(answer.content.get("result"))
    right = result in {"x", "late", "after garbage"} or (result.startswith("ToolError: ") and result.endswith("."))
    visit.judge("shaky tools", answer, right=not answer.ok or right, needs="tools")


def approval(visit: Visit) -> None:
    action = visit.rng.choice(["accept", "decline", "accept", "vanish"])
    pause = visit.rng.uniform(0, 1.5)

    def question() -> str:
        time.sleep(pause)
        return action

    answer = visit.client.run("await tools.steady.destroy(text='it')", question, timeout_seconds=20)
    visit.ledger.waiting += action == "vanish" or answer.status == "question gone"
    allowed = {"accept": (), "decline": ("refused",), "vanish": ("vanished",)}[action]
    right = not answer.ok or (action == "accept" and answer.content["result"] == "destroyed it")
    visit.judge("approval", answer, right, allowed, needs="tools")


def prints(visit: Visit) -> None:
    line, count = visit.token, visit.rng.randint(2_000, 20_000)
    answer = visit.client.run(f"for i in range({count}):\n    print({line!r})", timeout_seconds=20)
    cut = answer.content.get("truncated", {}).get("output", {})
    right = not answer.ok or cut.get("total") == count * (len(line) + 1)
    visit.judge("much output", answer, right or "truncated" in answer.content)
    if answer.ok and right:
        read = visit.client.call(
            "read_workspace_file", {"filename": f".runs/{answer.content['run_id']}/output.txt", "limit": len(line) + 1}
        )
        visit.judge("kept output", read, not read.ok or read.content["content"] == line + "\n", needs="files")


def skill(visit: Visit) -> None:
    name, text = f"skill_{visit.rng.randrange(6)}", visit.token
    code = f'def {name}() -> str:\n    """Return a token."""\n    return "{text}"\n'
    if visit.rng.random() < 0.5:
        saved = visit.client.call("save_skill", {"name": name, "code": code, "description": "A token."})
        version = saved.content.get("version")
    else:
        saved = visit.client.run(f"save_skill({name!r}, {code!r}, 'A token.')", timeout_seconds=20)
        version = saved.content["result"]["version"] if saved.ok else None
    visit.judge("save skill", saved, not saved.ok or isinstance(version, int), needs="database")
    if saved.ok and isinstance(version, int):
        visit.ledger.skills[name, version] = code
        ran = visit.client.call("run_skill", {"name": name, "version": version})
        visit.judge("run skill", ran, not ran.ok or ran.content["result"] == text, needs="database")


def file(visit: Visit) -> None:
    name, content = f"chaos/{visit.token}.txt", visit.token * visit.rng.randint(1, 2000)
    if visit.rng.random() < 0.5:
        answer = visit.client.call("write_workspace_file", {"filename": name, "content": content})
    else:
        answer = visit.client.run(f"write_file({name!r}, {content!r})", timeout_seconds=20)
    visit.judge("write file", answer, needs="files")
    if answer.ok:
        visit.ledger.files[name] = content
        if visit.rng.random() < 0.3:
            del visit.ledger.files[name]
            gone = visit.client.call("delete_workspace_file", {"filename": name})
            visit.judge("delete file", gone, needs="files")
            if gone.ok:
                visit.ledger.files[name] = None


def privacy(visit: Visit) -> None:
    text = f"{visit.name}.{visit.rng.getrandbits(40):x}@mail.example"
    hidden = visit.client.call("sanitize_pii", {"text": text})
    token = hidden.content.get("sanitized_text", "")
    visit.judge("hide", hidden, not hidden.ok or ("@" not in token and token.startswith("[")), needs="database")
    if hidden.ok:
        visit.ledger.tokens[visit.client.caller, text] = token
        back = visit.client.call("restore_pii", {"text": f"to {token}"})
        right = not back.ok or back.content["restored_text"] == f"to {text}"
        visit.judge("restore", back, right, needs="database")


def repl(visit: Visit) -> None:
    session, total = f"s{visit.rng.getrandbits(32):x}", 0
    visit.run("session", "x = 0", None, session=session, allowed=("tool error",))
    for _ in range(visit.rng.randint(1, 4)):
        more = visit.rng.randrange(1000)
        total += more
        answer = visit.client.run(f"x += {more}\nx", session=session, timeout_seconds=20)
        # A session that was lost is told of, and not gone on with.
        right = not answer.ok or answer.content["result"] == total
        visit.judge("session", answer, right, ("tool error",), needs="session")
        if not answer.ok:
            return


def hog(visit: Visit) -> None:
    code = visit.rng.choice(
        ["x = 'a' * 10\nwhile True:\n    x += x", "x = []\nwhile True:\n    x.append('a' * 1_000_000)"]
    )
    visit.judge("memory hog", visit.client.run(code, memory_mb=64, timeout_seconds=20), False, ("memory",))


def loop(visit: Visit) -> None:
    visit.judge("endless loop", visit.client.run("while True:\n    pass", timeout_seconds=1), False, ("timeout",))


def statistics(visit: Visit) -> None:
    visit.judge("statistics", visit.client.call("get_execution_stats", {}))


def listing(visit: Visit) -> None:
    visit.judge("list skills", visit.client.call("list_skills", {"query": "token"}), needs="database")
    visit.judge("list files", visit.client.call("list_workspace_files", {"subpath": "."}), needs="files")
    visit.judge("search tools", visit.client.call("search_tools", {"query": "echo text"}))


def wrong_arguments(visit: Visit) -> None:
    tool, arguments = visit.rng.choice(
        [("execute_code", {}), ("execute_code", {"code": 7}), ("save_skill", {"name": "a b", "code": "x"}),
         ("load_skill", {"name": "nobody_saved_it"}), ("read_workspace_file", {"filename": "../../etc/passwd"}),
         ("execute_code", {"code": "1", "timeout_seconds": 1e9}), ("no_such_tool", {}), ("list_skills", {"limit": "5"})]
    )  # fmt: skip
    allowed = ("tool error", "rpc error")
    visit.judge("wrong arguments", visit.client.call(tool, arguments), False, allowed, needs="database")


def bad_bytes(visit: Visit) -> None:
    """Send what is no request; what comes back must not be the server's own failure."""
    kind = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    broken = visit.rng.choice(
        [b'{"jsonrpc":', b"[]", b"\xff\xfe\x00", b"[" * 5000, b'{"jsonrpc":"2.0","id":1,"method":7}']
    )
    given = visit.rng.choice(
        [kind + b"Content-Length: %d\r\n\r\n" % len(broken) + broken,
         kind + b"Content-Length: 4000000\r\n\r\n" + b"x" * 200_000, kind[: visit.rng.randrange(len(kind))],
         b"Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"\x00\x01\x02 no header\r\n\r\n"]
    )  # fmt: skip
    with suppress(OSError):
        heard = visit.client.raw(given, visit.rng.uniform(0.1, 3))
        status = heard[9:12].decode(errors="replace")
        visit.judge("bad bytes", Answer(f"http {status}" if heard else "ok", heard.decode(errors="replace")),
                    allowed=("http 400", "http 404", "http 406", "http 408", "http 413", "http 415", "http 421", "http 429",
                             "http 503"))  # fmt: skip


def dangling(visit: Visit) -> None:
    """Hold connections that say nothing for as long as the fault lasts."""
    with suppress(OSError):
        held = [visit.client.connect() for _ in range(visit.rng.randint(1, 30))]
        visit.end.wait(5)
        for each in held:
            each.close()


def vanish(visit: Visit) -> None:
    """Go away in the middle of a run."""
    with suppress(Exception):
        visit.client.forget("import asyncio\nawait asyncio.sleep(2)", visit.rng.uniform(0, 0.5))


Load = Callable[[Visit], None]
LOADS: tuple[Load, ...] = (
    compute, sleep, many, crowd, tools, shaky, approval, prints, skill, skill, file, file, privacy, privacy, repl, hog, loop,
    statistics, listing, wrong_arguments, bad_bytes, dangling, vanish,
)  # fmt: skip


def visitors(url: Callable[[], str]) -> list[Client]:
    """Return clients of both eras for each caller."""
    return [Client(url, era, caller) for caller in CALLERS for era in (LEGACY, MODERN)]
