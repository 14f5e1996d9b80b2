"""No expression of a recognizer is slow on a text: while one looks, no other thread of the server runs."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from sealab.server.privacy.detection.analyzer import RECOGNIZERS
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode
from sealab.server.privacy.detection.findings import Finding, PiiType
from sealab.server.privacy.detection.recognizers.lines import lines
from sealab.server.privacy.detection.recognizers.secrets import long_secrets, secrets

from ..expressions import MOST_COST, cost_of, hostile_units, patterns_of
from ..hostile_pieces import PIECES

FINDS = [find for find, _ in RECOGNIZERS]
UNITS = 150
KNOWN = ("-eyJ", "-eyJaaaaaaaa.", "\t\t\t\t\t\t\t\ta : b", "PuTTY-User-Key-File-1\n", "login ", "/", '"')
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
_CARELESS = re.compile(r"(?<![A-Za-z])eyJ[A-Za-z-]{8,}\.")


@pytest.mark.parametrize("find", FINDS, ids=lambda each: each.__name__)
def test_no_step_of_a_recognizer_takes_much_longer_than_a_plain_search(find) -> None:
    dice = random.Random(find.__name__)
    units = [unit for pattern in patterns_of(find) for unit in hostile_units(pattern, dice, 12)]
    tried = [*KNOWN, *dice.sample(PIECES, 12), *dice.sample(units, min(UNITS, len(units)))]
    assert not [(unit, cost) for unit in tried if (cost := cost_of(find, unit))[0] > MOST_COST]


def careless(text: str) -> Iterator[Finding]:
    for match in _CARELESS.finditer(text):
        yield Finding(*match.span(), PiiType.SECRET, 1.0)


def test_an_expression_that_begins_anew_within_what_it_repeats_is_found() -> None:
    units = [unit for unit in hostile_units(_CARELESS, random.Random(1), 12) if cost_of(careless, unit)[0] > MOST_COST]
    assert "-eyJ" in units


@pytest.mark.parametrize(
    "before", ["", "jwt-", "x.", "eyJ-", "-eyJ-eyJ", "eyJ.eyJ.", "a" * 30 + ".", "é", "=", "-" * 5000]
)
@pytest.mark.parametrize("after", ["", ".", ".more", "-", " ", "é"])
def test_a_web_token_is_found_whatever_it_stands_beside(before: str, after: str) -> None:
    text = before + TOKEN + after
    (found,) = long_secrets(text)
    assert text[found.start : found.end].removesuffix("-").endswith(TOKEN)


@pytest.mark.parametrize("text", ["a" + TOKEN, "_" + TOKEN, TOKEN.replace(".", "-"), "eyJ." + TOKEN[30:], TOKEN[:50]])
def test_what_only_looks_like_a_web_token_is_none(text: str) -> None:
    assert not [*long_secrets(text)]


@pytest.mark.parametrize("start", range(44_000, 54_000, 1_000))
def test_a_web_token_longer_than_the_seam_of_two_blocks_is_found(start: int) -> None:
    head, body, signature = TOKEN.split(".")
    token = f"{head}.{body * 200}.{signature}"
    text = "a b " * (start // 4) + token + " a b" * 20_000
    assert (start, start + len(token)) in {
        (each.start, each.end) for each in Detector(DetectorOptions(mode=Mode.FAST)).find(text)
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(name: Jane Doe) [1]", "Jane Doe"),
        ("\t\t\t\t\t\t\t\tname : Jane Doe;", "Jane Doe"),
        (";\t  \t name:\t\tJane Doe\n", "Jane Doe"),
        ("{name: Jane Doe [1]", None),
        ("{name: " + "Jane Doe " * 30, None),
        ("{a: b [1] {name: Jane Doe}", "Jane Doe"),
        ("{a: b) x name: [, name: Jane Doe|", "Jane Doe"),
    ],
)
def test_a_field_within_a_line_ends_where_it_did(text: str, value: str | None) -> None:
    inline = [text[each.start : each.end] for each in lines(text) if each.type == PiiType.PERSON]
    assert inline == ([] if value is None else [value])


def test_a_private_key_file_ends_at_the_next() -> None:
    file = "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\nAAAA\nPrivate-MAC: " + "0a" * 20
    text = f"PuTTY-User-Key-File-2: cut off\nComment: x\n{file}\n{file}\n"
    assert [text[each.start : each.end] for each in long_secrets(text)] == [file, file]
    assert not [*secrets(file)]
