"""What code is told of its calls, its functions and its classes: records, and nothing of the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sealab.sandbox.dialect import guest_modules
from sealab.sandbox.dialect.facades import package_data
from sealab.sandbox.dialect.guest_modules import ModuleText

from ..guest_code import run
from .conftest import Install


@pytest.fixture
def told(install: Install) -> Callable[[str], None]:
    return lambda text: install({"told.py": text})


def test_a_frame_is_a_record_of_a_call(told: Callable[[str], None]) -> None:
    told("""
        import sys
        def who():
            frame = sys._getframe(1)
            return [frame.f_code.co_name, frame.f_lineno, frame.f_back.f_code.co_name, frame.f_globals["marked"]]
    """)
    source = "import told\nmarked = 7\ndef caller():\n    return told.who()\nresult = caller()"
    assert run(source).value == ["caller", 4, "<module>", 7]


@pytest.mark.parametrize(
    "read",
    [
        "sys._getframe().f_builtins", "sys._getframe().f_locals", "sys._getframe(10_000)", "sys._getframe(True)",
        "(i for i in ()).gi_frame", "(i for i in ()).gi_code", "type(sys._getframe())()", "print.__code__",
        "sys._getframe().f_globals.__class__.__subclasses__()", "(lambda: 0).__code__.co_code",
        "(lambda: 0).__code__.co_consts", "(lambda: 0).__globals__", "sys._getframe.__code__", "None.tb_frame",
        "(lambda x: lambda: x)(3).__closure__", "sys._getframe().f_globals['__builtins__']",
        "getattr(compile('1', 'f', 'eval'), '_code')",
    ],
)  # fmt: skip
def test_a_record_leads_nowhere(told: Callable[[str], None], read: str) -> None:
    told(f"import sys\ndef read(): return {read}")
    with pytest.raises((AttributeError, TypeError, ValueError, KeyError)):
        run("import told\ntold.read()")


def test_a_program_is_told_at_once_what_leads_to_frames() -> None:
    with pytest.raises(Exception, match="frames"):
        run("import sys\nsys._getframe().f_back")


def test_the_class_of_a_method_can_be_exchanged_for_one_of_the_codes_own(told: Callable[[str], None]) -> None:
    told("""
        class A:
            def f(self): return "A"
        class B(A):
            def f(self): return super().f() + "B"
        class C(A): pass
        C.f = B.f
        def exchange(value):
            for cell in getattr(B.f, "__closure__"):
                assert issubclass(cell.cell_contents, A)
                cell.cell_contents = value
            return C().f()
    """)
    assert run("import told\nresult = told.exchange(told.C)").value == "AB"
    for value in ("int", "type", "3"):
        with pytest.raises(TypeError):
            run(f"import told\ntold.exchange({value})")


def test_what_a_class_of_the_host_derives_from_is_told_to_modules_alone(told: Callable[[str], None]) -> None:
    told("lineage = [bool.__mro__, bool.__base__, (1).__class__.__bases__]")
    assert run("import told\nresult = told.lineage == [(bool, int, object), int, (object,)]").value is True
    for source in ("bool.__mro__", "bool.__bases__", "'{0.__class__.__mro__}'.format(0)", "getattr(int, '__base__')"):
        with pytest.raises(AttributeError, match="cannot be read here"):
            run(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("result = '__eq__' in object.__dict__ and 'nope' not in vars(int) and '__dict__' not in vars(type)", True),
        ("class C: pass\nresult = [C.__dict__.get('__weakref__') is not None, C().__weakref__]", [True, None]),
        ("class C: __slots__ = ()\nresult = [hasattr(C, '__weakref__'), '__weakref__' in C.__dict__]", [False, False]),
        ("class C:\n    _x: int\n    y: str\nresult = [*C.__annotations__, *C.__dict__['__annotations__']]", ["_x", "y"] * 2),
        ("class C: pass\nC.__match_args__ = ('a',)\nc = C()\nc.a = 4\nmatch c:\n    case C(x): result = x", 4),
        (("def f():\n    __class__ = int\n    return super(__class__, True).bit_length()\ntry:\n    result = f()\n"
         "except AttributeError as error: result = 'none'"), "none"),
        ("import ast\nresult = ast.literal_eval(ast.parse('[1, 2]', mode='eval'))", [1, 2]),
        (("import pickle\nclass C:\n    __reduce__ = object.__reduce__\n    def __init__(self): self.x = 3\n"
         "result = pickle.loads(pickle.dumps(C())).x"), 3),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .lexer import Token\nresult = 1", 1),
        ("class P:\n    pass\np, q = P(), P()\np.__defaults__ = (1,)\nq.__dict__.update(p.__dict__)\nresult = q.__defaults__",
         (1,)),
        (("c = compile('1 +', 'page', 'exec') if 0 else compile('x = 1', 'page', 'exec')\n"
         "result = [c.co_filename, c.replace(co_name='template', co_filename='other').co_filename]"), ["page", "other"]),
    ],
)  # fmt: skip
def test_what_packages_ask_of_classes_is_answered(source: str, expected: object) -> None:
    assert run(source).value == expected


@pytest.mark.parametrize(
    "source",
    [
        "class C: pass\nC.__match_args__ = ('__dict__',)",
        "int.__match_args__ = ('real',)",
        "object.__reduce__(3)",
        "object.__dict__['x'] = 1",
        "class C: __class__ = int",
        "compile('1', 'f', 'eval').replace(co_consts=())",
        "compile('1', 'f', 'eval').replace(co_name=3)",
        "import types\nclass S(str): pass\ntypes.new_class('C', (), {S('metaclass'): type})",
    ],
)
def test_what_packages_ask_of_classes_has_its_limits(source: str) -> None:
    with pytest.raises(Exception) as error:  # noqa: PT011 - each in its own way
        run(source)
    assert "internal" not in str(error.value)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for table in ("_files", "_folders"):
        monkeypatch.setattr(package_data, table, {})
    folder = tmp_path / "told"
    for name, text in {"data.json": "[1]", "sub/more.txt": "äß", "tests/big.txt": "t", ".env": "secret"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "__init__.py").write_text("")
    (folder / "out").symlink_to("/etc/hostname")
    (folder / "away").symlink_to("/etc")
    package_data.read(tmp_path, "told")
    return folder


def test_the_files_of_a_package_are_read(told: Callable[[str], None], package: Path) -> None:
    guest_modules.add({"told": ModuleText("told", "told/__init__.py", "", is_package=True)})
    ran = run("""
        import importlib.resources, json, os, pathlib, pkgutil, told
        here = pathlib.Path(told.__file__).parent
        with open(os.path.join(os.path.dirname(told.__file__), "data.json")) as file:
            found = [json.load(file)]
        found += [(here / "sub" / "more.txt").read_text(), (here / "sub").is_dir(), sorted(os.listdir(here))]
        found += [importlib.resources.files("told").joinpath("data.json").read_text(), pkgutil.get_data("told", "sub/more.txt")]
        result = found
    """)
    assert ran.value == [[1], "äß", True, ["__init__.py", "data.json", "sub"], "[1]", "äß".encode()]


def test_the_files_of_a_package_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("_files", "_folders"):
        monkeypatch.setattr(package_data, table, {})
    monkeypatch.setattr(package_data, "PACKAGE_DATA_BYTES_MAX", 5)
    (tmp_path / "p").mkdir()
    for name, size in {"a": 4, "b": 4, "c": 1}.items():
        (tmp_path / "p" / name).write_bytes(bytes(size))
    package_data.read(tmp_path, "p")
    assert package_data.folder("/packages/p") == ["a", "c"]


@pytest.mark.parametrize("path", ["/packages/told/.env", "/packages/told/out", "/packages/told/away/hostname",
                                  "/packages/told/tests/big.txt", "/packages/../etc/hostname"])  # fmt: skip
def test_no_other_file_is_there(package: Path, path: str) -> None:
    assert package_data.file(path) is None


def test_a_file_of_a_package_is_never_written(
    told: Callable[[str], None], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def host(name: str, arguments: Mapping[str, object]) -> object:
        asked.append((name, arguments["filename"]))
        return {"errno": 13, "why": "no"}

    monkeypatch.setattr("sealab.sandbox.guest.guest.GUEST.call_host", host)
    with pytest.raises(PermissionError):
        run("open('/packages/told/data.json', 'w')")
    assert asked == [("file_open", "/packages/told/data.json")]
