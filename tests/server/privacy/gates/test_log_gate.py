"""Under PRIVACY=auto the log says where something failed, never with what."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import re
import sys
from pathlib import Path

import pytest
from mcp import Client
from pydantic import BaseModel, ValidationError

from sealab.server.privacy.gates.log_gate import WithoutInputs, WithoutValues

from ...command_line import sealab
from ...conftest import stdio
from ...upstream_tools.test_registry import configure

MAIL = "jane.roe@corp.example"


def test_messages_of_the_sdk_and_of_exceptions_are_left_out() -> None:
    try:
        raise ValueError(MAIL)
    except ValueError:
        record = logging.LogRecord(
            "mcp.server", logging.ERROR, __file__, 1, "Tool %r failed: %r", ("x", MAIL), sys.exc_info()
        )
    assert WithoutValues().filter(record)
    said = logging.Formatter("%(message)s").format(record)
    assert MAIL not in said
    assert f"ValueError at {Path(__file__).name}:" in said
    own = logging.LogRecord("sealab", logging.INFO, __file__, 1, "run %s", ("01abc",), None)
    WithoutValues().filter(own)
    assert own.getMessage() == "run 01abc"


def test_the_name_of_a_file_is_left_out_of_what_the_machine_says() -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"/home/workspace/{MAIL}.txt")
    record = logging.LogRecord("sealab", logging.WARNING, __file__, 1, "%s failed: %s", ("write_file", error), None)
    assert WithoutValues().filter(record)
    assert record.getMessage() == f"write_file failed: OSError: {os.strerror(errno.ENOSPC)}"


class _Message(BaseModel):
    progress: int


@pytest.mark.parametrize("name", ["mcp.server", "client", "sealab.server.governance.audit"])
@pytest.mark.parametrize("how", ["raised", "caused", "grouped", "said"])
def test_in_all_modes_what_cannot_be_read_is_named_by_kind_and_place(name: str, how: str) -> None:
    try:
        try:
            _Message.model_validate({"progress": MAIL})
        except ValidationError as error:
            if how == "caused":
                raise RuntimeError("it cannot be read") from error
            if how == "grouped":
                raise ExceptionGroup("several", [error]) from None
            raise
    except Exception as error:
        told = sys.exc_info() if how != "said" else None
        record = logging.LogRecord(name, logging.WARNING, __file__, 1, "It is left out: %s", (error,), told)
    assert WithoutInputs().filter(record)
    said = logging.Formatter("%(message)s").format(record)
    assert MAIL not in said
    assert "It is left out" in said
    if told:
        assert re.search(rf"\((Validation|Runtime|Exception)\w+ at .*{Path(__file__).name}:", said)


def test_in_all_modes_other_faults_keep_their_tracebacks() -> None:
    try:
        raise OSError("the disk is full")
    except OSError as error:
        record = logging.LogRecord("sealab", logging.ERROR, __file__, 1, "%s", (error,), sys.exc_info())
    assert WithoutInputs().filter(record)
    said = logging.Formatter("%(message)s").format(record)
    assert "Traceback" in said
    assert said.startswith("the disk is full")


def test_the_event_loop_tells_of_no_forgotten_result(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError(MAIL)

    async def forgets() -> None:
        task = asyncio.ensure_future(fails())
        await asyncio.sleep(0)
        del task

    with caplog.at_level("DEBUG"):
        asyncio.run(forgets())
        gc.collect()
    told = [record for record in caplog.records if record.name == "asyncio" and record.levelname == "ERROR"]
    assert told
    for record in told:
        WithoutValues().filter(record)
        said = logging.Formatter("%(message)s").format(record)
        assert MAIL not in said
        assert "never retrieved" in said


NOTIFYING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "w", "version": "1"}},
              "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
              "tools/call": {"content": []}}.get(asked["method"])
    if asked["method"] == "tools/call":
        params = {"level": "MAIL", "data": 1}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
        print('{"jsonrpc": "2.0", "MAIL": 1}')
    answer = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def test_a_malformed_notification_leaves_its_kind_and_no_value_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notifying.py").write_text(NOTIFYING.replace("MAIL", MAIL))
    command = {"command": sys.executable, "args": [str(tmp_path / "notifying.py")], "approve": "never"}
    configure(tmp_path, w=command)
    (tmp_path / "code.py").write_text("await tools.w.look()\nresult = 7")
    monkeypatch.setattr(logging.root, "handlers", [])  # the command sets the log up as in a process of its own
    ran = sealab("run", str(tmp_path / "code.py"), "--home", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert MAIL not in ran.stderr
    assert "Failed to validate notification: notifications/message (ValidationError at " in ran.stderr


async def test_what_a_server_writes_to_stderr_holds_no_value(tmp_path: Path) -> None:
    log = tmp_path / "log"
    told = stdio(tmp_path / "home", SEALAB_PRIVACY="auto", SEALAB_PRIVACY_MODE="fast", SEALAB_LOG_LEVEL="DEBUG")
    (tmp_path / "home").mkdir()
    inner = [told.command, *told.args]
    told.command, told.args = sys.executable, ["-c", _WITH_LOG, str(log), *inner]
    async with Client(told, read_timeout_seconds=200) as client:
        token = await client.call_tool("sanitize_pii", {"text": MAIL})
        assert token.structured_content is not None
        name = token.structured_content["sanitized_text"]
        missing = await client.call_tool("read_workspace_file", {"filename": f"{name}.txt"})
        assert missing.is_error
        assert MAIL not in missing.model_dump_json()
        await client.call_tool("execute_code", {"code": f"raise ValueError({MAIL!r})"})
    written = log.read_text()
    assert "mcp" in written
    assert MAIL not in written


_WITH_LOG = """
import subprocess, sys
with open(sys.argv[1], "wb") as log:
    sys.exit(subprocess.call(sys.argv[2:], stderr=log))
"""
