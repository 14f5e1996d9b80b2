"""The index over all tools: what one server lists costs others little."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sealab.server.base.home import Home
from sealab.server.base.identity import LOCAL_IDENTITY
from sealab.server.use_cases.upstream_tools import discovery, wiring
from sealab.server.use_cases.upstream_tools import registry as registry_module
from sealab.server.use_cases.upstream_tools.extras import Extra
from sealab.server.use_cases.upstream_tools.registry import Registry
from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.errors import CategoryUnknown, ToolUnknown
from sealab.tools_registry.search.ranking import Searchable, SearchIndex

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


class Beside:
    """One thing that is found beside tools."""

    def __init__(self, extra: Extra) -> None:
        self.extra = extra

    async def refresh(self) -> None:
        """Find nothing new."""

    def __call__(self) -> tuple[object, Sequence[Extra]]:
        return 1, [self.extra]


class Threads:
    """Notes for each call of a function whether it was made in this thread, where the event loop runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.here: list[bool] = []
        mine, real = threading.get_ident(), getattr(owner, name)

        def noted(*given: Any) -> Any:
            self.here.append(threading.get_ident() == mine)
            return real(*given)

        monkeypatch.setattr(owner, name, noted)


async def test_a_name_that_means_no_tool_is_compared_with_all_others_outside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, "up", first={})
    registry = Registry(Home(tmp_path), {})
    threads = Threads(monkeypatch, Catalog, "get")
    assert (await registry.find("up.first")).name == "first"
    assert threads.here == [True]
    assert (await registry.find("tools.up.first")).name == "first"
    with pytest.raises(ToolUnknown, match=r"Did you mean up\.first"):
        await registry.find("fristt")
    with pytest.raises(CategoryUnknown):
        await registry.find("up.first", "up" * 100)
    assert not any(threads.here[1:])
    await registry.close()


async def test_a_name_is_compared_with_those_of_skills_outside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_details() -> dict[str, Any]:
        return {}

    document = Searchable(key="skills.slugify", name="slugify", server="skills", category="skills", description="")
    extra = Extra(document, "slugify()", "", no_details)
    registry = Registry(Home(tmp_path), {})
    registry.extra_documents = Beside(extra)
    threads = Threads(monkeypatch, discovery, "nearest")
    with pytest.raises(ToolUnknown, match=r"Did you mean skills\.slugify\?"):
        await discovery.definition(registry, LOCAL_IDENTITY, "slugfy")
    assert threads.here == [False]
    await registry.close()
