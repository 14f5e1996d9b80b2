"""Writes where the files of a release come from: checksums, and a provenance statement that can be signed.

    python -m tests.packaging.provenance FOLDER

The statement is not signed here: the publisher signs it. Sources: in-toto Attestation Framework, "Statement v1";
SLSA 1.0, "Provenance".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHECKSUMS = "SHA256SUMS"
STATEMENT = "provenance.intoto.json"
_NOT_RELEASED = {CHECKSUMS, STATEMENT}


def released(folder: Path) -> list[Path]:
    """Return the files of a release, by name."""
    return sorted(each for each in folder.iterdir() if each.is_file() and each.name not in _NOT_RELEASED)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statement(folder: Path) -> dict[str, Any]:
    """Return the provenance of the files in a folder, as built from this checkout."""
    commit = _git("rev-parse", "HEAD")
    locks = ("requirements/base.txt", "requirements/packaging.txt", "tests/packaging/package-lock.json")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": each.name, "digest": {"sha256": sha256(each)}} for each in released(folder)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "make dist bundle",
                "externalParameters": {
                    "commit": commit,
                    "changed": [
                        line[3:] for line in _git("status", "--porcelain", "--untracked-files=no").splitlines()
                    ],
                },
                "internalParameters": {
                    "python": platform.python_version(),
                    "hatchling": version("hatchling"),
                    "SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct"),
                },
                "resolvedDependencies": [
                    {"name": "sealab", "digest": {"gitCommit": commit}},
                    *({"name": name, "digest": {"sha256": sha256(ROOT / name)}} for name in locks),
                ],
            },
            "runDetails": {"builder": {"id": "make"}, "metadata": {"invocationId": commit}},
        },
    }


def _git(*arguments: str) -> str:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return re.sub(r"\s+\Z", "", ended.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    (folder / CHECKSUMS).write_text("".join(f"{sha256(each)}  {each.name}\n" for each in released(folder)))
    (folder / STATEMENT).write_text(json.dumps(statement(folder), indent=2) + "\n")
    print(f"{len(released(folder))} files: {CHECKSUMS}, {STATEMENT}")


if __name__ == "__main__":
    main()
