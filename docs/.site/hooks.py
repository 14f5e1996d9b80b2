"""Puts the pages that lie outside docs/ into the site, and has links lead to where they are there."""
# ruff: noqa: INP001 - MkDocs loads it as a file

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "README.md": "readme.md",
    "SECURITY.md": "SECURITY.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "tools_registry/search/data/NOTICE": "search-NOTICE",
}
"""Pages of the repository, by where they are in the site."""
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Rewrite links, as they are right in the repository, to what they lead to in the site."""
    at = page.file.src_uri
    source = next((source for source, moved in OUTSIDE.items() if moved == at), f"docs/{at}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        in_site = OUTSIDE.get(target) or target.removeprefix("docs/")
        return f"{link[1]}{posixpath.relpath(in_site, posixpath.dirname(at) or '.')}{link[3]}"

    return _LINK.sub(moved, markdown)
