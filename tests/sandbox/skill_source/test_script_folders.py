"""Folders of others made into code: a function for each script, with the options that its source names."""

from __future__ import annotations

import pytest

from sealab.sandbox.job import Json, SourceReading
from sealab.sandbox.skill_source import facts

ARGPARSE = '''
"""Fill a form.

More of it.
"""
import argparse, yaml
from neighbour import pages
parser = argparse.ArgumentParser()
parser.add_argument("form", help="the PDF")
parser.add_argument("--dpi", type=int, default=150)
parser.add_argument("--mode", choices=["a", "b"], required=True)
if __name__ == "__main__":
    print(parser.parse_args())
'''
CLICK = """
import click
@click.command()
@click.argument("names", nargs=-1)
@click.option("--loud", "-l", is_flag=True, help="shout")
@click.option("--tone", type=click.Choice(["low", "high"]), default="low")
@click.option("-n", "--times", "count", type=int)
def main(names, loud, tone, count): ...
if __name__ == "__main__":
    main()
"""
TYPER = """
from typing import Annotated, Optional
import typer
app = typer.Typer()
@app.command()
def main(path: str, limit: int = 3, dry: bool = False, tag: Annotated[Optional[str], typer.Option(help="a tag")] = None):
    ...
if __name__ == "__main__":
    app()
"""
COMMANDS = """
import argparse
parts = argparse.ArgumentParser().add_subparsers()
parts.add_parser("pack").add_argument("--to")
parts.add_parser("check")
if __name__ == "__main__":
    print(1)
"""


def of(**scripts: str) -> dict[str, Json]:
    sources = {f"scripts/{name}.py": text for name, text in scripts.items()}
    return facts.read("pass", SourceReading("pdf", scripts=sources))


def words(code: str, call: str) -> list[str]:
    ran: list[list[str]] = []
    own: dict[str, object] = {"skill_script": lambda _skill, _path, given: ran.append(given)}
    exec(code, own)
    eval(call, own)
    return ran[0]


@pytest.mark.parametrize(
    ("source", "call", "given"),
    [
        (ARGPARSE, "run('x.pdf', mode='a')", ["--mode=a", "--", "x.pdf"]),
        (ARGPARSE, "run('x', 300)", ["--dpi=300", "--", "x"]),
        (ARGPARSE, "run(argv=['--help'])", ["--help"]),
        (CLICK, "run(['x', 'y'], loud=True, count=2)", ["--loud", "--times=2", "--", "x", "y"]),
        (TYPER, "run('p', dry=True, tag='t')", ["--dry", "--tag=t", "--", "p"]),
        (COMMANDS, "run(argv=['pack', '--to', 'x'])", ["pack", "--to", "x"]),
        ("import sys\nprint(sys.argv)", "run(argv=['x'])", ["x"]),
    ],
)
def test_options_become_words(source: str, call: str, given: list[str]) -> None:
    assert words(str(of(run=source)["code"]), call) == given


def test_the_skill_is_called_for_its_text_and_for_each_script() -> None:
    told = of(
        fill=ARGPARSE, pdf=COMMANDS, neighbour="def pages(): ...", broken="if __name__ == '__main__': (", test_it=CLICK
    )
    assert told["entry"] == "pdf"
    assert told["signature"] == (
        "pdf(read: str = 'SKILL.md', *, script: \"Literal['fill', 'pdf_script'] | None\" = None, argv: list[str] = [])"
        " -> str"
    )
    assert told["modules"] == ["click", "yaml"]
    code = str(told["code"])
    assert "Its commands: check, pack." in code
    assert "(required)" in code
    assert "Fill a form." in code


def test_a_folder_of_texts_alone_has_no_scripts() -> None:
    assert of()["signature"] == "pdf(read: str = 'SKILL.md') -> str"


def test_scripts_of_one_name_are_told_apart_by_their_folders_and_parts_of_packages_are_none() -> None:
    guard = "if __name__ == '__main__':\n    pass\n"
    scripts = {
        "scripts/run.py": guard,
        "more/run.py": guard,
        "more/part.py": f"from . import run\n{guard}",
        "2d.py": guard,
    }
    code = str(facts.read("pass", SourceReading("a", scripts=scripts))["code"])
    names = {"run_2d": "2d.py", "more_run": "more/run.py", "scripts_run": "scripts/run.py"}
    assert f"SCRIPTS = {names!r}" in code
