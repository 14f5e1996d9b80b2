"""Each module of the standard library is importable, or says what to use instead; the page of them is true."""

from __future__ import annotations

import pytest

from sealab.sandbox.dialect import facades, guest_modules, imports
from sealab.sandbox.errors import Refused

from ..guest_code import run
from . import standard_library


def test_the_page_says_of_every_module_what_is_true_on_this_python() -> None:
    page = standard_library.rows()

    assert {module: page.get(module) for module in standard_library.modules()} == {
        module: standard_library.status(module) for module in standard_library.modules()
    }


@pytest.mark.parametrize("module", standard_library.modules())
def test_a_module_can_be_imported_or_names_its_substitute(module: str) -> None:
    if module in facades.exports() or guest_modules.exists(module):
        assert imports.import_module(module) is not None
        return

    with pytest.raises(Refused) as refused:
        run(f"import {module}")

    assert refused.value.instead
