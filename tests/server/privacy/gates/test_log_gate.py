"""Under PRIVACY=auto the log says where something failed, never with what."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from pathlib import Path

import pytest
from mcp import Client

from sealab.server.privacy.gates.log_gate import WithoutValues

from ...conftest import stdio

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
