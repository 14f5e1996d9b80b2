"""What tests of containers share: whether there is podman, a home with an image in it, and which containers run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sealab.sandbox.container.engine import Engine

needs_podman = pytest.mark.skipif(
    shutil.which("podman") is None,
    reason="there is no podman: `make system` installs it",
)


def running(folder: Path) -> list[dict[str, object]]:
    """Every container that there is below `folder`, running or not."""
    command = [*Engine("podman", "podman", state=folder / "engine").base(), "ps", "--all", "--format", "json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return json.loads(said or "[]") or []
