"""Starts the server that the benchmarks of data work measure."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp import StdioServerParameters


def serving(home: Path | str, python: str | None, **settings: str) -> StdioServerParameters:
    """Return how a client starts a server of its own that runs full Python with `python`, or none without it.

    `settings` are further ones, by their names.
    """
    env = {"PATH": os.environ["PATH"], "SEALAB_REQUIRED_LEVEL": "limits", "SEALAB_ALLOWED_ISOLATION": "restricted"}
    if python is not None:
        env |= {"SEALAB_PROCESS_PYTHON": python, "SEALAB_ALLOWED_ISOLATION": "restricted,process"}
    env |= {f"SEALAB_{name}": value for name, value in settings.items()}
    command = ["-P", "-m", "sealab.server", "serve", "--home", str(home)]
    return StdioServerParameters(command=sys.executable, args=command, env=env)
