"""Draws the icon of `.bundle/icon.svg` as PNG files of several sizes: python tests/packaging/icon.py FOLDER."""

from __future__ import annotations

import argparse
from pathlib import Path

import resvg_py

SIZES = (512, 128, 48)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    drawing = (Path(__file__).resolve().parents[2] / ".bundle" / "icon.svg").read_text()
    for size in SIZES:
        drawn = resvg_py.svg_to_bytes(svg_string=drawing, width=size, height=size)
        (folder / f"sealab-{size}.png").write_bytes(bytes(drawn))


if __name__ == "__main__":
    main()
