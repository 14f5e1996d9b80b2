"""Draws charts of libraries whose own images need a browser: from their data, with matplotlib.

Their renderers start a process or make machine code as they run, and the sandbox allows neither. matplotlib is imported
when a chart is drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from . import box_plots

PANELS_MAX: Final = 9
"""Panels of one chart that are drawn."""
SERIES_MAX: Final = 50
"""Series of one panel."""
_PANEL_WIDTH: Final = 6.4
_PANEL_HEIGHT: Final = 4.8
_IN_A_ROW: Final = 3
_MANY_LABELS: Final = 8


class NotDrawable(Exception):
    """A chart has something that cannot be drawn here; the message says what."""


@dataclass(frozen=True, slots=True)
class Series:
    """Data that are drawn in one way: `bar barh line point area histogram box pie heatmap`.

    Of a pie `x` are labels and `y` sizes; of a heatmap `y` are rows of values, `x` and `labels` the names of its
    columns and rows.
    """

    kind: str
    x: Sequence[Any]
    y: Sequence[Any]
    name: str = ""
    labels: Sequence[Any] = ()
    bins: int | None = None


@dataclass(slots=True)
class Panel:
    """One pair of axes, and what is drawn on it."""

    title: str = ""
    x: str = ""
    y: str = ""
    series: list[Series] = field(default_factory=list)
    is_stacked: bool = False
    log: tuple[bool, bool] = (False, False)


def drawn(panels: Sequence[Panel], title: str, dpi: float = 100.0) -> Any:
    """Return a figure of matplotlib that is in no list of open ones.

    Raises `NotDrawable`, and what matplotlib raises.
    """
    if not panels or len(panels) > PANELS_MAX:
        raise NotDrawable(f"it has {len(panels)} panels, and 1 to {PANELS_MAX} can be drawn")
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        raise NotDrawable("matplotlib is not installed, which draws it here") from None
    box_plots.watch()
    columns = min(_IN_A_ROW, len(panels))
    rows = -(-len(panels) // columns)
    figure = figures.Figure(figsize=(_PANEL_WIDTH * columns, _PANEL_HEIGHT * rows), dpi=dpi, layout="constrained")
    for number, panel in enumerate(panels, 1):
        _draw(figure.add_subplot(rows, columns, number), panel)
    if title:
        figure.suptitle(title)
    return figure


def _draw(axes: Any, panel: Panel) -> None:
    if len(panel.series) > SERIES_MAX:
        raise NotDrawable(f"a panel has {len(panel.series)} series, and {SERIES_MAX} can be drawn")
    bars = [each for each in panel.series if each.kind in {"bar", "barh"}]
    if bars:
        _draw_bars(axes, bars, is_stacked=panel.is_stacked)
    for each in panel.series:
        if each.kind not in {"bar", "barh"}:
            _draw_one(axes, each)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.log[0]:
        axes.set_xscale("log")
    if panel.log[1]:
        axes.set_yscale("log")
    if len(panel.series) > 1 and any(each.name for each in panel.series):
        axes.legend()


def _draw_bars(axes: Any, bars: Sequence[Series], *, is_stacked: bool) -> None:
    """Draw bars of several series beside or upon each other, one place for each label."""
    labels = list(dict.fromkeys(label for each in bars for label in (each.x if each.kind == "bar" else each.y)))
    places: Mapping[Any, int] = {label: at for at, label in enumerate(labels)}
    width = 0.8 if is_stacked else 0.8 / len(bars)
    below = [0.0] * len(labels)
    for number, each in enumerate(bars):
        own, sizes = (each.x, each.y) if each.kind == "bar" else (each.y, each.x)
        shift = 0.0 if is_stacked else (number - (len(bars) - 1) / 2) * width
        at = [places[label] + shift for label in own]
        begin = [below[places[label]] if is_stacked else 0.0 for label in own]
        draw = axes.bar if each.kind == "bar" else axes.barh
        options = {"bottom" if each.kind == "bar" else "left": begin}
        draw(at, sizes, width, label=each.name or None, **options)
        for label, size in zip(own, sizes, strict=True):
            below[places[label]] += float(size or 0)
    ticks = axes.set_xticks if bars[0].kind == "bar" else axes.set_yticks
    ticks(range(len(labels)), [str(label) for label in labels])
    if bars[0].kind == "bar" and len(labels) > _MANY_LABELS:
        axes.tick_params(axis="x", rotation=45)


def _draw_one(axes: Any, series: Series) -> None:
    label = series.name or None
    match series.kind:
        case "line":
            axes.plot(series.x, series.y, label=label)
        case "area":
            axes.fill_between(series.x, series.y, alpha=0.5, label=label)
        case "point":
            axes.scatter(series.x, series.y, s=16, label=label)
        case "histogram":
            axes.hist(series.x, bins=series.bins or "auto", label=label, alpha=0.8)
        case "box":
            axes.boxplot(list(series.y), tick_labels=[str(each) for each in series.x])
        case "pie":
            axes.pie(series.y, labels=[str(each) for each in series.x], autopct="%.0f %%")
        case "heatmap":
            shown = axes.imshow(series.y, aspect="auto")
            axes.figure.colorbar(shown, ax=axes)
            if len(series.x):
                axes.set_xticks(range(len(series.x)), [str(each) for each in series.x])
            if len(series.labels):
                axes.set_yticks(range(len(series.labels)), [str(each) for each in series.labels])
        case kind:
            raise NotDrawable(f"{kind} cannot be drawn here")
