"""Wheel files that the tests write themselves, and locks of them: nothing is asked of an index."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from sealab.server.use_cases.managed_python.building import set_up


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], needs: Iterable[str] = ()) -> Path:
    """Write a wheel of pure Python: `files` maps paths to text."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {needed}\n" for needed in needs
    )
    held = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in held.items())
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**held, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path), text)  # of the same bytes each time
    return made


def lock(file: Path, *wheels: Path) -> Path:
    """Write a lock that holds these wheels, each with its hash."""
    lines = (
        "{}=={} --hash=sha256:{}".format(*made.name.split("-")[:2], hashlib.sha256(made.read_bytes()).hexdigest())
        for made in wheels
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def made_environment(home: Path, folder: Path, *wheels: Path) -> None:
    """Make the environment of full Python of a home, of these wheels in `folder`."""
    set_up(home / "python", lambda _step: None, lock=lock(folder / "lock.txt", *wheels), wheels=[folder])


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
