"""The reference in the documents says what the program says."""

from __future__ import annotations

import pytest

from sealab.server.base.settings import _NAMES

from . import reference


@pytest.mark.parametrize("page", reference.pages())
def test_a_page_of_the_reference_is_what_the_program_says(page: str) -> None:
    written = (reference.FOLDER / page).read_text(encoding="utf-8")
    assert written == reference.pages()[page]().rstrip() + "\n", "run `make reference`"


def test_every_setting_says_what_it_is_for() -> None:
    page = (reference.FOLDER / "settings.md").read_text(encoding="utf-8")
    assert [name for name in _NAMES if f"| `{name}` | " not in page] == []
