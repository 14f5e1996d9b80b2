"""What a yes covers: calls that name the parties, places and sums that its question showed, and no more of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mcp.types import ElicitResult

from ..conftest import Caller, in_process_server
from .test_approvals import NO, User, asking, yes
from .test_registry import ONE_SPARE, configure, result

BANK = Path(__file__).parents[2] / "data" / "bank_upstream.py"
ERAS = ["auto", "legacy"]
FROM_THEN = "From then on these need no yes, however often they are made:"
TRIED = """
said = []
async def tried(call):
    try:
        await call
    except ToolError as error:
        said.append(str(error))
"""


def configured(home: Path) -> None:
    configure(home, bank={"command": sys.executable, "args": [str(BANK), str(home / "ledger")]})


served = in_process_server(ONE_SPARE, configured)


@pytest.fixture
def ledger(served: Caller) -> Path:
    """The file to which the bank writes, which is not there yet."""
    file = served.home / "ledger"
    file.unlink(missing_ok=True)
    return file


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def answer(**content: str | bool) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": True} | content)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_question_shows_title_who_asks_values_and_from_what_others_are_computed(
    served: Caller, ledger: Path, mode: str
) -> None:
    user = User([yes()])
    code = """# Pay the rent
payee, fee = "US133000000121212121212", 5
await tools.bank.put(to=payee, amount=100 + fee, subject=f"Rent {month}")
for bill in await tools.bank.bills():
    await tools.bank.put(to=bill["iban"], amount=1)
"""
    async with asking(served, user, mode=mode) as caller:
        report = await caller.run(code, context_vars={"month": "May"})
    first = user.asked[0]
    assert first.startswith('May the running code make this call, in "Pay the rent"?\nIt runs for local, through mcp ')
    assert '1. bank.put(to="US133000000121212121212", amount=105, subject="Rent May") [line 3]\n' in first
    computed = 'to=computed from `bill["iban"], for bill in await tools.bank.bills()`'
    assert first.endswith(f"- bank.put(amount=1, {computed}) [line 5, any number of times]")
    assert report["status"] == "ok"
    assert [each.count("1. bank.put(") for each in user.asked] == [1] * 5
    assert lines_of(ledger)[0] == "US133000000121212121212 105 Rent May"


async def test_a_yes_covers_no_other_party_and_no_other_sum(served: Caller, ledger: Path) -> None:
    code = (
        TRIED
        + """
await tools.bank.put(to="anna", amount=100, subject="a")
to = "".join(["an", "na"])
for payee, amount in (("".join(["ev", "il"]), 100), (to, int("101"))):
    await tried(tools.bank.put(to=payee, amount=amount))
said
"""
    )
    user = User([yes(), NO])
    async with asking(served, user) as caller:
        assert len(await result(caller, code)) == 2
    assert lines_of(ledger) == ["anna 100 a"]
    assert 'to="evil", amount=100' in user.asked[1]
    assert 'to="anna", amount=101' in user.asked[2]


@pytest.mark.parametrize(
    "hidden",
    [
        "getattr(tools.bank, 'pu' + 't')(to='anna', amount=1)",
        "call_tool('bank.' + 'put', {'to': 'anna', 'amount': 1})",
        "tools['ba' + 'nk'].put(to='anna', amount=1)",
        "eval('tools.bank.' + 'put')(to='anna', amount=1)",
        "[tools][0].bank.put(to='anna', amount=1)",
    ],
)
async def test_a_hidden_call_never_rides_on_the_yes_to_another(served: Caller, ledger: Path, hidden: str) -> None:
    user = User([yes(), NO])
    code = f"{TRIED}\nawait tools.bank.put(to='anna', amount=1)\nawait tried({hidden})\nsaid"
    async with asking(served, user) as caller:
        assert "did not approve" in (await result(caller, code))[0]
    assert lines_of(ledger) == ["anna 1"]
    assert len(user.asked) == 2
    assert "The program may also make calls that it does not name." in user.asked[0]


OTHERWISE = """
import asyncio, functools
order = {"to": "anna", "amount": 1}
class Name(str):
    def __eq__(self, other): return True
    def __hash__(self): return hash("anna")
def names():
    yield from ("bert", "ANNA", "anna ", chr(0x430) + "nna", "an" + chr(0x200b) + "na", Name("dora"))
async def changed():
    while len(said) < 9:
        order["to"] = "emil"
        await asyncio.sleep(0.01)
await tried(tools.bank.put(to="anna", amount=1))
order["to"] = "carl"
calls = [call_tool("bank.put", order), *[tools.bank.put(to=name, amount=1) for name in names()]]
calls += [functools.partial(tools.bank.put, to="anna", amount=1)(amount=amount) for amount in (int("2"), int("-1"))]
await asyncio.gather(changed(), *map(tried, calls))
len(said)
"""


async def test_other_names_and_sums_are_asked_about_however_a_program_makes_them(served: Caller, ledger: Path) -> None:
    user = User([yes(), NO])
    async with asking(served, user) as caller:
        assert await result(caller, TRIED + OTHERWISE) == 9
    shown, asked = user.asked
    assert '1. bank.put(to="anna", amount=1) [line ' in shown
    assert "May the running code make these 9 calls" in asked
    assert 'to="\\u0430nna"' in asked
    assert lines_of(ledger) == ["anna 1"]


async def test_in_a_program_that_hides_calls_no_number_of_calls_is_left_open(served: Caller, ledger: Path) -> None:
    code = TRIED + "n = 0\nwhile n < 2:\n    await tried(tools.bank.note(text=str(n)))\n    n += 1\n"
    hiding = code + "await tried(getattr(tools.bank, 'no' + 'te')(text='hidden'))"
    user, other = User([yes()]), User([NO])
    async with asking(served, user) as caller:
        await result(caller, code)
    assert "[line 10, any number of times]" in user.asked[0]
    assert (len(user.asked), lines_of(ledger)) == (1, ["0", "1"])
    async with asking(served, other) as caller:
        await result(caller, hiding)
    assert (len(other.asked), lines_of(ledger)) == (3, ["0", "1"])


@pytest.mark.parametrize("mode", ERAS)
async def test_calls_at_once_are_one_question_of_which_some_are_refused_for_a_reason(
    served: Caller, ledger: Path, mode: str
) -> None:
    code = (
        TRIED
        + """
import asyncio
bills = await tools.bank.bills()
await asyncio.gather(*[tried(tools.bank.put(to=b["iban"], amount=b["sum"])) for b in bills])
said
"""
    )
    user = User([answer(refused="2, 4", reason="Those are paid.")])
    async with asking(served, user, mode=mode) as caller:
        said = await result(caller, code)
    assert all('did not approve the call of bank.put. Their reason: "Those are paid.".' in each for each in said)
    assert len(said) == 2
    [question] = user.asked
    rows = [f'{n}. bank.put(to="CH{n}", amount={10 * n})' for n in range(1, 5)]
    assert "\n".join(["bank.put, 4 calls:", *rows, "amount adds up to 100.\n"]) in question
    assert sorted(lines_of(ledger)) == ["CH1 10", "CH3 30"]


async def test_many_alike_calls_are_a_table_of_what_varies(served: Caller, ledger: Path) -> None:
    user = User([answer(refused="3"), answer()])
    code = TRIED + "for n in range(5): await tried(tools.bank.put(to='anna', amount=n + 1, subject='Rent'))\nlen(said)"
    async with asking(served, user) as caller:
        assert await result(caller, code) == 1
        await result(caller, "for n in range(50): await tools.bank.note(text=f'n {n}')")
    table, count = user.asked
    assert (
        'bank.put, 5 calls, in each to="anna", subject="Rent":\n1. bank.put(amount=1) [line 8]\n2. bank.put(' in table
    )
    assert '1. bank.note(text=one of "n 0", "n 1", "n 2", …) [line 1, at most 50 times]\n' in count
    assert lines_of(ledger)[:4] == [f"anna {n} Rent" for n in (1, 2, 4, 5)]
    assert len(lines_of(ledger)) == 54


async def test_what_is_refused_before_the_start_gives_its_reason_and_unclear_numbers_are_a_no(
    served: Caller, ledger: Path
) -> None:
    code = "await tools.bank.put(to='anna', amount=1)\nawait tools.bank.put(to='bert', amount=1)"
    no = ElicitResult(action="accept", content={"approve": False, "reason": "Not today"})
    for user, why in (
        (User([no]), 'Their reason: "Not today".'),
        (User([answer(refused="the second")]), "not clearly to which"),
    ):
        async with asking(served, user) as caller:
            report = await caller.run(code)
        assert report["status"] == "refused"
        assert why in report["error"]["message"]
    assert lines_of(ledger) == []


async def test_a_yes_for_always_is_a_rule_with_party_and_limit(served: Caller, ledger: Path) -> None:
    user = User([answer(covers="such calls always"), NO])
    code = "await tools.bank.put(to={!r}, amount={}, subject='s')"
    async with asking(served, user) as caller:
        await result(caller, code.format("carla", 100))
        for to, amount, asked in (("carla", 99, 1), ("carla", 101, 2), ("carla", -1, 3), ("bert", 1, 4)):
            await caller.run(code.format(to, amount))
            assert len(user.asked) == asked, (to, amount)
    rule = '\n- bank.put where to is "carla" and amount is at most 100'
    assert user.asked[0].endswith(f'"such calls always" also writes a rule. {FROM_THEN}{rule}')
    await result(served, code.format("carla", 100))  # whom nobody can ask
    assert (await served.run(code.format("bert", 1)))["status"] == "refused"
    assert lines_of(ledger) == ["carla 100 s", "carla 99 s", "carla 100 s"]


async def test_a_call_that_names_more_than_can_be_shown_is_not_asked_about(served: Caller, ledger: Path) -> None:
    user = User([yes()])
    async with asking(served, user) as caller:
        report = await caller.run("await tools.bank.put(to='a' * 30_000, amount=1)")
    assert "Split it into several calls." in report["error"]["message"]
    assert user.asked == []
