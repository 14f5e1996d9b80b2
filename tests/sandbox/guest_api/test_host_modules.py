"""Modules that are made of host helpers: `import skills`, `from skills import name`, in both kinds of Python."""

from __future__ import annotations

import sys

import pytest

from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.dynamic import dynamic
from sealab.sandbox.guest.facade import make
from sealab.sandbox.guest_api import host_modules

from ..guest_code import run


def _find(name: str) -> object:
    if name not in {"double", "halve"}:
        raise AttributeError(f"there is no skill {name!r}. Did you mean 'double'?")
    return lambda number: number * 2 if name == "double" else number / 2


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand a dynamic and a fixed module in the table, as the parts of the host do."""
    runtime = make("mcp.runtime", {"answer": lambda: 42})
    table = {
        "skills": dynamic("skills", _find, lambda: ["double", "halve"]),
        "mcp": make("mcp", {"runtime": runtime}),
        "mcp.runtime": runtime,
    }
    monkeypatch.setattr(host_modules, "_table", lambda: table)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("import skills\nskills.double(4)", 8),
        ("import skills as s\ns.halve(4)", 2),
        ("from skills import double\ndouble(4)", 8),
        ("from skills import double as d, halve as h\nd(h(4))", 4),
        ("from mcp import runtime\nruntime.answer()", 42),
        ("import mcp\nmcp.runtime.answer()", 42),
        ("import mcp.runtime\nmcp.runtime.answer()", 42),
        ("import mcp.runtime as r\nr.answer()", 42),
        ("from mcp.runtime import answer\nanswer()", 42),
        ("from mcp.runtime import *\nanswer()", 42),
        ("from skills import *\n[double(4), halve(4)]", [8, 2]),
        ("def f():\n    from skills import double\n    return double(1)\nf()", 2),
        ("__import__('skills').double(1)", 2),
        ("exec('from skills import double')\ndouble(1)", 2),
        ("import skills\nsorted(dir(skills))", ["double", "halve"]),
        ("import skills\n'double' in skills", True),
        ("import skills\nlist(skills)", ["double", "halve"]),
        (
            "import skills\nhasattr(skills, 'treble'), hasattr(skills, '_x'), hasattr(skills, 'double')",
            (False, False, True),
        ),
        ("try:\n    from skills import treble\nexcept ImportError:\n    result = 'none'", "none"),
    ],
)
def test_restricted_code_imports_what_the_host_gives(modules: None, source: str, value: object) -> None:
    assert run(source).value == value


def test_a_missing_member_of_a_dynamic_module_is_an_import_error_that_names_the_nearest(modules: None) -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'dubble' from 'skills'.*Did you mean 'double'"):
        run("from skills import dubble")


@pytest.mark.parametrize("source", ["from mcp import run", "import skills.double", "from skills import _find"])
def test_what_no_module_can_give_is_refused_before_it_runs(modules: None, source: str) -> None:
    with pytest.raises(Refused):
        run(source)


@pytest.mark.parametrize(
    "source",
    [
        "import skills\nskills.double = 1",
        "import skills\ndel skills.double",
        "import skills\nskills._find = 1",
        "import skills\nsetattr(skills, '_find', 1)",
        "import skills\ngetattr(skills, '_find')",
        "import skills\nskills._find",
        "import skills\n'{0._find}'.format(skills)",
        "import skills\ntype(skills)()",
        "import skills\ntype(skills).__getattr__(skills, '_find')",
        "import skills\ntype(skills).__getitem__(object(), 'double')",
        "import skills\nskills.__getattribute__('_find')",
        "import skills\nskills.__dict__",
    ],
)
def test_a_dynamic_module_takes_no_stores_and_hides_how_it_looks_things_up(modules: None, source: str) -> None:
    with pytest.raises((AttributeError, TypeError, Refused)):
        run(source)


def test_a_class_of_modules_that_code_derives_has_nothing_of_them(modules: None) -> None:
    with pytest.raises(AttributeError):
        run("import skills\nclass Mine(type(skills)): pass\nMine('skills').double")


def test_full_python_imports_the_same_modules(modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("skills", "mcp", "mcp.runtime"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = dict(sys.modules)
    finders = list(sys.meta_path)
    host_modules.install()
    try:
        scope: dict[str, object] = {}
        exec("import skills\nfrom skills import halve\nimport mcp.runtime\nfrom mcp import runtime", scope)
        exec("r = skills.double(4), halve(4), mcp.runtime.answer(), runtime.answer()", scope)
        assert scope["r"] == (8, 2, 42, 42)
        with pytest.raises(ImportError, match="Did you mean 'double'"):
            exec("from skills import dubble", scope)
        assert not hasattr(sys.modules["skills"], "__file__")
    finally:
        sys.modules.clear()
        sys.modules.update(before)
        sys.meta_path[:] = finders
