"""Lines of the audit are written after the answer that they tell of, together, and all of them by an orderly end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from sealab.sandbox.levels import Level
from sealab.server import app as of_app
from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.interfaces.commands.opened import opened_vault
from sealab.server.privacy.tokens import audit_notes
from sealab.server.privacy.tokens.audit_notes import AuditNotes
from sealab.server.use_cases.skills.service import SkillService
from sealab.server.use_cases.upstream_tools.registry import Registry
from sealab.skills_db.engine import open_database
from sealab.skills_db.vault import Note
from sealab.skills_db.vault import Vault as RealVault
from sealab.skills_db.vault_root import root_of

KEY = bytes(range(32))


class Vault:
    """Takes notes, or refuses them."""

    def __init__(self, *, works: bool = True) -> None:
        self.written: list[list[Note]] = []
        self._works = works

    def note(self, *notes: Note) -> None:
        if not self._works:
            raise OSError("the disk is full")
        self.written.append(list(notes))


def opened(vault: Vault) -> Callable[[], object]:
    return lambda: vault


def lines(home: Path) -> list[tuple[str, int]]:
    """Return what the audit of a home says: what was done, with how many."""
    with open_database(None, home) as database:
        return [(line.action, line.count) for line in RealVault(database, root_of(database, KEY)).audit()]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_notes, "PAUSE_SECONDS", 3600.0)


def test_lines_gather_and_an_orderly_end_writes_them_at_once() -> None:
    vault = Vault()
    notes = AuditNotes(opened(vault))  # type: ignore[arg-type]  # as much of a vault as is asked for
    notes.add("home", "hide", "model", {"EMAIL": 2})
    notes.add("home", "restore", "mail.send", {"EMAIL": 1})
    notes.add("home", "hide", "model", {})
    assert vault.written == []
    notes.close()
    (written,) = vault.written
    assert [(note.action, dict(note.counts)) for note in written] == [("hide", {"EMAIL": 2}), ("restore", {"EMAIL": 1})]
    assert written[0].at <= written[1].at
    notes.close()
    assert len(vault.written) == 1


def test_where_nothing_was_noted_no_vault_is_opened() -> None:
    def open_vault() -> object:
        raise AssertionError("there is nothing to write")

    notes = AuditNotes(open_vault)  # type: ignore[arg-type]  # as above
    notes.add("home", "hide", "model", {})
    notes.close()


def test_lines_are_written_while_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_notes, "PAUSE_SECONDS", 0.01)
    vault = Vault()
    notes = AuditNotes(opened(vault))  # type: ignore[arg-type]  # as above
    notes.add("home", "hide", "model", {"EMAIL": 2})
    thread = notes._lines._thread
    assert thread is not None
    while not vault.written:
        thread.join(0.01)
        assert thread.is_alive()
    notes.close()
    assert not thread.is_alive()


def test_what_cannot_be_written_is_said_in_the_log_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    notes = AuditNotes(opened(Vault(works=False)))  # type: ignore[arg-type]  # as above
    notes.add("home", "hide", "model", {"EMAIL": 2})
    with caplog.at_level(logging.WARNING):
        notes.close()
    assert "1 lines of the privacy audit could not be written: the disk is full" in caplog.text


async def test_a_server_whose_other_parts_fail_to_end_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Registry) -> None:
        raise OSError("what was learned cannot be kept")

    def fail_too(_: SkillService) -> None:
        raise OSError("the records cannot be written")

    monkeypatch.setattr(of_app, "CLOSING_SECONDS", 60.0)
    monkeypatch.setattr(Registry, "close", fail)
    monkeypatch.setattr(SkillService, "close", fail_too)
    settings = Settings(required_level=Level.LIMITS, workers_spare=0, vault_key=KEY.hex())
    with pytest.raises(OSError, match="cannot be written"):
        async with running(settings, Home(tmp_path)) as app:
            app.privacy.note("hide", "model", {"EMAIL": 2}, scope="home")
    assert lines(tmp_path) == [("hide", 2)]


def test_a_command_that_ends_badly_loses_no_line(tmp_path: Path) -> None:
    settings = Settings(vault_key=KEY.hex())

    def write() -> None:
        with opened_vault(Home(tmp_path), settings) as opened:
            opened.privacy.note("hide", "model", {"EMAIL": 2}, scope="home")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        write()
    assert lines(tmp_path) == [("hide", 2)]
