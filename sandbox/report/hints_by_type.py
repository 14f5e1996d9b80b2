"""A second sentence for the errors that agents meet most: what to write instead.

Security boundary: computed in the child from hostile objects, so names, keys and lengths are read raw from classes,
dicts and frames, bounded, and no guest code is called. What a rule says stands beside what it recognises.
"""

from __future__ import annotations

import ast
import errno
import re
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Final, cast

from ..errors import Refused
from ..guest.facade import Facade, title
from ..guest.guest import GUEST
from ..guest.known_modules import KNOWN_MODULES
from ..guest.real_classes import derives, mro_of
from ..guest.spelling import demangle
from . import answer_shapes
from .disclosure import bounded, plain_names
from .hints_by_message import by_message, sentence
from .lookups import (
    Scene,
    columns_of_tables,
    is_text,
    looped_dict,
    missed_by,
    names_in_scope,
    nearest,
    public_names,
    string_keys,
    taken_of_answer,
)
from .substitutes import OF_BUILTINS, instead_of, is_elsewhere
from .unawaited import AWAIT, await_at

HINT_CHARS_MAX = 400

_LINES: Final = "text.splitlines() or io.StringIO(text)"
_NO_FOLDER: Final = re.compile(r"non-existent directory: '(.+)'$")
"""What pandas says where a file is to be written into a folder that is not there."""
_KEYS_SHOWN = 8
_KEY_CHARS_MAX = 40
_SURE = 0.8
_LIKELY = 0.6
_MISSED_IMPORT: Final = re.compile(r"^cannot import name '(\w+|\*)'")

_name_of_name_error = NameError.__dict__["name"].__get__
_name_of_attribute_error = AttributeError.__dict__["name"].__get__
_object_of_attribute_error = AttributeError.__dict__["obj"].__get__
_WRITING_A_FILE: Final = re.compile(r"""['"][rbt]*[wax][bt+]*['"]|\.(?:write_|to_|save|touch|mkdir)|copy|move|rename""")
"""What a line has that writes a file, whose folder may be missing."""
_OF_WORKSPACE: Final = "list_files() shows what is in the workspace."
_name_of_file = OSError.__dict__["filename"].__get__
_name_of_import_error = ImportError.__dict__["name"].__get__
_args_of = BaseException.__dict__["args"].__get__


def hint_for(error: BaseException, message: str, scene: Scene) -> str | None:
    """Return what to do about an error, or None where there is nothing worth saying; never raises."""
    try:
        hint = _of_csv(error, scene) or _of_dict(error, scene) or by_message(message) or _by_type(error, message, scene)
        hint = await_at(scene) if hint == AWAIT else hint
        returned = _of_answers(error, message, scene)
        hint = " ".join(filter(None, (hint, returned))) or None
    except BaseException:  # noqa: BLE001 - a hint is worth no failed report, whatever the guest has made of its objects
        return None
    return None if hint is None else plain_names(hint, HINT_CHARS_MAX).encode("utf-8", "backslashreplace").decode()


def _of_csv(error: BaseException, scene: Scene) -> str | None:
    """Return what to write where a reader of `csv` was given a text, whose characters it takes for lines."""
    failed = any(derives(type(error), kind) for kind in (KeyError, IndexError, ValueError, TypeError))
    if scene.frame is None or "csv" not in scene.source or not failed:
        return None
    for node in scene.nodes():
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[text, *_]):
                of_csv = name == "DictReader" or (name == "reader" and "csv" in ast.unparse(node.func))
                if of_csv and is_text(text, scene.frame):
                    return f"{name} was given a text, each character of which it takes for a line: pass {_LINES}."
    return None


def _of_dict(error: BaseException, scene: Scene) -> str | None:
    """Return where the items are, of a dict that was taken for a list of them."""
    if scene.frame is None or scene.line is None:
        return None
    if any(derives(type(error), kind) for kind in (KeyError, TypeError)):
        taken = taken_of_answer(scene)
        if taken is not None:
            return f"{taken[0]} returns a dict: what it found is {taken[0]}(…)[{taken[1]!r}]."
    of_text = derives(type(error), AttributeError) and type(_object_of_attribute_error(error)) is str
    if not of_text and not derives(type(error), TypeError):
        return None
    looped = looped_dict(scene)
    if looped is None:
        return None
    text, *lists = (bounded(each, _KEY_CHARS_MAX) for each in looped)
    better = f"{text}[{lists[0]!r}]" if len(lists) == 1 else f"{text}.items() or {text}.values()"
    return f"A loop over a dict gives its keys: loop over {better}."


def _of_answers(error: BaseException, message: str, scene: Scene) -> str | None:
    """Return what the tools returned that an error may be about; None where it is about an object of the code's own."""
    if not GUEST.answers:
        return None
    owner: object = None
    if derives(type(error), AttributeError):
        owner = _object_of_attribute_error(error)
    elif derives(type(error), KeyError):
        missed = missed_by(scene, dict)
        owner = None if missed is None else missed.container
    kind = type(owner)
    # Objects in answers are of a class derived from dict; a plain dict is the code's own.
    may_be_answered = kind in {list, str, int, float, bool} or (kind is not dict and derives(kind, dict))
    if owner is not None and not may_be_answered:
        return None
    return answer_shapes.described(error, message, scene, GUEST.answers)


def hint_for_refusal(refusal: Refused) -> str | None:
    """Return what to do about a refusal: what it says itself, else what there is instead of its module."""
    if refusal.instead is not None:
        wider = refusal.type != "ValueError" and (refusal.module is None or is_elsewhere(refusal.module))
        return sentence(refusal.instead) + (_or_ask() if wider else "")
    if refusal.module is None:
        return None
    if refusal.module in KNOWN_MODULES.importable() or KNOWN_MODULES.host_module(refusal.module) is not None:
        missed = _MISSED_IMPORT.search(refusal.message)
        return None if missed is None else _of_module(refusal.module, missed[1])
    return _of_missing_module(refusal.module)


def _of_module(module: str, name: str, names: Iterable[str] = ()) -> str | None:
    """Return what to do about a name that an available module does not have."""
    if name == "*":
        return "Write out the names that you want."
    if _is_of_the_class_of_that_name(module, name):
        return f"{module} is the module here: write {module}.{module}.{name}, or `from {module} import {module}` first."
    names = names or KNOWN_MODULES.host_names(module) or KNOWN_MODULES.public_names(module)
    close = nearest(name, names, _SURE)
    instead = None if close else instead_of(f"{module}.{name}")
    if instead is not None:
        return sentence(instead)
    close = close or nearest(name, names, _LIKELY)
    return None if close is None else f"Did you mean {close!r}?"


def _is_of_the_class_of_that_name(module: str, name: str) -> bool:
    """Return whether a module has a class of its own name that has the attribute, as in `datetime.now()`."""
    inner = vars(sys.modules.get(module, sys)).get(module)
    return type(inner) is type and any(name in vars(base) for base in mro_of(inner))


def _of_missing_module(module: str) -> str:
    instead = None if GUEST.full_python else instead_of(module)
    if instead is not None:
        return sentence(instead) + (_or_ask() if is_elsewhere(module) else "")
    close = nearest(module, sys.stdlib_module_names if GUEST.full_python else KNOWN_MODULES.importable(), _SURE)
    if close is not None:
        return f"Did you mean {close!r}?"
    return f"Do without the module, which is not installed here.{_or_ask()}"


def _or_ask() -> str:
    """Return how to get to full Python, or to more of it than there is here: only what the operator allows is named."""
    return f" Or ask for {_asked(GUEST.wider)}." if GUEST.wider else ""


def _asked(isolations: Iterable[str]) -> str:
    return " or ".join(f'isolation="{name}"' for name in isolations)


# What needs a look at the exception or at where it happened.


def _by_type(error: BaseException, message: str, scene: Scene) -> str | None:
    for base in mro_of(type(error)):
        rule = _RULES.get(id(base))
        if rule is not None:
            return rule if isinstance(rule, str) else rule(error, message, scene)
    return None


_ALIASES: Final = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "tf": "tensorflow",
    "dt": "datetime",
    "ET": "xml.etree.ElementTree",
}
_MODULES_FIRST: Final = (
    *("collections", "math", "datetime", "json", "re", "itertools", "functools", "statistics", "random", "dataclasses"),
    *("typing", "enum", "decimal", "fractions", "string", "time", "copy", "pprint", "textwrap", "asyncio", "operator"),
    *("heapq", "bisect", "uuid", "pathlib"),
)


def _of_name_error(error: BaseException, _message: str, scene: Scene) -> str | None:
    name = _name_of_name_error(error)
    if type(name) is not str:
        return None
    name = demangle(name)
    if name in OF_BUILTINS:
        return sentence(OF_BUILTINS[name])
    known = list(names_in_scope(scene.frame))
    close = nearest(name, known, _SURE)
    if close is None:
        hint = _of_unknown_name(name, scene) or _of_skill(name, scene)
        if hint is not None:
            return hint
        close = nearest(name, known, _LIKELY)
    return None if close is None else f"Did you mean {close!r}?"


def _of_unknown_name(name: str, scene: Scene) -> str | None:
    """Return what to import for a name that nothing in scope is like."""
    module = _ALIASES.get(name, name)
    known = sys.stdlib_module_names | set(_ALIASES.values()) if GUEST.full_python else KNOWN_MODULES.importable()
    if module in known:
        return f"Write `import {module}{'' if module == name else f' as {name}'}` first."
    if not GUEST.full_python and f"{name}." in scene.text() and instead_of(module) is not None:
        return f"The module {module} is not available here. {_of_missing_module(module)}"
    home = next((first for first in _MODULES_FIRST if _has(first, name)), None)
    return None if home is None else f"Write `from {home} import {name}` first."


def _of_skill(name: str, scene: Scene) -> str | None:
    """Return how to call a skill that the code called by its bare name. The host is asked only where a call stands."""
    if f"{name}(" not in scene.text() or name not in dir(KNOWN_MODULES.host_module("skills")):
        return None
    return f"It is a skill: write skills.{name}(…), or `from skills import {name}` first."


def _of_server(module: object, name: str, scene: Scene) -> str | None:
    """Return how to call a tool whose server has a module's name. The host is asked only of an awaited call."""
    line = scene.text()
    if type(module) is not str or "await" not in line or f"{module}.{name}(" not in line:
        return None
    if module not in cast("list[str]", GUEST.call_host("named_servers", {"names": {module: [name]}})):
        return None
    return f"{module} is the imported module here: write tools.{module}.{name}(…) for the server of that name."


def _has(module: str, name: str) -> bool:
    if not GUEST.full_python:
        return KNOWN_MODULES.defines(module, name)
    loaded = sys.modules.get(module)
    return loaded is not None and name in vars(loaded)


def _of_unbound_local(error: BaseException, _message: str, _scene: Scene) -> str | None:
    name = _name_of_name_error(error)
    own = f"{demangle(name)!r}" if type(name) is str else "The name"
    return (
        f"{own} is assigned in this function, so it is the function's own: give it a value first, or declare it "
        "`global` or `nonlocal`."
    )


def _of_attribute_error(error: BaseException, _message: str, scene: Scene) -> str | None:
    name, owner = _name_of_attribute_error(error), _object_of_attribute_error(error)
    if type(name) is not str or owner is None:
        return None
    name = demangle(name)
    if derives(type(owner), dict):
        keys = string_keys(owner)
        if name in keys:
            return f"It is a dict: write [{name!r}]."
        close = nearest(name, keys, _SURE)
        if close is not None:
            return f"It is a dict: did you mean [{close!r}]?"
    if (described := KNOWN_MODULES.described(owner)) is not None:
        return _of_module(described[0], name, described[1])
    if derives(type(owner), Facade):
        module = title(cast("Facade", owner))
        return _of_server(module, name, scene) or _of_module(module, name)
    if type(owner) is ModuleType and (hint := _of_server(vars(owner).get("__name__"), name, scene)) is not None:
        return hint
    close = nearest(name, public_names(owner), _LIKELY)
    if close is None:
        return columns_of_tables(name, scene)
    return f"Did you mean {close!r}?"


def _of_key_error(error: BaseException, _message: str, scene: Scene) -> str | None:
    missed = missed_by(scene, dict)
    arguments = _args_of(error)
    wanted = arguments[0] if len(arguments) == 1 else None
    if missed is None:
        return columns_of_tables(wanted, scene)
    keys = string_keys(missed.container)
    if "dry_run" in keys:
        return (
            "This call was not made, in a dry run: what stands for its answer has not all that the answer would have."
        )
    if type(wanted) is str:
        close = nearest(wanted, keys, _LIKELY)
        if close is not None:
            return f"Did you mean {bounded(close, _KEY_CHARS_MAX)!r}?"
        as_number = wanted.isdigit() and any(type(key) is int for key in missed.sample())
        if as_number:
            return "The keys are integers: convert with int(…)."
    if type(wanted) is int and str(wanted) in keys:
        return "The keys are strings: convert with str(…)."
    if missed.length == 0:
        return "The dict is empty."
    if not keys:
        return None
    shown = ", ".join(repr(bounded(key, _KEY_CHARS_MAX)) for key in keys[:_KEYS_SHOWN])
    more = missed.length - min(len(keys), _KEYS_SHOWN)
    return f"The keys are {shown}{f' and {more} more' if more else ''}. Write .get(key) where a key may be missing."


def _of_index_error(_error: BaseException, _message: str, scene: Scene) -> str | None:
    missed = missed_by(scene, list, tuple, str)
    if missed is None:
        return None
    kind = missed.kind.__name__
    if missed.length == 0:
        return f"The {kind} is empty: test it first."
    items = "character" if missed.kind is str else "item"
    return f"The {kind} has {missed.length} {items}{'s' * (missed.length > 1)}: its last index is {missed.length - 1}."


def _of_import_error(error: BaseException, _message: str, _scene: Scene) -> str | None:
    module = _name_of_import_error(error)
    return _of_missing_module(module) if type(module) is str else None


def _of_file_not_found(error: BaseException, _message: str, scene: Scene) -> str | None:
    if GUEST.full_python and not GUEST.writes_workspace:
        return "The workspace can be read at /workspace, and list_files() shows what is in it; write to /tmp."
    path = _name_of_file(error)
    folder = path.rpartition("/")[0] if type(path) is str else ""
    if f"{folder}/".startswith("/mnt/data/"):
        return f"/mnt/data is the workspace here, the current directory: leave `/mnt/data/` out. {_OF_WORKSPACE}"
    if folder.startswith("~"):
        return f"`~` is no folder here: leave it out. {_OF_WORKSPACE}"
    if folder and _WRITING_A_FILE.search(scene.text()) and _may_be_made(folder):
        return f"The folder may be missing: {_making(folder)}. {_OF_WORKSPACE}"
    if GUEST.writes_workspace:
        return (
            "The workspace is the current directory, and list_files() shows what is in it; other files cannot be seen."
        )
    return _OF_WORKSPACE


def _may_be_made(folder: str) -> bool:
    return not folder.startswith("/") or folder.startswith("/workspace") or not GUEST.full_python


def _making(folder: str) -> str:
    return f"`from pathlib import Path; Path({folder!r}).mkdir(parents=True, exist_ok=True)` makes it"


def _of_os_error(error: BaseException, message: str, _scene: Scene) -> str | None:
    if GUEST.writes_workspace and (missing := _NO_FOLDER.search(message)) is not None:
        if _may_be_made(missing[1]):
            return f"{sentence(_making(missing[1]))}"
        return "The workspace is the current directory: write to a name in it, such as 'out/table.csv'."
    arguments = _args_of(error)
    number = arguments[0] if GUEST.full_python and arguments else None
    if type(number) is not int:
        return None
    return _OF_NUMBER.get(number)


_OF_NUMBER: Final = {
    errno.EROFS: "Write to /tmp, where there is a little room, and bring a file home with keep(path, name).",
    errno.EACCES: "Only the workspace at /workspace, /tmp and Python's own files can be seen.",
    errno.EPERM: "The system does not let code here do this: no other processes, no network.",
    errno.ENOSPC: "The scratch space at /tmp is full: delete what is done with, or write_file() to the workspace.",
    errno.EFBIG: "A run may have as much on disk as SCRATCH_MB says: write less, or in a form that is packed.",
    errno.EXDEV: "A folder that was there before the run can be copied, not renamed: use shutil.move().",
}


def _of_syntax_error(_error: BaseException, message: str, scene: Scene) -> str | None:
    if any(line.lstrip().startswith("```") for line in scene.source.split("\n")):
        return "Leave out the Markdown fences (```): only the code itself is run."
    if scene.text().lstrip().startswith(("!", "%")):
        return "Shell and notebook commands do not exist here: write Python."
    if "'return' outside function" in message:
        return "At the top level the value of the last line is the result; or set `result`."
    if "outside async function" in message:
        return "Write `async def` for the function around it, and `await` where it is called."
    if "unexpected indent" in message:
        return "Begin the lines outside functions and blocks in the first column."
    if "invalid character" in message or "invalid non-printable character" in message:
        return "Write plain ASCII quotes, dashes and spaces in code."
    return None


_Rule = Callable[[BaseException, str, Scene], str | None]

_BY_CLASS: dict[type[BaseException], _Rule | str] = {
    UnboundLocalError: _of_unbound_local,
    NameError: _of_name_error,
    AttributeError: _of_attribute_error,
    KeyError: _of_key_error,
    IndexError: _of_index_error,
    ImportError: _of_import_error,
    RecursionError: "Look for the case that ends the recursion; where it is truly deep, write a loop with a list as "
    "its stack.",
    MemoryError: "Work in smaller pieces, with generators for instance, or ask for more with memory_mb.",
    FileNotFoundError: _of_file_not_found,
    OSError: _of_os_error,
    SyntaxError: _of_syntax_error,
}

# By identity, since a metaclass may say what it likes of equality.
_RULES: dict[int, _Rule | str] = {id(cls): rule for cls, rule in _BY_CLASS.items()}
