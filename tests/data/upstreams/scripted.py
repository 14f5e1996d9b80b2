"""An MCP server, line by line of JSON-RPC, that says what the requests themselves tell it to.

`scripted.py RECEIVED` appends each line that it gets to the file RECEIVED. In the `_meta` of a request stands what is
done for it, `{"script": {"lines": […], "before": […], "answer": {…}, "exit": 3, "stderr": "…"}}`: raw lines and
messages that are written first, then the members of the answer; `later` waits until the next request has come.
"""

from __future__ import annotations

import json
import os
import sys


def write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main() -> None:
    if os.environ.get("STAYS"):
        print("starting", file=sys.stderr, flush=True)
    held: list[str] = []
    with open(sys.argv[1], "a", encoding="utf-8") as received:
        for line in sys.stdin:
            received.write(line)
            received.flush()
            message = json.loads(line)
            script = ((message.get("params") or {}).get("_meta") or {}).get("script", {})
            if "environment" in script:
                script["answer"] = {"result": {"content": [{"type": "text", "text": " ".join(sorted(os.environ))}]}}
            if "stderr" in script:
                print(script["stderr"], file=sys.stderr, flush=True)
            if "exit" in script:
                os._exit(script["exit"])
            write(*script.get("lines", ()), *map(json.dumps, script.get("before", ())))
            if "repeated" in script:
                text = script["repeated"][0] * script["repeated"][1]
                script["answer"] = {"result": {"content": [{"type": "text", "text": text}]}}
            if "method" in message and "id" in message and script.get("answer") is not None:
                answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], **script["answer"]})
                if script.get("later"):
                    held.append(answer)
                    continue
                write(answer, *held)
                held.clear()


main()
