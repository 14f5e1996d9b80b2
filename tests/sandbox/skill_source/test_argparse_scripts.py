"""Scripts with `argparse` options as skills: what becomes a parameter, and what reaches the script's own parser."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from sealab.sandbox.job import SourceReading
from sealab.sandbox.skill_source.facts import read

SCRIPT = """
import argparse
import sys


def main():
    parser = argparse.ArgumentParser()
    {options}
    return vars(parser.parse_args(sys.argv[1:]))
"""


def told(*options: str) -> dict[str, Any]:
    return dict(read(SCRIPT.format(options="\n    ".join(options)), SourceReading("tried")))


def called(facts: Mapping[str, Any], **arguments: object) -> Any:
    """Run the code as a skill is run, and return what the script's parser made of the arguments."""
    space: dict[str, Any] = {"__name__": "skills.tried"}
    exec(facts["code"], space)
    return space["tried"](**arguments)


CASES: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("'--url', required=True", {"url": "a=b --c"}, {"url": "a=b --c"}),
    ("'--url', '-u', default='x'", {}, {"url": "x"}),
    ("'--max-items', type=int, default=3", {"max_items": -2}, {"max_items": -2}),
    ("'--share', type=float", {"share": 0.5}, {"share": 0.5}),
    ("'--share', type=float", {}, {"share": None}),
    ("'--kind', choices=['a', 'b']", {"kind": "b"}, {"kind": "b"}),
    ("'--loud', action='store_true'", {"loud": True}, {"loud": True}),
    ("'--quiet', action='store_false'", {"quiet": False}, {"quiet": False}),
    ("'-v', action='count', default=0", {"v": 2}, {"v": 2}),
    ("'--on', action=argparse.BooleanOptionalAction, default=True", {"on": False}, {"on": False}),
    ("'--tag', action='append'", {"tag": ["a", "b"]}, {"tag": ["a", "b"]}),
    ("'--ids', nargs='+', type=int", {"ids": [1, 2]}, {"ids": [1, 2]}),
    ("'--map', nargs='*'", {"map": ["a"]}, {"map": ["a"]}),
    ("'--str'", {"str": "a"}, {"str": "a"}),
    ("'--from', dest='start'", {"start": "x"}, {"start": "x"}),
    ("'file'", {"file": "-x"}, {"file": "-x"}),
    ("'files', nargs='*'", {"files": ["a", "b"]}, {"files": ["a", "b"]}),
    ("'--version', action='version', version='1'", {}, {}),
]


@pytest.mark.parametrize(("option", "given", "parsed"), CASES)
def test_the_scripts_own_parser_gets_the_arguments(
    option: str, given: dict[str, object], parsed: dict[str, object]
) -> None:
    facts = told(f"parser.add_argument({option})", "parser.add_argument('--also', default=1)")
    assert called(facts, **given) == {**parsed, "also": 1} or called(facts, **given) == {**parsed, "also": "1"}


def test_parameters_have_types_defaults_and_what_the_options_say() -> None:
    facts = told(
        "parser.add_argument('--limit', type=int, default=3, help='how many\\n    at most')".replace("\\n    ", " "),
        "parser.add_argument('--kind', choices=['a', 'b'], required=True)",
    )
    properties = facts["parameters"]["properties"]
    assert properties["limit"] == {"type": "integer", "default": 3, "description": "how many at most"}
    assert properties["kind"]["enum"] == ["a", "b"]
    assert facts["parameters"]["required"] == ["kind"]


def test_an_async_main_gives_an_async_function_and_argv_is_as_before() -> None:
    source = SCRIPT.format(options="parser.add_argument('--n', type=int)").replace("def main", "async def main")
    facts = read(source, SourceReading("tried"))
    assert facts["is_async"]
    space: dict[str, Any] = {"__name__": "skills.tried"}
    exec(str(facts["code"]), space)
    before = space["sys"].argv
    assert asyncio.run(space["tried"](n=4)) == {"n": 4}
    assert space["sys"].argv is before


@pytest.mark.parametrize(
    "option",
    ["*NAMES", "f'--{n}'", "'--x', **MORE", "'--x', action=Own", "'--__x'", "'--main'", '"--x\'{y}"'],
)
def test_an_option_that_cannot_be_read_is_no_parameter(option: str) -> None:
    facts = told(f"parser.add_argument({option})", "parser.add_argument('--n', type=int, default=1)")
    assert list(facts["parameters"]["properties"]) == ["n"]


def test_scripts_with_commands_or_without_options_stay_as_they_are() -> None:
    for options in (("parser.add_subparsers().add_parser('a').add_argument('--x')",), ("pass",)):
        facts = told(*options)
        assert facts["entry"] == "main"
        assert facts["parameters"]["properties"] == {}


def test_what_is_read_again_is_not_changed_again() -> None:
    facts = told("parser.add_argument('--n', type=int)")
    assert read(str(facts["code"]), SourceReading("tried"))["code"] == facts["code"]
