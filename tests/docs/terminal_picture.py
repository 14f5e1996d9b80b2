"""Draws what a command printed as a picture of a terminal: `COMMAND | python -m tests.docs.terminal_picture TITLE FILE`."""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path

COLUMNS_MAX = 112
LINE, CHARACTER, MARGIN, BAR = 19, 8.05, 20, 38
COLOURS = {"✓": "#7ee0a5", "✗": "#ff7b72"}


def drawn(title: str, text: str) -> str:
    """Return an SVG of the lines of a text, those that are too long cut with `…`."""
    lines = [f"$ {title}", "", *text.rstrip("\n").splitlines()]
    cut = [line if len(line) <= COLUMNS_MAX else f"{line[: COLUMNS_MAX - 1]}…" for line in lines]
    width = round(max(map(len, cut)) * CHARACTER) + 2 * MARGIN
    height = BAR + len(cut) * LINE + MARGIN
    rows = "\n".join(f'<text x="{MARGIN}" y="{BAR + n * LINE + 14}">{_row(line)}</text>' for n, line in enumerate(cut))
    dots = "".join(f'<circle cx="{MARGIN + 18 * n}" cy="18" r="5.5" fill="#5a6b72"/>' for n in range(3))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="What {escape(title)} prints">
<style>text {{ font: 13.4px ui-monospace, Menlo, Consolas, monospace; fill: #d6e2e5; white-space: pre }}</style>
<rect width="{width}" height="{height}" rx="10" fill="#15252b"/>
{dots}
{rows}
</svg>
"""


def _row(line: str) -> str:
    marked = escape(line)
    for mark, colour in COLOURS.items():
        marked = marked.replace(mark, f'<tspan fill="{colour}">{mark}</tspan>')
    return marked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("title")
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    chosen.file.write_text(drawn(chosen.title, sys.stdin.read()), encoding="utf-8")


if __name__ == "__main__":
    main()
