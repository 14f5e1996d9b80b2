"""The server's parsers on hostile texts of two sizes: a short form of `make fuzz-host`, and proof that it finds."""

from __future__ import annotations

import random
import re

import pytest

from . import host
from .host_parsers import COMMON, PARSERS, Parser, bomb, definitions_file, front_matter, skill_md

pytestmark = pytest.mark.slow

SIZES = (1_000, 8_000)
SERVED = [parser for parser in PARSERS if not parser.at_terminal]


@pytest.mark.parametrize("parser", SERVED, ids=lambda parser: parser.name)
def test_no_parser_takes_clearly_more_than_linear_time(parser: Parser) -> None:
    host.seconds(parser.read, "a")
    some = random.Random(parser.name).sample(COMMON, 12) if parser.common else []
    hostile = [*parser.pieces, *(("", piece, "") for piece in some)]
    assert not [(made, wrong) for made in hostile if (wrong := host.find_in(parser, made, SIZES))]


@pytest.mark.parametrize("read", [front_matter, skill_md, definitions_file])
def test_aliases_of_aliases_stand_for_nothing_large(read) -> None:
    took, error = host.seconds(read, bomb())
    assert not error
    assert took < host.TOO_LONG_SECONDS


@pytest.mark.parametrize(
    "read",
    [re.compile(r"^\s*x", re.MULTILINE).search, re.compile(r"(?:\n+)+x").search, lambda text: {}[text]],
    ids=["quadratic", "exponential", "another error"],
)
def test_what_is_slow_or_breaks_is_found(read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "TOO_LONG_SECONDS", 0.2)
    assert host.find_in(Parser("broken", read), ("", "\n", ""), (40, 1_000, 8_000, 64_000))
