"""Uses what guest code can reach in ways that nobody meant, in forks of a sealed process; see test_misuse_walk.

Named as arguments are rules (`misuse.RULES`), or `--plant`, a known leak to put back, and what of the guest's to walk
then; see `planted_leaks`. What is found is written as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import warnings

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST


def main() -> None:
    """Seal, reach what can be reached, use it, and write what was found."""
    GUEST.namespace = new_namespace()
    facades.preload()
    sealing.seal()
    from . import misuse, planted_leaks  # here, so that their classes are none of the host's

    arguments = sys.argv[1:]
    rules, modules = arguments, sorted(facades.exports())
    if arguments[0] == "--plant":
        planted = planted_leaks.MISUSED[arguments[1]]
        planted.plant()
        rules, modules = [arguments[1].partition(":")[0]], planted.walked.split()
    silence = io.StringIO()
    out = sys.stdout
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _unraisable: None
        found = misuse.walk(modules, rules)
    out.write(json.dumps(found, indent=1) + "\n")
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
