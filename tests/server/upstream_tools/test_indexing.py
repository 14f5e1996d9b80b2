"""The index over all tools: what one server lists costs others little."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from sealab.server.home import Home
from sealab.server.upstream_tools import registry as registry_module
from sealab.server.upstream_tools import wiring
from sealab.server.upstream_tools.registry import Registry
from sealab.tools_registry.search.ranking import SearchIndex

from ...waiting import until


def define(home: Path, server: str, **tools: dict[str, Any]) -> None:
    (home / "tools").mkdir(exist_ok=True)
    listed = [
        {"name": name, "description": "x", "inputSchema": {"type": "object", **schema}}
        for name, schema in tools.items()
    ]
    (home / "tools" / f"{server}.json").write_text(json.dumps({"tools": listed}))


async def test_of_a_server_with_much_to_read_the_first_tools_are_found_by_parameters_and_others_wholly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "INDEX_STEPS_MAX", 150)
    chain = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(100)}
    costly = {"properties": {"zebra": {"$ref": "#/$defs/d0"}}, "$defs": chain}
    define(tmp_path, "bad", a=costly, b=costly)
    define(tmp_path, "good", fine={"properties": {"zebra": {"type": "string"}}})
    registry = Registry(Home(tmp_path), {})
    index = await registry.index()
    assert {hit.key for hit in index.search("zebra")} == {"bad.a", "good.fine"}
    assert {hit.key for hit in index.search("")} == {"bad.a", "bad.b", "good.fine"}
    await registry.close()


async def test_while_a_new_index_takes_long_the_last_one_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, "up", first={})
    registry = Registry(Home(tmp_path), {})
    first = await registry.index()
    define(tmp_path, "more", second={})
    going_on, real = threading.Event(), wiring.index_of

    def slow(*given: Any) -> SearchIndex:
        assert going_on.wait(60)
        return real(*given)

    monkeypatch.setattr(registry_module, "index_of", slow)
    monkeypatch.setattr(registry_module, "INDEX_SECONDS", 0.01)

    async def is_known() -> bool:
        return "more.second" in await registry.catalog()

    await until(is_known)
    assert await registry.index() is first
    assert await registry.index() is first
    going_on.set()
    monkeypatch.setattr(registry_module, "INDEX_SECONDS", 60)
    assert [hit.key for hit in (await registry.index()).search("")] == ["up.first", "more.second"]
    await registry.close()
