"""A security boundary: copies of standard modules that have forgotten how to open, import and evaluate.

A stand-in class that inherits from a real one and overrides what is dangerous is not enough: `super(StandIn, x).read`
still reaches what it overrode. So a class whose real form opens files or evaluates strings is taken from a private copy
of its module. The copy runs under builtins of its own, and once it is loaded those lose what guest code must not have;
`open` becomes the guest's own, which opens files of the workspace.
"""

from __future__ import annotations

import builtins
import importlib.util
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

_FORGOTTEN = ("__import__", "breakpoint", "compile", "eval", "exec", "input")


def copy_of(
    module: str, *, keeping: tuple[str, ...] = (), replacing: Mapping[str, object] = MappingProxyType({})
) -> ModuleType:
    """Load a second copy of `module` that nothing else uses.

    Of the forgotten builtins it keeps those in `keeping`; those in `replacing` it finds in place of the usual ones.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.loader is None:
        raise ImportError(f"the standard library's {module} is missing")
    copy = importlib.util.module_from_spec(spec)
    own = dict(vars(builtins))
    copy.__dict__["__builtins__"] = own
    spec.loader.exec_module(copy)
    # Every function of the copy holds this one dictionary.
    own.update({name: _refusing(name) for name in _FORGOTTEN if name not in keeping})
    own["open"] = open_file
    own.update(replacing)
    return copy


def open_file(*arguments: object, **keywords: object) -> Any:
    """Open a file of the workspace, as guest code does."""
    from ..guest_modules import call  # it needs the facades

    return call("io", "open", *arguments, **keywords)


open_file.__name__ = open_file.__qualname__ = "open"


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise NotImplementedError(f"this needs {name}(), which is not available here")

    return refuse
