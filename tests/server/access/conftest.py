"""Verifiers that are closed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sealab.server.base.settings import Settings
from sealab.server.governance.access.oauth_verifier import OAuthVerifier

from ...clocks import Clock
from .scripted_issuer import MakeVerifier


@pytest.fixture
async def verifier_of() -> AsyncIterator[MakeVerifier]:
    made: list[OAuthVerifier] = []

    def make(settings: Settings, clock: Clock | None = None) -> OAuthVerifier:
        made.append(OAuthVerifier(settings) if clock is None else OAuthVerifier(settings, clock, clock))
        return made[-1]

    yield make
    for each in made:
        await each.close()
