"""The server's parsers on hostile texts: a short form of `make fuzz-host`, and proof that it finds."""

from __future__ import annotations

import ast
import random
import re
import tomllib
from pathlib import Path

import pytest

from ..regexes.sources import FOLDERS, ROOT, elsewhere
from . import host, host_parsers
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


READS = re.compile(
    r"\bjson5?\.loads?\b|JSONDecoder|raw_decode|b64decode|a2b_|unhexlify|\.unpack(?:_from)?\(|tomllib\.loads?\b|csv\.(?:DictR|r)eader|"
    r"yaml\.\w*(?:load|parse)|SafeLoader|ZipFile\(|gzip\.|lzma\.|bz2\.|decompress|fromstring\(|iterparse|sqlite3\.connect|"
    r"incrementaldecoder|validate_json"
)
"""What reads packed bytes; an own reader of text is covered by its regular expressions, see `tests.regexes`."""


def test_every_module_of_the_server_that_reads_packed_bytes_is_fuzzed_or_said_to_read_no_strangers() -> None:
    tree = ast.parse(Path(host_parsers.__file__).read_text())
    fuzzed = {
        f"{'/'.join(parts[1:])}.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sealab.")
        for parts in (f"{node.module}".split("."), *(f"{node.module}.{each.name}".split(".") for each in node.names))
    }
    said = tomllib.loads(Path(__file__).with_name("outside_bytes.toml").read_text())
    named = [path for reasons in said.values() for path in reasons]
    reading = {
        path
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
        if elsewhere(path := str(file.relative_to(ROOT))) is None and READS.search(file.read_text())
    }
    assert len(named) == len(set(named))
    assert reading - fuzzed - set(named) == set(), "fuzz them in host_parsers.py, or say in outside_bytes.toml why not"
    assert set(named) - reading == set(), "these read nothing any more"
    assert set(named) & fuzzed == set(), "these are fuzzed"
    assert all(why for reasons in said.values() for why in reasons.values())
