"""A clock that stands until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds, of whatever clock it stands for."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now
