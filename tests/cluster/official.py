"""The official conformance suite on the balancer, in both eras: each of its requests goes to the next replica.

The suite gives no token, so the balancer has a port where it puts one in. Its scenario of DNS rebinding is left out: it
is about servers on localhost that ask for no token, and fails by itself for any other address.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tests.conformance.check import FIXTURE_FREE, SKILLS, conformance, skills_extension
from tests.server.conftest import SEALAB, environment

from .checks import Check, Wrong, waited_for
from .harness import Running
from .report import LeftOutError

MODULES = Path(__file__).resolve().parents[2] / ".conformance" / "node_modules"
OF_LOCALHOST = frozenset({"dns-rebinding-protection"})


def suite(running: Running) -> str:
    """The scenarios that need no server made for the suite, and those of skills."""
    if shutil.which("node") is None or not MODULES.exists():
        raise LeftOutError("the suite or Node is not installed; `make cluster` installs both")
    first = next(iter(running.replicas.values()))
    imported = [*SEALAB, "skills", "import", "--examples", "--home", os.fspath(running.operator)]
    subprocess.run(imported, env=environment(**first.settings), capture_output=True, check=True, timeout=120)
    url, wanted = running.balancer.url_with(running.token()), 0
    waited_for(lambda: _listens(url), "the balancer's port with a token")
    said = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="sealab-suite-") as out, contextlib.redirect_stdout(said):
        wrong = []
        for revision, scenarios in FIXTURE_FREE.items():
            wrong += conformance(MODULES, url, revision, out, left_out=OF_LOCALHOST)
            wanted += len(scenarios - OF_LOCALHOST)
        wrong += skills_extension(MODULES, url, out)
    if wrong:
        raise Wrong(f"{len(wrong)} of the scenarios: {'; '.join(wrong)[:1500]}")
    return f"{wanted} scenarios of {' and '.join(FIXTURE_FREE)}, {len(SKILLS)} of skills"


def _listens(url: str) -> bool:
    where = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((where.hostname, where.port)) == 0


SUITES: dict[str, Check] = {"the conformance suite": suite}
