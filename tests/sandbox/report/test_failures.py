"""An exception is told in the code's own lines, whatever it is made of, and with nothing of the machine."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.dialect import imports, names
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest_api import host_modules
from sealab.sandbox.job import Failure
from sealab.sandbox.report import failures
from sealab.sandbox.wire import frames

KNOWN_BY = imports, host_modules
"""A hint for a module asks what these two provide when they are imported."""


def error_of(source: str, namespace: dict[str, object] | None = None) -> BaseException:
    try:
        exec(compile(source, failures.SOURCE_NAME, "exec"), {} if namespace is None else namespace)
    except BaseException as error:
        return error
    raise AssertionError("the code did not fail")


def failure_of(source: str, **given_names: object) -> Failure:
    """What the report says of code that fails, run by plain CPython under the name that the dialect uses."""
    return failures.describe(error_of(source, given_names), source)


def test_the_traceback_holds_the_codes_own_lines_as_python_writes_them():
    failure = failure_of('def a():\n    return {}["missing"]\ndef b():\n    return a()\nresult = b()\n')
    assert (failure.type, failure.message, failure.line) == ("KeyError", "'missing'", 2)
    assert failure.traceback == (
        "Traceback (most recent call last):\n"
        '  File "<code>", line 5, in <module>\n'
        "    result = b()\n"
        '  File "<code>", line 4, in b\n'
        "    return a()\n"
        '  File "<code>", line 2, in a\n'
        '    return {}["missing"]\n'
        "KeyError: 'missing'"
    )


def test_lines_of_the_library_are_left_out_and_the_line_is_the_codes_own():
    failure = failure_of("import json\n\njson.loads('{')")
    assert failure.type == "JSONDecodeError"
    assert failure.line == 3
    assert failure.traceback.count("File ") == 1
    assert os.path.dirname(os.__file__) not in failure.traceback


def test_a_syntax_error_has_its_line_and_shows_where():
    source = "x = 1\nif x\n    y = 2\n"
    try:
        compile(source, failures.SOURCE_NAME, "exec")
    except SyntaxError as error:
        failure = failures.describe(error, source)
    assert (failure.type, failure.message, failure.line) == ("SyntaxError", "expected ':'", 2)
    assert failure.traceback == "  File \"<code>\", line 2\n    if x\n        ^\nSyntaxError: expected ':'"


def test_a_syntax_error_in_a_string_that_the_code_runs_has_the_line_that_ran_it():
    failure = failure_of("x = 1\nexec('a b')")
    assert (failure.type, failure.message, failure.line) == ("SyntaxError", "invalid syntax", 2)
    assert '  File "<string>", line 1\n    a b\n' in failure.traceback


def test_a_line_beyond_the_source_is_no_trouble():
    failure = failures.describe(error_of("\n\nraise ValueError"), "")
    assert failure.line == 3
    assert failure.traceback.endswith("in <module>\nValueError")


def test_other_sources_of_the_code_are_shown_and_the_line_is_still_of_this_one():
    namespace: dict[str, object] = {}
    earlier = "def half(n):\n    return n // 0\n"
    exec(compile(earlier, "<code 1>", "exec"), namespace)
    source = "\nhalf(4)"
    error = error_of(source, namespace)
    failure = failures.describe(error, source, earlier={"<code 1>": earlier})
    assert failure.line == 2
    assert '  File "<code 1>", line 2, in half\n    return n // 0\n' in failure.traceback
    assert "half(4)" in failures.describe(error, source).traceback
    assert "n // 0" not in failures.describe(error, source).traceback


def test_strings_that_the_code_runs_are_named():
    failure = failure_of("exec('def f():\\n    return 1 / 0')\nf()")
    assert failure.line == 2
    assert '  File "<string>", line 2, in f\nZeroDivisionError' in failure.traceback


def test_recursion_is_collapsed():
    failure = failure_of("def f(n):\n    return f(n + 1)\nf(0)")
    assert failure.type == "RecursionError"
    assert failure.line == 2
    assert failure.traceback.count("return f(n + 1)") == 3
    assert "more times]" in failure.traceback


def test_recursion_through_two_functions_is_bounded():
    failure = failure_of("def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(0)")
    assert failure.traceback.count("File ") <= 20
    assert "lines left out]" in failure.traceback
    assert failure.traceback.startswith('Traceback (most recent call last):\n  File "<code>", line 5')


def test_causes_come_first():
    failure = failure_of("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e")
    first, _, last = failure.traceback.partition("\n\nThe above exception was the direct cause of the following")
    assert first.endswith("ZeroDivisionError: division by zero")
    assert last.endswith("KeyError: 'k'")


def test_what_happened_while_handling_is_told_and_from_none_is_obeyed():
    handling = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('k')"
    assert "During handling of the above exception" in failure_of(handling).traceback
    assert "ZeroDivision" not in failure_of(f"{handling} from None").traceback


def test_fifty_thousand_chained_exceptions_are_told_by_their_ends():
    failure = failure_of(
        "err = None\n"
        "for i in range(50000):\n"
        "    try:\n"
        "        if err is None:\n"
        "            raise KeyError('origin')\n"
        "        raise ValueError(i) from err\n"
        "    except Exception as e:\n"
        "        err = e\n"
        "raise err\n"
    )
    assert failure.message == "49999"
    assert "KeyError: 'origin'" in failure.traceback
    assert "ValueError: 49998" in failure.traceback
    assert "[49994 more exceptions left out]" in failure.traceback
    assert len(failure.traceback) < 5000


def test_a_circle_of_causes_ends():
    failure = failure_of("a = ValueError(1)\nb = ValueError(2)\na.__cause__ = b\nb.__cause__ = a\nraise a")
    assert failure.traceback.count("ValueError: ") == 2


def test_a_group_shows_its_members_and_theirs():
    failure = failure_of(
        "raise ExceptionGroup('several', [ValueError('one'), ExceptionGroup('inner', [KeyError('two')])])"
    )
    assert failure.message == "several (2 sub-exceptions)"
    assert "  ---------------- 1 of 2\n  ValueError: one\n" in failure.traceback
    assert "    KeyError: 'two'" in failure.traceback


def test_a_group_of_thousands_nested_in_groups_is_bounded():
    failure = failure_of("e = ValueError('x')\nfor i in range(200):\n    e = ExceptionGroup('g', [e] * 100)\nraise e")
    assert len(failure.traceback) <= failures.TRACEBACK_CHARS_MAX + 100
    assert "left out" in failure.traceback


def test_notes_are_shown():
    failure = failure_of("e = ValueError('x')\ne.add_note('look here')\nraise e")
    assert failure.traceback.endswith("ValueError: x\nlook here")


@pytest.mark.parametrize("notes", ["5", "{1: 2}", "[5, object()]", "['\\ud800'] * 1000"])
def test_notes_of_any_kind_are_survived(notes):
    failure = failure_of(f"e = ValueError('x')\ne.__notes__ = {notes}\nraise e")
    failure.traceback.encode()
    assert len(failure.traceback) < 1000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit(3)", "<X object; its __str__ raised SystemExit>"),
        ("raise self", "<X object; its __str__ raised X>"),
        ("return 5", "<X object; its __str__ raised TypeError>"),
        ("return '\\ud800'", "\\ud800"),
    ],
)
def test_a_message_that_cannot_be_said_is_told(body, message):
    failure = failure_of(f"class X(Exception):\n    def __str__(self):\n        {body}\nraise X")
    assert failure.type == "X"
    assert failure.message == message


def test_a_long_message_is_cut_and_says_so():
    failure = failure_of("raise ValueError('m' * 10_000_000 + 'the end')")
    assert failure.message.startswith("mmm")
    assert failure.message.endswith("mthe end")
    assert "… (9998007 characters left out) …" in failure.message
    assert len(failure.message) < failures.MESSAGE_CHARS_MAX + 100
    assert len(failure.traceback) < failures.TRACEBACK_CHARS_MAX + 100


def test_lying_attributes_are_not_believed():
    failure = failure_of(
        "class X(Exception):\n"
        "    @property\n"
        "    def __traceback__(self): raise SystemExit\n"
        "    @property\n"
        "    def __cause__(self): raise SystemExit\n"
        "    @property\n"
        "    def __dict__(self): raise SystemExit\n"
        "    @property\n"
        "    def __class__(self): raise SystemExit\n"
        "    def __getattribute__(self, name): raise SystemExit\n"
        "raise X('said')"
    )
    assert (failure.type, failure.message, failure.line) == ("X", "said", 11)


def test_an_exception_named_like_the_sandboxs_own_stays_the_guests():
    failure = failure_of("class SecurityError(Exception): pass\nraise SecurityError('limit exceeded')")
    assert (failure.type, failure.message, failure.line) == ("SecurityError", "limit exceeded", 2)


@pytest.mark.parametrize("leaving", ["SystemExit(3)", "KeyboardInterrupt()", "GeneratorExit()", "MemoryError()"])
def test_what_is_no_ordinary_exception_is_described_too(leaving):
    failure = failure_of(f"x = 1\nraise {leaving}")
    assert failure.type == leaving.partition("(")[0]
    assert failure.line == 2


def test_paths_of_the_machine_are_taken_out_of_messages():
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(failures.__file__))))
    paths = [sys.executable, json_path(), f"{sys.prefix}/x.py", f"{package}/y.py", "/home/me/v/lib/python3.11/a.py"]
    failure = failure_of("raise ValueError(' '.join(paths))", paths=paths)
    for hidden in (sys.prefix, package, "/home/me", os.path.dirname(os.__file__)):
        assert hidden not in failure.message
        assert hidden not in failure.traceback
    assert "json/__init__.py" in failure.message


def test_a_failed_import_of_a_name_does_not_tell_where_the_module_lies():
    failure = failure_of("from json import no_such_thing")
    assert "no_such_thing" in failure.message
    assert os.path.dirname(json_path()) not in failure.message


def json_path() -> str:
    import json

    return json.__file__


def test_the_codes_own_paths_stay():
    failure = failure_of("raise ValueError('no such file: /workspace/data/a.csv')")
    assert failure.message == "no such file: /workspace/data/a.csv"


def test_memory_addresses_are_taken_out_of_messages():
    assert "0x" not in failure_of("raise ValueError(object())").message


def test_private_names_are_told_as_they_were_written():
    name = names.mangle("_price")
    failure = failure_of(f"class A: pass\nA().{name}")
    assert failure.message == "'A' object has no attribute '_price'"
    assert names.PREFIX not in failure.traceback.replace(f"A().{name}", "")


def test_a_refusal_tells_its_line_its_reason_and_what_to_write():
    refusal = Refused(
        "The module os is not available.", line=2, type="ImportError", instead="use read_file", module="os"
    )
    failure = failures.describe_refusal(refusal, "x = 1\nimport os\n")
    assert failure == Failure(
        type="ImportError",
        message="The module os is not available.",
        line=2,
        hint="Use read_file.",
        traceback='  File "<code>", line 2\n    import os\nImportError: The module os is not available.',
    )


def test_a_refusal_while_the_code_runs_is_told_by_its_own_type():
    refusal = Refused("The attribute mro is refused.", type="SecurityError", instead="use isinstance")
    failure = failure_of("\nraise refusal", refusal=refusal)
    assert (failure.type, failure.message, failure.line) == ("SecurityError", "The attribute mro is refused.", 2)
    assert failure.hint == "Use isinstance."


def test_a_refused_module_without_advice_gets_some():
    failure = failures.describe_refusal(Refused("No.", module="strange_package"), "import strange_package")
    assert failure.hint == "Do without the module, which is not installed here."
    assert failure.line is None
    assert failure.traceback is None


@given(st.lists(st.tuples(st.sampled_from(["Exception", "KeyError", "SyntaxError", "OSError"]), st.text()), max_size=6))
def test_any_chain_of_any_messages_fits_a_frame(links):
    error: BaseException | None = None
    for kind, message in links:
        raised = {"Exception": Exception, "KeyError": KeyError, "SyntaxError": SyntaxError, "OSError": OSError}[kind](
            message
        )
        raised.__context__ = error
        error = raised
    failure = failures.describe(error or ValueError(), "")
    frame = frames.encode(
        {
            "t": "done",
            "status": "error",
            "result": None,
            "error": {
                "type": failure.type,
                "message": failure.message,
                "line": failure.line,
                "hint": failure.hint,
                "traceback": failure.traceback,
            },
            "notes": {},
        }
    )
    assert frames.child_frame(frame[frames.HEADER_BYTES :]).error == failure


@pytest.mark.parametrize(
    "attributes",
    [
        {"lineno": "3", "offset": None, "text": 5, "filename": b"x"},
        {"lineno": -1, "offset": 10**30, "text": "\ud800", "filename": "/etc/passwd"},
        {"lineno": 10**30, "offset": 1, "text": "x" * 100_000, "filename": "<code>"},
        {"lineno": 2, "offset": 10**9, "text": "", "filename": "<code>"},
        {"msg": object(), "lineno": True},
    ],
)
def test_a_syntax_error_of_the_codes_own_making_is_survived(attributes):
    error = SyntaxError("made up")
    for name, value in attributes.items():
        setattr(error, name, value)
    failure = failures.describe(error, "x = 1")
    failure.traceback.encode()
    assert "/etc/passwd" not in failure.traceback
    assert len(failure.traceback) < 1000
