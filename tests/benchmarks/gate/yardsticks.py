"""What the figures are ratios of, as programs of their own: a server of the SDK alone, and plain CPython.

    python yardsticks.py stdio | http | plain

`stdio` and `http` serve one tool, `execute_code`, which computes the sum in "N + 1" and nothing else, and `add` for
code that calls it upstream. `plain` reads programs, one JSON text a line, runs each in a fork with the modules of the
programs imported, and answers with the processor seconds that the fork took, as a worker is a fork of a warm zygote.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

WARM = """
    ast base64 bisect collections collections.abc csv dataclasses datetime decimal enum fractions functools hashlib heapq io
    itertools json math operator pathlib random re sqlite3 statistics string textwrap types typing
"""


def serve(transport: str) -> None:
    """Serve until the client goes."""
    from mcp.server import MCPServer

    server: MCPServer[Any] = MCPServer("bare")

    @server.tool()
    def execute_code(code: str) -> dict[str, Any]:
        """Compute the sum of a number and 1."""
        return {"run_id": "bare", "success": True, "status": "ok", "result": int(code.partition(" ")[0]) + 1}

    @server.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> dict[str, Any]:
        """Add two numbers."""
        return {"sum": a + b}

    if transport == "stdio":
        server.run()
        return
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[listening])


def plain() -> None:
    """Run one program after another, each in a fork and a folder of its own."""
    for name in WARM.split():
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            pid = os.fork()
            if pid == 0:
                _run(json.loads(line), folder)
            _pid, status, used = os.wait4(pid, 0)
        print(json.dumps(None if status else used.ru_utime + used.ru_stime), flush=True)


def _run(source: str, folder: str) -> NoReturn:
    code = 1
    try:
        os.chdir(folder)
        names: dict[str, object] = {
            "__name__": "__main__",
            "read_file": lambda name: Path(name).read_text(),
            "write_file": lambda name, text: Path(name).write_text(text),
        }
        exec(compile(source, "<plain>", "exec"), names)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    plain() if sys.argv[1] == "plain" else serve(sys.argv[1])
