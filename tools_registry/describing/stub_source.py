"""Writes the source of typed stubs: one module for a tool, the barrel of a server, and how both reach the tool.

What servers say goes into docstrings and string literals alone, escaped; no text of theirs is ever code.
"""

from __future__ import annotations

import json
import keyword
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..models import Tool
from ..names import identifier
from .schemas import Parameter, parameters_of, takes_other_arguments
from .shapes import AnyOf, Choice, ListOf, MapOf, ObjectShape, Plain, RecordField, Shape, without_none
from .signatures import NEEDS_APPROVAL, LearnedShape, python_literal, returned_shape, unpublished

RESERVED = frozenset(
    {"Any", "Literal", "NotRequired", "TypedDict", "TypeAlias"}
    | {"annotations", "bool", "dict", "float", "int", "list", "object", "str", "type"}
)
"""Names that the source needs for types: a function of such a name gets an underscore after it."""

_OF_PYDANTIC = frozenset({"BaseModel", "ConfigDict", "Field", "TypeAdapter"})
_OF_BASE_MODEL = frozenset(
    {"construct", "copy", "dict", "fields", "from_orm", "json", "parse_file", "parse_obj", "parse_raw", "schema"}
    | {"schema_json", "update_forward_refs", "validate"}
)
_DOC_WIDTH = 100
_LITERALS_MAX = 200


@dataclass(frozen=True, slots=True)
class StubModule:
    """The source of one tool's module, and the names it offers: the function first."""

    source: str
    names: tuple[str, ...]


def function_name(alias: str) -> str:
    """Return the name of a tool's function: the one it has in code, but for names that types need."""
    return f"{alias}_" if alias in RESERVED or keyword.issoftkeyword(alias) else alias


class Style(StrEnum):
    """What the models of stubs are: `TypedDict`s, which cost nothing, or Pydantic's, which check what they hold."""

    TYPEDDICT = "typeddict"
    PYDANTIC = "pydantic"


def tool_module(
    tool: Tool, alias: str, learned: LearnedShape | None, *, asks: bool = False, style: Style = Style.TYPEDDICT
) -> StubModule:
    """Return the module of a tool: its input model, its output type where one is known, and the function.

    `asks` says that a user is asked before a call.
    """
    return _Source(tool, function_name(alias), learned, asks, style).module()


def barrel(title: str, exports: Mapping[str, Sequence[str]]) -> str:
    """Return an `__init__` that offers the names of modules, given as `{module: names}`; none twice."""
    taken: set[str] = set()
    lines = [_docstring(title), "", "from __future__ import annotations", ""]
    for module, names in exports.items():
        fresh = [name for name in names if name not in taken]
        taken.update(fresh)
        lines += [f"from .{module} import {name} as {name}" for name in fresh]
    lines += ["", _lines("__all__ = [", [json.dumps(name) for name in sorted(taken)], "]", 0), ""]
    return "\n".join(lines)


def root(servers: Sequence[str]) -> str:
    """Return the `__init__` of the folder: the packages of the servers by name, none imported before it is used."""
    text = "Upstream MCP tools as typed functions: a package per server.\n\n" + "\n".join(
        f"- {each}" for each in servers
    )
    return f"{_docstring(text)}\n"


CALL = '''"""How the functions of this package reach their tools.

Without more, a call goes through sealab as it is configured for this user: its servers, its policy, its time limits.
`use(caller)` sends calls elsewhere, such as to a server of your own or to a test's.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

Caller = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Takes the tool as "server.tool" and its arguments, and returns what it answered."""

_chosen: list[Caller] = []


def use(caller: Caller | None) -> None:
    """Send every call of this package to `caller`; None is sealab again."""
    _chosen[:] = [] if caller is None else [caller]


async def call_tool(name: str, given: dict[str, Any], may_lack: tuple[str, ...] = ()) -> Any:
    """Call a tool; arguments named in `may_lack` are left out where they are None."""
    arguments = {key: value for key, value in given.items() if value is not None or key not in may_lack}
    if _chosen:
        return await _chosen[0](name, arguments)
    sealab = cast("Any", importlib.import_module("sealab.server.use_cases.upstream_tools.tool_client"))
    return await sealab.call_tool(name, arguments)
'''


@dataclass(slots=True)
class _Source:
    """The parts of one module while they are collected."""

    tool: Tool
    name: str
    learned: LearnedShape | None
    asks: bool
    style: Style
    classes: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)

    def module(self) -> StubModule:
        title = "".join(part[:1].upper() + part[1:] for part in self.name.split("_"))
        parameters = parameters_of(self.tool)
        self.taken |= {self.name, *_OF_PYDANTIC}
        model = self._model(
            f"{title}Input",
            ObjectShape(tuple(RecordField(each.name, each.shape, each.required) for each in parameters)),
            f"The arguments of {self.tool.name}.",
        )
        output = self._output(f"{title}Output")
        function = self._function(parameters, model, output)
        names = [self.name, model, *([output] if output.endswith("Output") else [])]
        about = _docstring(
            f"{self.tool.title or self.tool.name}, a tool of the MCP server {self.tool.server}.\n\n{self._origin()}"
        )
        typing, pydantic = sorted(self.imports - _OF_PYDANTIC), sorted(self.imports & _OF_PYDANTIC)
        imports = f"\nfrom typing import {', '.join(typing)}\n" if typing else ""
        imports += f"\nfrom pydantic import {', '.join(pydantic)}\n" if pydantic else ""
        body = "\n\n\n".join([*self.classes, function])
        head = f"{about}\n\nfrom __future__ import annotations\n{imports}\nfrom ._call import call_tool as _call_tool"
        return StubModule(f"{head}\n\n\n{body}\n", tuple(names))

    def _origin(self) -> str:
        learned = unpublished(self.tool, self.learned)
        if learned is not None:
            return f"What it returns is as seen in {learned.count} answers; its server does not say."
        if self.tool.output_schema is not None:
            return "What it returns is as its server publishes it."
        return "Its server does not say what it returns."

    def _output(self, wanted: str) -> str:
        """Return the type that the function returns, defined as `wanted` where there is more to say than its name."""
        learned = unpublished(self.tool, self.learned)
        if learned is not None:
            shape = learned.shape
        elif self.tool.output_schema is not None:
            shape = returned_shape(self.tool.output_schema)
        else:
            return self._typed(Plain("object"), wanted)
        if isinstance(shape, ObjectShape) and shape.fields:
            return self._model(wanted, shape, f"What {self.tool.name} returns.")
        written = self._typed(shape, f"{wanted}Item")
        if isinstance(shape, Plain | MapOf) and "[" not in written:
            return written
        self.imports.add("TypeAlias")
        self.classes.append(f"{wanted}: TypeAlias = {json.dumps(written)}")
        return wanted

    def _function(self, parameters: tuple[Parameter, ...], model: str, output: str) -> str:
        signed = [self._parameter(each) for each in parameters]
        others = takes_other_arguments(self.tool)
        if others:
            self.imports.add("Any")
        takes = ["**arguments: Any"] if others else ["*", *signed] if signed else []
        given = _lines("{", [f"{_text(each.name)}: {each.alias}" for each in parameters], "}", 8)
        lacking = [_text(each.name) for each in parameters if not each.required and _default(each) == "None"]
        given = "arguments" if others else given
        checks = self.style is Style.PYDANTIC
        if checks:
            checked, given = given, '_given.model_dump(mode="json", by_alias=True, exclude_unset=True)'
        handed = [_text(self.tool.full_name), given]
        handed += [_lines("(", [*lacking, ""] if len(lacking) == 1 else lacking, ")", 8)] if lacking else []
        call = _lines("await _call_tool(", handed, ")", 4)
        body = f"return {call}" if output == "Any" else f"_answer: {output} = {call}\n    return _answer"
        if checks:
            self.imports.add("TypeAdapter")
            body = f"_given = {model}.model_validate({checked})\n    _answer = {call}\n    "
            body += f"return TypeAdapter[{output}]({output}).validate_python(_answer)"
        about = textwrap.indent(_docstring(self._about(parameters)), "    ").lstrip()
        return f"{_lines(f'async def {self.name}(', takes, f') -> {output}:', 0)}\n    {about}\n    {body}"

    def _about(self, parameters: tuple[Parameter, ...]) -> str:
        parts = [self.tool.description or f"Call {self.tool.name}."]
        described = [f"{each.alias}: {' '.join(each.description.split())}" for each in parameters if each.description]
        renamed = [f"{each.alias} stands for {each.name}." for each in parameters if each.alias != each.name]
        if self.asks:
            parts.append(f"A call {NEEDS_APPROVAL}.")
        if described:
            parts.append("Args:\n" + "\n".join(textwrap.indent(_wrapped(each), "    ") for each in described))
        if renamed:
            parts.append("\n".join(renamed))
        return "\n\n".join(parts)

    def _parameter(self, parameter: Parameter) -> str:
        kind = self._typed(parameter.shape, self._title(parameter.name))
        if parameter.required:
            return f"{parameter.alias}: {kind}"
        default = _default(parameter)
        if default == "None" and kind != "Any" and not without_none(parameter.shape)[1]:
            kind = f"{kind} | None"
        return f"{parameter.alias}: {kind} = {default}"

    def _title(self, name: str) -> str:
        clean = identifier(name)
        return "".join(part[:1].upper() + part[1:] for part in clean.split("_")) or "Value"

    def _model(self, wanted: str, record: ObjectShape, about: str) -> str:
        """Define a model and return its name; equal ones of one wanted name are defined once."""
        fields = []
        for each in record.fields:
            kind = self._typed(each.shape, f"{wanted}{self._title(each.name)}" if len(wanted) < 80 else wanted)  # noqa: PLR2004 - deep models end with readable names
            fields.append((each.name, kind, each.required))
        name = wanted
        number = 2
        while name in self.taken:
            name = f"{wanted}{number}"
            number += 1
        self.taken.add(name)
        define = self._base_model if self.style is Style.PYDANTIC else self._typed_dict
        self.classes.append(define(name, fields, about))
        return name

    def _base_model(self, name: str, fields: Sequence[tuple[str, str, bool]], about: str) -> str:
        """Return a Pydantic model; a key that cannot be an attribute of one is the alias of another."""
        self.imports |= {"BaseModel", "ConfigDict"}
        lines = [f"class {name}(BaseModel):", f"    {_docstring(about)}", ""]
        lines.append('    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())')
        lines += [""] if fields else []
        taken: set[str] = set()
        for key, kind, required in fields:
            attribute = _attribute(key, taken)
            hint = kind if required or kind == "Any" else f"{kind} | None"
            if attribute != key:
                self.imports.add("Field")
                default = "..." if required else "None"
                lines.append(f"    {attribute}: {hint} = Field({default}, alias={_text(key)})")
            else:
                lines.append(f"    {attribute}: {hint}{'' if required else ' = None'}")
        return "\n".join(lines)

    def _typed_dict(self, name: str, given: Sequence[tuple[str, str, bool]], about: str) -> str:
        if not all(required for _, _, required in given):
            self.imports.add("NotRequired")
        self.imports.add("TypedDict")
        fields = [(key, kind if required else f"NotRequired[{kind}]") for key, kind, required in given]
        plain = all(key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("__") for key, _ in fields)
        if plain and not any(key in RESERVED for key, _ in fields):
            lines = [f"class {name}(TypedDict):", f"    {_docstring(about)}"]
            lines += ["", *(f"    {key}: {kind}" for key, kind in fields)] if fields else []
            return "\n".join(lines)
        pairs = ", ".join(f"{_text(key)}: {json.dumps(kind)}" for key, kind in fields)
        return f"{name} = TypedDict({_text(name)}, {{{pairs}}})\n{_docstring(about)}"

    def _typed(self, shape: Shape, wanted: str) -> str:
        match shape:
            case Plain("object" | "Never"):
                self.imports.add("Any")
                return "Any"
            case Plain(name):
                return name
            case Choice(values):
                if len(values) > _LITERALS_MAX:
                    return " | ".join(sorted({kind for kind, _ in values}))
                self.imports.add("Literal")
                return (
                    f"Literal[{', '.join(_text(each) if isinstance(each, str) else repr(each) for _, each in values)}]"
                )
            case ListOf(item):
                return f"list[{self._typed(item, wanted)}]"
            case MapOf(value):
                return f"dict[str, {self._typed(value, wanted)}]"
            case ObjectShape(fields):
                return self._nested(shape, wanted) if fields else self._typed(MapOf(Plain("object")), wanted)
            case AnyOf(shapes):
                return " | ".join(dict.fromkeys(self._typed(each, wanted) for each in shapes))

    def _nested(self, record: ObjectShape, wanted: str) -> str:
        known = self._models.get(record)
        if known is None:
            known = self._models[record] = self._model(wanted, record, "Part of it.")
        return known

    _models: dict[ObjectShape, str] = field(default_factory=dict)


def _attribute(key: str, taken: set[str]) -> str:
    """Return the attribute of a model for a key: the key itself where a model may have such one."""
    plain = identifier(key).strip("_") or "value"
    name = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"value_{plain}"
    while name in taken or name in RESERVED or name in _OF_BASE_MODEL or name.startswith("model_"):
        name = f"{name}_"
    taken.add(name)
    return name


def _default(parameter: Parameter) -> str:
    """Return the default in the function's signature; None stands for leaving the argument out."""
    value = parameter.default
    if not parameter.has_default or isinstance(value, Mapping | list) or not _accepts(parameter.shape, value):
        return "None"
    return python_literal(value)


def _accepts(shape: Shape, value: object) -> bool:
    """Whether a type checker takes the literal of a value for a shape."""
    match shape:
        case Plain("object"):
            return True
        case Plain("float"):
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        case Plain(name):
            return type(value).__name__ == name or (name == "None" and value is None)
        case Choice(values):
            return (type(value).__name__, value) in values
        case AnyOf(shapes):
            return any(_accepts(each, value) for each in shapes)
        case _:
            return False


def _lines(start: str, parts: Sequence[str], end: str, indent: int) -> str:
    """Put parts between brackets on one line, or each on its own where they are long."""
    one = f"{start}{', '.join(parts).rstrip(' ')}{end}"
    if indent + len(one) <= _DOC_WIDTH and "\n" not in one:
        return one
    inner = "".join(f"{' ' * (indent + 4)}{part},\n" for part in parts if part)
    return f"{start}\n{inner}{' ' * indent}{end}"


def _text(value: str) -> str:
    """Write a text as a Python literal of ASCII printables and letters, on one line."""
    return python_literal(value)


def _docstring(text: str) -> str:
    """Write a docstring; what would end it, or cannot stand in a file, is escaped."""
    plain = "".join(each if each.isprintable() or each == "\n" else " " for each in text.replace("\t", "    "))
    wrapped = "\n".join(_wrapped(line) for line in plain.strip().splitlines())
    escaped = wrapped.replace("\\", "\\\\")
    if '""' in escaped or escaped.endswith('"'):
        escaped = escaped.replace('"', '\\"')
    end = "\n" if "\n" in escaped else ""
    return f'"""{escaped}{end}"""'


def _wrapped(line: str) -> str:
    if len(line) <= _DOC_WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, _DOC_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
