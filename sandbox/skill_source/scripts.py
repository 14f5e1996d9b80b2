"""A script made into a function: `main`, whose parameters are the script's constants and what it expects to be given.

The text stays what its author wrote, comments included; only its lines are indented, those inside of longer texts
excepted. What the script would have shown, `result` or its last expression, is returned.
"""

from __future__ import annotations

import ast
import builtins
import io
import symtable
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .literals import NOT_LITERAL, constant

ENTRY: Final = "main"
_INDENT: Final = "    "
_OWN_NAMES: Final = frozenset({"result", "__name__", "__doc__", "__builtins__", "__file__"})
_CHANGING: Final = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard", "update"}
    | {"setdefault", "popitem", "appendleft", "popleft"}
)


class NoFunction(ValueError):
    """A script cannot be made into a function; the message says why."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A top-level `name = literal`, with the lines it stands on and the hint it has or is given."""

    name: str
    literal: str
    hint: str
    first_line: int
    last_line: int
    remark: str


def variables(source: str, tree: ast.Module) -> list[Variable]:
    """Return the constants of a script: bound once, to a literal, by a statement of their own, and never changed."""
    bound = _times_bound(tree)
    changed = _changed(tree)
    remarks = remarks_of(source)
    lines = [line for statement in tree.body for line in _span(statement)]
    found: list[Variable] = []
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, hint = statement.targets[0], None
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, hint = statement.target, ast.unparse(statement.annotation)
        else:
            continue
        value = constant(statement.value)
        if not isinstance(target, ast.Name) or value is NOT_LITERAL or not _may_vary(target.id):
            continue
        alone = all(lines.count(line) == 1 for line in _span(statement))
        if alone and bound.get(target.id, 0) == 1 and target.id not in changed and value not in ([], {}, ()):
            assert statement.value is not None
            found.append(
                Variable(
                    target.id,
                    ast.get_source_segment(source, statement.value) or ast.unparse(statement.value),
                    hint or _hint_of(value),
                    statement.lineno,
                    _end(statement),
                    remarks.get(_end(statement), ""),
                )
            )
    return found


def constants_of(source: str, tree: ast.Module, chosen: Sequence[str] | None) -> dict[str, str]:
    """Return the names that the top level sets to a literal, each with why it is no parameter; nothing where it is."""
    may_be = {each.name for each in variables(source, tree)}
    bound, changed = _times_bound(tree), _changed(tree)
    found: dict[str, str] = {}
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        for target in targets:
            if not isinstance(target, ast.Name) or constant(value) is NOT_LITERAL or not _may_vary(target.id):
                continue
            if target.id in may_be:
                found[target.id] = "" if chosen is None or target.id in chosen else "not named in code"
            else:
                again = bound.get(target.id, 0) > 1 or target.id in changed
                found[target.id] = "changed later" if again else "empty, or not alone on its line"
    return found


def free_names(source: str, known: Collection[str]) -> list[str]:
    """Return the global names that a script reads and neither binds nor finds in `known`, in order of their names."""
    bound: set[str] = set()
    read: set[str] = set()
    tables = [symtable.symtable(source, "<skill>", "exec")]
    while tables:
        table = tables.pop()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if (top or symbol.is_declared_global()) and (
                symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            ):
                bound.add(name)
            elif symbol.is_global() or top:
                read.add(name)
        tables += table.get_children()
    builtin = vars(builtins).keys()
    return sorted(name for name in read - bound - builtin - set(known) - _OWN_NAMES if not name.startswith("_"))


def remarks_of(source: str) -> dict[int, str]:
    """Return the comments that stand behind something, by their lines."""
    found: dict[int, str] = {}
    lines = source.splitlines()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line, column = token.start
            if token.type == tokenize.COMMENT and line <= len(lines) and lines[line - 1][:column].strip():
                found[line] = token.string.lstrip("#: ").strip()
    except (tokenize.TokenError, SyntaxError):
        return found
    return found


def wrapped(source: str, tree: ast.Module, chosen: Sequence[Variable], required: Sequence[str]) -> str:
    """Return the script as `def main(…)`. Raises `NoFunction` for what cannot stand in a function."""
    _judge(tree)
    lines = source.splitlines()
    taken = {line for variable in chosen for line in range(variable.first_line, variable.last_line + 1)}
    docstring = tree.body[0] if ast.get_docstring(tree, clean=False) is not None else None
    futures = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    for statement in (*futures, *([docstring] if docstring is not None else [])):
        taken |= set(_span(statement))
    sets_result, surely = _sets_result(tree)
    last = tree.body[-1]
    if not sets_result and isinstance(last, ast.Expr) and last is not docstring:
        line = lines[last.lineno - 1]
        column = len(line.encode()[: last.col_offset].decode())
        lines[last.lineno - 1] = f"{line[:column]}return {line[column:]}"
    inside = _inside_of_texts(tree)
    body = [
        line if number in inside or not line.strip() else _INDENT + line
        for number, line in enumerate(lines, 1)
        if number not in taken
    ]
    while body and not body[0].strip():
        del body[0]
    if sets_result:
        body = [*([] if surely else [f"{_INDENT}result = None"]), *body, f"{_INDENT}return result"]
    docstring_lines = [] if docstring is None else [lines[line - 1] for line in _span(docstring)]
    if docstring_lines:
        docstring_lines[0] = _INDENT + docstring_lines[0]
    start = [lines[line - 1] for each in futures for line in _span(each)]
    text = "\n".join([*start, *_head(tree, chosen, required), *docstring_lines, *body, ""])
    return text if body or docstring_lines else text.rstrip("\n") + f"\n{_INDENT}pass\n"


def _head(tree: ast.Module, chosen: Sequence[Variable], required: Sequence[str]) -> list[str]:
    define = f"{'async ' if _awaits(tree) else ''}def {ENTRY}("
    parameters = [*required, *(f"{each.name}: {each.hint} = {each.literal}" for each in chosen)]
    if not any(each.remark for each in chosen):
        return [f"{define}{', '.join(parameters)}):"]
    remarks = [*("" for _ in required), *(each.remark for each in chosen)]
    rows = [
        f"{_INDENT}{parameter},{f'  # {remark}' if remark else ''}"
        for parameter, remark in zip(parameters, remarks, strict=True)
    ]
    return [define, *rows, "):"]


def _judge(tree: ast.Module) -> None:
    for part in ast.walk(tree):
        if isinstance(part, ast.Global):
            raise NoFunction(f"line {part.lineno} says `global {part.names[0]}`. Pass the value and return it instead.")
        if isinstance(part, ast.ImportFrom) and any(alias.name == "*" for alias in part.names):
            raise NoFunction(f"line {part.lineno} imports *. Import the names that it uses.")


def _times_bound(tree: ast.Module) -> dict[str, int]:
    times: dict[str, int] = {}
    for part in ast.walk(tree):
        names: Sequence[str] = ()
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names = (part.id,)
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (part.name,)
        elif isinstance(part, ast.alias):
            names = (part.asname or part.name.partition(".")[0],)
        elif isinstance(part, ast.Global | ast.Nonlocal):
            names = part.names
        for name in names:
            times[name] = times.get(name, 0) + 1
    return times


def _changed(tree: ast.Module) -> set[str]:
    """Return the names whose values are changed in place: `rows.append(…)`, `seen[key] = …`."""
    found: set[str] = set()
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if part.attr in _CHANGING or not isinstance(part.ctx, ast.Load):
                found.add(part.value.id)
        elif (
            isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load) and isinstance(part.value, ast.Name)
        ):
            found.add(part.value.id)
    return found


def _may_vary(name: str) -> bool:
    return name not in _OWN_NAMES and not name.startswith("_")


def _hint_of(value: object) -> str:
    if value is None:
        return "object"
    if isinstance(value, list) and value and len({type(item) for item in value}) == 1:
        return f"list[{type(value[0]).__name__}]" if isinstance(value[0], str | int | float) else "list"
    return type(value).__name__


def _sets_result(tree: ast.Module) -> tuple[bool, bool]:
    """Return whether the top level sets `result`, and whether it surely does so."""
    surely = any(
        isinstance(target, ast.Name) and target.id == "result"
        for statement in tree.body
        for target in (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign) and statement.value is not None
            else []
        )
    )
    anyhow = any(
        isinstance(part, ast.Name) and part.id == "result" and isinstance(part.ctx, ast.Store) for part in _at_top(tree)
    )
    return surely or anyhow, surely


def _awaits(tree: ast.Module) -> bool:
    return any(
        isinstance(part, ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(part, ast.comprehension) and bool(part.is_async))
        for part in _at_top(tree)
    )


def _at_top(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that run at the top level: those of functions and classes do not."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _inside_of_texts(tree: ast.Module) -> set[int]:
    """Return the lines that begin inside of a text, where an indent would change its value."""
    found: set[int] = set()
    for part in ast.walk(tree):
        text = isinstance(part, ast.JoinedStr) or (
            isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
        )
        if text and part.end_lineno is not None and part.end_lineno > part.lineno:  # type: ignore[attr-defined]  # expressions have lines
            found |= set(range(part.lineno + 1, part.end_lineno + 1))  # type: ignore[attr-defined]  # as above
    return found


def _span(statement: ast.stmt) -> range:
    return range(statement.lineno, _end(statement) + 1)


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno
