"""Callers call an upstream server each with an account of their own, over a real server, a real issuer and browsers."""

from __future__ import annotations

import asyncio
import itertools
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.types import ElicitResult

from ..command_line import sealab
from ..conftest import Caller, http_process, http_server, stdio
from .accounts import Accounts, User, begun, browser, origin_of
from .accounts import calling as calling_with

CODE = "await tools.accounts.whoami()"
BOTH = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def home(tmp_path: Path, upstream: Accounts) -> Path:
    upstream.configure(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def url(accounts_server: Accounts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose callers are others in each test."""
    home = tmp_path_factory.mktemp("home")
    accounts_server.configure(home)
    with http_server(home) as url:
        yield url


@pytest.fixture(autouse=True)
def as_usual(upstream: Accounts) -> None:
    """Let the issuer behave so in tests that do not ask for it, too."""


_NUMBERS = itertools.count()


def calling(url: str, who: str, user: Any = None, mode: str = "auto") -> AbstractAsyncContextManager[Caller]:
    """Connect as a caller that no other test is."""
    return calling_with(url, f"{who}-{next(_NUMBERS)}", user, mode)


@BOTH
async def test_two_callers_each_see_their_own_account_and_are_asked_once(
    url: str, upstream: Accounts, mode: str
) -> None:
    ada, bob = User("ada@accounts"), User("bob@accounts")
    async with calling(url, "ada", ada, mode) as first, calling(url, "bob", bob, mode) as second:
        for _ in range(2):
            for caller, user in ((first, ada), (second, bob)):
                report = await caller.run(CODE)
                assert report["result"] == user.account, report
    assert [len(each.asked) for each in (ada, bob)] == [1, 1]
    assert upstream.told("seen")
    assert not [each for each in upstream.told("seen") if "ada-" in each or "bob-" in each], "no token is passed on"
    assert ada.asked[0].mode == "url"
    assert "'accounts' wants a sign-in of its caller" in ada.asked[0].message


async def test_calls_at_once_of_two_callers_never_cross_and_ask_each_user_once(url: str) -> None:
    users = [User("ada"), User("bob")]
    code = f"import asyncio\nawait asyncio.gather(*({CODE.removeprefix('await ')} for _ in range(8)))"
    async with calling(url, "a", users[0]) as first, calling(url, "b", users[1]) as second:
        reports = await asyncio.gather(*(each.run(code) for each in (first, second) * 3))
    found = [report["result"] for report in reports]
    assert found == [["ada"] * 8, ["bob"] * 8] * 3, reports
    assert all(len(user.asked) <= 3 for user in users)  # once in each run that began before the sign-in


async def test_resources_are_read_with_the_account_of_the_caller(url: str) -> None:
    async with calling(url, "ada", User("ada")) as caller:
        report = await caller.run(
            "[await read_resource('accounts', 'account://mine'), await list_resources('accounts')]"
        )
    assert "ada" in str(report["result"]), report


@pytest.mark.parametrize(("action", "mode"), [("decline", "auto"), ("cancel", "legacy")])
async def test_who_does_not_sign_in_gets_an_error_that_code_can_catch_and_is_not_asked_again(
    url: str, action: str, mode: str
) -> None:
    user = User("ada", action)
    code = "said = []\nfor _ in range(3):\n    try:\n        await tools.accounts.whoami()\n    except ToolError as e:\n        said.append(str(e))\nsaid"
    async with calling(url, "ada", user, mode) as caller:
        said = (await caller.run(code))["result"]
    assert "did not sign in" in said[0]
    assert "was asked in this run" in said[1]
    assert len(user.asked) == 1


async def test_a_client_that_opens_no_links_or_cannot_be_known_again_is_told_what_to_do_and_reads_no_link(
    url: str,
) -> None:
    async with calling(url, "ada") as caller:
        error = (await caller.run(CODE))["error"]
    assert "cannot have its user open a link" in error["message"]
    assert "sealab servers test accounts" in error["message"]
    assert "/sign-in/" not in str(error)
    async with Client(url, mode="legacy", elicitation_callback=User("ada"), read_timeout_seconds=200) as client:
        error = (await Caller(client, Path()).run(CODE))["error"]
    assert "cannot be known again" in error["message"]


@pytest.mark.parametrize("behaves", [{"denies": True}, {"iss": "http://evil.example"}, {"iss": ""}])
async def test_a_refusal_or_an_answer_of_another_issuer_ends_the_wait_and_its_code_is_never_redeemed(
    url: str, upstream: Accounts, behaves: dict[str, Any]
) -> None:
    upstream.set(**behaves)
    async with calling(url, "ada", User("ada")) as caller:
        error = (await caller.run(CODE))["error"]
    assert "was refused or failed" in error["message"]
    assert not [each for each in upstream.told("secrets") if each.startswith("access-")]


async def test_an_upstream_that_refuses_every_token_asks_its_user_once_a_run(url: str, upstream: Accounts) -> None:
    user = User("ada")
    upstream.set(refuses_all=True)
    async with calling(url, "ada", user) as caller:
        first = (await caller.run(CODE))["error"]
        second = (await caller.run(CODE))["error"]
    assert "does not take the sign-in that was made" in first["message"]
    assert "does not take the sign-in" in second["message"]
    assert len(user.asked) == 2


async def test_a_token_that_the_issuer_ended_has_the_user_sign_in_again_and_the_call_goes_on(
    url: str, upstream: Accounts
) -> None:
    user = User("ada")
    async with calling(url, "ada", user) as caller:
        assert (await caller.run(CODE))["result"] == "ada"
        upstream.set(end_access=True)
        user.account = "ada's other account"
        assert (await caller.run(CODE))["result"] == "ada's other account"
    assert len(user.asked) == 2


class Asked:
    """A user who is asked to open a link and hands it to the test, which says when they have."""

    def __init__(self) -> None:
        self.link: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self, _context: object, question: Any) -> ElicitResult:
        self.link.set_result(question.url)
        return ElicitResult(action="accept")


@asynccontextmanager
async def asked(url: str) -> AsyncIterator[tuple[str, asyncio.Task[dict[str, Any]]]]:
    """Give the link of a run that waits for its user's sign-in, and the run."""
    user = Asked()
    async with calling(url, "ada", user, "legacy") as caller:
        run = asyncio.create_task(caller.run(CODE))
        yield await asyncio.wait_for(user.link, 40), run
        run.cancel()


async def test_a_link_that_one_browser_has_begun_is_no_other_browsers(url: str) -> None:
    async with asked(url) as (link, run), browser("ada") as hers, browser("victim") as other:
        to_issuer = await begun(hers, link, follow=False)
        assert to_issuer.status_code == 303
        refused = await begun(other, link, follow=False)
        assert refused.status_code == 409
        assert "Another browser has begun" in refused.text
        # What comes back from the issuer, in the browser of another: nothing is redeemed, and hers still can be.
        back = (await hers.get(to_issuer.headers["location"], follow_redirects=False)).headers["location"]
        stolen = await other.get(back)
        assert stolen.status_code == 403
        async with httpx2.AsyncClient() as nobodys:
            assert (await nobodys.get(back)).status_code == 403
        assert "You are signed in" in (await hers.get(back)).text
        assert (await run)["result"] == "ada"


async def test_what_a_browser_came_back_with_is_taken_once_and_its_link_has_ended(url: str, upstream: Accounts) -> None:
    async with asked(url) as (link, run), browser("ada") as hers:
        to_issuer = (await begun(hers, link, follow=False)).headers["location"]
        back = (await hers.get(to_issuer, follow_redirects=False)).headers["location"]
        state = httpx2.URL(back).params["state"]
        wrong = [
            back.replace(state, "x" + state[1:]),
            back.replace(state, ""),
            f"{back}&state={state}",
            back.partition("?")[0],
            f"{back}&more={'x' * 9000}",
        ]
        for each in wrong:
            assert (await hers.get(each)).status_code == 403, each
        assert (await hers.get(back)).status_code == 200
        assert (await hers.get(back)).status_code == 403
        assert (await hers.get(link)).status_code == 410
        assert (await run)["result"] == "ada"
    assert len([each for each in upstream.told("secrets") if each.startswith("access-")]) == 1


async def test_to_look_at_a_link_begins_nothing_and_only_its_own_form_does(url: str) -> None:
    async with asked(url) as (link, _run), browser("ada") as hers, httpx2.AsyncClient() as without:
        for _ in range(2):
            shown = await hers.get(link)
            assert shown.status_code == 200
        cookie = shown.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=lax", "Path=/sign-in/"} <= set(cookie.split("; "))
        assert shown.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
        assert "<script" not in shown.text
        origin = {"Origin": origin_of(link)}
        go = {"answer": "go"}
        assert (await hers.post(link, data={"answer": "no"}, headers=origin)).status_code == 400
        assert (await hers.post(link, data=go, headers={"Origin": "http://evil.example"})).status_code == 403
        assert (await without.post(link, data=go, headers=origin)).status_code == 400
        assert (await hers.put(link)).status_code == 405
        for token in ("", "x", "%00", "x" * 5000, link.rpartition("/")[2][:-1]):
            assert (await hers.get(f"{origin_of(link)}/sign-in/{token}")).status_code == 404
        assert (await begun(hers, link, follow=False)).status_code == 303


async def test_over_stdio_the_user_goes_to_the_issuer_and_comes_back_to_this_machine(
    home: Path, upstream: Accounts
) -> None:
    user = User("ada")
    async with Client(stdio(home), elicitation_callback=user, read_timeout_seconds=200) as client:
        assert (await Caller(client, home).run(CODE))["result"] == "ada"
    assert user.asked[0].url.startswith(f"{upstream.address}/authorize?")
    signed_out = await asyncio.to_thread(sealab, "servers", "sign-out", "accounts", "--json", "--home", str(home))
    assert signed_out.returncode == 0, signed_out.stderr
    assert '"signed_out": true' in signed_out.stdout
    assert '"revoked": true' in signed_out.stdout
    assert len(upstream.told("revoked")) == 2
    async with Client(stdio(home), read_timeout_seconds=200) as client:
        assert "cannot have its user open" in (await Caller(client, home).run(CODE))["error"]["message"]


async def test_no_secret_of_a_sign_in_is_in_what_is_kept_logged_or_shown(home: Path, upstream: Accounts) -> None:
    user = User("ada")
    code = "said = []\nfor _ in range(2):\n    try:\n        said.append(await tools.accounts.whoami())\n    except ToolError as e:\n        said.append(str(e))\nprint(said)\nsaid"
    shown = []
    with http_process(home, SEALAB_LOG_LEVEL="debug") as server:
        async with calling(server.url, "ada", user) as caller:
            shown.append(await caller.run(code))
            upstream.set(end_access=True, iss="http://evil.example")
            shown.append(await caller.run(code))
        server.process.terminate()
        assert server.process.stderr is not None
        shown.append({"log": server.process.stderr.read()})
    secrets = [*upstream.told("secrets"), *(each.url.rpartition("/")[2] for each in user.asked)]
    assert len(secrets) >= 6
    kept = await asyncio.to_thread(all_bytes, home)
    for secret in secrets:
        assert secret not in str(shown)
        assert secret.encode() not in kept
    with sqlite3.connect(home / "sealab.db") as database:
        rows = database.execute("SELECT owner, person FROM sealab_sign_in").fetchall()
    assert len(rows) == 1
    assert all(re.fullmatch("[0-9a-f]{64}", each) for row in rows for each in row)


def all_bytes(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())
