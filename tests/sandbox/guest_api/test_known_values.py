"""What a source says of the values of its calls, and how often each is made at most."""

from __future__ import annotations

from time import process_time

import pytest

from sealab.sandbox.guest_api import hosted_skills, hosted_tools
from sealab.sandbox.guest_api.planned_calls import read_program
from sealab.sandbox.job import Json

GIVEN = {
    **hosted_tools.helpers(),
    **hosted_skills.helpers(),
    "month": "May",
    "rows": [{"to": "A", "sum": 1}, {"to": "B", "sum": 2}],
}


def shown(source: str) -> list[Json]:
    program = read_program(source, GIVEN)
    assert program is not None
    return [one for row in program.calls() for one in row[5]]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("await tools.a.b(x='v')", "v"),
        ("x = 'v'\nawait tools.a.b(x=x)", "v"),
        ("x: str = 'v'\nasync def f():\n    await tools.a.b(x=x)\nawait f()", "v"),
        ("x, (y, z) = 'u', ('v', 'w')\nawait tools.a.b(x=y + z)", "vw"),
        ("await tools.a.b(x=f'Rent {month} {1 + 2 * 3 - 4}')", "Rent May 3"),
        ("await tools.a.b(x=rows[1]['to'])", "B"),
        ("await tools.a.b(**{'x': 'v'})", "v"),
        ("await tools.a.b({'x': -1.5})", -1.5),
        ("await call_tool('a.b', {'x': ['v', None]})", ["v", None]),
        ("await call_tool('a.b', dict(x=str(7)))", "7"),
        ("async def f(x, y='w'):\n    await tools.a.b(x=x + y)\nawait f('v')", "vw"),
        ("async def f(*, x):\n    await tools.a.b(x=x)\nawait f(**{'x': 'v'})", "v"),
    ],
)
def test_what_a_source_says_is_known(source: str, value: Json) -> None:
    assert shown(source) == [[{"x": value}, {}, [], 1]]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = open('f').read()\nawait tools.a.b(x=x)", "x, where x = open('f').read()"),
        ("x = 'v'\nx = 'w'\nawait tools.a.b(x=x)", "x"),
        ("for r in await tools.a.c():\n    await tools.a.b(x=r['x'])", "r['x'], for r in await tools.a.c()"),
        ("rows = read()\nfor r in rows:\n    await tools.a.b(x=r)", "r, for r in rows, where rows = read()"),
        (
            "for r in a():\n    x = r + 1\n    y = x * 2\n    z = y - 3\n    await tools.a.b(x=z)",
            "z, where z = y - 3, where y = x * 2, where x = r + 1",
        ),
        ("await tools.a.b(x='a' * 2_000)", "'a' * 2_000"),
        ("await tools.a.b(x=" + "'a' + " * 300 + "b)", ("'a' + " * 300)[:200].strip() + "…"),
        ("async def f(x):\n    await tools.a.b(x=x)\ng = f\nawait f('v')", "x"),
    ],
)
def test_of_what_is_computed_it_is_told_from_what(source: str, told: str) -> None:
    [found] = [each for each in shown(source) if each and each[1]]
    assert found[1] == {"x": told}


@pytest.mark.parametrize(
    ("source", "values", "times"),
    [
        ("for n in range(3):\n    await tools.a.b(x=n)", [0, 1, 2], 1),
        ("for n in range(3):\n    await tools.a.b(x=1)", [1], 3),
        ("[await tools.a.b(x=r['to']) for r in rows for _ in range(2)]", ["A", "B"], 2),
        ("for n, r in enumerate(rows):\n    await tools.a.b(x=n)", [0, 1], 1),
        ("for r, n in zip(rows, 'a b'.split()):\n    await tools.a.b(x=1)", [1], None),
        ("for k, v in {'p': 1, 'q': 2}.items():\n    await tools.a.b(x=k)", ["p", "q"], 1),
        ("while True:\n    await tools.a.b(x=1)", [1], None),
        ("async def f(x):\n    await tools.a.b(x=x)\nfor n in (4, 5):\n    await f(n)\nawait f(4)", [4, 5], None),
        ("async def f(n):\n    await tools.a.b(x=1)\n    await f(n - 1)\nawait f(3)", [1], None),
    ],
)
def test_how_often_a_call_is_made_at_most(source: str, values: list[Json], times: int | None) -> None:
    found = shown(source)
    assert [each[0]["x"] for each in found] == values
    if source.startswith("async def f(x)"):
        assert [each[3] for each in found] == [2, 1]
    else:
        assert {each[3] for each in found} == {times}


@pytest.mark.parametrize(
    ("source", "hides"),
    [
        ("await tools.a.b(x=1)", False),
        ("t = tools.a\nawait t.b(x=1)", False),
        ("import asyncio\nawait asyncio.gather(*map(tools.a.b, [1]))", False),
        ("await tools.a.b(x=1)\ngetattr(tools.a, 'b')", True),
        ("await tools.a.b(x=1)\n[tools][0].a.b()", True),
        ("await tools.a.b(x=1)\ntools['a' + 'c'].b()", True),
        ("await tools.a.b(x=1)\nf(tools.a)", True),
        ("await tools.a.b(x=1)\nexec('1')", True),
    ],
)
def test_a_source_that_may_make_calls_that_it_does_not_name_is_known(source: str, hides: bool) -> None:
    program = read_program(source, GIVEN)
    assert program is not None
    assert program.hides is hides


@pytest.mark.parametrize(
    "source",
    [
        "x0 = ['v'] * 1\n" + "\n".join(f"x{n + 1} = [x{n}, x{n}]" for n in range(11)) + "\nawait tools.a.b(x=x11)",
        "x0 = 'v'\n" + "\n".join(f"x{n + 1} = x{n} + x{n}" for n in range(11)) + "\nawait tools.a.b(x=x11)",
        "for a in range(999):\n for b in range(999):\n  for c in range(999):\n   await tools.a.b(x=a, y=b, z=c)",
        "big = " + repr(["w" * 900] * 900) + "\nfor n in range(900):\n    await tools.a.b(x=big, y=n)",
        "\n".join(f"async def f{n}(x):\n" + f"    await f{n + 1}(x)\n" * 9 for n in range(11))
        + "\nasync def f11(x):\n    await tools.a.b(x=x)\nawait f0(1)",
    ],
)
def test_a_source_that_is_made_to_take_long_is_read_in_bounded_time(source: str) -> None:
    began = process_time()
    told = shown(source)
    assert process_time() - began < 2.0
    assert len(str(told)) < 300_000
