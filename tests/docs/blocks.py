"""Reads the code blocks of a page, and judges what they show against what happened."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)
KINDS = {"python", "console", "json", "toml", "yaml", "text", "mermaid", "diff"}
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="(\w+)"')
_TOKEN = re.compile(r"\[([A-Z_]+)_[0-9a-z]{10}\]")
_ANYTHING = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: what kind it is, and what it shows of the block before it (`result`, `output` or `error`)."""

    page: str
    line: int
    kind: str
    shows: str | None
    text: str

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.first_line}"


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, top to bottom."""
    content = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(content):
        kind, _, rest = fence["info"].partition(" ")
        title = _TITLE.search(rest)
        line = content.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, kind, title[1] if title else None, fence["text"]))
    return found


@dataclass(frozen=True)
class Command:
    """A command of a console block, and what the block shows of its output."""

    text: str
    shown: str


def commands_of(block: Block) -> list[Command]:
    """Return the commands of a console block: lines that begin with `$ `, with those that continue them."""
    commands: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ""))
        elif commands and commands[-1].text.endswith("\\"):
            commands[-1] = Command(f"{commands[-1].text}\n{line}", "")
        else:
            assert commands, f"{block}: a console block begins with a command, `$ …`"
            commands[-1] = Command(commands[-1].text, f"{commands[-1].shown}{line}\n")
    return commands


def agree(shown: str, happened: str) -> bool:
    """Return whether what a page shows is what happened; `…` stands for anything, and tokens for their order."""
    pattern = re.escape(numbered(shown).strip()).replace(re.escape(_ANYTHING), ".*?")
    return re.fullmatch(pattern, numbered(happened).strip(), re.DOTALL) is not None


def agree_json(shown: str, happened: Any) -> bool:
    """Return whether JSON that a page shows is a result that happened, but for the characters of tokens."""
    return numbered(json.dumps(json.loads(shown))) == numbered(json.dumps(happened))


def numbered(text: str) -> str:
    """Return a text with each token, whose characters differ from home to home, named by type and order."""
    seen: dict[str, str] = {}
    return _TOKEN.sub(lambda token: seen.setdefault(token[0], f"[{token[1]}_{len(seen)}]"), text)
