"""`sealab approvals`: the questions that background runs wait with, and their answers."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...database import database_of
from ...errors import Exit, UsageError
from ...home import Home
from ...identity import DEFAULT_TENANT
from ...journal.journal import Journal
from ...privacy.of_home import privacy_of
from ...runs.background.background import run_state
from ...runs.background.background_reports import pages_at
from ...settings import Settings

if TYPE_CHECKING:
    from ....skills_db.journal.background_store import BackgroundStore

Begin = Callable[[argparse.Namespace], tuple[Home, Settings]]
_LISTED_MAX = 1000


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Give the parser of `sealab approvals` its commands; `options` adds those that all commands have."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, help="what to do")

    def command(
        name: str, run: Callable[[argparse.Namespace, BackgroundStore], int], help_text: str
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help_text, description=f"{help_text.capitalize()}.", allow_abbrev=False)
        made.add_argument("--json", action="store_true", help="print it as JSON")

        def opened(chosen: argparse.Namespace) -> int:
            with _store(*begin(chosen)) as store:
                return run(chosen, store)

        made.set_defaults(command=opened)
        options(made)
        return made

    listed = command("list", _list, "list the questions that runs wait with")
    listed.add_argument(
        "--url",
        metavar="URL",
        help="add to each the link that answers it, at the server of this address, such as http://127.0.0.1:8000",
    )
    for name, run, help_text in (
        ("approve", _approve, "say yes to a question, so that its run goes on"),
        ("deny", _deny, "say no to a question: its run goes on without that call"),
    ):
        command(name, run, help_text).add_argument("approval", metavar="ID", help="the id of `sealab approvals list`")


@contextmanager
def _store(home: Home, settings: Settings) -> Iterator[BackgroundStore]:
    home.prepare()
    database = database_of(settings.database_url, home)
    privacy = privacy_of(settings, home, database)
    try:
        yield Journal(settings, database, privacy.key, keeps=False).background()
    finally:
        privacy.close()
        database.close()


def _list(chosen: argparse.Namespace, store: BackgroundStore) -> int:
    pages = None if chosen.url is None else pages_at(chosen.url) + _place(chosen.tenants_home)
    told: list[dict[str, str]] = []
    for state in map(run_state, store.waiting(most=_LISTED_MAX)):
        if (approval := state.approval) is not None:
            told.append({"id": approval.id, "run_id": approval.run_id, "question": approval.question})
            if pages is not None:
                told[-1]["link"] = pages + store.link(approval.run_id, approval.number, state.expires or 0)
    if chosen.json:
        print(json.dumps({"count": len(told), "approvals": told}, ensure_ascii=False))
        return Exit.OK
    if not told:
        print("No run waits for an answer.")
    for each in told:
        link = [each["link"]] if "link" in each else []
        print(each["id"], each["question"], *link, "", sep="\n")
    return Exit.OK


def _place(tenant: str | None) -> str:
    """Return what the links of a tenant have before their token."""
    return "" if tenant in {None, DEFAULT_TENANT} else f"{tenant}/"


def _approve(chosen: argparse.Namespace, store: BackgroundStore) -> int:
    return _answer(chosen, store, approves=True)


def _deny(chosen: argparse.Namespace, store: BackgroundStore) -> int:
    return _answer(chosen, store, approves=False)


def _answer(chosen: argparse.Namespace, store: BackgroundStore, *, approves: bool) -> int:
    run_id, _, number = chosen.approval.rpartition(".")
    if not run_id or not number.isdecimal():
        raise UsageError(f"{chosen.approval} is no id of a question. `sealab approvals list` shows those that wait.")
    approval = run_state(store.state(run_id)).approval
    taken = False
    if approval is not None and approval.id == chosen.approval:
        # Only the least of what a yes may cover, as on a terminal.
        choice = (approval.choices[0] if approval.choices else "") if approves else None
        taken = store.answer(run_id, int(number), {"question": approval.question, "choice": choice})
    if not taken:
        answered = run_state(store.state(run_id)).answer_to(int(number))
        why = "its run ended, or never asked it" if answered is None else f"it was {answered}"
        raise UsageError(
            f"The question {chosen.approval} does not wait: {why}. `sealab approvals list` shows those that wait."
        )
    if chosen.json:
        print(json.dumps({"id": chosen.approval, "approved": approves}))
    else:
        print(f"{'Approved' if approves else 'Denied'}. The run {run_id} goes on within 10 seconds, if a server runs.")
    return Exit.OK
