"""What tests of placement share: an environment of full Python with a module `pandas` of the tests' own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sealab.server.base.home import Home

from ...managed_python.wheels import made_environment, wheel

PANDAS = {"pandas/__init__.py": "def total(*numbers):\n    return sum(numbers)\n"}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, folder = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("wheels")
    made_environment(root, folder, wheel(folder, "pandas", "9.1", PANDAS))
    return root / "python"


@pytest.fixture(scope="module")
def home(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home of the module's own, with the environment."""
    root = tmp_path_factory.mktemp("home")
    shutil.copytree(environment, root / "python", symlinks=True)
    return Home(root)
