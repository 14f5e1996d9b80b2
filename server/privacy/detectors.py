"""What finds personal data, as the operator says: one for all tenants of a server, since it knows nothing of any."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...sandbox.errors import WorkerLost
from ...sandbox.job import Json
from ..base.errors import SettingsError
from ..base.settings import Settings

if TYPE_CHECKING:
    from ...sandbox.host.readers import Readers
    from .remote import RemoteDetector


_REFUSED = 3
_JUDGE = f"""
import sys
from pathlib import Path
from {__package__}.detection.detect import recognizers_of_file
try:
    recognizers_of_file(Path(sys.argv[1]))
except ValueError as error:
    print(error, end="")
    sys.exit({_REFUSED})
"""


class Detectors:
    """What finds what is shown, and what is only learned. Safe to use from several threads; starts when it is asked."""

    def __init__(self, settings: Settings, operators_home: Path) -> None:
        self._settings = settings
        self._home = operators_home
        self._making = threading.Lock()
        self._made: tuple[RemoteDetector, RemoteDetector] | None = None
        self._readers: Readers | None = None
        self._is_closed = False

    def pair(self) -> tuple[RemoteDetector, RemoteDetector]:
        """Return both."""
        with self._making:
            if self._made is None:
                from . import reader, remote

                shown, learned = (remote.RemoteDetector(self._running, name) for name in (reader.SHOWN, reader.LEARNED))
                self._made = shown, learned
            return self._made

    def texts_of(self, file: IO[bytes], *, complete: bool = False) -> Generator[Json, None, None]:
        """Give the texts of a file, from a reader; with `complete` all that bytes to be shown may hold. Blocks.

        Raises `PrivacyFailed`, `HostWorkRefused`.
        """
        from .remote import texts_of_file

        return texts_of_file(self._running, file, complete=complete)

    def text_of_any(self, data: bytes) -> str:
        """Return the text that bytes may be, from a reader. Blocks. Raises `PrivacyFailed`, `HostWorkRefused`."""
        from .remote import text_of_any

        return text_of_any(self._running, data)

    def close(self) -> None:
        """End the readers. Blocks."""
        with self._making:
            readers, self._readers, self._is_closed = self._readers, None, True
        if readers is not None:
            readers.close()

    def _running(self) -> Readers:
        with self._making:
            if self._is_closed:
                raise WorkerLost("What looks for personal data has ended.")
            if self._readers is None:
                from ...sandbox.host.readers import Readers
                from ...sandbox.wire.zygote_config import ReaderCode

                code = ReaderCode("sealab.server.privacy.reader", self._options())
                self._readers = Readers(code, required=self._settings.required_level, at_once=self._settings.readers)
            return self._readers

    def _options(self) -> Json:
        """Return what the operator decides about detection, as it crosses to a reader."""
        settings = self._settings
        file = _recognizers_file(settings, self._home)
        return {
            "mode": settings.privacy_mode.value,
            "types": sorted(settings.privacy_types),
            "threshold": settings.privacy_threshold,
            "thresholds": dict(settings.privacy_thresholds),
            "allow": list(settings.privacy_allow),
            "patterns": dict(settings.privacy_patterns),
            "file": None if file is None else str(file),
        }


def judge_recognizers(settings: Settings, home: Path) -> None:
    """Check the file of recognizers in a process of its own, which imports Presidio: that takes a second or two.

    Raises `SettingsError` where it cannot be used.
    """
    file = _recognizers_file(settings, home)
    assert file is not None
    path = {"PYTHONPATH": os.pathsep.join(os.path.abspath(each) for each in sys.path if each)}
    ended = subprocess.run(
        [sys.executable, "-P", "-s", "-X", "utf8", "-c", _JUDGE, file],
        env=path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if ended.returncode == _REFUSED:
        raise SettingsError(f"PRIVACY_RECOGNIZERS: {ended.stdout}")
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        raise SettingsError(f"PRIVACY_RECOGNIZERS: {file} could not be read: {last}. Correct it, or leave it out.")


def _recognizers_file(settings: Settings, home: Path) -> Path | None:
    named = settings.privacy_recognizers
    return None if named is None else home / Path(named).expanduser()
