"""An upstream server written by hand, line by line of JSON-RPC, so that it can do what no SDK would.

`wire.py STARTS [FLAG…]` appends its process number to the file STARTS when it starts. Flags: `pages` lists one tool per
page, `endless` never ends the list, `silent` never answers anything, `described=TEXT` describes the tool `echo` so.
Each call runs in a thread of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

STRUCTURED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
WRAPPED = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
ROW = {"type": "object", "properties": {"n": {"type": "integer"}}}
ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": ROW}}}
flags = sys.argv[2:]
described = next((flag.partition("=")[2] for flag in flags if flag.startswith("described=")), "Say it again.")
writing = threading.Lock()


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}, **more}


tools = [
    tool("echo", description=described),
    tool("hang"),
    tool("die"),
    tool("nap"),
    tool("garbage"),
    tool("chatty"),
    tool("misshapen"),
    tool("breaks_schema", outputSchema=STRUCTURED),
    tool("refuse"),
    tool("silent_failure"),
    tool("hidden_failure"),
    tool("pid"),
    tool("say", title="Say", annotations={"readOnlyHint": True, "openWorldHint": False}),
    tool("wrapped", outputSchema=WRAPPED),
    tool("surroundings"),
    tool("flood"),
    tool("rows", outputSchema=ROWS),
]


def write(text: str) -> None:
    with writing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def answer(number: object, result: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))


def listed(cursor: str | None) -> dict[str, object]:
    if "endless" in flags:
        return {"tools": tools[:1], "nextCursor": "again"}
    if "pages" not in flags:
        return {"tools": tools}
    at = int(cursor or 0)
    return {"tools": tools[at : at + 1], **({"nextCursor": str(at + 1)} if at + 1 < len(tools) else {})}


def text(said: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": json.dumps(said)}]}


def call(number: object, name: str, arguments: dict[str, object]) -> None:
    match name:
        case "hang":
            time.sleep(3600)
        case "die":
            print("dying as told", file=sys.stderr, flush=True)
            os._exit(9)
        case "nap":
            time.sleep(float(str(arguments["seconds"])))
            answer(number, text("slept"))
        case "garbage":
            write('{"jsonrpc": "2.0", "id": 7, "result": {"content": ')
            write("\ufffd not json")
        case "chatty":
            said = str(arguments.get("said", "a line that a forgotten print wrote"))
            print(said, file=sys.stderr, flush=True) if "stderr" in arguments else write(said)
            answer(number, text("still fine"))
        case "misshapen":
            answer(number, {"content": "no list"})
        case "breaks_schema":
            answer(number, {"content": [], "structuredContent": {"n": "many"}})
        case "refuse":
            error = {"code": -32602, "message": "that is not how to ask"}
            write(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}))
        case "silent_failure":
            answer(number, {"content": [], "isError": True})
        case "hidden_failure":
            answer(number, {"content": [{"type": "text", "text": "Error executing tool forecast"}], "isError": True})
        case "pid":
            answer(number, text(os.getpid()))
        case "say":
            answer(number, arguments)
        case "wrapped":
            answer(number, {"content": [{"type": "text", "text": "x"}], "structuredContent": {"result": "x"}})
        case "surroundings":
            answer(number, text({**os.environ, "folder": str(Path.cwd())}))
        case "flood":
            content = json.dumps(text("x" * int(str(arguments["bytes"]))))
            if arguments.get("number") == "last":
                write(f'{{"result": {content}, "jsonrpc": "2.0", "id": {json.dumps(number)}}}')
            elif arguments.get("number") == "hidden":
                write(f'{{"jsonrpc": "2.0", "result": {content}, "id": {json.dumps(number)}, "more": 1}}')
            else:
                write(f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "result": {content}}}')
        case "rows":
            rows: list[object] = [{"n": n} for n in range(int(str(arguments["count"])))]
            rows += [{"n": "none"}] if arguments.get("wrong") else []
            answer(number, {"content": [], "structuredContent": {"rows": rows}})
        case _:
            answer(number, text(arguments))


with Path(sys.argv[1]).open("a") as starts:
    starts.write(f"{os.getpid()}\n")
for line in sys.stdin:
    if "silent" in flags:
        continue
    message = json.loads(line)
    asked, params = message["method"], message.get("params", {})
    if asked == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "wire", "version": "7"}
        version = params["protocolVersion"]
        answer(message["id"], {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
    elif asked == "tools/list":
        answer(message["id"], listed(params.get("cursor")))
    elif asked == "tools/call":
        given = (message["id"], params["name"], params.get("arguments", {}))
        threading.Thread(target=call, args=given, daemon=True).start()
    elif "id" in message:
        error = {"code": -32601, "message": "no such method"}
        write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
