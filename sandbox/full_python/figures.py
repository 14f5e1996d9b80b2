"""The figures of matplotlib that code shows or leaves open, as PNG images.

matplotlib itself is imported by the code, or ahead by the zygote, never here.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Protocol, cast

from ..guest.guest import GUEST
from ..wire.frames import FIGURE_BYTES_MAX, FIGURE_PIXELS_MAX, FIGURES_MAX

FIGURES_BYTES_MAX = 8 * 1024 * 1024
"""Of all figures of a run together, so that they and the largest result fit one frame."""

_SIZE = struct.Struct(">II")
_SIZE_AT = 16  # in a PNG's first chunk


class _Figure(Protocol):
    dpi: float

    def get_size_inches(self) -> Sequence[float]: ...

    def savefig(self, file: io.BytesIO, *, format: str, dpi: float) -> None: ...  # noqa: A002 - matplotlib's own


class _Canvas(Protocol):
    figure: _Figure


class _Manager(Protocol):
    canvas: _Canvas


class Figures:
    """What one run shows. At most `FIGURES_MAX` of them, none wider or higher than `FIGURE_PIXELS_MAX`."""

    def __init__(self) -> None:
        self._images: list[bytes] = []
        self._left_out: list[str] = []

    def take_over(self) -> None:
        """Have `show` bring figures here, where matplotlib was imported."""
        pyplot, bases = sys.modules.get("matplotlib.pyplot"), sys.modules.get("matplotlib.backend_bases")
        if pyplot is None or bases is None:
            return

        def show(*_arguments: object, **_options: object) -> None:
            """Show every open figure in the report, and close it."""
            self.take_open()

        def show_manager(manager: _Manager) -> None:
            """Show a figure in the report, and close it."""
            self._take(manager.canvas.figure)
            sys.modules["matplotlib._pylab_helpers"].Gcf.destroy(manager)

        # Plain functions: matplotlib gives them attributes.
        pyplot.show = show  # type: ignore[attr-defined]  # a module of a library that may be missing
        bases.FigureManagerBase.show = show_manager
        _keep_own_fonts(sys.modules["matplotlib.font_manager"])

    def take_open(self) -> None:
        """Take every figure that is open, and close it."""
        open_figures = sys.modules.get("matplotlib._pylab_helpers")
        if open_figures is None:
            return
        for manager in list(open_figures.Gcf.get_all_fig_managers()):
            self._take(manager.canvas.figure)
        open_figures.Gcf.destroy_all()

    def forget(self) -> None:
        """Begin anew."""
        self._images.clear()
        self._left_out.clear()

    def images(self) -> tuple[bytes, ...]:
        """Give what was shown, in order."""
        return tuple(self._images)

    def notes(self) -> dict[str, str]:
        """Say which figures are missing, and why."""
        if not self._left_out:
            return {}
        told = "; ".join(self._left_out[:FIGURES_MAX])
        return {"images": f"{told}. Save such figures with savefig(path) and bring them home with keep(path)."}

    def _take(self, figure: _Figure) -> None:
        number = len(self._images) + len(self._left_out) + 1
        if len(self._images) >= FIGURES_MAX:
            self._left_out.append(f"figure {number} is more than the {FIGURES_MAX} that a report shows")
            return
        try:
            with _hidden_texts(figure):
                image = _as_png(figure)
        except Exception as error:  # noqa: BLE001 - drawing runs the code's own objects
            self._left_out.append(f"figure {number} could not be drawn ({type(error).__name__}: {str(error)[:200]})")
            return
        if len(image) > FIGURE_BYTES_MAX or max(_SIZE.unpack_from(image, _SIZE_AT)) > FIGURE_PIXELS_MAX:
            self._left_out.append(f"figure {number} is too large to show ({len(image)} bytes)")
            return
        if sum(map(len, self._images)) + len(image) > FIGURES_BYTES_MAX:
            self._left_out.append(f"figure {number} is more than the {FIGURES_BYTES_MAX} bytes that a report shows")
            return
        self._images.append(image)


@contextmanager
def _hidden_texts(figure: _Figure) -> Iterator[None]:
    """Have each text of a figure drawn as the host shows it, where everything that is shown is filtered.

    matplotlib makes some texts only when it draws, such as those of ticks: so a first drawing says which there are.
    What is drawn as a picture is drawn as it is.
    """
    renderer = getattr(sys.modules.get("matplotlib.backends.backend_agg"), "RendererAgg", None)
    if not GUEST.tells_reads or renderer is None:
        yield
        return
    plain = {name: getattr(renderer, name) for name in ("draw_text", "draw_mathtext")}
    shown: dict[str, str] = {}

    def drawing(draw: Callable[..., object]) -> Callable[..., object]:
        def drawn(own: object, gc: object, x: float, y: float, s: str, *more: object, **named: object) -> object:
            return draw(own, gc, x, y, shown.setdefault(str(s), str(s)), *more, **named)

        return drawn

    try:
        for name, draw in plain.items():
            setattr(renderer, name, drawing(draw))
        _as_png(figure)
        texts = list(shown)
        hidden = GUEST.call_host("hide_labels", {"texts": texts}) if texts else None
        shown.update(zip(texts, cast("Sequence[str]", hidden or texts), strict=True))
        yield
    finally:
        for name, draw in plain.items():
            setattr(renderer, name, draw)


def _as_png(figure: _Figure) -> bytes:
    """Draw a figure, with fewer dots per inch where it would be larger than a report shows."""
    longest = max(float(side) for side in figure.get_size_inches())
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=min(float(figure.dpi), (FIGURE_PIXELS_MAX - 1) / longest))
    return file.getvalue()


def _keep_own_fonts(fonts: ModuleType) -> None:
    """Forget the machine's fonts, which the sandbox does not show, in favour of those that came with matplotlib."""
    own = os.path.join(os.path.dirname(str(fonts.__file__)), "")
    known = fonts.fontManager
    known.ttflist = _beneath(own, known.ttflist)
    known.afmlist = _beneath(own, known.afmlist)


def _beneath(folder: str, entries: Iterable[object]) -> list[object]:
    return [entry for entry in entries if str(getattr(entry, "fname", "")).startswith(folder)]
