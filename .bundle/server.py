"""Starts sealab from a bundle: `uv` has installed it, and what it needs, beside this file."""

import sys

from sealab.server.__main__ import start

if __name__ == "__main__":
    sys.exit(start())
