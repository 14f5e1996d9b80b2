"""Takes pictures of the console by a headless Chromium: `python -m tests.docs.console_pictures FOLDER`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ..server.conftest import http_server
from ..server.console.conftest import link
from ..server.journal.test_journaled_runs import CLAIMED, NOTES
from ..server.protocol.web.browser import browser
from ..server.tenants.team import Member
from ..server.upstream_tools.test_registry import configure
from ..waiting import wait_until

LOOKS = """import asyncio
notes = await asyncio.gather(*(tools.notes.look(name=name) for name in ('plan', 'budget', 'team')))
print(f'{len(notes)} notes')
result = [{'note': note, 'length': len(note)} for note in notes]"""
PAGES = ("now", ""), ("run", "/runs/{run}"), ("stats", "/stats?by=run"), ("limits", "/limits")
ASKS = "# Tell the team\nawait tools.notes.send(text='The meeting is at 10.')"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as profile:
        home = Path(made)
        (home / "notes.py").write_text(NOTES)
        configure(home, notes={"command": sys.executable, "args": [str(home / "notes.py"), str(home / "sent.txt")]})
        with http_server(home, **CLAIMED) as url, browser(Path(profile)) as page:
            agent = Member(url, None)
            agent.call("execute_code", code="1 / 0")
            agent.call("execute_code", code=LOOKS)  # with the server of notes started
            run_id = agent.call("execute_code", code=LOOKS).structured["run_id"]
            waits = agent.call("execute_code", code=ASKS, background=True).structured["run_id"]
            wait_until(lambda: agent.call("get_run", run_id=waits).structured["status"] == "waiting")
            page.open(link(home, url, **CLAIMED))
            origin = url.removesuffix("/mcp")
            for name, path in PAGES:
                page.look(width=900, dark=False)
                page.open(f"{origin}/console{path.format(run=run_id)}")
                page.picture(folder / f"console-{name}.png")


if __name__ == "__main__":
    main()
