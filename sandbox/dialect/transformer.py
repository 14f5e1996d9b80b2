"""Security boundary: the dialect, one method for each kind of syntax node.

`Transformer` is RestrictedPython's node transformer with another idea of speed. What stands in the source is judged
here, once, and then compiles to CPython's own instructions; only an attribute whose value must be judged becomes a
call. A node that no method knows is refused, as in RestrictedPython, so new syntax is never trusted unseen. Methods
that the base class has and that only visit their children (literals, operators, `while`, `return` …) stand there.
"""

# ruff: noqa: N802, N815 - the methods are named for the syntax nodes

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Final, NoReturn, TypeVar, cast

from RestrictedPython.transformer import RestrictingNodeTransformer

from ..errors import Refused
from . import imports, names
from .formatting import has_lookups
from .metaclasses import may_define
from .names import PREFIX, Verdict
from .syntax_nodes import hook_call, placed

LAST_VALUE: Final = "last value"
"""Where the value of the last expression statement is kept: a name with a space, which no source can spell."""

ATTRIBUTE_HOOK: Final = f"{PREFIX}attribute"
INITIALIZER_HOOK: Final = f"{PREFIX}initializer"
SLOT_HOOK: Final = f"{PREFIX}slot"
STORE_HOOK: Final = f"{PREFIX}store"
KEYWORDS_HOOK: Final = f"{PREFIX}keywords"
PLAIN_NAME_HOOK: Final = f"{PREFIX}plain_name"
RECORD_HOOK: Final = f"{PREFIX}record"
REFUSED_HOOK: Final = f"{PREFIX}refused"
UNMADE_HOOK: Final = f"{PREFIX}unmade"
_READ: Final = ast.Load()
_IMPORT_ERRORS: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NAME_POSITION: Final = {"__set_name__": 2}
_Node = TypeVar("_Node", bound=ast.AST)


class Transformer(RestrictingNodeTransformer):
    """Turns a parsed program of the guest into one that cannot leave the dialect, or raises `Refused`."""

    def __init__(self, *, package: str = "", imports_may_fail: bool = False) -> None:
        super().__init__()
        self._package = package
        self._imports_may_fail = imports_may_fail
        self._in_class_body = False
        self._at_module_level = True
        self._class_name: str | None = None
        self._import_may_fail = imports_may_fail
        self._may_be_absent = False
        self._annotations_are_text = False
        self._futures: Sequence[ast.stmt] = ()
        self.flags = 0
        """What the judged tree is to be compiled with: the features that were imported from `__future__`."""

    # What is refused, and the names that may be bound

    def refuse(self, node: ast.AST, message: str, instead: str | None = None) -> NoReturn:
        """Raise `Refused` with the line of `node`."""
        raise Refused(message, line=getattr(node, "lineno", None), instead=instead)

    def not_allowed(self, node: ast.AST) -> NoReturn:
        """Refuse a kind of node that no method knows."""
        self.refuse(node, f"{type(node).__name__} statements are not part of this dialect")

    def check_name(self, node: ast.AST, name: str | None, allow_magic_methods: bool = False) -> None:  # noqa: ARG002 - the base class's signature
        """Refuse the names that belong to the machinery, in every form that reads or binds a variable."""
        if name is None:
            return
        if PREFIX in name or name in names.HOOK_NAMES:
            self.refuse(node, f"the name {names.demangle(name)!r} is reserved", "choose another name")
        if name == "__class__" and not (self._in_function(node) or _is_loaded(node)):
            self.refuse(node, "the name '__class__' cannot be bound here", "choose another name")
        if self._in_class_body and name in (names.GUARDED | names.REFUSED) - names.DEFINABLE - names.INERT:
            self._check_class_name(node, name)

    def _in_function(self, node: ast.AST) -> bool:
        """Return whether `node` binds a variable or a parameter of a function: `super()` there takes what it holds."""
        return isinstance(node, ast.Name | ast.arg) and not (self._in_class_body or self._at_module_level)

    def _check_class_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__") and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            _reason, instead = names.why_refused(name)
            self.refuse(node, f"a class cannot define {name!r} here", instead)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Allow every variable but the machinery's."""
        self.check_name(node, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Allow every parameter name but the machinery's."""
        self.check_name(node, node.arg)
        node.annotation = self._annotation(node.annotation)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """Allow every keyword argument that a name spells; the names of a mapping (`**`) become exact texts."""
        if node.arg is not None and PREFIX in node.arg:
            self.check_name(node, node.arg)
        self._children(node)
        if node.arg is None:
            node.value = placed(hook_call(KEYWORDS_HOOK, node.value), node.value)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        """Allow `global` and `nonlocal` for every variable but the machinery's."""
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Nonlocal = visit_Global

    # Attributes

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Judge the name: as it is, respelt, through a guard, or refused.

        A plain store leads nowhere, so it needs a guard only for names with a meaning to Python itself.
        """
        if PREFIX in node.attr:
            self.refuse(node, f"the name {names.demangle(node.attr)!r} is reserved", "choose another name")
        if isinstance(node.ctx, ast.Load):
            return self._load(node)
        return self._children(node) if self._may_store(node.attr) else self._through_slot(node)

    def _load(self, node: ast.Attribute) -> ast.AST:
        verdict = self._judge(node, node.attr)
        if node.attr == names.INITIALIZER:
            return placed(hook_call(INITIALIZER_HOOK, self.visit(node.value)), node)
        if (verdict is Verdict.GUARDED and not _is_plain_template(node)) or node.attr in names.REDUCING:
            hook = hook_call(ATTRIBUTE_HOOK, self.visit(node.value), node.attr)
            return placed(hook, node)
        return self._children(node)

    def _children(self, node: _Node) -> _Node:
        if isinstance(node, ast.Attribute):
            node.attr = self._spelled(node.attr)
        return self.node_contents_visit(node)

    def _spelled(self, attribute: str) -> str:
        return names.mangle(attribute, self._class_name)

    def _judge(self, node: ast.AST, attribute: str) -> Verdict:
        verdict = names.judge(attribute)
        if verdict is Verdict.REFUSED:
            reason, instead = names.why_refused(attribute)
            self.refuse(node, reason, instead)
        return verdict

    def _may_store(self, attribute: str) -> bool:
        if attribute in names.RUNTIME_PUBLIC or attribute in names.SETTABLE - names.TITLES - {"__doc__"}:
            return True
        if attribute in names.INSPECTION:
            return False
        return not attribute.startswith("_") or names.judge(attribute) is Verdict.PRIVATE

    def _through_slot(self, node: ast.Attribute) -> ast.AST:
        """Make `x.__repr__ = f` store to a slot object that judges what is changed; any target may be one."""
        self._judge(node, node.attr)
        slot = hook_call(SLOT_HOOK, self.visit(node.value), node.attr)
        return placed(ast.Attribute(slot, "value", node.ctx), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Allow it on every target. On an attribute it also reads, so the name is judged as for reading."""
        target = node.target
        if isinstance(target, ast.Attribute) and self._judge(target, target.attr) is Verdict.GUARDED:
            node.target = cast("ast.Attribute", self._through_slot(target))
        else:
            node.target = self.visit(target)
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Allow it: what makes a class from data judges the data (`classes.make_class`)."""
        return self._children(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Allow it. `a.__class__ is b.__class__` gives neither class away, so it needs no guard."""
        operands = [node.left, *node.comparators]
        if all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops) and all(map(_is_class, operands)):
            for operand in cast("list[ast.Attribute]", operands):
                operand.value = self.visit(operand.value)
            return node
        return self._children(node)

    # Nodes that RestrictedPython routes through guards at run time, and that need none here

    def _visit_children(self, node: ast.AST) -> ast.AST:
        """Allow it: what it names is judged where the name stands."""
        return self._children(node)

    visit_Subscript = visit_Assign = visit_Delete = _visit_children
    visit_For = visit_comprehension = visit_With = visit_withitem = _visit_children
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_children
    visit_AsyncFor = visit_AsyncWith = visit_Await = visit_NamedExpr = _visit_children
    visit_Match = visit_match_case = visit_MatchSingleton = visit_MatchSequence = visit_MatchOr = _visit_children
    visit_arguments = visit_Starred = _visit_children

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Allow it, with any annotation."""
        node.target = self.visit(node.target)
        node.annotation = cast("ast.expr", self._annotation(node.annotation))
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _annotation(self, annotation: ast.expr | None) -> ast.expr | None:
        # Under `from __future__ import annotations` Python keeps the text, and what evaluates it compiles it anew.
        if annotation is None or self._annotations_are_text:
            return annotation
        return cast("ast.expr", self.visit(annotation))

    # Patterns: they read attributes without any hook

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """Refuse a dotted name that would need a guard: a pattern must stay a dotted name."""
        for part in ast.walk(node.value):
            if isinstance(part, ast.Attribute):
                self._check_pattern_attribute(part, part.attr)
        return self._children(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        """Judge the attributes a class pattern names, as if they were read."""
        for part in ast.walk(node.cls):
            if isinstance(part, ast.Attribute):
                self._check_pattern_attribute(part, part.attr)
        for attribute in node.kwd_attrs:
            self._check_pattern_attribute(node, attribute)
        node.kwd_attrs = [self._spelled(attribute) for attribute in node.kwd_attrs]
        return self._children(node)

    def _check_pattern_attribute(self, node: ast.AST, attribute: str) -> None:
        if PREFIX in attribute or self._judge(node, attribute) is Verdict.GUARDED:
            self.refuse(
                node, f"a pattern cannot read the attribute {attribute!r}", "test it in an `if` after the pattern"
            )

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> ast.AST:
        """Allow a capture under every name but the machinery's."""
        self.check_name(node, node.name)
        return self._children(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        """Allow a mapping pattern; its `**rest` is a capture."""
        self.check_name(node, node.rest)
        return self._children(node)

    # Type parameters (PEP 695)

    def visit_TypeVar(self, node: ast.AST) -> ast.AST:
        """Allow a type parameter under every name but the machinery's."""
        self.check_name(node, getattr(node, "name", None))
        return self._children(node)

    visit_ParamSpec = visit_TypeVarTuple = visit_TypeVar
    visit_TypeAlias = _visit_children

    # Exceptions

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Allow it. An import in its body may fail at run time when a handler expects that."""
        with self._importing(self._import_may_fail or any(map(_catches_import_errors, node.handlers))):
            node.body = self._statements(node.body)
        node.handlers = [self.visit(handler) for handler in node.handlers]
        node.orelse = self._statements(node.orelse)
        node.finalbody = self._statements(node.finalbody)
        return node

    def visit_TryStar(self, node: ast.AST) -> NoReturn:
        """Refuse `except*`: it calls methods of a group's class from inside the interpreter (CVE-2025-22153)."""
        self.refuse(
            node, "`except*` is not part of this dialect", "use `except ExceptionGroup as group` and group.exceptions"
        )

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Allow it; its name is bound like any variable."""
        self.check_name(node, node.name)
        return self._children(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        """Allow it. Imports under `if TYPE_CHECKING:` never run, so any module may stand there."""
        test = node.test
        type_checking = getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"
        node.test = self.visit(test)
        with self._importing(self._import_may_fail or type_checking):
            node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return node

    @contextmanager
    def _importing(self, may_fail: bool) -> Iterator[None]:
        before, self._import_may_fail = self._import_may_fail, may_fail
        try:
            yield
        finally:
            self._import_may_fail = before

    # Imports

    def visit_Import(self, node: ast.Import) -> Sequence[ast.stmt]:
        """Refuse every module without a facade, and bind the facade of the others."""
        statements: list[ast.stmt] = []
        for alias in node.names:
            self.check_name(node, alias.asname or alias.name.partition(".")[0])
            may_fail, may_be_absent = self._import_may_fail, self._may_be_absent
            statements.append(imports.module(node, alias, may_fail, may_be_absent=may_be_absent))
        return statements

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Sequence[ast.stmt]:
        """Refuse every name that the module's facade does not list; the others are taken from the facade.

        CPython's own `from` statement falls back to `sys.modules`, so it must never see a facade.
        """
        if node.module == "__future__" and not node.level:
            self._judge_future(node)
        try:
            node = imports.absolute(node, self._package)
        except Refused as refused:
            if self._at_module_level and not self._import_may_fail:
                raise
            missing = hook_call(imports.MISSING_HOOK, node.module or ".", refused.message)
            return [placed(ast.Expr(missing), node)]
        statements: list[ast.stmt] = []
        for alias in imports.expanded(node, at_module_level=self._at_module_level):
            self.check_name(node, alias.asname or alias.name)
            may_fail, may_be_absent = self._import_may_fail, self._may_be_absent
            statements.append(imports.imported_member(node, alias, may_fail, may_be_absent=may_be_absent))
        return statements

    def _judge_future(self, node: ast.ImportFrom) -> None:
        """Refuse what the compiler would refuse, which then no longer sees the statement."""
        at = ("<code>", node.lineno, node.col_offset + 1, None)
        if not any(node is future for future in self._futures):
            raise SyntaxError("from __future__ imports must occur at the beginning of the file", at)
        for alias in node.names:
            if alias.name not in __future__.all_feature_names:
                raise SyntaxError(f"future feature {alias.name} is not defined", at)
            if alias.name == "annotations":
                self.flags |= __future__.annotations.compiler_flag

    # Scopes

    @contextmanager
    def _scope(self, *, class_name: str | None = None) -> Iterator[None]:
        before = self._in_class_body, self._at_module_level, self._class_name, self._import_may_fail
        self._in_class_body = class_name is not None
        self._at_module_level = False
        self._class_name = class_name or self._class_name
        self._import_may_fail = self._imports_may_fail
        try:
            yield
        finally:
            self._in_class_body, self._at_module_level, self._class_name, self._import_may_fail = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Allow every function; one that a class calls with attribute names first gets them in plain spelling."""
        self.check_name(node, node.name)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        self._type_parameters(node)
        method = node.name if self._in_class_body else None
        with self._scope():
            node.args = self.visit(node.args)
            node.returns = self._annotation(node.returns)
            node.body = self._statements(node.body)
        if method in _NAME_POSITION:
            _spell_plainly(node, _NAME_POSITION[method])
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Allow it."""
        with self._scope():
            return self._children(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Refuse some metaclasses; what the body binds is judged again when it is bound (`classes.build_class`)."""
        self.check_name(node, node.name)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in {"EnumMeta", "EnumType"}:
                self.refuse(
                    node,
                    f"the metaclass {base.id!r} cannot be a base class",
                    "use __init_subclass__ or a class decorator",
                )
            if _is_metaclass(base):
                self._check_metaclass(node)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        self._type_parameters(node)
        node.bases = [self.visit(base) for base in node.bases]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        with self._scope(class_name=node.name):
            node.body = self._statements(node.body)
        return node

    def _check_metaclass(self, node: ast.ClassDef) -> None:
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not may_define(each.name):
                message = f"a metaclass cannot define {each.name!r} here"
                self.refuse(node, message, "define __new__, __init__ or __call__, or use __init_subclass__")

    def _type_parameters(self, node: ast.AST) -> None:
        for parameter in getattr(node, "type_params", ()):
            self.visit(parameter)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Keep the value of the last expression statement."""
        body = node.body[_has_docstring(node.body) :]
        self._futures = [*takewhile(_is_future, body)]
        self._annotations_are_text = any(
            alias.name == "annotations" for each in self._futures for alias in cast("ast.ImportFrom", each).names
        )
        node.body = self._statements(node.body)
        self._keep_last_value(node)
        return node

    def _keep_last_value(self, node: ast.Module) -> None:
        last = node.body[-1] if node.body else None
        if isinstance(last, ast.Expr):
            kept = ast.Assign([ast.Name(LAST_VALUE, ast.Store())], last.value)
            node.body[-1] = placed(kept, last)

    def _statements(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        visited: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            if isinstance(new, list):
                visited.extend(new)
            else:
                visited.append(new)
        return visited


class ModuleTransformer(Transformer):
    """The dialect for a module that is imported, most of whose lines never run.

    What it imports in vain, and whatever the dialect refuses, is an error of the line when that runs. In the place of
    the innermost expression or statement that was refused stands a call that raises it. A class that is refused, such
    as a metaclass, is an error when it is used, and so is every class that is made from it.
    """

    def __init__(self, *, package: str) -> None:
        super().__init__(package=package, imports_may_fail=True)
        self._may_be_absent = True
        self.refusals: list[Refused] = []
        """What was refused, in the order of the source."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Let `__builtins__`, which Python gives every module, be read as the module `builtins`."""
        if node.id == "__builtins__" and isinstance(node.ctx, ast.Load):
            return placed(hook_call(imports.MODULE_HOOK, "builtins"), node)
        return super().visit_Name(node)

    def _load(self, node: ast.Attribute) -> ast.AST:
        """Let code read records of its frames, functions and classes, and none of these themselves."""
        if node.attr in names.INSPECTION or node.attr in names.LINEAGE or node.attr == "__code__":
            return placed(hook_call(RECORD_HOOK, cast("ast.expr", self.visit(node.value)), node.attr), node)
        return super()._load(node)

    def _judge(self, node: ast.AST, attribute: str) -> Verdict:
        return Verdict.GUARDED if attribute in names.INSPECTION else super()._judge(node, attribute)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Allow it. Where a handler expects that an import fails, it does so at once."""
        before = self._may_be_absent
        self._may_be_absent = before and not any(map(_catches_import_errors, node.handlers))
        try:
            return super().visit_Try(node)
        finally:
            self._may_be_absent = before

    def visit(self, node: ast.AST) -> ast.AST:
        """Judge the node, or put what raises its refusal in its place."""
        try:
            return cast("ast.AST", super().visit(node))
        except Refused as refused:
            is_read = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", _READ), ast.Load)
            if not is_read and not isinstance(node, ast.stmt):
                raise
            self.refusals.append(refused)
            refusal_parts = refused.type, refused.message, refused.instead or ""
            if isinstance(node, ast.ClassDef) and self._may_bind(node):
                return placed(
                    ast.Assign([ast.Name(node.name, ast.Store())], hook_call(UNMADE_HOOK, *refusal_parts)), node
                )
            call = hook_call(REFUSED_HOOK, *refusal_parts)
            return placed(call if is_read else ast.Expr(call), node)

    def _may_bind(self, node: ast.ClassDef) -> bool:
        """Return whether it was not the name of the class that was refused: one that is reserved stays unbound."""
        try:
            self.check_name(node, node.name)
        except Refused:
            return False
        return True

    def _keep_last_value(self, node: ast.Module) -> None:
        """Keep none: nothing reads it."""


class GeneratedTransformer(Transformer):
    """The dialect for the methods that `dataclasses` writes: a frozen class stores past its own `__setattr__`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Let such a store be a call of the machinery, which stands in no variable that code could read."""
        match node.func:
            case ast.Attribute(value=ast.Name(id="__dataclass_builtins_object__"), attr="__setattr__"):
                stored = ast.Call(ast.Name(STORE_HOOK, ast.Load()), [self.visit(each) for each in node.args], [])
                return placed(stored, node)
            case _:
                return super().visit_Call(node)


def _has_docstring(body: Sequence[ast.stmt]) -> bool:
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level


def _is_loaded(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _is_metaclass(base: ast.expr) -> bool:
    return getattr(base, "id", getattr(base, "attr", None)) in {"type", "ABCMeta"}


def _is_class(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def _is_plain_template(node: ast.Attribute) -> bool:
    """Return whether this is `"…".format` of a literal that looks nothing up: CPython's own may serve it."""
    template = node.value
    return (
        node.attr in {"format", "format_map"}
        and isinstance(template, ast.Constant)
        and type(template.value) is str
        and not has_lookups(template.value)
    )


def _catches_import_errors(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _IMPORT_ERRORS for kind in caught)


def _spell_plainly(method: ast.FunctionDef | ast.AsyncFunctionDef, position: int) -> None:
    """Begin `method` with a statement that gives its parameter at `position` the spelling its author knows."""
    parameters = [*method.args.posonlyargs, *method.args.args]
    if len(parameters) <= position:
        return
    name = parameters[position].arg
    respelt = ast.Assign([ast.Name(name, ast.Store())], hook_call(PLAIN_NAME_HOOK, ast.Name(name, ast.Load())))
    has_docstring = isinstance(method.body[0], ast.Expr) and isinstance(method.body[0].value, ast.Constant)
    method.body.insert(int(has_docstring), placed(respelt, method.body[0]))
