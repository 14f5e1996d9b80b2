"""All that the dialect refuses of a program, in one pass over a tree that is then thrown away."""

# ruff: noqa: N802 - the methods are named for the syntax nodes

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import Final, cast

from ..errors import Refused
from ..report.substitutes import instead_of
from . import imports
from .transformer import Transformer

REFUSALS_MAX: Final = 20
"""How many are found at most."""


class RefusalFinder(Transformer):
    """Goes on after a refusal. `found` are the refusals in the order of the source, each message once.

    Functions of modules that the modules here do not have are among them, which the code would miss only later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Refused] = []
        self._said: set[str] = set()
        self._modules: dict[str, str] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        """Visit a node; where it is refused itself, look at what stands in it."""
        try:
            return cast("ast.AST", super().visit(node))
        except Refused as refused:
            self._note(refused)
        # A method of the base class refuses a node before it looks at what is in it.
        for child in ast.iter_child_nodes(node):
            self.visit(child)
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Note under which names modules stand before anything is judged."""
        self._modules = dict(_imported(node))
        return super().visit_Module(node)

    def visit_Import(self, node: ast.Import) -> Sequence[ast.stmt]:
        """Judge each module by itself."""
        for alias in node.names:
            self._try(super().visit_Import, ast.copy_location(ast.Import([alias]), node))
        return [ast.copy_location(ast.Pass(), node)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Sequence[ast.stmt]:
        """Judge each name by itself."""
        for alias in node.names:
            each = ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node)
            if node.module != "__future__":
                self._try(super().visit_ImportFrom, each)
        return [ast.copy_location(ast.Pass(), node)]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Note what a module here does not have and there is something to use instead of."""
        module = self._modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module is not None and imports.is_importable(module) and imports.is_left_out(module, node.attr):
            message, instead = f"module {module!r} has no attribute {node.attr!r} here", f"{module}.{node.attr}"
            self._note(Refused(message, line=node.lineno, type="AttributeError", instead=instead_of(instead)))
        return super().visit_Attribute(node)

    def _try(self, visit: object, node: ast.stmt) -> None:
        try:
            visit(node)  # type: ignore[operator]  # one of the base class's two methods for imports
        except Refused as refused:
            self._note(refused)

    def _note(self, refused: Refused) -> None:
        if len(self.found) < REFUSALS_MAX and refused.message not in self._said:
            self._said.add(refused.message)
            self.found.append(refused)


def _imported(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that only imports bind, with the module that it stands for."""
    bound = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name
                if name not in bound and "." not in name and name not in vars(builtins):
                    yield name, alias.name
