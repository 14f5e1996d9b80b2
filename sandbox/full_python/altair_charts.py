"""The charts of altair as what `chart_drawing` draws: marks with their fields, aggregates and colours.

What a chart computes beyond that (transforms, bins, units of time) is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from statistics import fmean, median
from typing import Any, Final

from .chart_drawing import NotDrawable, Panel, Series

_AGGREGATES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "sum": math.fsum,
    "mean": fmean,
    "average": fmean,
    "median": median,
    "min": min,
    "max": max,
    "count": len,
}
_MARKS: Final = {
    **{mark: mark for mark in ("bar", "line", "point", "area")},
    **dict.fromkeys(("circle", "square", "tick"), "point"),
    "boxplot": "box",
}
_COMPUTED: Final = ("bin", "timeUnit", "stack")
_BINS: Final = 10
"""What Vega makes of values where a chart says no other number (its documentation, "Bin": maxbins)."""

_Spec = Mapping[str, Any]


def panels_of(chart: Any) -> tuple[list[Panel], str]:
    """Return the panels of a chart and its title. Raises `NotDrawable`, and what altair raises."""
    spec = chart.to_dict()
    own = next((spec[key] for key in ("hconcat", "vconcat", "concat") if key in spec), None)
    if own is None:
        return [_panel(spec, spec)], ""
    return [_panel({"data": spec.get("data"), **each}, spec) for each in own], _title(spec)


def _panel(spec: _Spec, whole: _Spec) -> Panel:
    panel = Panel(title=_title(spec))
    for layer in spec.get("layer", [spec]):
        one = {"data": spec.get("data"), **layer}
        if one.get("transform") or "facet" in one or {"row", "column", "facet"} & one.get("encoding", {}).keys():
            raise NotDrawable("transforms and facets of altair cannot be drawn here")
        _add(panel, one, _rows(one, whole))
    return panel


def _rows(spec: _Spec, whole: _Spec) -> Sequence[_Spec]:
    data = spec.get("data") or {}
    rows = data.get("values") or whole.get("datasets", {}).get(data.get("name"))
    if not isinstance(rows, list):
        raise NotDrawable("its data are not in the chart")
    return rows


def _add(panel: Panel, spec: _Spec, rows: Sequence[_Spec]) -> None:
    mark = spec.get("mark")
    kind = _MARKS.get(str(mark.get("type") if isinstance(mark, Mapping) else mark))
    if kind is None:
        raise NotDrawable(f"the mark {mark!s:.40} of altair cannot be drawn here")
    encoding = spec.get("encoding", {})
    x, y = encoding.get("x", {}), encoding.get("y", {})
    panel.x, panel.y = panel.x or _name(x), panel.y or _name(y)
    is_histogram = kind == "bar" and bool(x.get("bin")) and y.get("aggregate") == "count"
    for channel in (x, y):
        if any(channel.get(each) for each in _COMPUTED) and not (is_histogram and not channel.get("timeUnit")):
            raise NotDrawable("bins other than those of a histogram, and units of time, of altair cannot be drawn here")
    colour = encoding.get("color", {}).get("field")
    groups: dict[Any, list[_Spec]] = {}
    for row in rows:
        groups.setdefault(row.get(colour) if colour else "", []).append(row)
    lies = kind == "bar" and x.get("type") == "quantitative" and y.get("type") != "quantitative"
    panel.is_stacked = kind == "bar" and len(groups) > 1
    for name, own in groups.items():
        if is_histogram:
            panel.series.append(_histogram(own, x, str(name)))
            continue
        if kind == "box":
            panel.series.append(_boxes(own, x, y, str(name)))
            continue
        xs, ys = _values(own, x, y)
        panel.series.append(Series("barh" if lies else kind, xs, ys, str(name)))


def _histogram(rows: Sequence[_Spec], x: _Spec, name: str) -> Series:
    values = [each for each in (_value(row, x) for row in rows) if each is not None]
    how = x["bin"]
    bins = how.get("maxbins", _BINS) if isinstance(how, Mapping) else _BINS
    return Series("histogram", values, (), name, bins=int(bins))


def _boxes(rows: Sequence[_Spec], x: _Spec, y: _Spec, name: str) -> Series:
    """Return a box for each value of the channel that is no number; there may be none."""
    measured, by = (x, y) if x.get("type") == "quantitative" and y.get("type") != "quantitative" else (y, x)
    boxes: dict[Any, list[Any]] = {}
    for row in rows:
        value = _value(row, measured)
        if value is not None:
            boxes.setdefault(_value(row, by) if by else name, []).append(value)
    return Series("box", list(boxes), list(boxes.values()), name)


def _values(rows: Sequence[_Spec], x: _Spec, y: _Spec) -> tuple[list[Any], list[Any]]:
    """Return the values of two channels; where one aggregates, it does so for each value of the other."""
    for measured, by, flips in ((y, x, False), (x, y, True)):
        how = measured.get("aggregate")
        if how is None:
            continue
        if how not in _AGGREGATES:
            raise NotDrawable(f"the aggregate {how!s:.40} of altair cannot be drawn here")
        groups: dict[Any, list[Any]] = {}
        for row in rows:
            groups.setdefault(_value(row, by), []).append(row.get(str(measured.get("field"))))
        keys = sorted(groups) if by.get("type") in {"temporal", "quantitative"} else list(groups)
        sizes = [_AGGREGATES[how]([each for each in groups[key] if each is not None or how == "count"]) for key in keys]
        return (sizes, keys) if flips else (keys, sizes)
    pairs = [(_value(row, x), _value(row, y)) for row in rows]
    if x.get("type") == "temporal":
        pairs.sort(key=lambda pair: pair[0])
    return [each for each, _ in pairs], [each for _, each in pairs]


def _value(row: _Spec, channel: _Spec) -> Any:
    value = row.get(str(channel.get("field")))
    if channel.get("type") == "temporal" and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


def _name(channel: _Spec) -> str:
    title = channel.get("title")
    if title:
        return str(title)
    how, what = channel.get("aggregate"), channel.get("field")
    return f"{how} of {what}" if how and what else str(what or how or "")


def _title(spec: _Spec) -> str:
    title = spec.get("title") or ""
    return str(title.get("text", "")) if isinstance(title, Mapping) else str(title)
