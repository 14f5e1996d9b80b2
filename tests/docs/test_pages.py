"""What the documents point to is there, and what they quote is said."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import mcp
import pytest

from .blocks import PAGES, ROOT

FENCES = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MESSAGE = re.compile(r'^\| "(.+)" \|', re.MULTILINE)
LINKING = [*PAGES, "CHANGELOG.md"]


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return FENCES.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = (re.sub(r"[`*]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", each)) for each in HEADING.findall(prose(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_stands_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    assert {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")} - named == set()


@pytest.mark.parametrize("page", LINKING)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    here = ROOT / page
    broken = []
    for link in (link or picture for link, picture in LINK.findall(prose(here))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@cache
def said() -> str:
    """Return every text of the program and of the SDK, what is put into them as `…`."""
    texts = []
    sdk = Path(mcp.__file__).parent / "server"
    folders = [ROOT / name for name in ("server", "sandbox", "tools_registry", "skills_db", "workspace")]
    for file in (file for folder in (*folders, sdk) for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
                texts.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def messages() -> list[str]:
    return MESSAGE.findall((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("message", messages())
def test_what_troubleshooting_quotes_is_said(message: str) -> None:
    pieces = [each.strip(" ,") for each in message.split("…")]
    assert [piece for piece in pieces if len(piece) > 3 and piece not in said()] == []
