"""The manifests of deploy/kubernetes, as kustomize renders them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBERNETES = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
OVERLAYS = tuple(sorted(path.name for path in (KUBERNETES / "overlays").iterdir()))

Manifest = dict[str, Any]


@cache
def rendered_text(overlay: str) -> str:
    """Render an overlay. Skips the test where there is no kubectl, unless TEST_KUBECTL_REQUIRED says that there is."""
    kubectl = shutil.which("kubectl", path=f"{os.environ['PATH']}:{Path(sys.executable).parent}")
    if kubectl is None:
        if os.environ.get("TEST_KUBECTL_REQUIRED"):
            raise AssertionError("there is no kubectl, which `make system` installs")
        pytest.skip("there is no kubectl: `make system` installs it")
    where = str(KUBERNETES / "overlays" / overlay)
    done = subprocess.run([kubectl, "kustomize", where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr  # kustomize warns of what a later version will not read
    return done.stdout


def rendered(overlay: str) -> list[Manifest]:
    return list(yaml.safe_load_all(rendered_text(overlay)))


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [each for each in manifests if each["kind"] == kind]


def pod_of(manifests: list[Manifest]) -> Manifest:
    (deployment,) = of_kind(manifests, "Deployment")
    return dict(deployment["spec"]["template"]["spec"])


def server_of(manifests: list[Manifest]) -> Manifest:
    (container,) = pod_of(manifests)["containers"]
    return dict(container)
