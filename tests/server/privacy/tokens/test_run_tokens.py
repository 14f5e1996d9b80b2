"""No token is found by trying values: what a run brings itself tells nothing of the tokens that others were given."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import PrivacyFailed, RequestRefused
from sealab.server.base.settings import PrivacyLevel as Mode
from sealab.server.base.settings import PrivacyMode, Settings
from sealab.server.governance.caller import Caller
from sealab.server.privacy.gates.tool_gate import Recipient, given_to, kinds_sent
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.tokens import run_tokens
from sealab.server.privacy.tokens.parts import Text, Tree
from sealab.server.privacy.tokens.run_tokens import Brake

from ...conftest import in_this_process

SSN = "536-90-4399"
TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-hjkmnp-tv-z]{10}\]")
FAST = {"SEALAB_PRIVACY_MODE": "fast"}
TRY_ALL = """
known = "{token}"
found = [number for number in range(4300, 4500) if known in sanitize_pii(f"SSN: 536-90-{{number:04}}")]
result = [found, sanitize_pii("SSN: 536-90-4399") == sanitize_pii("SSN: 536-90-4399")]
"""
Opens = Callable[..., Privacy]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opens]:
    databases: list[HomeDatabase] = []

    def open_privacy(mode: Mode, *, restore: bool | None = None) -> Privacy:
        databases.append(HomeDatabase(None, tmp_path))
        settings = Settings(privacy=mode, privacy_mode=PrivacyMode.FAST, restore_to_model=restore)
        return Privacy(settings, tmp_path, databases[-1])

    yield open_privacy
    for database in databases:
        database.close()


async def hidden(privacy: Privacy, text: str, tokens: run_tokens.RunTokens) -> str:
    return str((await privacy.hide("home", (Text(text, exact=True),), run_tokens=tokens)).parts[0])


async def test_code_finds_no_value_by_sanitising_candidates(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_RESTORE_TO_MODEL": "false", **FAST}) as caller:
        seen = set()
        for _ in range(2):
            answer = await caller.told("sanitize_pii", text=f"SSN: {SSN}")
            token = TOKEN.findall(answer["sanitized_text"])[0]
            seen.add(token)
            report = await caller.run(TRY_ALL.format(token=token), timeout_seconds=100)
            assert report["result"] == [[], True]
        assert len(seen) == 2


async def test_what_goes_where_is_told_by_argument(opened: Opens) -> None:
    privacy = opened(Mode.AUTO)
    iban = "DE89 3704 0044 0532 0130 00"
    await privacy.learn("home", [{"email": "jane.roe@corp.example", "iban": iban}, {"email": "jo@corp.example"}])
    arguments = {"to": ["jane.roe@corp.example", "jo@corp.example"], "body": f"hello {iban}", "subject": "x"}
    assert await kinds_sent(privacy, Caller("home"), arguments) == {"to": {"EMAIL": 2}, "body": {"IBAN": 1}}
    assert await kinds_sent(opened(Mode.TOOLS), Caller("home"), arguments) == {}


async def test_where_nothing_is_given_back_each_run_has_tokens_of_its_own_and_the_user_restores_all(
    opened: Opens,
) -> None:
    privacy = opened(Mode.TOOLS, restore=False)
    mine = await privacy.hide_text("home", f"SSN: {SSN}")  # as `sealab pii sanitize` does
    run, other = privacy.new_run_tokens("home"), privacy.new_run_tokens("home")
    first = await hidden(privacy, f"SSN: {SSN}", run)
    assert await hidden(privacy, f"again {SSN}", run) == first.replace("SSN:", "again")
    assert len({mine, first, await hidden(privacy, f"SSN: {SSN}", other)}) == 3
    for text in (mine, first):
        assert (await privacy.restored(Caller("home"), text, destination="workspace")) == f"SSN: {SSN}"


async def test_what_the_vault_knows_is_not_recognised_for_a_run_that_gets_nothing_back(opened: Opens) -> None:
    privacy = opened(Mode.TOOLS, restore=False)
    await privacy.hide_text("home", "SSN: 536904399, customer_name: Jo")
    run = privacy.new_run_tokens("home")
    for text in ("536904399", "Jo", "Jo 536904399"):
        assert await hidden(privacy, text, run) == text


async def test_tokens_that_hold_for_one_run_are_no_other_runs_after_a_restart_either(opened: Opens) -> None:
    first = opened(Mode.TOOLS, restore=False)
    token = await hidden(first, f"SSN: {SSN}", first.new_run_tokens("home"))
    own = await first.hide_text("home", f"SSN: {SSN}")
    again = opened(Mode.TOOLS, restore=False)
    assert await again.hide_text("home", f"SSN: {SSN}") == own != token
    assert await again.restored(Caller("home"), token, destination="workspace") == f"SSN: {SSN}"


async def test_where_values_are_given_back_all_runs_have_the_same_tokens(opened: Opens) -> None:
    privacy = opened(Mode.TOOLS)
    tokens = {await hidden(privacy, f"SSN: {SSN}", privacy.new_run_tokens("home")) for _ in range(3)}
    assert tokens == {await privacy.hide_text("home", f"SSN: {SSN}")}


async def test_under_auto_trying_values_ends_in_tokens_that_tell_nothing(
    opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy = opened(Mode.AUTO)
    monkeypatch.setattr(privacy._trials, "most", 30)
    known = await privacy.hide_text("home", f"SSN: {SSN}")
    tries = "\n".join(f"SSN: 536-90-{number:04}" for number in range(4000, 4100))
    await hidden(privacy, tries, privacy.new_run_tokens("home"))
    run = privacy.new_run_tokens("home")
    assert known not in await hidden(privacy, f"SSN: {SSN}", run)
    assert known not in await hidden(privacy, f"{tries}\nSSN: {SSN}", run)
    assert len(set(TOKEN.findall(await hidden(privacy, tries, run)))) == 100
    assert SSN not in await hidden(privacy, SSN, run)
    # What a tool gives has the token that it had.
    met = privacy.new_run_tokens("home")
    await privacy.learn("home", {"ssn": SSN}, met)
    assert await hidden(privacy, f"SSN: {SSN}", met) == known


async def test_under_auto_what_tools_and_files_gave_has_one_token_however_much_it_is(
    opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy = opened(Mode.AUTO)
    monkeypatch.setattr(privacy._trials, "most", 5)
    rows = [{"email": f"person{number}@corp.example"} for number in range(40)]
    shown = []
    for _ in range(2):
        run = privacy.new_run_tokens("home")
        await privacy.learn("home", rows, run)
        shown.append((await privacy.hide("home", (Tree(rows),), run_tokens=run)).parts[0])
    assert shown[0] == shown[1]
    assert "corp.example" not in json.dumps(shown)


async def test_what_is_only_learned_is_hidden_and_not_in_the_vault(opened: Opens) -> None:
    privacy = opened(Mode.AUTO)
    run = privacy.new_run_tokens("home")
    await privacy.learn("home", [{"customer_name": name} for name in ("Ana Sørli", "Bea Holm")], run)
    assert privacy.vault().counts().values == 0
    assert await hidden(privacy, "bring Ana Sørli", run) != "bring Ana Sørli"
    assert privacy.vault().counts().values == 1


async def test_a_run_brings_no_more_new_values_than_it_may(opened: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    privacy = opened(Mode.AUTO)
    monkeypatch.setattr(run_tokens, "VALUES_MAX", 40)
    mails = [f"person{number}@corp.example" for number in range(41)]
    for mode in (lambda run: hidden(privacy, "\n".join(mails), run), lambda run: privacy.learn("home", mails, run)):
        with pytest.raises(PrivacyFailed, match="Work on less at once"):
            await mode(privacy.new_run_tokens("home"))
    assert privacy.vault().counts().values == 0


async def test_every_way_to_resolve_tokens_passes_the_brake(opened: Opens) -> None:
    privacy = opened(Mode.AUTO)
    real = await privacy.hide_text("home", f"SSN: {SSN}")
    guesses = (f"[EMAIL_{number:010}]" for number in itertools.count())

    def some(count: int) -> str:
        return " ".join(itertools.islice(guesses, count))

    ways: list[Callable[[str], Any]] = [
        lambda text: privacy.restored(Caller("home"), text, destination="workspace"),
        lambda text: given_to(privacy, Caller("home"), Recipient("mail", "send", takes_tokens=True), {"body": text}),
        lambda text: privacy.restored_for_code(Caller("home"), {"text": text}),
    ]
    with pytest.raises(RequestRefused, match="Wait a minute"):
        await ways[0](f"{some(privacy._guesses.most + 1)} {real}")  # not even what it knew is answered
    for way in ways:
        with pytest.raises(RequestRefused, match="Wait a minute"):
            await way(real)
        assert await way("no token") is not None
    assert await privacy.restored(Caller("another"), real, destination="workspace") == real


async def test_a_file_with_too_many_unknown_tokens_is_refused_in_words(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, {"SEALAB_PRIVACY": "auto", **FAST}) as caller:
        report = await caller.run("write_file('a.txt', ' '.join(f'[EMAIL_{n:010}]' for n in range(1001)))")
        assert "Wait a minute" in report["error"]["message"]
        with pytest.raises(Exception, match="Wait a minute"):
            await caller.call("write_workspace_file", filename="b.txt", content="[EMAIL_0123456789]")
    assert not list((tmp_path / "workspace").glob("*.txt"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("sealab.server.privacy.tokens.run_tokens.time.monotonic", lambda: now[0])
    return now


def test_whoever_uses_up_what_is_allowed_waits_twice_as_long_each_time(clock: list[float]) -> None:
    brake = Brake(10, 60, grows=True)
    for wait in (60, 120, 240, 480):
        assert brake.room("a") == 10
        brake.spend("a", 4)
        assert brake.room("a") == 6
        brake.spend("a", 60)
        assert brake.room("a") == 0
        assert brake.room("b") == 10
        clock[0] += wait - 1
        assert brake.room("a") == 0
        clock[0] += 1
    for _ in range(20):
        brake.room("a")
        brake.spend("a", 10)
        clock[0] += 86_400
        assert brake.room("a") == 10


@pytest.mark.parametrize("grows", [False, True])
def test_other_scopes_make_it_forget_no_scope_that_waits(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.run_tokens._SCOPES_MAX", 100)
    brake = Brake(10, 60, grows=grows)
    brake.spend("waits", 10)
    brake.spend("has spent", 7)
    for other in range(300):
        assert brake.room(f"asks {other}") == 10
    for other in range(300):
        brake.spend(f"spends {other}", 1)
    assert brake.room("waits") == 0
    assert brake.room("has spent") == 3
    assert len(brake._scopes) == 100
    # As many as there is no place for have one allowance between them.
    assert brake.room("one more") == brake.room("another") == 0
    clock[0] += 59
    assert brake.room("waits") == brake.room("another") == 0
    clock[0] += 1
    assert brake.room("waits") == brake.room("another") == 10


def test_a_scope_is_forgotten_once_its_wait_would_be_the_first_again(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.run_tokens._SCOPES_MAX", 10)
    brake = Brake(10, 60, grows=True)
    for scope in range(10):
        brake.spend(f"first {scope}", 10)
    clock[0] += 60
    brake.spend("late", 1)
    assert "late" not in brake._scopes
    clock[0] += 240
    brake.spend("late", 1)
    assert "late" in brake._scopes
    assert brake.room("late") == 9


def test_a_brake_that_does_not_grow_asks_for_the_same_wait(clock: list[float]) -> None:
    brake = Brake(10, 60)
    for _ in range(5):
        brake.spend("a", 10)
        assert brake.room("a") == 0
        clock[0] += 60
        assert brake.room("a") == 10
