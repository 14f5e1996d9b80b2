"""Which test files cover a file of the tree, the nearest first.

Which lines a test runs cannot be asked of the tests: much of what they test runs in confined processes, which can write
no record. So a test file counts as covering a file by where it stands and what it imports:

1. files of the mirrored folder (`tests/sandbox/wire` for `sandbox/wire/frames.py`) that import the module or have its name;
2. the other files of that folder, or of the nearest folder above that there is;
3. files elsewhere that import the module;
4. files below the mirrored folder's parent whose imports lead to the module.

Of equal ones the shortest come first. What caught a patch is remembered (`caught.toml`) and asked before all these, and
then the tests of these files whose names share most words with the promise that the patch breaks.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

from tests.planted.copies import ROOT


def covering(file: str) -> list[str]:
    """Return the test files that cover a file of the tree, the nearest first; both by their paths in the tree."""
    place = ROOT / "tests" / Path(file).parent
    while not any(place.glob("test_*.py")) and place.parent != ROOT / "tests":
        place = place.parent
    name = Path(file).stem if Path(file).stem != "__init__" else Path(file).parent.name
    module = "sealab." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    ranked = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        imports = _imports(path)
        is_mirrored = path.parent == place
        is_direct = module in imports
        if is_mirrored and (is_direct or name in path.stem):
            rank = 1
        elif is_mirrored:
            rank = 2
        elif is_direct:
            rank = 3
        elif place.parent in path.parents and _leads_to(module) & imports:
            rank = 4
        else:
            continue
        ranked.append((rank, path.stat().st_size, str(path.relative_to(ROOT))))
    return [path for _rank, _size, path in sorted(ranked)]


def likely(promise: str, files: Iterable[str], most: int = 12) -> list[str]:
    """Return the ids of those tests of the files whose names share most with a promise; a rare word counts for more."""
    tests = {test: _words(test.rpartition("::")[2]) for file in files for test in _tests(file)}
    common = Counter(word for words in tests.values() for word in words)
    said = _words(promise)
    shared = {test: sum(1 / common[word] for word in words & said) for test, words in tests.items()}
    return sorted((test for test in tests if shared[test]), key=lambda test: -shared[test])[:most]


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:5] for word in re.findall(r"[a-z]{3,}", text.lower()))


def _tests(file: str) -> list[str]:
    found = []
    for node in ast.parse((ROOT / file).read_bytes()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        names = [each.name for each in members if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        within = f"{file}::{node.name}" if isinstance(node, ast.ClassDef) else file
        found += [f"{within}::{name}" for name in names if name.startswith("test_")]
    return found


@cache
def _imports(path: Path) -> frozenset[str]:
    """Return the modules of sealab that a test file names; `from a import b` may name either."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return frozenset(each for each in found if each.startswith("sealab."))


@cache
def _leads_to(module: str) -> frozenset[str]:
    """Return the modules that import this one, on whatever way."""
    graph = _graph()
    return frozenset(graph.find_downstream_modules(module)) if module in graph.modules else frozenset()


@cache
def _graph() -> grimp.ImportGraph:
    folders = [f"sealab.{path.name}" for path in (ROOT / ".import" / "sealab").iterdir()]
    return grimp.build_graph(*folders, exclude_type_checking_imports=True, cache_dir=None)
