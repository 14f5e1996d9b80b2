"""`sealab vault rotate`: servers go on, the key before opens nothing, and a failure at any moment loses nothing."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import VaultKeyError
from sealab.server.base.settings import Settings
from sealab.server.privacy.tokens import keys
from sealab.skills_db.sql import sa
from sealab.skills_db.tables import VAULT
from sealab.skills_db.vault_keys import KEY_BYTES, VaultKeys
from sealab.skills_db.vault_root import is_wrapped, root_of

from ..command_line import Ended, sealab
from ..conftest import in_this_process

FILE = {"SEALAB_VAULT_KEYRING": "false"}
MAIL = "mail ana.feather@corp.example"


def command(home: Path, *words: str, stdin: str = "", **env: str) -> Ended:
    return sealab(*words, "--home", str(home), stdin=stdin, **{**FILE, **env})


async def test_a_server_that_runs_goes_on_and_the_key_before_opens_nothing(tmp_path: Path) -> None:
    file = tmp_path / "vault.key"
    async with in_this_process(tmp_path, FILE | {"SEALAB_WORKERS_SPARE": "1"}) as caller:
        hidden = (await caller.call("sanitize_pii", text=MAIL)).structured_content["sanitized_text"]
        old = file.read_bytes()
        database = HomeDatabase(None, tmp_path)
        with database().read() as connection:
            sealed = str(connection.execute(sa.select(VAULT.c.wrapped)).scalar_one())
        told = command(tmp_path, "vault", "rotate", "--json").told
        assert (await caller.call("restore_pii", text=hidden)).structured_content["restored_text"] == MAIL
        later = (await caller.call("sanitize_pii", text="jonas.w@example.org")).structured_content["sanitized_text"]
    database.close()
    assert told == {"rotated": True, "kept_in": str(file)}
    assert (file.read_bytes() != old, file.stat().st_mode & 0o777) == (True, 0o600)
    files = await asyncio.to_thread(lambda: b"".join(each.read_bytes() for each in tmp_path.glob("sealab.db*")))
    assert sealed.encode().strip(b'[]"') not in files
    restored = command(tmp_path, "pii", "restore", stdin=f"{hidden} {later}")
    assert restored.stdout == f"{MAIL} jonas.w@example.org"
    assert "none was changed" in command(tmp_path, "audit", "verify").stdout
    file.write_bytes(old)
    assert "Give the key that it has now" in command(tmp_path, "pii", "restore", stdin=hidden).refusal()


def test_a_key_of_the_operator_is_printed_once_and_then_the_only_one(tmp_path: Path) -> None:
    old = {"SEALAB_VAULT_KEY": "11" * 32}
    hidden = command(tmp_path, "pii", "sanitize", stdin=MAIL, **old).stdout
    new = command(tmp_path, "vault", "rotate", **old).stdout.strip()
    assert len(base64.b64decode(new)) == KEY_BYTES
    assert command(tmp_path, "pii", "restore", stdin=hidden, SEALAB_VAULT_KEY=new).stdout == MAIL
    assert "another key" in command(tmp_path, "pii", "restore", stdin=hidden, **old).refusal()
    assert not (tmp_path / "vault.key").exists()


@pytest.mark.parametrize("moment", ["before it is kept", "after it is kept"])
def test_a_crash_while_the_key_changes_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    settings, database = Settings(vault_keyring=False), HomeDatabase(None, tmp_path)
    root = keys.root_key(settings, tmp_path, database())

    class Crash(BaseException):
        pass

    def crash(file: Path, new: bytes, put: Any) -> None:
        if moment == "after it is kept":
            written(file, new, put)
        raise Crash

    written = keys._write_file
    monkeypatch.setattr(keys, "_write_file", crash)
    with pytest.raises(Crash):
        keys.rotate(settings, tmp_path, database(), print)
    monkeypatch.undo()
    assert keys.root_key(settings, tmp_path, database()) == root
    keys.rotate(settings, tmp_path, database(), print)
    assert keys.root_key(settings, tmp_path, database()) == root
    database.close()


def test_two_commands_do_not_change_it_at_once(tmp_path: Path) -> None:
    settings, database = Settings(vault_keyring=False), HomeDatabase(None, tmp_path)
    keys.root_key(settings, tmp_path, database())
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with pytest.raises(VaultKeyError, match="by another command"):
            keys.rotate(settings, tmp_path, database(), print)
    finally:
        os.close(folder)
        database.close()


def test_a_vault_of_an_earlier_version_keeps_its_key_as_root_and_that_is_said(tmp_path: Path) -> None:
    database = HomeDatabase(None, tmp_path)
    key = keys.master_key(None, tmp_path, keyring=False)
    with database().transaction() as connection:
        connection.execute(sa.update(VAULT).values(key_mark=VaultKeys(key).mark))
    assert (root_of(database(), key), is_wrapped(database())) == (key, False)
    done = command(tmp_path, "vault", "rotate")
    assert (done.returncode, "made by an earlier version" in done.stderr) == (0, True)
    new = keys.master_key(None, tmp_path, keyring=False)
    assert (new != key, root_of(database(), new)) == (True, key)
    database.close()
