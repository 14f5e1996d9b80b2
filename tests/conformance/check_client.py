"""Outside checks of sealab as a client: the official conformance suite against `client.py`, in both protocol eras.

Run by `make conformance`. Few scenarios run at a time, since each starts a Python and the suite judges by the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMON = (
    "tools_call", "auth/basic-cimd", "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2",
    "auth/metadata-var3", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
    "auth/pre-registration", "json-schema-2020-12-preservation",
)  # fmt: skip
SCENARIOS = {
    "2025-11-25": ("initialize", "elicitation-sep1034-client-defaults", "sse-retry", *COMMON),
    "2026-07-28": (
        *COMMON, "request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers",
        "http-invalid-tool-headers", "json-schema-ref-no-deref", "auth/resource-mismatch",
        "auth/offline-access-scope", "auth/offline-access-not-supported", "auth/authorization-server-migration",
        "auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer",
        "auth/iss-unexpected", "auth/iss-normalized", "auth/metadata-issuer-mismatch",
    ),
}  # fmt: skip
EXPECTED_TO_FAIL = {
    "auth/basic-cimd": "sealab has no URL at which every issuer could fetch a document on it, and registers instead",
    "auth/pre-registration": "mcp.json has no place for a client that was registered by hand; headers carry such tokens",
}
AT_A_TIME = max(1, (os.cpu_count() or 1))


def passes(modules: Path, revision: str, scenario: str, out: str) -> tuple[bool, str]:
    """Run one scenario; return whether it passed, and what it printed."""
    client = f"{sys.executable} {Path(__file__).with_name('client.py')}"
    command = [
        *("node", str(modules / "@modelcontextprotocol/conformance/dist/index.js"), "client", "--command", client),
        *("--scenario", scenario, "--spec-version", revision, "--timeout", "90000", "-o", out),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    except subprocess.TimeoutExpired:
        return False, "it did not end"
    return done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", type=Path)
    modules = parser.parse_args().modules
    cases = [(revision, scenario) for revision, scenarios in SCENARIOS.items() for scenario in scenarios]
    good, wrong = Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="sealab-conformance-") as out, ThreadPoolExecutor(AT_A_TIME) as threads:
        results = threads.map(lambda case: passes(modules, *case, out), cases)
        for (revision, scenario), (passed, printed) in zip(cases, results, strict=True):
            good[revision] += passed
            if passed is not (scenario in EXPECTED_TO_FAIL):
                continue
            how = "passes, though it is listed as failing" if passed else f"failed\n{printed}"
            wrong.append(f"client {revision} {scenario}: {how}")
            print(wrong[-1], file=sys.stderr, flush=True)
    for revision, scenarios in SCENARIOS.items():
        print(f"conformance as a client, {revision}: {good[revision]} of {len(scenarios)} scenarios pass")
    for scenario, reason in EXPECTED_TO_FAIL.items():
        print(f"  {scenario} does not: {reason}")
    print(f"{len(cases) - len(wrong)} as expected, {len(wrong)} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
