"""Gives matplotlib the list of fonts that was made when the environment was set up, so that no run makes it.

Else the first figure of a process looks through all fonts, which takes seconds, and says so in what the code writes.
matplotlib reads the list only from a folder that it may write to, so that it is copied there.
"""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from typing import Final

from ..job import FONTS_FOLDER

_BUILDING: Final = "building the font cache"


def use_kept() -> None:
    """Copy the kept list, if there is one, to where matplotlib looks; without, it makes its own and says nothing.

    Call it when matplotlib is imported, before its fonts are.
    """
    logging.getLogger("matplotlib.font_manager").addFilter(_is_worth_telling)
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]  # the code imported it

    kept = os.path.join(os.path.dirname(os.path.dirname(mpl.__file__)), FONTS_FOLDER)
    with suppress(OSError):
        for name in os.listdir(kept):
            target = os.path.join(mpl.get_cachedir(), name)
            if not os.path.exists(target):
                shutil.copyfile(os.path.join(kept, name), target)


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return _BUILDING not in str(record.msg)
