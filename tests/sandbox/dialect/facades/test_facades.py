"""The modules that code may import: what they are, what they refuse, and that everyday code works with them."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap

import pytest

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades.module_allow_list import SUBMODULES
from sealab.sandbox.errors import Refused
from sealab.sandbox.report.substitutes import instead_of

from ...guest_code import run
from ...sealed import gives_what_python_gives

PROMISED = """
abc array base64 binascii bisect cmath collections collections.abc colorsys contextlib copy csv dataclasses
datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac ipaddress itertools
json keyword locale math numbers operator random re secrets shlex statistics string
struct sys textwrap time types typing unicodedata urllib.parse uuid weakref zlib zoneinfo asyncio
__future__ traceback inspect codecs tomllib contextvars errno
""".split()  # noqa: SIM905 - a table of words


@pytest.mark.parametrize("module", PROMISED)
def test_a_promised_module_can_be_imported_and_gives_each_name_it_lists(module: str) -> None:
    facade = facades.find(module)

    assert facade is not None
    others = facades.exports()[module].symmetric_difference(dir(facade))
    assert others <= set(SUBMODULES.get(module, ()))  # another test may have imported these
    assert all(hasattr(facade, name) for name in facades.exports()[module])
    run(f"import {module}")


@pytest.mark.parametrize("module", ["subprocess", "socket", "ctypes", "gc2"])
def test_a_module_that_is_not_listed_is_not_there(module: str) -> None:
    assert facades.find(module) is None
    assert module not in facades.exports()
    with pytest.raises(Refused):
        run(f"import {module}")


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("numpy.linalg", "statistics"),
        ("pytz", "zoneinfo"),
        ("dateutil.parser", "fromisoformat"),
        ("requests", "search_tools"),
        ("subprocess", "write it in Python"),
        ("mcp.client", "tools.<server>"),
        ("os.system", "write it in Python"),
        ("mmap", "open(path)"),
        ("uuid.uuid1", "uuid4"),
    ],
)
def test_a_refused_module_comes_with_what_to_use_instead(module: str, advice: str) -> None:
    assert advice in (instead_of(module) or "")


def test_there_is_no_advice_on_a_module_nobody_knows() -> None:
    assert instead_of("no_such_module") is None


def test_a_facade_takes_no_stores_and_has_no_dictionary_and_no_name() -> None:
    facade = facades.find("math")

    with pytest.raises(AttributeError, match="read-only"):
        facade.pi = 3  # type: ignore[union-attr]
    with pytest.raises(AttributeError, match="read-only"):
        del facade.pi  # type: ignore[union-attr]
    assert not hasattr(facade, "__dict__")
    assert not hasattr(facade, "__name__")
    assert facade.pi == math.pi  # type: ignore[union-attr]
    assert repr(facade) == "<module 'math'>"


def test_the_class_of_a_facade_makes_nothing_and_takes_nothing() -> None:
    kind = type(facades.find("json"))

    with pytest.raises(TypeError):
        kind("os", None)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        type("Mine", (kind,), {})
    with pytest.raises(AttributeError, match="read-only"):
        kind.loads = None  # type: ignore[union-attr]
    with pytest.raises(AttributeError, match="read-only"):
        del kind.loads  # type: ignore[union-attr]


def test_reading_a_name_that_is_not_there_says_which_module_and_gives_nothing_away() -> None:
    with pytest.raises(AttributeError, match="'math module' object has no attribute 'sqr'") as caught:
        run("import math\nmath.sqr(2)")
    assert isinstance(caught.value.obj, facades.Facade)


def test_facades_stay_themselves_when_copied() -> None:
    assert run("import copy, json\ncopy.copy(json) is json and copy.deepcopy([json])[0] is json").value is True


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.codecs",
        "import re\nre.enum",
        "import statistics\nstatistics.sys",
        "import textwrap\ntextwrap.re",
        "import os\nos.system('true')",
        "import asyncio\nasyncio.subprocess",
        "import timeit\ntimeit.main(['pass'])",
        "import logging\nlogging.currentframe()",
        "import zoneinfo\nzoneinfo._common",
        "import typing\ntyping.ForwardRef('x')",
        "import types\ntypes.CodeType()",
        "import types\nclass C(types.CodeType): pass",
        "import types\ntypes.FunctionType((lambda: 1).__code__, {})",
        "import types\ntypes.ModuleType('os').system",
        "import enum\nenum.global_enum",
        "import shlex\nshlex.shlex('a')",
    ],
)
def test_what_leads_out_of_a_real_module_is_not_there(source: str) -> None:
    with pytest.raises((AttributeError, TypeError, Refused)):
        run(source)


@pytest.mark.parametrize(
    "source",
    [
        "import operator\noperator.attrgetter('gi_frame')(i for i in ())",
        "import functools, json\nfunctools.wraps(json.loads, assigned=(), updated=('__globals__',))(lambda: 1)",
        "import functools, json\nfunctools.update_wrapper(lambda: 1, json.loads, ('__globals__',))",
        "import dataclasses\ndataclasses.make_dataclass('D', ['a=__import__(1)'])",
        "import dataclasses\ndataclasses.Field.name = 'x'",
        "import dataclasses\ndataclasses.field().name = 'x=1):\\n  pass'",
        "import enum\nenum.Enum('E', '_x')",
        "import collections\ncollections.namedtuple('T', ['a=1'])",
        "import collections\nclass S(str):\n    pass\ncollections.namedtuple('T', [S('a')])",
        "import ast\nast.literal_eval('__import__(\"os\")')",
        "import configparser\nconfigparser.ConfigParser().read('/etc/hostname')",
        "import configparser\nc = configparser.ConfigParser()\nsuper(configparser.RawConfigParser, c).read('/etc/hostname')",
        "import xml.etree.ElementTree as ET\nET.parse('/etc/hostname')",
        "import xml.etree.ElementTree as ET\nET.ElementTree(ET.Element('a')).write('/nonexistent/x')",
        "import inspect\ninspect.signature(lambda: 1).from_callable(lambda: 1, eval_str=True, globals={'a': 1}).no",
        "import pathlib\npathlib.Path('/etc/hostname').read_text()",
        "import logging\nlogging.FileHandler('/tmp/x')",
        "import logging\nlogging.basicConfig(filename='/tmp/x')",
        "import locale\nlocale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')",
        "import zoneinfo\nzoneinfo.ZoneInfo('../../etc/hostname')",
        "import asyncio\nasyncio.get_event_loop().run_in_executor\nasyncio.new_event_loop().add_reader(0, print)",
        "import unittest\nunittest.TestCase('__reduce_ex__')",
        "import string\nf = string.Formatter()\nsuper(string.Formatter, f).get_field('0.__globals__', (lambda: 1,), {})",
    ],
)
def test_names_paths_and_source_given_as_data_are_refused(source: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each library has its own error
        run(source)
    assert not isinstance(caught.value, KeyboardInterrupt)


def test_signature_never_evaluates_string_annotations() -> None:
    source = """
    import inspect
    def f(x: "print('evaluated')"): ...
    try:
        inspect.signature(f).from_callable(f, eval_str=True)
    except NotImplementedError as error:
        print(error)
    inspect.signature(f)
    """
    assert run(source).output == "this needs eval(), which is not available here\n"


def test_a_field_that_code_slips_into_a_dataclass_is_not_compiled() -> None:
    source = """
    from dataclasses import dataclass
    @dataclass
    class A:
        x: int
    class Fake:
        name = "y=print('compiled')"
    A.__dataclass_fields__["y"] = Fake()
    @dataclass
    class B(A):
        z: int
    """
    with pytest.raises(TypeError, match="were changed"):
        run(source)


def test_singledispatch_evaluates_annotations_under_the_dialect_only() -> None:
    source = """
    from functools import singledispatch
    @singledispatch
    def f(x): return "other"
    def g(x: "().__class__.__base__.__subclasses__()"): ...
    f.register(g)
    """
    with pytest.raises(Exception, match=r"cannot be read here"):
        run(source)
    working = """
    from __future__ import annotations
    import functools
    @functools.singledispatch
    def f(x): return "other"
    @f.register
    def _(x: int | bool): return "int"
    @f.register(str)
    def _(x): return "str"
    [f(1), f("a"), f(1.5)]
    """
    assert run(working).value == ["int", "str", "other"]


def test_copying_gives_an_object_no_name_its_source_could_not_write() -> None:
    source = """
    import copy
    class A:
        def __getstate__(self): return {"_loop": 1}
    copy.copy(A())
    """
    with pytest.raises(TypeError, match="_loop"):
        run(source)


def test_a_field_of_an_object_is_not_taken_for_a_name_of_its_class() -> None:
    source = """
    from collections import defaultdict
    from dataclasses import asdict, dataclass
    class Fields(dict):
        def __getattr__(self, name): return self[name]
    @dataclass
    class A:
        fields: dict
    made = asdict(A(defaultdict(list, a=[1])))["fields"]
    [asdict(A(Fields(default_factory=1))), made["b"], made["a"]]
    """
    assert run(source).value == [{"fields": {"default_factory": 1}}, [], [1]]


def test_paths_are_text() -> None:
    source = """
    import os.path
    from pathlib import Path
    p = Path("a") / "b" / "c.tar.gz"
    [str(p), p.stem, p.suffixes, str(p.parent), str(p.with_suffix(".x")), repr(p), os.path.relpath("/a/b", "/a/c"),
     os.path.join("a", "b"), os.path.abspath("x/../y"), str(Path("/a/../b").resolve()), os.getcwd()]
    """
    assert run(source).value == [
        "a/b/c.tar.gz", "c.tar", [".tar", ".gz"], "a/b", "a/b/c.tar.x", "PosixPath('a/b/c.tar.gz')", "../b", "a/b", "/workspace/y", "/b",
        "/workspace",
    ]  # fmt: skip


def test_tracebacks_show_the_codes_own_lines() -> None:
    source = """
    import sys, traceback
    def f(): raise ValueError("x")
    try:
        f()
    except ValueError as error:
        text = traceback.format_exc()
        same = "".join(traceback.format_exception(error)) == text
        info = sys.exc_info()
    [text, same, info[0].__name__, info[2]]
    """
    text = (
        'Traceback (most recent call last):\n  File "<code>", line 5, in <module>\n'
        '  File "<code>", line 3, in f\nValueError: x\n'
    )
    assert run(source).value == [text, True, "ValueError", None]


def test_the_recursion_limit_is_taken_honestly_and_bounded() -> None:
    before = sys.getrecursionlimit()
    try:
        value = run("import sys\nsys.setrecursionlimit(10**6)\nsys.getrecursionlimit()").value
        assert value == sys.getrecursionlimit()
        assert isinstance(value, int)
        assert 1000 <= value <= 20_000
        assert run("import sys\nsys.setrecursionlimit(500)\nsys.getrecursionlimit()").value == 500
        for bad in ("0", "-5"):
            with pytest.raises(ValueError, match="recursion limit"):
                run(f"import sys\nsys.setrecursionlimit({bad})")
    finally:
        sys.setrecursionlimit(before)


_IN_A_PROCESS_OF_ITS_OWN = """
import sys
from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.namespace import new_namespace
facades.preload()
GUEST.write = sys.stdout.write
sealing.seal()
for source in sys.stdin.read().split("---"):
    GUEST.namespace = new_namespace()
    try:
        run_program(compile_program(source), GUEST.namespace)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_sealed_classes_of_the_host_take_no_stores_and_the_codes_own_do() -> None:
    sources = [
        "import json\njson.JSONEncoder.default = lambda *a: 1",
        "import textwrap\ndel textwrap.TextWrapper.fill",
        "import collections.abc\ncollections.abc.Mapping.get = 1",
        "class A: pass\nA.x = 1\nprint(A.x)",
        "import json\nclass E(json.JSONEncoder):\n    def default(self, o): return 1\nE.y = 2\nprint(json.dumps(object, cls=E))",
        "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'gone')\ndel a",
        "import collections\ncollections.Counter.copy(int)",
        "import collections\nprint(collections.Counter('aab').copy(), collections.ChainMap({1: 2}).new_child())",
        "import re, enum\nprint(re.I | re.M, (re.I | re.M).value)",
    ]

    ran = subprocess.run(
        [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN],
        input="---".join(sources), capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip

    lines = ran.stdout.splitlines()
    assert lines[:3] == [
        "TypeError cannot set 'default' attribute of immutable type 'JSONEncoder'",
        "TypeError cannot set 'fill' attribute of immutable type 'TextWrapper'",
        "TypeError cannot set 'get' attribute of immutable type 'Mapping'",
    ]
    assert lines[3:6] == ["1", "1", "gone"]
    assert lines[6].startswith("TypeError descriptor 'copy'")
    assert lines[7] == "Counter({'a': 2, 'b': 1}) ChainMap({}, {1: 2})"
    assert lines[8].endswith(" 10")


def test_everything_works_once_it_is_preloaded_and_files_are_gone() -> None:
    program = textwrap.dedent("""
        import sys
        from sealab.sandbox.dialect import facades, guest_modules
        from sealab.sandbox.guest.guest import GUEST
        from sealab.sandbox.dialect.compiling import compile_program, run_program
        from sealab.sandbox.dialect.namespace import new_namespace
        facades.preload()
        guest_modules.preload()
        opened, loaded = [], set(sys.modules)
        sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
        GUEST.namespace = new_namespace()
        GUEST.write = lambda text: None
        run_program(compile_program(sys.stdin.read()), GUEST.namespace)
        print(opened, set(sys.modules) - loaded)
    """)
    source = """
import datetime, time, zoneinfo, codecs, decimal, random, uuid, locale
datetime.datetime.strptime("2020-01-02", "%Y-%m-%d").strftime("%A")
time.strptime("2020", "%Y"), time.localtime(), zoneinfo.ZoneInfo("Asia/Tokyo"), "é".encode("cp1250"), codecs.encode("a", "rot13")
random.seed("a text"), uuid.uuid4(), locale.getlocale()
datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris")).isoformat()
str(10**4000), "\\N{BULLET}", "bücher".encode("idna"), decimal.Decimal("1").sqrt()
"""
    if sys.platform != "emscripten":  # whose library has no sources that could run as guest code
        source += """
import io, os, os.path, pathlib, tempfile, shutil, glob, tarfile, gzip, bz2, lzma, filecmp, fileinput, html, mimetypes, email.utils
email.utils.formatdate(), mimetypes.guess_type("a.html"), html.unescape("&amp;")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], input=source, capture_output=True, text=True, check=True, timeout=50
    )
    assert ran.stdout == "[] set()\n"


def test_in_a_sealed_process_the_methods_of_a_namespace_work_on_a_namespace_alone() -> None:
    program = """
        from types import SimpleNamespace
        from sealab.sandbox.dialect import facades, guest_modules
        from sealab.sandbox.dialect.facades import sealing
        from sealab.sandbox.guest.dynamic import Dynamic
        facades.preload(); guest_modules.preload(); sealing.seal()
        try:
            print(Dynamic.__getattr__(SimpleNamespace(_title="forged", _find=str.upper), "x"))
        except TypeError as error:
            print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=120
    )
    assert "doesn't apply to a 'SimpleNamespace' object" in done.stdout


def test_in_a_sealed_process_random_draws_numbers_without_a_wrapper() -> None:
    program = """
        import random
        from sealab.sandbox.dialect.restricted_python import RestrictedPython
        restricted = RestrictedPython()
        restricted.prepare([]); restricted.seal()
        kind = random.Random
        for method in (kind.randrange, kind.randint, kind.choice, kind.choices, kind.shuffle, kind.sample, kind.uniform):
            assert method.__code__.co_filename == random.__file__, method
        try:
            kind.seed(object())
        except TypeError as error:
            print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=120
    )
    assert "for 'Random' objects doesn't apply to a 'object' object" in done.stdout


def test_a_process_is_sealed_that_has_a_class_whose_objects_name_another_one() -> None:
    program = """
        import unittest.mock  # its class has a property `__class__`, which no class takes as its own
        from sealab.sandbox.dialect import facades
        from sealab.sandbox.dialect.facades import sealing
        facades.preload(); sealing.seal()
        print(unittest.mock.Mock(spec=int).__class__)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == ("<class 'int'>\n", "")


AS_IN_PYTHON = {
    "dataclasses work with private fields and string annotations": """
    from __future__ import annotations
    import typing
    from dataclasses import InitVar, KW_ONLY, asdict, dataclass, field, fields, replace
    @dataclass(order=True)
    class A:
        x: int
        _y: int = 2
        tags: list[str] = field(default_factory=list)
        count: typing.ClassVar[int] = 7
        seed: InitVar[int] = 3
        _: KW_ONLY
        k: int = 9
        def __post_init__(self, seed): self.x += seed
    a = A(1, _y=5, k=8)
    [str(a), asdict(a), str(replace(a, _y=1, seed=0)), [f.name for f in fields(a)][0], A.count, a < A(9), fields(a)[0].type]
    """,
    "enums work as usual": """
    from enum import Enum, Flag, IntEnum, StrEnum, auto
    class C(Enum):
        R = 1
        G = auto()
        @property
        def low(self): return self.name.lower()
        @classmethod
        def _missing_(cls, value): return cls.R
    class P(Flag):
        A = auto()
        B = auto()
    class S(StrEnum):
        X = auto()
    class Planet(Enum):
        E = (1.0, 2)
        def __init__(self, mass, moons): self.mass = mass
    made = Enum("Made", "p q")
    [C(2).low, C(99).name, [c.name for c in C], P.A | P.B == P(3), S("x") is S.X, made.q.value, Planet.E.mass, C["R"].value,
     IntEnum("I", {"a": 5}).a + 1]
    """,
    "zones come from memory and keys are no paths": """
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo
    utc = ZoneInfo("UTC")
    zone = ZoneInfo("Europe/Berlin")
    summer = datetime(2024, 7, 1, 12, tzinfo=utc).astimezone(zone)
    fold = datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=1)
    [summer.isoformat(), fold.utcoffset() == timedelta(hours=1), zone.key, ZoneInfo("Europe/Berlin") is zone, fold.tzname()]
    """,
    "the lines of a traceback and of the stack are told": """
    import traceback
    def f(): raise ValueError("x")
    def here(): return traceback.extract_stack(limit=1), traceback.format_stack()[-1], traceback.extract_stack()
    try:
        f()
    except ValueError as error:
        tb = error.__traceback__
        lines = traceback.extract_tb(tb)
        told = [tb.tb_lineno, [each[1:3] for each in lines], traceback.format_tb(tb, 1), lines.format()[1], repr(lines[1])]
        told.append(traceback.format_exception(type(error), error, tb)[-1])
        moved = TypeError("y").with_traceback(tb)
        moved.__traceback__ = tb
        told.append(len(traceback.extract_tb(moved.__traceback__)))
        error.__traceback__ = None
        told.append(traceback.format_tb(error.__traceback__))
    last, shown, stack = here()
    [*told, last[0][1:3], shown, [each.name for each in stack[-2:]]]
    """,
    "output can be redirected": """
    import contextlib, io, sys
    taken = io.StringIO()
    with contextlib.redirect_stdout(taken):
        print("inside")
        sys.stdout.write("too")
    print("outside", file=sys.stderr)
    [taken.getvalue(), sys.stdin.read(), sys.stdin.readline(), sys.argv]
    """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
