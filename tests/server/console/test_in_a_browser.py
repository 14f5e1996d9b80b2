"""The console in a real browser: each page is free of serious findings of axe, in light and dark, wide and narrow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.server.interfaces.console.app_views import PAGE
from sealab.server.interfaces.console.pages import PAGES

from ...object_stores import UPSTREAMS
from ...waiting import wait_until
from ..conftest import http_server, in_this_process
from ..journal.test_journaled_runs import NOTES
from ..protocol.web.browser import CHROMIUM, Browser, browser
from ..tenants.team import Member
from ..upstream_tools.test_registry import configure
from .conftest import link
from .test_app_views import Apps, read
from .test_console import ASKS, ENV, HOSTILE

AXE = UPSTREAMS / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("SEALABTEST_PICTURES")
"""A folder for pictures of what was looked at."""
CODE = f"""# {HOSTILE}
import asyncio
seen = await asyncio.gather(*(tools.notes.look(name=name) for name in 'abcd'))
print({HOSTILE!r})
result = [{{'name': each, 'length': len(each), 'said': {HOSTILE!r}}} for each in seen]"""
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: `make system` installs it"),
    pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core: `make upstreams` installs it"),
]


class Seen:
    """A server, its only agent, and a browser whose user is the operator."""

    def __init__(self, home: Path, url: str, page: Browser) -> None:
        self.home = home
        self.origin = url.removesuffix("/mcp")
        self.agent = Member(url, None)
        self.page = page
        page.open(link(home, url, **ENV))

    def open(self, path: str) -> str:
        return self.page.open(f"{self.origin}/console{path}")

    def asks(self) -> str:
        """Start a run that waits for an answer; return its run_id."""
        run_id = str(self.agent.call("execute_code", code=ASKS, background=True).structured["run_id"])
        wait_until(lambda: self.agent.call("get_run", run_id=run_id).structured["status"] == "waiting")
        return run_id


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    home = tmp_path_factory.mktemp("home")
    (home / "notes.py").write_text(NOTES.replace("'Look.'", f"'Look. {HOSTILE}'"))
    command = {"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")]}
    configure(home, notes={**command, "approve": "writes"})
    with http_server(home, **ENV) as url, browser(tmp_path_factory.mktemp("browser")) as page:
        yield Seen(home, url, page)


def serious(page: Browser) -> list[str]:
    """Return what axe finds on a page that is serious or critical."""
    page.run(f"{AXE.read_text()}; true")
    found = page.run(
        "axe.run().then((found) => found.violations.map((each) => [each.impact, each.id, each.nodes[0].html]))"
    )
    return [f"{kind}: {what}" for impact, kind, what in found if impact in {"serious", "critical"}]


def test_each_page_is_free_of_serious_findings_and_fits_a_narrow_screen_in_light_and_dark(seen: Seen) -> None:
    run_id = seen.agent.call("execute_code", code=CODE).structured["run_id"]
    seen.agent.call("execute_code", code="raise ValueError('no')")
    seen.agent.call("save_skill", name="twice", code="def twice(n: int) -> int:\n    'Double.'\n    return n * 2")
    seen.asks()
    paths = [
        "",
        *(f"/{page.menu}" for page in PAGES if page.menu),
        f"/runs/{run_id}",
        "/tools/notes.look",
        "/skills/twice",
    ]
    for path in paths:
        for width, dark in ((1200, False), (360, True)):
            seen.page.look(width=width, dark=dark)
            seen.open(path)
            name = path.strip("/").replace("/", "-") or "now"
            if PICTURES:
                seen.page.picture(Path(PICTURES) / f"{name}-{width}{'-dark' * dark}.png")
            assert (path, width, seen.page.run("document.documentElement.scrollWidth")) <= (path, width, width)
            assert (path, serious(seen.page)) == (path, [])
            assert seen.page.run("document.querySelectorAll('img, script').length") == 0
    assert "<script>alert(1)</script>" in seen.open(f"/runs/{run_id}")
    assert "<script>alert(1)</script>" in seen.open("/tools/notes.look")


def test_a_question_is_answered_by_two_clicks_and_the_keyboard_reaches_what_there_is(seen: Seen) -> None:
    seen.page.look(width=360, dark=False)
    run_id = seen.asks()
    seen.open("/approvals")
    seen.page.type_key("Tab")
    assert seen.page.run("document.activeElement.textContent") == "Skip to the content"
    seen.page.type_key("Enter")
    assert seen.page.run("location.hash") == "#main"
    buttons = "[...document.querySelectorAll('button.yes')]"
    waiting = seen.page.run(f"{buttons}.length")
    while seen.page.run(f"{buttons}.length"):
        seen.page.press("approve")
    assert waiting >= 1
    assert "No run waits for an answer" in seen.open("/approvals")
    wait_until(lambda: seen.agent.call("get_run", run_id=run_id).structured["status"] == "ok")


HOST = """(async () => {
  const frame = document.createElement("iframe");
  frame.srcdoc = PAGE;
  const told = [], read = [];
  const ended = new Promise((done) => addEventListener("message", ({ data }) => {
    told.push(data.method);
    const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    if (data.method === "ui/initialize") send({ id: data.id, result: { hostContext: { theme: "dark" } } });
    if (data.method === "ui/notifications/initialized") send({ method: "ui/notifications/tool-result", params: RESULT });
    if (data.method === "resources/read") {
      read.push(data.params.uri);
      send({ id: data.id, result: { contents: [{ uri: data.params.uri, text: RUN }] } });
      const clicks = setInterval(() => {
        const link = frame.contentDocument.querySelector("a");
        if (link) clearInterval(clicks), link.click();
      }, 10);
    }
    if (data.method === "ui/open-link") setTimeout(() => done(data.params.url), 50);
  }));
  document.body.append(frame);
  const opened = await ended;
  const shown = frame.contentDocument;
  return [...read, opened, shown.body.innerText, shown.documentElement.style.colorScheme, told, shown.querySelectorAll("img").length];
})()"""
"""A host of MCP Apps: it shows the page in a frame, tells it of an answer, reads for it what it asks for, and opens links."""


async def test_the_page_of_a_run_shows_it_in_the_frame_of_a_host(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ENV, extensions=[Apps()]) as caller:
        report = await caller.run(f"print({HOSTILE!r})\nresult = [{{'name': 'seen'}}]")
        uri = f"ui://sealab/runs/{report['run_id']}"
        page, run = await read(caller.client, PAGE), await read(caller.client, uri)
    run += '<a href="https://sealab.example/console/approvals">console</a>'  # as over HTTP, where a question waits
    with browser(tmp_path / "browser") as shown:
        shown.open("about:blank")
        result = {"structuredContent": report, "content": []}
        host = (
            HOST.replace("PAGE", json.dumps(page)).replace("RESULT", json.dumps(result)).replace("RUN", json.dumps(run))
        )
        asked, opened, text, scheme, told, pictures = shown.run(host)
    assert (asked, scheme, pictures) == (uri, "dark", 0)
    assert opened == "https://sealab.example/console/approvals"
    assert "seen" in text
    assert HOSTILE in text
    assert "ui/notifications/size-changed" in told
