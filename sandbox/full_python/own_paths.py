"""Takes out of full Python where this program lies on the host: code there can look at everything in its process.

What remains are the folders of the interpreter itself and of its packages, which code can see anyway.
"""

from __future__ import annotations

import _imp
import gc
import os
import sys
from importlib.machinery import FileFinder
from types import FunctionType, ModuleType

from ..report import disclosure

_PROGRAM = __package__.partition(".")[0]
_IN_PLACE = "<sealab>"


def forget() -> None:
    """Forget the paths of this program's modules, and search for modules only where there is something to find.

    Nothing of this program can be imported afterwards; what was imported stays. Call it in the root of the workers.
    """
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")
    own = [module for name, module in sys.modules.items() if name.partition(".")[0] == _PROGRAM]
    for item in gc.get_objects():
        if type(item) is FunctionType and item.__code__.co_filename.startswith(folder):
            # As importlib does where a compiled file was moved.
            _imp._fix_co_filename(item.__code__, _IN_PLACE)  # type: ignore[attr-defined]  # not in the stubs
    for module in own:
        _forget_origin(module)
    sys.path[:] = [path for path in sys.path if os.path.exists(path)]
    for path in [path for path, finder in sys.path_importer_cache.items() if not _finds(path, finder)]:
        del sys.path_importer_cache[path]
    disclosure.update_known_folders()


def _forget_origin(module: ModuleType) -> None:
    variables = vars(module)
    for name in ("__file__", "__cached__"):
        variables.pop(name, None)
    module.__spec__ = module.__loader__ = None
    if "__path__" in variables:
        module.__path__ = []


def _finds(path: str, finder: object) -> bool:
    return isinstance(finder, FileFinder) and os.path.exists(path)
