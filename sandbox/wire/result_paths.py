"""How a report names a place in a result, `result.items[3].price`, and notes what was changed there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

STEPS_MAX = 20
STEP_CHARS_MAX = 60
NOTES_MAX = 20

Path: TypeAlias = tuple["Path", str | int] | None
"""Where a value stands: its parent's path and its own key or index; None is the value itself."""


class ResultNotes:
    """What was changed, and where: at most `NOTES_MAX` notes, and one that counts the rest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._notes: dict[str, str] = {}
        self._taken = 0

    def full(self) -> bool:
        """Return whether further notes are only counted, so that their text need not be made."""
        return self._taken >= NOTES_MAX

    def add(self, path: Path, text: str) -> None:
        """Note a change at `path`; several at one place are joined."""
        self._taken += 1
        if self._taken > NOTES_MAX:
            return
        where = self.place(path)
        text = text.encode("utf-8", "backslashreplace").decode()
        self._notes[where] = f"{self._notes[where]}; {text}" if where in self._notes else text

    def place(self, path: Path) -> str:
        """Return the name of the place at `path`."""
        steps: list[str | int] = []
        while path is not None:
            path, step = path
            steps.append(step)
        return place(self._name, steps[::-1])

    def all(self) -> dict[str, str]:
        """Return the notes by place."""
        left_out = self._taken - NOTES_MAX
        if left_out <= 0:
            return self._notes
        return {**self._notes, f"{self._name} (more)": f"{left_out} more values are not shown as they were"}


def place(name: str, steps: Sequence[str | int]) -> str:
    """Return the place that `steps`, keys and indexes from the outside in, lead to; long ways lose their middle."""
    words = [_word(step) for step in steps]
    if len(words) > STEPS_MAX:
        words[STEPS_MAX // 2 : -STEPS_MAX // 2] = ["…"]
    return name + "".join(words)


def _word(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isidentifier() and len(step) <= STEP_CHARS_MAX:
        return f".{step}"
    shown = step if len(step) <= STEP_CHARS_MAX else f"{step[:STEP_CHARS_MAX]}…"
    return f"[{shown!r}]"
