"""What the targets of `make help` run is there, and takes the arguments that it is given."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile, groupby
from pathlib import Path

import pytest

from tests.packaging.locks import LOCKS

ROOT = Path(__file__).resolve().parent.parent
TARGETS = re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
NEEDED = {
    "WRAPPER": "/path/to/wrapper",
    "CORPORA": "corpora",
    "SOURCES": "sources",
    "VENV": "venv",
    "PYTHON": "python3",
    "VERSION": "3.12",
}
ALL = NEEDED | {"TESTS": "tests/test_makefile.py", "PARTS": "faults growth", "SECONDS": "7", "SEED": "7"}
ALL |= {"SAVES": "7", "RUNS": "7", "SESSIONS": "7", "TURN": "17", "TIER": "long", "SHARD": "1/2", "ONCE_MORE": "1"}

OF_PACKAGES = {"pytest", "pip", "ruff", "mypy", "lint-imports", "mkdocs", "uv", "node", "venv"}
OF_THE_SYSTEM = {"awk", "bash", "echo", "exit", "expand", "grep", "python3", "rm", "sed", "sh", "sort", "test", "touch"}
OF_THE_SYSTEM |= {"make", "true", "ulimit"}


@pytest.mark.parametrize("given", [NEEDED, ALL], ids=["what is needed", "all variables"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_gives_each_program_arguments_that_it_takes(target: str, given: dict[str, str]) -> None:
    judged = [check(command) for line in recipe(target, given) for command in commands(line)]
    assert judged


def recipe(target: str, variables: dict[str, str]) -> list[str]:
    """Return the lines that make would run for a target and for all that it depends on."""
    command = ["make", "--dry-run", "--always-make", target, *(f"{name}={value}" for name, value in variables.items())]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line of shell, without assignments before them."""
    words = shlex.split(re.sub(r"\$\{\w+:-(.*?)\}", r"\1", line).replace(";", " ; "))
    for is_separator, command in groupby(words, {"&&", "||", ";", "|", "{", "}"}.__contains__):
        if not is_separator and (rest := list(dropwhile(re.compile(r"\w+=").match, command))):
            yield rest


def check(command: Sequence[str]) -> None:
    """Fail where a command names a file that is not there, or gives a program of ours what it does not take."""
    name, *arguments = command
    if name == NEEDED["WRAPPER"]:
        check(arguments)
    elif not name.endswith("/python"):
        check_other(Path(name).name, arguments)
    elif arguments[0] == "-m" and not arguments[1].startswith("tests."):
        check_other(arguments[1], arguments[2:])
    elif arguments[0] == "-m":
        module = ROOT / arguments[1].replace(".", "/")
        check_ours(module / "__main__.py" if module.is_dir() else module.with_suffix(".py"), arguments[2:])
    else:
        check_ours(ROOT / arguments[0], arguments[1:])


def check_ours(file: Path, arguments: Sequence[str]) -> None:
    parser = parser_of(file)
    if parser is None:
        assert not arguments, f"{file} takes no arguments"
    elif (runs := getattr(parsed(parser, file, arguments), "command", None)) is not None:
        check(runs)


def check_other(name: str, arguments: Sequence[str]) -> None:
    if name == "sealab":
        assert f"## sealab {' '.join(arguments)}\n" in (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert name in OF_PACKAGES | OF_THE_SYSTEM | {"sealab"}, f"nothing is known of {name}"
    if name not in OF_PACKAGES:
        return
    ours = re.compile(r"@?((?:tests|requirements|server)/[^:]+|[\w./-]+\.(?:toml|yml))")
    named = [ROOT / found[1] for word in arguments if (found := ours.fullmatch(word))]
    for listing in [each for each in named if f"@{each.relative_to(ROOT)}" in arguments]:
        named += [ROOT / line for line in listing.read_text().split()]
    assert [each for each in named if not each.exists()] == []


def parsed(parser: argparse.ArgumentParser, file: Path, arguments: Sequence[str]) -> argparse.Namespace:
    try:
        return parser.parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{file} does not take {shlex.join(arguments)}")


@cache
def parser_of(file: Path) -> argparse.ArgumentParser | None:
    """Return the parser that a program makes, or None where it makes none.

    Run is what stands between `… = argparse.ArgumentParser(…)` and its use, with the constants that this needs. To import
    each program with all that it imports would take ten seconds of a processor.
    """
    source = file.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = ["\n".join(lines[each.lineno - 1 : each.end_lineno]).strip() for each in node.body]
            first = next((at for at, text in enumerate(texts) if re.match(r"\w+ = argparse\.Arg", text)), None)
            if first is not None:
                break
    else:
        return None
    last = next(at for at, text in enumerate(texts) if ".parse_args(" in text or text.startswith("return "))
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    space: dict[str, object] = {"__doc__": ast.get_docstring(tree), "__package__": module.rpartition(".")[0]}
    statements = node.body[first:last]
    exec(compile(ast.Module([*needed(statements, tree), *statements], []), file, "exec"), space)
    parser = space[texts[first].split()[0]]
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def needed(statements: Sequence[ast.stmt], tree: ast.Module) -> list[ast.stmt]:
    """Return what of a module defines the names that statements use, in the order of the module."""
    found: list[ast.stmt] = []
    names = {node.id for each in statements for node in ast.walk(each) if isinstance(node, ast.Name)}
    for each in reversed(tree.body):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each.name in names:
            found.append(ast.parse(f"{each.name} = None").body[0])  # choices are named by them, and never called
        elif isinstance(each, ast.Import | ast.ImportFrom):
            bound = [name for name in each.names if (name.asname or name.name.partition(".")[0]) in names]
            if bound:
                found.append(
                    ast.Import(bound)
                    if isinstance(each, ast.Import)
                    else ast.ImportFrom(each.module, bound, each.level)
                )
        elif isinstance(each, ast.Assign | ast.AnnAssign) and names & {
            node.id for node in ast.walk(each) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }:
            found.append(each)
            names |= {node.id for node in ast.walk(each) if isinstance(node, ast.Name)}
    return [ast.fix_missing_locations(each) for each in reversed(found)]


def test_every_lock_is_renewed_by_make_lock_but_that_of_a_model_which_stands_by_hand() -> None:
    there = {str(each.relative_to(ROOT)) for each in (ROOT / "requirements").iterdir()}
    assert there - set(LOCKS) == {"requirements/bench.txt"}
    assert all((ROOT / each).is_file() for each in LOCKS)
