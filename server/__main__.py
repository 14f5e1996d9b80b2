"""Where `sealab` and `python -m sealab.server` start."""

import gc
import signal
import sys

_YOUNG_OBJECTS = 20_000
"""New objects before Python collects the youngest: an import makes many more, and none of them garbage."""


def start() -> int:
    """Run one command and return its exit code.

    Until the command line takes interrupts itself, Ctrl-C ends the process as the system does: Python would show where
    it was importing.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    from .cli import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
