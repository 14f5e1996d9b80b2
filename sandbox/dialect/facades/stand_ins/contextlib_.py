"""`contextlib` whose redirections redirect the guest's own output, not the process's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ....guest.guest import GUEST

__all__ = ["chdir", "redirect_stderr", "redirect_stdout"]


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


class chdir:  # noqa: N801 - Python's own spelling
    """Make another folder of the workspace the current one inside the block."""

    __slots__ = ("_before", "path")

    def __init__(self, path: object) -> None:
        self.path = path
        self._before: list[object] = []

    def __enter__(self) -> None:
        from ...guest_modules import call  # it needs the facades

        self._before.append(call("os", "getcwd"))
        call("os", "chdir", self.path)

    def __exit__(self, *_error: object) -> None:
        from ...guest_modules import call

        call("os", "chdir", self._before.pop())
