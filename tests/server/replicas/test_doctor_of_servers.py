"""What several servers must share, and what `sealab doctor` says of those that use one database."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from sealab.server.base.errors import SettingsError
from sealab.server.base.settings import Settings, read_settings
from sealab.server.use_cases.replicas.replica_keys import ReplicaKeys
from sealab.skills_db.engine import open_database
from sealab.skills_db.replicas import ReplicaStore
from sealab.skills_db.vault_root import root_of

from ...skills_db.postgres import Cluster
from ..command_line import sealab_process

ADDRESS = "http://127.0.0.1:9"


@pytest.mark.parametrize("is_same", [True, False])
def test_a_program_with_another_key_than_the_servers_is_not_well(
    cluster: Cluster, tmp_path: Path, is_same: bool
) -> None:
    own, theirs = secrets.token_bytes(32), secrets.token_bytes(32)
    url, server = cluster.create(f"doctor_{secrets.token_hex(4)}"), secrets.token_hex(8)
    with open_database(url, tmp_path) as database:
        mark = ReplicaKeys(root_of(database, own) if is_same else theirs).address_mark(server, ADDRESS)
        ReplicaStore(database).join(server, 1, ADDRESS, mark, "0", seconds=120)
    env = {"SEALAB_DATABASE_URL": url, "SEALAB_VAULT_KEY": own.hex()}
    ended = sealab_process("doctor", "--json", "--home", str(tmp_path), **env)
    found = json.loads(ended.stdout)["database"]
    assert found["ok"] is is_same
    assert ("another VAULT_KEY" in found["note"]) is not is_same
    assert (ended.returncode == 0) is is_same


SHARED = {"SEALAB_DATABASE_URL": "postgresql://db.example/sealab", "SEALAB_VAULT_KEY": "aa" * 32}


def settings(tmp_path: Path, **env: str) -> Settings:
    given = {"SEALAB_REPLICA_ADDRESS": "http://10.0.0.3:8000/", **env}
    return read_settings(file=tmp_path / "x", file_required=False, environment=given, command_line={})


def test_the_address_is_taken_with_a_shared_database_and_key(tmp_path: Path) -> None:
    assert settings(tmp_path, **SHARED).replica_address == "http://10.0.0.3:8000"


@pytest.mark.parametrize("missing", SHARED)
def test_the_address_without_a_shared_database_or_key_is_refused(tmp_path: Path, missing: str) -> None:
    with pytest.raises(SettingsError, match=missing.removeprefix("SEALAB_")):
        settings(tmp_path, **{name: value for name, value in SHARED.items() if name != missing})


@pytest.mark.parametrize("address", ["10.0.0.3:8000", "http://10.0.0.3:8000/path", "ftp://x", "http://user@x"])
def test_what_is_no_address_of_a_server_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingsError, match=r"REPLICA_ADDRESS.*Give a URL without a path"):
        settings(tmp_path, **SHARED, SEALAB_REPLICA_ADDRESS=address)
