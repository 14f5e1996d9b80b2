"""What a source says of a call: a tool or skill named as text, the names of its arguments, the values of literals."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final, cast

from ..job import Json
from ..skill_source.literals import UnknownValue, literal, plain
from . import hosted_tools

LITERAL_CHARS_MAX: Final = 1000
"""Longer texts, and longer lists, count as values that are known only when the program runs."""

DEPTH_MAX: Final = 20
_WHOLE_BITS_MAX: Final = 63
_VERSION_DIGITS_MAX: Final = 9


@dataclass(slots=True)
class WrittenArguments:
    """The arguments of one call as they stand in the source.

    `given` are those with a literal value, `others` the names of the others. `more` says that there may be further
    ones (`**options`), `positional` how many are passed by position.
    """

    given: dict[str, Json] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    more: bool = False
    positional: int = 0

    def add(self, name: str, value: ast.expr) -> None:
        """Take in an argument. One that is written twice is not judged."""
        if name in self.given or name in self.others:
            self.given.pop(name, None)
            self.others.add(name)
            return
        try:
            self.given[name] = judged(literal(value), DEPTH_MAX)
        except UnknownValue:
            self.others.add(name)


def written_arguments(positional: list[ast.expr], keywords: list[ast.keyword]) -> WrittenArguments:
    """Read the arguments of a call; as in a call itself, one dict by position stands for arguments by name."""
    written = WrittenArguments()
    match positional:
        case []:
            pass
        case [ast.Dict() as only]:
            _add_dict(written, only)
        case [only] if not isinstance(only, ast.Starred) and not is_plain(only):
            written.more = True  # it may be a dict
        case _:
            written.more = any(isinstance(each, ast.Starred) for each in positional)
            written.positional = 0 if written.more else len(positional)
    for keyword in keywords:
        if keyword.arg is not None:
            written.add(keyword.arg, keyword.value)
        elif isinstance(keyword.value, ast.Dict):
            _add_dict(written, keyword.value)
        else:
            written.more = True
    return written


def _add_dict(written: WrittenArguments, items: ast.Dict) -> None:
    for key, value in zip(items.keys, items.values, strict=True):
        match key:
            case ast.Constant(value=str(name)):
                written.add(name, value)
            case None if isinstance(value, ast.Dict):
                _add_dict(written, value)
            case _:
                written.more = True


def is_plain(value: ast.expr) -> bool:
    """Return whether a value is certainly not a dict."""
    return isinstance(value, ast.List | ast.Tuple | ast.JoinedStr | ast.Constant)


def judged(value: object, depth: int = 0) -> Json:
    """Return a value that may be sent, by default one without parts. Raises `UnknownValue`."""
    return plain(value, depth, length_max=LITERAL_CHARS_MAX, bits_max=_WHOLE_BITS_MAX)


def named_skill(call: ast.Call) -> str | None:
    """Return the skill that a call of `load_skill` or `call_skill` names as text."""
    given = dict(zip(("name", "version"), call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg in {"name", "version"}}
    match given.get("name"), given.get("version"):
        case ast.Constant(value=str(name)), None | ast.Constant(value=None):
            return name
        case ast.Constant(value=str(name)), ast.Constant(value=int(version)) if 0 < version < 10**_VERSION_DIGITS_MAX:
            return f"{name}@{version}"
    return None


def named_tool(call: ast.Call) -> str | None:
    """Return the tool that a call of `call_tool` names as text: by one text, or by a server's and a tool's."""
    match call.args:
        case []:
            written = {each.arg: each.value for each in call.keywords if each.arg and _is_text(each.value)}
            names = [cast("ast.Constant", written[each]).value for each in hosted_tools.named_by(written)]
            return ".".join(map(str, names)) or None
        case [ast.Constant(value=str(server)), ast.Constant(value=str(tool)), *_]:
            return f"{server}.{tool}"
        case [ast.Constant(value=str(name))] | [ast.Constant(value=str(name)), ast.Dict() | ast.Constant(value=None)]:
            return name
        case [ast.Constant(value=str(name)), _] if "." in name:
            return name
    return None


def passed(call: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return what a call of `call_tool` passes to the tool: by position and by name."""
    by_position, by_name = call.args[1:], call.keywords
    if not call.args:
        names = hosted_tools.named_by({each.arg for each in by_name if each.arg and _is_text(each.value)})
        by_name = [each for each in by_name if each.arg not in names]
    if by_position and _is_text(by_position[0]):
        by_position = by_position[1:]
    if not by_position:
        whole = next((each for each in by_name if each.arg == "arguments" and not _is_no_dict(each.value)), None)
        by_position = [] if whole is None else [whole.value]
        by_name = [each for each in by_name if each is not whole]
    if len(by_position) == 1 and _is_none(by_position[0]):
        by_position = []
    return by_position, by_name


def may_name_a_tool(call: ast.Call) -> bool:
    """Return whether the second argument of a call of `call_tool` may be the tool of a server named by the first."""
    return len(call.args) > 1 and not (_is_no_dict(call.args[1]) or isinstance(call.args[1], ast.Dict))


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is str


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_no_dict(value: ast.expr) -> bool:
    return is_plain(value) and not _is_none(value)
