"""`contextlib` whose redirections redirect the guest's own output, not the process's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ....guest.guest import GUEST

__all__ = ["redirect_stderr", "redirect_stdout"]


class Writable(Protocol):
    """What text can be written to."""

    def write(self, text: str, /) -> object:
        """Take `text`."""


W = TypeVar("W", bound=Writable)


class redirect_stdout(Generic[W]):  # noqa: N801 - Python's own spelling
    """Send what is printed inside the block to `new_target.write`."""

    __slots__ = ("__dict__", "__weakref__", "_before", "_target")

    def __init__(self, new_target: W) -> None:
        self._target = new_target
        self._before: list[Callable[[str], None]] = []

    def __enter__(self) -> W:
        self._before.append(GUEST.write)
        write = self._target.write

        def redirected(text: str) -> None:
            write(text)

        GUEST.write = redirected
        return self._target

    def __exit__(self, *_error: object) -> None:
        GUEST.write = self._before.pop()


class redirect_stderr(redirect_stdout[W]):  # noqa: N801 - Python's own spelling
    """Send what is printed inside the block to `new_target.write`: both streams are one here."""
