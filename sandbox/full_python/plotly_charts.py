"""The figures of plotly as what `chart_drawing` draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .chart_drawing import NotDrawable, Panel, Series


def panels_of(figure: Any) -> tuple[list[Panel], str]:
    """Return the panels of a figure and its title. Raises `NotDrawable`, and what plotly raises."""
    layout = figure.layout
    panels: dict[tuple[str, str], Panel] = {}
    for trace in figure.data:
        x_axis, y_axis = str(getattr(trace, "xaxis", None) or "x"), str(getattr(trace, "yaxis", None) or "y")
        panel = panels.get((x_axis, y_axis))
        if panel is None:
            panel = panels[x_axis, y_axis] = _panel(layout, x_axis, y_axis)
        panel.series += _series(trace)
    return list(panels.values()), _text(layout.title)


def _panel(layout: Any, x_axis: str, y_axis: str) -> Panel:
    x, y = layout[_named("xaxis", x_axis)], layout[_named("yaxis", y_axis)]
    return Panel(
        x=_text(x.title),
        y=_text(y.title),
        is_stacked=layout.barmode in {"stack", "relative"},
        log=(x.type == "log", y.type == "log"),
    )


def _named(axis: str, name: str) -> str:
    """Return where the layout has an axis: `xaxis2` for `x2`."""
    return f"{axis}{name[1:]}"


def _text(title: Any) -> str:
    return str(getattr(title, "text", None) or "")


def _series(trace: Any) -> list[Series]:
    name = str(trace.name or "")
    match trace.type:
        case "scatter" | "scattergl":
            return _scatter(trace, name)
        case "bar":
            kind = "barh" if trace.orientation == "h" else "bar"
            return [Series(kind, _listed(trace.x), _listed(trace.y), name)]
        case "histogram":
            if trace.histfunc not in {None, "count"} and trace.x is not None and trace.y is not None:
                return [_summed(trace, name)]
            return [
                Series("histogram", _listed(trace.x if trace.x is not None else trace.y), (), name, bins=trace.nbinsx)
            ]
        case "box" | "violin":
            groups: dict[Any, list[Any]] = {}
            values = _listed(trace.y if trace.y is not None else trace.x)
            names = _listed(trace.x) if trace.y is not None and trace.x is not None else [name] * len(values)
            for group, value in zip(names, values, strict=True):
                groups.setdefault(group, []).append(value)
            return [Series("box", list(groups), list(groups.values()))]
        case "pie":
            sizes: dict[Any, float] = {}
            for label, size in zip(_listed(trace.labels), _listed(trace.values), strict=True):
                sizes[label] = sizes.get(label, 0.0) + float(size)
            return [Series("pie", list(sizes), list(sizes.values()))]
        case "heatmap":
            return [Series("heatmap", _listed(trace.x), [list(row) for row in trace.z], name, _listed(trace.y))]
        case kind:
            raise NotDrawable(f"the trace {kind} of plotly cannot be drawn here")


def _summed(trace: Any, name: str) -> Series:
    """Return the bars of a histogram that adds up what belongs to each of some labels."""
    lies = trace.orientation == "h"
    labels, sizes = (_listed(trace.y), _listed(trace.x)) if lies else (_listed(trace.x), _listed(trace.y))
    if trace.histfunc != "sum" or not all(isinstance(label, str) for label in labels):
        raise NotDrawable("of plotly's histograms of values beside others, only sums by label can be drawn here")
    sums: dict[Any, float] = {}
    for label, size in zip(labels, sizes, strict=True):
        sums[label] = sums.get(label, 0.0) + float(size)
    found, totals = list(sums), list(sums.values())
    return Series("barh", totals, found, name) if lies else Series("bar", found, totals, name)


def _scatter(trace: Any, name: str) -> list[Series]:
    y = _listed(trace.y)
    x = _listed(trace.x) if trace.x is not None else list(range(len(y)))
    mode = str(trace.mode or "lines")
    kinds = ["area"] if trace.fill not in {None, "none"} else ["line"] if "lines" in mode else ["point"]
    if "markers" in mode and kinds != ["point"]:
        kinds.append("point")
    return [Series(kind, x, y, name if number == 0 else "") for number, kind in enumerate(kinds)]


def _listed(values: Any) -> Sequence[Any]:
    return [] if values is None else list(values)
