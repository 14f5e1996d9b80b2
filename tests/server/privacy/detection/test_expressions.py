"""No expression of a recognizer is slow on a text: while one looks, no other thread of the server runs."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator

import pytest

from sealab.server.privacy.detection.detect import RECOGNIZERS, Detector
from sealab.server.privacy.detection.findings import Finding, PiiType
from sealab.server.privacy.detection.recognizers.keyed_values import lines
from sealab.server.privacy.detection.recognizers.secrets import long_secrets, secrets

from ..expressions import (
    LONG_CHARS,
    LONG_SECONDS,
    SHORT_CHARS,
    dearest,
    found_by,
    hostile_units,
    patterns_of,
    processor_seconds,
    repeated,
)
from ..hostile_pieces import PIECES

UNITS = 150
KNOWN = ("-eyJ", "-eyJaaaaaaaa.", "\t\t\t\t\t\t\t\ta : b", "PuTTY-User-Key-File-1\n", "login ", "/", '"')
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
_CARELESS = re.compile(r"(?<![A-Za-z])eyJ[A-Za-z-]{8,}\.")


@pytest.mark.parametrize(
    ("find", "types"), [each[:2] for each in RECOGNIZERS], ids=lambda each: getattr(each, "__name__", "")
)
def test_a_recognizer_takes_no_more_than_linear_time_and_finds_what_it_says(find, types) -> None:
    dice = random.Random(find.__name__)
    units = [unit for pattern in patterns_of(find) for unit in hostile_units(pattern, dice, 12)]
    units = [*KNOWN, *PIECES, *dice.sample(units, min(UNITS, len(units)))]
    for unit in PIECES:
        text = repeated(unit, SHORT_CHARS)
        for finding in found_by(find, text):
            assert 0 <= finding.start < finding.end <= len(text), unit
            assert finding.type in types, unit
    for unit in dearest(find, units, 3):
        try:
            with processor_seconds(LONG_SECONDS):
                found_by(find, repeated(unit, LONG_CHARS))
        except TimeoutError:
            pytest.fail(f"{unit!r} takes more than linear time")


def careless(text: str) -> Iterator[Finding]:
    for match in _CARELESS.finditer(text):
        yield Finding(*match.span(), PiiType.SECRET, 1.0)


def test_an_expression_that_begins_anew_within_what_it_repeats_is_found() -> None:
    (unit,) = dearest(careless, hostile_units(_CARELESS, random.Random(1), 12), 1)
    with pytest.raises(TimeoutError), processor_seconds(LONG_SECONDS / 100):
        found_by(careless, repeated(unit, LONG_CHARS // 8))


def test_a_web_token_is_found_whatever_it_stands_beside_and_nothing_that_only_looks_like_one() -> None:
    befores = ("", "jwt-", "x.", "eyJ-", "-eyJ-eyJ", "eyJ.eyJ.", "a" * 30 + ".", "é", "=", "-" * 5000)
    for before, after in itertools.product(befores, ("", ".", ".more", "-", " ", "é")):
        text = before + TOKEN + after
        (found,) = long_secrets(text)
        assert text[found.start : found.end].removesuffix("-").endswith(TOKEN), (before, after)
    for text in ("a" + TOKEN, "_" + TOKEN, TOKEN.replace(".", "-"), "eyJ." + TOKEN[30:], TOKEN[:50]):
        assert not [*long_secrets(text)], text


@pytest.mark.parametrize("start", range(44_000, 54_000, 1_000))
def test_a_web_token_longer_than_the_seam_of_two_blocks_is_found(fast: Detector, start: int) -> None:
    head, body, signature = TOKEN.split(".")
    token = f"{head}.{body * 200}.{signature}"
    text = "a b " * (start // 4) + token + " a b" * 20_000
    assert (start, start + len(token)) in {(each.start, each.end) for each in fast.find(text)}


def test_a_field_within_a_line_ends_where_it_did() -> None:
    for text, names in (
        ("(name: Jane Doe) [1]", ["Jane Doe"]),
        ("\t\t\t\t\t\t\t\tname : Jane Doe;", ["Jane Doe"]),
        (";\t  \t name:\t\tJane Doe\n", ["Jane Doe"]),
        ("{name: Jane Doe [1]", []),
        ("{name: " + "Jane Doe " * 30, []),
        ("{a: b [1] {name: Jane Doe}", ["Jane Doe"]),
        ("{a: b) x name: [, name: Jane Doe|", ["Jane Doe"]),
    ):
        inline = [text[each.start : each.end] for each in lines(text) if each.type == PiiType.PERSON]
        assert inline == names, text


def test_a_private_key_file_ends_at_the_next() -> None:
    file = "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\nAAAA\nPrivate-MAC: " + "0a" * 20
    text = f"PuTTY-User-Key-File-2: cut off\nComment: x\n{file}\n{file}\n"
    assert [text[each.start : each.end] for each in long_secrets(text)] == [file, file]
    assert not [*secrets(file)]
