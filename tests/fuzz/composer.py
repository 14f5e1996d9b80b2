"""Composes programs of the dialect, one statement after another, with an eye on what the variables hold by then.

Every statement is source text that stands for itself, so a find is a list of texts. What stands where is chosen by
what a parameter's name asks for and by what variables, facades and earlier results there are to choose from.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

from sealab.sandbox.dialect import names
from sealab.sandbox.guest import ownership

from .expressions import Expressions
from .words import (
    BINARY,
    DECORATORS,
    DEFINABLE,
    FUNCTION_DECORATORS,
    LIKELY,
    MUTATIONS,
    SPECIAL_BASES,
    SUNDERS,
    UNARY,
    containers,
    generics,
    names_on,
    raw_attribute,
)


class Composer(Expressions):
    """One session's author: `statement` gives the next text, `learn` tells it what came of that."""

    # Statements

    def statement(self) -> tuple[str, str | None]:
        """Return the text of the next statement, and the variable that it sets."""
        kinds = (
            (self.class_statement, 15), (self.function_statement, 8), (self.member_call, 18), (self.method_call, 22),
            (self.attribute_read, 10), (self.attribute_store, 7), (self.operator_statement, 8), (self.item_statement, 4),
            (self.match_statement, 2), (self.nested_statement, 6), (self.call_variable, 9), (self.format_statement, 2),
            (self.flow_statement, 3), (self.super_statement, 2), (self.copy_statement, 2), (self.builtin_statement, 4),
            (self.type_statement, 2), (self.made_statement, 4), (self.mutation, 3),
        )  # fmt: skip
        make = self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        return make()

    def setting(self, expression: str) -> tuple[str, str]:
        name = self.fresh("v")
        return caught(f"{name} = {expression}", name), name

    def member_call(self) -> tuple[str, str]:
        return self.setting(self.call(self.member(kind=callable)))

    def call_variable(self) -> tuple[str, str]:
        name = self.variable("function", "call", "class")
        if name is None:
            return self.member_call()
        value = self.space[name]
        return self.setting(f"{name}({self.arguments(value)})")

    def receiver(self) -> tuple[str, object]:
        if self.chance(0.75):
            name = self.variable()
            if name is not None:
                return name, self.space[name]
        if self.chance(0.3):
            return self.rng.choice([("spy", self.space["spy"]), *generics().items()])
        expression = self.member()
        value = self.values[expression]
        if isinstance(value, type) and self.chance(0.4):
            public = [
                name
                for name in names_on(value)
                if names.judge(name) is names.Verdict.PLAIN and name not in names.SPECIAL_METHODS
            ]
            if public:
                name = self.rng.choice(public)
                return f"{expression}.{name}", raw_attribute(value, name)
        return expression, value

    def method_call(self) -> tuple[str, str]:
        expression, value = self.receiver()
        name = self.attribute_of(value)
        return self.setting(f"{expression}.{name}({self.arguments_of_attribute(value, name)})")

    def attribute_read(self) -> tuple[str, str]:
        expression, value = self.receiver()
        name = self.attribute_of(value)
        if self.chance(0.25):
            return self.setting(f"getattr({expression}, {name!r}, None)")
        if self.chance(0.1):
            return self.setting(f"operator.attrgetter({name!r})({expression})")
        return self.setting(f"{expression}.{name}")

    def attribute_store(self) -> tuple[str, str | None]:
        expression, value = self.receiver()
        name = self.word() if self.chance(0.5) else self.attribute_of(value)
        roll = self.rng.random()
        given = self.pick("see", "spy", self.any())
        if roll < 0.7:
            body = f"{expression}.{name} = {given}"
        elif roll < 0.8:
            body = f"del {expression}.{name}"
        elif roll < 0.9:
            body = f"setattr({expression}, {self.text()}, {given})"
        else:
            body = f"{expression}.{name} {self.pick('+', '|', '*')}= {given}"
        return caught(body), None

    def operator_statement(self) -> tuple[str, str]:
        expression, _ = self.receiver()
        other = self.pick("spy", self.any())
        if self.chance(0.6):
            sides = (expression, other) if self.chance(0.7) else (other, expression)
            return self.setting(f"{sides[0]} {self.rng.choice(BINARY)} {sides[1]}")
        return self.setting(f"{self.rng.choice(UNARY)}({expression})")

    def item_statement(self) -> tuple[str, str | None]:
        name = self.variable("mapping", "many", "other") or "SEEN"
        key = self.rng.choice((self.text, self.atom, self.cls))()
        roll = self.rng.random()
        if roll < 0.4:
            return self.setting(f"{name}[{key}]")
        if roll < 0.85:
            return caught(f"{name}[{key}] = {self.any()}"), None
        return caught(f"del {name}[{key}]"), None

    def match_statement(self) -> tuple[str, str]:
        name = self.fresh("v")
        subject = self.receiver()[0]
        cls = self.variable("class") or "Spy"
        pattern = self.pick(
            f"{cls}(got)",
            f"{cls}({self.word()}=got)",
            "[got, *_]",
            "{**got}",
            f"{cls}(_, got)",
            f"typing.Any({self.word()}=got)",
            "object(got)",
        )
        return caught(f"match {subject}:\n    case {pattern}:\n        {name} = got", name), name

    def format_statement(self) -> tuple[str, str]:
        word = self.word()
        return self.setting(
            self.pick(
                f"'{{0.{word}}}'.format({self.any()})", f"f'{{{self.variable() or 'spy'}!r:{{spy}}}}'", f"string.Formatter().format('{{0.{word}}}', {self.any()})",
                f"string.Formatter().get_field('0.{word}', ({self.any()},), {{}})", f"str.format('{{a.{word}}}', a={self.any()})",
                f"string.Template('$a').substitute({self.mapping()})",
            )
        )  # fmt: skip

    def builtin_statement(self) -> tuple[str, str]:
        return self.setting(
            self.pick(
                f"isinstance({self.any()}, {self.cls()})", f"issubclass({self.cls()}, {self.cls()})", f"sorted({self.many()}, key={self.callable()})",
                f"list(map({self.callable()}, {self.many()}))", f"list(filter({self.callable()}, {self.many()}))", f"vars({self.any()})",
                f"getattr({self.any()}, {self.text()}, spy)", f"hasattr({self.any()}, {self.text()})", "globals()", "locals()", f"dir({self.any()})",
                f"property({self.callable()})", f"iter({self.callable()}, {self.any()})", f"compile({self.text()}, 'x', 'eval')", "compile('see(spy)', 'x', 'exec')",
                f"__build_class__({self.callable()}, 'x', {self.any()})", f"__import__({self.text()})", f"dict(**{self.mapping()})", f"{self.callable()}(**{self.mapping()})",
                f"{self.callable()}(*{self.many()})",
            )
        )  # fmt: skip

    def mutation(self) -> tuple[str, str]:
        """Return a change of a container that stands in something, of the host's more often than not."""
        where = self.rng.choice(containers()) if self.chance(0.7) else f"{self.variable() or 'spy'}.{self.word()}"
        changes = [
            *(f"{where}.{way}" for way in MUTATIONS),
            f"exec('x = 1', {where})",
            f"{where}.__init__({self.any()})",
        ]
        return self.setting(self.rng.choice(changes))

    def made_statement(self) -> tuple[str, str]:
        """Return a class that is made from data."""
        name = self.fresh("C")
        fields = self.pick("[]", self.many(), f"[({self.text()}, {self.any()}, {self.any()})]", f"[{self.text()}]")
        made = self.pick(
            f"dataclasses.make_dataclass({self.word()!r}, {fields}, namespace={self.mapping()})",
            f"dataclasses.make_dataclass('made', {fields}, bases=({self.base()},), namespace={self.mapping()})",
            f"enum.Enum({self.pick('Lie', 'str')}('made'), {self.pick(fields, self.mapping())}, module={self.text()})",
            f"collections.namedtuple({self.text()}, {fields}, defaults={self.many()})",
            f"typing.NamedTuple({self.text()}, {fields})",
            f"typing.TypedDict({self.text()}, {self.mapping()})",
            f"typing.NewType({self.text()}, {self.cls()})",
        )
        return caught(f"{name} = {made}", name), name

    def flow_statement(self) -> tuple[str, str]:
        name = self.fresh("v")
        kind = self.rng.randrange(7)
        expression = self.any()
        if kind == 0:
            return caught(f"with {expression} as {name}:\n    {self.callable()}({name})", name), name
        if kind == 1:
            return caught(f"{name} = [see(item) for item in {expression}]", name), name
        if kind == 2:
            body = f"async def main():\n    return await {expression}\n{name} = asyncio.run(main())"
        elif kind == 3:
            body = f"async def main():\n    async with {expression} as got:\n        return got\n{name} = asyncio.run(main())"
        elif kind == 4:
            body = f"def main():\n    got = yield {expression}\n    yield see(got)\n{name} = main()\nnext({name})\n{name}.{self.pick('send', 'throw')}({self.any()})"
        elif kind == 5:
            body = f"try:\n    raise {expression}\nexcept {self.cls()} as got:\n    {name} = see(got)"
        else:
            body = f"raise {expression} from {self.any()}"
        return caught(body, name), name

    def super_statement(self) -> tuple[str, str]:
        cls = self.variable("class") or "Spy"
        name = self.word() if self.chance(0.5) else self.rng.choice(DEFINABLE)
        return self.setting(
            self.pick(
                f"super({cls}, {self.instance()}).{name}",
                f"super({cls}, {cls}).{name}",
                f"super({self.cls()}, {self.any()}).{name}({self.any()})",
                f"super({cls}).__get__({self.any()}, {self.cls()}).{name}",
            )
        )

    def copy_statement(self) -> tuple[str, str]:
        value = self.any()
        memo = self.variable("mapping") or "{}"
        return self.setting(
            self.pick(
                f"copy.copy({value})",
                f"copy.deepcopy({value})",
                f"copy.deepcopy({value}, {memo})",
                f"copy.deepcopy({value}, {self.any()})",
                f"copy.replace({value}, **{self.mapping()})",
            )
        )

    def nested_statement(self) -> tuple[str, str | None]:
        """Return `exec` or `eval` of a program, in a namespace given or not."""
        roll = self.rng.random()
        if roll < 0.25:
            name = self.fresh("v")
            return caught(
                f"{name} = {self.pick('dict(globals())', '{}')}\n{name}.update(globals())\n{name}[{self.pick(repr(name), self.text())}] = {name}",
                name,
            ), name
        where = self.variable("mapping") or self.pick("globals()", "{}", "{'see': see, 'spy': spy}", "dict(globals())")
        if roll < 0.4:
            return self.setting(f"eval({self.any()!r}, {where})")
        inner: list[str] = []
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            roll = self.rng.random()
            if roll < 0.35:
                inner.append(
                    f"{where if where.isidentifier() else 'globals()'}[{self.pick(repr('__builtins__'), self.text())}] = {self.pick('{}', self.any())}"
                )
            elif roll < 0.6:
                inner.append(f"def {self.fresh('f')}(*a, **k): return a, k")
            elif roll < 0.75:
                inner.append(f"{self.fresh('v')} = lambda *a: a")
            else:
                inner.append(
                    self.rng.choice((self.class_statement, self.method_call, self.member_call, self.item_statement))()[
                        0
                    ]
                )
        source = "\n".join(inner)
        locals_ = f", {self.mapping()}" if self.chance(0.15) else ""
        form = self.pick("exec({!r}, {}{})", "exec({!r}, {}{})", "exec(compile({!r}, 'x', 'exec'), {}{})")
        return caught(form.format(source, where, locals_)), where if where.isidentifier() else None

    def type_statement(self) -> tuple[str, str]:
        """Return a statement of PEP 695, from Python 3.12 on."""
        if sys.version_info < (3, 12):
            return self.builtin_statement()
        name = self.fresh("v")
        return (
            caught(
                self.pick(
                    f"type {name} = {self.any()}\nsee({name}.__value__)",
                    f"class made[T: {self.any()}]({self.base()}): pass\n{name} = made\nsee({name}.__type_params__[0].__bound__)",
                    f"def made[T: ({self.any()}, {self.any()})](x: T): return see(T)\n{name} = made",
                    f"def made[*T, **P](*x: *T): return see(T, P)\n{name} = made({self.any()})",
                ),
                name,
            ),
            name,
        )

    # Definitions

    def recording(self) -> str:
        return f"return see({self.pick('None', 'True', 'spy', self.atom(), self.any())}, a, k)"

    def decorators(self, likely: Sequence[str], count: int) -> list[str]:
        return [f"@{self.rng.choice(likely) if self.chance(0.8) else self.callable()}" for _ in range(count)]

    def function_statement(self) -> tuple[str, str]:
        name = self.fresh("f")
        lines = self.decorators(FUNCTION_DECORATORS, self.rng.choice((0, 0, 1, 1, 2)))
        arguments = self.pick(
            "*a, **k", "*a, **k", f"x: {self.annotation()}, *a, **k", f"x={self.atom()}, *a, **k", "self, *a, **k"
        )
        body = self.pick(
            self.recording(),
            self.recording(),
            self.recording(),
            f"yield see({self.any()}, a, k)",
            f"return {self.any()}",
        )
        lines += [f"{self.pick('', '', '', 'async ')}def {name}({arguments}):", f"    {body}"]
        return caught("\n".join(lines), name), name

    def annotation(self) -> str:
        return self.pick(
            "int", "object", "dataclasses.InitVar[int]", "typing.ClassVar[int]", "dataclasses.KW_ONLY", "typing.Any", "'int'", "'InitVar'",
            "'dataclasses.InitVar'", self.cls(), self.text(), "typing.Optional[int]", "'typing.ClassVar[int]'",
        )  # fmt: skip

    def base(self) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return self.rng.choice(SPECIAL_BASES)
        if roll < 0.55:
            return self.variable("class") or "Spy"
        if roll < 0.8:
            return self.member(kind=lambda value: isinstance(value, type))
        if roll < 0.88:
            return self.call(self.member(kind=callable))
        return self.variable() or "spy"

    def class_statement(self) -> tuple[str, str]:
        name = self.fresh("C")
        written = self.word() if self.chance(0.06) else name
        lines = self.decorators(DECORATORS, self.rng.choice((0, 0, 0, 1, 1, 2)))
        arguments = [self.base() for _ in range(self.rng.choice((0, 1, 1, 1, 1, 2)))]
        inherited = [word for base in arguments for word in self.overridable(base)]
        if self.chance(0.12):
            arguments.append(f"metaclass={self.pick('type', 'abc.ABCMeta', 'enum.EnumMeta', 'see', self.callable())}")
        elif self.chance(0.08):
            arguments.append(f"{self.pick('total', 'boundary', 'x', 'init', 'frozen')}={self.any()}")
        lines.append(f"class {written}({', '.join(arguments)}):")
        body = [line for _ in range(self.rng.choice((1, 2, 2, 3, 4))) for line in self.body_entry(inherited)]
        lines += [f"    {line}" for line in body]
        if written != name:
            lines.append(f"{name} = {written}")
        return caught("\n".join(lines), name), name

    def overridable(self, base: str) -> list[str]:
        """Return the names of a base that a class may define anew."""
        value = self.space.get(base, self.values.get(base))
        if not isinstance(value, type):
            return []
        return [word for word in names_on(value) if word in DEFINABLE or not word.startswith("_")]

    def body_entry(self, inherited: list[str]) -> list[str]:
        """Return the lines of one thing in a class body."""
        roll = self.rng.random()
        method = self.rng.choice(LIKELY) if self.chance(0.7) else self.rng.choice(DEFINABLE)
        if inherited and self.chance(0.35):
            method = self.rng.choice(inherited)
        if roll < 0.3:
            decorator = self.pick(
                "", "", "", "@staticmethod", "@classmethod", "@property", f"@{self.rng.choice(FUNCTION_DECORATORS)}"
            )
            name = method if self.chance(0.85) else self.pick(self.word(), "run", "test_a", self.rng.choice(SUNDERS))
            keyword = self.pick("def", "def", "def", "def", "async def")
            return [*([decorator] if decorator else []), f"{keyword} {name}(*a, **k): {self.recording()}"]
        if roll < 0.45:
            return [
                f"{method} = {self.pick('see', 'staticmethod(see)', 'classmethod(see)', 'spy', 'None', self.callable(), f'staticmethod({self.callable()})', f'property({self.callable()})')}"
            ]
        if roll < 0.58:
            return [f"{self.word()} = {self.any()}"]
        if roll < 0.82:
            default = self.pick(
                "",
                "",
                f" = {self.any()}",
                f" = dataclasses.field(default={self.any()})",
                f" = dataclasses.field(default_factory={self.callable()})",
                f" = {self.any()}",
            )
            return [f"{self.word()}: {self.annotation()}{default}"]
        if roll < 0.87:
            return [f"__slots__ = {self.pick('()', f'({self.text()},)', self.many(), self.mapping(), self.text())}"]
        if roll < 0.9:
            return [f"__match_args__ = {self.pick(f'({self.text()},)', self.many(), self.text())}"]
        if roll < 0.95:
            return [
                f"def {self.pick('run', '__init__', method)}(self, *a, **k): return see(super().{self.pick(self.word(), method)}, self)"
            ]
        nested = self.pick(
            "class inner(dict): pass",
            f"x = cached = functools.cached_property({self.callable()})",
            f"y = {self.rng.choice(SUNDERS)} = {self.any()}",
            "a, b = 1, see",
        )
        return [nested]

    # What belongs together

    def uses(self, name: str) -> list[tuple[str, str | None]]:
        """Return some uses of what the variable `name` has just got."""
        value = self.space.get(name)
        kind = type(value)
        if kind in {int, float, bool, str, type(None)} or issubclass(kind, BaseException):
            return []
        if issubclass(kind, type):
            ways = (
                f"isinstance({self.pick('int', 'Spy', 'spy', 'json', self.any())}, {name})", f"issubclass({self.cls()}, {name})", f"{name}()", f"{name}({self.any()})",
                f"{name}({self.arguments(value)})", f"copy.deepcopy({name}())", f"{name}({self.any()}) == spy", f"vars({name})", f"dir({name})", f"{name}[{self.any()}]",
                f"inspect.signature({name})", f"dataclasses.dataclass({name})", f"dataclasses.fields({name})", f"dataclasses.asdict({name}({self.any()}))",
                f"dataclasses.replace({name}({self.any()}), **{self.mapping()})", f"typing.get_type_hints({name})", f"inspect.getmembers({name})", f"functools.total_ordering({name})",
                f"{name}.__new__({name})", f"{name}.__subclasses__()", f"{name}.mro()", f"{name}.register({self.cls()})", f"isinstance({self.cls()}, {name})",
            )  # fmt: skip
        elif callable(value) and not ownership.is_guest_class(kind):
            ways = (
                f"{name}({self.cls()})", f"{name}({self.any()})", f"{name}({self.arguments(value)})", f"functools.singledispatch({name})", f"functools.wraps({name})(lambda *a: see(a))",
                f"inspect.signature({name})", f"property({name})", f"functools.partial({name}, {self.any()})", f"contextlib.contextmanager({name})", f"{name}.__get__({self.any()}, {self.cls()})",
                f"types.MethodType({name}, {self.any()})", f"{name} == spy", f"copy.deepcopy({name}, {self.mapping()})", f"{name}.{self.attribute_of(value)}", f"sorted([spy, spy], key={name})",
            )  # fmt: skip
        else:
            ways = (
                f"{name} == spy", f"spy == {name}", f"{name} | spy", f"spy in {name}", f"list({name})", f"copy.copy({name})", f"copy.deepcopy({name}, {self.mapping()})", f"vars({name})",
                f"{name}.{self.attribute_of(value)}", f"{name}.{self.attribute_of(value)}({self.any()})", f"{name}.__get__({self.callable()}, {self.cls()})", f"{name}({self.any()})",
                f"isinstance({name}, {self.cls()})", f"f'{{{name}:{{spy}}}}'", f"{name}[{self.any()}]", f"next({name})", f"dict({name})", f"copy.replace({name}, **{self.mapping()})", f"{name} + spy",
            )  # fmt: skip
        found: list[tuple[str, str | None]] = []
        for way in self.rng.sample(ways, self.rng.choice((1, 1, 2, 3))):
            if "deepcopy" in way and self.chance(0.5):
                memo = self.fresh("v")
                found.append(
                    (
                        caught(
                            f"{memo} = {self.pick('{}', 'collections.UserDict()', 'collections.defaultdict(dict)')}\ncopy.deepcopy({name}, {memo})"
                        ),
                        memo,
                    )
                )
            else:
                found.append(self.setting(way))
        return found

    def perturb_and_repeat(self, history: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """Give an argument of an earlier call what its result has, by name, repeat the call, and use what it gives."""
        made = [
            (text, name)
            for text, name in history
            if name is not None
            and name.startswith("v")
            and not issubclass(type(self.space.get(name)), BaseException | int | str | None.__class__)
        ]
        if not made:
            return []
        text, name = self.rng.choice(made[-12:])
        given = [
            word
            for word in self.variables
            if word != name and f"{word}" in text.replace("(", " ").replace(")", " ").replace(",", " ").split()
        ]
        listed = [word for word in names_on(self.space[name]) if not word.startswith("__")] or [self.word()]
        target = self.rng.choice(given) if given else name
        steps: list[tuple[str, str | None]] = [
            (caught(f"{target}.{word} = {self.pick('see', 'see', 'spy', self.any())}"), None)
            for word in self.rng.sample(listed, min(2, len(listed)))
        ]
        if given:
            again = self.fresh("v")
            steps.append((text.replace(f"{name} = ", f"{again} = "), again))
            name = again
        used = self.fresh("v")
        steps.append((caught(f"{used} = {name}({self.pick(self.cls(), self.any(), self.instance())})", used), used))
        return steps


def caught(body: str, name: str | None = None) -> str:
    """Return statements that end well: what they raise is what the variable holds."""
    kept = f"{name} = error" if name else "see(error)"
    return f"try:\n{textwrap.indent(body, '    ')}\nexcept BaseException as error:\n    {kept}\n"
