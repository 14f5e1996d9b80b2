"""The server's parsers on hostile texts of two sizes: a short form of `make fuzz-host`, and proof that it finds."""

from __future__ import annotations

import re

import pytest

from . import host
from .host_parsers import PARSERS, Parser, bomb, definitions_file, front_matter, skill_md, texts

SIZES = (1_000, 8_000)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_no_parser_takes_clearly_more_than_linear_time(parser: Parser) -> None:
    host.seconds(parser.read, "a")
    assert not [(made, wrong) for made in texts(parser) if (wrong := host.find_in(parser, made, SIZES))]


@pytest.mark.parametrize("read", [front_matter, skill_md, definitions_file])
def test_aliases_of_aliases_stand_for_nothing_large(read) -> None:
    took, error = host.seconds(read, bomb())
    assert not error
    assert took < host.TOO_LONG_SECONDS


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        (re.compile(r"^\s*x", re.MULTILINE).search, "times as for"),
        (re.compile(r"(?:\n+)+x").search, "stopped after"),
        (lambda text: {}[text], "KeyError"),
    ],
    ids=["quadratic", "exponential", "another error"],
)
def test_what_is_slow_or_breaks_is_found(read, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "TOO_LONG_SECONDS", 0.2)
    assert wrong in str(host.find_in(Parser("broken", read), ("", "\n", ""), (40, 1_000, 8_000, 64_000)))
