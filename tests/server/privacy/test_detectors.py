"""Tenants of one server share what finds personal data, which knows nothing of any of them."""

from __future__ import annotations

import gc
from pathlib import Path

from sealab.server.app import running, running_tenant
from sealab.server.home import Home
from sealab.server.privacy.detectors import Detectors
from sealab.server.privacy.privacy import Privacy
from sealab.server.settings import PrivacyMode, Settings

MAIL = "jane.roe@corp.example"


async def hidden(privacy: Privacy) -> str:
    return str(await privacy.hide_value("home", f"Write to {MAIL}."))


async def test_a_second_tenant_loads_nothing_and_keeps_nothing_from_being_collected(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with running(Settings(privacy_mode=PrivacyMode.FAST), home) as operators:
        assert MAIL not in await hidden(operators.privacy)
        kept = gc.get_freeze_count()
        assert kept
        for tenant in ("acme", "globex"):
            async with running_tenant(operators, home.of_tenant(tenant)) as app:
                assert app.privacy.detectors is operators.privacy.detectors
                assert MAIL not in await hidden(app.privacy)
                assert gc.get_freeze_count() <= kept  # what was frozen may end


def test_a_recognizer_that_does_not_come_back_is_that_of_one_tenant(tmp_path: Path) -> None:
    added = Detectors(Settings(privacy_recognizers="mine.yaml"), tmp_path)
    assert added.of_a_tenant() is not added
    own = Detectors(Settings(), tmp_path)
    assert own.of_a_tenant() is own
