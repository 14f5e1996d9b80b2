"""What finds personal data, as the operator says: one for all tenants of a server, since it knows nothing of any."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingsError
from ..settings import Settings

if TYPE_CHECKING:
    from .detection import detect


class Detectors:
    """What finds what is shown, and what is only learned; any thread may use them. Nothing is loaded before `pair`."""

    def __init__(self, settings: Settings, operators_home: Path) -> None:
        self._settings = settings
        self._home = operators_home
        self._making = threading.Lock()
        self._made: tuple[detect.Detector, detect.Detector] | None = None
        self._settling = threading.Lock()
        self._settled = False

    def of_a_tenant(self) -> Detectors:
        """Those of a tenant: these, unless recognizers were added.

        One of those that does not come back from a text withholds the next ones (`added.running`), which must be those
        of the same tenant.
        """
        return self if self._settings.privacy_recognizers is None else Detectors(self._settings, self._home)

    def pair(self) -> tuple[detect.Detector, detect.Detector]:
        """Return both. Blocks. Raises `DetectionFailed` where added recognizers cannot be used."""
        with self._making:
            if self._made is None:
                from .detection import detect

                options = detector_options(self._settings, self._home)
                learner = detect.Detector(replace(options, mode=detect.Mode.FAST))
                self._made = detect.Detector(options), learner
            return self._made

    def settle(self) -> None:
        """Keep what was loaded out of garbage collections, which stop every thread, a hundred thousand objects long.

        Once: what else lives at that moment is never collected if it is in a circle.
        """
        with self._settling:
            if not self._settled:
                gc.collect()
                gc.freeze()
                self._settled = True


def detector_options(settings: Settings, home: Path) -> detect.DetectorOptions:
    """Return what the operator says of detection. Raises `DetectionFailed` where added recognizers cannot be used."""
    from .detection import detect

    return detect.DetectorOptions(
        mode=detect.Mode(settings.privacy_mode.value),
        types=frozenset(settings.privacy_types),
        threshold=settings.privacy_threshold,
        thresholds=settings.privacy_thresholds,
        allow=settings.privacy_allow,
        patterns=settings.privacy_patterns,
        recognizers=detect.added_recognizers(_recognizers_file(settings, home)),
    )


def judge_recognizers(settings: Settings, home: Path) -> None:
    """Read the file of recognizers, which takes a second or two. Raises `SettingsError` where it cannot be used."""
    from .detection import detect

    file = _recognizers_file(settings, home)
    assert file is not None
    try:
        detect.recognizers_of_file(file)
    except ValueError as error:
        raise SettingsError(f"PRIVACY_RECOGNIZERS: {error}") from None


def _recognizers_file(settings: Settings, home: Path) -> Path | None:
    named = settings.privacy_recognizers
    return None if named is None else home / Path(named).expanduser()
