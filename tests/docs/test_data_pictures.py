"""The pictures of docs/data.md are what its own examples draw."""

from __future__ import annotations

import re
from pathlib import Path

from ..sandbox.science import science_python
from .blocks import ROOT
from .data_pictures import PAGE, drawn, picture, shown_by_page


async def test_each_picture_of_the_page_is_the_figure_that_its_program_shows(tmp_path: Path) -> None:
    shown = await shown_by_page(tmp_path, science_python())
    named = re.findall(r"\]\((pictures/data-\d+\.png)\)", (ROOT / PAGE).read_text(encoding="utf-8"))
    assert named == [f"pictures/data-{number}.png" for number in range(1, len(shown) + 1)]
    for number, content in enumerate(shown, 1):
        assert drawn(content) == drawn(picture(number).read_bytes()), f"make pictures renews {picture(number).name}"
