"""`IPython.display` for code that was written for a notebook, where IPython is not installed."""

from __future__ import annotations

import os
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from ..guest_api.displaying import display

PACKAGE: Final = "IPython"
NAMES: Final = frozenset({PACKAGE, f"{PACKAGE}.display"})


def stand_in(name: str) -> ModuleSpec:
    """Return what a module of `NAMES` is loaded by."""
    return ModuleSpec(name, _Notebook(), is_package=name == PACKAGE)


class _Text(str):
    """A text that a notebook would set in its own way; it is shown as the text it is."""

    __slots__ = ()


def _image(
    data: Any = None, *_arguments: Any, filename: str | os.PathLike[str] | None = None, **_options: Any
) -> bytes:
    """Return the bytes of an image, which a report shows as one. Raises OSError where there is no such file."""
    if isinstance(data, bytes):
        return data
    path: Any = filename if data is None else data  # as IPython takes them
    with open(path, "rb") as file:
        return bytes(file.read())


def _clear_output(*_arguments: Any, **_options: Any) -> None:
    """Leave everything: what was displayed stays in the report."""


class _Notebook(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(display=display, get_ipython=lambda: None)
        if module.__name__ != PACKAGE:
            texts = dict.fromkeys(("HTML", "Markdown", "Latex", "Math", "Pretty"), _Text)
            vars(module).update(texts, Image=_image, clear_output=_clear_output)
