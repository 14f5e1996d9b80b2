"""What the server reads from the hostile side: the names that code can use, and what is refused of a package.

What is imported here only defines names or compiles; nothing of it runs code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


def importable_modules() -> frozenset[str]:
    """Return the modules that the restricted dialect can import, but for what lies below packages of guest code."""
    from .dialect import facades, guest_modules

    outer = (name for name in guest_modules.names() if not guest_modules.exists(name.rpartition(".")[0]))
    return frozenset(name for name in (*facades.exports(), *outer) if not name.startswith("_"))


def needs_network(module: str) -> bool:
    """Return whether a module is there to reach other machines, which no isolation lets code do."""
    from .report.substitutes import NO_NETWORK, instead_of

    return instead_of(module) == NO_NETWORK


def given_names() -> frozenset[str]:
    """Return the names of the helpers, and of the modules that need no import."""
    from .guest.runtime import PRELOADED
    from .guest_api import data_helpers, hosted

    return frozenset({*hosted.helpers(), *data_helpers.helpers(), *PRELOADED, "keep"})


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
