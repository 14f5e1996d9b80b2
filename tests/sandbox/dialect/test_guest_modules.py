"""Guest modules: imported as Python imports, compiled as any program, and hostile like any program."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealab.sandbox.dialect import guest_modules
from sealab.sandbox.dialect.compiling import compile_module
from sealab.sandbox.dialect.guards import SecurityError
from sealab.sandbox.dialect.guest_modules import read_module
from sealab.sandbox.dialect.library_modules import adapted_source, with_taken
from sealab.sandbox.dialect.names import PREFIX
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.report import failures

from ..guest_code import run
from .conftest import Install, texts_of

TREE = {
    "tree/__init__.py": """
        '''A tree.'''
        from . import leaf as leaf
        from .branch.twig import grow, _hidden
        __version__ = "1.2"
        __all__ = ["grow", "leaf", "_listed"]
        _listed = 3
        size = 10
        print("once")
    """,
    "tree/leaf.py": """
        colour = "green"
        def paint(new):
            global colour
            colour = new
    """,
    "tree/branch/__init__.py": "from .. import leaf\nfrom ..leaf import colour\n",
    "tree/branch/twig.py": """
        from . import colour
        from ... import tree
    """.replace("from ... import tree", "from ..leaf import paint")
    + """
        def grow(n): return [colour] * n
        _hidden = "seen"
    """,
}


def test_packages_import_their_parts_in_every_form(install: Install) -> None:
    install(TREE)
    ran = run(
        """
        import tree
        import tree.branch.twig as t
        import tree.leaf
        from tree import size, leaf, branch
        from tree.branch import twig
        from tree.leaf import colour as c
        [tree.grow(2), t is twig, tree.leaf is leaf, size, c, tree.branch is branch, tree.__name__, twig.__name__,
         tree.__doc__, tree.__version__, tree._hidden, twig._hidden, tree.branch.twig is twig]
        """
    )
    assert ran.value == [
        ["green", "green"], True, True, 10, "green", True, "tree", "tree.branch.twig", "A tree.", "1.2", "seen", "seen",
        True,
    ]  # fmt: skip
    assert ran.output == "once\n"


def test_a_star_binds_what_the_module_lists_and_else_what_is_public(install: Install) -> None:
    install({**TREE, "plain.py": "import math\na = 1\n_b = 2\n"})
    assert run("from tree import *\nfrom plain import *\n[_listed, leaf.colour, a, math.pi > 3, '_b' in globals()]").value == [
        3, "green", 1, True, False,
    ]  # fmt: skip
    with pytest.raises(NameError):
        run("from tree import *\nsize")
    install({"wrong.py": "__all__ = ['missing']"})
    with pytest.raises(AttributeError, match="'wrong' has no attribute 'missing'"):
        run("from wrong import *")


def test_a_module_is_one_object_whose_variables_importers_read_and_set(install: Install) -> None:
    install(TREE)
    ran = run(
        """
        from tree import leaf
        import tree
        before = leaf.colour
        leaf.paint("red")
        after = leaf.colour
        leaf.colour = "blue"
        leaf._private = 1
        tree.leaf.extra = leaf._private + 1
        setattr(leaf, "third", 3)
        del leaf.third
        found = [before, after, vars(leaf)["colour"], leaf.extra, hasattr(leaf, "third"), leaf.__dict__["_private"]]
        vars(leaf)["written"] = 5
        [*found, leaf.written, sorted(n for n in dir(leaf) if not n.startswith("__"))]
        """
    )
    assert ran.value == [
        "green", "red", "blue", 2, False, 1, 5, ["_private", "colour", "extra", "paint", "written"],
    ]  # fmt: skip


def test_a_circle_of_imports_finds_what_there_is_so_far(install: Install) -> None:
    install({
        "ring/__init__.py": "",
        "ring/one.py": "early = 1\nfrom . import two\nlate = two.seen",
        "ring/two.py": "from ring.one import early\nfrom ring import one\nseen = early + 1\nlater = lambda: one.late",
        "knot/__init__.py": "",
        "knot/one.py": "from .two import b\na = 1",
        "knot/two.py": "from .one import a\nb = 1",
    })  # fmt: skip
    assert run("from ring import one, two\n[one.late, two.later()]").value == [2, 2]
    with pytest.raises(ImportError, match=r"cannot import name 'a' from 'knot\.one'"):
        run("import knot.one")


def test_a_module_that_fails_is_not_there_and_runs_again_at_the_next_import(install: Install) -> None:
    install(
        {"flaky.py": "print('try')\n1/0", "user.py": "try:\n    import flaky\nexcept ZeroDivisionError:\n    ok = 1"}
    )
    ran = run(
        """
        import user
        try:
            import flaky
        except ZeroDivisionError as error:
            print("again", user.ok)
        """
    )
    assert ran.output == "try\ntry\nagain 1\n"


def test_imports_in_a_module_fail_when_they_run_and_not_before(install: Install) -> None:
    install({
        "soft.py": """
            try:
                from _speedups import fast
            except ImportError:
                fast = None
            def plot():
                import numpy as np
                return np
            def relative():
                from . import nothing
            def beyond():
                from ....far import nothing
            """,
    })  # fmt: skip
    ran = run(
        """
        import soft
        told = [soft.fast]
        for each in (soft.plot, soft.relative, soft.beyond):
            try:
                each()
            except ImportError as error:
                told.append(type(error).__name__)
        told
        """
    )
    assert ran.value == [None, "ModuleNotFoundError", "ImportError", "ImportError"]


def test_what_a_program_imports_in_vain_is_refused_as_of_any_module(install: Install) -> None:
    install({"plain.py": "a = 1"})
    with pytest.raises(ImportError, match="cannot import name 'b' from 'plain'"):
        run("from plain import b")
    assert run("try:\n    from plain import b\nexcept ImportError:\n    b = 7\nb").value == 7
    with pytest.raises(ImportError):
        run("__import__('plain.sub')")
    assert run("[__import__('plain').a, __import__('plain', fromlist=['a']).a]").value == [1, 1]


def test_a_module_answers_by_its_own_getattr_and_dir(install: Install) -> None:
    install({
        "lazy.py": """
            def __getattr__(name):
                if name.startswith("no"):
                    raise AttributeError(name)
                return name.upper()
            def __dir__():
                return ["here", "_there"]
            """,
    })  # fmt: skip
    ran = run(
        "import lazy\nfrom lazy import thing\n[thing, lazy.other, lazy._own, hasattr(lazy, 'nothing'), dir(lazy)]"
    )
    assert ran.value == ["THING", "OTHER", "_OWN", False, ["_there", "here"]]


def test_what_the_dialect_refuses_is_an_error_of_the_line_when_it_runs(install: Install) -> None:
    install({
        "odd.py": """
            import math
            def peek(f):
                found = math.floor(1.5)
                return found, f.__globals__
            def make(g):
                return g.gi_frame
            def store(f):
                f.__code__ = None
            def fine():
                return 1
            """,
    })  # fmt: skip
    ran = run(
        """
        import odd
        told = [odd.fine()]
        for each in (lambda: odd.peek(odd.fine), lambda: odd.make(None), lambda: odd.store(odd.fine)):
            try:
                told.append(each())
            except AttributeError as error:
                told.append(type(error).__name__)
        told
        """
    )
    assert ran.value == [1, "SecurityError", "SecurityError", "SecurityError"]
    _code, refusals = compile_module(texts_of({"odd.py": "a = f.__globals__\nb = x.__globals__\n"})["odd"])
    assert [each.line for each in refusals] == [1, 2]


HOSTILE = [
    "__builtins__['x'] = 1",
    "globals()['__builtins__']",
    "(lambda: 0).__globals__",
    "import sys; sys.modules['sealab']",
    "import builtins; builtins.__import__('ctypes')",
    "import sealab",
    "from sealab.sandbox.guest import guest",
    "__import__('os').system('true')",
    "__import__('sealab')",
    "__loader__.get_data",
    "__spec__.loader",
    "eval('().__class__.__mro__[1].__subclasses__()')",
    "from hostile import __builtins__ as b; b['x']",
    "import hostile; hostile.__builtins__",
    "import hostile; vars(hostile)['__builtins__']",
    "import hostile; hostile.__getattribute__('_variables')",
    "import hostile; hostile._variables",
    "import hostile; object.__getattribute__(hostile, '_variables')",
    "import hostile; hostile.__class__ = object",
    "import hostile; hostile.__dict__ = {}",
    "import hostile; hostile.__init__({})",
    "import hostile; hostile.__reduce_ex__(4)",
    "import hostile; setattr(hostile, '__builtins__', {})",
    "import hostile; delattr(hostile, '__builtins__')",
    "import hostile; vars(hostile)['__builtins__'] = {}",
    "import hostile; hostile._print = 1",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_package_can_do_no_more_than_a_hostile_program(source: str, install: Install) -> None:
    install({"hostile.py": source})
    with pytest.raises((SecurityError, ImportError, TypeError, KeyError, AttributeError, NameError)):
        run("import hostile")


@pytest.mark.parametrize("name", ["__builtins__", "_getattr_", "__build_class__", "\u16e5\u02c8attribute"])
def test_a_star_import_binds_no_name_of_the_machinery(name: str, install: Install) -> None:
    install({"hostile.py": f"__all__ = [{name!r}]\ndef __getattr__(name): return {{}}"})
    with pytest.raises(AttributeError):
        run("from hostile import *")


def test_a_module_answers_none_of_the_hosts_questions_about_private_state(install: Install) -> None:
    install({"hostile.py": "asked = []\n_fill = 1\ndef __getattr__(name):\n    asked.append(name)\n    return 1"})
    module = run("import hostile\nhostile").value
    assert not hasattr(module, "_fill")
    assert not hasattr(module, "__of_the_host__")
    assert getattr(module, "asked") == []  # noqa: B009 - mypy knows no such attribute


def test_a_traceback_names_the_users_line_first_and_then_file_and_line_of_the_package(install: Install) -> None:
    install({"deep/__init__.py": "from .down import fall", "deep/down.py": "\ndef fall(n):\n    return 1 / n\n"})
    source = "import deep\n\ndeep.fall(0)"
    with pytest.raises(ZeroDivisionError) as caught:
        run(source)
    told = failures.describe(caught.value, source, earlier=GUEST.sources)
    assert told.line == 3
    assert told.traceback is not None
    own, package = (
        told.traceback.index('File "<code>", line 3'),
        told.traceback.index('File "<deep/down.py>", line 3, in fall'),
    )
    assert own < package
    assert "return 1 / n" in told.traceback


def test_a_syntax_error_of_a_module_names_its_file(install: Install) -> None:
    install({"broken.py": "a = 1\nb = = 2\n"})
    with pytest.raises(SyntaxError) as caught:
        run("import broken")
    assert (caught.value.filename, caught.value.lineno) == ("<broken.py>", 2)


def test_the_modules_of_a_directory_are_read_with_packages_that_have_no_file(tmp_path: Path) -> None:
    for place, text in {
        "top/__init__.py": "# -*- coding: latin-1 -*-\na = '\xe4'", "top/space/deep.py": "", "top/not-one.py": "",
        "single.py": "x = 1", "lonely/deep/er.py": "",
    }.items():  # fmt: skip
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    found = {each.name: each for name in ("top", "single", "lonely", "none") for each in read_module(tmp_path, name)}
    assert {name: each.is_package for name, each in found.items()} == {
        "top": True, "top.space": True, "top.space.deep": False, "single": False, "lonely": True, "lonely.deep": True,
        "lonely.deep.er": False,
    }  # fmt: skip
    assert found["top"].text.endswith("'\xe4'")


def test_sys_modules_holds_what_was_imported_and_imports_look_there_first(install: Install) -> None:
    install({"self_aware.py": "import sys\nme = sys.modules[__name__]\nvalue = 1\n"})
    ran = run(
        """
        import json, sys, self_aware
        class Fake: answer = 42
        told = [sys.modules["json"] is json, self_aware.me is self_aware, "csv" in sys.modules]
        sys.modules["self_aware"] = Fake()
        from self_aware import answer
        told.append(answer)
        sys.modules["json"] = None
        try:
            import json
        except ImportError:
            told.append("none")
        del sys.modules["json"], sys.modules["self_aware"]
        import json, self_aware
        [*told, json.dumps(1), self_aware.value]
        """
    )
    assert ran.value == [True, True, False, 42, "none", "1", 1]


def test_what_the_library_lacks_here_is_an_error_when_a_module_uses_it(install: Install) -> None:
    install(
        {
            "sends.py": """
            import marshal
            import importlib.machinery
            from socket import create_connection as connect
            from codecs import EncodedFile
            try:
                import subprocess
            except ImportError:
                subprocess = None
            def send():
                return connect(("example.org", 80))
            def dump():
                return marshal.dumps(1)
        """
        }
    )
    ran = run("""
        import sends
        told = [sends.subprocess]
        uses = sends.send, sends.dump, lambda: sends.EncodedFile(1), lambda: 1 in sends.EncodedFile
        for use in uses:
            try:
                use()
            except ImportError as error:
                told.append(str(error).partition(";")[0])
        result = told
    """)
    assert ran.value == [
        None,
        "module 'socket' is not available here",
        "module 'marshal' is not available here",
        *["cannot import name 'EncodedFile' from 'codecs'"] * 2,
    ]


def test_a_package_of_nobody_is_missed_at_once(install: Install) -> None:
    install({"needs.py": "import nobodys_package"})
    with pytest.raises(ImportError, match="nobodys_package"):
        run("import needs")


def test_a_package_that_others_have_a_substitute_for_has_all_its_names(install: Install) -> None:
    install({"toolz/__init__.py": "", "toolz/utils.py": "no_default = 1"})
    assert run("from toolz.utils import no_default\nresult = no_default").value == 1


def test_a_refused_class_is_an_error_when_it_or_what_is_made_from_it_is_used(install: Install) -> None:
    install(
        {
            "metas.py": """
            class Meta(type):
                def __instancecheck__(cls, each): return True
            class Base(metaclass=Meta):
                pass
            class Derived(Base):
                size = 1
            def useful():
                return 3
        """
        }
    )
    ran = run("""
        import metas
        told = [metas.useful()]
        class Own(metas.Base): pass
        for use in (metas.Meta, metas.Derived, Own):
            for way in (lambda: use.size, lambda: use(), lambda: isinstance(3, use)):
                try:
                    told.append(way())
                except (AttributeError, TypeError) as error:
                    told.append(type(error).__name__)
        result = told
    """)
    assert ran.value == [3, *["SecurityError", "SecurityError", "TypeError"] * 3]


@pytest.mark.parametrize("name", ["__builtins__", "_getattr_", "__class__", f"{PREFIX}module"])
def test_a_refused_class_does_not_take_a_reserved_name(install: Install, name: str) -> None:
    install({"binds.py": f"class {name}: pass"})
    with pytest.raises(SecurityError, match=r"reserved|cannot be bound"):
        run("import binds")


def test_builtins_of_a_module_are_the_module_of_that_name(install: Install) -> None:
    install({"asks.py": "found = hasattr(__builtins__, 'len'), hasattr(__builtins__, 'nothing')"})
    assert run("import asks, builtins\nresult = asks.found").value == (True, False)


def test_a_copy_of_a_module_is_its_own(install: Install) -> None:
    install({"counts.py": "number = 1\ndef get(): return number"})
    ran = run("""
        import counts, importlib.util
        spec = importlib.util.find_spec("counts")
        copy = importlib.util.module_from_spec(spec)
        before = hasattr(copy, "number")
        spec.loader.exec_module(copy)
        copy.number = 2
        told = [before, counts.get(), copy.get()]
        for module in (copy, counts):
            try:
                spec.loader.exec_module(module)
            except TypeError as error:
                told.append("refused")
        try:
            importlib.util.module_from_spec(importlib.util.find_spec("math"))
        except ImportError:
            told.append("no source")
        result = told
    """)
    assert ran.value == [False, 1, 2, "refused", "refused", "no source"]


def test_examples_of_a_module_are_tested_but_not_of_what_it_imports(install: Install) -> None:
    install(
        {
            "other.py": "def wrong():\n    '''\n    >>> 1\n    2\n    '''",
            "shown.py": "from other import wrong\ndef right():\n    '''\n    >>> right()\n    7\n    '''\n    return 7",
        }
    )
    assert tuple(run("import doctest, shown\nresult = doctest.testmod(shown)").value) == (0, 1)
    assert tuple(run("import doctest, other\nresult = doctest.testmod(other)").value) == (1, 1)


def test_each_text_of_the_library_that_is_replaced_stands_in_this_python() -> None:
    unknown = [text.name for text in guest_modules._texts().values() if text.text.startswith("raise ImportError(")]
    assert unknown == []


def test_a_module_of_the_library_that_lacks_what_is_replaced_cannot_be_imported(install: Install) -> None:
    install({"changed.py": adapted_source("unittest.mock", "x = 1")})
    with pytest.raises(ImportError, match=r"^unittest\.mock of Python 3\.\d+\.\d+ is not known here, since it lacks"):
        run("import changed")


def test_a_guest_module_whose_definition_the_library_lacks_cannot_be_imported(install: Install, tmp_path: Path) -> None:
    (tmp_path / "pkgutil.py").write_text("def resolve_names(): pass")
    install({"taking.py": with_taken("pkgutil", "x = 1", tmp_path)})
    with pytest.raises(ImportError, match=r"^pkgutil of Python 3\.\d+\.\d+ .* lacks 'resolve_name'$"):
        run("import taking")
