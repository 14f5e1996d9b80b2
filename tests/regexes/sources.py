"""Finds the regular expressions of the server's process: what is given to `re`, evaluated, and how each is used."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .ambiguity import Use

ROOT = Path(__file__).parents[2]
FOLDERS = ("server", "sandbox", "tools_registry", "skills_db", "workspace")
ELSEWHERE = {
    **dict.fromkeys(("server/privacy/detection", "server/privacy/reading"), "readers"),
    **dict.fromkeys(
        (
            "sandbox/dialect", "sandbox/full_python", "sandbox/guest", "sandbox/guest_api", "sandbox/guest_modules",
            "sandbox/report", "sandbox/skill_source", "sandbox/worker", "skills_db/examples",
            "sandbox/container/cleaning.py", "sandbox/container/fork_server.py", "sandbox/container/link.py",
            "sandbox/container/idmapped_engine.py",
        ),
        "workers",
    ),
}  # fmt: skip
"""What runs in other processes, and in which. A module of these that the server imports is judged all the same."""
RUNS_NOTHING = {
    "server/privacy/reader.py": "is what readers import; of the server's process it has the names of their functions",
    "server/privacy/detectors.py": "reads the operator's file of recognizers at start",
    "server/interfaces/commands/doctor.py": "asks whether a package is installed",
    "sandbox/guest_names.py": "takes lists of names, and compiles, by a command, what the operator installed",
}
"""Modules that import what runs elsewhere without running it on a text from outside, and why they do."""
_METHODS = {
    **dict.fromkeys(("search", "sub", "subn", "split", "findall", "finditer", "scanner"), Use.SEARCH),
    "match": Use.MATCH,
    "fullmatch": Use.FULLMATCH,
}
_NO_USES = {"pattern", "flags", "groups", "groupindex"}


@dataclass(frozen=True, slots=True)
class Expression:
    """`pattern` is None where it is made at run time; `source` is then how."""

    module: str
    line: int
    source: str
    pattern: str | bytes | None
    flags: int = 0
    uses: frozenset[Use] = frozenset({Use.SEARCH, Use.FULLMATCH})


@dataclass(slots=True)
class _Module:
    path: str
    tree: ast.Module
    imports: set[str] = field(default_factory=set)
    nodes: list[ast.AST] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = list(ast.walk(self.tree))


@cache
def modules() -> Mapping[str, _Module]:
    """Return every module, by its path below the root."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = str(file.relative_to(ROOT))
            found[path] = _Module(path, ast.parse(file.read_text()))
    for module in found.values():
        imported = {path for path in _imported(module) if path in found}
        folders = {f"{parent}/__init__.py" for path in imported for parent in Path(path).parents}
        module.imports = imported | (folders & found.keys())
    return found


def of_the_server() -> list[str]:
    """Return the paths of the modules that run in the server's process.

    These are all that do not run elsewhere, and what these import of what does, directly or not, but for
    `RUNS_NOTHING`.
    """
    found = {path for path in modules() if elsewhere(path) is None}
    queue = list(found)
    while queue:
        path = queue.pop()
        for each in modules()[path].imports - found:
            if path not in RUNS_NOTHING or elsewhere(each) is None:
                found.add(each)
                queue.append(each)
    return sorted(found)


def elsewhere(path: str) -> str | None:
    """Return in which process a module runs, if not in the server's."""
    return next((where for part, where in ELSEWHERE.items() if path == part or path.startswith(f"{part}/")), None)


def expressions() -> list[Expression]:
    """Return all that are given to `re` in the server's process."""
    uses = _uses()
    return [each for path in of_the_server() for each in _of_module(modules()[path], uses)]


def found_in(text: str, path: str = "example.py") -> list[Expression]:
    """Return those of a text."""
    module = _Module(path, ast.parse(text))
    return list(_of_module(module, _uses_in({path: module})))


def _of_module(module: _Module, uses: Mapping[tuple[str, str], frozenset[Use] | None]) -> Iterator[Expression]:
    names = {
        id(node.value): target.id
        for node in module.nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for call in module.nodes:
        if not (isinstance(call, ast.Call) and (method := _of_re(call)) and method not in {"escape", "purge"}):
            continue
        given = _given(call, method)
        flags = _value(given["flags"], module) if "flags" in given else 0
        pattern = _value(given["pattern"], module)
        if method == "compile":
            used = uses.get((module.path, names.get(id(call), "")))
        else:
            used = frozenset({_METHODS[method]})
        is_known = isinstance(pattern, str | bytes) and isinstance(flags, int)
        yield Expression(
            module.path,
            call.lineno,
            ast.unparse(given["pattern"]),
            pattern if is_known else None,
            int(flags) if is_known else 0,
            used or frozenset({Use.SEARCH, Use.FULLMATCH}),
        )


def _of_re(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=method) if method in {*_METHODS, "compile"}:
            return method
    return ""


def _given(call: ast.Call, method: str) -> dict[str, ast.expr]:
    names = {
        "sub": ("pattern", "repl", "string", "count", "flags"),
        "subn": ("pattern", "repl", "string", "count", "flags"),
        "split": ("pattern", "string", "maxsplit", "flags"),
        "compile": ("pattern", "flags"),
    }.get(method, ("pattern", "string", "flags"))
    return dict(zip(names, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}


def _value(node: ast.expr, module: _Module) -> object:
    """Return what an expression of Python stands for, as far as the module's own names say; else None.

    Of a text made at run time any one character stands for each part in `re.escape`.
    """
    if isinstance(node, ast.Constant):
        return node.value
    parsed = _Escaped().visit(ast.parse(ast.unparse(node), mode="eval"))
    code = compile(ast.fix_missing_locations(parsed), module.path, "eval")
    try:
        return eval(code, {"re": re})
    except NameError:
        pass
    try:
        name = f"sealab.{module.path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        return eval(code, vars(importlib.import_module(name)))
    except (NameError, ImportError, AttributeError, TypeError):
        return None


class _Escaped(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Attribute(value=ast.Name(id="re"), attr="escape") if not isinstance(node.args[0], ast.Constant):
                return ast.Constant("(?s:.)")
        self.generic_visit(node)
        return node


@cache
def _uses() -> Mapping[tuple[str, str], frozenset[Use] | None]:
    return _uses_in(modules())


def _uses_in(among: Mapping[str, _Module]) -> Mapping[tuple[str, str], frozenset[Use] | None]:
    """Return how the names of each module are used, by any module; None where that is not seen."""
    found: dict[tuple[str, str], set[Use]] = {}
    unseen: set[tuple[str, str]] = set()
    for module in among.values():
        origins = _origins(module, among)
        methods = {
            id(node.value): node
            for node in module.nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in {*_METHODS, *_NO_USES}
        }
        calls = {id(node.func): node for node in module.nodes if isinstance(node, ast.Call)}
        for node in module.nodes:
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            origin = origins.get(node.id, (module.path, node.id))
            method = methods.get(id(node))
            if method is None:
                unseen.add(origin)
            elif method.attr in _METHODS:
                call = calls.get(id(method))
                # A match that is tried at a place that is given may be tried at every place.
                at_places = method.attr == "match" and (call is None or len(call.args) > 1)
                found.setdefault(origin, set()).add(Use.SEARCH if at_places else _METHODS[method.attr])
    return {key: None if key in unseen else frozenset(used) for key, used in found.items()}


def _origins(module: _Module, among: Mapping[str, _Module]) -> dict[str, tuple[str, str]]:
    """Return which name of which module each imported name is."""
    found = {}
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            for path in _paths(module, node):
                if path in among:
                    found |= {each.asname or each.name: (path, each.name) for each in node.names}
    return found


def _imported(module: _Module) -> Iterator[str]:
    """Yield the paths of what a module imports, late too, but not for its annotations alone."""
    for_types = {
        id(inner)
        for node in module.nodes
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and id(node) not in for_types:
            yield from _paths(module, node)


def _paths(module: _Module, node: ast.ImportFrom) -> Iterator[str]:
    """Yield where the names of an import may be: a module, a folder, or modules in a folder."""
    if node.level == 0:
        if not (node.module or "").startswith("sealab."):
            return
        base = (node.module or "").split(".")[1:]
    else:
        base = module.path.split("/")[: -node.level] + (node.module.split(".") if node.module else [])
    whole = "/".join(base)
    yield from (f"{whole}.py", f"{whole}/__init__.py")
    yield from (f"{whole}/{each.name}.py" for each in node.names)
    yield from (f"{whole}/{each.name}/__init__.py" for each in node.names)
