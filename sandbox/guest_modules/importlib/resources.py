"""`importlib.resources` as guest code: the files of packages, which `open` and `pathlib` read as well."""

import contextlib
import importlib
import pathlib

__all__ = ["as_file", "files", "is_resource", "open_binary", "open_text", "read_binary", "read_text"]


def files(anchor):
    """Return the folder of a package, which is given as a module or by its name. Raises ImportError, TypeError."""
    module = importlib.import_module(anchor) if isinstance(anchor, str) else anchor
    place = getattr(module, "__file__", None)
    if place is None:
        raise TypeError(f"{getattr(module, '__name__', module)!r} has no files")
    return pathlib.Path(place).parent


@contextlib.contextmanager
def as_file(path):
    yield path


def open_binary(anchor, *names):
    return files(anchor).joinpath(*names).open("rb")


def open_text(anchor, *names, encoding="utf-8", errors="strict"):
    return files(anchor).joinpath(*names).open("r", encoding=encoding, errors=errors)


def read_binary(anchor, *names):
    return files(anchor).joinpath(*names).read_bytes()


def read_text(anchor, *names, encoding="utf-8", errors="strict"):
    return files(anchor).joinpath(*names).read_text(encoding=encoding, errors=errors)


def is_resource(anchor, *names):
    return files(anchor).joinpath(*names).is_file()
