"""The modules of CPython's standard library that run as guest code, and what of their source is replaced.

Guest modules of our own take single definitions from there. A text that is replaced or taken, and that the source of
this version lacks, is an error when the module is imported.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STDLIB: Final = frozenset(
    """
    _colorize _compression _markupbase _py_warnings argparse bz2 calendar cmd compression concurrent configparser
    copyreg dbm doctest email filecmp fileinput genericpath getopt gettext glob gzip html http.cookies linecache
    logging lzma mimetypes netrc ntpath nturl2path optparse plistlib pprint queue quopri re._constants re._parser
    reprlib sched shelve shutil sqlite3 stat tarfile tempfile threading timeit token tokenize unittest warnings wave
    xml zipfile
    """.split()
)
"""The modules of the standard library that run from the source of this interpreter, packages with all below them."""

_TAKEN: Final[Mapping[str, tuple[str, str]]] = {
    "ast": ("ast", "NodeVisitor NodeTransformer copy_location fix_missing_locations iter_child_nodes iter_fields walk"),
    "io": ("_pyio", "BufferedRWPair"),
    "os": ("os", "fdopen makedirs removedirs renames"),
    "os.path": ("posixpath", "abspath relpath"),
    "pkgutil": ("pkgutil", "resolve_name"),
}
"""Guest module of our own → the library's module whose functions and classes stand behind its text, and their names."""
_STATEMENT: Final = re.compile(r"^(?=[^\s)])", re.MULTILINE)
"""Where a statement of the top level begins."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A text of the library's source that is replaced wherever it stands.

    Its absence is an error from version `since` on and before `until`, the first whose text was not read for this.
    """

    original: str
    instead: str
    since: tuple[int, int] = (3, 11)
    until: tuple[int, int] = (3, 14)


_ERROR_OF_TEST: Final = """
        tb = self._clean_tracebacks(exctype, value, tb, test)
        tb_e = traceback.TracebackException(
            exctype, value, tb,
            capture_locals=self.tb_locals, compact=True)
"""
_LINE_OF_WARNING: Final = (
    "line = linecache.getline(msg.filename, msg.lineno)",
    """from traceback import extract_stack
            line = next((each.line for each in extract_stack() if each[:2] == (msg.filename, msg.lineno)), None)""",
)
"""No file has the source of code: a line is shown that is among those that run."""

_CHANGES: Final[Mapping[str, tuple[_Change, ...]]] = {
    "_py_warnings": (
        _Change("import _contextvars", "import contextvars as _contextvars", since=(3, 14), until=(3, 15)),
        _Change(*_LINE_OF_WARNING, since=(3, 14), until=(3, 15)),
    ),
    "calendar": (
        _Change(
            "from enum import IntEnum, global_enum",
            """from enum import IntEnum
def global_enum(cls):
    globals().update(cls.__members__)
    cls.__repr__ = lambda self: f"calendar.{self.name}"
    return cls""",
            since=(3, 12),
        ),
    ),
    "doctest": (
        _Change(
            "import os\nimport pdb\n",
            """import os
class pdb:
    set_trace = None
    class Pdb:
        def __init__(self, **options): pass
        def reset(self): pass
""",
        ),
        _Change("from io import StringIO, IncrementalNewlineDecoder", "from io import StringIO"),
        _Change(
            "inspect.getmodule(",
            "(lambda each: each if inspect.ismodule(each) else sys.modules.get(getattr(each, '__module__', None)))(",
        ),
        _Change("module.__dict__ is object.__globals__", "module.__name__ == object.__module__"),
        _Change("inspect.ismethoddescriptor(object)", "False"),
        _Change("inspect.ismethodwrapper(object)", "False"),
        _Change("inspect.unwrap(", "("),
        _Change("inspect.istraceback(obj)", "False"),
        _Change("inspect.isframe(obj)", "False"),
        _Change("inspect.iscode(obj)", "hasattr(obj, 'co_firstlineno')"),
        _Change("inspect.getsourcefile(obj)", "None"),
        _Change("inspect.getfile(obj)", "'<code>'"),
        _Change("filename = getattr(module, '__file__', None) or module.__name__", "filename = '<code>'"),
        _Change(
            "traceback.format_exception_only(*exception[:2])",
            "[_module_of(exception[0]) + each for each in traceback.format_exception_only(exception[1])]",
        ),
        _Change(
            "def _newline_convert(",
            """
def _module_of(kind):
    return "" if kind.__module__ in ("__main__", "builtins") else f"{kind.__module__}."

def _newline_convert(""",
        ),
        _Change("compileflags = _extract_future_flags(test.globs)", "pass"),
        _Change("sys.gettrace()", "None"),
        _Change("sys.settrace(save_trace)", "pass"),
        _Change("save_displayhook = sys.displayhook", "pass"),
        _Change("sys.displayhook = sys.__displayhook__", "pass"),
        _Change("sys.displayhook = save_displayhook", "pass"),
    ),
    "email._parseaddr": (  # every message imports it, and few need the calendar
        _Change("import time, calendar", "import time", until=(3, 13)),
        _Change("t = calendar.timegm(data)", "import calendar; t = calendar.timegm(data)", until=(3, 13)),
    ),
    "email.utils": (_Change("os.getpid()", "1"), _Change("socket.getfqdn()", "'localhost'")),
    "genericpath": (  # `os.path` imports it, and is imported with `os`
        _Change("import os\nimport stat\n", "import stat\n"),
        _Change("def _check_arg_types(", "import os\n\ndef _check_arg_types("),
    ),
    "logging": (
        _Change("frame = tb.tb_frame", "frame = None", until=(3, 13)),
        _Change("frame = exc.__traceback__.tb_frame", "frame = None", since=(3, 13)),
        _Change(
            "traceback.print_stack(f, file=sio)",
            "lines = [each for each in traceback.extract_stack() if each[0] != _srcfile]; "
            "sio.write(''.join(traceback.format_list(lines)))",
        ),
        _Change("currentframe", "_currentframe"),
        _Change("converter = time.localtime", "converter = staticmethod(time.localtime)"),
    ),
    "mimetypes": (_Change("knownfiles = [", "knownfiles = [] and ["),),  # files of the machine
    "reprlib": (
        _Change("wrapper.__type_params__ = getattr(user_function, '__type_params__', ())", "pass", since=(3, 12)),
    ),
    "tempfile": (
        _Change("tempdir = _get_default_tempdir()", 'tempdir = "/tmp"'),
        _Change("cur_pid = _os.getpid()", "cur_pid = 1"),
    ),
    "warnings": (_Change(*_LINE_OF_WARNING),),
    "timeit": (_Change("def main(", "def _main("),),
    "unittest.async_case": (_Change("self._asyncioRunner.get_loop()", "pass"),),
    "unittest.case": (_Change("traceback.clear_frames(tb)", "pass"),),
    "unittest.result": (
        _Change(
            f"{_ERROR_OF_TEST}        msgLines = list(tb_e.format())",
            "\n        msgLines = traceback.format_exception(value)",
        ),
        _Change(
            f"""{_ERROR_OF_TEST}        from _colorize import can_colorize

        colorize = hasattr(self, "stream") and can_colorize(file=self.stream)
        msgLines = list(tb_e.format(colorize=colorize))""",
            "\n        msgLines = traceback.format_exception(value)",
            since=(3, 14),
            until=(3, 15),
        ),
    ),
    "unittest.mock": (
        _Change("def __class__(", "def class_of_spec("),
        _Change("asyncio.coroutines._is_coroutine", "True"),
        _Change("NonCallableMock(spec_set=CodeType)", "NonCallableMock()"),
        _Change("NonCallableMock(spec_set=_CODE_ATTRS)", "NonCallableMock()", since=(3, 12)),
        _Change("self.__dict__['__code__'] = code_mock", "pass"),
        _Change("self.__dict__['__annotations__'] = None", "pass"),
        _Change("inspect.isdatadescriptor(", "(lambda value: isinstance(value, property))("),
        _Change("inspect.getattr_static(", "getattr(", since=(3, 13)),
        _Change("inspect.unwrap(", "(", since=(3, 13)),
        _Change("from unittest.util import safe_repr", "safe_repr = repr"),
        _Change("import _io", "import io as _io"),
        _Change(
            "partial(pkgutil.resolve_name, target)",
            """partial(pkgutil.resolve_name, "__main__" if target == "builtins" else target)""",
        ),
    ),
}
"""Module of the library → what its source says of the interpreter, and what it says here.

No object passes for one of another class.
"""


def adapted_source(name: str, text: str) -> str:
    """Return the source of a module of the library as it runs here.

    Where a version of Python has not what is to be replaced, the import of the module is an error.
    """
    for change in _CHANGES.get(name, ()):
        if change.original not in text and change.since <= sys.version_info[:2] < change.until:
            return _lacking(name, change.original)
        text = text.replace(change.original, change.instead)
    return text


def with_taken(name: str, text: str, library: Path) -> str:
    """Return the source of a guest module of our own, with what it takes from the modules in the folder `library`."""
    if name not in _TAKEN:
        return text
    module, names = _TAKEN[name]
    statements = _STATEMENT.split((library / f"{module}.py").read_text("utf-8"))
    for each in names.split():
        found = next((one for one in statements if one.startswith((f"def {each}(", f"class {each}("))), None)
        if found is None:
            return _lacking(module, each)
        text = f"{text}\n\n{found}"
    return text


def _lacking(module: str, text: str) -> str:
    message = f"{module} of Python {sys.version.split()[0]} is not known here, since it lacks {text!r}"
    return f"raise ImportError({message!r})"
