"""Security boundary: reads YAML as the values that JSON has, in steps.

PyYAML's own loader, which is written in C, holds the interpreter for as long as it composes a whole text, and has a
stack. Its events come one by one. A few lines of aliases can stand for more values than a machine can hold: each value
that an alias stands for counts. Source: YAML 1.2.2, chapter 10.3, the core schema: `on`, `no` and dates are texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, cast

from .errors import DefinitionRefused

if TYPE_CHECKING:
    import yaml

DEPTH_MAX: Final = 100
VALUES_MAX: Final = 2_000_000

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(f"{_TAG}{name}" for name in ("bool", "float", "int", "null", "str"))
_EVENTS_PER_CHECK = 200
_NO_KEY = object()
_MERGE = object()


class _Loader(Protocol):
    """What is used of PyYAML's loaders, which are not typed."""

    yaml_constructors: Mapping[str, Callable[[_Loader, yaml.ScalarNode], object]]

    def __call__(self, data: bytes, /) -> _Loader: ...

    def check_event(self) -> bool: ...

    def get_event(self) -> yaml.Event: ...

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool], /) -> str: ...

    def dispose(self) -> None: ...


def read_yaml(data: bytes, check: Callable[[], None] = lambda: None) -> object:
    """Return what a text holds. Raises `DefinitionRefused`, whose text says what is wrong with "it".

    `check` is called between steps, and may raise.
    """
    import yaml

    try:
        loader = _loader()(data)
        try:
            return _EventReader(loader, check).document()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = "" if where is None else f" in line {where.line + 1}"
        what = getattr(error, "problem", None) or "it cannot be parsed"
        raise DefinitionRefused(f"it is not valid YAML: {what}{line}. Correct that.") from None


@dataclass(slots=True)
class _OpenCollection:
    """A list or an object that is being read, and how many values it has so far."""

    value: list[object] | dict[Hashable, object]
    anchor: str | None
    merged: dict[Hashable, object] = field(default_factory=dict)
    key: Hashable = _NO_KEY
    count: int = 1


class _EventReader:
    """Reads the events of one text."""

    def __init__(self, loader: _Loader, check: Callable[[], None]) -> None:
        self._loader = loader
        self._check = check
        self._known: dict[str, tuple[object, int]] = {}
        self._open: list[_OpenCollection] = []
        self._result: list[object] = []

    def document(self) -> object:
        import yaml

        number = 0
        while self._loader.check_event():
            event = self._loader.get_event()
            number += 1
            if number % _EVENTS_PER_CHECK == 0:
                self._check()
            match event:
                case yaml.ScalarEvent():
                    self._take(self._scalar(event), 1, event.anchor)
                case yaml.AliasEvent():
                    if event.anchor not in self._known:
                        raise self._wrong(
                            event, f"its alias {str(event.anchor)[:40]!r} stands for nothing that is complete"
                        )
                    self._take(*self._known[event.anchor])
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._begin(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
                case yaml.CollectionEndEvent():
                    self._end()
                case yaml.DocumentStartEvent() if self._result:
                    raise self._wrong(event, "it is more than one document")
        return self._result[0] if self._result else None

    def _begin(self, event: yaml.CollectionStartEvent, empty: list[object] | dict[Hashable, object]) -> None:
        if event.tag not in {None, "!", f"{_TAG}map", f"{_TAG}seq"}:
            raise self._wrong(event, f"its tag {event.tag[:40]!r} means nothing here")
        if len(self._open) >= DEPTH_MAX:
            raise DefinitionRefused(f"it is nested deeper than {DEPTH_MAX} levels. Make it flatter.")
        self._open.append(_OpenCollection(empty, event.anchor))

    def _end(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            done.value = {**done.merged, **done.value}
        self._take(done.value, done.count, done.anchor)

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        import yaml

        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == f"{_TAG}merge" and self._open and self._open[-1].key is _NO_KEY:
            return _MERGE
        if tag in {f"{_TAG}merge", f"{_TAG}value"}:
            return event.value
        if tag == f"{_TAG}str":
            return event.value
        if tag not in _SCALARS:
            raise self._wrong(event, f"its tag {tag[:40]!r} means nothing here")
        # Not by `construct_object`, which keeps every node.
        return self._loader.yaml_constructors[tag](self._loader, yaml.ScalarNode(tag, event.value))

    def _take(self, value: object, count: int, anchor: str | None = None) -> None:
        """Put a value where it belongs."""
        if anchor is not None:
            self._known[anchor] = value, count
        if not self._open:
            self._result.append(value)
            return
        around = self._open[-1]
        around.count += count
        if around.count > VALUES_MAX:
            raise DefinitionRefused(f"its aliases stand for more than {VALUES_MAX:,} values. Write fewer.")
        if isinstance(around.value, list):
            around.value.append("<<" if value is _MERGE else value)
        elif around.key is _NO_KEY:
            if not isinstance(value, Hashable):
                raise DefinitionRefused("it has a key that is a list or an object. Give texts as keys.")
            around.key = value
        elif around.key is _MERGE:
            self._merge(around, value)
        else:
            around.value[around.key] = value
            around.key = _NO_KEY

    def _merge(self, around: _OpenCollection, value: object) -> None:
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise DefinitionRefused("it merges (<<) what is not an object. Merge an alias of one.")
            around.merged = {**each, **around.merged}
        around.key = _NO_KEY

    def _wrong(self, event: yaml.Event, what: str) -> DefinitionRefused:
        mark = event.start_mark
        line = "" if mark is None else f" in line {mark.line + 1}"
        return DefinitionRefused(f"it is not valid YAML: {what}{line}. Correct that.")


@cache
def _loader() -> _Loader:
    import yaml

    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(fast):  # type: ignore[misc, valid-type]  # which of the two it is, is known at run time
        yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own name and shape
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
            for first, resolvers in fast.yaml_implicit_resolvers.items()
        }

    Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF")
    return cast("_Loader", Loader)
