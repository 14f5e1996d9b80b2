"""The capability argument for the facades: nothing that guest code can reach by public names leads out.

The walk starts at every facade and follows what source may write: attributes that the dialect reads, items of
containers, what calls with harmless arguments return, and the exceptions they raise. What leaks differs between
versions of Python, so this runs on each.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import types

import pytest

from sealab.sandbox.dialect import facades

from ...facades_walk import HELPERS
from ..opaque import Opaque
from ..reached import Reached


def test_nothing_that_a_module_gives_leads_to_the_interpreter() -> None:
    modules = [*sorted(facades.exports()), HELPERS]
    # WebAssembly ends where C calls a function by a pointer of another type, as late in a walk of all modules it does.
    at_once = 6 if sys.platform == "emscripten" else len(modules)
    for start in range(0, len(modules), at_once):
        command = [sys.executable, "-m", "tests.sandbox.facades_walk", *modules[start : start + at_once]]
        walked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=55)
        assert walked.returncode == 0, walked.stderr[-2000:]
        report = json.loads(walked.stdout.splitlines()[-1])
        assert report["values"] > 500
        assert (report["found"], report["slow"]) == ([], [])


@pytest.mark.parametrize(
    ("start", "leak"),
    [
        (types.SimpleNamespace(json=json), "module"),
        (types.SimpleNamespace(a=[{"b": open}]), "open"),
        (types.SimpleNamespace(modules=sys.modules), "sys.modules"),
        (types.SimpleNamespace(take=sys._getframe), "frame"),
        ((types.SimpleNamespace(b=statistics),), "module"),
    ],
)
def test_the_walk_finds_what_real_modules_give_away(start: object, leak: str) -> None:
    reached = Reached({}, [], Opaque())
    reached.reach([("start", start)])
    assert leak in " ".join(reached.found)
