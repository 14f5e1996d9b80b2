"""Compiles the modules of a package under the dialect, and says what it refuses. Nothing of them runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JudgedModule:
    """What the dialect makes of the source of one module.

    `reason` says why it cannot be compiled, or is None. `refusals` are the lines that raise an error when they run,
    each as `(line, reason)`.
    """

    name: str
    reason: str | None
    refusals: tuple[tuple[int | None, str], ...] = ()


def judged(folder: Path, top: str) -> list[JudgedModule]:
    """Judge a top-level module in `folder` and all below it, without tests. Raises `OSError`, `SyntaxError`."""
    from .dialect import namespace  # noqa: F401 - it gives the compiler what it compiles for
    from .dialect.compiling import compile_module
    from .dialect.guest_modules import is_test, read_module
    from .errors import Refused

    modules: list[JudgedModule] = []
    for text in read_module(folder, top):
        if is_test(text) or text.name.endswith("__main__"):
            continue
        try:
            _code, refusals = compile_module(text)
            modules.append(JudgedModule(text.name, None, tuple((each.line, each.message) for each in refusals)))
        except (SyntaxError, Refused) as error:
            modules.append(JudgedModule(text.name, f"{type(error).__name__}: {error}"))
    return modules
