"""`importlib.util` as guest code: whether a module can be imported."""

from types import SimpleNamespace

import _modules


class _Spec(SimpleNamespace):
    pass


def find_spec(name, package=None):
    """Return something true where `name` can be imported, else None."""
    if not name:
        raise ValueError("Empty module name")
    if name.startswith("."):
        name = (package or "").rpartition(".")[0] + name if name.startswith("..") else f"{package}{name}"
    if not _modules.exists(name):
        return None
    return _Spec(name=name, origin=None, loader=None, submodule_search_locations=None, parent=name.rpartition(".")[0])
