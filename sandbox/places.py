"""How a report names a place within a result: `result.items[3].price`, `result['odd key']`."""

from __future__ import annotations

from collections.abc import Sequence

STEPS_MAX = 20
STEP_CHARS_MAX = 60


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
