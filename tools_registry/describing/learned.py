"""Learns what tools return from real answers, where servers publish no output schema: shapes, never values.

Keys are kept as long as they look like the fields of a record. Keys that are data (identifiers, dates, paths,
addresses, or simply very many) become `dict[str, …]`, so that nothing of what an answer said is kept or shown. So do
keys that depend on the arguments, as the columns of a query do: those that stand in the text of an argument, and those
of which two answers have less than half in common.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..kept import KeptText, kept_at
from .shapes import ANY, NEVER, AnyOf, ListOf, MapOf, ObjectShape, RecordField, Shape, merged, of_scalar, to_json, union
from .shapes import from_json as shape_from_json
from .signatures import LearnedShape

_LOG = logging.getLogger(__name__)
_DEPTH_MAX = 6
_ITEMS_SEEN = 30
_VALUES_SEEN_MAX = 1_000
_FIELDS_MAX = 60
_FIELDS_ALIKE_MAX = 12
_NODES_MAX = 300
NODES_TOGETHER_MAX = 100_000
"""Parts of the shapes of all tools; those of the tools that were called last are kept."""
FILE_BYTES_MAX = 32 * 1024 * 1024
_TOOLS_MAX = 5_000
_COUNT_MAX = 1_000_000
_ARGUMENT_CHARS_MAX = 20_000
_WORD = re.compile(r"\w+")
_FIELD_NAME = re.compile(r"[A-Za-z_@$][A-Za-z_$:-]{0,39}(?:\d{1,3})?[A-Za-z_]{0,20}")


class LearnedTypes:
    """The shapes of answers by tool, kept in one text; any number of servers may share it.

    Threads may call it. `observe` touches memory alone; `save` and `refresh` do not, so call them in a thread.
    """

    def __init__(self, place: Path | KeptText) -> None:
        self._kept = kept_at(place)
        self._lock = threading.Lock()
        """For what is in memory: never held while something is read or written, since the event loop takes it."""
        self._storing = threading.Lock()
        self._known = _read(self._kept)
        self._pending: dict[str, LearnedShape] = {}
        self._pending_nodes = 0
        self._on_way: dict[str, LearnedShape] = {}
        """What is being saved."""

    def observe(self, full_name: str, value: object, arguments: Mapping[str, object] | None = None) -> None:
        """Take the shape of one more answer of a tool: of its structured content, parsed JSON or text.

        Of the `arguments` nothing is kept: an answer's keys that stand in their texts are not learned.
        """
        shape = observed(value)
        words = _words_of(arguments) if arguments else frozenset()
        fixed = _without_named(shape, words) if words else shape
        with self._lock:
            self._add(full_name, LearnedShape(fixed, 1, varies=fixed is not shape))

    def get(self, full_name: str) -> LearnedShape | None:
        """Return what was learned of a tool, if anything."""
        with self._lock:
            parts = [each.get(full_name) for each in (self._known, self._on_way, self._pending)]
        found = None
        for each in parts:
            if each is not None:
                found = each if found is None else _together(found, each)
        return found

    def forget(self, server: str) -> None:
        """Drop what was learned of a server's tools."""
        with self._storing:
            with self._kept.editing() as draft:
                found = _parsed(draft.data, self._kept.where)
                known = {name: each for name, each in found.items() if not name.startswith(f"{server}.")}
                draft.data = _written(known)
            with self._lock:
                pending, self._pending, self._pending_nodes = self._pending, {}, 0
                for name, each in pending.items():
                    if not name.startswith(f"{server}."):
                        self._add(name, each)
                self._known = known

    @property
    def has_unsaved(self) -> bool:
        """Whether something was observed that is not saved."""
        return bool(self._pending or self._on_way)

    def refresh(self) -> None:
        """Take what others have saved."""
        with self._storing:
            known = _read(self._kept)
            with self._lock:
                self._known = known

    def save(self) -> None:
        """Add what was observed to what the file holds by now. Where it cannot be written, it stays in memory alone."""
        with self._storing:
            with self._lock:
                observed_now, self._pending, self._pending_nodes = self._pending, {}, 0
                self._on_way = observed_now
            if not observed_now:
                return
            saved: dict[str, LearnedShape] | None = None
            try:
                with self._kept.editing() as draft:
                    known = _parsed(draft.data, self._kept.where)
                    for name, each in observed_now.items():
                        # The newest stand last; beyond the bound the oldest go.
                        known[name] = _together(known.pop(name, None), each)
                    known = _newest(known)
                    draft.data = _written(known)
                saved = known
            except OSError as error:
                _LOG.warning("What tools return is not kept for the next session: %s.", error)
            finally:
                with self._lock:
                    self._on_way = {}
                    if saved is not None:
                        self._known = saved
                    else:
                        later, self._pending, self._pending_nodes = self._pending, {}, 0
                        for name, each in (*observed_now.items(), *later.items()):
                            self._add(name, each)

    def _add(self, full_name: str, learned: LearnedShape) -> None:
        """Add to what is not saved, under the lock; beyond the bound, what was called the longest ago goes."""
        before = self._pending.pop(full_name, None)
        after = _together(before, learned)
        self._pending[full_name] = after
        self._pending_nodes += _nodes(after.shape) - (0 if before is None else _nodes(before.shape))
        while self._pending_nodes > NODES_TOGETHER_MAX:
            oldest = self._pending.pop(next(iter(self._pending)))
            self._pending_nodes -= _nodes(oldest.shape)


def _written(known: Mapping[str, LearnedShape]) -> bytes:
    content = {
        name: {"count": each.count, "shape": to_json(each.shape), **({"varies": True} if each.varies else {})}
        for name, each in known.items()
    }
    return json.dumps(content, ensure_ascii=False).encode()


def observed(value: object) -> Shape:
    """Return the shape of one answer, in bounded time: of long lists a sample, of what lies deep or far on nothing."""
    return settled(_Traversal().at(value, _DEPTH_MAX))


@dataclass(slots=True)
class _Traversal:
    """One look at an answer, which ends when it has seen enough."""

    left: int = _VALUES_SEEN_MAX

    def at(self, value: object, depth: int) -> Shape:
        self.left -= 1
        match value:
            case Mapping():
                return self._object(value, depth)
            case list() | tuple():
                return self._list(value, depth)
            case _:
                return of_scalar(value)

    def _object(self, value: Mapping[object, object], depth: int) -> Shape:
        if depth <= 0 or self.left <= 0:
            return MapOf(ANY)
        if len(value) > _FIELDS_MAX:
            return MapOf(_all(self.at(each, depth - 1) for each in islice(value.values(), _ITEMS_SEEN)))
        return ObjectShape(tuple(RecordField(str(key), self.at(each, depth - 1), True) for key, each in value.items()))

    def _list(self, value: Sequence[object], depth: int) -> Shape:
        if not value:
            return ListOf(NEVER)
        if depth <= 0 or self.left <= 0:
            return ListOf(ANY)
        sample = value if len(value) <= _ITEMS_SEEN else [*value[: _ITEMS_SEEN - 1], value[-1]]
        return ListOf(_all(self.at(each, depth - 1) for each in sample if self.left > 0))


def settled(shape: Shape) -> Shape:
    """Return a shape in which no key is kept that is data."""
    match shape:
        case ObjectShape(fields):
            kept = tuple(RecordField(each.name, settled(each.shape), each.required) for each in fields)
            return MapOf(_all(each.shape for each in kept)) if _are_data(kept) else ObjectShape(kept)
        case ListOf(item):
            return ListOf(settled(item))
        case MapOf(value):
            return MapOf(settled(value))
        case AnyOf(shapes):
            return union(settled(each) for each in shapes)
        case _:
            return shape


def _are_data(fields: tuple[RecordField, ...]) -> bool:
    if len(fields) > _FIELDS_MAX or not all(_FIELD_NAME.fullmatch(each.name) for each in fields):
        return True
    alike = len({each.shape for each in fields}) == 1
    return alike and (
        len(fields) > _FIELDS_ALIKE_MAX or (len(fields) > 3 and not any(each.required for each in fields))  # noqa: PLR2004 - few optional fields are common in records
    )


def _all(shapes: Iterable[Shape]) -> Shape:
    result: Shape = NEVER
    for shape in dict.fromkeys(shapes):
        result = merged(result, shape)
    return result


def _together(first: LearnedShape | None, second: LearnedShape) -> LearnedShape:
    if first is None:
        return LearnedShape(_small(second.shape), second.count, second.varies)
    count, varies = min(first.count + second.count, _COUNT_MAX), first.varies or second.varies
    if first.shape == second.shape:
        return LearnedShape(second.shape, count, varies)
    alike = _without_differing(first.shape, second.shape)
    shape = _small(settled(merged(alike, second.shape)))
    return LearnedShape(shape, count, varies or alike is not first.shape)


def _small(shape: Shape) -> Shape:
    """Return a shape without what lies too deep in it, where it has more than `_NODES_MAX` parts."""
    depth = _DEPTH_MAX
    while depth > 0 and _nodes(shape) > _NODES_MAX:
        depth -= 1
        shape = _cut(shape, depth)
    return shape


def _newest(known: Mapping[str, LearnedShape]) -> dict[str, LearnedShape]:
    """Return what is kept of all tools, the newest of which stand last."""
    left = NODES_TOGETHER_MAX
    kept: list[tuple[str, LearnedShape]] = []
    for name, each in reversed(list(known.items())):
        left -= _nodes(each.shape)
        if left < 0 or len(kept) >= _TOOLS_MAX:
            break
        kept.append((name, each))
    return dict(reversed(kept))


def _words_of(arguments: object) -> frozenset[str]:
    """Return the words of the texts within some arguments: of their first `_ARGUMENT_CHARS_MAX` characters."""
    words: set[str] = set()
    left, waiting = _ARGUMENT_CHARS_MAX, [arguments]
    while waiting and left > 0:
        match waiting.pop():
            case str(text):
                words.update(_WORD.findall(text[:left]))
                left -= len(text)
            case Mapping() as inner:
                waiting += islice(inner.values(), _ITEMS_SEEN)
                left -= 1
            case list() | tuple() as inner:
                waiting += islice(inner, _ITEMS_SEEN)
                left -= 1
    return frozenset(words)


def _without_named(shape: Shape, words: frozenset[str]) -> Shape:
    """Return a shape without the keys of records most of whose keys are among `words`; itself where there are none."""
    return _rewritten(shape, lambda record: 2 * sum(each.name in words for each in record.fields) > len(record.fields))


def _without_differing(one: Shape, other: Shape) -> Shape:
    """Return a shape without the keys of records that have other keys in the `other` shape; itself without such ones.

    Keys differ where neither answer has all that the other has, and less than half of all in common: what one may lack
    is optional.
    """
    match one, other:
        case (ObjectShape(), ObjectShape()):
            mine, theirs = {each.name for each in one.fields}, {each.name: each.shape for each in other.fields}
            common = mine & theirs.keys()
            if common not in (mine, theirs.keys()) and 2 * len(common) < len(mine | theirs.keys()):
                return MapOf(_all(each.shape for each in one.fields))
            pairs = [(each, _without_differing(each.shape, theirs.get(each.name, NEVER))) for each in one.fields]
            if all(shape is each.shape for each, shape in pairs):
                return one
            return ObjectShape(tuple(RecordField(each.name, shape, each.required) for each, shape in pairs))
        case (ListOf(mine_), ListOf(theirs_)):
            item = _without_differing(mine_, theirs_)
            return one if item is mine_ else ListOf(item)
        case (MapOf(mine_), MapOf(theirs_)):
            value = _without_differing(mine_, theirs_)
            return one if value is mine_ else MapOf(value)
        case (AnyOf(shapes), _):
            return _each(one, shapes, lambda each: _without_differing(each, other))
        case (_, AnyOf(shapes)):
            for each in shapes:
                one = _without_differing(one, each)
            return one
        case _:
            return one


def _rewritten(shape: Shape, chosen: Callable[[ObjectShape], bool]) -> Shape:
    """Return a shape with each record that is `chosen` as an object of any keys; itself where there is none."""
    match shape:
        case ObjectShape(fields):
            inner = tuple(RecordField(each.name, _rewritten(each.shape, chosen), each.required) for each in fields)
            if fields and chosen(shape):
                return MapOf(_all(each.shape for each in inner))
            return (
                shape
                if all(new.shape is old.shape for new, old in zip(inner, fields, strict=True))
                else ObjectShape(inner)
            )
        case ListOf(item):
            new = _rewritten(item, chosen)
            return shape if new is item else ListOf(new)
        case MapOf(value):
            new = _rewritten(value, chosen)
            return shape if new is value else MapOf(new)
        case AnyOf(shapes):
            return _each(shape, shapes, lambda each: _rewritten(each, chosen))
        case _:
            return shape


def _each(shape: Shape, alternatives: tuple[Shape, ...], change: Callable[[Shape], Shape]) -> Shape:
    changed = [change(each) for each in alternatives]
    return shape if all(new is old for new, old in zip(changed, alternatives, strict=True)) else union(changed)


def _nodes(shape: Shape) -> int:
    match shape:
        case ObjectShape(fields):
            return 1 + sum(_nodes(each.shape) for each in fields)
        case ListOf(inner) | MapOf(inner):
            return 1 + _nodes(inner)
        case AnyOf(shapes):
            return sum(_nodes(each) for each in shapes)
        case _:
            return 1


def _cut(shape: Shape, depth: int) -> Shape:
    match shape:
        case ObjectShape(fields):
            if depth <= 0:
                return MapOf(ANY)
            return ObjectShape(
                tuple(RecordField(each.name, _cut(each.shape, depth - 1), each.required) for each in fields)
            )
        case ListOf(item):
            return ListOf(_cut(item, depth - 1) if depth > 0 else ANY)
        case MapOf(value):
            return MapOf(_cut(value, depth - 1) if depth > 0 else ANY)
        case AnyOf(shapes):
            return union(_cut(each, depth) for each in shapes)
        case _:
            return shape


def _read(kept: KeptText) -> dict[str, LearnedShape]:
    try:
        return _parsed(kept.read(FILE_BYTES_MAX), kept.where)  # one that is cut cannot be read
    except OSError as error:
        _LOG.warning("What tools return is learned anew: %s cannot be read: %r.", kept.where, error)
        return {}


def _parsed(data: bytes | None, where: str) -> dict[str, LearnedShape]:
    if data is None:
        return {}
    try:
        return {name: _learned(each) for name, each in json.loads(data).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # It can all be learned again.
        _LOG.warning("What tools return is learned anew: %s cannot be read: %r.", where, error)
        return {}


def _learned(content: object) -> LearnedShape:
    match content:
        case {"shape": shape, "count": int(count), **more} if 0 < count <= _COUNT_MAX:
            return LearnedShape(shape_from_json(shape), count, varies=more.get("varies") is True)
        case _:
            raise ValueError("nothing that was learned")
