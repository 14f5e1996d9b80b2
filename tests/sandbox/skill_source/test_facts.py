"""What source says of itself: signatures as schemas, docstrings, scripts as functions."""

from __future__ import annotations

import inspect
import json
import re
import tokenize
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sealab.sandbox.dialect.facades import module_lookups
from sealab.sandbox.guest_api.converting import converted
from sealab.sandbox.job import SourceReading
from sealab.sandbox.skill_source.facts import describe, read

module_lookups.provide()

HINTS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-100, 100),
    "float": st.floats(-100, 100),
    "str": st.text(max_size=5),
    "bool": st.booleans(),
    "None": st.none(),
    "list[int]": st.lists(st.integers(0, 9), max_size=3),
    "dict[str, bool]": st.dictionaries(st.text(max_size=2), st.booleans(), max_size=2),
    "tuple[int, str]": st.tuples(st.integers(0, 9), st.text(max_size=2)).map(list),
    "int | None": st.none() | st.integers(0, 9),
    "Optional[str]": st.none() | st.text(max_size=3),
    "Union[int, str]": st.integers(0, 9) | st.text(max_size=3),
    'Literal["a", 2, None]': st.sampled_from(["a", 2, None]),
    'Annotated[int, "a number"]': st.integers(0, 9),
    '"list[str]"': st.lists(st.text(max_size=2), max_size=2),
    "Any": st.integers() | st.text(max_size=2),
}
OTHERS = st.one_of(st.integers(), st.text(max_size=3), st.none(), st.booleans(), st.lists(st.integers(), max_size=2))
KINDS = ["positional", "ordinary", "keyword"]


@st.composite
def functions(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, str, bool]], bool, bool]:
    """Draw the source of a function, and its parameters `(name, hint, kind, has_default)`."""
    count = draw(st.integers(0, 5))
    kinds = sorted((draw(st.sampled_from(KINDS)) for _ in range(count)), key=KINDS.index)
    defaulted = False
    parameters: list[tuple[str, str, str, bool]] = []
    for index, kind in enumerate(kinds):
        hint = draw(st.sampled_from([*HINTS, ""]))
        default = draw(st.booleans()) or (defaulted and kind != "keyword")
        defaulted = default if kind != "keyword" else defaulted
        parameters.append((f"p{index}", hint, kind, default))
    many, rest = draw(st.booleans()), draw(st.booleans())
    parts: list[str] = []
    for index, (name, hint, kind, default) in enumerate(parameters):
        if kind == "keyword" and "*many: int" not in parts and "*" not in parts:
            parts.append("*many: int" if many else "*")
        text = f"{name}: {hint}" if hint else name
        if default:
            text += f" = {draw(HINTS[hint]) if hint else 7!r}" if not hint else f" = {draw(HINTS[hint])!r}"
        parts.append(text)
        last_positional = kind == "positional" and (index + 1 == count or kinds[index + 1] != "positional")
        if last_positional:
            parts.append("/")
    if many and "*many: int" not in parts:
        parts.append("*many: int")
    if rest:
        parts.append("**rest: str")
    source = f"def f({', '.join(parts)}):\n    return locals()\n"
    return source, parameters, many, rest


@given(functions(), st.data())
def test_what_the_schema_admits_can_be_called_and_what_lacks_an_argument_cannot(
    drawn: tuple[str, list[tuple[str, str, str, bool]], bool, bool], data: st.DataObject
) -> None:
    source, parameters, _many, rest = drawn
    facts: dict[str, Any] = read(source, SourceReading("f"))
    schema = facts["parameters"]
    Draft202012Validator.check_schema(schema)
    scope: dict[str, Any] = {}
    exec(compile("from typing import *\n" + source, "<it>", "exec", dont_inherit=True), scope)
    function = scope["f"]
    assert facts["signature"].startswith("f(")
    assert list(schema["properties"]) == [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind.name != "VAR_KEYWORD" and name != "many"
    ] + (["many"] if "*many" in source else [])
    assert set(schema.get("required", ())) == {name for name, _, _, default in parameters if not default}
    names = [name for name, _, _, default in parameters if not default or data.draw(st.booleans())]
    if rest and data.draw(st.booleans()):
        names.append("more")
    hints = {name: hint for name, hint, _, _ in parameters} | {"more": "str"}
    fitting = {name: data.draw(HINTS[hints[name]] if hints[name] else OTHERS) for name in names}
    assert Draft202012Validator(schema).is_valid(fitting), (source, fitting)
    positional, named = converted(function, fitting)
    got = function(*positional, **named)
    flat = {**got, **got.pop("rest", {})}
    for name, value in fitting.items():
        assert json.dumps(flat[name]) == json.dumps(value) or flat[name] == value
    for name, _, _, default in parameters:
        if not default and name in fitting:
            less = {key: value for key, value in fitting.items() if key != name}
            assert not Draft202012Validator(schema).is_valid(less)
            with pytest.raises(TypeError):
                function(**less)
    if not rest:
        assert not Draft202012Validator(schema).is_valid({**fitting, "unknown": 1})


@given(st.sampled_from(sorted(set(HINTS) - {"Any"})), OTHERS)
def test_a_value_of_another_type_is_refused(hint: str, value: Any) -> None:
    facts: dict[str, Any] = read(f"def f(x: {hint}): ...", SourceReading("f"))
    admitted = Draft202012Validator(facts["parameters"]).is_valid({"x": value})
    kinds: dict[str, Any] = {
        "int": type(value) is int, "float": type(value) is int, "str": type(value) is str, "bool": type(value) is bool,
        "None": value is None, "list[int]": type(value) is list, "dict[str, bool]": False,
        "tuple[int, str]": False, "int | None": value is None or type(value) is int,
        "Optional[str]": value is None or type(value) is str, "Union[int, str]": type(value) in {int, str},
        'Literal["a", 2, None]': value in ("a", 2, None) and type(value) is not bool,
        'Annotated[int, "a number"]': type(value) is int, '"list[str]"': value == [],
    }  # fmt: skip
    assert admitted == kinds[hint]


DOCSTRINGS = {
    "google": "Do it.\n\n    More.\n\n    Args:\n        x (int): The x.\n        y: The y.\n\n    Returns:\n        str: It.\n    ",
    "numpy": "Do it.\n\n    More.\n\n    Parameters\n    ----------\n    x : int\n        The x.\n    y\n        The y.\n    ",
    "rest": "Do it.\n\n    More.\n\n    :param int x: The x.\n    :param y: The y.\n    :returns: It.\n    ",
}


@pytest.mark.parametrize("style", DOCSTRINGS)
def test_docstrings_of_each_style_describe_and_type_parameters(style: str) -> None:
    facts: dict[str, Any] = read(f'def f(x, y=1):\n    """{DOCSTRINGS[style]}"""\n', SourceReading("f"))
    assert facts["description"] == "Do it.\n\nMore."
    assert facts["parameters"]["properties"] == {
        "x": {"type": "integer", "description": "The x."},
        "y": {"description": "The y.", "default": 1},
    }


@pytest.mark.parametrize(
    ("definitions", "hint", "schema"),
    [
        ("class C(Enum):\n    A = 'a'\n    B = 'b'", "C", {"type": "string", "enum": ["a", "b"]}),
        ("class C(StrEnum):\n    A = auto()\n    B = auto()", "C", {"type": "string", "enum": ["a", "b"]}),
        ("class C(Enum):\n    A = auto()\n    B = auto()", "C", {"type": "integer", "enum": [1, 2]}),
        (
            "@dataclass\nclass P:\n    x: int\n    y: list[str] = field(default_factory=list)",
            "P",
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "array", "items": {"type": "string"}}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        (
            "class T(TypedDict, total=False):\n    a: int\n    b: Required[str]",
            "T",
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["b"],
                "additionalProperties": False,
            },
        ),
        ("Row = dict[str, int]", "list[Row]",
         {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}),
        ("", "datetime.date", {"type": "string", "format": "date"}),
        ("", "Callable[[int], str]", {}),
        ("class N:\n    next: 'N'", "N", {}),
        ("@dataclass\nclass N:\n    next: 'N | None' = None", "N",
         {"type": "object", "properties": {"next": {"default": None}}, "additionalProperties": False}),
    ],
)  # fmt: skip
def test_classes_of_the_module_become_schemas(definitions: str, hint: str, schema: dict[str, Any]) -> None:
    facts: dict[str, Any] = read(f"{definitions}\ndef f(x: {hint}): ...", SourceReading("f"))
    assert facts["parameters"]["properties"]["x"] == schema


def test_what_code_uses_is_told() -> None:
    source = (
        "import csv, os.path\nfrom skills import one\nimport skills\n"
        "async def f():\n    await tools.git.git_log()\n    await call_tool('time.now', {})\n    mcp_servers['a'].b()\n"
        "    mcp_c.d()\n    skills.two(1); skills['three@2'](1); load_skill('four')\n"
    )
    facts: dict[str, Any] = read(source, SourceReading("f"))
    assert facts["modules"] == ["csv", "os"]
    assert facts["tools"] == ["a.b", "c.d", "git.git_log", "time.now"]
    assert facts["skills"] == ["four", "one", "three", "two"]
    assert facts["is_async"] is True


SCRIPTS = [
    ("a = 1\nb = a + 1\nb", "f(a: int = 1)", {}, 2),
    ("rows = []\nfor i in range(n):\n    rows.append(i)\nresult = rows", "f(n)", {"n": 2}, [0, 1]),
    ('text = """x\n  y"""\nresult = f"""{text}\n  z"""', None, {}, "x\n  y\n  z"),
    ("from __future__ import annotations\n'doc'\nx = 2\nx * 3", "f(x: int = 2)", {}, 6),
    ("limit: float = 2.5\nif limit > 2:\n    result = 'high'", "f(limit: float = 2.5)", {"limit": 1}, None),
    ("def helper(x):\n    return x + step\nstep = 2\nhelper(start)", "f(start, step: int = 2)", {"start": 1}, 3),
    (
        "import json\nnames = ['a', 'b']\njson.dumps(\n    names\n)",
        "f(names: list[str] = ['a', 'b'])",
        {},
        '["a", "b"]',
    ),
    ("x = 1; y = x\ny", None, {}, 1),
]


@pytest.mark.parametrize(("script", "signature", "arguments", "value"), SCRIPTS)
def test_a_script_becomes_a_function_that_does_the_same(
    script: str, signature: str | None, arguments: dict[str, Any], value: Any
) -> None:
    facts: dict[str, Any] = describe(script, SourceReading("f"))
    assert facts["is_script"]
    assert signature is None or facts["signature"] == signature
    scope: dict[str, Any] = {}
    exec(facts["code"], scope)
    assert scope["main"](**arguments) == value


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        ("list of float", {"type": "array", "items": {"type": "number"}}),
        ("a list of strings, optional", {"type": "array", "items": {"type": "string"}}),
        ("{'mean', 'median'}, default 'mean'", {"type": "string", "enum": ["mean", "median"]}),
        ("{0, 1}", {"type": "integer", "enum": [0, 1]}),
        ("int or None", {"type": ["integer", "null"]}),
        ("int, str or None", {"type": ["integer", "string", "null"]}),
        ("sequence of (int or str)", {"type": "array", "items": {"type": ["integer", "string"]}}),
        ("dict of str to int", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("dict mapping str to list of int",
         {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
        ("bool, default=True", {"type": "boolean"}), ("float (default 3.0)", {"type": "number"}),
        ("`Dict[str, int]`", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("array-like", {}), ("callable", {}), ("int or callable", {}), ("list of", {}), ("{open('x')}", {}),
        ("(" * 200 + "int", {}), ("int or " * 300, {}),
    ],
)  # fmt: skip
def test_types_that_a_docstring_says_in_words_become_schemas(words: str, schema: dict[str, Any]) -> None:
    source = f'def f(x):\n    """Do.\n\n    Parameters\n    ----------\n    x : {words}\n        The x.\n    """\n'
    facts: dict[str, Any] = read(source, SourceReading("f"))
    assert facts["parameters"]["properties"]["x"] == {**schema, "description": "The x."}


@pytest.mark.parametrize(("default", "type_"), [("'auto'", None), ("2", "number"), ("None", ["number", "null"])])
def test_a_docstring_that_leaves_out_what_the_default_is_does_not_decide_the_type(default: str, type_: object) -> None:
    facts: dict[str, Any] = read(
        f'def f(x={default}):\n    """Do.\n\n    :param x: It.\n    :type x: float\n    """\n', SourceReading("f")
    )
    assert facts["parameters"]["properties"]["x"].get("type") == type_


def test_defaults_stand_before_what_must_come_after_them() -> None:
    def f(first: int = 1, second: int = 2, /, third: int = 3, *rest: int, fourth: int = 4) -> tuple[object, ...]:
        return first, second, third, rest, fourth

    for fitting, got in (
        ({"rest": [7, 8]}, (1, 2, 3, (7, 8), 4)),
        ({"second": 9}, (1, 9, 3, (), 4)),
        ({"third": 9, "fourth": 5, "rest": []}, (1, 2, 9, (), 5)),
        ({"third": 9, "rest": [1]}, (1, 2, 9, (1,), 4)),
    ):
        positional, named = converted(f, fitting)
        assert f(*positional, **named) == got  # type: ignore[arg-type]  # what JSON gives


def test_a_lambda_of_the_name_is_its_function() -> None:
    facts: dict[str, Any] = describe("base = 10\nf = lambda x, y=2: base + x * y\n", SourceReading("f"))
    assert (facts["signature"], facts["entry"], facts["is_script"]) == ("f(x, y=2)", "f", False)
    assert facts["parameters"]["required"] == ["x"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def g(): pass\n", "no function f"),
        ("x = 1\ndef g():\n    global x\n    x = 2\ng()\n", "global x"),
        ("from math import *\nsqrt(4)\n", "imports \\*"),
        ("", "empty"),
    ],
)
def test_what_cannot_be_called_is_told(source: str, said: str) -> None:
    facts: dict[str, Any] = describe(source, SourceReading("f"))
    assert re.search(said, facts["problem"])


@pytest.mark.parametrize(
    "source",
    [
        "def f(a, /, b: int, *c: str, d: list[int] = [1], **e) -> dict: ...",
        "def f(*, a='x', b: str = 'y'): ...",
        "def f(a=None, *rest): ...",
    ],
)
def test_a_signature_is_written_as_python_writes_it(source: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(source, "<it>", "exec", dont_inherit=True), scope)
    assert read(source, SourceReading("f"))["signature"] == f"f{inspect.signature(scope['f'])}"


def test_variables_are_chosen() -> None:
    facts: dict[str, Any] = read("a = 1\nb = 2\na + b + c\n", SourceReading("f", variables=("b",)))
    assert facts["signature"] == "f(c, b: int = 2)"
    assert "not a variable" in str(describe("a = 1\na", SourceReading("f", variables=("z",)))["problem"])


def test_tests_are_known_by_their_names() -> None:
    facts = read("def f(): ...", SourceReading("f", "def test_a(): ...\nasync def test_b(): ...\ndef helper(): ...\n"))
    assert facts["test_functions"] == [["test_a", False], ["test_b", True]]


def test_source_without_comments_is_not_read_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize, "generate_tokens", None)
    facts = read("def double(a: int) -> int:\n    return 2 * a\n", SourceReading("double"))
    assert facts["parameters"]["properties"] == {"a": {"type": "integer"}}
