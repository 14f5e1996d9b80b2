"""The helpers that reach stored skills: `skills.<name>(…)`, `from skills import <name>`, and saving and listing.

Each skill is loaded once, by a host call, into a namespace of its own under the same rules as the code that uses it.
Which version a name means is settled when a run first uses it, and stays so to its end. In a session the host is asked
anew in each run, so that what runs is what was judged for that run; a skill keeps its variables as long as its code and
that of the skills that its top level uses stay the same.

    skills.slugify("A b")            the newest version
    skills.slugify.v2("A b")         version 2; so does skills["slugify@2"] and load_skill("slugify", version=2)("A b")
"""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from inspect import CO_COROUTINE
from opcode import opmap
from types import CoroutineType, FrameType
from typing import Any, Final, TypeAlias, TypeVar, cast

from ..guest.dynamic import Dynamic, dynamic
from ..guest.facade import Facade
from ..guest.guest import GUEST
from ..job import Json
from .answers import answer_of, awaitable
from .converting import converted

T = TypeVar("T")
_frame: Final = sys._getframe
_CACHE, _GET_AWAITABLE = opmap["CACHE"], opmap["GET_AWAITABLE"]
_PIN: Final = re.compile(r"v([1-9][0-9]{0,8})")


_calling: ContextVar[tuple[str, ...]] = ContextVar("skills that are being called", default=())
"""Their names, outermost first."""
_set_calling: Final = _calling.set
_reset_calling: Final = _calling.reset
"""Held here, since a sealed process has no method that sets a variable of the host."""


Version: TypeAlias = tuple[str, int, str]
"""A version of a skill: its name, its number, and the hash of what it holds."""


@dataclass(slots=True)
class _SkillModule:
    """The code of a version as it ran here: its variables, and the skills that its top level used, by their keys.

    `run` is the last one in which that is what the host gives.
    """

    version: Version
    run: int
    variables: dict[str, object] = field(default_factory=dict)
    uses: dict[str, _SkillModule] = field(default_factory=dict)


@dataclass(slots=True)
class _Loaded:
    """What this process holds of skills: the modules for good, and for one run what keys mean and what is called.

    `functions` are those of the versions that the run uses, by name and number.
    """

    run: int = -1
    meanings: dict[str, Skill] = field(default_factory=dict)
    functions: dict[tuple[str, int], Callable[..., object]] = field(default_factory=dict)
    modules: dict[tuple[str, int], _SkillModule] = field(default_factory=dict)
    signatures: dict[tuple[str, int], str] = field(default_factory=dict)
    loading: list[_SkillModule] = field(default_factory=list)


_LOADED = _Loaded()


class Skill:
    """One version of a skill, as code holds it: callable, and asked for another version by `.v2`."""

    __slots__ = ("_name", "_version")
    __module__ = "builtins"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("skills are read-only here; save_skill makes a new version")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("skills are read-only here; save_skill makes a new version")

    def __call__(self, *positional: object, **named: object) -> object:
        """Call its function. The answer of an `async def` is to be awaited, that of another one may be."""
        return _as_awaited(_frame(1), _tracked(_name_of(self), partial(_called, self, positional, named)))

    def __getattr__(self, name: str) -> object:
        version = pinned(name)
        if version is not None:
            return _skill(_name_of(self), version)
        attributes = {"__name__": _name_of(self), "__doc__": getattr(_function_of(self), "__doc__", None)}
        attributes |= {"name": _name_of(self), "version": _version_of(self)}
        if name in attributes:
            return attributes[name]
        own = _module_of(self).variables
        if isinstance(scripts := own.get("SCRIPTS"), dict) and (name in scripts or name == "folder") and name in own:
            return own[name]
        has = f"; its scripts are {', '.join(scripts)}" if isinstance(scripts, dict) and scripts else ""
        raise AttributeError(f"the skill {_name_of(self)!r} has no attribute {name!r}; call it, or pin it as .v1{has}")

    def __repr__(self) -> str:
        return f"<skill {_name_of(self)} v{_version_of(self)}>"

    def __copy__(self) -> Skill:
        return self

    def __deepcopy__(self, _memo: object) -> Skill:
        return self

    def __reduce_ex__(self, _protocol: object) -> str:
        raise TypeError("a skill cannot be pickled")


_name_of = cast("Callable[[Skill], str]", Skill.__dict__["_name"].__get__)
_version_of = cast("Callable[[Skill], int]", Skill.__dict__["_version"].__get__)


def _function_of(skill: Skill) -> Callable[..., object]:
    """Return the function of a skill, as this run has it: another run may have been given another one."""
    _begin_run()
    key = _name_of(skill), _version_of(skill)
    if key not in _LOADED.functions:
        _skill(*key)
    return _LOADED.functions[key]


def name_and_version(skill: Skill) -> tuple[str, str]:
    """Return which skill it is, its version as code pins it: `("slugify", "v2")`."""
    return _name_of(skill), f"v{_version_of(skill)}"


def pinned(name: str) -> int | None:
    """Return the version that an attribute of a skill asks for, such as `v2`; None where it asks for none."""
    match = _PIN.fullmatch(name)
    return None if match is None else int(match[1])


class LoadedSkill(dict[str, object]):
    """What `load_skill` answers: a dict that can also be called, and run by `exec`."""

    __slots__ = ()

    def __call__(self, *positional: object, **named: object) -> object:
        """Call that version of the skill."""
        skill = _skill(str(dict.__getitem__(self, "name")), cast("int", dict.__getitem__(self, "version")))
        return _as_awaited(_frame(1), skill(*positional, **named))


def source_of(given: object) -> object:
    """Return what `exec` and `compile` are to take: of a loaded skill its code, else what was given."""
    return dict.get(given, "code") if type(given) is LoadedSkill else given


def save_skill(  # noqa: PLR0917 - the contract's own parameters
    name: str,
    code: str | Callable[..., object] = "",
    description: str = "",
    tests: str = "",
    tags: Sequence[str] = (),
    from_run: str | None = None,
    record: bool = False,
    force: bool = False,
    files: Mapping[str, str] | None = None,
) -> object:
    """Save code as a skill when its tests pass: `{name, version, signature, description, warnings}`.

    What is left empty the last version had. `files` are those that the tests find, `force` saves though old tests fail.
    Raises ValueError with what is wrong with it.
    """
    if not isinstance(code, str):
        raise TypeError(f"save_skill() takes the code as text, not {type(code).__name__}. Give its source.")
    arguments: dict[str, Json] = {"name": name, "code": code, "description": description, "tests": tests}
    arguments |= {"tags": list(tags), "from_run": from_run, "record": bool(record), "force": bool(force)}
    if files:
        arguments["files"] = dict(files)
    saved = GUEST.call_host("save_skill", arguments)
    _LOADED.meanings.pop(name, None)
    return answer_of(saved)


def load_skill(name: str, version: int | None = None) -> object:
    """Return `{name, version, code, description, signature, parameters, metadata}`; call it to run that version."""
    arguments: dict[str, Json] = {"name": name, "version": version}
    return LoadedSkill(cast("dict[str, object]", GUEST.call_host("load_skill", arguments)))


def list_skills(query: str | None = None, tag: str | None = None, limit: int = 50, archived: bool = False) -> object:
    """Return `{count, skills: [{name, version, description, signature, tags, runs, last_run}]}`."""
    asked: dict[str, Json] = {"query": query, "tag": tag, "limit": limit}
    return awaitable(GUEST.call_host("list_skills", {**asked, "archived": True} if archived else asked))


def call_skill(name: str, version: int, arguments: Mapping[str, object]) -> object:
    """Call a skill with arguments that are JSON, each made what its parameter's hint says."""
    skill = _skill(name, version)
    function = _function_of(skill)
    positional, named = converted(function, arguments)
    return _tracked(name, partial(function, *positional, **named))


def skill_text(key: str, path: str) -> str:
    """Return a file of the folder of a skill, by `name@version` and its path there, marked as what others wrote."""
    name, _, version = key.partition("@")
    files = cast(
        "Mapping[str, str]", GUEST.call_host("skill_files", {"name": name, "version": int(version), "path": path})
    )
    text = b64decode(files[path]).decode(errors="replace")
    return f"[{path} of the skill {name}, which others wrote: no word of the user.]\n\n{text}"


def skill_folder(key: str) -> str:
    """Return the folder with all files of a skill. Raises PermissionError where full Python does not run."""
    if GUEST.folder_of_skill is None:
        raise PermissionError(f"The folder of the skill {key.partition('@')[0]} is there in full Python. {_wider()}")
    return GUEST.folder_of_skill(key)


def skill_script(key: str, path: str, words: Sequence[str]) -> str:
    """Run a script of a skill's folder with words, and return what it prints. Raises PermissionError as above."""
    if GUEST.run_script is None:
        raise PermissionError(f"{path} of the skill {key.partition('@')[0]} runs in full Python. {_wider()}")
    return GUEST.run_script(key, path, words)


def _wider() -> str:
    if GUEST.wider:
        return f'Ask for isolation="{GUEST.wider[0]}".'
    return "It is not offered here: have the operator add process to ALLOWED_ISOLATION, or run `sealab data setup`."


def helpers() -> dict[str, object]:
    """Give every helper of this module by the name under which code finds it."""
    return {
        "skills": _skills(),
        "save_skill": save_skill,
        "load_skill": load_skill,
        "list_skills": list_skills,
        "call_skill": call_skill,
        "skill_text": skill_text,
        "skill_folder": skill_folder,
        "skill_script": skill_script,
    }


def modules() -> dict[str, Facade]:
    """Give what can be imported of this module."""
    return {"skills": _skills()}


def variables_of(name: str) -> dict[str, object]:
    """Return the global variables of a skill's code, for its tests, with its function under the skill's own name."""
    skill = _skill(name)
    own = _module_of(skill).variables
    shown = {key: value for key, value in own.items() if not key.startswith("__") and key.isidentifier()}
    return {**shown, name: _function_of(skill)}


def _skills() -> Dynamic:
    return dynamic("skills", _skill, _names, item=_item)


def _names() -> Iterable[str]:
    return cast("Iterable[str]", GUEST.call_host("skill_names", {}))


def _item(key: str) -> Skill:
    name, _, version = key.partition("@")
    try:
        return _skill(name, int(version) if version.isdecimal() else None)
    except AttributeError as error:
        raise LookupError(str(error)) from None


def _begin_run() -> None:
    if GUEST.run != _LOADED.run:
        _LOADED.run = GUEST.run
        _LOADED.meanings.clear()
        _LOADED.functions.clear()


def _skill(name: str, version: int | None = None) -> Skill:
    """Return a skill, loaded. Raises `AttributeError` where there is none, and what its top level raises."""
    _begin_run()
    key = name if version is None else f"{name}@{version}"
    skill = _LOADED.meanings.get(key)
    if skill is None:
        try:
            answer = cast("Mapping[str, Any]", GUEST.call_host("use_skill", {"name": name, "version": version}))
        except LookupError as error:
            asking = [*_calling.get(), *(each.version[0] for each in _LOADED.loading)]
            needed = f" The skill {asking[-1]!r} needs it." if asking else ""
            raise AttributeError(f"{error.args[0]}{needed}") from None
        skill = _LOADED.meanings[key] = _loaded(answer, pinned=version is not None)
    if _LOADED.loading:
        _LOADED.loading[-1].uses[key] = _module_of(skill)
    return skill


def _module_of(skill: Skill) -> _SkillModule:
    return _LOADED.modules[_name_of(skill), _version_of(skill)]


def _loaded(answer: Mapping[str, Any], *, pinned: bool) -> Skill:
    name, number, entry = str(answer["name"]), int(answer["version"]), str(answer["entry"])
    version = name, number, str(answer.get("hash", ""))
    _LOADED.signatures[name, number] = str(answer.get("signature", ""))
    module = _LOADED.modules.get((name, number))
    if module is None or module.version != version or not _is_meant(module):
        module = _LOADED.modules[name, number] = _run_code(version, str(answer["code"]), pinned=pinned)
        if answer.get("folder"):
            module.variables["SKILL"] = f"{name}@{number}"
    function = module.variables.get(entry)
    if not callable(function):
        raise TypeError(f"the skill {name!r} defines no function {entry}. Save it anew with one.")
    _LOADED.functions[name, number] = function
    skill = object.__new__(Skill)
    for slot, value in (("_name", name), ("_version", number)):
        object.__setattr__(skill, slot, value)  # slots that guest source cannot spell
    return skill


def _is_meant(module: _SkillModule) -> bool:
    """Return whether the skills that the top level of a module used are the same in this run."""
    if module.run == _LOADED.run:
        return True
    with suppress(LookupError):
        if all(_module_of(_item(key)) is used for key, used in list(module.uses.items())):
            module.run = _LOADED.run
            return True
    return False


def _run_code(version: Version, code: str, *, pinned: bool) -> _SkillModule:
    name, number, _ = version
    loading = [each.version[0] for each in _LOADED.loading]
    if name in loading:
        circle = " → ".join([*loading[loading.index(name) :], name])
        raise RuntimeError(f"The skills {circle} load one another in a circle. Import one of them where it is used.")
    filename = f"<skill {name} v{number}>" if pinned else f"<skill {name}>"
    module = _SkillModule(version, _LOADED.run)
    _LOADED.loading.append(module)
    try:
        GUEST.sources[filename] = code
        module.variables = GUEST.define(code, filename, f"skills.{name}")
    finally:
        _LOADED.loading.pop()
    return module


def _called(skill: Skill, positional: Sequence[object], named: Mapping[str, object]) -> object:
    """Call the function of a skill. Raises TypeError with its signature where the arguments are not those it takes."""
    try:
        return _function_of(skill)(*positional, **named)
    except TypeError as error:
        within = error.__traceback__
        signature = _LOADED.signatures.get((_name_of(skill), _version_of(skill)))
        if not signature or within is None or within.tb_next is not None:
            raise  # it comes from within the function
        raise TypeError(f"{error}. The skill's signature: {signature}") from None


def _tracked(name: str, call: Callable[[], object]) -> object:
    """Call a skill, remembering for everything it calls that it is being called."""
    stack = _calling.get()
    if name in stack[:-1]:
        circle = " → ".join([*stack[stack.index(name) :], name])
        raise RuntimeError(f"The skills {circle} call one another in a circle. Let one of them do without the next.")
    within = stack if stack[-1:] == (name,) else (*stack, name)
    token = _set_calling(within)
    try:
        answer = call()
    finally:
        _reset_calling(token)
    if type(answer) is CoroutineType:
        tracked = cast("CoroutineType[Any, Any, object]", _awaited(within, answer))
        tracked.__name__ = tracked.__qualname__ = name  # what Python names when it was never awaited
        return tracked
    return answer


def _as_awaited(caller: FrameType, answer: object) -> object:
    """Return an answer, as one to await where the caller awaits it by its next instruction and it is none."""
    code = caller.f_code
    if not code.co_flags & CO_COROUTINE or hasattr(type(answer), "__await__"):
        return answer
    steps, place = code.co_code, caller.f_lasti + 2
    while steps[place] == _CACHE:
        place += 2
    return _given(answer) if steps[place] == _GET_AWAITABLE else answer


async def _given(answer: T) -> T:
    return answer


async def _awaited(stack: tuple[str, ...], coroutine: Coroutine[Any, Any, T]) -> T:
    token = _set_calling(stack)
    try:
        return await coroutine
    finally:
        _reset_calling(token)
