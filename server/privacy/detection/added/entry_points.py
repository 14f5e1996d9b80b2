"""Recognizers of installed packages: entry points of the group `sealab.recognizers`.

Each is a class or a function without parameters that gives a `presidio_analyzer.EntityRecognizer` or a list of them,
or such an object itself.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
from presidio_analyzer import EntityRecognizer

from .bounds import RecognizersInvalid, made_safe


def installed_recognizers(group: str) -> list[EntityRecognizer]:
    """Return what entry points give, in the order of their names. Raises `RecognizersInvalid`, which names one."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return [recognizer for point in points for recognizer in _given(point)]


def _given(point: EntryPoint) -> list[EntityRecognizer]:
    shown = f"The entry point {point.name} ({point.value}) of {point.group}"
    try:
        loaded = point.load()
        given = loaded() if callable(loaded) and not isinstance(loaded, EntityRecognizer) else loaded
    except Exception as error:
        raise RecognizersInvalid(
            f"{shown} cannot be loaded: {type(error).__name__}: {error}. Correct or uninstall its package."
        ) from error
    recognizers = list(given) if isinstance(given, list | tuple) else [given]
    for each in recognizers:
        if not isinstance(each, EntityRecognizer):
            raise RecognizersInvalid(f"{shown} gives {type(each).__name__}. Have it give recognizers of Presidio.")
        made_safe(each, shown)
    return recognizers
