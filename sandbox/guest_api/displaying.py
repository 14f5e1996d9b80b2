"""`display`: shows a value in the report beside the result, as notebooks do; and what code for these imports."""

from __future__ import annotations

import json
from typing import Final

from ..guest.facade import Facade, make
from ..guest.guest import GUEST
from ..job import Json
from ..report import values
from ..wire.report_frame import DISPLAYED_MAX

BYTES_MAX: Final = 1024 * 1024
"""Of all values that one run displays, as JSON."""
_NOTES_MAX: Final = 100
"""So many notes on values are taken over; what is said of one value together."""
NODES_MAX: Final = 10_000
"""Of all of them: a list or object counts as two."""


def display(*shown: object) -> None:
    """Show each value in the report, in order, as it is now: tables, figures, and anything else.

    The result of the run is shown beside them.
    """
    for value in shown:
        _show(value)


def _show(value: object) -> None:
    displayed, notes = GUEST.displayed, GUEST.displayed_notes
    if len(displayed) >= DISPLAYED_MAX:
        notes["displayed"] = f"the first {DISPLAYED_MAX} values: a report shows no more. Display fewer."
        return
    number = None if GUEST.draw is None else GUEST.draw(value)
    if number is not None:
        displayed.append({"image": number})
        return
    place = f"displayed[{len(displayed)}]"
    rendered = values.render(
        value,
        name=place,
        size_max=BYTES_MAX - GUEST.displayed_size[0],
        nodes_max=NODES_MAX - GUEST.displayed_size[1],
    )
    GUEST.displayed_size[0] += len(json.dumps(rendered.json))
    GUEST.displayed_size[1] += _nodes(rendered.json)
    displayed.append(rendered.json)
    if len(notes) < _NOTES_MAX:
        notes.update(rendered.notes)


def _nodes(value: Json) -> int:
    if isinstance(value, dict):
        return 2 + sum(map(_nodes, value.values()))
    return 2 + sum(map(_nodes, value)) if isinstance(value, list) else 1


def helpers() -> dict[str, object]:
    """Give the helper by the name under which code finds it."""
    return {"display": display}


def modules() -> dict[str, Facade]:
    """Give what code for a notebook imports, by dotted name; the whole of these libraries is full Python's.

    `nest_asyncio` lets a loop run in one that runs already, as it does here.
    """
    texts = dict.fromkeys(("HTML", "Latex", "Markdown", "Math", "Pretty"), _as_text)
    shown = make("IPython.display", {"display": display, "clear_output": _do_nothing, **texts})
    return {
        "IPython": make("IPython", {"display": shown, "get_ipython": _do_nothing}),
        "IPython.display": shown,
        "nest_asyncio": make("nest_asyncio", {"apply": _do_nothing}),
    }


def _as_text(data: object = "", *_arguments: object, **_options: object) -> object:
    """Return a text that a notebook would set in its own way; what was displayed stays in the report."""
    return data


def _do_nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing."""
