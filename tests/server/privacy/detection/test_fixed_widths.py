"""Numbers with check digits are found in records of fixed width, and no other long numbers are taken for them."""

from __future__ import annotations

import random

import pytest

from sealab.server.privacy.detection.detect import Detector
from sealab.server.privacy.detection.recognizers.numbers import fixed_widths, luhn

from ..found import found

IBANS = (
    "DE89370400440532013000",
    "GB82WEST12345698765432",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
    "CH9300762011623852957",
    "MT84MALT011000012345MTLCAST001S",
)


def card(dice: random.Random) -> str:
    digits = "4" + "".join(dice.choices("0123456789", k=14))
    return next(f"{digits}{last}" for last in range(10) if luhn(f"{digits}{last}"))


@pytest.mark.parametrize("iban", IBANS)
def test_an_iban_that_touches_letters_and_digits_is_found(fast: Detector, iban: str) -> None:
    for text in (f"0001{iban}000000012345EUR", f"X{iban}9", f"NAME{iban}{iban}"):
        assert {(iban, "IBAN")} == set(found(fast, text))
    assert not list(fixed_widths(f"0001{iban[:-1]}{'0' if iban[-1] != '0' else '1'}000000012345EUR"))


def test_cards_that_stand_at_one_place_in_several_lines_are_found(fast: Detector) -> None:
    dice = random.Random(3)
    cards = [card(dice) for _ in range(8)]
    text = "".join(f"{n:06d}{each}{n * 731:010d}EUR\n" for n, each in enumerate(cards))
    assert [value for value, kind in found(fast, f"HEADER\n{text}TRAILER\n") if kind == "CARD"] == cards
    assert not list(fixed_widths("\n".join(text.splitlines()[:5])))
    assert not list(fixed_widths(text.splitlines()[0] * 20))
    assert not list(fixed_widths((text.splitlines()[0] + "\n") * 20))


def test_a_card_beside_a_date_or_an_amount_with_leading_zeros_is_found(fast: Detector) -> None:
    for text in ("411111111111111120260131", "20260131550000000000000400", "41111111111111110000012345EUR"):
        assert [kind for _value, kind in found(fast, text) if kind == "CARD"] == ["CARD"] * (not text.endswith("400"))
    assert found(fast, "2026013141111111111111111 411111111111111220260131 411111111111111120261331") == []


def test_long_numbers_hashes_and_codes_are_none_of_them() -> None:
    dice = random.Random(5)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    texts = [
        "\n".join("".join(dice.choices(kinds, k=64)) for _ in range(4000))
        for kinds in ("0123456789", "0123456789ABCDEF", letters, letters + letters.lower() + "+/")
    ]
    texts.append("\n".join(f"2026113009{n:06d}{n * 37:012d}" for n in range(4000)))
    assert [text[each.start : each.end] for text in texts for each in fixed_widths(text)] == []
