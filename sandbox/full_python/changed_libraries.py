"""Changes libraries that would draw on a terminal or in a browser, when they are imported, ahead or by the code.

The bars of tqdm become the progress of the run, and those of DuckDB, which would fill the output, are off; figures of
matplotlib that are shown come into the report, and charts of plotly and altair into its notes. `IPython.display` is
there without IPython, for code that was written for a notebook. No library is imported here. Where pandas was imported,
it does once, in the zygote, what most programs do: what it imports and compiles at first use is there then.

threadpoolctl, which scikit-learn asks in many of its methods, finds no libraries to inspect. To find them it reads
/proc/self/maps, which workers do not see, or has C call back into Python (dl_iterate_phdr(3)). For that ctypes needs
memory that is written and executed: the sandbox has none, and a `MemoryError` ends the program. Without libraries it
bounds nothing: the pools keep the threads that they have.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from ..guest.guest import GUEST
from ..guest_api.displaying import display
from ..guest_api.hosted_runs import progress
from ..job import FONTS_FOLDER
from .reads import native_reads

_MESSAGE_CHARS_MAX: Final = 100
_BUILDING_FONTS: Final = "building the font cache"
_FILE_AT: Final = 4
"""Where `file` stands among the arguments of a bar."""


def take_over(take_figures: Callable[[], None]) -> None:
    """Change them when they are imported; with matplotlib, `take_figures` is called."""
    changes = {**_CHANGES, "matplotlib.pyplot": lambda _module: take_figures()}
    sys.meta_path.insert(0, _Finder(changes))


class _Finder(MetaPathFinder):
    """Finds the modules, as others would, and has each changed once it is loaded."""

    def __init__(self, changes: Mapping[str, Callable[[Any], None]]) -> None:
        self._changes = changes
        self._asks = False

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = self._changes.get(fullname)
        if self._asks or (change is None and fullname not in _NOTEBOOK):
            return None
        self._asks = True
        try:
            spec = find_spec(fullname)
        except ModuleNotFoundError:
            spec = None
        finally:
            self._asks = False
        if change is None:
            return ModuleSpec(fullname, _Notebook(), is_package=fullname == _PACKAGE) if spec is None else spec
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, change, _AROUND.get(fullname, nullcontext))
        return spec


class _Changing(Loader):
    """Loads a module as its own loader does, within a context, and changes it."""

    def __init__(
        self, loader: Loader, change: Callable[[Any], None], around: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._loader = loader
        self._change = change
        self._around = around

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with self._around():
            self._loader.exec_module(module)
        # A library of another version works as it is.
        with suppress(Exception):
            self._change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


@contextmanager
def _without_console() -> Iterator[None]:
    """Keep DuckDB from drawing bars, which it does where `__main__` has no file: it takes that for a console."""
    main = vars(sys.modules["__main__"])
    had_file = "__file__" in main
    main.setdefault("__file__", "")
    try:
        yield
    finally:
        if not had_file:
            main.pop("__file__", None)


@contextmanager
def _with_kept_fonts() -> Iterator[None]:
    """Copy the list of fonts that setup made to where matplotlib looks; without, it makes its own and says nothing.

    It reads the list when it is loaded, and only from a folder that it may write to. To make it takes seconds in the
    first run of a worker.
    """
    with suppress(Exception):
        _copy_kept_fonts()
    yield


def _copy_kept_fonts() -> None:
    logging.getLogger("matplotlib.font_manager").addFilter(lambda record: _BUILDING_FONTS not in str(record.msg))
    matplotlib: Any = sys.modules["matplotlib"]
    kept = os.path.join(os.path.dirname(os.path.dirname(matplotlib.__file__)), FONTS_FOLDER)
    if os.path.isdir(kept):
        for name in os.listdir(kept):
            target = os.path.join(matplotlib.get_cachedir(), name)
            if not os.path.exists(target):
                shutil.copyfile(os.path.join(kept, name), target)


def _change_tqdm(module: Any) -> None:
    """Report how far every bar is. Of bars within bars the outermost counts, since they share one run."""
    bar = module.tqdm
    begin = bar.__init__

    def begun(self: Any, *arguments: Any, **options: Any) -> None:
        self.is_outermost = not any(not getattr(each, "disable", True) for each in getattr(bar, "_instances", ()))
        if len(arguments) <= _FILE_AT and options.get("file") is None:
            options["file"] = _NoFile()
        begin(self, *arguments, **options)

    def display(self: Any, msg: str | None = None, pos: int | None = None) -> bool:
        del msg, pos
        total = getattr(self, "total", None)
        if total and self.is_outermost:
            said = f"{self.desc.rstrip(': ')}: " if getattr(self, "desc", "") else ""
            # A run must not fail for the sake of a bar.
            with suppress(Exception):
                progress(min(1.0, self.n / total), f"{said[:_MESSAGE_CHARS_MAX]}{self.n} of {total}")
        return True

    bar.__init__ = begun
    bar.display = display


class _NoFile(io.StringIO):
    """What a bar writes to besides: it is kept nowhere."""

    def write(self, text: str, /) -> int:
        return len(text)


def _do_nothing(*_arguments: Any, **_options: Any) -> None:
    """Stand for what is not to be done."""


def _change_threadpoolctl(module: Any) -> None:
    """Take its search for libraries away."""
    module.ThreadpoolController._load_libraries = _do_nothing


def _change_plotly(module: Any) -> None:
    module.BaseFigure.show = _show


def _change_altair(module: Any) -> None:
    module.TopLevelMixin.show = module.TopLevelMixin.display = _show


def _show(chart: Any, *_arguments: Any, **_options: Any) -> None:
    """Note in the report how the chart is kept."""
    if GUEST.draw is not None:
        GUEST.draw(chart)


_CHANGES: Final[Mapping[str, Callable[[Any], None]]] = {
    **native_reads.changes(),
    "altair": _change_altair,
    "matplotlib.font_manager": _do_nothing,
    "plotly.basedatatypes": _change_plotly,
    "threadpoolctl": _change_threadpoolctl,
    "tqdm.std": _change_tqdm,
}
_AROUND: Final[Mapping[str, Callable[[], AbstractContextManager[None]]]] = {
    "duckdb": _without_console,
    "matplotlib.font_manager": _with_kept_fonts,
}


_TEXT = "key,number,day\nx,1,2020-01-01\ny,2.5,2020-01-02\nx,,2020-01-03\n"


def sum_by_group() -> None:
    """Add up a table of three rows: each page of memory that this writes to is then a worker's own."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    with suppress(Exception):
        frame = pandas.read_csv(io.StringIO(_TEXT))
        frame.groupby("key")["number"].sum().to_dict()
        repr(frame)


def rehearse() -> None:
    """Work on a table of three rows, where pandas was imported; whatever fails concerns the code that does it."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    with suppress(Exception):
        frame = pandas.read_csv(io.StringIO(_TEXT), parse_dates=["day"])
        frame.groupby("key")["number"].agg(["sum", "mean"])
        frame.groupby("key").number.sum().to_dict()
        frame.merge(frame, on="key").sort_values("day")
        frame.pivot_table(index="key", values="number", columns="day")
        frame.set_index("day").resample("D").number.sum()
        frame[frame.number > 1].assign(upper=frame.key.str.upper())
        frame.isna().sum()
        frame.describe()
        frame.value_counts()
        frame.to_csv(io.StringIO())
        frame.to_dict("records")
        frame.info(buf=io.StringIO())
        repr(frame)


_PACKAGE: Final = "IPython"
_NOTEBOOK: Final = frozenset({_PACKAGE, f"{_PACKAGE}.display"})


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


class _Notebook(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(display=display, get_ipython=lambda: None)
        if module.__name__ != _PACKAGE:
            texts = dict.fromkeys(("HTML", "Markdown", "Latex", "Math", "Pretty"), _Text)
            # What was displayed stays in the report.
            vars(module).update(texts, Image=_image, clear_output=_do_nothing)
