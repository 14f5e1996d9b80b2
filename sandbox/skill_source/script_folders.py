"""The Python code of a skill whose folder others wrote: its instructions, and a function for each runnable script.

Each function puts its arguments into words and has the script run with them. What a script takes is read from its
source, never by running it: `add_argument` of argparse, the decorators of click, the parameters of a command of typer.
Where none can be read, or there are several commands, the words are given as they are, as `argv`.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from . import docstrings
from .argparse_scripts import Option, has_commands, options_of, row
from .literals import constant

_DESCRIPTION_CHARS_MAX: Final = 400
_OWN: Final = re.compile(r"SKILL|SCRIPTS|read|script|argv|name|version|folder|skill_\w+|v[0-9]+|_.*")
_GUARD: Final = re.compile(r"^if\s+\(?\s*(?:__name__\s*==|['\"]__main__['\"]\s*==)", re.MULTILINE)
_WORDS: Final = re.compile(r"\bsys\.argv\b|\bargparse\b|\bclick\b|\btyper\b")


def source_of(name: str, scripts: Mapping[str, str]) -> str:
    """Return the code of the skill; `scripts` are all Python files of its folder by their paths."""
    trees = dict(_trees(scripts))
    names = _names(name, [path for path, tree in trees.items() if _runs(path, scripts[path], tree)])
    parts = [_head(name, names)]
    parts += [_function(called, path, trees[path]) for called, path in names.items()]
    return "\n\n\n".join(parts) + "\n"


def modules_of(scripts: Mapping[str, str]) -> list[str]:
    """Return the packages that the scripts import: neither the standard library's modules nor one another."""
    own = {part.removesuffix(".py") for path in scripts for part in PurePosixPath(path).parts}
    found = {module for _path, tree in _trees(scripts) for module in imported(tree)}
    return sorted(found - own - sys.stdlib_module_names)


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level names of the modules that a source imports."""
    found: set[str] = set()
    for part in ast.walk(tree):
        if isinstance(part, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in part.names}
        elif isinstance(part, ast.ImportFrom) and part.module and not part.level:
            found.add(part.module.partition(".")[0])
    return found


def _trees(scripts: Mapping[str, str]) -> Iterator[tuple[str, ast.Module]]:
    for path, source in sorted(scripts.items()):
        try:
            yield path, ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # of another version of Python, or a template


def _runs(path: str, source: str, tree: ast.Module) -> bool:
    place = PurePosixPath(path)
    if place.name.startswith(("test_", "__")) or "tests" in place.parts:
        return False
    if any(isinstance(part, ast.ImportFrom) and part.level for part in tree.body):  # a part of a package
        return False
    return _GUARD.search(source) is not None or (place.parts[0] == "scripts" and _WORDS.search(source) is not None)


def _names(skill: str, paths: list[str]) -> dict[str, str]:
    """Return a name for each script: its file's, with its folders where two have the same."""
    stems = Counter(_identifier(PurePosixPath(path).stem) for path in paths)
    names: dict[str, str] = {}
    for path in paths:
        name = _identifier(PurePosixPath(path).stem)
        if stems[name] > 1:
            name = _identifier("_".join(PurePosixPath(path).with_suffix("").parts))
        if name == skill or name in names or _OWN.fullmatch(name) or keyword.iskeyword(name) or hasattr(builtins, name):
            name = f"{name}_script"
        if name.isidentifier() and name not in names:
            names[name] = path
    return names


def _identifier(stem: str) -> str:
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")
    return f"run_{name}" if name[:1].isdigit() else name


def _head(name: str, names: Mapping[str, str]) -> str:
    choices = f"Literal[{', '.join(map(repr, names))}] | None"
    script = f", *, script: {choices!r} = None, argv: list[str] = []"
    runs = "    if script is not None:\n        return skill_script(SKILL, SCRIPTS[script], argv)\n" if names else ""
    said = "a file of the skill, or run one of its scripts with words as on a command line" if names else "a file of it"
    return (
        '"""Made by sealab of a folder that others wrote, whose files it brings along as they are."""\n\n'
        f"SKILL = {name!r}\nSCRIPTS = {dict(names)!r}\n\n\n"
        f"def {name}(read: str = 'SKILL.md'{script if names else ''}) -> str:\n"
        f'    """Return the instructions, or {said}."""\n{runs}'
        "    return skill_text(SKILL, read)\n\n\n"
        "def folder() -> str:\n"
        '    """Return the folder with all files, read-only, whose modules can be imported then, with '
        'isolation=\\"process\\"."""\n'
        "    return skill_folder(SKILL)"
    )


def _function(name: str, path: str, tree: ast.Module) -> str:
    description = docstrings.read(ast.get_docstring(tree)).description[:_DESCRIPTION_CHARS_MAX]
    options = [each for each in _read(tree) if each.name not in {"argv", name, "SKILL", "skill_script"}]
    options = list({each.name: each for each in options}.values())
    commands = [] if not has_commands(tree) else sorted(_commands(tree))
    description = f"{description}\n\nIts commands: {', '.join(commands)}." if commands else description
    positional = [each for each in options if each.positional]
    named = [each for each in options if not each.positional]
    lines = [
        f"def {name}(",
        *(row(each) for each in map(_optional, (*positional, *named))),
        *(["    *,"] if options else []),
        "    argv: list[str] = [],  # words as on a command line, before all others",
        ") -> str:",
        f"    {f'{description} Runs {path}, and returns what it prints.'.strip()!r}",
        "    _words = [*argv]",
        *(f"    {line}" for each in (*named, *positional) for line in _lines(each)),
        f"    return skill_script(SKILL, {path!r}, _words)",
    ]
    return "\n".join(lines)


def _lines(option: Option) -> list[str]:
    """Return the lines that put a value into words, unless it is the script's own default, which `argv` may change."""
    lines = option.words.splitlines()
    if option.default in {None, "None"}:
        return lines
    return [f"if {option.name} != {option.default}:", *(f"    {line}" for line in lines)]


def _optional(option: Option) -> Option:
    """Let the script itself say what is missing, so that `argv=["--help"]` alone is a call."""
    if option.default is not None:
        return option
    remark = f"{option.remark} (required)".strip()
    return Option(option.name, f"{option.hint} | None", "None", option.words, option.positional, remark)


def _read(tree: ast.Module) -> list[Option]:
    return [] if has_commands(tree) else options_of(tree)


def _commands(tree: ast.Module) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "add_parser":
            name = constant(part.args[0]) if part.args else None
            if isinstance(name, str):
                yield name
        elif isinstance(part, ast.FunctionDef) and any("command" in ast.unparse(each) for each in part.decorator_list):
            yield part.name.replace("_", "-")
