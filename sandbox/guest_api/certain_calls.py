"""Which calls of a program are made whenever it runs to its end: none that a condition or an empty list may leave out.

What refuses a program for a call asks this first: a program that would never have made the call must run. So all
that is doubtful counts as not certain: what stands under `if`, `except` or `with`, in a loop whose items are not
written in the program, behind a line that may leave, in a function that nothing certain calls. A program that names
`exit` or `SystemExit` has no certain calls at all, which is for the caller to see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_FUNCTIONS_MAX: Final = 200
"""How many functions are followed, which may each call the next."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def certain_calls(tree: ast.Module, bound: Mapping[str, int], imported: Mapping[str, int]) -> dict[int, bool]:
    """Return the certain calls by their `id`, each with whether its failure ends the program.

    That is so for a call that is awaited at once, also as an argument of `gather` or `wait_for`. `bound` counts how
    often the program binds each name, `imported` how often by an import.
    """
    functions = {
        each.name: each
        for each in tree.body
        if isinstance(each, _Function) and bound.get(each.name) == 1 and not each.decorator_list and not _yields(each)
    }
    reading = _CallFinder(functions, {name for name, times in bound.items() if imported.get(name) != times})
    reading.block(tree.body)
    return reading.found


@dataclass(slots=True)
class _CallFinder:
    functions: Mapping[str, _Function]
    rebound: set[str]
    """Names that the program binds otherwise than by an import."""
    found: dict[int, bool] = field(default_factory=dict)
    followed: set[str] = field(default_factory=set)
    """Functions that are read already: a second call of one makes no other calls certain."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)
            if _may_leave(statement):
                return

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.For(iter=items, body=body) | ast.AsyncFor(iter=items, body=body):
                self._expression(items)
                if self._is_filled(items):
                    self.block(body)
            case ast.While(test=test, body=body):
                self._expression(test)
                if isinstance(test, ast.Constant) and test.value:
                    self.block(body)
            case ast.If(test=test, body=body):
                self._expression(test)
                if _is_main(test):
                    self.block(body)
            case ast.With(items=[ast.withitem(context_expr=context), *_], body=body):
                self._expression(context)
                if all(self._calls(item.context_expr, "open") for item in statement.items):
                    self.block(body)
            case ast.Try(handlers=[], body=body, finalbody=last) if not any(map(_may_leave, last)):
                self.block(body)
            case ast.Assert(test=value) | ast.Match(subject=value):
                self._expression(value)
            case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return():
                if statement.value is not None:
                    self._expression(statement.value)

    def _expression(self, whole: ast.expr) -> None:
        """Take in what an expression evaluates in any case. It may nest without a limit, so it is kept in a list."""
        left: list[tuple[ast.AST, bool]] = [(whole, False)]
        while left:
            node, awaited = left.pop()
            match node:
                case ast.Await(value=value):
                    left.append((value, True))
                case ast.Call():
                    self.found[id(node)] = awaited
                    passed = awaited and self._waits_for_all(node)
                    left += [(each, passed) for each in self._arguments(node)]
                    left.append((node.func, False))
                    self._called(node, awaited=awaited)
                case ast.Starred(value=value) if awaited:
                    left += [(each, True) for each in self._items(value)]
                case ast.BoolOp(values=[value, *_]) | ast.IfExp(test=value):
                    left.append((value, False))
                case ast.Compare(left=value, comparators=[other, *_]):
                    left += [(value, False), (other, False)]
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    left.append((node.generators[0].iter, False))
                    if not isinstance(node, ast.GeneratorExp):
                        left += [(each, False) for each in self._items(node)]
                case ast.Lambda():
                    pass
                case _:
                    left += [(each, False) for each in ast.iter_child_nodes(node)]

    def _called(self, call: ast.Call, *, awaited: bool) -> None:
        """Go on in a function of the program's own."""
        if self._is_of_asyncio(call.func, "run") and call.args:
            inner = call.args[0]
            if isinstance(inner, ast.Call):
                self.found[id(inner)] = True
                self._called(inner, awaited=True)
            return
        function = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if function is None or isinstance(function, ast.AsyncFunctionDef) is not awaited:
            return
        if function.name not in self.followed and len(self.followed) < _FUNCTIONS_MAX:
            self.followed.add(function.name)
            self.block(function.body)

    def _arguments(self, call: ast.Call) -> list[ast.expr]:
        if self._is_of_asyncio(call.func, "run"):
            return [each for inner in call.args[:1] if isinstance(inner, ast.Call) for each in self._arguments(inner)]
        return [*call.args, *(each.value for each in call.keywords)]

    def _waits_for_all(self, call: ast.Call) -> bool:
        """Return whether to await a call is to await its arguments, so that what fails there fails here."""
        if self._is_of_asyncio(call.func, "wait_for"):
            return True
        return self._is_of_asyncio(call.func, "gather") and not call.keywords

    def _is_of_asyncio(self, function: ast.expr, name: str) -> bool:
        match function:
            case ast.Attribute(value=ast.Name(id="asyncio" as root), attr=attribute) if attribute == name:
                return root not in self.rebound
            case ast.Name(id=root) if root == name:
                return root not in self.rebound
        return False

    def _items(self, value: ast.expr) -> list[ast.expr]:
        """Return what is evaluated for the items of a list, in any case."""
        match value:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return items
            case (
                ast.ListComp(elt=item, generators=[ast.comprehension(iter=items, ifs=[])])
                | ast.SetComp(elt=item, generators=[ast.comprehension(iter=items, ifs=[])])
                | ast.GeneratorExp(elt=item, generators=[ast.comprehension(iter=items, ifs=[])])
                | ast.DictComp(value=item, generators=[ast.comprehension(iter=items, ifs=[])])
            ) if self._is_filled(items):
                return [item]
        return []

    def _is_filled(self, items: ast.expr) -> bool:
        match items:
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]) | ast.Set(elts=[first, *_]):
                return not isinstance(first, ast.Starred)
            case ast.Call(args=[ast.Constant(value=int(count))], keywords=[]):
                return self._calls(items, "range") and count > 0
            case ast.Call(args=[ast.Constant(value=int(start)), ast.Constant(value=int(stop))], keywords=[]):
                return self._calls(items, "range") and start < stop
            case ast.Call(args=[inner, *_]):
                return self._calls(items, "enumerate") and self._is_filled(inner)
        return False

    def _calls(self, value: ast.expr, name: str) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=called)):
                return called == name and name not in self.rebound
        return False


def _may_leave(statement: ast.stmt, *, in_loop: bool = False) -> bool:
    """Return whether what follows a statement in its block may be passed over."""
    match statement:
        case ast.Return() | ast.Raise():
            return True
        case ast.Break() | ast.Continue():
            return not in_loop
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return False
        case ast.For() | ast.AsyncFor() | ast.While():
            return any(_may_leave(each, in_loop=True) for each in statement.body) or any(
                _may_leave(each, in_loop=in_loop) for each in statement.orelse
            )
    return any(_may_leave(each, in_loop=in_loop) for each in _inner(statement))


def _inner(statement: ast.AST) -> Iterator[ast.stmt]:
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, ast.stmt):
            yield each
        elif isinstance(each, ast.ExceptHandler | ast.match_case):
            yield from each.body


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
    return False


def _yields(function: _Function) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
