"""Skills inside a worker: code that is stored runs under the rules of the code that uses it, whatever it wraps."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping

import pytest

import sealab.sandbox.dialect.namespace  # noqa: F401 - without it no code is compiled
from sealab.sandbox.dialect.compiling import guarded_eval, guarded_exec
from sealab.sandbox.dialect.guards import SecurityError
from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Job, Json, Outcome

from ..conftest import failure


async def called(pool: Pool, code: str, call: str) -> Outcome:
    """Run a call of the skill `a`, of which the host gives the code."""

    async def host(name: str, arguments: Mapping[str, Json]) -> Json:
        assert name == "use_skill"
        return {"name": arguments["name"], "version": 1, "entry": arguments["name"], "code": code}

    return await pool.run(Job(call), host)


WRAPS = """
import functools
read_file.__annotations__ = {{"x": {hint!r}}}
@functools.wraps(read_file)
def a(*given, **named):
    return [repr(value) for value in named.values()]
"""


@pytest.mark.parametrize(
    "hint", ["print(GUEST)", "print(base64.re.enum.sys.version)", "print(hosted_tools)", "print(__builtins__['open'])"]
)
async def test_no_hint_is_evaluated_among_the_variables_of_the_host(pool: Pool, hint: str) -> None:
    outcome = await called(pool, WRAPS.format(hint=hint), "call_skill('a', 1, {'x': 1})")
    assert outcome.result == ["1"]
    assert outcome.output == ""


@pytest.mark.parametrize("namespace", [vars(json), vars(types), {"__builtins__": vars(json)["__builtins__"]}])
def test_no_code_runs_among_the_variables_of_a_real_module(namespace: dict[str, object]) -> None:
    before = dict(namespace)
    for run in (guarded_eval, guarded_exec):
        with pytest.raises(SecurityError, match="module of Python's own"):
            run("1", namespace)
    assert namespace == before


async def test_hints_that_stand_as_text_mean_what_they_mean_in_the_skill(pool: Pool) -> None:
    code = """
from __future__ import annotations
import datetime, functools
Day = datetime.date
def noted(function):
    @functools.wraps(function)
    def inner(*given, **named):
        return function(*given, **named)
    return inner
@noted
def a(day: Day) -> str:
    return type(day).__name__
"""
    outcome = await called(pool, code, "call_skill('a', 1, {'day': '2024-02-03'})")
    assert (outcome.error, outcome.result) == (None, "date")


async def test_no_signature_that_stands_as_text_is_evaluated_among_the_variables_of_a_module(pool: Pool) -> None:
    code = """
class Told:
    def __call__(self, *given, **named): return [given, named]
def a(): pass
a = Told()
try: a.__dict__ = {"__module__": "json", "__signature__": "(x=__name__, y=1, /)"}
except TypeError: pass
"""
    outcome = await called(pool, code, "call_skill('a', 1, {'y': 2})")
    assert (outcome.error, outcome.result) == (None, [[], {"y": 2}])


async def test_what_code_sets_among_its_context_is_not_taken_for_the_skills_that_are_called(pool: Pool) -> None:
    code = """
import contextvars
def a():
    for variable, value in contextvars.copy_context().items():
        if "skills" in repr(variable):
            variable.set(("b", "a"))
            try: value.__init__(("b", "a"))
            except (AttributeError, TypeError): pass
    import skills
    return skills.b()
def b(): return "called"
"""
    outcome = await called(pool, code, "import skills\nskills.a()")
    assert (outcome.error, outcome.result) == (None, "called")


async def test_a_skill_that_is_called_by_its_bare_name_is_told_from_an_unknown_name(pool: Pool) -> None:
    async def host(name: str, _arguments: Mapping[str, Json]) -> Json:
        assert name == "skill_names"
        return ["csv_profile"]

    skill = await pool.run(Job("csv_profile('a.csv')"), host)
    other = await pool.run(Job("csv_profil_2('a.csv')"), host)
    assert (
        failure(skill).hint == "It is a skill: write skills.csv_profile(…), or `from skills import csv_profile` first."
    )
    assert "skill" not in (failure(other).hint or "")
