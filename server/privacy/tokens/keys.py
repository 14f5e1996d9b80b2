"""Where the vault's master key comes from: the setting, the keyring of the operating system, or a file of its own.

A security boundary: the key and the database together give the values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...base.errors import VaultKeyError

FILE_NAME = "vault.key"
KEY_BYTES = 32
SERVICE = "sealab vault"

_LOG = logging.getLogger(__name__)


def master_key(
    setting: str | None, home: Path, *, keyring: bool = True, is_needed: Callable[[], bool] = lambda: False
) -> bytes:
    """Return the 32 bytes of the key, made at first use.

    `setting` (VAULT_KEY) wins: 32 bytes in base64 or hexadecimal, or a passphrase of 20 characters at least. Else the
    key file in the home, where there is one; else the entry of this home in the system's keyring, where `keyring` may
    be asked; else a new key, kept in the keyring, or in the key file with mode 0600 where there is no keyring.
    Raises `VaultKeyError` where a key is there and cannot be used, and where there is none and the vault was made with
    one, which `is_needed` says: a new one would make the vault unreadable.
    """
    if setting is not None:
        return _from_setting(setting)
    file = home / FILE_NAME
    ring = _Keyring.of_this_machine(str(home.resolve())) if keyring else None
    kept = _kept(file, ring)
    if kept is None and is_needed():
        kept = _kept(file, ring)  # another process may have made it just now, and the vault with it
        if kept is None:
            raise _missing(file, keyring=keyring)
    if kept is not None:
        return kept
    made = secrets.token_bytes(KEY_BYTES)
    if ring is not None and ring.keep(_encoded(made)):
        return made
    return _made_file(file, made)


def _kept(file: Path, ring: _Keyring | None) -> bytes | None:
    with suppress(FileNotFoundError):
        return _from_file(file)
    kept = None if ring is None else ring.get()
    return None if kept is None else _decoded(kept, "the keyring's entry for this home")


def _missing(file: Path, *, keyring: bool) -> VaultKeyError:
    return VaultKeyError(
        f"The vault was made with a key, and it is gone: there is no file {file}"
        + (", and no entry of the keyring for this home. " if keyring else ". ")
        + "Put it back, or give it as VAULT_KEY; without it nobody can read the vault."
    )


def _from_setting(setting: str) -> bytes:
    for decode in (bytes.fromhex, lambda text: base64.b64decode(text, validate=True), base64.urlsafe_b64decode):
        with suppress(ValueError, binascii.Error):
            if len(key := decode(setting)) == KEY_BYTES:
                return key
    if len(setting) < 20:  # noqa: PLR2004 - said in the message
        raise VaultKeyError(
            "VAULT_KEY is too short to be a key. Give 32 bytes in base64 or hexadecimal, or a passphrase of 20 "
            "characters at least."
        )
    # The salt only keeps other programs' tables from fitting: a passphrase must be the same key on every server.
    return hashlib.scrypt(setting.encode(), salt=b"sealab vault key", n=1 << 14, r=8, p=1, dklen=KEY_BYTES)


def _from_file(file: Path) -> bytes:
    try:
        status = file.stat()
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise VaultKeyError(f"Others can read the vault's key file {file}. Run: chmod 600 {file}")
        return _decoded(file.read_text(encoding="ascii"), f"the vault's key file {file}")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise VaultKeyError(
            f"The vault's key file {file} cannot be read: {error}. Correct its permissions or put its backup back."
        ) from error


def _made_file(file: Path, key: bytes) -> bytes:
    """Write the key file whole, or take the one that another process wrote first."""
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as written:
                written.write(_encoded(key).encode("ascii") + b"\n")
                written.flush()
                os.fsync(written.fileno())
            with suppress(FileExistsError):
                os.link(new, file)  # unlike a rename, never over a key that is there
        finally:
            new.unlink(missing_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise VaultKeyError(
            f"The vault's key file {file} cannot be written: {error.strerror}. Set VAULT_KEY, or correct the folder's "
            "permissions."
        ) from error
    return _from_file(file)


class _Keyring:
    def __init__(
        self, account: str, get: Callable[[str, str], str | None], put: Callable[[str, str, str], None]
    ) -> None:
        self._account = account
        self._get = get
        self._put = put

    @classmethod
    def of_this_machine(cls, account: str) -> _Keyring | None:
        """Return the keyring, or None where this machine has none that can be used without asking anybody."""
        try:
            import keyring
            from keyring.backends import fail

            backend = keyring.get_keyring()
            if isinstance(backend, fail.Keyring) or backend.priority <= 0:
                return None
        except Exception as error:  # noqa: BLE001 - backends are other people's code and raise anything
            _LOG.info("The system's keyring cannot be used: %s", error)
            return None
        return cls(account, backend.get_password, backend.set_password)

    def get(self) -> str | None:
        """Return what is kept. Raises `VaultKeyError` where the keyring does not say whether there is a key."""
        try:
            return self._get(SERVICE, self._account)
        except Exception as error:
            raise VaultKeyError(
                f"The system's keyring did not answer: {error}. Unlock it, or set VAULT_KEY or KEYRING=false."
            ) from error

    def keep(self, key: str) -> bool:
        """Keep the key; return whether it can be read back."""
        try:
            self._put(SERVICE, self._account, key)
            return self._get(SERVICE, self._account) == key
        except Exception as error:  # noqa: BLE001 - as above
            _LOG.info("The system's keyring keeps no key: %s", error)
            return False


def _encoded(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise VaultKeyError(f"What {where} holds is not a key of {KEY_BYTES} bytes. Put the right one back.")
    return key
