"""The frequent errors come with a sentence that says what to write instead."""

from __future__ import annotations

import os
import sys

import pytest

from sealab.sandbox.dialect import compiling, namespace
from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.report import failures, hints_by_message, hints_by_type
from sealab.sandbox.report.lookups import Scene


def hint_of(source: str) -> str | None:
    """The hint of code that fails under the dialect."""
    try:
        compiling.run_program(compiling.compile_program(source), namespace.new_namespace({}))
    except Refused as refusal:
        return failures.describe_refusal(refusal, source).hint
    except BaseException as error:
        return failures.describe(error, source).hint
    raise AssertionError("the code did not fail")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("async def f(): ...\nc = f()\ntry:\n    c['a']\nfinally:\n    c.close()", "`await`"),
        ("async def f(): ...\nc = f()\ntry:\n    len(c)\nfinally:\n    c.close()", "`await`"),
        ("async def f(): ...\nc = f()\ntry:\n    c.items\nfinally:\n    c.close()", "`await`"),
        ("async def f(): ...\nc = f()\ntry:\n    c + 1\nfinally:\n    c.close()", "`await`"),
        ("async def f(): ...\nc = f()\ntry:\n    json.dumps(c)\nfinally:\n    c.close()", "`await`"),
        ("await 5", "leave out `await`"),
        ("await len('abc')", "leave out `await`"),
        ("async for x in [1]: pass", "plain `for`"),
        ("async def g():\n    yield 1\nfor x in g(): pass", "`async for`"),
    ],
)
def test_a_forgotten_await_or_one_too_many_is_told(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("found = {'n': 1, 'tools': [{'a': 1}]}\nfor t in found:\n    t['a']", "loop over found['tools']."),
        ("found = {'n': 1, 'tools': [{'a': 1}]}\n[t['a'] for t in found]", "loop over found['tools']."),
        ("found = {'x': {'a': 1}}\nfor t in found:\n    t['a']", "loop over found.items() or found.values()."),
        ("found = {'n': 1, 'tools': [{'a': 1}]}\n[t.a for t in found]", "loop over found['tools']."),
        ("for t in 'ab':\n    t['a']", "if it is JSON"),
        ("def search_tools(q): return {'tools': []}\nsearch_tools('x')[0]", "search_tools(…)['tools']"),
        ("def search_tools(q): return {'tools': []}\nsearch_tools('x')[:3]", "search_tools(…)['tools']"),
        (
            "def search_tools(q): return {'tools': []}\nfor t in search_tools('x'):\n    t['a']",
            "search_tools('x')['tools']",
        ),
        (
            "def search_tools(q): return {'tools': []}\n[t['a'] for t in search_tools('x')]",
            "search_tools('x')['tools']",
        ),
    ],
)
def test_a_dict_that_was_taken_for_a_list_is_told_with_where_the_list_is(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("price = 3\nprint(pirce)", "Did you mean 'price'?"),
        ("def f():\n    total = 1\n    return totel\nf()", "Did you mean 'total'?"),
        ("prnt(1)", "Did you mean 'print'?"),
        ("Path('a')", "`from pathlib import Path`"),
        ("heapq.heappush([], 1)", "`import heapq`"),
        ("true", "True"),
        ("null", "None"),
        ("def f():\n    n += 1\nn = 1\nf()", "`global`"),
        ("raise NameError('made up')", None),
        ("eval('opn')", "Did you mean 'open'?"),
    ],
)
def test_an_unknown_name_gets_the_nearest(source, said):
    hint = hint_of(source)
    assert hint is None if said is None else said in hint


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("input('name?')", "context_vars"),
        ("import os\nos.system('ls')", "No process can be started here"),
        ("import os\nos.lstdir('.')", "listdir"),
        ("import requests", "search_tools"),
        ("import numpy", "statistics"),
        ("import marshal", "json"),
        ("from os import system", "No process can be started here"),
        ("requests.get('x')", "search_tools"),
        ("np.array([1])", "statistics"),
        ("import jsn", "Did you mean 'json'?"),
        ("import never_heard_of", "Do without"),
        ("from math import sqr", "Did you mean 'sqrt'?"),
    ],
)
def test_what_is_not_here_is_answered_with_what_to_use(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("[].appendd(1)", "Did you mean 'append'?"),
        ("class P:\n    def __init__(self):\n        self.total = 1\nP().totl", "Did you mean 'total'?"),
        ("class P:\n    total = 1\nP.totl", "Did you mean 'total'?"),
        ("class P:\n    def __init__(self):\n        self._hidden = 1\nP()._hiden", "Did you mean '_hidden'?"),
        ("math.sqr", "Did you mean 'sqrt'?"),
        ("datetime.now()", "write datetime.datetime.now, or `from datetime import datetime` first"),
        ("import array\narray.fromlist([1])", "write array.array.fromlist"),
        ("d = {'price': 1}\nd.price", "write ['price']"),
        ("d = {'price': 1}\nd.pirce", "did you mean ['price']"),
        ("x = [3, 1].sort()\nx[0]", "None"),
    ],
)
def test_an_unknown_attribute_gets_the_nearest(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("d = {'price': 1}\nd['pirce']", "Did you mean 'price'?"),
        ("d = {'a': {'price': 1}}\nd['a']['pirce']", "Did you mean 'price'?"),
        ("rows = [{'price': 1}]\nrows[0]['pirce']", "Did you mean 'price'?"),
        ("def f(row):\n    return row['zzz']\nf({'a': 1, 'b': 2})", "The keys are 'a', 'b'."),
        (
            "class A:\n    def __init__(self):\n        self._d = {'a': 1}\n    def get(self, key):\n        return self._d[key]\nA().get('q')",
            "'a'",
        ),
        ("d = dict.fromkeys('abcdefghijkl')\nd['zz']", "and 4 more"),
        ("d = {1: 'a'}\nd['1']", "int("),
        ("d = {'1': 'a'}\nd[1]", "str("),
        ("d = {}\nd['a']", "empty"),
        ("rows = [1, 2]\nrows[2]", "last index is 1"),
        ("rows = []\nrows[0]", "empty"),
        ("a, b = [1], [1, 2, 3]\na[0] + b[5]", "3 items"),
        ("s = 'ab'\ns[5]", "2 characters"),
    ],
)
def test_a_missing_key_or_index_is_answered_with_what_there_is(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("json.loads({})", "already parsed"),
        ("json.dumps({1, 2})", "`result`"),
        ("json.loads('')", "not valid JSON"),
        ("json.loads(\"{'a': 1}\")", "literal_eval"),
        ("'{}'['a']", "json.loads"),
        ("[{}]['a']", "list"),
        ("'a' + 1", "str("),
        ("1 + 'a'", "str("),
        ("list = [1]\nlist(2)", "rename"),
        ("{[]: 1}", "tuple"),
        ("d = {1: 2}\nfor k in d: d[k + 1] = 1", "copy"),
        ("str(10 ** 5000)", "Keep it an int"),
        ("def f(n): return f(n + 1)\nf(0)", "recursion"),
        ("raise MemoryError", "memory_mb"),
        ("raise FileNotFoundError('a.txt')", "list_files()"),
        ("raise FileNotFoundError(2, 'No such file', 'o/deep/x') or open('o/deep/x', 'w')", "Path('o/deep').mkdir("),
        ("raise FileNotFoundError(2, 'No such file', 'o/x') or open('o/x')", "list_files()"),
        ("```python\nx = 1\n```", "Markdown"),
        ("return 1", "`result`"),
        ("d = {'dry_run': True, 'tool': 'a.b'}\nd['status']", "not made, in a dry run"),
        ("def f():\n    await g()", "Write `async def`"),
        ("!pip install x", "Shell"),
        ("x = 1\n  y = 2", "first column"),
        ("print(\u201chi\u201d)", "ASCII"),
    ],
)
def test_other_frequent_errors_say_what_to_do(source, said):
    assert said in hint_of(source)


@pytest.mark.parametrize("source", ["1 / 0", "raise ValueError('x')", "assert False", "x = (1,\n) 3"])
def test_where_there_is_nothing_to_say_nothing_is_said(source):
    assert hint_of(source) is None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("text = 'name,age\\nAda,36'\nfor row in csv.DictReader(text):\n    row['name']", True),
        ("text = 'name,age\\nAda,36'\nfor row in csv.reader(text):\n    row[1]", True),
        ("text = 'name,age\\nAda,36'\nfor name, age in csv.reader(text):\n    pass", True),
        ("text = 'name,age\\nAda,36'\nrows = list(csv.DictReader(text.splitlines()))\nrows[0]['nam']", False),
        ("import io\nrows = list(csv.DictReader(io.StringIO('name\\nAda')))\nrows[0]['nam']", False),
    ],
)
def test_a_text_that_is_given_to_a_reader_of_lines_is_said(source, said):
    assert ("pass text.splitlines()" in (hint_of(f"import csv\n{source}") or "")) is said


def test_hints_are_bounded_and_tell_nothing_of_the_machine():
    keys = ", ".join(f"{'k' * 300 + str(i)!r}: 1" for i in range(100))
    hint = hint_of(f"d = {{{keys}}}\nd['q']")
    assert len(hint) < hints_by_type.HINT_CHARS_MAX + 50
    hint = hint_of(f"d = {{{sys.prefix + '/bin'!r}: 1}}\nd['q']")
    assert os.path.basename(sys.prefix) not in hint


HOSTILE = """
class Keys:
    def __hash__(self): return hash('price')
    def __eq__(self, other): raise SystemExit
class D(dict):
    def keys(self): raise SystemExit
    def __iter__(self): raise SystemExit
    def __len__(self): raise SystemExit
    def __getitem__(self, key): raise KeyError(key)
class O:
    def __dir__(self): raise SystemExit
    def __getattribute__(self, name): raise AttributeError(name, name=name, obj=self)
"""


@pytest.mark.parametrize(
    "source",
    [
        "d = {Keys(): 1}\nd['x']",
        "d = D()\nd['x']",
        "O().anything",
        "raise KeyError",
        "raise KeyError(1, 2)",
        "raise AttributeError('x', name=5, obj=6)",
        "raise NameError('x', name=[])",
        "raise AttributeError('x', name='\\ud800\\ud801', obj={'\\ud800\\ud802': 1})",
        "raise ImportError('x', name='y' * 10_000_000)",
    ],
)
def test_hostile_objects_are_not_asked(source):
    program = compile(HOSTILE + source, failures.SOURCE_NAME, "exec")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is, but for SystemExit
        exec(program, {})
    hint = failures.describe(raised.value, HOSTILE + source).hint or ""
    assert len(hint.encode()) < 500


def test_many_names_and_long_ones_take_no_time():
    namespace_of_many = {"n" * 10_000 + str(i): i for i in range(3000)}
    error = NameError("name", name="m" * 10_000)
    assert hints_by_type.hint_for(error, "", Scene("", None, None)) is None
    try:
        exec("nnnnnnn", namespace_of_many)
    except NameError as missed:
        frame = missed.__traceback__.tb_next.tb_frame
        hints_by_type.hint_for(missed, "", Scene("", None, frame))


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("use json", "Use json."),
        ("ast.literal_eval is there", "ast.literal_eval is there."),
        ("Write it out.", "Write it out."),
    ],
)
def test_a_clause_becomes_a_sentence_and_code_keeps_its_spelling(clause, said):
    assert hints_by_message.sentence(clause) == said


def test_full_python_is_named_only_by_the_isolations_that_may_be_asked_for(monkeypatch):
    assert "isolation=" not in hint_of("import numpy")
    monkeypatch.setattr(GUEST, "wider", ("process", "container"))
    asked = 'Or ask for isolation="process" or isolation="container"'
    assert asked in hint_of("import numpy")
    assert asked in hint_of("np.array([1])")
    assert asked in hint_of("import never_heard_of")
    assert hint_of("import os\nos.system('ls')").startswith("No process can be started here")
    monkeypatch.setattr(GUEST, "wider", ("process",))
    assert hint_of("import numpy").endswith('ask for isolation="process".')


def test_in_full_python_a_missing_module_is_one_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(GUEST, "full_python", True)
    error = ModuleNotFoundError("No module named 'requets'", name="requets")
    assert hints_by_type.hint_for(error, str(error), Scene("", None)) == (
        "Do without the module, which is not installed here."
    )
