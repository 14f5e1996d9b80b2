"""Measures from nothing to the first answer, by uv, pipx, pip and an engine of containers: `make first-answer`.

    python -m tests.packaging.first_answer [--base IMAGE] [--build OPTIONS] [--run OPTIONS] [WAY ...]

Each way runs the commands of docs/install.md in a home and with caches of its own, on a machine where a client (Cursor)
was used before. The answer is what that client gets: it starts the entry that stands in its file then, and calls
`execute_code`. A way whose program is not on this machine is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INIT = "sealab init --yes"
WAYS: Mapping[str, tuple[str, ...]] = {
    "uv": ("uv tool install .", INIT),
    "pipx": ("pipx install .", INIT),
    "pip": ("python3 -m venv ~/.sealab", "~/.sealab/bin/pip install .", "~/.sealab/bin/sealab init --yes"),
    "docker": ("docker build -t sealab .",),
}
"""The commands of each way. In Docker the entry of the client is written by hand."""
DOCKER = ("run", "-i", "--rm", "-v", "sealab:/home/sealab", "sealab")
SALES = "north,120\nsouth,80\nnorth,40\nwest,90\n"
PROGRAM = """\
totals = collections.Counter()
for line in sales.split():
    region, amount = line.split(",")
    totals[region] += int(amount)
totals.most_common(1)
"""


def measure(way: str, place: Path, build: str, run: list[str]) -> float:
    """Run the commands of a way in an empty home, ask for an answer as a client, and return how many seconds it took."""
    home = place / "user"
    entries = home / ".cursor" / "mcp.json"
    entries.parent.mkdir(parents=True)
    by_hand = {"sealab": {"command": "docker", "args": [DOCKER[0], *run, *DOCKER[1:]]}}
    entries.write_text(json.dumps({"mcpServers": by_hand if way == "docker" else {}}))
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SEALAB_", "XDG_", "VIRTUAL_ENV"))
    }
    env = {**kept, "HOME": str(home), "PATH": f"{home}/.local/bin:{os.environ['PATH']}"}
    began = time.monotonic()
    for command in WAYS[way]:
        # An engine keeps its images outside of the home.
        done = subprocess.run(
            ["bash", "-c", command.replace("docker build", f"docker build --no-cache {build}")],
            cwd=ROOT, env=os.environ if way == "docker" else env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    asyncio.run(_ask(json.loads(entries.read_text())["mcpServers"]["sealab"], env))
    return time.monotonic() - began


async def _ask(entry: Mapping[str, object], env: Mapping[str, str]) -> None:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters.model_validate({**entry, "env": {**env, **(entry.get("env") or {})}})  # type: ignore[dict-item]
    async with Client(server, mode="2026-07-28", read_timeout_seconds=300) as client:
        answer = await client.call_tool("execute_code", {"code": PROGRAM, "context_vars": {"sales": SALES}})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == [["north", 160]], answer.structured_content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)} (default: all)")
    parser.add_argument("--base", help="the base image, in place of the Dockerfile's")
    parser.add_argument("--build", default="", help="options of the engine's build")
    parser.add_argument("--run", default="", type=shlex.split, help="options of the engine's run")
    chosen = parser.parse_args()
    build = f"{chosen.build} --build-arg BASE={shlex.quote(chosen.base)}" if chosen.base else chosen.build
    print("| way | commands | seconds |\n| --- | --- | --- |", flush=True)
    for way in chosen.ways or WAYS:
        if shutil.which({"pip": "python3"}.get(way, way)) is None:
            print(f"| {way} | is not on this machine | |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as place:
            print(f"| {way} | {len(WAYS[way])} | {measure(way, Path(place), build, chosen.run):.0f} |", flush=True)


if __name__ == "__main__":
    main()
