"""The vault's key is made once and never lost silently; tools are given what their server's policy allows."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend

from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import VaultKeyError
from sealab.server.base.settings import Settings
from sealab.server.privacy.gates.tool_gate import RestorePolicy
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.tokens.keys import master_key
from sealab.skills_db.vault import Value, Vault

KEY = bytes(range(32))


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 5.0  # type: ignore[assignment]  # a class property in the library

    def __init__(self, *, locked: bool = False) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = locked

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise RuntimeError("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


# The library chooses among all that there are: no other test may get this one.
KeyringBackend._classes.discard(Ring)


@pytest.fixture
def ring(request: pytest.FixtureRequest) -> Any:
    before = keyring.get_keyring()
    keyring.set_keyring(made := Ring())
    yield made
    keyring.set_keyring(before)


def test_without_a_keyring_the_key_is_a_file_that_its_owner_alone_reads(tmp_path: Path) -> None:
    key = master_key(None, tmp_path, keyring=False)
    file = tmp_path / "vault.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert base64.b64decode(file.read_bytes()) == key
    assert master_key(None, tmp_path, keyring=False) == key
    assert [path.name for path in tmp_path.iterdir()] == ["vault.key"]


@pytest.mark.parametrize("asks_keyring", [False, True])
def test_where_there_has_to_be_a_key_and_there_is_none_no_other_is_made(
    tmp_path: Path, ring: Ring, asks_keyring: bool
) -> None:
    with pytest.raises(VaultKeyError, match="it is gone"):
        master_key(None, tmp_path, keyring=asks_keyring, is_needed=lambda: True)
    assert not list(tmp_path.iterdir())
    assert not ring.kept


def test_where_the_vault_has_a_key_and_it_is_gone_no_other_is_made(tmp_path: Path) -> None:
    def opened() -> Vault:
        return Privacy(Settings(vault_keyring=False), tmp_path, database).vault()

    database = HomeDatabase(None, tmp_path)
    file = tmp_path / "vault.key"
    try:
        entry = opened().tokens_for("home", [Value("EMAIL", "ana@corp.example")])[0]
        kept = file.read_bytes()
        file.unlink()
        for _ in range(2):
            with pytest.raises(VaultKeyError, match=r"it is gone: there is no file .*vault\.key\. Put it back"):
                opened()
            assert not file.exists()
        file.write_bytes(kept)
        file.chmod(0o600)
        assert opened().resolve("home", [entry.token])[entry.token].value.text == "ana@corp.example"
    finally:
        database.close()


def test_a_key_that_another_process_makes_meanwhile_is_taken(tmp_path: Path) -> None:
    made: list[bytes] = []

    def make() -> bool:
        made.append(master_key(None, tmp_path, keyring=False))
        return True

    assert master_key(None, tmp_path, keyring=False, is_needed=make) == made[0]


def test_a_keyring_keeps_the_key_of_each_home(tmp_path: Path, ring: Ring) -> None:
    for home in ("one", "two"):
        (tmp_path / home).mkdir()
    key = master_key(None, tmp_path / "one")
    assert master_key(None, tmp_path / "one") == key != master_key(None, tmp_path / "two")
    assert len(ring.kept) == 2
    assert not list(tmp_path.rglob("vault.key"))


def test_a_keyring_that_does_not_answer_is_an_error_not_a_new_key(tmp_path: Path, ring: Ring) -> None:
    ring.locked = True
    with pytest.raises(VaultKeyError, match="Unlock it"):
        master_key(None, tmp_path)


@pytest.mark.parametrize("setting", [KEY.hex(), base64.b64encode(KEY).decode()])
def test_the_setting_may_be_the_key_itself(tmp_path: Path, setting: str) -> None:
    assert master_key(setting, tmp_path) == KEY
    assert not list(tmp_path.iterdir())


def test_the_setting_may_be_a_passphrase_but_not_a_short_one(tmp_path: Path) -> None:
    long = master_key("correct horse battery staple", tmp_path)
    assert len(long) == 32
    assert master_key("correct horse battery staple", tmp_path) == long
    with pytest.raises(VaultKeyError, match="20 characters"):
        master_key("short", tmp_path)


@pytest.mark.parametrize("content", [b"", b"not base64!", base64.b64encode(b"too short")])
def test_a_key_file_that_holds_no_key_is_an_error_not_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "vault.key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(VaultKeyError):
        master_key(None, tmp_path, keyring=False)
    assert file.read_bytes() == content


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    master_key(None, tmp_path, keyring=False)
    (tmp_path / "vault.key").chmod(0o640)
    with pytest.raises(VaultKeyError, match="chmod 600"):
        master_key(None, tmp_path, keyring=False)


@pytest.mark.parametrize(
    ("rule", "tool", "path", "kind", "allowed"),
    [
        (None, "send", ("to",), "EMAIL", True),
        (True, "send", ("to",), "EMAIL", True),
        (False, "send", ("to",), "EMAIL", False),
        (None, "send", ("to",), "SECRET", False),
        (True, "send", ("to",), "SECRET", False),
        (["send_*"], "send_mail", ("to",), "EMAIL", True),
        (["send_*"], "drop", ("to",), "EMAIL", False),
        (["*"], "send", ("to",), "SECRET", False),
        ({"EMAIL": ["send.to"]}, "send", ("to", "0"), "EMAIL", True),
        ({"EMAIL": ["send.to"]}, "send", ("body",), "EMAIL", False),
        ({"EMAIL": ["send"]}, "send", ("to",), "PERSON", False),
        ({"*": True}, "send", ("to",), "PERSON", True),
        ({"*": ["*"]}, "login", ("token",), "SECRET", False),
        ({"SECRET": ["login.*"]}, "login", ("token",), "SECRET", False),
        ({"SECRET": ["login"]}, "login", ("token",), "SECRET", False),
        ({"SECRET": ["login.token"]}, "login", ("token",), "SECRET", True),
        ({"SECRET": ["login.token"]}, "login", ("user",), "SECRET", False),
        (7, "send", ("to",), "EMAIL", False),
        (None, "send", ("body",), "IBAN", False),
        (True, "send", ("body",), "IBAN", True),
        (["send"], "send", ("body",), "IBAN", True),
        ({"*": True}, "send", ("body",), "SSN", False),
        ({"*": True, "SSN": ["send.body"]}, "send", ("body",), "SSN", True),
        ({"*": True}, "makePayment", ("note",), "CARD", True),
        (None, "send", ("payee", "ibanNumber"), "IBAN", True),
        (None, "create_company", ("panorama",), "CARD", False),
        (None, "create_card", ("description",), "CARD", False),
        (None, "create_order", ("card",), "CARD", True),
        (None, "create_document", ("content",), "PASSPORT", False),
        (None, "check_in", ("documentNumber",), "PASSPORT", True),
        (None, "create_account", ("notes",), "IBAN", False),
        (None, "refund", ("account",), "IBAN", True),
        (None, "transfer", ("to",), "IBAN", True),
        (None, "transfer_file", ("to",), "IBAN", False),
        (None, "health_check", ("text",), "MEDICAL", False),
        (None, "install_driver", ("note",), "DL", False),
        (None, "book_flight", ("travellers", "0", "passport_no"), "PASSPORT", True),
        (None, "book_flight", ("travellers", "0", "name"), "PASSPORT", False),
    ],
)
def test_what_a_tool_may_be_given_is_what_its_server_says(
    rule: object, tool: str, path: tuple[str, ...], kind: str, allowed: bool
) -> None:
    assert RestorePolicy(rule).allows(tool, path, kind) is allowed


def test_a_schema_asks_for_a_number_by_what_it_says_of_the_argument() -> None:
    schema = {
        "properties": {
            "recipient": {"type": "string", "description": "IBAN of the recipient"},
            "traveller": {"anyOf": [{"properties": {"doc": {"title": "Passport"}}}, {"type": "null"}]},
            "subject": {"type": "string", "description": "What it is for"},
        }
    }
    policy = RestorePolicy(None, schema)
    assert policy.allows("send", ("recipient",), "IBAN")
    assert policy.allows("send", ("traveller", "doc"), "PASSPORT")
    assert not policy.allows("send", ("subject",), "IBAN")
    assert not policy.allows("send", ("recipient",), "SSN")
