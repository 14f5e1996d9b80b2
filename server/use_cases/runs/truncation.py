"""Fit a run's result and output into what a model should see, and say exactly what was left out.

Nothing is cut silently: each cut has an entry in the report's `truncated`, which names how much is shown, how much
there is, and the call that reads the rest. The result keeps its shape and stays JSON: lists keep their first items,
objects their first keys, long strings their start; where several large values share the room, each gets its share, so
that a small value beside a large one is always seen whole.

`truncated` has one shape for cuts and for notes on values (`sealab.sandbox.report.values`):

    {"output": {"shown": 9950, "total": 700000, "read_with": "read_file(…) in code, or read_workspace_file(…)"},
     "result": {"shown": 9871, "total": 410233, "read_with": "read_file(…) …", "note": "characters of JSON"},
     "result.rows": {"shown": 212, "total": 5000, "read_with": "read_file(…) …", "note": "items"},
     "result.price": {"note": "nan became null"}}

A call that `read_with` names asks for a slice that is shown whole: what it gives is half as long as a report may be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from json.encoder import encode_basestring
from os.path import commonprefix
from typing import TypeAlias, cast

from ....sandbox.job import Json
from ....sandbox.wire.bounded_json import is_light, write, write_in_steps
from ....sandbox.wire.result_paths import place
from ....workspace.archive import RunArchive, What

SHOWN_CHARS = 4_000
"""Characters of a result and an output that a text shows beside the structured content, which has more of them."""

FIRST_OF = re.compile(r"(: the first \d+ of )(\d+)")
"""How the note of a cut says how many items, keys or characters of the whole are shown."""

CUTS_MAX = 5
"""Places within a result that are named one by one; the rest is counted."""

SHARE_LEAST = 80
"""Characters that a value gets at least where it stands beside others, before others are left out for it."""

_QUOTES = 10
"""So much less than half the room fits as a JSON string even if each character of it has to be escaped."""

_MEMBER_LEAST = 80
"""Characters that each member of an answer gets at least."""

_LIST_SHARES = 8
_OBJECT_SHARES_MAX = 100
_SNAP = 0.1

Steps: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """What is shown of something, of how much, how to read the rest; or a `note` alone.

    `shown` and `total` count characters of `output`, of `stderr` and of the JSON text of `result`; within the result,
    the items, keys or characters that `note` says.
    """

    shown: int | None = None
    total: int | None = None
    read_with: str | None = None
    note: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the entry of `truncated`; one that only notes something is its note alone."""
        note: dict[str, Json] = {} if self.note is None else {"note": self.note}
        if self.total is None:
            return note
        return {"shown": self.shown, "total": self.total, "read_with": self.read_with, **note}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A result, an output, a standard error, the calls of a dry run and what the code displayed, of bounded size.

    `cuts` says what was cut to make them so, and `whole` is what the archive has to keep of it: texts, and JSON of all
    else, by the names of the files.
    """

    result: Json
    output: str
    cuts: Mapping[str, Cut]
    stderr: str = ""
    dry_run: Sequence[Json] = ()
    displayed: Sequence[Json] = ()
    whole: Mapping[What, str] = field(default_factory=dict)

    def truncated(self) -> dict[str, Json]:
        """Return the report's `truncated`; empty when nothing was cut or noted."""
        return {what: cut.to_json() for what, cut in self.cuts.items()}


def fit(
    result: Json,
    output: str,
    *,
    max_chars: int,
    run_id: str | None = None,
    notes: Mapping[str, str] | None = None,
    dry_run: Sequence[Json] = (),
    stderr: str = "",
    before: Json = None,
    displayed: Sequence[Json] = (),
) -> Fitted:
    """Limit the JSON of result, `dry_run` and `displayed`, the output and `stderr` to `max_chars` characters in all.

    What is small is kept whole, and the others share the rest. `run_id` is where the whole is kept
    (`.runs/<run_id>/`), None where it is not. `notes` are the sandbox's own. `before` is the result before somebody
    shortened it: how to read on is said of that. The same arguments always give the same answer. Takes time in
    proportion to the sizes of all.
    """
    cuts: dict[str, Cut] = {}
    text = _compact(result)
    calls = _compact(dry_run) if dry_run else ""
    room = max_chars if result is not None else max_chars + len(text)
    own = _compact(displayed) if displayed else ""
    level = _level([len(text), len(output), len(stderr), len(calls), len(own)], room)
    slice_chars = max(max_chars // 2 - _QUOTES, 1)
    texts: dict[What, str] = {"result.json": text, "output.txt": output, "stderr.txt": stderr}
    whole = {what: each for what, each in texts.items() if len(each) > min(level, SHOWN_CHARS)}
    if len(text) > level:
        kept = text if before is None else _compact(before)
        read_on = partial(_result_reader, run_id, slice_chars)
        result = _fit_result(result, text, level, lambda shown: read_on(_same_start(shown, kept)), cuts)
    if len(output) > level:
        output, cuts["output"] = _fit_output(output, level, run_id, "output.txt", slice_chars)
    if len(stderr) > level:
        stderr, cuts["stderr"] = _fit_output(stderr, level, run_id, "stderr.txt", slice_chars)
    if len(calls) > level:
        whole["dry_run.json"] = calls
        dry_run, cuts["dry_run"] = _fit_calls(dry_run, level, _reader(run_id, "dry_run.json", slice_chars))
    if len(own) > level:
        whole["displayed.json"] = own
        displayed = _fit_displayed(displayed, own, level, _reader(run_id, "displayed.json", slice_chars), cuts)
    _add_notes(cuts, notes or {})
    return Fitted(result, output, cuts, stderr, dry_run, displayed, whole)


def _fit_displayed(
    displayed: Sequence[Json], text: str, max_chars: int, read_with: str | None, cuts: dict[str, Cut]
) -> Sequence[Json]:
    cutter = _Cutter()
    fitted = cast("Sequence[Json]", cutter.cut(list(displayed), max_chars, ()))
    cuts["displayed"] = Cut(len(_compact(fitted)), len(text), read_with, "characters of JSON")
    inner = {place("displayed", steps): replace(cut, read_with=read_with) for steps, cut in cutter.cuts if steps}
    cuts.update(dict(list(inner.items())[:CUTS_MAX]))
    return fitted


def _add_notes(cuts: dict[str, Cut], notes: Mapping[str, str]) -> None:
    for what, note in notes.items():
        cut = cuts.get(what, Cut())
        cuts[what] = replace(cut, note=note if cut.note is None else f"{cut.note}; {note}")


def fits(result: Json, output: str, stderr: str = "", *, max_chars: int) -> bool:
    """Return whether `fit` would cut nothing of these. Takes time by `max_chars`, whatever their sizes."""
    left = max_chars - len(output) - len(stderr)
    return left >= 0 and (result is None or _size(result, left) <= left)


def cut_members(members: Mapping[str, Json], chars: int, read_with: str) -> tuple[dict[str, Json], dict[str, Cut]]:
    """Return an object with all of its keys in about `chars` characters of JSON, and what was cut of its members."""
    cutter = _Cutter()
    sizes = [_size(value, chars) for value in members.values()]
    level = max(_level(sizes, chars - sum(len(key) + 4 for key in members)), _MEMBER_LEAST)
    cut = {
        key: value if size <= level else cutter.cut(value, level, (key,))
        for (key, value), size in zip(members.items(), sizes, strict=True)
    }
    cuts = {place("", steps).lstrip("."): replace(each, read_with=read_with) for steps, each in cutter.cuts}
    return cut, dict(list(cuts.items())[:CUTS_MAX])


def _fit_calls(calls: Sequence[Json], max_chars: int, read_with: str | None) -> tuple[Sequence[Json], Cut]:
    kept: list[Json] = []
    left = max_chars - 2
    for call in calls:
        left -= _size(call, max_chars) + 1
        if left < 0:
            break
        kept.append(call)
    note = "calls"
    if not kept and isinstance(first := calls[0], Mapping):
        rest = len(_compact({**first, "arguments": None}))
        kept.append(
            {**first, "arguments": _Cutter().cut(first.get("arguments"), max(max_chars - rest, SHARE_LEAST), ())}
        )
        note = "calls; the arguments of the first are cut"
    return kept, Cut(len(kept), len(calls), read_with, note)


def _fit_output(output: str, max_chars: int, run_id: str | None, file: What, slice_chars: int) -> tuple[str, Cut]:
    """Keep the start and the end, at line ends where these are near; a line between them says what is missing."""
    marker = _marker(len(output), kept=run_id is not None)
    half = max(0, max_chars - len(marker)) // 2
    head, tail = output[:half], output[len(output) - half :]
    near = int(half * (1 - _SNAP))
    if (end := head.rfind("\n", near)) >= 0:
        head = head[: end + 1]
    if (start := tail.find("\n", 0, half - near)) >= 0:
        tail = tail[start + 1 :]
    shown = len(head) + len(tail)
    read_with = _reader(run_id, file, slice_chars, len(head))
    marker = _marker(len(output) - shown, kept=run_id is not None)
    return f"{head}{marker}{tail}"[:max_chars], Cut(shown, len(output), read_with)


def _marker(left_out: int, *, kept: bool) -> str:
    return f"\n… [{left_out} characters left out here{'; see truncated' if kept else ''}] …\n"


def _reader(run_id: str | None, file: What, slice_chars: int, offset: int = 0) -> str | None:
    """Return the calls that read a first slice of what is kept: in code, and as a tool."""
    if run_id is None:
        return None
    path = RunArchive.path_of(run_id, file)
    where = f"offset={offset}, limit={slice_chars}"
    return f'read_file("{path}", {where}) in code, or read_workspace_file(filename="{path}", {where})'


def _result_reader(run_id: str | None, slice_chars: int, offset: int) -> str | None:
    """Return the calls that read a result: all of it as data in code, and as a tool the slice that follows."""
    if run_id is None:
        return None
    path = RunArchive.path_of(run_id, "result.json")
    slice_of = f'read_workspace_file(filename="{path}", offset={offset}, limit={slice_chars})'
    return f'json.loads(read_file("{path}")) in code, or {slice_of}'


def _fit_result(
    result: Json, text: str, max_chars: int, read_on: Callable[[str], str | None], cuts: dict[str, Cut]
) -> Json:
    """Cut a result, whose JSON is `text`; `read_on` says how to read what follows, given the JSON that is shown."""
    cutter = _Cutter()
    fitted = cutter.cut(result, max_chars, ())
    shown = _compact(fitted)
    read_with = read_on(shown)
    note = "characters of JSON"
    inner: dict[str, Cut] = {}
    for steps, cut in cutter.cuts:
        if not steps:
            note += f": the first {cut.shown} of {cut.total} {cut.note}"  # as `FIRST_OF` reads it
        elif len(inner) < CUTS_MAX:
            inner[place("result", steps)] = replace(cut, read_with=read_with)
    left_out = sum(1 for steps, _ in cutter.cuts if steps) - len(inner)
    if left_out > 0:
        note += f"; {left_out} more places are cut"
    cuts["result"] = Cut(len(shown), len(text), read_with, note)
    cuts.update(inner)
    return fitted


def _same_start(one: str, other: str) -> int:
    return len(commonprefix([one, other]))  # noqa: RUF071 - of texts, which are not paths


class _Cutter:
    """Cuts a JSON value to a size, and remembers where: `(steps, Cut)`, outermost first."""

    def __init__(self) -> None:
        self.cuts: list[tuple[Steps, Cut]] = []

    def cut(self, value: Json, chars: int, steps: Steps) -> Json:
        """Return `value` in at most `chars` characters of JSON, 4 or more; a number longer than that becomes null."""
        if _size(value, chars) <= chars:
            return value
        if isinstance(value, str):
            kept = _start_of(value, chars)
            self.cuts.append((steps, Cut(len(kept), len(value), note="characters")))
            return kept + "…"
        if isinstance(value, Mapping):
            return self._object(value, chars, steps)
        if isinstance(value, Sequence):
            return self._list(value, chars, steps)
        self.cuts.append((steps, Cut(0, len(json.dumps(value)), note="digits of a number")))
        return None

    def _list(self, items: Sequence[Json], chars: int, steps: Steps) -> Json:
        sizes = _fitting(((1, item) for item in items), chars, _LIST_SHARES)
        if len(sizes) < len(items):
            self.cuts.append((steps, Cut(len(sizes), len(items), note="items")))
        level = _level(sizes, chars - 2 - len(sizes))
        return [self._share(items[index], size, level, (*steps, index)) for index, size in enumerate(sizes)]

    def _object(self, pairs: Mapping[str, Json], chars: int, steps: Steps) -> Json:
        costs = ((len(encode_basestring(key)) + 2, value) for key, value in pairs.items())
        sizes = _fitting(costs, chars, max(_LIST_SHARES, min(len(pairs), _OBJECT_SHARES_MAX) + 1))
        if len(sizes) < len(pairs):
            self.cuts.append((steps, Cut(len(sizes), len(pairs), note="keys")))
        keys = list(pairs)[: len(sizes)]
        level = _level(sizes, chars - 2 - sum(len(encode_basestring(key)) + 2 for key in keys))
        return {key: self._share(pairs[key], size, level, (*steps, key)) for key, size in zip(keys, sizes, strict=True)}

    def _share(self, value: Json, size: int, level: int, steps: Steps) -> Json:
        return value if size <= level else self.cut(value, level, steps)


def _fitting(members: Iterable[tuple[int, Json]], chars: int, shares: int) -> list[int]:
    """Return the sizes of the first members that fit when each is given a share, at least, of the room.

    A member comes with what its key and its comma take. A size beyond the room is only known to be beyond it.
    """
    share = max(SHARE_LEAST, chars // shares)
    sizes: list[int] = []
    left = chars - 2
    for cost, value in members:
        size = _size(value, chars)
        left -= cost + min(size, share)
        if left < 0:
            break
        sizes.append(size)
    return sizes


def _level(sizes: Sequence[int], chars: int) -> int:
    """Return the size up to which members stay whole, so that all together take `chars` (water filling)."""
    left, level = chars, 0
    for taken, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - taken)
        if size > level:
            return level
        left -= size
    return max(level, max(sizes, default=0))


def _size(value: Json, enough: int) -> int:
    """Return the length of the compact JSON text, or some number above `enough` as soon as it is that long."""
    if isinstance(value, str):
        return len(value) + 2 if len(value) > enough else len(encode_basestring(value))
    if value is None or isinstance(value, bool | int | float):
        return len(json.dumps(value))
    size = 2
    members: Iterable[tuple[int, Json]]
    if isinstance(value, Mapping):
        members = ((len(encode_basestring(key)) + 2, inner) for key, inner in value.items())
    else:
        members = ((1, inner) for inner in value)
    comma = 1
    for cost, inner in members:
        size += cost + _size(inner, enough)
        if size - comma > enough:
            return size - comma
    return size if size == 2 else size - comma  # noqa: PLR2004 - the two brackets of what is empty


def _start_of(text: str, chars: int) -> str:
    """Return the longest start, within a few characters, whose JSON string with `…` after it takes at most `chars`."""
    kept = text[: max(0, chars - 3)]
    while kept and (excess := len(encode_basestring(kept)) + 1 - chars) > 0:
        kept = kept[: len(kept) - max(1, excess // 6)]
    return kept


def _compact(value: Json) -> str:
    return write(value) if is_light(value) else write_in_steps(value)
