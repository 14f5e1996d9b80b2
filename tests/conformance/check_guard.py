"""The official conformance suite on servers behind `sealab guard`, beside the same servers without it, in both eras.

Run by `make conformance`: no check that passes without the guard may fail with it. Both are reached over the same bridge.
Where one fails, the suite is run behind the guard once more.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from check import free_port, wait_for

HERE = Path(__file__).resolve().parent
REVISIONS = ("2025-11-25", "2026-07-28")
ALLOWED = ("--allow", "John Doe")
"""The suite compares the default of a field, a name, which a guard would hide."""
PASSED = "SUCCESS"

Checks = Counter[tuple[str, str, str]]
"""How often a check of a scenario ended in some way."""


def servers(upstreams: Path) -> dict[str, list[str]]:
    everything = upstreams / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    return {
        "reference": [sys.executable, "-W", "ignore", str(HERE / "reference_server.py")],
        "everything": [str(upstreams / "node"), str(everything)],
    }


def checks(modules: Path, revision: str, command: list[str], scratch: Path) -> Checks:
    """Run one revision's scenarios on a server, and return what became of each check."""
    port = free_port()
    environment = os.environ | {"SEALAB_VAULT_KEYRING": "false"}
    bridge = [sys.executable, str(HERE / "stdio_bridge.py"), str(port), *command]
    with (scratch / "stderr").open("ab") as stderr:
        served = subprocess.Popen(bridge, env=environment, stderr=stderr)
    try:
        wait_for(port, served)
        suite = ["node", str(modules / "@modelcontextprotocol/conformance/dist/index.js"), "server"]
        asked = ["--url", f"http://127.0.0.1:{port}/mcp", "--requirements", revision, "-o", str(scratch / "out")]
        subprocess.run([*suite, *asked], capture_output=True, timeout=3600, check=False)
    finally:
        served.terminate()
        served.wait(30)
    found: Checks = Counter()
    for file in sorted((scratch / "out").glob("**/checks.json")):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*", "", file.parent.name)
        found.update((scenario, check["id"], check["status"]) for check in json.loads(file.read_text()))
    return found


def passing(found: Checks) -> Counter[tuple[str, str]]:
    return Counter({(scenario, check): count for (scenario, check, status), count in found.items() if status == PASSED})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", type=Path)
    parser.add_argument("upstreams", type=Path)
    chosen = parser.parse_args()
    modules, upstreams = chosen.modules, chosen.upstreams.absolute()
    sealab = str(Path(sys.executable).with_name("sealab"))
    wrong = []
    with tempfile.TemporaryDirectory(prefix="sealab-conformance-") as scratch:
        for name, command in servers(upstreams).items():
            guard = [sealab, "guard", "--home", f"{scratch}/home", *ALLOWED, "--"]
            for revision in REVISIONS:
                both = []
                for at, prefix in enumerate(([], guard)):
                    folder = Path(scratch, f"{name}-{revision}-{at}")
                    folder.mkdir()
                    both.append(passing(checks(modules, revision, [*prefix, *command], folder)))
                alone, behind = both
                if alone - behind:  # the suite judges by the clock, and each session starts a guard
                    folder = Path(scratch, f"{name}-{revision}-again")
                    folder.mkdir()
                    behind |= passing(checks(modules, revision, [*guard, *command], folder))
                worse = sorted(alone - behind)
                scenarios = [len({scenario for scenario, _check in each}) for each in both]
                print(
                    f"{name}, {revision}: {alone.total()} checks of {scenarios[0]} scenarios pass without the guard, "
                    f"{behind.total()} of {scenarios[1]} with it",
                    flush=True,
                )
                if not alone:
                    wrong.append(f"{name}, {revision}: the suite did not run")
                wrong += [
                    f"{name}, {revision}: {scenario}, {check} passes without the guard alone"
                    for scenario, check in worse
                ]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
