"""The TypeScript SDKs, 1.x with its eras and 2.x with both. `MODULES` is the folder that npm installed them in."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import ASKS, FAILS, IMAGE, PAGE, PAYS, check_questions

MODULES = Path(os.environ["MODULES"]).absolute()
WAYS = ["1-stdio-legacy", "1-http-legacy", "2-stdio-legacy", "2-stdio-modern", "2-http-legacy", "2-http-modern"]


def printed_by(*command: str | Path, cwd: Path = MODULES.parent) -> str:
    ended = subprocess.run(["node", *command], capture_output=True, text=True, cwd=cwd, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


@pytest.mark.parametrize("way", WAYS)
def test_tools_are_listed_and_code_runs_with_images_failures_and_a_question(way: str, url: str) -> None:
    program = Path(__file__).with_suffix(".mjs")
    said = json.loads(printed_by(program, MODULES, *way.split("-"), url, "1 + 1", IMAGE, FAILS, ASKS))
    assert "execute_code" in said["tools"]
    answer, shown, failed, written = said["answers"]
    assert answer["structuredContent"]["result"] == 2
    assert [each["mimeType"] for each in shown["content"] if each["type"] == "image"] == ["image/png"]
    assert failed["isError"]
    assert failed["structuredContent"]["error"]["line"] == 2
    assert written["structuredContent"]["result"] == "pip stays"
    assert len(said["asked"]) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_question_shows_values_and_where_they_stand_and_a_yes_covers_no_more(way: str, url: str, paid: Path) -> None:
    said = json.loads(printed_by(Path(__file__).with_suffix(".mjs"), MODULES, *way.split("-"), url, PAYS))
    (answer,) = said["answers"]
    check_questions(said["asked"], paid, answer["structuredContent"]["output"])


def test_the_program_of_the_page_runs() -> None:
    section = PAGE.read_text().split("\n## TypeScript SDK\n")[1]
    program = re.split(r"^```javascript\n", section, flags=re.MULTILINE)[1].partition("\n```\n")[0]
    file = MODULES.parent / "program.mjs"  # Node looks for packages beside the program
    file.write_text(program)
    assert printed_by(file) == "{ a: 2, b: 1 }\n"
