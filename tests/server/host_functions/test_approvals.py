"""What the user said in one run: kept by what a call names, for so many calls, over the end of a process."""

from __future__ import annotations

import pytest

from sealab.server.governance.questions import AskedArgument, AskedCall, Question
from sealab.server.use_cases.host_functions.approvals import Approvals


def test_a_yes_is_spent_by_the_calls_that_it_covers() -> None:
    said = Approvals()
    said.grant("one", 0, 2)
    said.grant("any", 0, None)
    assert [said.spend("one") for _ in range(3)] == [True, True, False]
    assert all(said.spend("any") for _ in range(9))
    assert not said.spend("other")
    said.grant("one", 0, 1)
    assert said.grants("one")
    said.take("skill", 1, "hash")
    assert not said.grants("one"), "the run has code that was not there when its user was asked"
    assert not said.spend("any")


def test_what_was_said_is_restored_with_the_fewest_calls_that_were_left() -> None:
    said = Approvals()
    said.grant("one", 0, 3)
    said.declined["two"] = "Not today: it rains"
    said.asked.add("three")
    told = [said.as_texts()]
    assert said.spend("one")
    told.append(said.as_texts())
    said.grant("four", 0, None)
    told.append(said.as_texts())
    every: dict[str, set[str]] = {}
    for each in told:
        for name, texts in each.items():
            every.setdefault(name, set()).update(texts)
    again = Approvals()
    again.restore(every)
    assert [again.spend("one") for _ in range(3)] == [True, True, False]
    assert again.spend("four")
    assert again.declined == {"two": "Not today: it rains"}
    assert again.asked == {"three"}


def test_a_yes_that_an_earlier_version_kept_for_a_tool_covers_no_call() -> None:
    said = Approvals()
    said.restore({"granted": {"0 up.append"}})
    assert not said.spend("up.append")


def test_an_answer_answers_no_question_that_shows_more() -> None:
    to = AskedArgument(name="to", value="GB1", identifying=True)
    clause = 'to "GB1" stands only in the text of bank.read_file("bill.txt")'

    def asked(times: int | None = 1, source_clause: str | None = None) -> Question:
        argument = to.changed(source_clause=source_clause)
        return Question(calls=(AskedCall(server="bank", tool="pay", arguments=(argument,), times=times),))

    assert asked().asks_the_same(asked())
    assert asked(2).asks_the_same(asked(3))
    assert asked(2).asks_the_same(asked(None))
    assert not asked(3).asks_the_same(asked(2))
    assert not asked(None).asks_the_same(asked(2))
    assert asked().asks_the_same(asked(source_clause=clause))
    assert not asked(source_clause=clause).asks_the_same(asked())


@pytest.mark.parametrize(
    ("currencies", "amounts", "total"),
    [
        ("EUR EUR EUR", (0.1, 0.2, 30), "amount adds up to 30.3."),
        ("EUR USD EUR", (0.1, 0.2, 30), None),
        ("EUR EUR EUR", ("1", 2, 3), None),
    ],
)
def test_a_table_says_what_its_sums_add_up_to_where_they_can_be_added(
    currencies: str, amounts: tuple[object, ...], total: str | None
) -> None:
    calls = [
        AskedCall(
            server="bank",
            tool="pay",
            arguments=(
                AskedArgument(name="to", value=f"GB{number}", identifying=True),
                AskedArgument(name="amount", value=amount, identifying=True, counts=True),
                AskedArgument(name="currency", value=currency, identifying=True, counts=True),
            ),
        )
        for number, (currency, amount) in enumerate(zip(currencies.split(), amounts, strict=True))
    ]
    said = [line for line in Question(calls=tuple(calls)).text.split("\n") if "adds up" in line]
    assert said == ([] if total is None else [total])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\u0430nna@example.org", '"\\u0430nna@example.org"'),
        ("GB\uff11", '"GB\\uff11"'),
        ({"\u0442o": "an\u200bna"}, '{"\\u0442o": "an\\u200bna"}'),
        ("\u0410\u043d\u043d\u0430 Müller 1, Tシャツ", '"\u0410\u043d\u043d\u0430 Müller 1, Tシャツ"'),
    ],
)
def test_a_letter_that_only_looks_like_a_latin_one_is_shown_as_its_number(value: object, shown: str) -> None:
    argument = AskedArgument(name="to", value=value, identifying=True)
    call = AskedCall(server="bank", tool="pay", arguments=(argument,))
    assert f"1. bank.pay(to={shown})" in Question(calls=(call,)).text
