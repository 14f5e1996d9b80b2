"""The language: what compiles, what is refused and how that is said, and what a run returns."""

from __future__ import annotations

import dis
from textwrap import dedent
from types import CodeType

import pytest

from sealab.sandbox.dialect.compiling import LAST_VALUE, compile_program, guarded_eval, guarded_exec
from sealab.sandbox.dialect.guards import SecurityError
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST

from ..guest_code import value_of as run
from ..sealed import run_sealed


def all_code(code: CodeType) -> list[CodeType]:
    return [code, *(inner for item in code.co_consts if isinstance(item, CodeType) for inner in all_code(item))]


def test_names_that_stand_in_the_source_compile_to_cpythons_own_instructions() -> None:
    source = dedent(
        """
        class A:
            def __init__(self):
                self._x = 1
                self.items = [1]
            def f(self, other):
                self._x += other._x
                self.items[0] += 1
                for a, (b, *c) in self.items:
                    print(a.real, f"{b:>3}", "{} {:>3}".format(a, b), len(self.items))
                return [v.name for v in other if v] + self.__len__()
        """
    )
    ours = [dis.Bytecode(code) for code in all_code(compile_program(source).code)]
    theirs = [dis.Bytecode(code) for code in all_code(compile(source, "<code>", "exec", dont_inherit=True))]
    assert [[step.opname for step in code] for code in ours] == [[step.opname for step in code] for code in theirs]


@pytest.mark.parametrize(
    ("source", "line", "kind", "says", "instead"),
    [
        ("x = 1\nimport subprocess", 2, "ImportError", "subprocess", None),
        ("from json import codecs", 1, "ImportError", "codecs", None),
        ("def f(x):\n    return x.__globals__", 2, "SecurityError", "__globals__", "arguments"),
        ("try:\n    pass\nexcept* ValueError:\n    pass", 1, "SecurityError", "except*", "ExceptionGroup"),
        ("class M(type):\n    def __iter__(cls): pass", 1, "SecurityError", "metaclass", "__init_subclass__"),
        (
            "class A:\n    def __subclasscheck__(self): pass",
            2,
            "SecurityError",
            "__subclasscheck__",
            "__subclasshook__",
        ),
        ("match 1:\n    case str(format=f): pass", 2, "SecurityError", "format", "if"),
        ("\n\n_getattr_ = 1", 3, "SecurityError", "_getattr_", "another name"),
        ("g.gi_frame", 1, "SecurityError", "gi_frame", None),
        ("from . import x", 1, "ImportError", "relative", "full name"),
    ],
)
def test_a_refusal_names_the_line_the_reason_and_what_to_write_instead(
    source: str, line: int, kind: str, says: str, instead: str | None
) -> None:
    with pytest.raises(Refused) as refusal:
        compile_program(source)
    refused = refusal.value
    assert (refused.line, refused.type) == (line, kind)
    assert says in refused.message
    if instead is not None:
        assert refused.instead is not None
        assert instead in refused.instead


def test_a_refused_import_names_its_module() -> None:
    with pytest.raises(Refused) as refusal:
        compile_program("import numpy.linalg as la")
    assert refusal.value.module == "numpy.linalg"


@pytest.mark.parametrize(
    "source",
    ["x = = 1", "def f(:", "return 1", "x = 1\0", "'\ud800'", "\ud800 = 1", "nonlocal x", "await", "9" * 5000, "'''"],
)
def test_what_is_no_python_is_a_plain_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError):
        compile_program(source)


@pytest.mark.parametrize(
    "source", ["+".join("1" * 60_000), "-" * 60_000 + "1", "a" + ".b" * 60_000, "f" + "()" * 60_000]
)
def test_hostile_nesting_is_refused_and_crashes_nothing(source: str) -> None:
    with pytest.raises(Refused, match="nested too deeply"):
        compile_program(source)


@pytest.mark.parametrize("source", [" + ".join("1" * 700), "x = " + "[" * 90 + "]" * 90, "\n".join(["x = 1"] * 20_000)])
def test_long_code_compiles(source: str) -> None:
    assert compile_program(source).code


def test_source_must_be_a_string() -> None:
    for source in (b"1", None, compile("1", "x", "eval")):
        with pytest.raises(TypeError):
            compile_program(source)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", 2),
        ("x = 5\nx", 5),
        ("x = 5", None),
        ("result = 3\n4", 3),
        ("if True:\n    7", None),
        ("'text'", "text"),
        ("def f():\n    global result\n    result = 8\nf()", 8),
        ("for result in range(3): pass", 2),
        ("import asyncio\nawait asyncio.sleep(0, 9)", 9),
        ("", None),
        ("pass", None),
    ],
)
def test_a_run_returns_result_or_else_the_last_expression(source: str, value: object) -> None:
    assert run(source) == value


def test_only_a_result_of_this_run_counts() -> None:
    namespace = new_namespace()
    assert run("result = 5", namespace) == 5
    assert run("result + 1", namespace) == 6
    assert run("if False:\n    result = 9", namespace) is None
    assert run("result = 5", namespace) == 5
    assert run("result += 1", namespace) == 6
    assert run("x = 1", namespace) is None
    with pytest.raises(ZeroDivisionError):
        run("1 / 0", namespace)
    assert run("result", namespace) == 6
    assert "result" not in namespace["__builtins__"]  # type: ignore[operator]  # a dictionary


def test_the_last_value_has_a_name_that_source_cannot_spell_and_does_not_outlive_its_run() -> None:
    namespace = new_namespace()
    assert run("5", namespace) == 5
    assert LAST_VALUE not in namespace
    assert not LAST_VALUE.isidentifier()


def test_variables_survive_from_one_run_to_the_next() -> None:
    namespace = new_namespace()
    run("class A:\n    def __init__(self): self._x = 1\ndef f(a): return a._x\nimport math as _m", namespace)
    assert run("f(A()) + _m.floor(1.5)", namespace) == 2


def test_namespaces_do_not_share_their_builtins() -> None:
    one, two = new_namespace(), new_namespace()
    run("result = 1", one)
    assert one["__builtins__"] is not two["__builtins__"]
    assert run("try:\n    result\nexcept NameError:\n    7", two) is None
    assert run("len = 3\nlen", one) == 3
    assert run("len('ab')", two) == 2


def test_helpers_are_variables_of_the_namespace() -> None:
    assert run("double(4)", new_namespace({"double": lambda x: x * 2})) == 8


def test_exec_and_eval_speak_the_same_dialect() -> None:
    GUEST.namespace = new_namespace()
    for source in ("().__class__.__globals__", "__import__('subprocess')", "(lambda: 0).__code__"):
        with pytest.raises((SecurityError, ImportError)):
            guarded_eval(source)
    with pytest.raises(ImportError, match="subprocess"):
        guarded_exec("import subprocess")
    with pytest.raises(ImportError):
        run("exec('import ' + 'subprocess')")


def test_exec_in_a_dictionary_of_the_guests_runs_under_guarded_builtins() -> None:
    assert run(
        """
        ns = {"y": 2}
        exec("def f(): return type(print).__name__, y", ns)
        ns["y"] = 3
        exec("z = f()", ns)
        names = {}
        exec("import json\\nq = 1", {}, names)
        result = [ns["z"], sorted(names), eval("y", ns), eval("x + y", {"x": 1}, {"y": 2})]
        """
    ) == [("function", 3), ["json", "q"], 3, 3]


def test_eval_called_by_the_host_never_sees_the_hosts_variables() -> None:
    GUEST.namespace = new_namespace()
    hidden = "host"
    with pytest.raises(NameError):
        guarded_eval("hidden")
    assert hidden


def test_an_import_that_the_code_can_do_without_fails_at_run_time() -> None:
    assert run(
        """
        from contextlib import suppress
        have = []
        try:
            import numpy
            have.append("numpy")
        except ModuleNotFoundError as error:
            have.append(error.name)
        try:
            from json import nothing
        except ImportError:
            have.append("no nothing")
        if have:
            try:
                import pandas as pd
            except:
                pd = None
        result = have, pd
        """
    ) == (["numpy", "no nothing"], None)
    with pytest.raises(Refused):
        compile_program("try:\n    import numpy\nexcept ValueError:\n    pass")
    with pytest.raises(Refused):
        compile_program("try:\n    def f():\n        import numpy\nexcept ImportError:\n    pass")


def test_warnings_of_the_compiler_stay_inside() -> None:
    assert run("x = '\\d'\n1 is 1\nx") == "\\d"


def test_no_finalizer_runs_while_code_is_compiled() -> None:
    source = """
        import gc, sys
        here = sys.getrecursionlimit()
        limits, made = set(), []
        class Final:
            def __del__(self):
                limits.add(sys.getrecursionlimit())
                if len(made) < 60_000: make()
        def make():
            made.append(1)
            final = Final()
            final.me = final
        lines = "".join(f"    a.__class__.mro; a.format; a._x{n} = a.__init__\\n" for n in range(3000))
        for _ in range(3):
            make()
            compile(f"def f(a):\\n{lines}", "x", "exec")
        result = sorted(limits - {here})
        """
    assert run_sealed(source) == []


@pytest.mark.parametrize("collects", [True, False])
def test_compiling_leaves_the_collector_as_it_was(*, collects: bool) -> None:
    source = """
        import ast, gc
        (gc.enable if COLLECTS else gc.disable)()
        result = []
        for call in (
            lambda: exec("1"), lambda: exec("1 +"), lambda: exec("a.__globals__"), lambda: exec("(" * 9999),
            lambda: compile("1", "x", "exec"), lambda: ast.literal_eval("[1]"), lambda: ast.literal_eval("[1"),
        ):
            try: call()
            except Exception: pass
            result.append(gc.isenabled())
        """
    assert run_sealed(source.replace("COLLECTS", str(collects))) == [collects] * 7
