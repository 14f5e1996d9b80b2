"""What `sealab doctor` says of the servers that use its database."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from sealab.server.replicas.replica_keys import ReplicaKeys
from sealab.skills_db.engine import open_database
from sealab.skills_db.replicas.replica_store import ReplicaStore

from ...skills_db.conftest import cluster  # noqa: F401 - the fixture
from ...skills_db.postgres import Cluster
from ..command_line import sealab_process

ADDRESS = "http://127.0.0.1:9"


@pytest.mark.parametrize("is_same", [True, False])
def test_a_program_with_another_key_than_the_servers_is_not_well(
    cluster: Cluster,  # noqa: F811 - the fixture
    tmp_path: Path,
    is_same: bool,
) -> None:
    own, theirs = secrets.token_bytes(32), secrets.token_bytes(32)
    url, server = cluster.create(f"doctor_{secrets.token_hex(4)}"), secrets.token_hex(8)
    with open_database(url, tmp_path) as database:
        mark = ReplicaKeys(own if is_same else theirs).address_mark(server, ADDRESS)
        ReplicaStore(database).join(server, 1, ADDRESS, mark, "0", seconds=120)
    env = {"SEALAB_DATABASE_URL": url, "SEALAB_VAULT_KEY": own.hex()}
    ended = sealab_process("doctor", "--json", "--home", str(tmp_path), **env)
    found = json.loads(ended.stdout)["database"]
    assert found["ok"] is is_same
    assert ("another VAULT_KEY" in found["note"]) is not is_same
    assert (ended.returncode == 0) is is_same
