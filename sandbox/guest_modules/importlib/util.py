"""`importlib.util` as guest code: whether a module can be imported, and copies of those that are guest code."""

from types import SimpleNamespace

import _modules


class _Spec(SimpleNamespace):
    pass


class _Loader:
    def exec_module(self, module):
        _modules.run_copy(module)


def module_from_spec(spec):
    """Return a module of its own, which has not run. Raises ImportError for one that is not guest code."""
    return _modules.new_copy(spec.name)


def find_spec(name, package=None):
    """Return something true where `name` can be imported, else None."""
    if not name:
        raise ValueError("Empty module name")
    if name.startswith("."):
        name = (package or "").rpartition(".")[0] + name if name.startswith("..") else f"{package}{name}"
    if not _modules.exists(name):
        return None
    return _Spec(name=name, origin=None, loader=_Loader(), submodule_search_locations=None, parent=name.rpartition(".")[0])
