"""A script with `argparse` options made into a function of its own: each option is a parameter.

The script stays as it is. What is added at its end is a function that puts its arguments into `sys.argv` and calls the
script's `main()`. Options are read where they are written out: `add_argument("--limit", type=int, default=10)`. One
that cannot be read is not a parameter: its default holds.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .literals import NOT_LITERAL, constant
from .scripts import ENTRY

_SINGLE: Final = frozenset({"store", "append", "extend"})
_NO_PARAMETERS: Final = frozenset({"help", "version"})
_TYPES: Final = frozenset({"int", "float", "str"})
_FLAG: Final = re.compile(r"-{0,2}[A-Za-z][\w-]*")
_MANY: Final = frozenset({"+", "*"})
_Entry = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Option:
    """One option or positional argument: the parameter that it becomes, and how its value is written in `sys.argv`."""

    name: str
    hint: str
    default: str | None
    words: str
    positional: bool
    remark: str


def with_options_as_parameters(source: str, tree: ast.Module, name: str) -> str:
    """Return a script with a function `name` added, whose parameters are its options; the source where it has none."""
    entry = _entry(tree)
    if entry is None or name == ENTRY or not name.isidentifier() or has_commands(tree):
        return source
    options = options_of(tree)
    if not options:
        return source
    required = [each for each in options if each.default is None]
    ordered = [*required, *(each for each in options if each.default is not None)]
    is_async = isinstance(entry, ast.AsyncFunctionDef)
    rows = [row(each) for each in ordered]
    words = [*(each for each in options if not each.positional), *(each for each in options if each.positional)]
    docstring = ast.get_docstring(entry) or ast.get_docstring(tree) or f"Run {name}."
    lines = [
        source.rstrip("\n"),
        "",
        "",
        "# What follows makes a function of the script, whose parameters are its options; it was added by sealab.",
        f"{'async ' if is_async else ''}def {name}(",
        *rows,
        "):",
        f"    {docstring!r}",
        "    import sys as _sys",
        "",
        f"    _words = [{name!r}]",
        *(f"    {line}" for each in words for line in each.words.splitlines()),
        "    _before, _sys.argv = _sys.argv, _words",
        "    try:",
        f"        return {'await ' if is_async else ''}{ENTRY}()",
        "    finally:",
        "        _sys.argv = _before",
        "",
    ]
    return "\n".join(lines)


def _entry(tree: ast.Module) -> _Entry | None:
    """Return the `main` of a script, if it can be called without arguments."""
    for statement in tree.body:
        if isinstance(statement, _Entry) and statement.name == ENTRY:
            given = statement.args
            lacks = len(given.posonlyargs) + len(given.args) - len(given.defaults)
            return None if lacks or None in given.kw_defaults else statement
    return None


def has_commands(tree: ast.Module) -> bool:
    """Return whether a script has several commands, each with options of its own."""
    return (
        any(isinstance(part, ast.Attribute) and part.attr in {"add_subparsers", "group"} for part in ast.walk(tree))
        or len(_typer_commands(tree)) > 1
    )


def options_of(tree: ast.Module) -> list[Option]:
    """Return the options of argparse, click or typer that can be read, in the order in which they stand."""
    calls = [
        part
        for part in ast.walk(tree)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and (part.func.attr == "add_argument" or ast.unparse(part.func) in {"click.option", "click.argument"})
    ]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    calls += [call for function in _typer_commands(tree)[:1] for call in _of_typer(function)]
    return [option for call in calls if (option := _read(call)) is not None]


def _typer_commands(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions that typer runs: `typer.run(main)`, `@app.command()`."""
    if not any(isinstance(part, ast.Name) and part.id == "typer" for part in ast.walk(tree)):
        return []
    run = {
        part.args[0].id
        for part in ast.walk(tree)
        if isinstance(part, ast.Call) and part.args and isinstance(part.args[0], ast.Name)
        if ast.unparse(part.func) == "typer.run"
    }
    return [
        part
        for part in tree.body
        if isinstance(part, ast.FunctionDef)
        and (part.name in run or any(".command(" in ast.unparse(each) for each in part.decorator_list))
    ]


def _of_typer(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Write each parameter as argparse would: what has a default is an option, anything else an argument."""
    given = [*function.args.args, *function.args.kwonlyargs]
    plain = len(function.args.args) - len(function.args.defaults)
    defaults = [*[None] * plain, *function.args.defaults, *function.args.kw_defaults]
    for each, value in zip(given, defaults, strict=True):
        default = value
        hint, marks = each.annotation, [value] if isinstance(value, ast.Call) else []
        if isinstance(hint, ast.Subscript) and ast.unparse(hint.value).endswith("Annotated"):
            inside = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
            hint, marks = inside[0], [*marks, *(part for part in inside[1:] if isinstance(part, ast.Call))]
        mark = next((part for part in marks if ast.unparse(part.func) in {"typer.Option", "typer.Argument"}), None)
        if mark is not None and mark is value:
            default = mark.args[0] if mark.args else None
        if isinstance(default, ast.Constant) and default.value is ...:
            default = None
        is_argument = mark.func.attr == "Argument" if mark and isinstance(mark.func, ast.Attribute) else default is None
        said = [part for part in (mark.keywords if mark else []) if part.arg == "help"]
        kind = "str" if hint is None else ast.unparse(hint).replace("Optional[", "").partition(" |")[0].rstrip("]")
        name = each.arg if is_argument else f"--{each.arg.replace('_', '-')}"
        if kind == "bool":
            said.append(ast.keyword("action", ast.parse("argparse.BooleanOptionalAction", mode="eval").body))
        elif kind in _TYPES:
            said.append(ast.keyword("type", ast.Name(kind)))
        elif kind.startswith(("list[", "List[")):
            said.append(ast.keyword("nargs", ast.Constant("*")) if is_argument else _appended())
        if is_argument and default is not None:
            said.append(ast.keyword("nargs", ast.Constant("?")))
        said += [] if default is None else [ast.keyword("default", default)]
        said += [] if is_argument or default is not None else [ast.keyword("required", ast.Constant(value=True))]
        yield ast.Call(ast.Name("add_argument"), [ast.Constant(name)], said)


def _appended() -> ast.keyword:
    return ast.keyword("action", ast.Constant("append"))


def _read(call: ast.Call) -> Option | None:
    flags = [constant(each) for each in call.args]
    said = {each.arg: each.value for each in call.keywords}
    if ast.unparse(call.func).startswith("click."):
        said = _as_argparse(said)
        names = [each for each in call.args if not str(constant(each)).startswith("-")]
        if len(flags) > len(names) > 0:
            said, flags = {**said, "dest": names[0]}, [each for each in flags if str(each).startswith("-")]
    if not flags or not all(isinstance(each, str) for each in flags) or None in said:
        return None
    action = constant(said["action"]) if "action" in said else "store"
    texts = [str(each) for each in flags]
    flag = next((each for each in texts if each.startswith("--")), texts[0])
    if action in _NO_PARAMETERS:
        return None
    dest = constant(said["dest"]) if "dest" in said else flag.lstrip("-").replace("-", "_")
    name = f"{dest}_" if keyword.iskeyword(str(dest)) else str(dest)
    if not _FLAG.fullmatch(flag) or not name.isidentifier() or name.startswith("_") or name == ENTRY:
        return None
    positional = not flag.startswith("-")
    help_text = constant(said["help"]) if "help" in said else None
    remark = " ".join(str(help_text).split()) if isinstance(help_text, str) else ""
    if _is_switch(action, said):
        return _switch(name, flag, action, said, remark)
    if action not in _SINGLE:
        return None
    hint = _hint(said)
    many = action != "store" or _takes_many(said)
    default = constant(said["default"]) if "default" in said else None
    needed = constant(said["required"]) is True if "required" in said else False
    if positional:
        needed = "nargs" not in said or constant(said["nargs"]) not in {"?", "*"}
    annotation = f"list[{hint}]" if many else hint
    if needed:
        shown = None
    elif default is None or default is NOT_LITERAL:
        shown, annotation = "None", f"{annotation} | None"
    else:
        shown = repr(default)
    words = _words(name, "" if positional else flag, many=many, each=action != "store")
    return Option(name, annotation, shown, words, positional, remark)


def _as_argparse(said: dict[str | None, ast.expr]) -> dict[str | None, ast.expr]:
    """Return what a decorator of click says, as argparse would say it."""
    kind = said.get("type")
    if isinstance(kind, ast.Call) and ast.unparse(kind.func) == "click.Choice" and kind.args:
        said = {**said, "choices": kind.args[0]}
    if "is_flag" in said and constant(said["is_flag"]) is True:
        said = {**said, "action": ast.Constant("store_true")}
    elif "multiple" in said and constant(said["multiple"]) is True:
        said = {**said, "action": ast.Constant("append")}
    elif "count" in said and constant(said["count"]) is True:
        said = {**said, "action": ast.Constant("count")}
    if "nargs" in said and constant(said["nargs"]) == -1:
        said = {**said, "nargs": ast.Constant("*")}
    elif "required" in said and constant(said["required"]) is False and "nargs" not in said:
        said = {**said, "nargs": ast.Constant("?")}
    return said


def _is_switch(action: object, said: dict[str | None, ast.expr]) -> bool:
    given = said.get("action")
    return action in {"store_true", "store_false", "count"} or (
        given is not None and ast.unparse(given).endswith("BooleanOptionalAction")
    )


def _switch(name: str, flag: str, action: object, said: dict[str | None, ast.expr], remark: str) -> Option:
    """Return an option without a value: `--verbose`, `--no-verbose`, `-vvv`."""
    if action == "count":
        return Option(name, "int", "0", f"_words += [{flag!r}] * {name}", False, remark)
    if action == "store_false":
        return Option(name, "bool", "True", f"_words += [] if {name} else [{flag!r}]", False, remark)
    if action == "store_true":
        return Option(name, "bool", "False", f"_words += [{flag!r}] if {name} else []", False, remark)
    default = constant(said["default"]) if "default" in said else None
    opposite = f"--no-{flag.removeprefix('--')}"
    words = f"_words += [] if {name} is None else [{flag!r} if {name} else {opposite!r}]"
    return Option(name, "bool | None" if default is None else "bool", repr(default), words, False, remark)


def _hint(said: dict[str | None, ast.expr]) -> str:
    choices = constant(said["choices"]) if "choices" in said else None
    if isinstance(choices, list | tuple | range) and choices:
        kinds = {type(each).__name__ for each in choices}
        if kinds <= _TYPES:
            return f"Literal[{', '.join(map(repr, choices))}]"
    kind = ast.unparse(said["type"]) if "type" in said else "str"
    return kind if kind in _TYPES else "str"


def _takes_many(said: dict[str | None, ast.expr]) -> bool:
    nargs = constant(said["nargs"]) if "nargs" in said else None
    return nargs in _MANY or isinstance(nargs, int)


def _words(name: str, flag: str, *, many: bool, each: bool) -> str:
    """Return the lines that put the value of an option, or of a positional argument, behind `_words`.

    They use no name that an option may have.
    """
    all_of_it = f"[f'{{_one}}' for _one in {name}]"
    if not flag:
        mark, values = '*(["--"] if "--" not in _words else [])', f"*{all_of_it}" if many else f"f'{{{name}}}'"
        return f"_words += [{mark}, {values}] if {name if many else f'{name} is not None'} else []"
    if each:
        return f"for _one in {name} or []:\n    _words += [f'{flag}={{_one}}']"
    if many:
        return f"_words += [{flag!r}, *{all_of_it}] if {name} is not None else []"
    return f"_words += [f'{flag}={{{name}}}'] if {name} is not None else []"


def row(option: Option) -> str:
    """Return the line of a parameter."""
    default = "" if option.default is None else f" = {option.default}"
    hint = repr(option.hint) if "Literal" in option.hint else option.hint  # which the script need not import
    return f"    {option.name}: {hint}{default},{f'  # {option.remark}' if option.remark else ''}"
