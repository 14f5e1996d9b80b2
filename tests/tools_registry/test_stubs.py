"""Typed stubs: clean under mypy, callable, and never in the way of what others made."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.describing.learned import LearnedTypes
from sealab.tools_registry.describing.stubs import write_stubs
from sealab.tools_registry.errors import StubsRefused

from .published_tools import ODD, USUAL


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    tools = tmp_path / "tools"
    tools.mkdir()
    for server, listed in (("billing", USUAL), ("odd-server", ODD)):
        (tools / f"{server}.json").write_text(json.dumps({"tools": listed}))
    return Catalog.load(tools, tmp_path / "lists", {})


def imported(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(folder.parent))
    module = importlib.import_module(f"{folder.name}.{package}")
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return module


def test_stubs_of_usual_and_odd_tools_are_clean_under_strict_mypy_and_type_their_users(
    catalog: Catalog, tmp_path: Path
) -> None:
    learned = LearnedTypes(tmp_path / "learned.json")
    learned.observe("billing.send-reminder", {"sent": True, "to": [{"a-b": 1}]})
    write_stubs(catalog, tmp_path / "stubs", learned)
    (tmp_path / "user.py").write_text(
        "from stubs.billing import list_invoices, send_reminder\n"
        "async def total(customer: str) -> float:\n"
        "    answer = await list_invoices(customer_id=customer, status='open')\n"
        "    reveal_type((await send_reminder(invoice_number='1', from_='x'))['to'])\n"
        "    await list_invoices(customer_id=7, status='lost')\n"
        "    return sum(each['total'] for each in answer['invoices'])\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", str(tmp_path / "cache")]
    stubs = subprocess.run([*command, "stubs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert stubs.stdout.startswith("Success: no issues found"), stubs.stdout
    user = subprocess.run([*command, "user.py"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert 'Revealed type is "list[' in user or 'Revealed type is "builtins.list[' in user
    assert user.count("error:") == 2, user
    assert 'incompatible type "int"; expected "str"' in user


def test_a_stub_calls_its_tool_under_its_real_names_and_leaves_out_what_was_not_given(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stubs(catalog, tmp_path / "stubs_called")
    package = imported(tmp_path / "stubs_called", "billing", monkeypatch)
    calls: list[tuple[str, dict[str, Any]]] = []

    async def caller(name: str, arguments: dict[str, Any]) -> Any:
        calls.append((name, arguments))
        return {"ok": 1}

    package.use(caller)
    assert asyncio.run(package.send_reminder(invoice_number="7", from_="a@example.com")) == {"ok": 1}
    asyncio.run(package.list_invoices(customer_id="C"))
    assert calls == [
        ("billing.send-reminder", {"invoice-number": "7", "from": "a@example.com"}),
        ("billing.list_invoices", {"customer_id": "C", "limit": 20, "status": "open"}),
    ]


def test_every_odd_tool_has_a_module_of_a_safe_name_and_a_function_in_the_barrel(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = write_stubs(catalog, tmp_path / "stubs_odd")
    assert (done.servers, done.tools) == (2, len(USUAL) + len(ODD))
    names = [path.relative_to(tmp_path / "stubs_odd").as_posix() for path in done.written]
    assert len({name.lower() for name in names}) == len(names)
    assert not any(".." in name or name.endswith("/con.py") for name in names)
    package = imported(tmp_path / "stubs_odd", "odd_server", monkeypatch)
    functions = [name for name in package.__all__ if asyncio.iscoroutinefunction(getattr(package, name))]
    assert len(functions) == len(ODD)
    assert (inspect.getdoc(package.tree) or "").startswith('Ends a docstring """\n__import__("os")\n"""')


def test_writing_again_changes_nothing_and_removes_what_is_gone(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "stubs"
    first = write_stubs(catalog, folder)
    again = write_stubs(catalog, folder)
    assert (again.written, again.kept, len(again.unchanged)) == ([], [], len(first.written))
    (tmp_path / "tools" / "odd-server.json").unlink()
    catalog.reload()
    less = write_stubs(catalog, folder)
    assert {path.parent.name for path in less.removed} == {"odd_server"}
    assert not (folder / "odd_server").exists()
    assert (folder / "billing" / "list_invoices.py").exists()


def test_what_others_made_or_changed_is_never_written_over_or_removed(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "stubs"
    mine = folder / "billing" / "list_invoices.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine = 1\n")
    outside = tmp_path / "outside.py"
    outside.write_text("outside = 1\n")
    (folder / "billing" / "send_reminder.py").symlink_to(outside)
    (tmp_path / "elsewhere").mkdir()
    (folder / "odd_server").symlink_to(tmp_path / "elsewhere")
    done = write_stubs(catalog, folder)
    assert {mine, folder / "billing" / "send_reminder.py"} <= set(done.kept)
    assert mine.read_text() == "mine = 1\n"
    assert outside.read_text() == "outside = 1\n"
    assert list((tmp_path / "elsewhere").iterdir()) == []

    barrel = folder / "billing" / "__init__.py"
    barrel.write_text(barrel.read_text() + "more = 1\n")
    (tmp_path / "tools" / "billing.json").unlink()
    catalog.reload()
    assert barrel not in write_stubs(catalog, folder).removed
    assert barrel.read_text().endswith("more = 1\n")
    assert mine.exists()


def test_only_some_servers_can_be_written_and_a_file_is_no_folder(catalog: Catalog, tmp_path: Path) -> None:
    done = write_stubs(catalog, tmp_path / "stubs", only=["billing"])
    assert (done.servers, done.tools) == (1, 2)
    (tmp_path / "file").write_text("")
    with pytest.raises(StubsRefused, match="not a folder"):
        write_stubs(catalog, tmp_path / "file")


def test_a_folder_whose_name_python_cannot_import_still_holds_packages(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stubs(catalog, tmp_path / "my-stubs")
    assert not (tmp_path / "my-stubs" / "__init__.py").exists()
    monkeypatch.syspath_prepend(str(tmp_path / "my-stubs"))
    assert "list_invoices" in importlib.import_module("billing").__all__
