"""The catalog: what is read, what is kept, and which tool a name means."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.definitions import tools_of
from sealab.tools_registry.errors import CategoryUnknown, ToolAmbiguous, ToolUnknown
from sealab.tools_registry.models import DefinitionSource
from sealab.tools_registry.names import aliases, identifier, nearest

from .published_tools import ODD, USUAL


@dataclass(frozen=True)
class Server:
    category: str | None = None
    disabled: bool = False


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def load(home: Path, **servers: Server) -> Catalog:
    return Catalog.load(home / "tools", home / "lists", servers)


def test_a_whole_list_and_single_definitions_load_in_either_spelling_of_the_keys(tmp_path: Path) -> None:
    write(tmp_path / "tools" / "billing.json", {"tools": USUAL})
    write(
        tmp_path / "tools" / "weather" / "forecast.json",
        {
            "name": "forecast",
            "description": "Say how it will be",
            "input_schema": {"type": "object"},
            "use_cases": ["umbrella"],
        },
    )
    write(
        tmp_path / "tools" / "weather" / "alerts.yaml",
        "name: alerts\ndescription: Say what to fear\nserver: meteo\n"
        "inputSchema:\n  type: object\n  properties:\n    on: {type: string, default: no}\n    day: {enum: [2026-01-31]}\n"
        "annotations: {read_only_hint: true}\n",
    )
    catalog = load(tmp_path)
    assert catalog.problems == ()
    assert [tool.full_name for tool in catalog.tools()] == [
        "billing.list_invoices", "billing.send-reminder", "meteo.alerts", "weather.forecast",
    ]  # fmt: skip
    invoices, alerts, forecast = (catalog.get(name) for name in ("list_invoices", "alerts", "forecast"))
    assert (invoices.category, invoices.read_only) == ("billing", True)
    assert invoices.output_schema == USUAL[0]["outputSchema"]
    assert (alerts.server, alerts.category, alerts.read_only) == ("meteo", "weather", True)
    assert alerts.properties == {"on": {"type": "string", "default": "no"}, "day": {"enum": ["2026-01-31"]}}
    assert forecast.use_cases == ("umbrella",)
    assert forecast.provenance.source is DefinitionSource.FILE
    assert forecast.provenance.where == "weather/forecast.json"


def test_a_broken_file_is_reported_by_name_with_why_and_the_rest_load(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    write(tools / "good.json", {"tools": [*USUAL, {"description": "nameless"}, 7]})
    write(tools / "bad" / "json.json", '{"name": "x",')
    write(tools / "bad" / "yaml.yaml", "name: [x\n")
    write(tools / "bad" / "schema.json", {"name": "x", "input_schema": "object"})
    write(tools / "bad" / "tag.yml", "!!python/object/apply:os.system ['true']\n")
    write(tools / "bad" / "deep.json", "[" * 100_000)
    write(tools / "bad" / "number.json", '{"name": ' + "9" * 5000 + "}")
    write(tools / "bad" / "number.yaml", "name: " + "9" * 5000)
    write(tools / "bad" / "again.json", {"name": "list_invoices", "server": "good"})
    (tools / "bad" / "latin.json").write_bytes(b'{"name": "caf\xe9"}')
    write(tools / "alone.json", {"name": "alone"})
    catalog = load(tmp_path)
    reported = {problem.where: problem.why for problem in catalog.problems}
    assert {tool.full_name for tool in catalog.tools()} == {"good.list_invoices", "good.send-reminder"}
    assert reported.keys() == {
        "good.json, tool 3",
        "good.json, tool 4",
        "bad/json.json",
        "bad/yaml.yaml",
        "bad/schema.json",
        "bad/tag.yml",
        "bad/deep.json",
        "bad/number.json",
        "bad/number.yaml",
        "bad/latin.json",
        "good.json",
        "alone.json",
    }
    assert "line 1" in reported["bad/json.json"]
    assert "already defined by bad/again.json" in reported["good.json"]


def test_the_configured_category_of_a_server_wins_and_a_disabled_server_has_no_tools(tmp_path: Path) -> None:
    write(tmp_path / "tools" / "billing.json", {"tools": USUAL})
    write(tmp_path / "tools" / "off.json", {"tools": USUAL})
    catalog = load(tmp_path, billing=Server(category="money"), off=Server(disabled=True))
    assert list(catalog.categories()) == ["money"]
    assert list(catalog.servers()) == ["billing"]
    assert catalog.servers()["billing"].configured
    assert len(catalog.get("list_invoices", "money").properties) == 5


def test_what_a_server_listed_is_known_in_the_next_session_with_its_version(tmp_path: Path) -> None:
    first = load(tmp_path, billing=Server())
    before = first.revision
    first.replace_server("billing", [*USUAL, {"name": 3}], "1.4")
    assert first.revision > before
    assert [str(problem) for problem in first.problems] == [
        "billing, tool 3: it has no name. Give it a name, which is a text."
    ]
    again = load(tmp_path, billing=Server())
    assert [tool.name for tool in again.tools(server="billing")] == ["list_invoices", "send-reminder"]
    assert again.servers()["billing"].version == "1.4"
    assert again.is_listed("billing")
    assert again.get("list_invoices") == first.get("list_invoices")
    assert load(tmp_path).tools() == (), "a server that is not configured any more has no tools"


def test_a_list_that_says_the_same_changes_no_revision_and_another_replaces_it_whole(tmp_path: Path) -> None:
    catalog = load(tmp_path, billing=Server())
    catalog.replace_server("billing", USUAL, "1")
    revision = catalog.revision
    catalog.replace_server("billing", USUAL, "1")
    assert catalog.revision == revision
    catalog.replace_server("billing", USUAL[1:], "2")
    assert [tool.name for tool in catalog.tools()] == ["send-reminder"]
    catalog.forget_server("billing")
    assert catalog.tools() == ()
    assert load(tmp_path, billing=Server()).tools() == ()


def test_a_damaged_copy_of_a_list_costs_that_list_alone(tmp_path: Path) -> None:
    catalog = load(tmp_path, a=Server(), b=Server())
    catalog.replace_server("a", USUAL)
    catalog.replace_server("b", USUAL)
    (copy,) = (tmp_path / "lists").glob("a-*.json")
    copy.write_bytes(copy.read_bytes()[:50])
    assert {tool.server for tool in load(tmp_path, a=Server(), b=Server()).tools()} == {"b"}


@pytest.mark.parametrize(
    "more",
    [
        {"description": "a b " * 5_000_000},
        {"inputSchema": {"properties": {"a": {"$ref": "#" + "/" * 600_000}}}},
        {"inputSchema": {"properties": {"x" * 600_000: {}}}},
        {"inputSchema": {"properties": {f"p{n}": {"description": "x" * 90_000} for n in range(30)}}},
    ],
)
def test_a_definition_with_very_long_texts_is_left_out_and_said(more: dict[str, Any]) -> None:
    tools, [problem] = tools_of([{"name": "long", **more}, {"name": "good"}], "up", "1")
    assert [tool.name for tool in tools] == ["good"]
    assert "Shorten its texts" in problem.why
    assert len(problem.why) < 300


def test_a_server_cannot_list_tools_in_the_name_of_another(tmp_path: Path) -> None:
    catalog = load(tmp_path, evil=Server(), bank=Server())
    catalog.replace_server("evil", [{"name": "pay", "server": "bank"}])
    assert [tool.full_name for tool in catalog.tools()] == ["evil.pay"]


def test_a_file_adds_what_a_servers_own_list_leaves_out(tmp_path: Path) -> None:
    output = {"type": "object", "properties": {"sent": {"type": "boolean"}}}
    write(
        tmp_path / "tools" / "money" / "reminder.json",
        {
            "name": "send-reminder", "server": "billing", "description": "old", "output_schema": output,
            "use_cases": ["dunning"],
        },
    )  # fmt: skip
    catalog = load(tmp_path, billing=Server())
    catalog.replace_server("billing", USUAL)
    tool = catalog.get("send-reminder")
    assert (tool.description, tool.category) == ("Send a reminder", "money")
    assert tool.output_schema == output
    assert tool.use_cases == ("dunning",)
    assert tool.provenance.source is DefinitionSource.UPSTREAM


@pytest.mark.parametrize(
    "name",
    [
        "billing.send-reminder", "send-reminder", "send_reminder", "billing.send_reminder", "sendReminder", "SEND_REMINDER",
        "tools.billing.send_reminder", "mcp__billing__send-reminder", "billing/send-reminder",
    ],
)  # fmt: skip
def test_a_tool_is_found_by_every_name_people_write(tmp_path: Path, name: str) -> None:
    write(tmp_path / "tools" / "billing.json", {"tools": USUAL})
    assert load(tmp_path).get(name).full_name == "billing.send-reminder"


def test_an_unknown_name_is_answered_with_the_nearest_and_a_shared_one_with_the_candidates(tmp_path: Path) -> None:
    for server in ("billing", "ledger"):
        write(tmp_path / "tools" / f"{server}.json", {"tools": USUAL})
    catalog = load(tmp_path)
    with pytest.raises(
        ToolUnknown, match=r"There is no tool 'list_invoice'\. The nearest are .*billing\.list_invoices"
    ):
        catalog.get("list_invoice")
    with pytest.raises(ToolAmbiguous, match=r"2 tools\. Use one of billing\.list_invoices, ledger\.list_invoices\."):
        catalog.get("list_invoices")
    assert catalog.get("list_invoices", "ledger").server == "ledger"
    with pytest.raises(CategoryUnknown, match=r"There is no category 'leger'\. Did you mean ledger\?"):
        catalog.get("list_invoices", "leger")
    write(tmp_path / "tools" / "odd" / "other.json", {"name": "other"})
    with pytest.raises(ToolUnknown, match=r"in the category odd\. \w+\.send-reminder is in the category"):
        load(tmp_path).get("send-reminder", "odd")
    with pytest.raises(ToolUnknown, match=r"search_tools.*the nearest names are \w+\.[\w-]+, ") as unlike:
        catalog.get("zzqj")
    assert not unlike.value.nearest
    with pytest.raises(ToolUnknown, match="sealab servers add"):
        load(tmp_path / "empty").get("anything")


def test_names_that_clash_in_code_get_aliases_of_their_own_that_lead_back(tmp_path: Path) -> None:
    write(tmp_path / "tools" / "odd-server.json", {"tools": ODD})
    catalog = load(tmp_path)
    seen = set()
    for tool in catalog.tools():
        alias = catalog.alias(tool)
        assert all(part.isidentifier() for part in alias)
        assert catalog.get(".".join(alias)) is tool
        seen.add(alias)
    assert len(seen) == len(ODD)
    assert catalog.alias(catalog.get("odd-server.getUser")) == ("odd_server", "getUser")


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12, unique=True))
def test_aliases_are_distinct_identifiers_whatever_the_names_and_their_order(names: list[str]) -> None:
    table = aliases(names)
    assert sorted(table.values()) == sorted(names)
    assert all(alias.isidentifier() and alias.isascii() and not alias.startswith("_") for alias in table)
    assert aliases(reversed(names)) == table
    for name in names:
        if identifier(name) == name:
            assert table[name] == name


def test_thousands_of_names_that_have_no_letters_python_takes_get_aliases_soon(tmp_path: Path) -> None:
    names = [chr(0x4E00 + n) + chr(0x4E00 + n % 7) for n in range(5_000)]
    assert sorted(aliases(names).values()) == sorted(names)


def test_servers_that_list_their_tools_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    servers = {f"server{n}": Server() for n in range(24)}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(4):
            catalog = load(tmp_path, **servers)
            with ThreadPoolExecutor(len(servers)) as threads:
                for done in [threads.submit(catalog.replace_server, server, USUAL) for server in servers]:
                    done.result()
            assert {tool.server for tool in catalog.tools()} == set(servers)
            for server in servers:
                catalog.forget_server(server)
    finally:
        sys.setswitchinterval(interval)


def test_ten_thousand_tools_load_whole(tmp_path: Path) -> None:
    tools: list[dict[str, Any]] = [{**USUAL[n % 2], "name": f"tool_{n}"} for n in range(10_000)]
    for part in range(10):
        write(tmp_path / "tools" / f"server{part}.json", {"tools": tools[part::10]})
    catalog = load(tmp_path)
    assert len(catalog) == 10_000
    assert catalog.get("tool_9999").server == "server9"


def test_no_server_lists_a_tool_under_the_name_of_another_server(tmp_path: Path) -> None:
    catalog = load(tmp_path, **{"git": Server(), "git.safe": Server()})
    schema = {"type": "object"}
    catalog.replace_server(
        "git", [{"name": "safe.push", "inputSchema": schema}, {"name": "log", "inputSchema": schema}]
    )
    assert [tool.full_name for tool in catalog.tools()] == ["git.log"]
    assert "name of a tool of another server" in catalog.problems[0].why
    catalog.replace_server("git.safe", [{"name": "push", "inputSchema": schema}])
    assert catalog.get("git.safe.push").server == "git.safe"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 64_000, "nested deeper than 100 levels"),
        ("- " * 64_000, "nested deeper than 100 levels"),
        ("a: " + "{a: " * 64_000, "nested deeper than 100 levels"),
        ("\n".join(["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]), "aliases"),
    ],
    ids=["brackets", "dashes", "braces", "aliases"],
)
def test_yaml_that_is_too_deep_or_stands_for_too_much_is_a_problem_that_is_told(
    tmp_path: Path, text: str, said: str
) -> None:
    write(tmp_path / "tools" / "up.yaml", text)
    write(tmp_path / "tools" / "billing.json", {"tools": USUAL})
    catalog = load(tmp_path)
    assert said in " ".join(str(problem) for problem in catalog.problems)
    assert catalog.tools()


def test_yaml_may_use_aliases(tmp_path: Path) -> None:
    write(
        tmp_path / "tools" / "up" / "do.yaml",
        "name: do\ndescription: it\nshared: &text {type: string}\n"
        "input_schema: {type: object, properties: {a: *text, b: *text}}\n",
    )
    (tool,) = load(tmp_path).tools()
    assert tool.input_schema["properties"] == {"a": {"type": "string"}, "b": {"type": "string"}}


def test_the_nearest_names_are_found_in_whichever_part_they_stand() -> None:
    known = [f"x{n:05}" for n in range(1_700)]
    for at, name in ((3, "read_file"), (700, "READ_FILES"), (1_650, "read_filed")):
        known[at] = name
    assert nearest("read_file", known, 3) == [3, 700, 1_650]
    assert nearest("read_files", known, 1) == [700]
    assert nearest("nothing like it", known, 3) == []


def test_of_a_name_that_is_longer_than_any_the_beginning_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    from rapidfuzz import process

    compared: list[tuple[int, int]] = []
    real = process.extract

    def extract(query: str, choices: list[str], **options: Any) -> Any:
        compared.append((len(query), len(choices)))
        return real(query, choices, **options)

    monkeypatch.setattr(process, "extract", extract)
    nearest("ab" * 100_000, ["a" * 256] * 1_200, 3)
    assert max(chars for chars, _ in compared) <= 1_000
    assert max(count for _, count in compared) <= 500
