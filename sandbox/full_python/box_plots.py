"""Remembers what the boxes of box plots stand for: matplotlib draws them as lines, which do not say it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet


@dataclass(slots=True)
class _Drawn:
    """The boxes of one pair of axes, as what they are drawn from, and what they consist of."""

    boxes: list[Mapping[str, Any]] = field(default_factory=list)
    parts: WeakSet[Any] = field(default_factory=WeakSet)


_DRAWN: Final[WeakKeyDictionary[Any, _Drawn]] = WeakKeyDictionary()
_NOTED: Final = "_sealab_notes_boxes"


def watch() -> None:
    """Have the boxes remembered that are drawn from now on, where matplotlib was imported."""
    axes = getattr(sys.modules.get("matplotlib.axes"), "Axes", None)
    if axes is None or getattr(axes.bxp, _NOTED, False):
        return
    plain = axes.bxp

    @wraps(plain)
    def bxp(self: Any, bxpstats: Any, *arguments: Any, **options: Any) -> Any:
        stats = list(bxpstats)
        made = plain(self, stats, *arguments, **options)
        with suppress(Exception):
            drawn = _DRAWN.setdefault(self, _Drawn())
            drawn.boxes += stats
            drawn.parts.update(part for parts in made.values() for part in parts)
        return made

    setattr(bxp, _NOTED, True)
    axes.bxp = bxp


def is_part(axes: Any, artist: Any) -> bool:
    """Return whether a line is a part of a box."""
    drawn = _DRAWN.get(axes)
    return drawn is not None and artist in drawn.parts


def boxes_of(axes: Any) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Give the label of each box, with lower whisker, lower quartile, median, upper quartile and upper whisker."""
    drawn = _DRAWN.get(axes)
    if drawn is None or not any(each in drawn.parts for each in (*axes.lines, *axes.patches)):
        return  # the code has cleared the axes since
    for box in drawn.boxes:
        yield str(box.get("label", "")), tuple(float(box[key]) for key in ("whislo", "q1", "med", "q3", "whishi"))
