"""The facts of a skill: what calls it, what it takes, what it says, what it uses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

from ..job import Json, SourceReading
from . import docstrings, script_folders, scripts
from .annotations import Reader, Schema
from .argparse_scripts import with_options_as_parameters
from .literals import NOT_LITERAL, constant, plain
from .scripts import ENTRY, NoFunction
from .shapes import Shapes

SIGNATURE_CHARS_MAX: Final = 2000
UNDEFINED_MAX: Final = 10
_KINDS: Final[Mapping[type, frozenset[str]]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    str: frozenset({"string"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
    type(None): frozenset({"null"}),
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_HELPER_MODULES: Final = frozenset({"__future__", "mcp", "runtime", "servers", "skills", "tools"})
_CALLS: Final = frozenset({"call_mcp_tool", "call_tool"})


def describe(source: str, reading: SourceReading, known: Collection[str] = ()) -> dict[str, Json]:
    """Return the facts, or `{"problem": …}` where the source cannot be a skill or its tests are not valid Python."""
    try:
        return read(source, reading, known)
    except NoFunction as error:
        return {"problem": f"The code of {reading.name} cannot be a skill: {error}"}
    except SyntaxError as error:
        return {"problem": f"The tests of {reading.name} are not valid Python: {error.msg} (line {error.lineno})."}


def read(source: str, reading: SourceReading, known: Collection[str] = ()) -> dict[str, Json]:
    """Return the facts of source that compiles. `known` are the global names that any code finds.

    Keys: `code` (that of a script made into a function), `entry`, `is_script`, `is_async`, `signature`, `parameters`
    (JSON Schema), `kinds` (of each parameter, as `inspect` names them), `description`, `examples` (whether the
    docstring has any), `modules`, `tools`, `skills`, `undefined` (names that nothing binds), `constants` (of a script,
    each with why it is no parameter, or nothing), `test_functions`, `test_is_examples`. Raises `NoFunction` when it
    cannot be called, and `SyntaxError` for tests that are not valid Python.
    """
    if reading.scripts is not None:
        source = script_folders.source_of(reading.name, reading.scripts)
    tree = _parse(source)
    if _function(tree, reading.name) is None:
        source = with_options_as_parameters(source, tree, reading.name)
        tree = _parse(source)
    function = _function(tree, reading.name) or _function(tree, ENTRY)
    is_script = function is None
    constants = scripts.constants_of(source, tree, reading.variables) if is_script else {}
    if function is None:
        source = _as_function(source, tree, reading, known)
        tree = _parse(source)
        function = _function(tree, ENTRY)
        assert function is not None
    said = docstrings.read(ast.get_docstring(function))
    description = said.description or docstrings.read(ast.get_docstring(tree)).description
    parameters, kinds = _parameters(function, Shapes(tree), said, scripts.remarks_of(source))
    return {
        "code": source,
        "entry": function.name,
        "is_script": is_script,
        "is_async": isinstance(function, ast.AsyncFunctionDef) and not _yields(function),
        "signature": _signature(reading.name, function),
        "parameters": parameters,
        "kinds": kinds,
        "description": description,
        "examples": said.examples,
        "modules": sorted(script_folders.imported(tree) - _HELPER_MODULES)
        if reading.scripts is None
        else script_folders.modules_of(reading.scripts),
        "tools": sorted(_tools(tree)),
        "skills": sorted(_skills(tree)),
        "undefined": _undefined(source, tree, known),
        "constants": constants,
        **_tests(reading.tests),
    }


def _parse(source: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return cast("ast.Module", compile(source, "<skill>", "exec", flags, dont_inherit=True))


def _function(tree: ast.Module, name: str) -> _Function | None:
    found = None
    for statement in tree.body:
        if isinstance(statement, _Function) and statement.name == name:
            found = statement
        elif (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Lambda)
            and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        ):
            found = _defined(name, statement.value)
    return found


def _defined(name: str, value: ast.Lambda) -> ast.FunctionDef:
    """Return `name = lambda …` as the `def` that it could have been."""
    made = ast.FunctionDef(name, value.args, [ast.Return(value.body)], [])
    return ast.fix_missing_locations(ast.copy_location(made, value))


def _as_function(source: str, tree: ast.Module, reading: SourceReading, known: Collection[str]) -> str:
    if not tree.body:
        raise NoFunction("it is empty. Give Python code.")
    functions = [statement for statement in tree.body if isinstance(statement, _Function | ast.ClassDef)]
    does = [part for part in tree.body if not isinstance(part, _Function | ast.ClassDef | ast.Import | ast.ImportFrom)]
    if functions and not _acts(does):
        raise NoFunction(
            f"it defines {', '.join(each.name for each in functions[:5])} and no function {reading.name}. "
            f"Name the function {reading.name}, or give the skill its name."
        )
    constants = {variable.name: variable for variable in scripts.variables(source, tree)}
    free = scripts.free_names(source, known)
    if reading.variables is None:
        return scripts.wrapped(source, tree, list(constants.values()), free)
    unknown = [name for name in reading.variables if name not in constants and name not in free]
    if unknown:
        listed = ", ".join([*free, *constants]) or "none"
        raise NoFunction(f"{unknown[0]} is not a variable that can become a parameter. Choose of these: {listed}.")
    return scripts.wrapped(source, tree, [constants[name] for name in reading.variables if name in constants], free)


def _acts(statements: list[ast.stmt]) -> bool:
    """Return whether statements do more than bind constants and say what the module is about."""
    return any(
        not isinstance(part, ast.Assign | ast.AnnAssign | ast.Pass)
        and not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        and not _is_main_guard(part)
        for part in statements
    ) or any(
        isinstance(target, ast.Name) and target.id == "result"
        for part in statements
        if isinstance(part, ast.Assign)
        for target in part.targets
    )


def _is_main_guard(part: ast.stmt) -> bool:
    return isinstance(part, ast.If) and "__name__" in ast.dump(part.test)


def _parameters(
    function: _Function, shapes: Shapes, said: docstrings.DocstringParts, remarks: Mapping[int, str]
) -> tuple[Schema, list[Json]]:
    reader = Reader(shapes)
    given = function.args
    takes = _taken(given)
    parameter_remarks = _remarked([each for each, _default, _kind in takes], function.lineno, remarks)
    properties: dict[str, Json] = {}
    required: list[str] = []
    for each, default, _kind in takes:
        value = shapes.default(default)
        schema = _schema_of(each, reader, said, value)
        text = reader.described(each.annotation) or said.texts.get(each.arg) or parameter_remarks.get(each.arg)
        if default is not None and schema and value is None and not _admits_null(schema):
            schema = {"anyOf": [schema, {"type": "null"}]} if schema.keys() != {"type"} else _or_null(schema)
        if text:
            schema["description"] = text
        if value is not NOT_LITERAL:
            schema["default"] = plain(value)
        if default is None:
            required.append(each.arg)
        properties[each.arg] = schema
    listed: list[Json] = [[each.arg, kind] for each, _default, kind in takes]
    rest: Json = False
    if given.vararg is not None:
        items = reader.schema(given.vararg.annotation)
        many: Schema = {"type": "array", **({"items": items} if items else {})}
        if given.vararg.arg in said.texts:
            many["description"] = said.texts[given.vararg.arg]
        properties[given.vararg.arg] = many
        listed.append([given.vararg.arg, "VAR_POSITIONAL"])
    if given.kwarg is not None:
        rest = reader.schema(given.kwarg.annotation) or True
        listed.append([given.kwarg.arg, "VAR_KEYWORD"])
    parameters: Schema = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    return {**parameters, "additionalProperties": rest}, listed


def _taken(given: ast.arguments) -> list[tuple[ast.arg, ast.expr | None, str]]:
    """Return each parameter by name, with its default and its kind as `inspect` names it."""
    plain_ones = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain_ones) - len(given.defaults)) + [*given.defaults]
    kinds = ["POSITIONAL_ONLY"] * len(given.posonlyargs) + ["POSITIONAL_OR_KEYWORD"] * len(given.args)
    return [
        *zip(plain_ones, defaults, kinds, strict=True),
        *((each, default, "KEYWORD_ONLY") for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)),
    ]


def _schema_of(parameter: ast.arg, reader: Reader, said: docstrings.DocstringParts, default: object) -> Schema:
    """Return the schema of its hint, or else that of the docstring's type where the default fits it."""
    if parameter.annotation is not None or parameter.arg not in said.types:
        return reader.schema(parameter.annotation)
    schema = reader.text(said.types[parameter.arg])
    if default is not NOT_LITERAL and default is not None and not _may_be(plain(default), schema):
        return {}  # the docstring does not list all that it takes
    return schema


def _remarked(parameters: Sequence[ast.arg], define_line: int, remarks: Mapping[int, str]) -> dict[str, str]:
    """Return the comments behind parameters that stand on lines of their own."""
    lines = [each.lineno for each in parameters]
    return {
        each.arg: remarks[each.lineno]
        for each in parameters
        if each.lineno in remarks and each.lineno != define_line and lines.count(each.lineno) == 1
    }


def _admits_null(schema: Schema) -> bool:
    """Return whether a schema admits null, as that of `x: int = None` does not by itself."""
    kind = schema.get("type")
    if kind is not None:
        return kind == "null" or (not isinstance(kind, str) and "null" in kind)  # type: ignore[operator]  # a list of names
    if "enum" in schema:
        return None in schema["enum"]  # type: ignore[operator]  # a list
    return any(_admits_null(part) for part in schema.get("anyOf", ()))  # type: ignore[union-attr,arg-type]  # schemas


def _may_be(value: Json, schema: Schema) -> bool:
    """Return whether a value is of a type that a schema names at its root, and among its choices."""
    if "enum" in schema and value not in cast("list[Json]", schema["enum"]):
        return False
    if "anyOf" in schema:
        return any(_may_be(value, part) for part in cast("list[Schema]", schema["anyOf"]))
    kind = schema.get("type")
    kinds = {kind} if isinstance(kind, str) else set(cast("list[str]", kind or ()))
    return not kinds or not kinds.isdisjoint(_KINDS[type(value)])


def _or_null(schema: Schema) -> Schema:
    kind = schema["type"]
    return {"type": [*([kind] if isinstance(kind, str) else kind), "null"]}  # type: ignore[misc]  # a name or several


def _signature(name: str, function: _Function) -> str:
    """Write the signature as `inspect` does."""
    given = function.args
    parts = [_parameter(each, default) for each, default, _kind in _taken(given)]
    if given.vararg is not None or given.kwonlyargs:
        rest = "" if given.vararg is None else _parameter(given.vararg, None)
        parts.insert(len(given.posonlyargs) + len(given.args), f"*{rest}")
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    if given.kwarg is not None:
        parts.append("**" + _parameter(given.kwarg, None))
    returns = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    prefix = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    text = f"{prefix}{name}({', '.join(parts)}){returns}"
    return text if len(text) <= SIGNATURE_CHARS_MAX else f"{text[:SIGNATURE_CHARS_MAX]}…"


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = each.arg if each.annotation is None else f"{each.arg}: {ast.unparse(each.annotation)}"
    if default is None:
        return text
    return f"{text}={ast.unparse(default)}" if each.annotation is None else f"{text} = {ast.unparse(default)}"


def _yields(function: _Function) -> bool:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _undefined(source: str, tree: ast.Module, known: Collection[str]) -> Sequence[Json]:
    """Return the names that the source reads and nothing binds; none where names may come from elsewhere."""
    stars = any(isinstance(part, ast.ImportFrom) and part.names[0].name == "*" for part in ast.walk(tree))
    names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    if stars or not known or names & {"exec", "globals"}:
        return []
    try:
        free = scripts.free_names(source, known)
    except SyntaxError:  # an await at the top level, which is refused elsewhere
        return []
    return [name for name in free if not name.startswith("mcp_")][:UNDEFINED_MAX]


def _tools(tree: ast.Module) -> Iterator[str]:
    """Yield `server.tool` for each upstream tool that is named in the source."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _CALLS and part.args:
            name = constant(part.args[0])
            if isinstance(name, str) and ("." in name or "__" in name):
                yield name if "." in name else name.replace("__", ".", 1)
        elif isinstance(part, ast.Attribute | ast.Subscript):
            path = _path(part)
            if path is not None and len(path) == 3 and path[0] in {"tools", "mcp_servers"}:  # noqa: PLR2004 - tools.server.tool
                yield f"{path[1]}.{path[2]}"
            elif path is not None and len(path) == 2 and path[0].startswith("mcp_") and path[0] != "mcp_servers":  # noqa: PLR2004 - mcp_server.tool
                yield f"{path[0].removeprefix('mcp_')}.{path[1]}"


def _skills(tree: ast.Module) -> Iterator[str]:
    """Yield each skill that is named in the source."""
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom) and part.module == "skills":
            yield from (alias.name for alias in part.names if alias.name != "*")
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id == "load_skill"
            and part.args
        ):
            name = constant(part.args[0])
            if isinstance(name, str):
                yield name
        elif isinstance(part, ast.Attribute | ast.Subscript):
            path = _path(part)
            if path is not None and len(path) == 2 and path[0] == "skills":  # noqa: PLR2004 - skills.name
                yield path[1].partition("@")[0]


def _path(node: ast.expr) -> list[str] | None:
    """Return `["a", "b", "c"]` of `a.b["c"]`."""
    path: list[str] = []
    while True:
        if isinstance(node, ast.Name):
            return [node.id, *reversed(path)]
        if isinstance(node, ast.Attribute):
            path.append(node.attr)
        elif isinstance(node, ast.Subscript):
            key = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            name = constant(key)
            if not isinstance(name, str):
                return None
            path.append(name)
        else:
            return None
        node = node.value


def _tests(tests: str) -> dict[str, Json]:
    """Return which test functions there are to call, and whether the tests are examples (`>>>`)."""
    if tests.lstrip().startswith(">>>"):
        return {"test_functions": [], "test_is_examples": True}
    functions: list[Json] = []
    for statement in _parse(tests).body if tests.strip() else ():
        if isinstance(statement, _Function) and statement.name.startswith("test"):
            takes = statement.args
            if not (takes.posonlyargs or takes.args or takes.kwonlyargs):
                functions.append([statement.name, isinstance(statement, ast.AsyncFunctionDef)])
    return {"test_functions": functions, "test_is_examples": False}
