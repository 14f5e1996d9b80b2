"""Writes a tool as one line of typed Python: what a model needs to call it, in about 40 tokens.

    tools.git.git_log(*, repo_path: str, max_count: int = 10, start_timestamp: str | None = None) -> str

Objects are written as their keys and types (`{"name": str, "size": NotRequired[int]}`), `= ...` stands for an argument
that may be left out. Of an object that is too long the keys stand alone (`{"name", "size"}`). After `#` come whether a
user has to approve calls (`needs approval`), the real names of arguments that Python cannot write, how texts are
written (`since is YYYY-MM-DD`), how often a return type was seen that no schema publishes, and where keys are unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from ..models import Json, Schema, Tool
from ..upstream.results import says_shape, unwrapped_schema
from .formats import formats_of
from .schemas import Parameter, parameters_of, shape_of, takes_other_arguments
from .shapes import ANY, NONE, AnyOf, Choice, ListOf, MapOf, ObjectShape, Plain, Shape, without_none

NEEDS_APPROVAL = "needs approval"
UNKNOWN = "unknown"
KEYS_UNKNOWN = "keys unknown"
"""What is shown where neither a schema nor an answer says what code gets, or which keys that has."""
_VARIES = "keys depend on the arguments"
_DEPTH_MAX = 4
_PARAMETER_CHARS_MAX = 240
_RETURN_CHARS_MAX = 400
_LINE_CHARS_MAX = 2_000
_DEFAULT_CHARS_MAX = 60
_LITERALS_MAX = 30
_LITERAL_CHARS_MAX = 300
_NAMES_SHOWN_MAX = 8
_KEYS_MAX = 12
_KEYS_DEPTH = 2


@dataclass(frozen=True, slots=True)
class LearnedShape:
    """A shape that answers were seen to have, and how many of them.

    `varies` says that keys differ with the arguments, as the columns of a query do: such objects are `MapOf`.
    """

    shape: Shape
    count: int
    varies: bool = False


def signature(tool: Tool, call: str, learned: LearnedShape | None = None, *, asks: bool = False) -> str:
    """Return the signature of a tool that code calls as `call`, such as `tools.git.git_log`.

    The return type is that of the output schema, else the learned one, else `unknown`. `asks` says that a user is asked
    before a call.
    """
    parameters = parameters_of(tool)
    returns, note = _returned(tool, learned)
    notes = [NEEDS_APPROVAL if asks else "", _renamed(parameters), *formats_of(tool), note]
    for depth in (_DEPTH_MAX, 1, 0):
        written = ", ".join(_parameter(each, depth) for each in parameters)
        if len(written) <= _LINE_CHARS_MAX:
            break
    if takes_other_arguments(tool):
        written = "**arguments: object"
    elif parameters:
        written = f"*, {written}"
    comment = "; ".join(filter(None, notes))
    return f"{call}({written}){returns}{f'  # {comment}' if comment else ''}"


def render(shape: Shape, depth: int = _DEPTH_MAX, *, keys_alone: bool = False) -> str:
    """Write a shape as a Python type; records and lists deeper than `depth` as `dict` and `list`.

    With `keys_alone` a record is written as its first keys, without what stands under them.
    """
    inner = partial(render, depth=depth - 1, keys_alone=keys_alone)
    match shape:
        case Plain(name):
            return name
        case Choice(values):
            return _literal(values)
        case ListOf(item):
            return f"list[{inner(item)}]" if depth > 0 and item != Plain("object") else "list"
        case MapOf(value):
            return f"dict[str, {inner(value)}]" if depth > 0 and value != Plain("object") else "dict"
        case ObjectShape(fields):
            if depth <= 0:
                return "dict"
            if keys_alone:
                more = [] if len(fields) <= _KEYS_MAX else ["..."]
                return f"{{{', '.join([*(_quoted(each.name) for each in fields[:_KEYS_MAX]), *more])}}}"
            written = []
            for each in fields:
                kind = inner(each.shape)
                written.append(f"{_quoted(each.name)}: {kind if each.required else f'NotRequired[{kind}]'}")
            return f"{{{', '.join(written)}}}" if written else "dict"
        case AnyOf(shapes):
            return " | ".join(dict.fromkeys(render(each, depth, keys_alone=keys_alone) for each in shapes))


def takes_text(shape: Shape) -> bool:
    """Whether a value of the shape may be a text."""
    match shape:
        case Choice(values):
            return any(kind == "str" for kind, _ in values)
        case AnyOf(shapes):
            return any(takes_text(each) for each in shapes)
        case _:
            return shape == Plain("str")


def render_within(shape: Shape, chars: int, depth: int = _DEPTH_MAX) -> str:
    """Write a shape as deep as fits into so many characters; its outermost type is always written."""
    for level in range(depth, 0, -1):
        if level == 1 < depth and len(written := render(shape, _KEYS_DEPTH, keys_alone=True)) <= chars:
            return written  # the keys of the records in a list, rather than nothing of them
        written = render(shape, level)
        if len(written) <= chars:
            return written
    return render(shape, 0)


def _parameter(parameter: Parameter, depth: int) -> str:
    kind = render_within(parameter.shape, _PARAMETER_CHARS_MAX, depth)
    written = f"{parameter.alias}: {kind}"
    if parameter.required:
        return written
    return f"{written} = {_default(parameter)}"


def _default(parameter: Parameter) -> str:
    if not parameter.has_default:
        return "..."
    if parameter.default is None and not without_none(parameter.shape)[1] and parameter.shape != Plain("object"):
        return "..."  # the schema forbids the null that it names as default: it means "left out"
    return short_literal(parameter.default, _DEFAULT_CHARS_MAX)


def short_literal(value: Json, chars: int) -> str:
    """Write a JSON value as Python in at most so many characters, or as `...`; looks at no more of it than that."""
    left, waiting = chars, [value]
    while waiting and left >= 0:
        each = waiting.pop()
        left -= len(each) if isinstance(each, str | Mapping | Sequence) else 1
        if isinstance(each, Mapping):
            waiting += itertools.chain(itertools.islice(each, chars), itertools.islice(each.values(), chars))
        elif isinstance(each, Sequence) and not isinstance(each, str):
            waiting += each[:chars]
    written = "" if left < 0 else python_literal(value)
    return written if left >= 0 and len(written) <= chars else "..."


def python_literal(value: Json) -> str:
    """Write a JSON value as Python, on one line, texts in double quotes where that needs no escapes."""
    match value:
        case str():
            return _quoted(value)
        case dict():
            return f"{{{', '.join(f'{_quoted(str(key))}: {python_literal(each)}' for key, each in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(python_literal(each) for each in value)}]"
        case float() if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN alone differs
            return f'float("{value}")'
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in text else written


def _literal(values: tuple[tuple[str, object], ...]) -> str:
    written: list[str] = []
    chars = 0
    for _, value in values:
        one = _quoted(value) if isinstance(value, str) else repr(value)
        chars += len(one) + 2
        if len(written) == _LITERALS_MAX or (written and chars > _LITERAL_CHARS_MAX):
            written.append("...")
            break
        written.append(one)
    return f"Literal[{', '.join(written)}]"


def returns(tool: Tool, learned: LearnedShape | None = None, chars: int = _RETURN_CHARS_MAX) -> str:
    """Return the type of what code gets, by the output schema, else as learned; empty where neither is known."""
    learned = unpublished(tool, learned)
    if learned is not None:
        return render_within(learned.shape, chars)
    return "" if tool.output_schema is None else render_within(returned_shape(tool.output_schema), chars)


def unpublished(tool: Tool, learned: LearnedShape | None) -> LearnedShape | None:
    """Return what was learned of a tool, or None where its server publishes more than `dict` or `list`."""
    return None if says_shape(tool.output_schema) else learned


def returns_with_doubt(tool: Tool, learned: LearnedShape | None, chars: int) -> str:
    """Return what `returns` does, and after it what one answer alone, or other arguments, leave in doubt."""
    written = returns(tool, learned, chars)
    learned = unpublished(tool, learned)
    if learned is None:
        known = tool.output_schema is None or says_keys(returned_shape(tool.output_schema))
        return written if known else f"{written} ({KEYS_UNKNOWN})"
    if learned.varies:
        return f"{written} ({_VARIES})"
    seen_once = learned.count == 1 and _has_keys(learned.shape) and parameters_of(tool)
    return f"{written} (seen once)" if seen_once else written


def _returned(tool: Tool, learned: LearnedShape | None) -> tuple[str, str]:
    """Return the return type as it stands in a signature, and the note on it."""
    written = returns(tool, learned)
    learned = unpublished(tool, learned)
    if learned is None:
        if not written:
            return f" -> {UNKNOWN}", ""
        known = tool.output_schema is not None and says_keys(returned_shape(tool.output_schema))
        return f" -> {written}", "" if known else KEYS_UNKNOWN
    seen = f"returns as seen in {learned.count} answer{'s' * (learned.count != 1)}"
    return f" -> {written}", f"{seen}; {_VARIES}" if learned.varies else seen


def tells_returns(signature: str) -> bool:
    """Return whether a signature, or a return type, says what code gets."""
    return KEYS_UNKNOWN not in signature and f" -> {UNKNOWN}" not in signature


def says_keys(shape: Shape) -> bool:
    """Return whether code can be written for values of a shape: `dict`, `list` and `object` alone say no keys."""
    match shape:
        case MapOf(value):
            return value != ANY
        case ListOf(item):
            return says_keys(item)
        case AnyOf(shapes):
            return any(says_keys(each) for each in shapes if each != NONE)
        case ObjectShape(fields):
            return bool(fields)
        case _:
            return shape != ANY


def _has_keys(shape: Shape) -> bool:
    match shape:
        case ListOf(inner) | MapOf(inner):
            return _has_keys(inner)
        case AnyOf(shapes):
            return any(_has_keys(each) for each in shapes)
        case _:
            return isinstance(shape, ObjectShape)


def returned_shape(output_schema: Schema) -> Shape:
    """Return the shape of what code gets: where a schema only wraps a value, the value itself."""
    if not isinstance(output_schema, Mapping):
        return shape_of(output_schema)
    return shape_of(cast("Schema", unwrapped_schema(output_schema)))


def _renamed(parameters: tuple[Parameter, ...]) -> str:
    renamed = [each for each in parameters if each.alias != each.name]
    shown = ", ".join(f"{each.alias} is {_quoted(each.name)}" for each in renamed[:_NAMES_SHOWN_MAX])
    return shown + (f" and {len(renamed) - _NAMES_SHOWN_MAX} more" if len(renamed) > _NAMES_SHOWN_MAX else "")
