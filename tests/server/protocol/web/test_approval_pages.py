"""Parked questions are answered at signed links of a real server: once, by a form alone, and by nobody without one."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sealab.skills_db.engine import open_database
from sealab.skills_db.journal.approval_links import ApprovalLink, judged, signed
from sealab.skills_db.journal.sealing import JournalKeys
from sealab.skills_db.vault_root import root_of

from ...command_line import sealab
from ...conftest import Caller, http_server
from ...runs.background.test_background import begun, until
from ...runs.background.test_background_restarts import over_http
from ...runs.background.test_parked_runs import ENV, asks, parked, served
from .browser import CHROMIUM, browser

KEY = bytes(range(32))
OF_KEY = ENV | {"SEALAB_VAULT_KEY": base64.b64encode(KEY).decode()}
YES, NO = {"answer": "approve"}, {"answer": "deny"}


@dataclass(frozen=True)
class Page:
    """The page of one question: its link, at the server that was reached at `origin`."""

    link: str
    origin: str
    client: httpx2.AsyncClient

    async def sent(self, form: dict[str, str], **headers: str) -> httpx2.Response:
        """Send the form as a browser does."""
        return await self.client.post(self.link, data=form, headers={"Origin": self.origin} | headers)

    async def got(self) -> httpx2.Response:
        return await self.client.get(self.link)

    def with_token(self, token: str) -> Page:
        return replace(self, link=f"{self.origin}/approvals/{token}")


def keys_of(home: Path) -> JournalKeys:
    with open_database(None, home) as database:
        return JournalKeys(root_of(database, KEY))


async def page_of(home: Path, url: str, approval: str, client: httpx2.AsyncClient) -> Page:
    """Return the page of a question by the link that the operator is told."""
    words = ("approvals", "list", "--url", url, "--json", "--home", str(home))
    listed = json.loads((await asyncio.to_thread(partial(sealab, *words, **OF_KEY))).stdout)
    link = next(each["link"] for each in listed["approvals"] if each["id"] == approval)
    return Page(link, url.removesuffix("/mcp"), client)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    served(home)
    return home


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with http_server(home, **OF_KEY) as url:
        yield url


@pytest.fixture(autouse=True)
def nothing_sent_yet(home: Path) -> None:
    (home / "sent.txt").unlink(missing_ok=True)


@asynccontextmanager
async def asking(home: Path, url: str, mode: str = "auto") -> AsyncIterator[tuple[Caller, str, Page]]:
    """Give a caller whose run is parked, the id of the run, and the page of its question."""
    async with over_http(url, mode) as caller, httpx2.AsyncClient(timeout=50) as client:
        run_id, approval = await parked(caller)
        yield caller, run_id, await page_of(home, url, approval, client)


@pytest.mark.parametrize(("mode", "form"), [("auto", YES), ("legacy", NO)])
async def test_the_form_of_a_link_answers_once_and_then_the_page_says_what_and_when(
    home: Path, url: str, form: dict[str, str], mode: str
) -> None:
    async with asking(home, url, mode) as (caller, run_id, page):
        shown = await page.got()
        assert shown.status_code == 200
        assert run_id in shown.text
        assert "notes.send(text=" in shown.text
        assert not re.search("<script|src=", shown.text)
        to_all = '<a href="/console/approvals" rel="noreferrer">All questions that wait for you</a>'
        assert re.findall("<a .*</a>", shown.text) == [to_all]
        assert (await page.sent(form)).status_code == 200
        report = await until(caller, run_id, lambda state: state["status"] == "ok")
        word = "approved" if form == YES else "denied"
        said = f"The question was {word} at {time.strftime('%Y-%m-%d', time.gmtime())} "
        answered = (await page.got()).text
        assert said in answered
        assert to_all in answered
        for other in (YES, NO):
            late = await page.sent(other)
            assert late.status_code == 409
            assert said in late.text
            assert "this answer changes nothing" in late.text
    number, answer = report["result"]
    if form == YES:
        assert (home / "sent.txt").read_text() == f"told {number}\n"
    else:
        assert answer.startswith("refused: ")
        assert not (home / "sent.txt").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: `make system` installs it")
async def test_a_browser_shows_the_page_and_sends_its_form(home: Path, url: str, tmp_path: Path) -> None:
    def used(link: str) -> list[str]:
        with browser(tmp_path / "browser") as page:
            shown = page.open(link)
            assert page.fitted(500) <= 500
            return [shown, page.press("approve"), page.open(link)]

    async with asking(home, url) as (caller, run_id, page):
        asked, answered, later = await asyncio.to_thread(used, page.link)
        report = await until(caller, run_id, lambda state: state["status"] == "ok")
    assert f"The run {run_id} waits for your answer." in asked
    assert "The question was approved at" in answered
    assert "The question was approved at" in later
    assert (home / "sent.txt").read_text() == f"told {report['result'][0]}\n"


SEVERAL = f"""# Tell both
import asyncio
name = "send"
async def told(text):
    try:
        return await call_tool("notes." + name, {{"text": text}})
    except ToolError as error:
        return str(error)
await call_tool("notes.put", {{"text": "so that its server is at work"}})
result = await asyncio.gather(told("anna.meier@example.org"), told("/srv/{"b" * 900}"))
"""


@pytest.mark.parametrize("way", ["page", "command"])
async def test_a_question_shows_what_calls_name_whole_and_one_of_them_is_refused_for_a_reason(
    home: Path, url: str, way: str
) -> None:
    async with over_http(url, "auto") as caller, httpx2.AsyncClient(timeout=50) as client:
        run_id = await begun(caller, SEVERAL)
        approval = (await until(caller, run_id, asks))["approval"]["id"]
        page = await page_of(home, url, approval, client)
        words = ("--home", str(home))
        if way == "page":
            shown = (await page.got()).text
            assert (await page.sent({"answer": "approve", "refused": "2", "reason": "Not there"})).status_code == 200
        else:
            shown = (await asyncio.to_thread(partial(sealab, "approvals", "show", approval, *words, **OF_KEY))).stdout
            refused = ("approvals", "approve", approval, "--refuse", "2", "--reason", "Not there", *words)
            assert (await asyncio.to_thread(partial(sealab, *refused, **OF_KEY))).returncode == 0
            assert f'`sealab approvals approve {approval}`, or with --covers "such calls in this run"' in shown
        report = await until(caller, run_id, lambda state: state["status"] == "ok")
    assert "Tell both" in shown
    assert "The program, with tokens such as [EMAIL_…] in place of personal data" in shown
    assert f'told("/srv/{"b" * 900}")' in shown.replace("&quot;", '"')
    assert "anna.meier@example.org" in shown
    assert "/srv/" + "b" * 900 in shown
    assert report["result"][0] == "sent anna.meier@example.org"
    assert 'Their reason: "Not there".' in report["result"][1]
    assert (home / "sent.txt").read_text() == "anna.meier@example.org\n"


async def test_what_code_wrote_is_text_on_the_page_bounded_and_without_personal_data(home: Path, url: str) -> None:
    written = "<script>alert(1)</script></pre>'\" to anna.meier@example.org, \u202e" + "x" * 100_000
    code = f"name = 'send'\nawait call_tool('notes.' + name, {{'text': {written!r}}})"
    async with over_http(url, "auto") as caller, httpx2.AsyncClient(timeout=50) as client:
        run_id = await begun(caller, code)
        state = await until(caller, run_id, asks)
        page = await page_of(home, url, state["approval"]["id"], client)
        shown = (await page.got()).text
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "anna.meier@example.org" not in shown
    assert "[EMAIL" in shown
    assert "\u202e" not in shown
    assert len(shown) < 10_000


async def test_what_was_not_signed_is_one_answer_whether_there_is_such_a_run_or_not(home: Path, url: str) -> None:
    async with asking(home, url) as (caller, run_id, page):
        keys, token = keys_of(home), page.link.rpartition("/")[2]
        link = judged(keys, token)
        assert link is not None
        assert link.run_id == run_id
        said, _, signature = token.rpartition(".")
        _, number, expires = said.split(".")
        wrong = [
            f"{said}.{'A' * len(signature)}",
            f"{said}.{signature[:-1]}",
            f"{said}.",
            said,
            f"{run_id}.{int(number) + 1}.{expires}.{signature}",
            f"{run_id}.{number}.{int(expires) + 1}.{signature}",
            f"{'0' * len(run_id)}.{number}.{expires}.{signature}",
            f"{run_id}.0{number}.{expires}.{signature}",
            signed(JournalKeys(bytes(32)), link),
            f"{token}/",
            f"{token}%00",
            "%C3%A9",
            "",
            "x" * 5000,
        ]
        found = {(each.status_code, each.text) for token in wrong for each in [await page.with_token(token).got()]}
        found |= {(each.status_code, each.text) for token in wrong for each in [await page.with_token(token).sent(YES)]}
        assert asks(await caller.told("get_run", run_id=run_id))
    ((status, text),) = found
    assert status == 404
    assert "This link is not valid" in text


async def test_a_link_whose_time_is_over_and_one_whose_run_ended_answer_nothing(home: Path, url: str) -> None:
    async with asking(home, url) as (caller, run_id, page):
        keys = keys_of(home)
        link = judged(keys, page.link.rpartition("/")[2])
        assert link is not None
        gone = [
            replace(link, expires=int(time.time()) - 1),
            replace(link, number=link.number + 1),
            ApprovalLink("0" * 26, 1, link.expires),
        ]
        for each in gone:
            for response in (
                await page.with_token(signed(keys, each)).sent(YES),
                await page.with_token(signed(keys, each)).got(),
            ):
                assert response.status_code == 410
                assert "Nothing waits at this link any more" in response.text
        assert asks(await caller.told("get_run", run_id=run_id))
        await caller.told("get_run", run_id=run_id, cancel=True)
        assert (await page.got()).status_code == 410
        assert (await page.sent(YES)).status_code == 410
        assert (await caller.told("get_run", run_id=run_id))["status"] == "cancelled"


async def test_to_look_at_a_link_or_to_send_a_form_that_says_nothing_clear_or_from_another_site_answers_nothing(
    home: Path, url: str
) -> None:
    async with asking(home, url) as (caller, run_id, page):
        for method in ("GET", "HEAD", "GET"):
            shown = await page.client.request(method, page.link, params=YES)
            assert shown.status_code == 200
        for method in ("PUT", "DELETE", "OPTIONS"):
            assert (await page.client.request(method, page.link)).status_code == 405
        for headers, status in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 421),
        ):
            assert (headers, (await page.sent(YES, **headers)).status_code) == (headers, status)
        forms: tuple[dict[str, Any], ...] = (
            {},
            {"answer": "yes"},
            {"answer": ""},
            {"answer": ["approve", "deny"]},
            {"answer": ["approve", "approve"]},
            {"answer": "approve", "more": "x" * 5000},
        )
        for form in forms:
            assert (await page.sent(form)).status_code == 400, form
        assert asks(await caller.told("get_run", run_id=run_id))


async def test_links_open_no_sessions_and_end_none(tmp_path: Path) -> None:
    served(tmp_path)
    with http_server(tmp_path, **OF_KEY, SEALAB_HTTP_SESSIONS_MAX="1") as url:
        async with asking(tmp_path, url, "legacy") as (caller, run_id, page):
            for _ in range(5):
                await asyncio.gather(*(page.sent({}) for _ in range(4)))
            assert asks(await caller.told("get_run", run_id=run_id))


def test_a_link_of_an_operator_needs_an_address(tmp_path: Path) -> None:
    for address in ("127.0.0.1:8000", "ftp://host", "http://", "http://host:port", "http://host/?a=b"):
        ended = sealab("approvals", "list", "--url", address, "--home", str(tmp_path), **OF_KEY)
        assert (address, ended.returncode) == (address, 2)
        assert "is not the address of a server" in ended.stderr
