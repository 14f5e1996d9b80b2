"""A vault, and a sanitizer that finds what it does without a model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sealab.server.privacy.detection.detect import Detector
from sealab.server.privacy.tokens.sanitizer import Sanitizer
from sealab.skills_db.engine import open_database
from sealab.skills_db.vault import Vault


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    with open_database(None, tmp_path_factory.mktemp("vault")) as database:
        yield Vault(database, bytes(range(32)))


@pytest.fixture(scope="module")
def real(vault: Vault, fast: Detector) -> Sanitizer:
    return Sanitizer(fast, vault)
