"""Detectors that tests share: to make one loads what it knows of names."""

from __future__ import annotations

import pytest

from sealab.server.privacy.detection.detect import Detector, Mode

from .found import in_mode


@pytest.fixture(scope="session")
def fast() -> Detector:
    return in_mode(Mode.FAST)


@pytest.fixture(scope="session")
def balanced() -> Detector:
    return in_mode(Mode.BALANCED)
