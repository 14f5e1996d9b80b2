"""`ast` as guest code: trees in classes of the program's own, as those of Python's own module."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import pytest

from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades.stand_ins import sealab_ast_
from sealab.sandbox.errors import Refused

from ..guest_code import run

SOURCE = '''
"""What it is.

    More of it.
"""
import os.path as p, sys
from . import x
async def f(a, /, b: int = 1, *c, d=2, **e) -> str:
    async with a as b, c: await d
    async for i in e:
        yield f"{i!r:>{b}} {{}}" if i else None
    return (lambda q: q ** -2)(3)
@f
class A(B, metaclass=C):
    """Of A."""
    x: list[int] = [y for y in z if y if not y]
    def g(self):
        global k
        try:
            raise E from None
        except (E, F) as error:
            del self.x[1:2, ...], k
        else: pass
        finally: assert a < b <= c, "no"
        while a and b or not c: break
        return {**a, 1: {2}, "é": b"x", 3j: 1.5}
match é:
    case [1, *r] | {"a": 2, **s} if r: pass
    case A(1, x=None) as t: (u := 4)
'''


def told(source: str) -> Any:
    return run(f"text = {SOURCE!r}\n{textwrap.dedent(source)}").value


def test_a_tree_is_written_and_dumped_as_pythons_own() -> None:
    tree = ast.parse(SOURCE)
    assert told("import ast\ntree = ast.parse(text)\nresult = [ast.unparse(tree), ast.dump(tree, indent=1)]") == [
        ast.unparse(tree),
        ast.dump(tree, indent=1),
    ]
    places = ast.dump(tree, annotate_fields=False, include_attributes=True)
    assert told("import ast\nresult = ast.dump(ast.parse(text), False, True)") == places


def test_a_walk_meets_the_nodes_in_pythons_order() -> None:
    order = """
        import ast
        class Names(ast.NodeVisitor):
            def __init__(self): self.met = []
            def visit_Name(self, node): self.met.append(node.id)
            def visit_FunctionDef(self, node):
                self.met.append(node.name)
                self.generic_visit(node)
        names = Names()
        names.visit(ast.parse(text))
        result = [[type(each).__name__ for each in ast.walk(ast.parse(text))], names.met]
    """
    space: dict[str, Any] = {"text": SOURCE}
    exec(textwrap.dedent(order), space)
    assert told(order) == space["result"]


def test_a_place_leads_to_its_text() -> None:
    wanted = [ast.get_source_segment(SOURCE, each) for each in ast.parse(SOURCE).body]
    assert told("import ast\nresult = [ast.get_source_segment(text, each) for each in ast.parse(text).body]") == wanted
    text = "x = [\n   1,\r\n 'é', ü]"
    tree: Any = ast.parse(text)
    code = f"import ast\ntext = {text!r}\nlist = ast.parse(text).body[0].value\n"
    assert run(code + "result = ast.get_source_segment(text, list.elts[2])").value == "ü"
    padded = ast.get_source_segment(text, tree.body[0].value, padded=True)
    assert run(code + "result = ast.get_source_segment(text, list, padded=True)").value == padded


def test_docstrings_are_clean_unless_asked_otherwise() -> None:
    tree: Any = ast.parse(SOURCE)
    clean, raw = ast.get_docstring(tree), ast.get_docstring(tree, clean=False)
    assert told(
        "import ast\ntree = ast.parse(text)\nresult = [ast.get_docstring(tree), ast.get_docstring(tree, False)]"
    ) == [
        clean,
        raw,
    ]
    assert clean == inspect.cleandoc(raw or "")


def test_a_transformer_exchanges_removes_and_multiplies() -> None:
    assert told("""
        import ast
        class Change(ast.NodeTransformer):
            def visit_Constant(self, node):
                return ast.copy_location(ast.Constant(node.value * 2), node) if node.value == 3 else node
            def visit_Pass(self, node): return None
            def visit_Expr(self, node): return [node, node]
            def visit_Return(self, node):
                self.generic_visit(node)
                return node
        tree = ast.fix_missing_locations(Change().visit(ast.parse("a = 3\\npass\\nf()\\ndef g(): return 3")))
        result = [ast.unparse(tree).split("\\n"), ast.increment_lineno(tree, 4).body[0].lineno, eval(ast.unparse(tree.body[0].value))]
    """) == [["a = 6", "f()", "f()", "", "def g():", "    return 6"], 5, 6]


def test_nodes_are_made_by_hand_and_fit_patterns() -> None:
    assert told("""
        import ast, copy
        made = ast.Call(ast.Name("f", ast.Load()), [ast.Constant(1)], keywords=[])
        match ast.parse("1 + x", mode="eval").body:
            case ast.BinOp(ast.Constant(number), ast.Add(), ast.Name(name)): pass
        class Own(ast.Name): pass
        try: ast.Name("a", "b", "c")
        except TypeError: many = True
        result = [ast.unparse(made), number, name, ast.arg("a").annotation, isinstance(ast.Add(), ast.operator), ast.unparse(Own("o")),
                  ast.unparse(copy.deepcopy(made)), many, ast.If._fields, ast.If.__module__, "If" in dir(ast), hasattr(ast, "Iff")]
    """) == ["f(1)", 1, "x", None, True, "o", "f(1)", True, ("test", "body", "orelse"), "ast", True, False]


def test_literals_are_read_from_text_and_from_trees() -> None:
    assert told("""
        import ast
        result = [ast.literal_eval(" [1, -2j, {'a': (None, ...)}]"), ast.literal_eval(ast.parse("{1}", mode="eval")), ast.literal_eval(ast.Constant(3))]
    """) == [[1, -2j, {"a": (None, ...)}], {1}, 3]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ast.parse('1 +')", SyntaxError),
        ("ast.parse('(' * 500)", SyntaxError),
        ("ast.parse(3)", TypeError),
        ("ast.parse('1', mode='code')", ValueError),
        ("ast.parse('1', feature_version=(2, 7))", ValueError),
        ("ast.literal_eval('f()')", ValueError),
        ("ast.literal_eval('1 +')", SyntaxError),
        ("ast.unparse('x')", TypeError),
        ("ast.unparse(ast.Name(object()))", TypeError),
        ("ast.unparse(ast.List([int], ast.Load()))", TypeError),
        ("ast.get_docstring(ast.Name('x'))", TypeError),
        ("x = []\nx.append(x)\nast.unparse(ast.List(x, ast.Load()))", RecursionError),
        ("compile(ast.parse('1'), 'x', 'exec')", TypeError),
    ],
)
def test_what_is_no_tree_is_refused(code: str, error: type[Exception]) -> None:
    with pytest.raises((error, Refused)):
        told(f"import ast\n{code}")


def test_an_error_shows_the_source_and_no_file() -> None:
    found = told("""
        import ast
        try: ast.parse("a b", filename="/etc/hostname")
        except SyntaxError as error: result = [error.filename, error.text.strip(), error.lineno]
    """)
    assert found == ["/etc/hostname", "a b", 1]


@pytest.mark.parametrize(
    "data",
    [
        ("Name", {"id": "x"}, 3),
        ["Name", {"id": "x"}],
        ("AST_", {}),
        ("NodeVisitor", {}),
        ("Name", {"id": ast.Name("x")}),
        ("Name", {"id": type("Text", (str,), {})("x")}),
        (type("Text", (str,), {})("Name"), {}),
        ("Name", type("Held", (dict,), {})(id="x")),
        type("Pair", (tuple,), {})(("Name", {"id": "x"})),
    ],
)
def test_nothing_but_plain_data_becomes_a_tree(data: Any) -> None:
    for make in (sealab_ast_.unparse, lambda each: sealab_ast_.dump(each, True, False, None), sealab_ast_.literal):
        with pytest.raises((TypeError, ValueError)):
            make(data)


def test_names_that_are_no_field_are_left_out() -> None:
    made = sealab_ast_._tree_of(("Name", {"id": "x", "__class__": "y", "other": 1}))
    assert type(made) is ast.Name
    assert vars(made) == {"id": "x"}


def test_the_host_module_gives_plain_data_alone() -> None:
    waiting: list[object] = [sealab_ast_.parse(SOURCE, "x", "exec", False, -1), sealab_ast_.kinds()]
    while waiting:
        each = waiting.pop()
        assert type(each) in {tuple, list, dict, str, bytes, int, float, complex, bool, type(None), type(...)}
        waiting += each if type(each) in {tuple, list} else [*each, *each.values()] if type(each) is dict else ()
    assert "_sealab_ast" in facades.exports()
