"""Security boundary: modules that run as guest code, from source that is compiled under the dialect.

They need no trust: what runs as a guest can leak nothing that a guest cannot reach. Their text comes from three places:
the folder `guest_modules` of this package, the standard library of this interpreter (`STDLIB`), and the packages that
the operator installed (`PACKAGES`). All of it is read before a worker is confined, and compiled ahead where there was
time; a worker runs a module when it is first imported, and keeps it for the run, or for the session.
"""

from __future__ import annotations

import marshal
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn, cast

from ..guest import facade
from ..guest.facade import Facade
from ..guest.guest import GUEST
from ..guest.ownership import marked_code
from ..guest.spelling import PREFIX
from .facades import package_data
from .facades.module_object import LOADED, GuestModule, make_module, set_member, variables_of
from .library_modules import STDLIB, adapted_source, with_taken


@dataclass(frozen=True, slots=True)
class ModuleText:
    """The source of one module. `place` is its path in what was installed, as tracebacks show it: `toolz/dicttoolz.py`.

    Modules import at once what only some of their functions need of the standard library, such as `socket`: what of it
    is not available is an error when it is used.
    """

    name: str
    place: str
    text: str
    is_package: bool

    @property
    def filename(self) -> str:
        """The file name of its code."""
        return f"<{self.place}>"

    @property
    def package(self) -> str:
        """The package that its relative imports start from; empty for a module of the top level."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def _not_provided(*_arguments: object) -> NoReturn:
    raise RuntimeError("Guest modules cannot be compiled yet. Import `namespace` before any code runs.")


_compile: Callable[[ModuleText], CodeType] = _not_provided
_evaluate: Callable[[CodeType, dict[str, object]], object] = _not_provided
_fresh_builtins: Callable[[], dict[str, object]] = _not_provided
_import_module: Callable[[str], object] = _not_provided
_packages: dict[str, ModuleText] = {}
_compiled: dict[str, CodeType] = {}
_loaded: dict[str, object] = LOADED
_first_run: dict[str, GuestModule] = {}
_compiled_ahead: Callable[[str], memoryview | None] | None = None
_copies: dict[int, tuple[GuestModule, ModuleText]] = {}
"""Modules of `new_copy` that have not run, by identity."""


def provide(
    compile_text: Callable[[ModuleText], CodeType],
    evaluate: Callable[[CodeType, dict[str, object]], object],
    builtins: Callable[[], dict[str, object]],
) -> None:
    """Take what compiles a module, but does not mark its code, what runs it, and what gives it builtins.

    `namespace` calls it when it is imported.
    """
    global _compile, _evaluate, _fresh_builtins
    _compile, _evaluate, _fresh_builtins = compile_text, evaluate, builtins


def provide_import(import_module: Callable[[str], object]) -> None:
    """Take what imports a module, for `call`; `namespace` calls it too."""
    global _import_module  # noqa: PLW0603 - as `provide` does
    _import_module = import_module


def add(modules: Mapping[str, ModuleText]) -> None:
    """Make the modules of packages importable."""
    _packages.update(modules)


def exists(name: str) -> bool:
    """Return whether there is a guest module of a dotted name."""
    return _text(name) is not None


def names() -> Iterator[str]:
    """Give the names of all guest modules; those of packages last."""
    yield from _texts()
    yield from _packages


def defines(module: str, name: str) -> bool:
    """Return whether the source of a guest module binds a name at its top level, as far as its lines show."""
    text = _text(module)
    binds = rf"^(?:(?:class|def) {re.escape(name)}\b|{re.escape(name)} *=)"
    return text is not None and re.search(binds, text.text, re.MULTILINE) is not None


def forget() -> None:
    """Let each module run anew when it is next imported."""
    _loaded.clear()
    _first_run.clear()
    _copies.clear()


def name_program(variables: dict[str, object]) -> None:
    """Let the program of these variables be found as the module `__main__`."""
    _loaded["__main__"] = make_module(variables)


def preload(packages: Sequence[tuple[str, str]] = ()) -> None:
    """Read the texts, since a confined worker has no files: all but those of packages are few.

    `packages` are modules, each as the directory that it is in and its name.
    """
    _texts()
    for folder, name in packages:
        add({text.name: text for text in read_module(Path(folder), name)})
        package_data.read(Path(folder), name)


def compile_all() -> dict[str, bytes]:
    """Compile all modules but the tests of packages, for `take_compiled`, by their names.

    What cannot be compiled is left out: it is an error when it is imported.
    """
    compiled = {}
    for text in (*_texts().values(), *_packages.values()):
        if not is_test(text):
            with suppress(Exception):  # a parser may raise anything
                compiled[text.name] = marshal.dumps(_compile(text))
    return compiled


def take_compiled(find: Callable[[str], memoryview | None]) -> None:
    """Take what finds a module of those that `compile_all` gave, in a process that is trusted: it runs as it is."""
    global _compiled_ahead  # noqa: PLW0603 - as `provide` does
    _compiled_ahead = find


def is_test(text: ModuleText) -> bool:
    """Return whether a module belongs to the tests of its package, which programs do not import."""
    return not package_data.TESTS.isdisjoint(text.name.split("."))


def loaded() -> dict[str, object]:
    """Return the modules that were imported: what code sees as `sys.modules`."""
    return _loaded


def load(name: str, find_parent: Callable[[str], object]) -> object:
    """Return the module of a dotted name, run now if it never was; None where there is none.

    Its parents are imported first, by `find_parent`. Raises what the module raises, and `Refused`.
    """
    parent, _, last = name.rpartition(".")
    if name not in _loaded:
        text = _text(name)
        if text is None:
            return None
        package = find_parent(parent) if parent else None
        if name not in _loaded:  # the package may have imported it
            _run(text)
            made = _loaded.get(name)  # a module may have put anything in its place, or nothing
            if type(package) is GuestModule and name in _loaded:
                set_member(package, last, made)
            elif isinstance(package, Facade) and type(made) is GuestModule:
                facade.set_submodule(package, last, made)
    return _loaded.get(name)


def _run(text: ModuleText) -> None:
    variables = _variables(text)
    # Importers in a circle find what there is of it so far, as in CPython.
    _loaded[text.name] = module = make_module(variables)
    _first_run.setdefault(text.name, module)
    if text.name in _packages:  # a traceback has no lines of the library, as it has none of modules of the host
        GUEST.sources[text.filename] = text.text
    try:
        _evaluate(_code_of(text), variables)
    except BaseException:
        _loaded.pop(text.name, None)
        if _first_run.get(text.name) is module:
            del _first_run[text.name]
        raise


def new_copy(name: str) -> GuestModule | None:
    """Return a module of its own, yet to run, from the source of a guest module; None where there is none."""
    text = _text(name)
    if text is None:
        return None
    copy = make_module(_variables(text))
    _copies[id(copy)] = copy, text
    return copy


def run_copy(module: object) -> None:
    """Run a module that `new_copy` made, once, and no other. Raises what it raises, else TypeError."""
    copy, text = _copies.pop(id(module), (None, None))
    if copy is None or text is None:
        raise TypeError("this module has no source that could run here, or has run")
    GUEST.sources[text.filename] = text.text
    _evaluate(_code_of(text), variables_of(copy))


def _code_of(text: ModuleText) -> CodeType:
    code = _compiled.get(text.name)
    if code is None:
        ahead = None if _compiled_ahead is None else _compiled_ahead(text.name)
        plain = _compile(text) if ahead is None else cast("CodeType", marshal.loads(ahead))  # noqa: S302 - see `take_compiled`
        code = _compiled[text.name] = marked_code(plain, text.filename)
    return code


def _variables(text: ModuleText) -> dict[str, object]:
    place = f"{package_data.ROOT}/{text.place}" if text.name in _packages else text.place
    variables: dict[str, object] = {
        "__name__": text.name,
        "__doc__": None,
        "__package__": text.package,
        "__loader__": None,
        "__spec__": None,
        "__file__": place,
        # One table for all, as in CPython; that of the program, which holds no more than a fresh one.
        "__builtins__": GUEST.namespace.get("__builtins__") or _fresh_builtins(),
    }
    if text.name == "builtins":
        own = _fresh_builtins()
        variables |= {name: value for name, value in own.items() if not name.startswith(("_", PREFIX))}
    if text.is_package:
        variables["__path__"] = [place.rpartition("/")[0]]
    return variables


def _text(name: str) -> ModuleText | None:
    return _packages.get(name) or _texts().get(name)


@cache
def _texts() -> Mapping[str, ModuleText]:
    library = Path(sysconfig.get_path("stdlib"))
    own = Path(__file__).parent.parent / "guest_modules"  # full Python imports this module, and is to know no such path
    texts = (text for module in sorted(STDLIB) for text in _read_files(library, module))
    found = {text.name: replace(text, text=adapted_source(text.name, text.text)) for text in texts}
    for path in sorted(own.iterdir()):
        for text in _read_files(own, path.stem):
            found[text.name] = replace(text, text=with_taken(text.name, text.text, library))
    return found


def read_module(folder: Path, name: str) -> Iterator[ModuleText]:
    """Read a top-level module in `folder`, and of a package all that lies below. Raises `OSError`, `SyntaxError`."""
    yield from _read_files(folder, name)
    path = folder.joinpath(*name.split("."))
    for each in sorted({parent for file in path.rglob("*.py") for parent in file.parents}):
        if each.is_relative_to(path) and not (each / "__init__.py").is_file():  # a namespace package (PEP 420)
            place = each.relative_to(folder)
            yield ModuleText(".".join(place.parts), f"{place.as_posix()}/__init__.py", "", is_package=True)


def _read_files(folder: Path, name: str) -> Iterator[ModuleText]:
    path = folder.joinpath(*name.split("."))
    if not path.is_dir():
        if path.with_suffix(".py").is_file():
            yield _read(folder, path.with_suffix(".py"), name)
        return
    for file in sorted(path.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        if all(part.isidentifier() for part in parts):
            is_package = parts[-1] == "__init__"
            yield _read(folder, file, ".".join(parts[:-1] if is_package else parts))


def _read(folder: Path, file: Path, name: str) -> ModuleText:
    from importlib.util import decode_source

    return ModuleText(
        name, file.relative_to(folder).as_posix(), decode_source(file.read_bytes()), file.name == "__init__.py"
    )


def call(module: str, name: str, *arguments: object, **keywords: object) -> object:
    """Call a function of a guest module, whatever code put in its place. Raises what it raises."""
    if module not in _first_run:
        put = _loaded.pop(module, None)
        load(module, _import_module)
        if put is not None:
            _loaded[module] = put
    function: Any = getattr(_first_run[module], name)
    return function(*arguments, **keywords)


def is_loaded(name: str) -> bool:
    """Return whether a guest module was imported, whatever code put in its place."""
    return name in _first_run
