"""What is imported late, by whichever thread first needs it, is imported once and whole, whoever else imports then."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("server", "skills_db", "tools_registry", "workspace")

LATE = {
    "cedarpy": "server/governance/policy/cedar.py",
    "sqlalchemy": "skills_db/sql.py",
    "cryptography": "skills_db/cipher.py",
    "jwt": "server/governance/access/signed_tokens.py",
    "onnxruntime": "server/privacy/detection/ner/model.py",
    "phonenumbers": "server/privacy/detection/recognizers/phones.py",
    **dict.fromkeys(
        ("jsonschema", "keyring", "numpy", "presidio_analyzer", "psycopg", "rapidfuzz", "referencing"),
        "",
    ),
    **dict.fromkeys(("Stemmer", "json5", "psutil", "regex", "yaml"), ""),
}
"""Packages that threads import, and the one module that does, where there is one.

Python makes a thread that imports a module wait for the thread that is importing it, but not for its package: whoever
names a submodule first may get half a package. So each package is either imported by one module alone, or first by its
own name, wherever it is imported.
"""

NOT_AT_THE_START = {
    "sandbox.container": "container_pool",
    "sandbox.dialect": "compiling facades guest_modules namespace",
    "sandbox.guest": "runtime",
    "sandbox.guest_api": "data_helpers hosted",
    "sandbox.host": "readers",
    "sandbox.report": "substitutes",
    "server.base.startup": "packages",
    "server.base.storage": "stored_definitions",
    "server.base.telemetry": "exporting",
    "server.interfaces.console": "rendering",
    "server.interfaces.protocol.web": "http_serving",
    "server.privacy": "reader remote",
    "server.privacy.tokens.forms": "escapes form_index",
    "server.privacy.tokens": "restoring sanitizer",
    "server.use_cases.managed_python": "first_need",
    "server.use_cases.replicas": "replicas",
    "server.use_cases.runs.background": "background_listing",
    "server.use_cases.runs": "hidden_transcripts",
    "server.use_cases.tenants": "commanding",
    "server.use_cases.upstream_tools": "tool_arguments",
    "skills_db.audit": "audit_store",
    "skills_db": "engine runs skill_folders skills tokens vault vault_keys vault_root workspace_files",
    "skills_db.journal": "background_store journal_store",
    "skills_db.shared_state": "documents notices part_store",
    "skills_db.sign_ins": "sign_in_flows sign_in_store",
    "skills_db.tenants": "schemas shelf tenant_store",
    "tools_registry": "catalog definitions",
    "tools_registry.clients": "importing",
    "tools_registry.describing": "details effects examples learned placeholders schemas signatures",
    "tools_registry.search": "indexing ranking usage",
    "tools_registry.sign_in": "authorization browsers token_endpoint",
    "tools_registry.upstream": "injection upstreams",
    "workspace.objects": "bucket cache_place store_url stored_archive stored_files stored_workspace",
}
"""Modules of sealab by package that a server imports when it first needs them; `startup/test_start.py` sees to it."""

OTHERS_MAX = 150

ENTRIES = {
    "database": "from sealab.skills_db.engine import open_database; open_database(None, home()).close()",
    "vault": "from sealab.skills_db.vault import Vault",
    "skills": "from sealab.skills_db.skills import SkillStore; from sealab.skills_db.runs import RunStore",
    "keys": "from sealab.skills_db.vault_keys import VaultKeys; VaultKeys(bytes(32)).spend("
    "VaultKeys(bytes(32)).of_scope('a'), 'x')",
    "keyring": "from sealab.server.privacy.tokens.keys import _Keyring; _Keyring.of_this_machine('x')",
    "detection": "import sealab.server.privacy.detection.detect",
    "names": "import sealab.server.privacy.detection.ner.prose",
    "arguments": "from sealab.server.use_cases.skills.skill_arguments import judge_arguments; "
    "judge_arguments('f', {'properties': {'a': {'type': 'integer'}}}, {'a': 1})",
    "search": "from sealab.tools_registry.search.typos import Spelling; import sealab.tools_registry.search.ranking",
    "upstreams": "import sealab.tools_registry.upstream.connection",
}
"""What threads of the server do that imports late."""

PROGRAM = """
import os, sys, tempfile, threading, traceback
from pathlib import Path
import sealab.server.interfaces.protocol.tools  # as a server has it when its first call comes
sys.setswitchinterval(1e-5)
sys.warnoptions = ["ignore"]

def home():
    return Path(tempfile.mkdtemp(dir=sys.argv[1]))

def both(first, second):
    start, failed = threading.Barrier(16), []
    def work(text):
        start.wait()
        try:
            exec(text, {"home": home})
        except BaseException:
            failed.append(traceback.format_exc())
    threads = [threading.Thread(target=work, args=((first, second)[at % 2],)) for at in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in failed[:1]:
        print(each, flush=True)
    return len(failed)

first, *others = sys.argv[2:]
for second in others:
    child = os.fork()  # fresh: nothing was imported late here
    if not child:
        os._exit(bool(both(first, second)))
    assert os.waitpid(child, 0)[1] == 0, second
"""

PAUSED = """
import sys, tempfile, threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
import sealab.server.interfaces.protocol.tools
paused, failed = [], []

def run(text):
    try:
        exec(text, {"home": lambda: Path(tempfile.mkdtemp(dir=sys.argv[1]))})
    except BaseException as error:
        failed.append(repr(error))

def exec_module(loader, module, plain=SourceFileLoader.exec_module):
    if module.__name__ == sys.argv[2]:
        other = threading.Thread(target=run, args=(sys.argv[4],))
        other.start()
        other.join(1)  # it ends, or waits for this one
        paused.append(other)
    plain(loader, module)

SourceFileLoader.exec_module = exec_module
run(sys.argv[3])
paused[0].join()
assert not failed, failed
"""


def said_by(program: str, *arguments: str) -> str:
    """Run a program in a fresh interpreter and return what it says of a failure."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=170, check=False
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@pytest.mark.parametrize("first", ENTRIES)
def test_sixteen_threads_import_any_two_at_once(first: str, tmp_path: Path) -> None:
    pairs = [pair for pair in combinations_with_replacement(ENTRIES, 2) if pair[0] == first]
    assert said_by(PROGRAM, str(tmp_path), ENTRIES[first], *(ENTRIES[second] for _, second in pairs)) == ""


@pytest.mark.parametrize("within", ["sqlalchemy.engine.base", "sqlalchemy.sql.base", "sqlalchemy.dialects.sqlite.base"])
def test_the_vault_can_be_imported_at_any_moment_of_the_import_of_the_database(within: str, tmp_path: Path) -> None:
    assert said_by(PAUSED, str(tmp_path), within, ENTRIES["database"], ENTRIES["vault"]) == ""


def test_what_is_imported_late_is_imported_by_one_module_or_by_its_own_name_first() -> None:
    wrong = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            for scope in _scopes(ast.parse(file.read_text(encoding="utf-8"))):
                seen: set[str] = set()
                for module, line in _imports(scope):
                    package = module.partition(".")[0]
                    door = LATE.get(package)
                    if door is None or door == name:
                        continue
                    if door or (module != package and package not in seen):
                        wrong.append(f"{name}:{line} imports {module}")
                    seen.add(package)
    assert wrong == []
    assert all((ROOT / door).is_file() for door in LATE.values() if door)


def test_few_other_imports_stand_in_functions() -> None:
    needed = {f"{package}.{name}" for package, names in NOT_AT_THE_START.items() for name in names.split()}
    others = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for folder in ("sandbox", *FOLDERS)
        for file in sorted((ROOT / folder).rglob("*.py"))
        if not {"guest_modules", "examples"} & {*file.parts}
        for module, line in _within_functions(file)
        if module.partition(".")[0] not in LATE and module not in needed
    ]
    assert len(others) <= OTHERS_MAX, others


_IMPORT = re.compile(r"\s+(?:from (\.*)([\w.]*) import (\w+)|import ([\w.]+))")


def _within_functions(file: Path) -> Iterator[tuple[str, int]]:
    """Give what the functions of a file import, by its whole name without `sealab`, and the line. Nothing is parsed."""
    package = file.relative_to(ROOT).parts[:-1]
    around = ""
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if text[:1].isalpha():
            around = text
        found = _IMPORT.match(text)
        if found is None or not around.startswith(("def ", "async def ", "class ")):
            continue
        dots, module, name, plain = found.groups()
        if not dots:
            yield plain or module, line
            continue
        source = ROOT.joinpath(*package[: len(package) - len(dots) + 1], *module.split("."))
        is_module = source.is_dir() and _is_module(source / name)
        yield ".".join((source / name if is_module else source).relative_to(ROOT).parts), line


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or path.is_dir()


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _imports(scope: ast.AST) -> Iterator[tuple[str, int]]:
    """Give the modules that a scope imports when it runs, in order; not those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield each.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or "", node.lineno
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node)
