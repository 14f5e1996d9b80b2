"""The policy that is in force: that of a file, or of all `*.cedar` files of a folder, taken anew when it changes.

A security boundary. A new version is in force as a whole, or not at all: one that cannot be used leaves the old one in
force, which the log and `/readyz` say until it is mended. Where the file is gone, everything is refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import SettingsError
from ...base.host_work import Kind, in_thread
from ...base.identity import Identity
from .access import NO_POLICY, Access, Decider, Ruling
from .policy_rules import PolicyFault, PolicyFaulty, Rulebook, rules_of

if TYPE_CHECKING:
    from ...base.home import Home
    from ...base.settings import Settings

WATCH_SECONDS = 1.0
"""How often it is looked whether the policy has changed."""
SETTLED_SECONDS = 2.0
"""From when on a file with the same time of change counts as the same: clocks of file systems are coarse."""
_FAULTS_SHOWN = 20
_LOG = logging.getLogger(__name__)
_GONE = "the file or folder of the policy is not there"

_Stamp = tuple[tuple[str, int, int, int], ...]


class PolicyMissing(Exception):
    """There is no file of a policy where it should be."""


class PolicyFile:
    """The policy of a file or folder; any thread may ask for decisions."""

    governs = True

    def __init__(self, path: Path) -> None:
        """Read it. Blocks. Raises `SettingsError`, which names file and line, where it cannot be used."""
        self.path = path
        self.problem: str | None = None
        """Why what is in the file now is not in force."""
        self._logged = ""
        self._looked = 0.0
        try:
            self._stamp = self._seen = _stamp_of(path)
            self._texts = _texts_of(path)
            self._rulebook: Rulebook | None = Rulebook(rules_of(self._texts))
        except PolicyMissing:
            raise SettingsError(
                f"POLICY is {path}, where there is no file and no folder with *.cedar files. Name one, or unset it."
            ) from None
        except PolicyFaulty as faulty:
            raise SettingsError(f"POLICY cannot be used. Correct this:\n{shown(faulty)}") from None

    @property
    def is_missing(self) -> bool:
        """Whether its file is gone, so that everything is refused."""
        return self._rulebook is None

    @property
    def version(self) -> object:
        """What is another object once another version is in force."""
        return self._rulebook

    @property
    def rulebook(self) -> Rulebook | None:
        """The version in force; None where the file is gone."""
        return self._rulebook

    def decide(self, identity: Identity, access: Access) -> Ruling:
        """Return whether somebody may do something, by the version in force."""
        rulebook = self._rulebook
        return Ruling(allowed=False, problem=_GONE) if rulebook is None else rulebook.decide(identity, access)

    def refresh(self) -> None:
        """Put what the file holds in force, where that has changed since, is whole and can be used. Blocks."""
        try:
            self._take()
        except PolicyMissing:
            self._rulebook, self._texts = None, {}
            self._say("The policy is gone, so everything is refused.", str(self.path))
        except PolicyFaulty as faulty:
            self._say("The new version of the policy cannot be used; the one before stays in force.", shown(faulty))

    async def watch(self) -> None:
        """Take new versions as they come, until it is cancelled."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await in_thread(Kind.FILES, self.refresh, charged=False)
            except Exception as error:  # noqa: BLE001 - whatever it is, the version in force stays, and it is tried again
                self._say("It could not be found out whether the policy has changed.", str(error))

    def _take(self) -> None:
        stamp, looked = _stamp_of(self.path), time.time()
        before, self._seen = self._seen, stamp
        if stamp != before:
            return  # it may be half written: a version is taken once it has stayed the same from one look to the next
        settled = all(changed / 1e9 < self._looked - SETTLED_SECONDS for _, changed, _, _ in stamp)
        if stamp == self._stamp and settled:
            return
        texts = _texts_of(self.path)
        if texts != self._texts or self._rulebook is None:
            rulebook = Rulebook(rules_of(texts))
            self._rulebook, self._texts = rulebook, texts
            _LOG.warning("A new version of the policy is in force: %s rules.", len(rulebook.rules))
        self._stamp, self._looked, self.problem, self._logged = stamp, looked, None, ""

    def _say(self, problem: str, detail: str) -> None:
        """Log what is wrong once, and keep it for `/readyz`, which anyone may read."""
        message = f"{problem} {detail}"
        if message != self._logged:
            _LOG.error("%s", message)
        self.problem, self._logged = problem, message


def policy_of(settings: Settings, home: Home) -> Decider:
    """Return the policy that POLICY names, absolute or within the home. Blocks. Raises `SettingsError`."""
    path = path_of(settings, home)
    return NO_POLICY if path is None else PolicyFile(path)


def path_of(settings: Settings, home: Home) -> Path | None:
    """Return where the policy is, None where there is none."""
    return None if settings.policy is None else home.root / Path(settings.policy).expanduser()


def read_rules(path: Path) -> Rulebook:
    """Return the policy of a file or folder. Blocks. Raises `PolicyMissing`, `PolicyFaulty`, `SettingsError`."""
    return Rulebook(rules_of(_texts_of(path)))


def shown(faulty: PolicyFaulty) -> str:
    """Return the first faults, one a line, and how many more there are."""
    lines = [str(each) for each in faulty.faults[:_FAULTS_SHOWN]]
    more = len(faulty.faults) - _FAULTS_SHOWN
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def _files_of(path: Path) -> list[Path]:
    files = sorted(path.glob("*.cedar")) if path.is_dir() else [path] if path.exists() else []
    if not files:
        raise PolicyMissing
    return files


def _stamp_of(path: Path) -> _Stamp:
    try:
        found = [(each.name, each.stat()) for each in _files_of(path)]
    except FileNotFoundError:
        raise PolicyMissing from None
    except OSError as error:
        raise PolicyFaulty([PolicyFault(path.name, 1, f"it cannot be read: {error.strerror}")]) from None
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in found)


def _texts_of(path: Path) -> dict[str, str]:
    return {each.name: _text_of(each) for each in _files_of(path)}


def _text_of(file: Path) -> str:
    fault = partial(PolicyFault, file.name)
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise PolicyMissing from None
    except OSError as error:
        raise PolicyFaulty([fault(1, f"it cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise PolicyFaulty([fault(line, f"it is not UTF-8 text (byte {error.start})")]) from None
