"""What the guest module `_thread` is made of: green threads by their numbers. Nothing of a thread itself is handed out.

Every function may be called by guest code with anything.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import green_threads

__all__ = ["current", "main", "park", "start", "wake"]


def current() -> int:
    """Return the number of the running thread."""
    return green_threads.current().ident


def main() -> int:
    """Return the number of the thread in which the program began."""
    return green_threads.main().ident


def park(seconds: float | None = None) -> bool:
    """Wait until `wake` is called for this thread, or for `seconds`; return whether it was called.

    Raises RuntimeError in the main thread where every thread waits without an end.
    """
    if seconds is not None and type(seconds) is not int and type(seconds) is not float:
        raise TypeError(f"seconds must be a number or None, not {type(seconds).__name__!r}")
    return green_threads.park(seconds)


def start(function: Callable[[], object], daemon: bool = False) -> int:
    """Call `function` in a new thread, at the next wait of the running one; return its number.

    The program ends without waiting for a `daemon`. What `function` raises is raised in the main thread.
    """
    if not callable(function):
        raise TypeError("function must be callable")
    return green_threads.start(function, is_daemon=daemon is True).ident


def wake(number: int) -> None:
    """Let a thread that waits go on; do nothing where it does not wait, or has ended."""
    if type(number) is not int:
        raise TypeError(f"number must be an int, not {type(number).__name__!r}")
    thread = green_threads.find(number)
    if thread is not None:
        green_threads.wake(thread)
