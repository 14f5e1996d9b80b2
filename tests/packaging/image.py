"""Builds the image of the Dockerfile, and starts it as a client does that starts its servers in containers.

    python -m tests.packaging.image [ENGINE] [--base IMAGE] [--build OPTIONS] [--run OPTIONS]

`ENGINE` is podman, which is the default, or docker. `IMAGE` replaces the base image of the Dockerfile. The options are those of the engine's
`build` and `run`, as a shell reads them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(engine: str, base: str | None, options: list[str]) -> str:
    """Build the image and return its name."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    name = f"localhost/sealab:{version}"
    based = [] if base is None else ["--build-arg", f"BASE={base}"]
    subprocess.run([engine, "build", *based, *options, "--tag", name, "."], cwd=ROOT, check=True)
    return name


async def try_out(engine: str, image: str, options: list[str]) -> str:
    """Start the image over stdio, run a program, and return what came of it."""
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(command=engine, args=["run", "-i", "--rm", *options, image])
    async with Client(server, read_timeout_seconds=120) as client:
        answer = await client.call_tool("execute_code", {"code": "write_file('a', 'b')\nresult = sum(range(10))"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == 45, answer.structured_content
    return f"{image} answered {answer.structured_content['result']} over stdio"


def level(engine: str, image: str, options: list[str]) -> str:
    """Return the level that the sandbox has in a container of the image."""
    looked = [engine, "run", "--rm", *options, image, "doctor", "--json"]
    return str(json.loads(subprocess.run(looked, capture_output=True, check=False).stdout)["level"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", default="podman")
    parser.add_argument("--base")
    parser.add_argument("--build", default="", type=shlex.split)
    parser.add_argument("--run", default="", type=shlex.split)
    chosen = parser.parse_args()
    image = build(chosen.engine, chosen.base, chosen.build)
    said = asyncio.run(try_out(chosen.engine, image, chosen.run))
    print(f"{said}; its level is {level(chosen.engine, image, chosen.run)}")


if __name__ == "__main__":
    main()
