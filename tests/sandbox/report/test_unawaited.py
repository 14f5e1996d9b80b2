"""A coroutine that was never awaited is reported with the line of its call, in restricted and in full Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Json, Outcome
from sealab.sandbox.report.unawaited import Unawaited

from ...zygotes import Launch


async def host(_name: str, _arguments: Mapping[str, Json]) -> Json:
    await asyncio.sleep(0)
    return None


@pytest.fixture(scope="module", params=[Isolation.RESTRICTED, Isolation.PROCESS])
async def pool(request: pytest.FixtureRequest, lent_zygotes: Launch) -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(isolation=request.param, spares=1), lent_zygotes) as made:
        yield made


async def ran(pool: Pool, code: str, session: str | None = None) -> Outcome:
    return await pool.run(Job(code, isolation=pool._settings.isolation, session=session), host)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = 1\ntools.git.log(n=1)\nx", "tools.git.log() on line 2 was"),
        ("async def main():\n    return 1\n\nmain()", "main() on line 4 was"),
        ("async def main():\n    tools.a.b()\n    await tools.a.c()\nawait main()", "tools.a.b() on line 2 was"),
        ("kept = tools.a.b()\n1", "tools.a.b() on line 1 was"),
        ("x = 1\nkept = tools.search('a')\n1", "tools.search() on line 2 was"),
        ("kept = [tools.a.b(n=n)\n        for n in range(2)]\n1", "tools.a.b() on line 1 was"),
        ("tools.a.b()\ncall_tool('a.c')\n1", "tools.a.b() on line 1, call_tool() on line 2 were"),
        ("result = tools.a.b()", "tools.a.b() on line 1 was"),
        ("kept = tools.a.b()\ndel random\nimport random\n1", "tools.a.b() on line 1 was"),
    ],
)
async def test_a_forgotten_await_is_told_with_its_line(pool, code, told) -> None:
    outcome = await ran(pool, code)
    assert outcome.notes["code"].startswith(f"{told} never awaited")
    assert outcome.output == ""


async def test_in_a_skill_the_line_is_that_of_the_skill(pool) -> None:
    source = "async def slow():\n    return 1\n\n\ndef late():\n    slow()\n    return 2\n"

    async def skills(name: str, arguments: Mapping[str, Json]) -> Json:
        assert (name, arguments["name"]) == ("use_skill", "late")
        return {"name": "late", "version": 1, "entry": "late", "code": source}

    outcome = await pool.run(Job("x = 1\nskills.late()", isolation=pool._settings.isolation), skills)
    assert outcome.result == 2
    assert outcome.notes["code"].startswith("slow() on line 6 of skill late was never awaited")


async def test_what_was_awaited_or_scheduled_is_not_told(pool) -> None:
    outcome = await ran(pool, "import asyncio\ntask = asyncio.create_task(tools.a.b())\nawait tools.a.b()\nawait task")
    assert (outcome.error, dict(outcome.notes)) == (None, {})


async def test_a_session_tells_of_each_once(pool) -> None:
    first = await ran(pool, "kept = tools.a.b()\n1", session="s")
    second = await ran(pool, "2", session="s")
    assert "code" in first.notes
    assert "code" not in second.notes


@pytest.mark.parametrize("taken_out", [["b"], ["a"], ["a", "b"]])
@pytest.mark.parametrize("set_again", [True, False])
def test_what_is_held_is_found_when_names_that_were_given_are_taken_out(taken_out, set_again) -> None:
    namespace: dict[str, object] = {"a": 1, "b": 2}
    forgotten = Unawaited()
    forgotten.given(namespace)
    assert forgotten.notes(namespace) == {}
    kept = namespace["kept"] = host("", {})
    for name in taken_out:
        del namespace[name]
        if set_again:
            namespace[name] = 3
    assert forgotten.notes(namespace)["code"].startswith("host() was never awaited")
    kept.close()
