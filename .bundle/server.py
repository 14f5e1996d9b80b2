"""Starts sealab from a bundle: `uv` has installed it, and what it needs, beside this file."""

import sys

from sealab.server.cli import main

if __name__ == "__main__":
    sys.exit(main())
