"""Where `sealab` and `python -m sealab.server` start."""

import signal
import sys


def start() -> int:
    """Run one command and return its exit code.

    Until the command line takes interrupts itself, Ctrl-C ends the process as the system does: Python would show where
    it was importing.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
