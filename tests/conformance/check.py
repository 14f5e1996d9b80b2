"""Outside checks of the server: the official conformance suite in both eras, and the inspector's check of skills.

Run by `make conformance`, which installs Node and both packages below `.conformance/`. Scenarios that need a server
made for the suite (tools with given names and answers) cannot apply to sealab and are counted, not judged.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODE = ["node"]
FIXTURE_FREE = {
    "2025-11-25": {
        "server-initialize", "ping", "tools-list", "tools-call-error", "server-sse-multiple-streams",
        "resources-list", "prompts-list", "dns-rebinding-protection", "server-session-lifecycle",
    },
    "2026-07-28": {
        "tools-call-error", "server-sse-multiple-streams", "resources-list", "prompts-list",
        "dns-rebinding-protection", "sep-2164-resource-not-found", "caching", "http-header-validation",
    },
}  # fmt: skip
SKILLS = ("sep-2640-skills-enumeration", "sep-2640-skills-directory", "sep-2640-skills-manifest")
SUMMARY_LINE = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"the server ended with status {server.returncode} before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit("the server did not listen within 20 seconds")


def conformance(
    modules: Path, url: str, revision: str, out: str, *, left_out: frozenset[str] = frozenset()
) -> list[str]:
    """Run one revision's scenarios; return what is wrong, one line each. What is `left_out` is not judged."""
    command = [
        *NODE,
        str(modules / "@modelcontextprotocol/conformance/dist/index.js"),
        *("server", "--url", url, "--requirements", revision, "-o", out),
    ]
    text = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
    seen = {name: (mark == "✓", int(passed)) for mark, name, passed, _ in SUMMARY_LINE.findall(text)}
    wanted = FIXTURE_FREE[revision] - left_out
    wrong = [f"{revision} {name}: did not run" for name in sorted(wanted - seen.keys())]
    wrong += [f"{revision} {name}: failed" for name in sorted(wanted & seen.keys()) if not seen[name][0]]
    passed = sum(seen[name][0] for name in wanted & seen.keys())
    print(f"conformance {revision}: {passed} of {len(wanted)} scenarios that need no fixture pass", flush=True)
    others = sorted(name for name, (ok, _) in seen.items() if ok and name not in wanted)
    print(
        f"  also passing: {', '.join(others) or 'none'}; {len(seen) - len(wanted) - len(others)} need a fixture server"
    )
    return wrong


def authorization(modules: Path) -> list[str]:
    """Return the scenarios of authorization that apply to servers, of which the suite had none so far.

    What it has are for clients, and for authorization servers; `tests/server/protocol/web/test_oauth.py` checks ours.
    """
    suite = str(modules / "@modelcontextprotocol/conformance/dist/index.js")
    text = subprocess.run([*NODE, suite, "list"], capture_output=True, text=True, timeout=60, check=True).stdout
    of_servers = text.partition("Server scenarios")[2].partition("Client scenarios")[0]
    found = [name for name in re.findall(r"^  - (\S+)", of_servers, re.MULTILINE) if "auth" in name or "token" in name]
    print(f"conformance authorization: {len(found)} scenarios for servers", flush=True)
    return [f"{name}: a scenario of authorization for servers, which is not run yet" for name in found]


def skills_extension(modules: Path, url: str, out: str) -> list[str]:
    """Run the scenarios of the Skills extension (SEP-2640); return what is wrong, one line each."""
    wrong = []
    for scenario in SKILLS:
        command = [
            *NODE,
            str(modules / "@modelcontextprotocol/conformance/dist/index.js"),
            *("server", "--url", url, "--scenario", scenario, "-o", out),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        print(f"conformance {scenario}: {'passes' if done.returncode == 0 else 'FAILS'}", flush=True)
        if done.returncode != 0:
            wrong.append(f"{scenario}: {(done.stdout + done.stderr)[-3000:]}")
    return wrong


def verified_skills(modules: Path, sealab: str, home: str) -> list[str]:
    """List the skills with the inspector and check each file against its digest, over stdio."""
    command = [
        *NODE,
        str(modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
        *("--cli", "--method", "skills/list", "--verify", "--protocol-era", "modern", "--format", "json", "-q", "--"),
        *(sealab, "serve", "--home", home),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(f"inspector skills/list --verify: exit {done.returncode}", flush=True)
    if done.returncode != 0 or "csv-profile" not in done.stdout:
        return [f"inspector skills/list --verify: exit {done.returncode}: {(done.stderr or done.stdout)[-2000:]}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", type=Path)
    modules = parser.parse_args().modules
    sealab = str(Path(sys.executable).with_name("sealab"))
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="sealab-conformance-") as scratch:
        environment = os.environ | {"SEALAB_HOME": f"{scratch}/http"}
        log = Path(scratch, "server.log")
        for home in ("http", "stdio"):
            brought = [sealab, "skills", "import", "--examples", "--home", f"{scratch}/{home}"]
            subprocess.run(brought, check=True, capture_output=True, timeout=120)
        with log.open("wb") as stderr:
            server = subprocess.Popen([sealab, "serve", "--http", f"127.0.0.1:{port}"], env=environment, stderr=stderr)
        wrong = ["the checks did not end"]
        try:
            wait_for(port, server)
            url = f"http://127.0.0.1:{port}/mcp"
            wrong = [
                line for revision in FIXTURE_FREE for line in conformance(modules, url, revision, f"{scratch}/out")
            ]
            wrong += authorization(modules)
            wrong += skills_extension(modules, url, f"{scratch}/out")
            wrong += verified_skills(modules, sealab, f"{scratch}/stdio")
        finally:
            server.terminate()
            server.wait(20)
            if wrong or server.returncode not in (0, -15):
                print(log.read_text(errors="replace")[-20_000:], file=sys.stderr)
    for line in wrong:
        print(line, file=sys.stderr)
    good = sum(map(len, FIXTURE_FREE.values())) + len(SKILLS) + 1 - len(wrong)
    print(f"{good} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
