"""The figures of matplotlib that code shows or leaves open, as PNG images.

matplotlib itself is imported by the code, or ahead by the zygote, never here. Images of plotly's and altair's charts
are made by a browser (kaleido) and by V8 (vl-convert), which ends a process that may not make machine code: neither is
tried, and the report says what shows such a chart.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt
from types import ModuleType
from typing import Any, cast

from ..guest.guest import GUEST
from ..wire.report_frame import CAPTION_CHARS_MAX, FIGURE_BYTES_MAX, FIGURES_MAX
from .figure_captions import caption_of, watch_boxes

FIGURES_BYTES_MAX = 8 * 1024 * 1024
"""Of all figures of a run together, so that they and the largest result fit one frame."""

SIDE_PIXELS_MAX = 1568
"""The most that a figure is wide or high: a model gets a larger image made smaller (Anthropic, "Vision")."""
PIXELS_A_TOKEN = 750
"""About so many pixels of an image are one token (Anthropic, "Vision": width x height / 750)."""
TOKENS_MAX = 1_600
"""About how many tokens a figure may take, and a share of what is left of `ALL_TOKENS_MAX`."""
ALL_TOKENS_MAX = 8_000
_SHARE = 4
_TOKENS_LEAST = 200

_NO_CHARTS = (
    "Charts of plotly and altair are not shown as images: these are made by a browser or by machine code, which the "
    "sandbox does not run. Draw with matplotlib or seaborn, or keep the chart as a page: write_html(path) of plotly, "
    "save('chart.html') of altair."
)

_SIZE = struct.Struct(">II")
_SIZE_AT = 16  # in a PNG's first chunk


class Figures:
    """What one run shows. At most `FIGURES_MAX` of them, each drawn no larger than a model looks at it."""

    def __init__(self) -> None:
        self._images: list[bytes] = []
        self._captions: list[str] = []
        self._tokens_left = ALL_TOKENS_MAX
        self._left_out: list[str] = []
        self._charts = ""

    def take_over(self) -> None:
        """Make `show` bring figures here, where matplotlib was imported."""
        pyplot, bases = sys.modules.get("matplotlib.pyplot"), sys.modules.get("matplotlib.backend_bases")
        if pyplot is None or bases is None:
            return

        def show(*_arguments: object, **_options: object) -> None:
            """Show every open figure in the report, and close it."""
            self.take_open()

        def show_manager(manager: Any) -> None:
            """Show a figure in the report, and close it."""
            self._take(manager.canvas.figure)
            sys.modules["matplotlib._pylab_helpers"].Gcf.destroy(manager)

        # Plain functions: matplotlib gives them attributes.
        pyplot.show = show  # type: ignore[attr-defined]  # a module of a library that may be missing
        bases.FigureManagerBase.show = show_manager
        _keep_own_fonts(sys.modules["matplotlib.font_manager"])
        watch_boxes()

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
        self._captions.clear()
        self._left_out.clear()
        self._charts = ""
        self._tokens_left = ALL_TOKENS_MAX

    def images(self) -> tuple[bytes, ...]:
        """Give what was shown, in order."""
        return tuple(self._images)

    def captions(self) -> tuple[str, ...]:
        """Give what each of them shows, in words."""
        return tuple(self._captions)

    def take(self, value: object) -> int | None:
        """Show a figure now, and close it; return its number among the images, None where no image was made.

        What holds a figure is taken for it: axes, and grids of panels.
        """
        if is_chart(value):
            self._charts = _NO_CHARTS
            return None
        figures = sys.modules.get("matplotlib.figure")
        if figures is None:
            return None
        figure = value if isinstance(value, figures.Figure) else getattr(value, "figure", None)
        if not isinstance(figure, figures.Figure):
            return None
        shown = len(self._images)
        self._take(figure)
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(figure)
        return len(self._images) if len(self._images) > shown else None

    def notes(self) -> dict[str, str]:
        """Note which figures are missing, and why."""
        said = [self._charts] if self._charts else []
        if self._left_out:
            left_out = "; ".join(self._left_out[:FIGURES_MAX])
            said.append(f"{left_out}. Save such figures with savefig(path) and bring them home with keep(path).")
        return {"images": " ".join(said)} if said else {}

    def _take(self, figure: Any) -> None:
        if (why := self._why_not_taken(figure)) is not None:
            self._left_out.append(f"figure {len(self._images) + len(self._left_out) + 1} {why}")

    def _why_not_taken(self, figure: Any) -> str | None:
        if len(self._images) >= FIGURES_MAX:
            return f"is more than the {FIGURES_MAX} that a report shows"
        caption = caption_of(figure)
        tokens = max(_TOKENS_LEAST, min(TOKENS_MAX, self._tokens_left // _SHARE))
        try:
            with _hidden_texts(figure, tokens * PIXELS_A_TOKEN):
                image, smaller = _as_png(figure, tokens * PIXELS_A_TOKEN)
        except Exception as error:  # noqa: BLE001 - drawing runs the code's own objects
            return f"could not be drawn ({type(error).__name__}: {str(error)[:200]})"
        width, height = _SIZE.unpack_from(image, _SIZE_AT)
        if len(image) > FIGURE_BYTES_MAX or max(width, height) > SIDE_PIXELS_MAX:
            return f"is too large to show ({len(image)} bytes)"
        if sum(map(len, self._images)) + len(image) > FIGURES_BYTES_MAX:
            return f"is more than the {FIGURES_BYTES_MAX} bytes that a report shows"
        self._images.append(image)
        self._captions.append(f"{caption[: CAPTION_CHARS_MAX - len(smaller)]}{smaller}")
        self._tokens_left -= width * height // PIXELS_A_TOKEN
        return None


def is_chart(value: object) -> bool:
    """Return whether a value is a figure of plotly or a chart of altair."""
    plotly, altair = sys.modules.get("plotly.basedatatypes"), sys.modules.get("altair")
    if plotly is not None and isinstance(value, plotly.BaseFigure):
        return True
    return altair is not None and isinstance(value, altair.TopLevelMixin)


@contextmanager
def _hidden_texts(figure: Any, pixels: int) -> Iterator[None]:
    """Draw each text of a figure as the host shows it, where everything that is shown is filtered.

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
        _as_png(figure, pixels)
        texts = list(shown)
        hidden = GUEST.call_host("hide_labels", {"texts": texts}) if texts else None
        shown.update(zip(texts, cast("Sequence[str]", hidden or texts), strict=True))
        yield
    finally:
        for name, draw in plain.items():
            setattr(renderer, name, draw)


def _as_png(figure: Any, pixels: int) -> tuple[bytes, str]:
    """Draw a figure with fewer dots per inch where it would be larger than a report shows; say so if it was."""
    width, height = (float(side) for side in figure.get_size_inches())
    wanted = float(figure.dpi)
    dpi = min(wanted, (SIDE_PIXELS_MAX - 1) / max(width, height), sqrt(pixels / (width * height)))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    if dpi >= wanted:
        return file.getvalue(), ""
    sizes = (f"{int(width * each)} x {int(height * each)}" for each in (dpi, wanted))
    return file.getvalue(), f" (Drawn with {' of '.join(sizes)} pixels; savefig(path) keeps all.)"


def _keep_own_fonts(fonts: ModuleType) -> None:
    """Forget the machine's fonts, which the sandbox does not show, in favour of those that came with matplotlib."""
    own = os.path.join(os.path.dirname(str(fonts.__file__)), "")
    for name in ("ttflist", "afmlist"):
        entries = getattr(fonts.fontManager, name)
        setattr(fonts.fontManager, name, [each for each in entries if str(getattr(each, "fname", "")).startswith(own)])
