"""An upstream server written by hand: a bank, with files and contacts to read and payments to make.

It answers what the file named by its argument holds, as JSON: `files` by name, and `contacts`. Payments are added to
the file beside it that ends with `.paid`, a line of JSON each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

place = Path(sys.argv[1])
READS = {"readOnlyHint": True}


def tool(name: str, annotations: dict[str, object] | None = None, **types: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {each: {"type": kind} for each, kind in types.items()}}
    told = {"name": name, "description": f"The tool {name}.", "inputSchema": schema | {"required": [*types]}}
    return told | ({} if annotations is None else {"annotations": annotations})


TOOLS = [
    tool("read_file", READS, path="string"),
    tool("contacts", READS),
    tool("fetch", READS, url="string"),
    tool("send_money", recipient="string", amount="number"),
    tool("write", recipient="string", body="string"),
]


def called(name: str, given: dict[str, object]) -> dict[str, object]:
    held = json.loads(place.read_text())
    if name == "read_file":
        return {"content": [{"type": "text", "text": held["files"][given["path"]]}]}
    if name == "contacts":
        meta = {"_meta": held["meta"]} if "meta" in held else {}
        structured = {"contacts": held["contacts"]}
        return {"content": [{"type": "text", "text": json.dumps(structured)}], "structuredContent": structured, **meta}
    with Path(f"{place}.paid").open("a") as paid:
        paid.write(json.dumps({"tool": name, **given}) + "\n")
    return {"content": [{"type": "text", "text": f"done: {given}"}]}


for line in sys.stdin:
    asked = json.loads(line)
    result: dict[str, object] = {}
    if asked["method"] == "initialize":
        about = {"name": "bank", "version": "1"}
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif asked["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif asked["method"] == "tools/call":
        result = called(asked["params"]["name"], asked["params"].get("arguments") or {})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
