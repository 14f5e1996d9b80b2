"""Uses what guest code can reach in ways that nobody meant, in forks of a sealed process; see test_misuse_walk.

Named as arguments are the modules to walk. What is found is written as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import warnings

from sealab.sandbox import facades
from sealab.sandbox.guest import GUEST
from sealab.sandbox.namespace import new_namespace


def main() -> None:
    """Seal, reach what can be reached, use it, and write what was found."""
    GUEST.namespace = new_namespace()
    facades.preload()
    facades.seal()
    from . import misuse  # here, so that its classes are none of the host's

    silence = io.StringIO()
    out = sys.stdout
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _unraisable: None
        found = misuse.walk([each for each in sys.argv[1:] if "=" not in each], sys.argv[1:])
    out.write(json.dumps(found, indent=1) + "\n")
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
