"""Writes typed Python stubs of upstream tools into a folder: a package per server, one module per tool.

    DIR/__init__.py                 names the packages
    DIR/<server>/__init__.py        offers every function and type of the server
    DIR/<server>/<tool>.py          input model, output type where known, and the function
    DIR/<server>/_call.py           how calls reach the tools

Every file carries a digest of itself. Only files whose digest is right are written over or removed: what others made,
or changed, stays as it is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..catalog import Catalog
from ..errors import StubsRefused
from ..files import write_whole
from ..models import Tool
from .details import AnswerShapes
from .stub_source import CALL, StubModule, Style, barrel, root, tool_module

_MARK = "# Made by `sealab tools generate`, which leaves it alone once it is changed. sha256:"
_NAME_CHARS_MAX = 80
_NOT_ON_WINDOWS = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


@dataclass(slots=True)
class WrittenStubs:
    """What was done: files by what became of them. `kept` were not made here, or were changed since."""

    servers: int = 0
    tools: int = 0
    written: list[Path] = field(default_factory=list)
    unchanged: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)


def write_stubs(
    catalog: Catalog,
    folder: Path,
    learned: AnswerShapes | None = None,
    *,
    only: Collection[str] = (),
    asks: Callable[[Tool], bool] = lambda _tool: False,
    style: Style = Style.TYPEDDICT,
) -> WrittenStubs:
    """Write the stubs of all tools, or of those of the servers in `only`, and remove those of tools that are gone.

    `asks` says whether a user is asked before a call of a tool. Raises `StubsRefused` where the folder cannot be used.
    """
    done = WrittenStubs()
    planned = _planned(catalog, folder, learned, only, asks=asks, style=style, done=done)
    try:
        if folder.exists() and not folder.is_dir():
            raise StubsRefused(f"{folder} is not a folder. Name another.")
        for path, source in planned.items():
            _write(path, _marked(source), done)
        if not only:
            _remove_stale(folder, planned.keys(), done)
    except OSError as error:
        raise StubsRefused(f"{error.filename or folder} cannot be written: {error.strerror}. Name another.") from error
    return done


def _planned(
    catalog: Catalog,
    folder: Path,
    learned: AnswerShapes | None,
    only: Collection[str],
    *,
    asks: Callable[[Tool], bool],
    style: Style,
    done: WrittenStubs,
) -> dict[Path, str]:
    planned: dict[Path, str] = {}
    taken: set[str] = set()
    packages: dict[str, str] = {}
    for name, entry in catalog.servers().items():
        tools = catalog.tools(server=name)
        if tools:
            packages[name] = _file_name(entry.alias, taken)
        if not tools or (only and name not in only):
            continue
        done.servers += 1
        done.tools += len(tools)
        modules: dict[str, StubModule] = {}
        names: set[str] = {"_call", "__init__"}
        for tool in tools:
            known = None if learned is None else learned.get(tool.full_name)
            alias = catalog.alias(tool)[1]
            modules[_file_name(alias, names)] = tool_module(tool, alias, known, asks=asks(tool), style=style)
        planned |= _package(name, folder / packages[name], modules)
    if folder.name.isidentifier():
        planned[folder / "__init__.py"] = root([packages[name] for name in sorted(packages)])
    return planned


def _package(server: str, folder: Path, modules: Mapping[str, StubModule]) -> dict[Path, str]:
    """Return the files of the package of one server, in their order."""
    planned = {folder / "_call.py": CALL}
    for each, module in modules.items():
        planned[folder / f"{each}.py"] = module.source
    # Functions come first: a type whose name a function has is left in its module.
    exports = {each: module.names for each, module in modules.items()}
    functions = {module.names[0] for module in modules.values()}
    offered = {
        each: [name, *(kind for kind in kinds if kind not in functions)] for each, (name, *kinds) in exports.items()
    }
    planned[folder / "__init__.py"] = barrel(
        f"The tools of the MCP server {server}, as typed functions.", {"_call": ["use"], **offered}
    )
    return planned


def _file_name(alias: str, taken: set[str]) -> str:
    """Return a module name that every file system takes, and that no other has there, in whatever case."""
    plain = alias.lower()
    if len(plain) > _NAME_CHARS_MAX:
        plain = f"{plain[:_NAME_CHARS_MAX]}_{hashlib.sha256(alias.encode()).hexdigest()[:8]}"
    if plain in _NOT_ON_WINDOWS:
        plain = f"{plain}_"
    wanted, number = plain, 2
    while plain in taken:
        plain = f"{wanted}_{number}"
        number += 1
    taken.add(plain)
    return plain


def _marked(source: str) -> str:
    return f"{_MARK}{hashlib.sha256(source.encode()).hexdigest()}\n{source}"


def _is_ours(path: Path) -> bool:
    """Whether a file was made here and is as it was made."""
    if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return False
    try:
        head, _, source = path.read_bytes().partition(b"\n")
    except OSError:
        return False
    return head == f"{_MARK}{hashlib.sha256(source).hexdigest()}".encode()


def _write(path: Path, text: str, done: WrittenStubs) -> None:
    if os.path.lexists(path) or path.parent.is_symlink():
        if not _is_ours(path):
            done.kept.append(path)
            return
        if path.read_text(encoding="utf-8") == text:
            done.unchanged.append(path)
            return
    elif path.parent.exists() and not path.parent.is_dir():
        done.kept.append(path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text, durable=False)
    path.chmod(0o644)
    done.written.append(path)


def _remove_stale(folder: Path, planned: Collection[Path], done: WrittenStubs) -> None:
    for path in sorted(folder.glob("*/*.py")):
        if path not in planned and _is_ours(path):
            path.unlink()
            done.removed.append(path)
    for package in {path.parent for path in done.removed}:
        leftover = [each for each in package.iterdir() if each.name != "__pycache__"]
        if not leftover and not (package / "__pycache__").exists():
            package.rmdir()
