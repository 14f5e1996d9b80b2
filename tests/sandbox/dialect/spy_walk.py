"""Calls what guest code can reach with hostile arguments, in a process of its own; see test_spy_walk.

The spies (`spies`, `spy_touches`) are guest code. This program hands them to every callable of the modules named as
arguments, to the methods of what those return, and to what guest code may do with any object; after each step it looks
through what the spies recorded and what came back, and writes as JSON what was opaque (`opaque`). `BUILTINS` stands for
the names that code finds without importing, `HELPERS` for the functions that ask the host, and what they answer. A name after `--plant` puts back one known leak; see `planted_leaks`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import signal
import sys
import warnings

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.dialect.imports import import_module
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST

_CPU_SECONDS_MAX = 100


def main() -> None:
    """Seal, plant what is asked for, walk, and write what was found."""
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS_MAX, _CPU_SECONDS_MAX + 5))
    GUEST.namespace = new_namespace()
    facades.preload()
    from sealab.sandbox.guest_api import data_helpers, hosted  # noqa: F401 - workers have both before they are sealed

    for module in ("io", "os"):  # what the stand-ins open files with
        import_module(module)
    sealing.seal()
    from . import planted_leaks  # here, so that its classes are none of the host's

    arguments = sys.argv[1:]
    if arguments[0] == "--plant":
        planted_leaks.PLANTED[arguments[1]].plant()
        arguments = arguments[2:]
    from . import spying  # after the leak, since what spies may define depends on it

    def stop(*_arguments: object) -> None:
        raise spying.Stuck

    signal.signal(signal.SIGVTALRM, stop)
    silence = io.StringIO()
    out = sys.stdout
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _unraisable: None
        found = spying.walk(arguments)
    out.write(json.dumps(found) + "\n")
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
