"""Writes typed stubs of a folder of `tools/list` results, and checks them with mypy in strict mode.

python tests/benchmarks/stubs.py FOLDER
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.describing.stubs import write_stubs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    lists = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        started = time.perf_counter()
        catalog = Catalog.load(lists, folder / "lists", {})
        loaded = time.perf_counter()
        done = write_stubs(catalog, folder / "stubs")
        written = time.perf_counter()
        print(f"{done.tools} tools of {done.servers} servers loaded in {loaded - started:.2f} s")
        print(f"{len(done.written)} files written in {written - loaded:.2f} s")
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "stubs"]
        return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
