"""What `/readyz?verbose` says of the upstream servers, to whom."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.interfaces.protocol.web.exchanges import Exchanges
from sealab.server.interfaces.protocol.web.http_serving import _upstreams

from ...conftest import settings_of
from ...upstream_tools.test_registry import configure
from .asgi import asked_of


@pytest.mark.parametrize("auth", ["off", "tokens"])
async def test_readyz_says_which_upstream_servers_fail_and_only_how_many_where_anybody_may_ask(
    tmp_path: Path, auth: str
) -> None:
    configure(tmp_path, gone={"command": str(tmp_path / "gone")}, other={"command": "x", "disabled": True})

    async def app(*_: Any) -> None:
        raise AssertionError("no request goes further")

    async with running(
        settings_of(tmp_path, {"SEALAB_AUTH": auth, "SEALAB_WORKERS_SPARE": "0"}), Home(tmp_path)
    ) as served:
        await served.registry.list_unlisted()
        exchanges = Exchanges(app, upstreams=partial(_upstreams, served))
        answer = await asked_of(exchanges, method="GET", path="/readyz", query_string=b"verbose")
        plain = await asked_of(exchanges, method="GET", path="/readyz")
    assert json.loads(plain.body) == {"ready": True}
    told = json.loads(answer.body)["upstreams"]
    if auth == "tokens":
        assert told == {"failing": 1, "disabled": 1}
        return
    assert {name: each["state"] for name, each in told.items()} == {"gone": "failing", "other": "disabled"}
    assert "gone" in told["gone"]["last_error"]
