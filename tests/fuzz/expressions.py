"""Composes expressions of the dialect from what variables hold, facades give and parameters are called."""

from __future__ import annotations

import inspect
import random
import types
from collections.abc import Callable, Mapping

from sealab.sandbox.guest import ownership

from .words import (
    ASKED,
    CALLABLE_WORDS,
    CLASS_WORDS,
    FAVOURITES,
    LIKELY,
    MANY_WORDS,
    MAPPING_WORDS,
    NAME_WORDS,
    NUMBERS,
    SPECIAL_BASES,
    TEXTS,
    WORDS,
    members,
    mro_of,
    names_on,
    own_dict,
    parameters_of,
    raw_attribute,
)


class Expressions:
    """What there is to choose from in one session, and expressions made of it."""

    def __init__(self, rng: random.Random, namespace: Mapping[str, object], first: int = 0) -> None:
        self.rng = rng
        self.space = namespace
        self.count = first
        self.values, self.by_module = members()
        self.all_members = list(self.values)
        self.modules = list(self.by_module)
        self.focus = rng.choice(FAVOURITES) if rng.random() < 0.8 else rng.choice(self.modules)
        self.variables: list[str] = []
        self.pools: dict[str, list[str]] = {
            kind: [] for kind in ("class", "function", "call", "text", "many", "mapping", "other")
        }
        self.words: list[str] = []
        self.depth = 0

    # What there is to choose from

    def learn(self, name: str) -> None:
        """Note what the variable `name` holds now."""
        if name not in self.space:
            return
        value = self.space[name]
        if issubclass(type(value), BaseException) and self.chance(0.85):
            return
        if name in self.variables:
            for pool in self.pools.values():
                if name in pool:
                    pool.remove(name)
        else:
            self.variables.append(name)
        kind = type(value)
        if issubclass(kind, type):
            self.pools["class"].append(name)
        elif kind is types.FunctionType:
            self.pools["function"].append(name)
        elif issubclass(kind, str | bytes):
            self.pools["text"].append(name)
        elif issubclass(kind, dict) or kind is types.MappingProxyType:
            self.pools["mapping"].append(name)
        elif issubclass(kind, list | tuple | set | frozenset):
            self.pools["many"].append(name)
        elif any("__call__" in own_dict(cls) for cls in mro_of(kind)):
            self.pools["call"].append(name)
        elif kind not in {int, float, bool, type(None)}:
            self.pools["other"].append(name)
        if self.rng.random() < 0.3 and kind not in {int, float, bool, type(None), str}:
            found = [word for word in names_on(value) if not word.startswith("__")]
            self.words += self.rng.sample(found, min(4, len(found)))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def variable(self, *kinds: str) -> str | None:
        """Return a variable, of one of the kinds if any; a recent one more likely."""
        pool = [name for kind in kinds for name in self.pools[kind]] if kinds else self.variables
        if not pool:
            return None
        return pool[-1 - int(len(pool) * self.rng.random() ** 2)]

    def member(self, *, kind: Callable[[object], bool] | None = None) -> str:
        """Return the expression for something that a module gives."""
        for _ in range(30):
            roll = self.rng.random()
            module = (
                self.focus
                if roll < 0.45
                else self.rng.choice(FAVOURITES)
                if roll < 0.8
                else self.rng.choice(self.modules)
            )
            found = self.by_module[module]
            if found:
                expression = self.rng.choice(found)
                if kind is None or kind(self.values[expression]):
                    return expression
        return "types.SimpleNamespace"

    # Expressions

    def any(self) -> str:
        """Return an expression for anything."""
        self.depth += 1
        try:
            if self.depth > 3:
                return self.atom()
            roll = self.rng.random()
            if roll < 0.34:
                return self.variable() or self.atom()
            if roll < 0.46:
                return self.callable()
            if roll < 0.57:
                return self.cls()
            if roll < 0.68:
                return self.atom()
            if roll < 0.79:
                return self.rng.choice((self.many, self.mapping))()
            if roll < 0.88:
                return self.call(self.member(kind=callable))
            if roll < 0.94:
                return self.instance()
            return self.text()
        finally:
            self.depth -= 1

    def atom(self) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return "spy"
        if roll < 0.4:
            return "see"
        if roll < 0.7:
            return self.rng.choice(NUMBERS)
        return self.text()

    def word(self) -> str:
        return self.rng.choice(self.words) if self.words and self.chance(0.4) else self.rng.choice(WORDS)

    def text(self) -> str:
        roll = self.rng.random()
        if roll < 0.55:
            return repr(self.word())
        if roll < 0.75:
            return self.rng.choice(TEXTS)
        if roll < 0.85:
            return f"{self.pick('Lie', 'Two', 'Lie', 'str')}({self.word()!r})"
        return self.variable("text") or "'x'"

    def callable(self) -> str:
        roll = self.rng.random()
        if roll < 0.25:
            return "see"
        if roll < 0.5:
            return self.variable("function", "call", "class") or "see"
        if roll < 0.62:
            return f"lambda *a, **k: see({self.atom()}, a, k)"
        if roll < 0.72:
            return "spy"
        return self.member(kind=callable)

    def cls(self) -> str:
        roll = self.rng.random()
        if roll < 0.4:
            return self.variable("class") or "Spy"
        if roll < 0.55:
            return self.rng.choice(SPECIAL_BASES[:10])
        if roll < 0.8:
            return self.member(kind=lambda value: isinstance(value, type))
        if roll < 0.9:
            return self.pick(
                "type",
                "type(spy)",
                "types.FunctionType",
                "abc.ABCMeta",
                "enum.EnumMeta",
                "spy.__class__",
                "type(see)",
                "type(type)",
            )
        return f"{self.pick('typing.Type', 'typing.List', 'typing.Union', 'typing.Annotated', 'list', 'type', 'typing.Callable', 'typing.Generic', 'typing.ClassVar', 'dataclasses.InitVar')}[{self.pick('int', 'spy', 'int, see', 'Spy', self.text())}]"

    def many(self) -> str:
        known = self.variable("many")
        if known is not None and self.chance(0.3):
            return known
        items = ", ".join(self.any() for _ in range(self.rng.choice((0, 1, 1, 2, 3))))
        form = self.pick(
            "[{}]", "[{}]", "({},)" if items else "(){}", "iter([{}])", "set([{}])", "[({},)]" if items else "[{}]"
        )
        if self.chance(0.2):
            return f"[({self.text()}, {self.any()})]"
        if self.chance(0.1):
            return f"[({self.text()}, {self.any()}, {self.any()})]"
        return form.format(items)

    def mapping(self) -> str:
        known = self.variable("mapping")
        if known is not None and self.chance(0.4):
            return known
        roll = self.rng.random()
        if roll < 0.12:
            return self.pick("globals()", "locals()", "vars(spy)", "vars(Spy)", "dict(globals())")
        if roll < 0.3:
            return "{}"
        if roll < 0.42:
            return f"{{{self.pick('Lie', 'Two')}({self.word()!r}): {self.callable()}}}"
        pairs = ", ".join(
            f"{self.text() if self.chance(0.8) else self.any()}: {self.any()}"
            for _ in range(self.rng.choice((1, 1, 2)))
        )
        return f"{{{pairs}}}"

    def instance(self) -> str:
        made = self.variable("class")
        if made is None:
            return "spy"
        return self.pick(f"{made}()", f"{made}({self.atom()})", f"{made}.__new__({made})", f"object.__new__({made})")

    def of_type(self, parameter: inspect.Parameter) -> str:
        """Return an argument that the name and the annotation of a parameter ask for, most of the time."""
        word = parameter.name.lower().lstrip("_")
        if not self.chance(0.8):
            return self.any()
        if word in CALLABLE_WORDS:
            return self.callable()
        if word in CLASS_WORDS:
            return f"({self.cls()},)" if word.endswith("s") and word != "cls" and self.chance(0.7) else self.cls()
        if word in NAME_WORDS:
            return self.text()
        if word in MANY_WORDS:
            return self.many()
        if word in MAPPING_WORDS:
            return self.mapping()
        if isinstance(parameter.default, bool):
            return self.pick("True", "False")
        if isinstance(parameter.default, int):
            return self.rng.choice(NUMBERS)
        return self.any()

    def arguments(self, function: object, *, bound: bool = False) -> str:
        """Return the text of the arguments of one call, fit for `function` if its parameters are known."""
        found = None
        if callable(function) and not ownership.is_guest_class(type(function)):
            try:
                found = parameters_of(function)
            except TypeError:  # what cannot be hashed
                found = None
        if found is None or self.chance(0.1):
            return ", ".join(self.any() for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3))))
        texts: list[str] = []
        named = False
        for parameter in found[1:] if bound else found:
            if parameter.kind is parameter.VAR_POSITIONAL:
                if not named:
                    texts += [self.any() for _ in range(self.rng.choice((0, 1, 1, 2)))]
            elif parameter.kind is parameter.VAR_KEYWORD:
                if self.chance(0.15):
                    texts.append(f"**{{{self.text()}: {self.any()}}}")
                    named = True
            elif parameter.default is parameter.empty:
                text = self.of_type(parameter)
                if parameter.kind is parameter.KEYWORD_ONLY or named:
                    texts.append(f"{parameter.name}={text}")
                    named = True
                else:
                    texts.append(text)
            elif self.chance(0.33):
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    if named:
                        continue
                    texts.append(self.of_type(parameter))
                else:
                    texts.append(f"{parameter.name}={self.of_type(parameter)}")
                    named = True
        return ", ".join(texts)

    def call(self, expression: str) -> str:
        """Return a call of what a module gives."""
        return f"{expression}({self.arguments(self.values.get(expression))})"

    def attribute_of(self, value: object) -> str:
        """Return the name of an attribute that `value` has, or another."""
        roll = self.rng.random()
        if roll < 0.07:
            return self.word()
        if roll < 0.13:
            return self.rng.choice(ASKED)
        found = names_on(value)
        if roll < 0.33:
            likely = [name for name in LIKELY if name in found]
            if likely:
                return self.rng.choice(likely)
        public = [name for name in found if not name.startswith("__")]
        if public and self.chance(0.6):
            return self.rng.choice(public)
        return self.rng.choice(found) if found else "x"

    def arguments_of_attribute(self, value: object, name: str) -> str:
        """Return the text of the arguments for calling an attribute."""
        match name:
            case "__get__":
                return self.pick(f"{self.any()}, {self.cls()}", self.any(), f"{self.callable()}, {self.cls()}")
            case "__set__":
                return f"{self.any()}, {self.any()}"
            case "__set_name__":
                return f"{self.cls()}, {self.text()}"
            case "__mro_entries__":
                return f"({self.any()},)"
            case "__deepcopy__":
                return self.mapping()
            case "__init__" if isinstance(value, property):
                return ", ".join(self.callable() for _ in range(self.rng.choice((0, 1, 2))))
            case "__instancecheck__" | "__subclasscheck__" | "__subclasshook__" | "__prepare__":
                return self.pick(self.cls(), self.any())
        raw = raw_attribute(value, name)
        if isinstance(value, type):
            given = self.arguments(raw)
            if self.chance(0.5) and given.count(",") < 1:
                return f"{self.instance()}, {given}" if given else self.any()
            return given
        return self.arguments(raw, bound=type(raw) is types.FunctionType)
