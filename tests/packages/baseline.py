"""Runs the tests of a package under CPython as it is, from the same texts that guest code runs from.

    python -I -S baseline.py < [[directory, module] …, names of test modules, "run" or "run_doctests"] as JSON

What fails here needs more than a package, the standard library and the stand-in for pytest, so it is asked of nobody.
There are no processes and no `unittest.mock`: a test that uses them needs more than asserts, raises and parametrize.
"""

import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path


class Texts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules whose files their own code cannot find."""

    def __init__(self, texts, folders):
        self.texts, self.folders = texts, folders

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - the signature that Python calls
        if name not in self.texts:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=self.texts[name][2])

    def exec_module(self, module):
        place, text, is_package = self.texts[module.__name__]
        folder = self.folders.get(module.__name__.partition(".")[0], "")
        is_test = not {"test", "tests"}.isdisjoint([folder.rpartition("/")[2], *module.__name__.split(".")])
        module.__file__ = place if is_test else os.path.join(folder, place)
        if is_package:
            module.__path__ = [module.__file__.rpartition("/")[0]]
        exec(compile(text, f"<{place}>", "exec", dont_inherit=True), vars(module))


def read(folder, name):
    from importlib.util import decode_source

    path = Path(folder, name)
    if not path.is_dir():
        yield name, (f"{name}.py", decode_source(path.with_suffix(".py").read_bytes()), False)
        return
    for file in sorted(path.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        dotted = ".".join(parts[:-1] if is_package else parts)
        yield dotted, (file.relative_to(folder).as_posix(), decode_source(file.read_bytes()), is_package)
    for each in {parent for file in path.rglob("*.py") for parent in file.parents}:
        if each.is_relative_to(path) and not (each / "__init__.py").is_file():
            place = each.relative_to(folder)
            yield ".".join(place.parts), (f"{place.as_posix()}/__init__.py", "", True)


class Missing(types.ModuleType):
    """A module that can be imported, and of which nothing can be used."""

    def __getattr__(self, name):
        raise ImportError(f"{self.__name__} is not there")


def leave_out():
    sys.modules["unittest.mock"] = unittest.mock = Missing("unittest.mock")
    for name in ("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"):
        setattr(subprocess, name, None)


def main():
    leave_out()
    places, names, how = json.load(sys.stdin)
    texts = dict(pair for folder, name in places for pair in read(folder, name))
    sys.meta_path.insert(0, Texts(texts, {name: folder for folder, name in places}))
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115 - for as long as the process
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        import pytest

        told = getattr(pytest, how)(names)
        os.chdir("/")
    json.dump(told, out)


main()
