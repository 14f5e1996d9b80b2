"""What a detector finds in a text or a value, as tests compare it."""

from __future__ import annotations

from functools import cache

from sealab.sandbox.job import Json
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, KeyedText, Mode
from sealab.server.privacy.tokens.notations import leaves_of


@cache
def in_mode(mode: Mode) -> Detector:
    """Return a detector that is made once."""
    return Detector(DetectorOptions(mode=mode))


def found(detector: Detector, text: str) -> list[tuple[str, str]]:
    """Return what is found in a text, each with its type."""
    return [(text[each.start : each.end], each.type) for each in detector.find(text)]


def found_in(detector: Detector, value: Json) -> list[str]:
    """Return what is found in the leaves of a value."""
    leaves = [KeyedText(leaf.path, leaf.text) for leaf in leaves_of(value)]
    findings = detector.find_leaves(leaves)
    return [leaf.text[f.start : f.end] for leaf, each in zip(leaves, findings, strict=True) for f in each]
