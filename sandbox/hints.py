"""A second sentence for the errors that agents meet most: what to write instead.

Security boundary: computed in the child from hostile objects, so names and keys are read raw from classes, dicts and
frames, bounded, and no guest code is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

from .errors import Refused


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an error happened: the code's source, its line there, and the innermost own frame."""

    source: str
    line: int | None
    frame: FrameType | None


def hint_for(error: BaseException, message: str, scene: Scene) -> str | None:
    """Return what to do about an error, or None where there is nothing worth saying; never raises."""
    if "'coroutine'" in message:
        return "Write `await` before the call: without it there is only a coroutine that has not run."
    return None


def hint_for_refusal(refusal: Refused) -> str | None:
    """Return what to do where a refusal itself does not say."""
    if refusal.module is None:
        return None
    return 'Ask for isolation="container", where the operator allows it, or do without the module.'
