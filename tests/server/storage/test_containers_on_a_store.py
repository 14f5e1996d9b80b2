"""Full Python in a container sees the files of an object store, as those of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import obstore
import pytest

from ...object_stores import moto
from ...sandbox.containers import needs_podman
from .. import command_line

pytestmark = needs_podman

READS = """
from pathlib import Path
found = sorted(str(each.relative_to("/workspace")) for each in Path("/workspace").rglob("*") if each.is_file())
[found, Path("/workspace/data/a.txt").read_text()]
"""
WRITES = """
write_file("made/by container.txt", "new")
write_file("data/a.txt", "one, more")
from pathlib import Path
[Path("/workspace/made/by container.txt").read_text(), Path("/workspace/data/a.txt").read_text()]
"""


@pytest.mark.timeout(600)
def test_code_in_a_container_reads_and_writes_files_of_a_store(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    built = command_line.sealab("container", "build", "--json", "--home", str(home))
    assert built.returncode == 0, built.stderr
    with moto() as s3:
        bucket = s3.bucket()
        env = {**s3.environment, "SEALAB_WORKSPACE_URL": f"s3://{bucket}/team"}
        obstore.put(s3.client(bucket), "team/data/a.txt", b"one")

        def run(where: Path, code: str, *arguments: str) -> dict[str, object]:
            given = ("run", "-", "--json", "--home", str(where), *arguments)
            done = command_line.sealab(*given, stdin=code, **env)
            assert done.stdout, done.stderr
            report: dict[str, object] = json.loads(done.stdout)
            assert report["status"] == "ok", json.dumps(report)
            return report

        read = run(home, READS, "--isolation", "container")
        assert (read["isolation"], read["result"]) == ("container", [["data/a.txt"], "one"])
        wrote = run(home, WRITES, "--isolation", "container")
        assert (wrote["isolation"], wrote["result"]) == ("container", ["new", "one, more"])
        elsewhere = run(other, "import os\n[open('data/a.txt').read(), open('made/by container.txt').read()]")
        assert elsewhere["result"] == ["one, more", "new"]
        obstore.put(s3.client(bucket), "team/data/a.txt", b"two")
        again = run(home, READS, "--isolation", "container")
        assert again["result"] == [["data/a.txt", "made/by container.txt"], "two"]
