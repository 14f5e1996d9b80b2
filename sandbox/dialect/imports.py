"""Security boundary: import statements, resolved at compile time against what facades and host modules list.

An import of anything else is refused with its line, or, where the code is ready for it (`try: … except ImportError`),
becomes the `ImportError` that Python would raise. At run time `find` and `member_of` bind what was resolved here.

A guest module (`guest_modules`) runs when it is first imported, and what it has is known only then.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from typing import Final, NoReturn

from ..errors import Refused
from ..guest.dynamic import dynamic
from ..guest.ownership import is_guest_frame
from ..guest_api import host_modules
from ..report.substitutes import SUBSTITUTES, instead_of
from . import facades, guest_modules
from .facades import module_lookups
from .facades.module_object import GuestModule, member, public_members, set_member
from .guards import guarded_getattr
from .names import PREFIX, exact
from .syntax_nodes import hook_call, placed

MODULE_HOOK: Final = f"{PREFIX}module"
MEMBER_HOOK: Final = f"{PREFIX}member"
MISSING_HOOK: Final = f"{PREFIX}missing"
STAR_HOOK: Final = f"{PREFIX}star"
ABSENT_HOOK: Final = f"{PREFIX}absent"
_NOTHING: Final = object()


def module(node: ast.Import, alias: ast.alias, may_fail: bool, *, may_be_absent: bool = False) -> ast.stmt:
    """Return the statement for one `import a.b` or `import a.b as c`. Raises `Refused`.

    Where it `may_be_absent`, a module of the library that is not available is bound all the same, and raises when
    something of it is read.
    """
    listed = is_listed(alias.name)
    if not listed and guest_modules.exists(alias.name):
        top = alias.name.partition(".")[0]
        return _bind(node, alias.asname or top, MODULE_HOOK, alias.name, alias.name if alias.asname else top)
    message = f"module {alias.name!r} is not available here"
    if not listed and may_be_absent and _is_of_python(alias.name):
        top = alias.name.partition(".")[0]
        has_package = not alias.asname and is_importable(top)
        absence = (ABSENT_HOOK, alias.name, message)
        return _bind(node, alias.asname or top, *((MODULE_HOOK, top) if has_package else absence))
    if not listed:
        return _missing(node, alias.name, message, may_fail)
    top = alias.name.partition(".")[0]
    bound, found = (alias.asname, alias.name) if alias.asname else (top, top)
    return _bind(node, bound, MODULE_HOOK, found)


def is_listed(name: str) -> bool:
    """Return whether a module is the host's: a facade, or what stands for one."""
    return name in facades.exports() or host_modules.find(name) is not None


def is_importable(name: str) -> bool:
    """Return whether there is a module of a dotted name for code to import."""
    return is_listed(name) or guest_modules.exists(name)


def is_left_out(module: str, name: str) -> bool:
    """Return whether a module that can be imported is known to be without a member, which others use instead."""
    listed = host_modules.listed(module) or facades.exports().get(module, frozenset())
    member_name = f"{module}.{name}"
    # What stands in place of a whole package is not an answer once the operator has installed it.
    instead = instead_of(member_name) if is_listed(module) else SUBSTITUTES.get(member_name)
    return name not in listed and not is_importable(member_name) and instead is not None


def expanded(node: ast.ImportFrom, *, at_module_level: bool) -> Iterable[ast.alias]:
    """Return the names of a `from` import, with `*` written out."""
    if not any(alias.name == "*" for alias in node.names):
        return node.names
    if not at_module_level:
        raise SyntaxError("import * only allowed at module level", ("<code>", node.lineno, node.col_offset + 1, None))
    listed = host_modules.listed(node.module or "") or facades.exports().get(node.module or "")
    if listed is None or node.level:
        return [ast.alias("*")]
    return [ast.alias(name) for name in sorted(listed) if not name.startswith(("_", PREFIX))]


def absolute(node: ast.ImportFrom, package: str) -> ast.ImportFrom:
    """Return the import with the full name of its module. Raises `Refused` where `package` has not so many parents."""
    if not node.level:
        return node
    parts = package.split(".") if package else []
    if node.level > len(parts):
        raise Refused(
            "attempted relative import beyond top-level package" if parts else _NO_PACKAGE,
            line=node.lineno,
            type="ImportError",
            instead="import the module by its full name",
        )
    parts = [*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])]
    return placed(ast.ImportFrom(".".join(parts), node.names, 0), node)


def imported_member(node: ast.ImportFrom, alias: ast.alias, may_fail: bool, *, may_be_absent: bool = False) -> ast.stmt:
    """Return the statement for one `from a import b as c`, as `module` does. Raises `Refused`."""
    if not may_be_absent or alias.name == "*" or not _is_of_python(node.module or ""):
        return _imported_member(node, alias, may_fail)
    try:
        return _imported_member(node, alias, may_fail=False)
    except Refused as refused:
        name = f"{node.module}.{alias.name}"
        return _bind(node, alias.asname or alias.name, ABSENT_HOOK, name, refused.message)


def _imported_member(node: ast.ImportFrom, alias: ast.alias, may_fail: bool) -> ast.stmt:
    source = node.module or ""
    if alias.name == "*" and host_modules.is_dynamic(source):
        return placed(ast.Expr(hook_call(STAR_HOOK, source)), node)
    if not is_listed(source) and guest_modules.exists(source):
        if alias.name == "*":
            return placed(ast.Expr(hook_call(STAR_HOOK, source)), node)
        if is_left_out(source, alias.name):
            return _missing(node, source, f"cannot import name {alias.name!r} from {source!r}", may_fail, alias.name)
        return _bind(node, alias.asname or alias.name, MEMBER_HOOK, source, alias.name)
    if host_modules.gives(source, alias.name) or host_modules.find(f"{source}.{alias.name}") is not None:
        return _bind(node, alias.asname or alias.name, MEMBER_HOOK, source, alias.name)
    listed = frozenset() if host_modules.find(source) is not None else facades.exports().get(source)
    if listed is None:
        return _missing(node, source, f"module {source!r} is not available here", may_fail)
    submodule = f"{source}.{alias.name}"
    if alias.name not in listed and not is_importable(submodule):
        return _missing(node, source, f"cannot import name {alias.name!r} from {source!r}", may_fail, alias.name)
    return _bind(node, alias.asname or alias.name, MEMBER_HOOK, source, alias.name)


def _is_of_python(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def _missing(node: ast.stmt, name: str, message: str, may_fail: bool, member_name: str | None = None) -> ast.stmt:
    if not may_fail:
        instead = None if member_name else instead_of(name)
        raise Refused(message, line=node.lineno, type="ImportError", module=name, instead=instead)
    return placed(ast.Expr(hook_call(MISSING_HOOK, name, message)), node)


def _bind(node: ast.stmt, name: str, hook: str, *arguments: str) -> ast.stmt:
    return placed(ast.Assign([ast.Name(name, ast.Store())], hook_call(hook, *arguments)), node)


def find(name: str, bound: str = "") -> object:
    """Import the module of a dotted name and return it, or its package `bound`. Raises `ImportError`."""
    found = import_module(name)
    return import_module(bound) if bound and bound != name else found


def import_module(name: str) -> object:
    """Return the facade of a module, or the guest module, run now if it never was. Raises `ImportError`."""
    found = _module(name) if type(name) is str else None
    if found is None:
        missing(str(name), f"No module named {name!r}")
    return found


def member_of(source: str, name: str) -> object:
    """Return what `from source import name` binds. Raises `ImportError`."""
    if type(source) is not str or type(name) is not str:
        missing(str(source), f"No module named {source!r}")
    owner = _module(source)
    if owner is not None and not isinstance(owner, facades.Facade):  # what code put in `sys.modules`
        return guarded_getattr(owner, name)
    if type(owner) is not GuestModule and host_modules.gives(source, name):
        return host_modules.member(source, name)
    if type(owner) is not GuestModule and name in facades.exports().get(source, frozenset()):
        return getattr(owner, name)
    value = member(owner, name, _NOTHING) if type(owner) is GuestModule else _NOTHING
    if value is _NOTHING:
        value = _module(f"{source}.{name}") or _NOTHING
    if value is _NOTHING:
        missing(source, f"cannot import name {name!r} from {source!r}" if owner else f"No module named {source!r}")
    return value


def star(source: str) -> None:
    """Bind in the calling module what `from source import *` binds. Raises `ImportError`, `SystemError`."""
    caller = sys._getframe(1)
    if not is_guest_frame(caller):  # whatever calls it, the variables are those of code that was compiled as a guest's
        raise SystemError("import * needs a module of the code's own")
    owner = import_module(source)
    if type(owner) is GuestModule:
        for name, value in public_members(owner).items():
            caller.f_locals[name] = value
        return
    names = host_modules.all_names(source)
    if names is None:
        missing(str(source), f"No module named {source!r}")
    for name in names:  # a server named them: what the code has already stays what it is
        if name not in caller.f_locals and name not in caller.f_builtins:
            caller.f_locals[name] = host_modules.member(source, name)


def _module(name: str) -> object:
    """Return a module, and let the package that it lies in have it as an attribute, as an import does."""
    loaded = guest_modules.loaded()
    if name in loaded:
        return loaded[name]
    found = _facade(name)
    if found is None:
        return guest_modules.load(name, import_module)
    loaded[name] = found
    parent, _, last = name.rpartition(".")
    package = import_module(parent) if parent and guest_modules.exists(parent) and not is_listed(parent) else None
    if type(package) is GuestModule:
        set_member(package, last, found)
    return found


def _facade(name: str) -> facades.Facade | None:
    return host_modules.find(name) or facades.find(name)


def absent(name: str, message: str) -> object:
    """Return what stands for what is not available: to read it, call it or go through it raises `ImportError`."""
    name, message = exact(str(name)), exact(str(message))
    instead = instead_of(name)
    message = f"{message}; {instead}" if instead else message

    def fail(*_arguments: object, **_keywords: object) -> NoReturn:
        missing(name, message)

    return dynamic(f"{name!r}, which is not available here", fail, fail, call=fail)


def missing(name: str, message: str) -> NoReturn:
    """Raise the error of an import that found nothing."""
    raise ModuleNotFoundError(message, name=name) if "module" in message else ImportError(message, name=name)


def guarded_import(
    name: str,
    globals: object = None,  # noqa: A002 - the signature that Python itself calls
    locals: object = None,  # noqa: A002, ARG001 - Python's own signature
    fromlist: object = (),
    level: int = 0,
) -> object:
    """Stand in for `builtins.__import__`. Raises `ImportError` for everything without a facade.

    C code that imports for itself (`datetime.strptime` needs `_strptime`) calls this too, and takes the module from
    `sys.modules` afterwards, whatever is returned; so for what is loaded already there is nothing to do.
    """
    if type(name) is not str or level:
        missing(str(name), _NO_PACKAGE)
    found = _module(name)
    if found is not None:
        return found if fromlist else _module(name.partition(".")[0])
    if type(globals) is dict and name in _NEEDED_BY_C and name in sys.modules:
        return None
    missing(name, f"module {name!r} is not available here")


_NO_PACKAGE: Final = "relative imports have no package to start from here"
_NEEDED_BY_C: Final = frozenset("_strptime _pylong _io copyreg encodings locale unicodedata".split())


@cache
def preload() -> None:
    """Load what C code imports for itself, since guest code's own import would not."""
    for name in _NEEDED_BY_C:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


module_lookups.provide()
