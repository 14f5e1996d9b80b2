"""Has the bars of tqdm report the progress of the run instead of writing to standard error.

tqdm is imported by the code, never here.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, cast

from ..guest_api.hosted_runs import progress

_MODULE: Final = "tqdm.std"
_MESSAGE_CHARS_MAX: Final = 100


def take_over() -> None:
    """Change tqdm when the code imports it."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the one module, as others would, and has it changed once it is loaded."""

    _asks = False

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE or self._asks:
            return None
        self._asks = True
        try:
            spec = find_spec(fullname)
        finally:
            self._asks = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader)
        return spec


class _Changing(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        with suppress(AttributeError):
            _change(cast("Any", module).tqdm)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _change(bar: Any) -> None:
    """Have every bar report how far it is. Of bars within bars the outermost speaks, since they all share one run."""
    begin = bar.__init__

    def begun(self: Any, *arguments: Any, **options: Any) -> None:
        if len(arguments) < 5 and options.get("file") is None:  # noqa: PLR2004 - `file` is the fifth
            options["file"] = _Nowhere()
        begin(self, *arguments, **options)

    def display(self: Any, msg: str | None = None, pos: int | None = None) -> bool:
        del msg
        place = abs(getattr(self, "pos", 0)) if pos is None else abs(pos)
        total = getattr(self, "total", None)
        if total and not place:
            said = f"{self.desc.rstrip(': ')}: " if getattr(self, "desc", "") else ""
            # A run must not fail for the sake of a bar.
            with suppress(Exception):
                progress(min(1.0, self.n / total), f"{said[:_MESSAGE_CHARS_MAX]}{self.n} of {total}")
        return True

    bar.__init__ = begun
    bar.display = display


class _Nowhere(io.StringIO):
    """What a bar writes to besides: it is kept nowhere."""

    def write(self, text: str, /) -> int:
        return len(text)
