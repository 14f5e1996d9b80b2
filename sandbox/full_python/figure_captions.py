"""What a figure of matplotlib shows, in words, for models that cannot see: titles, axes, series and their extent.

matplotlib is not imported here: a figure exists only where the code imported it. What the boxes of box plots stand for
is remembered when they are drawn, as lines, which do not say it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from itertools import pairwise
from math import floor, isfinite
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ..wire.report_frame import CAPTION_CHARS_MAX


@dataclass(slots=True)
class _Drawn:
    """The boxes of one pair of axes, as what they are drawn from, and what they consist of."""

    boxes: list[Mapping[str, Any]] = field(default_factory=list)
    parts: WeakSet[Any] = field(default_factory=WeakSet)


_DRAWN: Final[WeakKeyDictionary[Any, _Drawn]] = WeakKeyDictionary()
_NOTED: Final = "_sealab_notes_boxes"


def watch_boxes() -> None:
    """Remember the boxes that are drawn from now on, where matplotlib was imported."""
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


def _boxes_of(axes: Any) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Give the label of each box, with lower whisker, lower quartile, median, upper quartile and upper whisker."""
    drawn = _DRAWN.get(axes)
    if drawn is None or not any(each in drawn.parts for each in (*axes.lines, *axes.patches)):
        return  # the code has cleared the axes since
    for box in drawn.boxes:
        yield str(box.get("label", "")), tuple(float(box[key]) for key in ("whislo", "q1", "med", "q3", "whishi"))


_AXES_MAX: Final = 12
_SERIES_MAX: Final = 8
_BARS_MAX: Final = 12
_BARE_LINES_MAX: Final = 3
"""Lines without a name that are described one by one: if there are more, they mark other things, such as error bars."""
_TEXT_CHARS_MAX: Final = 80
_CUT: Final = " …"
_COLORBAR: Final = "<colorbar>"
_RECTANGLE: Final = "Rectangle"


def caption_of(figure: Any) -> str:
    """Return what a figure shows in at most `CAPTION_CHARS_MAX` characters; raises nothing.

    What cannot be found out is left out: the code's own objects are asked.
    """
    sentences: list[str] = []
    with suppress(Exception):
        title = getattr(figure, "_suptitle", None)
        if title is not None and title.get_text():
            sentences.append(f"{_quoted(title.get_text())}.")
    with suppress(Exception):
        all_axes = [axes for axes in figure.axes if axes.get_label() != _COLORBAR]
        for number, axes in enumerate(all_axes[:_AXES_MAX], 1):
            parts = [part for part in _parts_of(axes) if part]
            if parts:
                sentences.append(f"{f'Panel {number}: ' if len(all_axes) > 1 else ''}{'; '.join(parts)}.")
        if len(all_axes) > _AXES_MAX:
            sentences.append(f"{len(all_axes) - _AXES_MAX} more panels.")
    text = " ".join(sentences) or "Nothing is drawn in it."
    return text if len(text) <= CAPTION_CHARS_MAX else text[: CAPTION_CHARS_MAX - len(_CUT)] + _CUT


def _parts_of(axes: Any) -> Iterator[str]:
    for name, getter in (("title", axes.get_title), ("x", axes.get_xlabel), ("y", axes.get_ylabel)):
        with suppress(Exception):
            if said := str(getter()):
                yield f"{name} {_quoted(said)}"
    for kind in (_bars, _boxes, _lines, _points, _wedges, _pictures):
        descriptions: list[str] = []
        with suppress(Exception):
            descriptions = list(kind(axes))
        yield from descriptions[:_SERIES_MAX]
        if len(descriptions) > _SERIES_MAX:
            yield f"{len(descriptions) - _SERIES_MAX} more of these"
    with suppress(Exception):
        if (legend := _legend(axes)) is not None:
            yield legend
    is_flat = any(type(each).__name__ == "Wedge" for each in axes.patches) or len(axes.get_images()) > 0
    if axes.axison and not is_flat:
        for name, limits, scale in (
            ("x", axes.get_xlim, axes.get_xscale),
            ("y", axes.get_ylim, axes.get_yscale),
        ):
            with suppress(Exception):
                least, greatest = sorted(float(each) for each in limits())
                form = "" if scale() == "linear" else f" ({str(scale())[:20]})"
                yield f"{name} axis{form} from {_end(axes, name, least)} to {_end(axes, name, greatest)}"


def _bars(axes: Any) -> Iterator[str]:
    """Yield what each group of bars is: how many, and their heights with the labels of the axis they stand on."""
    for container in axes.containers:
        bars = [each for each in getattr(container, "patches", ()) if type(each).__name__ == _RECTANGLE]
        if not bars:
            continue
        lies = getattr(container, "orientation", "vertical") == "horizontal"
        sizes = [float(each.get_width() if lies else each.get_height()) for each in bars]
        labels = _labels(axes, len(bars), lies=lies)
        named = [f"{name} {_number(size)}" if name else _number(size) for name, size in zip(labels, sizes, strict=True)]
        more = f" and {len(named) - _BARS_MAX} more" if len(named) > _BARS_MAX else ""
        bins = "" if lies or any(labels) else _bins(axes, bars)
        yield f"{_labelled(container)}{len(bars)} bars ({', '.join(named[:_BARS_MAX])}{more}){bins}"


def _bins(axes: Any, bars: Sequence[Any]) -> str:
    """Return from where to where bars go that touch each other, as those of a histogram do."""
    edges = [(float(each.get_x()), float(each.get_x() + each.get_width())) for each in bars]
    width = max(edges[-1][1] - edges[0][0], 1e-300)
    if any(abs(right - left) > width / 1e6 for (_, right), (left, _) in pairwise(edges)) or len(edges) == 1:
        return ""
    return f", side by side from {_end(axes, 'x', edges[0][0])} to {_end(axes, 'x', edges[-1][1])}"


def _boxes(axes: Any) -> Iterator[str]:
    boxes = [
        f"{f'{_quoted(label)} ' if label else ''}{low} to {high}, quartiles {lower} and {upper}, median {middle}"
        for label, (low, lower, middle, upper, high) in (
            (label, map(_number, numbers)) for label, numbers in _boxes_of(axes)
        )
    ]
    if boxes:
        more = f"; and {len(boxes) - _BARS_MAX} more" if len(boxes) > _BARS_MAX else ""
        yield f"{len(boxes)} box{'' if len(boxes) == 1 else 'es'} ({'; '.join(boxes[:_BARS_MAX])}{more})"


def _labels(axes: Any, count: int, *, lies: bool) -> Sequence[str]:
    axis = axes.yaxis if lies else axes.xaxis
    names = [str(each.get_text())[:_TEXT_CHARS_MAX] for each in axis.get_ticklabels()]
    is_of_names = type(axis.get_major_formatter()).__name__ in {
        "StrCategoryFormatter",
        "FixedFormatter",
        "FuncFormatter",
    }
    return names if is_of_names and len(names) == count else [""] * count


def _lines(axes: Any) -> Iterator[str]:
    of_boxes = _DRAWN.get(axes, _Drawn()).parts
    lines = [line for line in axes.get_lines() if len(line.get_ydata()) and line not in of_boxes]
    bare = [line for line in lines if not _labelled(line)]
    if len(bare) > _BARE_LINES_MAX:
        lines = [line for line in lines if line not in bare]
    for line in lines:
        points = len(line.get_ydata())
        yield f"{_labelled(line)}line of {points} points{_extent(axes, line.get_xdata(), line.get_ydata())}"
    if len(bare) > _BARE_LINES_MAX:
        yield f"{len(bare)} lines without a name"


def _legend(axes: Any) -> str | None:
    legend = axes.get_legend()
    if legend is None:
        return None
    texts = legend.get_texts()
    names = ", ".join(_quoted(str(each.get_text())) for each in texts[:_SERIES_MAX])
    if len(texts) > _SERIES_MAX:
        names += f" and {len(texts) - _SERIES_MAX} more"
    title = str(legend.get_title().get_text())
    return f"legend {f'{_quoted(title)}: ' if title else ''}{names}" if names else None


def _points(axes: Any) -> Iterator[str]:
    for collection in axes.collections:
        kind = type(collection).__name__
        if kind == "PathCollection":
            offsets = collection.get_offsets()
            if len(offsets):
                yield f"{_labelled(collection)}{len(offsets)} points{_extent(axes, offsets[:, 0], offsets[:, 1])}"
        elif kind == "QuadMesh":
            values = collection.get_array()
            yield f"{_labelled(collection)}grid of {values.size} values{_range(values.ravel())}"
        elif kind in {"FillBetweenPolyCollection", "PolyCollection"}:
            yield f"{_labelled(collection)}filled area"


def _wedges(axes: Any) -> Iterator[str]:
    """Yield the shares of a pie."""
    wedges = [each for each in axes.patches if type(each).__name__ == "Wedge"]
    if wedges:
        shares = [
            f"{_labelled(each)}{100 * (float(each.theta2) - float(each.theta1)) / 360:.3g} %"
            for each in wedges[:_BARS_MAX]
        ]
        yield f"pie of {len(wedges)} parts ({', '.join(shares)}{', …' if len(wedges) > _BARS_MAX else ''})"


def _pictures(axes: Any) -> Iterator[str]:
    for image in axes.get_images():
        values = image.get_array()
        yield f"picture of {' x '.join(map(str, values.shape))} values{_range(values.ravel())}"


def _labelled(artist: Any) -> str:
    label = str(artist.get_label() or "")
    return "" if not label or label.startswith("_") else f"{_quoted(label)}: "


def _extent(axes: Any, x: Iterable[Any], y: Iterable[Any]) -> str:
    """Return the range of points on each axis. An axis whose values are not numbers is left out."""
    ranges = []
    for name, values in (("x", x), ("y", y)):
        with suppress(Exception):
            axis = axes.xaxis if name == "x" else axes.yaxis
            numbers = [each for each in map(float, axis.convert_units(values)) if isfinite(each)]
            if numbers:
                ranges.append(f"{name} {_end(axes, name, min(numbers))} to {_end(axes, name, max(numbers))}")
    return f", {', '.join(ranges)}" if ranges else ""


def _end(axes: Any, name: str, number: float) -> str:
    """Return a number of an axis as the axis says it: dates are dates."""
    axis = axes.xaxis if name == "x" else axes.yaxis
    if type(axis.get_converter()).__name__ in {"DateConverter", "_SwitchableDateConverter", "ConciseDateConverter"}:
        dates = importlib.import_module("matplotlib.dates")  # loaded by the code
        return str(dates.num2date(number).strftime("%Y-%m-%d %H:%M")).removesuffix(" 00:00")
    if name == "x" and (freq := getattr(axes, "freq", None)) is not None:
        # pandas draws a regular time series by the ordinals of its periods, and keeps their length in the axes.
        pandas = importlib.import_module("pandas")  # loaded by the code
        period = pandas.Period(ordinal=floor(number), freq=freq)
        return str(period.start_time.strftime("%Y-%m-%d %H:%M")).removesuffix(" 00:00")
    return _number(number)


def _range(values: Any) -> str:
    finite = importlib.import_module("numpy").ma.masked_invalid(values)  # loaded with matplotlib
    return f" from {_number(float(finite.min()))} to {_number(float(finite.max()))}" if finite.count() else ""


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"  # noqa: PLR2004 - how it is read best


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f'"{text}"' if len(text) <= _TEXT_CHARS_MAX else f'"{text[:_TEXT_CHARS_MAX]}{_CUT}"'
