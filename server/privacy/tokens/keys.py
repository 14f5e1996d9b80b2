"""Where the vault's master key comes from: the setting, the keyring of the operating system, or a file of its own.

A security boundary: the key and the database together give the values.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import VaultKeyError

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ...base.settings import Settings

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
    with suppress(FileNotFoundError):
        return _from_file(file)
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


def root_key(settings: Settings, home: Path, database: Database) -> bytes:
    """Return the key from which all others of a home are derived, by its master key, which is made at first use.

    Blocks. Raises `VaultKeyError`, `VaultKeyWrong`, and what reading the database raises.
    """
    from ....skills_db.vault import is_keyed
    from ....skills_db.vault_root import root_of

    is_needed = partial(is_keyed, database)
    key = master_key(settings.vault_key, home, keyring=settings.vault_keyring, is_needed=is_needed)
    return root_of(database, key)


def rotate(settings: Settings, home: Path, database: Database, show: Callable[[str], None]) -> str | None:
    """Give a home a new master key, and return where it is kept; None where the operator does: `show` is given it.

    Until it is kept both keys open the vault, so that a failure at any moment loses nothing; after one they both do
    until the next time. Blocks. Raises as `root_key`.
    """
    from ....skills_db.vault_root import root_of, wrap

    with _alone(home):
        old = master_key(settings.vault_key, home, keyring=settings.vault_keyring)
        root, new = root_of(database, old), secrets.token_bytes(KEY_BYTES)
        wrap(database, root, [old, new])
        where = _keep_anew(settings, home, new, show)
        wrap(database, root, [new])
        return where


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let nobody else give the home a key meanwhile (flock(2) on its folder). Raises `VaultKeyError`."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise VaultKeyError("The vault is given a new key by another command. Wait until that has ended.") from None
    finally:
        os.close(folder)


def _keep_anew(settings: Settings, home: Path, new: bytes, show: Callable[[str], None]) -> str | None:
    if settings.vault_key is not None:
        show(_encoded(new))
        return None
    file = home / FILE_NAME
    if file.exists():
        _replaced_file(file, new)
        return str(file)
    ring = _Keyring.of_this_machine(str(home.resolve())) if settings.vault_keyring else None
    if ring is None or not ring.keep(_encoded(new)):
        raise VaultKeyError("The system's keyring did not take the new key, so the old one stays. Unlock it.")
    return "the system's keyring"


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
    with suppress(FileExistsError):
        _write_file(file, key, os.link)  # unlike a rename, never over a key that is there
    return _from_file(file)


def _replaced_file(file: Path, key: bytes) -> None:
    _write_file(file, key, os.replace)


def _write_file(file: Path, key: bytes, put: Callable[[Path, Path], None]) -> None:
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as written:
                written.write(_encoded(key).encode("ascii") + b"\n")
                written.flush()
                os.fsync(written.fileno())
            put(new, file)
        finally:
            new.unlink(missing_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise
    except OSError as error:
        raise VaultKeyError(
            f"The vault's key file {file} cannot be written: {error.strerror}. Set VAULT_KEY, or correct the folder's "
            "permissions."
        ) from error


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
