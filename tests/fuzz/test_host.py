"""The server's parsers on hostile texts: a short form of `make fuzz-host`, and proof that it finds."""

from __future__ import annotations

import random
import re

import pytest

from . import host
from .host_parsers import COMMON, PARSERS, READERS_OF_YAML, Parser, bomb, text_of


@pytest.mark.parametrize("parser", [each for each in PARSERS if not each.at_terminal], ids=lambda parser: parser.name)
def test_every_parser_comes_to_the_end_of_a_text_that_no_slower_than_linear_one_would(parser: Parser) -> None:
    some = random.Random(parser.name).sample(COMMON, 6) if parser.common else []
    hostile = [*parser.pieces, *(("", piece, "") for piece in some)]
    assert not [(made, wrong) for made in hostile if (wrong := host.error_of(parser.read, text_of(made, host.CHARS)))]


@pytest.mark.parametrize("read", READERS_OF_YAML)
def test_aliases_of_aliases_stand_for_nothing_large(read) -> None:
    assert host.error_of(read, bomb()) is None


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda text: [text.count("\n", at) for at in range(len(text))], "does not come to the end"),
        (re.compile(r"(?:\n+)+x").search, "does not come to the end"),
        (lambda text: {}[text], "KeyError"),
    ],
    ids=["quadratic", "exponential", "another error"],
)
def test_what_does_not_come_to_its_end_or_breaks_is_found(read, told: str) -> None:
    with host.stopped_after(0.2):
        assert told in str(host.error_of(read, "\n" * host.CHARS))
