"""`contextlib` whose redirections redirect the guest's own streams, not the process's."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from .. import streams

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
        self._before: list[object] = []

    def __enter__(self) -> W:
        self._before.append(streams.exchange(_name_of(self), self._target))
        return self._target

    def __exit__(self, *_error: object) -> None:
        streams.exchange(_name_of(self), self._before.pop())


class redirect_stderr(redirect_stdout[W]):  # noqa: N801 - Python's own spelling
    """Send what is written to standard error inside the block to `new_target.write`."""

    __slots__ = ()


def _name_of(redirection: redirect_stdout[W]) -> str:
    return "stderr" if redirect_stderr in type(redirection).__mro__ else "stdout"


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
