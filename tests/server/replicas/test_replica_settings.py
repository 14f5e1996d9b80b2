"""A server is one of several only with all that they have to share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealab.server.errors import SettingsError
from sealab.server.settings import Settings, read_settings

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
