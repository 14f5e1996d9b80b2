"""The capability argument for the facades: nothing that guest code can reach by public names leads out.

The walk starts at every facade and follows what source may write: attributes that the dialect reads unguarded, items of
containers, what calls with harmless arguments return, and the exceptions they raise. What leaks differs between
versions of Python, so this runs on each.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import types
from pathlib import Path

import pytest

from sealab.sandbox.dialect import facades

from ... import facades_walk

_WALK = Path(__file__).parents[2] / "facades_walk.py"


def test_nothing_that_a_module_gives_leads_to_the_interpreter() -> None:
    modules = [*sorted(facades.exports()), facades_walk.HELPERS]
    found = {}

    # WebAssembly ends where C calls a function by a pointer of another type, as late in a walk of all modules it does.
    at_once = 6 if sys.platform == "emscripten" else len(modules)
    for start in range(0, len(modules), at_once):
        part = modules[start : start + at_once]
        walked = subprocess.run([sys.executable, _WALK, *part], capture_output=True, text=True, check=False, timeout=55)
        assert walked.returncode == 0, walked.stderr[-2000:]
        found |= json.loads(walked.stdout.splitlines()[-1])

    assert set(found) == set(modules)
    assert {module: leaks for module, leaks in found.items() if leaks} == {}


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
    walk = facades_walk.Walk()
    walk.visit(start, "start", 0)
    assert leak in " ".join(walk.found)
