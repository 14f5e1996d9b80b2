"""A server has answered its first request before anything heavy was imported."""

from __future__ import annotations

import base64
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from sealab.server.base.startup import light_import
from sealab.server.base.startup.deferred import as_if_missing, put_off, run_now

from ...test_late_imports import NOT_AT_THE_START

_HEAVY = [
    *("cryptography.fernet", "json5", "jsonschema", "keyring", "numpy", "phonenumbers", "presidio_analyzer", "psutil"),
    *("rapidfuzz", "regex", "rich", "spacy", "sqlalchemy", "Stemmer", "yaml"),
    *("httpx2._client", "mcp.client.session", "uvicorn"),
    *(f"sealab.{package}.{name}" for package, names in NOT_AT_THE_START.items() for name in names.split()),
]
_SERVE = """
import sys
from sealab.server.cli import main

sys.argv = ["sealab", "serve", "--home", sys.argv[1]]
main()
print(*sys.modules, file=sys.stderr)
import mcp, httpx2
print(mcp.Client.__module__, httpx2.AsyncClient.__module__, file=sys.stderr)
"""
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _answered(home: Path, requests: list[dict[str, object]]) -> tuple[list[dict[str, object]], set[str]]:
    """Give a server some requests and then the end; return its answers, and which modules it had imported by then."""
    said = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _SERVE, str(home)], input=said, capture_output=True, check=True, text=True
    )
    *_logged, modules, usable = done.stderr.splitlines()
    assert usable == "mcp.client.client httpx2"
    return [json.loads(line) for line in done.stdout.splitlines()], set(modules.split())


def test_nothing_heavy_is_imported_before_the_first_list_of_tools(tmp_path: Path) -> None:
    (answer,), modules = _answered(tmp_path, [{"id": 1, "method": "tools/list", "params": {"_meta": _META}}])
    assert "execute_code" in json.dumps(answer["result"])
    assert not modules & set(_HEAVY)


def test_nothing_heavy_is_imported_before_a_client_of_the_older_protocol_has_its_tools(tmp_path: Path) -> None:
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    answers, modules = _answered(
        tmp_path,
        [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
        ],
    )
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "execute_code" in json.dumps(answers[1]["result"])
    assert not modules & set(_HEAVY)


def test_the_command_line_imports_no_more_than_it_needs_to_say_what_its_commands_are() -> None:
    program = "import sys; from sealab.server.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True, text=True)
    assert "usage: sealab" in done.stdout
    assert not {*done.stderr.split()} & {"_hashlib", "asyncio", "pydantic", "secrets", "sqlite3", "typing_extensions"}


_LISTS = """
import sys
from sealab.server.cli import main
for each in ("runs", "approvals"):
    main([each, "list"])
print(*sys.modules, file=sys.stderr)
"""


def test_commands_that_list_things_import_nothing_that_runs_code_or_asks_somebody(tmp_path: Path) -> None:
    key = tmp_path / "vault.key"
    key.write_text(base64.b64encode(bytes(32)).decode())
    key.chmod(0o600)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LISTS],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"SEALAB_HOME": str(tmp_path)},
    )
    assert done.stdout == "There are no runs that fit.\nNo run waits for an answer.\n"
    modules = {*done.stderr.split()}
    assert "sqlalchemy.dialects.sqlite" in modules
    assert not modules & {
        *("keyring", "mcp", "psutil", "pydantic", "sealab.sandbox.confine", "sealab.sandbox.host"),
        *("sealab.server.use_cases.runs.request", "sqlalchemy.dialects.postgresql"),
    }


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package that has been put off, with a submodule."""
    folder = tmp_path / "later_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import inner\nran = True\ntwice = inner.number * 2\n")
    (folder / "inner.py").write_text("number = 21\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("later_package", "later_package.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    put_off("later_package")
    return sys.modules["later_package"]


def test_a_package_that_was_put_off_lends_its_submodules_without_running(package: ModuleType) -> None:
    assert importlib.import_module("later_package.inner").number == 21
    assert "ran" not in vars(package)


def test_a_package_that_was_put_off_runs_when_a_name_of_it_is_asked_for(package: ModuleType) -> None:
    assert package.twice == 42
    assert type(package) is ModuleType
    assert not hasattr(package, "thrice")


def test_a_package_that_was_put_off_tells_of_a_name_that_it_lacks(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="'later_package' has no attribute 'thrice'"):
        _ = package.thrice
    assert vars(package)["ran"]


def test_a_package_that_was_put_off_can_be_run_at_once(package: ModuleType) -> None:
    run_now(package)
    assert vars(package)["twice"] == 42


def test_a_package_that_was_put_off_runs_once_however_many_threads_ask_for_it(
    package: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "later_package" / "__init__.py").write_text(
        "import time\nruns = globals().get('runs', 0) + 1\ntime.sleep(0.2)\ntwice = 42\n"
    )
    together = threading.Barrier(4)

    def ask(_number: int) -> object:
        together.wait()
        return package.twice

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [42] * 4
    assert package.runs == 1


def test_a_package_that_runs_holds_up_no_other(
    package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "later_package" / "__init__.py").write_text(
        "import threading\nother_runs = threading.Event()\nmet = other_runs.wait(20)\n"
    )
    (tmp_path / "later_other.py").write_text("import later_package\nlater_package.other_runs.set()\n")
    monkeypatch.delitem(sys.modules, "later_other", raising=False)
    put_off("later_other")
    runs = threading.Thread(target=run_now, args=(package,))
    runs.start()
    while "other_runs" not in vars(package):
        time.sleep(0.01)
    run_now(sys.modules["later_other"])
    runs.join()
    assert package.met


def test_a_package_that_failed_when_it_ran_is_run_again(package: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "later_package" / "__init__.py"
    whole = file.read_text()
    file.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        _ = package.twice
    file.write_text(whole)
    assert package.twice == 42


def test_where_the_short_way_fails_what_was_put_off_runs_and_the_import_is_the_plain_one(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(light_import, "_DEFERRED", ("no_such_package_at_all", package.__name__))
    ran = []

    def load() -> str:
        ran.append("ran" in vars(package))
        if len(ran) == 1:
            raise TypeError("a later SDK")
        return "loaded"

    assert light_import.imported(load, http=False) == "loaded"
    assert ran == [False, True]


def test_what_is_imported_or_not_there_is_not_put_off() -> None:
    put_off("json")
    put_off("no_such_package_at_all")
    assert type(sys.modules["json"]) is ModuleType
    assert "no_such_package_at_all" not in sys.modules


def test_a_module_is_as_if_missing_in_the_block_alone(package: ModuleType) -> None:
    del sys.modules[package.__name__]
    with as_if_missing("later_package", "json"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("later_package.inner")
        assert importlib.import_module("json").loads("1") == 1
    assert importlib.import_module("later_package").ran
