"""Known numbers that touch other digits or letters: hidden where they stand, and what stood there comes back."""

from __future__ import annotations

import json
import random
import time
from typing import cast

import pytest

from sealab.server.privacy.token_texts import TOKEN
from sealab.server.privacy.tokens.learned_values import LearnedValues
from sealab.server.privacy.tokens.parts import Text, Tree
from sealab.server.privacy.tokens.sanitizer import Sanitizer

ROW = {
    "customer_name": "Jane Doering",
    "iban": "DE89 3704 0044 0532 0130 00",
    "card": "4539 1488 0343 6467",
    "ssn": "536-90-4399",
    "phone": "+1 (202) 555-0143",
    "account_number": "0532013000",
    "passport_number": "C01X00T47",
}
IBAN, CARD, SSN, PHONE, PASSPORT = "DE89370400440532013000", "4539148803436467", "536904399", "12025550143", "C01X00T47"


def hidden(sanitizer: Sanitizer, text: str, scope: str = "glued") -> str:
    return cast("str", sanitizer.hide(scope, [Text(text)]).parts[0])


@pytest.fixture(scope="module")
def knowing(real: Sanitizer) -> Sanitizer:
    real.learn("glued", [Tree([ROW])])
    return real


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{IBAN}{12345:010d}", IBAN),
        (f"{CARD}{12345:010d}", CARD),
        (f"9{CARD}9", CARD),
        (f"{12345:010d}{CARD}", CARD),
        (f"{ROW['card']}{12345:010d}", ROW["card"]),
        (f"x{IBAN.lower()}x", IBAN.lower()),
        (f"{'0' * 300}{SSN}{'7' * 300}", SSN),
        (f"id7{ROW['ssn']}7", ROW["ssn"]),
        (f"77{PHONE}77", PHONE),
        (f"tel{PHONE}x", PHONE),
        (f"0{PASSPORT}12", PASSPORT),
        (f"SMITH{PASSPORT}USA", PASSPORT),
        (f"a{PHONE}{CARD}{IBAN}z", CARD),
        (f"a{PHONE}{CARD}{IBAN}z", IBAN),
        ("".join(ROW.values()), ROW["iban"]),
        ("".join(ROW.values()), ROW["card"]),
        ("".join(each.replace(" ", "") for each in ROW.values()), IBAN),
        (f"{'0001':<6}{'DOERING JANE':<20}{IBAN:<22}{12345:012d}{CARD}{'EUR'}", IBAN),
        (f"{'0001':<6}{'DOERING JANE':<20}{IBAN:<22}{12345:012d}{CARD}{'EUR'}", CARD),
        ((f"1{CARD}000012345\n" * 3000), CARD),
    ],
)
def test_a_known_number_within_a_longer_run_is_hidden_in_place_and_comes_back(
    knowing: Sanitizer, text: str, value: str
) -> None:
    shown = hidden(knowing, text)
    assert value not in shown
    assert TOKEN.search(shown)
    assert knowing.restore_text("glued", shown).content == text
    assert hidden(knowing, shown) == shown


def test_a_number_of_json_that_holds_a_known_one_is_hidden_and_is_a_number_again(knowing: Sanitizer) -> None:
    rows = {"key": int(f"{CARD}{12345:010d}"), "n": 12345}
    shown = cast("dict[str, object]", knowing.hide("glued", [Tree(rows)]).parts[0])
    assert CARD not in json.dumps(shown)
    assert shown["n"] == 12345
    assert knowing.restore_value("glued", shown).content == rows


def test_a_known_number_with_digits_around_it_is_known_in_what_goes_to_a_tool(knowing: Sanitizer) -> None:
    places = knowing.known_in("glued", {"body": f"9{CARD}9", "more": [f"{IBAN}{12345:010d}"], "n": "12345"})
    assert [(place.path[0], place.text, str(place.span.type)) for place in places] == [
        ("body", CARD, "CARD"),
        ("more", IBAN, "IBAN"),
    ]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"account_number": "123456"}, "order 91234569"),
        ({"birth_date": "1980-03-05"}, "trace 7198003057"),
        ({"zip": "20500-1234"}, "trace 7205001234"),
        ({"username": "user2024"}, "user20245"),
        ({"ip": "10.20.30.40"}, "build 10.20.30.401"),
        ({"phone": "+1 (202) 555-0143"}, "took 712.025550143 ms"),
        ({"customer_name": "Jane Doering"}, "SuJane Doeringer"),
    ],
)
def test_short_numbers_and_what_is_no_number_are_no_part_of_longer_runs(
    real: Sanitizer, row: dict[str, str], text: str
) -> None:
    scope = next(iter(row))
    real.learn(scope, [Tree([row])])
    assert hidden(real, text, scope) == text


def test_a_value_that_is_known_by_its_hash_alone_is_found_within_a_longer_run() -> None:
    learned = LearnedValues()
    learned.add("CARD", [CARD, "5425233430109903"])
    learned.add("IBAN", [IBAN])
    learned.add("BANK", ["123456"])
    text = f"{'0001':<6}{IBAN}{12345:012d}{CARD} 9{CARD}9 91234569"
    assert sorted({text[span.start : span.end] for span in learned.find(text)}) == [CARD, IBAN]


def test_looking_within_runs_takes_time_in_proportion_to_the_text(real: Sanitizer) -> None:
    numbers = random.Random(7)
    prefix = "45391488"
    rows = [{"card": prefix + "".join(numbers.choices("0123456789", k=8))} for _ in range(200)]
    real.learn("linear", [Tree(rows)])
    taken = []
    for count in (20_000, 80_000):
        text = prefix * (count // 8)
        real.known_in("linear", {"x": text[:100]})
        began = time.thread_time()
        real.known_in("linear", {"x": text})
        taken.append(time.thread_time() - began)
    assert taken[1] < 8 * taken[0] + 0.05


@pytest.mark.parametrize("after", ["0" * 30, "0" * 300])
def test_a_number_of_any_length_that_holds_a_known_one_is_hidden_and_known_on_its_way_to_a_tool(
    knowing: Sanitizer, after: str
) -> None:
    number = int(CARD + after)
    rows = {"key": number, "n": 12345}
    shown = cast("dict[str, object]", knowing.hide("glued", [Tree(rows)]).parts[0])
    assert CARD not in json.dumps(shown)
    assert knowing.restore_value("glued", shown).content == rows
    written = json.dumps(rows)
    text = hidden(knowing, written)
    assert CARD not in text
    assert json.loads(cast("str", knowing.restore_text("glued", text).content)) == rows
    lines = "".join(f'{{"key": {number}, "n": {n}}}\n' for n in range(1000))
    assert CARD not in hidden(knowing, lines)
    assert CARD in [place.text[: len(CARD)] for place in knowing.known_in("glued", {"body": number})]
