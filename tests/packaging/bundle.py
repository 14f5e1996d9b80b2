"""Makes the MCP bundle of this checkout, and starts it as a client does that installs one.

    python -m tests.packaging.bundle MCPB FOLDER

`MCPB` is the program that validates and packs bundles, `FOLDER` has what `make dist` made and gets the bundle. The bundle
holds the wheel and pins, as constraints, the versions of the lock; `uv` installs them when a client first starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / ".bundle"


def lay_out(wheel: Path, icon: Path, folder: Path) -> None:
    """Put into a folder what the bundle holds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shutil.copy(wheel, folder)
    for name in ("manifest.json", "server.py"):
        shutil.copy(SOURCE / name, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    shutil.copy(icon, folder / "icon.png")
    (folder / "pyproject.toml").write_text(
        project_of(project, wheel.name, (ROOT / "requirements/base.txt").read_text())
    )


def project_of(project: Mapping[str, Any], wheel: str, lock: str) -> str:
    """Return the `pyproject.toml` by which `uv` installs the wheel and the locked versions of what it needs."""
    pins = [" ".join(each.split()) for each in re.findall(r"^([A-Za-z0-9._-]+==[^\\\n]+)", lock, re.MULTILINE)]
    return "\n".join(
        [
            "[project]",
            'name = "sealab-bundle"',
            f'version = "{project["version"]}"',
            f'requires-python = "{project["requires-python"]}"',
            'dependencies = ["sealab"]',
            "",
            "[tool.uv]",
            "package = false",
            "constraint-dependencies = [",
            *(f"    {json.dumps(each)}," for each in pins),
            "]",
            "",
            "[tool.uv.sources]",
            f'sealab = {{ path = "{wheel}" }}',
            "",
        ]
    )


def command_of(
    manifest: Mapping[str, Any], folder: Path, chosen: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment by which a client starts an unpacked bundle, as its user chose."""
    values = {"__dirname": str(folder)} | {f"user_config.{name}": value for name, value in chosen.items()}

    def filled(text: str) -> str:
        return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], text)

    config = manifest["server"]["mcp_config"]
    command = [config["command"], *map(filled, config["args"])]
    return command, {name: filled(value) for name, value in config["env"].items()}


async def try_out(folder: Path, home: Path) -> str:
    """Start an unpacked bundle, run a program, and return what came of it."""
    from mcp import Client, StdioServerParameters

    manifest = json.loads((folder / "manifest.json").read_text())
    command, env = command_of(manifest, folder, {"home": str(home), "privacy": "tools"})
    passed = {name: value for name, value in os.environ.items() if not name.startswith(("SEALAB_", "VIRTUAL_ENV"))}
    server = StdioServerParameters(command=command[0], args=command[1:], env=passed | env)
    async with Client(server, read_timeout_seconds=900) as client:
        answer = await client.call_tool("execute_code", {"code": "result = sum(range(10))"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == 45, answer.structured_content
        said = client.server_info
        return f"{said.name} {said.version} of the bundle answered {answer.structured_content['result']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mcpb", type=Path)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    [wheel] = chosen.folder.glob("*.whl")
    out = chosen.folder / f"{'-'.join(wheel.name.split('-')[:2])}.mcpb"
    with tempfile.TemporaryDirectory() as place:
        staged, unpacked, home = (Path(place) / name for name in ("staged", "unpacked", "home"))
        staged.mkdir()
        lay_out(wheel, chosen.folder / "sealab-512.png", staged)
        for arguments in (["validate", staged], ["pack", staged, out], ["unpack", out, unpacked]):
            subprocess.run([chosen.mcpb, *arguments], check=True)
        print(asyncio.run(try_out(unpacked, home)))


if __name__ == "__main__":
    main()
