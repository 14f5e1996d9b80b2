"""Standard streams: what is written where, and what code may put in their place."""

from __future__ import annotations

import pytest

from ...guest_code import run
from ...sealed import gives_what_python_gives


def test_what_an_earlier_run_put_there_is_gone():
    run("import io, sys\nsys.stdout = sys.stderr = io.StringIO()")
    assert run("print('seen')").output == "seen\n"


def test_input_reads_what_was_put_in_its_place():
    ran = run("""
    import io, sys
    sys.stdin = io.StringIO("Ann\\nBob\\n")
    names = [input("name? "), sys.stdin.readline()]
    sys.stdin = sys.__stdin__
    names
    """)
    assert ran.value == ["Ann", "Bob\n"]
    assert ran.output == "name? "
    with pytest.raises(EOFError, match="context_vars"):
        run("input('who?')")


def test_arguments_may_be_assigned_and_nothing_else_of_sys():
    assert run("import sys\nsys.argv = ['a', '-v']\nsys.argv[1:]").value == ["-v"]
    run("import sys\nsys.argv = ['']")
    with pytest.raises(AttributeError, match="read-only"):
        run("import sys\nsys.platform = 'x'")


def test_reports_of_errors_and_warnings_go_to_standard_error():
    ran = run("""
    import logging, traceback, unittest, warnings
    warnings.simplefilter("always")
    warnings.warn("careful")
    logging.getLogger("x").warning("logged")
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
    class T(unittest.TestCase):
        def test_it(self): pass
    unittest.main(argv=["x"], exit=False)
    """)
    assert ran.output == ""
    for said in ("UserWarning: careful", "logged", "ZeroDivisionError: division by zero", "Ran 1 test"):
        assert said in ran.stderr


def test_help_prints():
    ran = run('''
    def area(r: float) -> float:
        """Area of a circle."""
    help(area)
    ''')
    assert ran.output == (
        "Help on function area in module __main__:\n\narea(r: float) -> float\n    Area of a circle.\n\n"
    )
    assert "len(obj, /)" in run("help(len)").output
    assert "sqrt" in run("import math\nhelp(math)").output
    assert "class A" in run("class A:\n    def m(self): 'Does m.'\nhelp(A())").output


AS_IN_PYTHON = {
    "the two streams are apart": """
    import sys
    print("out"); print("err", file=sys.stderr)
    sys.stdout.write("o\\n"); sys.stderr.write("e\\n")
    print("binary", file=sys.stderr, flush=True); sys.stdout.buffer.write(b"b\\n")
    """,
    "redirections nest and are undone": """
    import contextlib, io, sys
    a, b, e = io.StringIO(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(a), contextlib.redirect_stderr(e):
        print("a1"); print("e1", file=sys.stderr)
        with contextlib.redirect_stdout(b):
            print("b1"); sys.stdout.write("b2\\n")
        print("a2", file=sys.stdout)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                print("to e")
                raise ValueError
        except ValueError:
            pass
    with contextlib.redirect_stdout(None):
        print("nowhere")
    print("end")
    [a.getvalue(), b.getvalue(), e.getvalue()]
    """,
    "a stream may be assigned and sees each part": """
    import sys
    class Tee:
        def __init__(self, stream):
            self.stream, self.parts = stream, []
        def write(self, text):
            self.parts.append(text)
            return self.stream.write(text.upper())
        def flush(self):
            pass
    before = sys.stdout
    sys.stdout = tee = Tee(sys.stdout)
    print("a", 1, sep="-")
    sys.stdout = sys.__stdout__
    print("b")
    [tee.parts, sys.stdout is before]
    """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
