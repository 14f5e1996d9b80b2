"""Metrics as text, in Prometheus's format.

Source: Prometheus, "Exposition formats", text-based format 0.0.4: a line `# HELP`, a line `# TYPE`, then a line for
each sample; a histogram has cumulative buckets `le`, a sum and a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def gauge(name: str, meaning: str, value: float) -> str:
    """Write a value that may rise and fall."""
    return _metric(name, meaning, "gauge", [(name, {}, value)])


def counter(name: str, meaning: str, value: float) -> str:
    """Write a value that only rises while the process lives. Its name ends in `_total`."""
    return _metric(name, meaning, "counter", [(name, {}, value)])


def counters(name: str, meaning: str, label: str, values: Mapping[str, float]) -> str:
    """Write several such values, one for each value of a label."""
    return _metric(name, meaning, "counter", [(name, {label: key}, value) for key, value in values.items()])


def information(name: str, meaning: str, labels: Mapping[str, str]) -> str:
    """Write labels that say what this process is. Their value is 1."""
    return _metric(name, meaning, "gauge", [(name, labels, 1)])


def histogram(name: str, meaning: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> str:
    """Write a distribution: `counts` has one more than `bounds`, for what lies beyond the last; `total` is the sum."""
    samples: list[tuple[str, Mapping[str, str], float]] = [
        (f"{name}_bucket", {"le": bound}, count)
        for bound, count in zip((*map(_number, bounds), "+Inf"), accumulate(counts), strict=True)
    ]
    samples += [(f"{name}_sum", {}, total), (f"{name}_count", {}, sum(counts))]
    return _metric(name, meaning, "histogram", samples)


def _metric(name: str, meaning: str, kind: str, samples: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
    lines = [f"# HELP {name} {_escaped(meaning)}", f"# TYPE {name} {kind}"]
    for sample, labels, value in samples:
        given = ",".join(f'{key}="{_escaped(text, quotes=True)}"' for key, text in labels.items())
        lines.append(f"{sample}{{{given}}} {_number(value)}" if given else f"{sample} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
