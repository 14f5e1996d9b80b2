"""The make targets that can catch a patch, and which tests each runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """What `make NAME` runs of the tests: those that these options of pytest choose."""

    name: str
    options: tuple[str, ...]
    throw_away: bool = False
    """Whether it needs a throw-away machine."""


FAST = Target("make test", ("-m", "not slow and not adversarial"))
TARGETS = (
    FAST,
    Target("make slow", ("-m", "slow and not adversarial")),
    Target("make adversarial", ("-m", "adversarial"), throw_away=True),
)
ATTACKS = "make attacks"
"""Which runs cases of its own; it needs a throw-away machine too."""
