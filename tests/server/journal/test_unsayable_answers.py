"""Answers with what JSON does not have: the code sees a value, the journal has the same, and what follows goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ..conftest import Caller, in_process_server
from ..upstream_tools.test_registry import ONE_SPARE, configure
from .test_journaled_runs import CLAIMED, journal_of

WIRE = """
import json, sys
tools = [{"name": n, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": n == "look"}} for n in ("look", "put")]
tools.append({"name": "typed", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "outputSchema": {
    "type": "object", "properties": {"rows": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}}}})
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "w", "version": "1"}},
    "tools/list": {"tools": tools},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = json.dumps(results.get(asked["method"], {}))
    if asked["method"] == "tools/call":
        answer = asked["params"]["arguments"].get("result", '{"content": []}')
    print('{"jsonrpc": "2.0", "id": %d, "result": %s}' % (asked["id"], answer), flush=True)
"""


def wired(home: Path) -> None:
    (home / "wire.py").write_text(WIRE)
    configure(home, w={"command": sys.executable, "args": [str(home / "wire.py")], "approve": "never"})


caller = in_process_server(ONE_SPARE | CLAIMED, wired)
CODE = "result = []\nfor each in given:\n    result.append(await tools.w.look(result=each))\n    await tools.w.put()"


def structured(text: str) -> str:
    return f'{{"content": [], "structuredContent": {text}}}'


def texts(text: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]})


SAID: dict[str, object] = {
    structured('{"a": 1.5}'): {"a": 1.5},
    texts('{"a": "\\ud800"}'): {"a": "\ud800"},
}
UNSAID: dict[str, object] = {
    texts("[NaN, 1]"): [None, 1],
    texts("[1e999]"): [None],
    structured('{"a": NaN, "b": [1, {"c": -Infinity}], "d": 1e999}'): {"a": None, "b": [1, {"c": None}], "d": None},
    texts("[NaN, 1, 1e999]"): [None, 1, None],
    structured(f'{{"rows": [{"1, " * 17_000}NaN]}}'): {"rows": [1] * 17_000 + [None]},
}


@pytest.mark.parametrize(("answers", "is_noted"), [(SAID, False), (UNSAID, True)], ids=["said", "unsaid"])
async def test_a_value_that_json_does_not_have_breaks_no_journal(
    caller: Caller, answers: dict[str, object], is_noted: bool
) -> None:
    report = await caller.run(CODE, context_vars={"given": list(answers)})
    assert report["status"] == "ok", report["error"]
    noted = report.get("truncated", {}).get("answers", {}).get("note")
    assert noted == ("NaN and infinities became null in what was answered by w.look" if is_noted else None)
    journal, calls = await journal_of(caller.home, report["run_id"], 2 * len(answers))
    assert [call.reply for call in calls[::2]] == [{"answer": seen} for seen in answers.values()]
    assert journal.run.tools["w.put"] == {"done": len(answers), "failed": 0}


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (structured('{"rows": [{"n": 1}]}'), None),
        (structured('{"rows": [{"n": 1}, {"n": "many"}], "x": NaN}'), "at rows[1].n"),
        (structured("[1]"), "as a whole"),
        (texts("plain words"), "it has no structured content"),
    ],
)
async def test_an_answer_that_breaks_its_own_output_schema_is_given_and_noted(
    caller: Caller, answer: str, where: str | None
) -> None:
    report = await caller.run("await tools.w.typed(result=given)", context_vars={"given": answer})
    assert report["status"] == "ok", report["error"]
    noted = report.get("truncated", {}).get("answers", {}).get("note", "")
    said = f"not as its own output schema says is what was answered by w.typed ({where})"
    assert noted.rpartition("; ")[2] == (said if where else "")
    assert ("NaN" in noted) is ("NaN" in answer)


async def test_a_failure_with_a_value_that_json_does_not_have_is_the_tools_own(caller: Caller) -> None:
    failed = '{"isError": true, "content": [], "structuredContent": {"limit": NaN, "why": "quota"}}'
    code = "try:\n    await tools.w.look(result=given)\nexcept ToolError as error:\n    result = error.structured"
    report = await caller.run(code, context_vars={"given": failed})
    assert report["result"] == {"limit": None, "why": "quota"}
