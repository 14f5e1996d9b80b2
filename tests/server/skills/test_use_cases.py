"""Skills over MCP and from code: saving, calling, versions, failures, in every place that code runs."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sealab.sandbox.job import Failure, Outcome, Status
from sealab.server.use_cases.skills import source_facts, testing
from sealab.server.use_cases.skills.search import ABOUT_CHARS_MAX
from sealab.skills_db.content import SkillDraft

from ..conftest import Caller, in_process_server

SLUG = '''
def slugify(text: str, max_length: int = 50) -> str:
    """Make a slug of a text.

    Args:
        text: What to make it of.
        max_length: The most characters.

    >>> slugify("A b")
    'a-b'
    """
    return _joined(re.findall(r"[a-z0-9]+", text.lower()))[:max_length]

def _joined(words):
    return "-".join(words)
'''


served = in_process_server(
    {"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_WORKERS_MAX": "1", "SEALAB_WORKERS_SPARE": "1"}
)


async def save(served: Caller, name: str, code: str, **more: Any) -> dict[str, Any]:
    return await served.told("save_skill", name=name, code=code, **more)


async def test_a_skill_is_saved_listed_loaded_run_and_deleted(served: Caller) -> None:
    saved = await save(served, "slugify", SLUG, tests="assert slugify('Hello, World') == 'hello-world'", tags=["text"])
    assert saved == {
        "name": "slugify",
        "version": 1,
        "signature": "slugify(text: str, max_length: int = 50) -> str",
        "description": "Make a slug of a text.",
        "warnings": [],
    }
    loaded = await served.told("load_skill", name="slugify")
    assert loaded.keys() == {"name", "version", "code", "description", "signature", "parameters", "metadata"}
    assert loaded["code"] == SLUG
    assert loaded["parameters"] == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to make it of."},
            "max_length": {"type": "integer", "description": "The most characters.", "default": 50},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    report = await served.told("run_skill", name="slugify", arguments={"text": "X Y"})
    assert (report["status"], report["result"]) == ("ok", "x-y")
    listed = await served.told("list_skills", tag="text")
    (one,) = listed["skills"]
    assert (listed["count"], one["name"], one["runs"], one["tags"]) == (1, "slugify", 1, ["text"])
    assert one["last_run"] is not None
    deleted = await served.told("delete_skill", name="slugify")
    assert deleted == {"name": "slugify", "deleted_versions": 1}
    assert "deleted" in await served.refusal("load_skill", name="slugify")


async def test_the_same_content_again_makes_no_new_version_and_a_change_does(served: Caller) -> None:
    code = "def twice(x: int) -> int:\n    return 2 * x\n"
    assert [(await save(served, "twice", code))["version"] for _ in range(2)] == [1, 1]
    assert (await save(served, "twice", code.replace("2 * x", "x + x")))["version"] == 2
    first = await served.told("load_skill", name="twice", version=1)
    assert "2 * x" in first["code"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("len", "builtin"), ("class", "keyword"), ("a b", "identifier"), ("_x", "underscore"), ("read_file", "helper"),
        ("json", "helper"), ("tools", "helper"), ("mcp_git", "helper"), ("", "identifier"), ("x" * 65, "characters"),
    ],
)  # fmt: skip
async def test_a_name_that_would_hide_something_is_refused(served: Caller, name: str, told: str) -> None:
    assert told in await served.refusal("save_skill", name=name, code="def f(): pass")


async def test_no_skill_is_named_like_a_tool_of_the_server(served: Caller) -> None:
    for tool in (await served.client.list_tools()).tools:
        assert "is the name of a" in await served.refusal("save_skill", name=tool.name, code="def f(): pass")


@pytest.mark.parametrize(
    ("code", "tests", "told"),
    [
        (
            "def f(x):\n    return x\n",
            "assert f(1) == 1\nassert f(2) == 3",
            "line 2, 'assert f(2) == 3': AssertionError",
        ),
        (
            "def f(x):\n    y = 0\n    return x / y\n",
            "def test_it():\n    f(1)",
            "(line 3 of the skill): ZeroDivisionError",
        ),
        ("def f(x):\n    '''>>> f(1)\n    2\n    '''\n    return x\n", "", "the example failed: f(1)"),
        ("def f(x):\n    return x\n", ">>> f(1)\n2", "the example failed"),
        ("def f(x:\n    return x\n", "", "SyntaxError in line 1:"),
        ("def f(x):\n    return x.__globals__\n", "", "SecurityError in line 2:"),
        ("def f(x): return undefined\nraise ValueError('top')\n", "", "line 2 of the skill): ValueError: top"),
        ("def g(x): return x\n", "", "no function f"),
        (
            "import socket\ndef f(x): return x\n",
            "",
            "use a tool, if search_tools",
        ),
        ("def f(x): return x\n", "assert f(", "tests of f are not valid Python"),
        ("", "", "no code"),
    ],
)
async def test_what_cannot_be_saved_names_the_line_and_stores_nothing(
    served: Caller, code: str, tests: str, told: str
) -> None:
    said = await served.refusal("save_skill", name="f", code=code, tests=tests)
    assert told in said
    assert "no skill 'f'" in await served.refusal("load_skill", name="f")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "needs the argument text"),
        ({"text": 5}, "argument text of shout cannot be 5"),
        ({"text": "a", "tone": "low"}, 'takes no argument "tone"'),
        ({"text": "a", "how": {"times": "x"}}, "argument how.times"),
        ({"text": "a", "day": "tomorrow"}, 'cannot be "tomorrow": it is not a date. Give one such as 2026-01-31'),
        ({"text": "a", "at": "12 o'clock"}, "it is not a date-time. Give one such as"),
        ({"text": "a", "key": "1-2"}, "it is not a uuid. Give one such as"),
    ],
)
async def test_arguments_are_judged_before_anything_runs(served: Caller, arguments: dict[str, Any], told: str) -> None:
    await save(served, "shout", "from datetime import date, datetime\nfrom uuid import UUID\n"
               "def shout(text: str, how: dict[str, int] = {}, day: date | None = None, at: datetime | None = None, "
               "key: UUID | None = None) -> str:\n    return text.upper()\n")  # fmt: skip
    assert told in await served.refusal("run_skill", name="shout", arguments=arguments)


async def test_a_failing_skill_is_reported_with_its_own_line(served: Caller) -> None:
    await save(served, "fails", "def fails(x: int):\n    y = 0\n    return x / y\n")
    report = await served.told("run_skill", name="fails", arguments={"x": 1})
    assert (report["status"], report["error"]["line"]) == ("error", 3)
    assert 'File "<skill fails v1>", line 3, in fails' in report["error"]["traceback"]


async def test_a_script_becomes_a_function_of_its_constants_and_of_what_it_lacks(served: Caller) -> None:
    script = '"""Pay."""\nrate = 2.5  # per hour\nhours = 8\ntotal = 0\nfor day in days:\n    total += rate * hours\nresult = total\n'
    saved = await save(served, "pay", script)
    assert saved["signature"] == "pay(days, rate: float = 2.5, hours: int = 8)"
    assert saved["description"] == "Pay."
    loaded = await served.told("load_skill", name="pay")
    assert "def main(" in loaded["code"]
    assert loaded["parameters"]["properties"]["rate"]["description"] == "per hour"
    report = await served.told("run_skill", name="pay", arguments={"days": [1, 2], "hours": 4})
    assert report["result"] == 20


async def test_a_finished_run_is_saved_with_the_variables_that_were_chosen(served: Caller) -> None:
    ran = await served.run("n = 5\nbase = 10\nsum(range(n)) + base + len(words)", context_vars={"words": ["a"]})
    saved = await save(served, "from_it", "n", from_run=ran["run_id"])
    assert saved["signature"] == "from_it(words, n: int = 5)"
    report = await served.told("run_skill", name="from_it", arguments={"n": 3, "words": []})
    assert report["result"] == 13
    assert "base" in await served.refusal("save_skill", name="x", code="nope", from_run=ran["run_id"])
    assert "No run 'nope' is kept." in await served.refusal("save_skill", name="x", from_run="nope")
    await served.run("m = 6\nm * 7")
    assert (await save(served, "from_last", "m", from_run="last"))["signature"] == "from_last(m: int = 6)"


async def test_a_skill_from_a_run_that_failed_is_saved_with_a_warning(served: Caller) -> None:
    failed = await served.run("rows = [1]\nrows[3]")
    fine = await served.run("rows = [1]\nrows[0]")
    said = f"The run {failed['run_id']} ended with the status error, so the skill may fail as it did."
    assert said in (await save(served, "broken", "", from_run=failed["run_id"]))["warnings"]
    saved = await save(served, "sound", "", from_run=fine["run_id"])
    assert not any("ended with" in each for each in saved["warnings"])


async def test_code_saves_calls_imports_and_pins_skills_with_one_worker_allowed(served: Caller) -> None:
    report = await served.run(
        """
saved = save_skill("inc", code="def inc(x: int) -> int:\\n    return x + 1", tests="assert inc(1) == 2")
first = skills.inc(1)
save_skill("inc", code="def inc(x: int) -> int:\\n    return x + 10", tests="assert inc(1) == 11", force=True)
from skills import inc
import skills as s
[saved["version"], first, inc(1), s.inc.v1(1), skills["inc@1"](1), load_skill("inc", version=1)(1),
 load_skill("inc")["version"], "inc" in [each["name"] for each in list_skills("inc")["skills"]], skills.inc]
"""
    )
    assert report["result"] == [1, 2, 11, 2, 2, 2, 2, True, "<skill inc v2>"], report["error"]


async def test_a_test_cannot_save_skills_so_that_saves_never_nest_deeper(served: Caller) -> None:
    said = await served.refusal(
        "save_skill", name="deep", code="def deep(): pass", tests="save_skill('x', code='def x(): pass')"
    )
    assert "while the tests of a skill run" in said


async def test_of_a_long_query_the_beginning_is_searched_for_and_the_answer_says_so(served: Caller) -> None:
    for tool in ("list_skills", "search_tools"):
        assert "truncated" not in await served.told(tool, query="x" * 2000)
        cut = {"query": {"note": "the query has 20000 characters, and its first 2000 were searched for"}}
        answer = await served.call(tool, query="x" * 20_000)
        assert answer.structured_content is not None
        assert answer.structured_content["truncated"] == cut
        assert cut["query"]["note"] in str(answer.content)
        report = await served.told("execute_code", code=f"{tool}('x' * 20_000)['truncated']")
        assert report["result"] == cut


async def test_one_run_saves_no_more_bytes_of_skills_than_it_may(served: Caller) -> None:
    code = """
source = "def big{n}(a):\\n    return " + repr("y" * 450_000)
for n in range(20):
    save_skill(f"big{n}", code=source.replace("{n}", str(n)))
"""
    report = await served.told("execute_code", code=code, timeout_seconds=100)
    assert report["error"]["type"] == "ValueError"
    assert "more than 4000000 bytes of skills" in report["error"]["message"]
    listed = await served.told("list_skills", query="big", limit=100)
    assert 3 <= sum(each["name"].startswith("big") for each in listed["skills"]) <= 9
    for number in range(10):
        await served.call("delete_skill", name=f"big{number}")


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_skills_work_at_each_isolation_and_in_sessions(served: Caller, isolation: str) -> None:
    await save(served, "area", "SIDES = 2\ndef area(w: float) -> float:\n    return w * SIDES\n")
    code = (
        "import asyncio\nfrom skills import area\nasync def later(w):\n    await asyncio.sleep(0)\n    return area(w)\n"
    )
    await save(served, "later", code)
    where = {"isolation": isolation, "session": f"s-{isolation}"}
    first = await served.run("from skills import later\nawait later(3)", **where)
    assert (first["status"], first["result"], first["isolation"]) == ("ok", 6, isolation), first["error"]
    again = await served.run("await later(4), await asyncio.gather(later(1), later(2))", **where)
    assert again["result"] == [8, [2, 4]]


async def test_json_arguments_become_what_the_hints_say(served: Caller) -> None:
    await save(
        served,
        "typed",
        """
from __future__ import annotations
import datetime
from dataclasses import dataclass
from enum import Enum
class Color(Enum):
    RED = "red"
@dataclass
class Point:
    x: int
    y: int = 2
def typed(day: datetime.date, color: Color, at: Point, seen: set[int], *rest: int, **more: float):
    return [day.year, color is Color.RED, at.y, sorted(seen), rest, more]
""",
    )
    arguments = {"day": "2026-05-01", "color": "red", "at": {"x": 1}, "seen": [2, 1, 2], "rest": [3], "extra": 1}
    report = await served.told("run_skill", name="typed", arguments=arguments)
    assert report["result"] == [2026, True, 2, [1, 2], [3], {"extra": 1.0}], report["error"]


async def test_circles_and_missing_skills_are_told(served: Caller) -> None:
    saved = await save(served, "ping", "def ping(n):\n    return skills.pong(n)\n")
    assert any("pong, which is not there" in warning for warning in saved["warnings"])
    missing = await served.run("skills.ping(1)")
    assert "no skill 'pong'" in missing["error"]["message"]
    assert "'ping' needs it" in missing["error"]["message"]
    said = await served.refusal("save_skill", name="pong", code="def pong(n):\n    return skills.ping(n)\n")
    assert "pong → ping → pong" in said


async def test_a_skill_has_variables_of_its_own(served: Caller) -> None:
    await save(served, "own", "COUNT = 1\ndef own():\n    return COUNT\n")
    report = await served.run("COUNT = 99\n[skills.own(), COUNT]")
    assert report["result"] == [1, 99]


@pytest.mark.parametrize(
    "attempt",
    ["skills.own._function", "skills.own.__globals__", "skills.own.x = 1", "type(skills.own)('a')", "skills._find",
     "setattr(skills.own, '_function', len)", "skills.own.__reduce__()"],
)  # fmt: skip
async def test_a_skill_in_code_leads_nowhere(served: Caller, attempt: str) -> None:
    await save(served, "own", "COUNT = 1\ndef own():\n    return COUNT\n")
    report = await served.run(attempt)
    assert report["status"] in {"error", "refused"}, report["result"]


async def test_skills_are_found_beside_tools(served: Caller) -> None:
    await save(served, "compound_interest", "def compound_interest(rate: float, years: int) -> float:\n"
               "    '''Grow a capital with interest.'''\n    return (1 + rate) ** years\n")  # fmt: skip
    found = await served.told("search_tools", query="grow capital with interest", detail_level="signature")
    assert found["tools"][0]["name"] == "compound_interest"
    assert found["tools"][0]["category"] == "skills"
    assert "rate: float" in found["tools"][0]["signature"]
    await served.call("delete_skill", name="compound_interest")
    gone = await served.told("search_tools", query="grow capital with interest", category=None)
    assert all(tool["name"] != "compound_interest" for tool in gone["tools"])


async def test_a_skill_that_was_found_can_be_described_as_a_tool_is(served: Caller) -> None:
    await save(served, "net_present", 'async def net_present(rate: float, flows: list[float]) -> float:\n'
               '    """Value flows of money today.\n\n    Args:\n        flows: One a year.\n    """\n    return 0.0\n')  # fmt: skip
    told = await served.told("get_tool_definition", tool_name="net_present")
    assert (told["server"], told["category"], told["description"]) == (
        "skills",
        "skills",
        "Value flows of money today.",
    )
    assert told["input_schema"]["properties"]["flows"]["description"] == "One a year."
    assert told["example"].startswith("await skills.net_present(rate=")
    for arguments in ({"tool_name": "skills.net_present"}, {"tool_name": "net_present", "category": "skills"}):
        assert await served.told("get_tool_definition", **arguments) == told
    found = await served.told("search_tools", query="flows of money", detail_level="full")
    assert found["tools"][0]["input_schema"] == told["input_schema"]
    report = await served.run("get_tool_definition('skills.net_present')['signature']")
    assert report["result"] == told["signature"]
    for arguments in ({"tool_name": "net_presant"}, {"tool_name": "net_presant", "category": "skills"}):
        assert "Did you mean skills.net_present?" in await served.refusal("get_tool_definition", **arguments)
    assert "skills" not in await served.refusal("get_tool_definition", tool_name="net_present", category="nothing")


async def test_skills_and_their_runs_are_counted(served: Caller) -> None:
    before = await served.told("get_execution_stats")
    await save(served, "counted", "def counted():\n    return 1\n")
    await served.call("run_skill", name="counted")
    after = await served.told("get_execution_stats")
    assert [after["skills"][key] - before["skills"][key] for key in ("skills", "versions", "runs")] == [1, 1, 1]
    assert after["skills"]["recorded_runs"]["ok"] > before["skills"]["recorded_runs"].get("ok", 0)


async def test_skills_are_resources_of_clients_without_the_extension(served: Caller) -> None:
    await save(served, "own", "COUNT = 1\ndef own():\n    return COUNT\n")
    uris = {str(resource.uri) for resource in (await served.client.list_resources()).resources}
    assert "skill://own/SKILL.md" in uris
    (content,) = (await served.client.read_resource("skill://own/scripts/own.py")).contents
    assert "def own():" in content.text  # type: ignore[union-attr]
    for uri in ("skill://own/../own/SKILL.md", "skill://own%2FSKILL.md", "skill://other/SKILL.md", "skill://own/x"):
        with pytest.raises(Exception, match=r"no resource|not found|Unknown|valid"):
            await served.client.read_resource(uri)


async def test_a_skill_with_more_parameters_than_a_schema_may_tell_is_refused(served: Caller) -> None:
    parameters = ", ".join(f"a{number}: list[dict[str, int]] = None" for number in range(1_500))
    said = await served.refusal("save_skill", name="wide", code=f"def wide({parameters}):\n    return 1\n")
    assert "The parameters of wide take more than 100,000 characters" in said
    assert "Take fewer, or one dict. Nothing was saved." in said


def test_a_skill_whose_reader_ended_is_not_said_to_be_wrong() -> None:
    crashed = Outcome(Status.CRASHED, error=Failure("ProcessCrashed", "The process ended. How far it came is unknown."))
    said = source_facts._why("twice", crashed)
    assert said == (
        "The code of twice could not be read: The process ended. How far it came is unknown. Nothing was saved. Save it again."
    )


@pytest.mark.parametrize(("tests", "what"), [("", "The code"), ("assert twice(1) == 2", "The tests")])
def test_a_skill_whose_tests_were_ended_from_outside_is_not_said_to_be_wrong(tests: str, what: str) -> None:
    crashed = Outcome(Status.CRASHED, error=Failure("ProcessCrashed", "The process ended. How far it came is unknown."))
    said = testing._why(
        testing.TestPlan(SkillDraft(name="twice", code="def twice(x): ...", tests=tests), "twice"), crashed
    )
    assert said == (
        f"{what} of twice did not run to the end: The process ended. How far it came is unknown. "
        "Nothing was saved. Save it again."
    )


async def test_lists_and_searches_tell_the_beginning_of_a_long_description(served: Caller) -> None:
    code = "def wordy() -> int:\n    return 1\n"
    await save(served, "wordy", code, description="verbose " * 1000 + "\n\nmore")
    listed = await served.told("list_skills", query="wordy")
    found = await served.told("search_tools", query="wordy", category="skills")
    offered = next(each for each in (await served.client.list_resources()).resources if each.name == "wordy")
    for told in (listed["skills"][0]["description"], found["tools"][0]["description"], offered.description):
        assert told == ("verbose " * 1000)[:ABOUT_CHARS_MAX] + "…"
    loaded = await served.told("load_skill", name="wordy")
    assert loaded["description"].endswith("\n\nmore")


async def test_a_description_that_would_fill_every_list_is_refused_and_a_docstring_cut(served: Caller) -> None:
    code = "def wordy(x: int = 1) -> int:\n    return x\n"
    told = await served.refusal("save_skill", name="wordy", code=code, description="\x01" * 10_001)
    assert "has 10001 characters. Use 10000 at most." in told
    documented = f'def wordy(x: int = 1) -> int:\n    """{"Does it. " * 2_000}"""\n    return x\n'
    await save(served, "wordy", documented)
    sizes = "[len(load_skill('wordy')[part]) for part in ('description', 'code')]"
    assert (await served.run(sizes))["result"] == [10_000, len(documented)]


async def test_what_is_not_a_text_among_tags_is_refused_by_code_as_by_the_tool(served: Caller) -> None:
    code = "save_skill('tagged', 'def tagged(): return 1', tags=['a', [[1] * 100] * 100])"
    error = (await served.run(f"try: {code}\nexcept TypeError as error: result = str(error)"))["result"]
    assert error == "save_skill() got list among tags. Give texts."


async def test_what_is_there_already_may_be_awaited(served) -> None:
    code = """
written = await write_file("/workspace/awaited.txt", "x")
listed = [each["name"] for each in await list_files()]
skilled = (await list_skills())["count"]
deleted = await delete_file("awaited.txt")
result = [written["filename"], "awaited.txt" in listed, skilled >= 0, deleted["deleted"]]
"""
    assert (await served.run(code))["result"] == ["awaited.txt", True, True, True]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("skills.pair(lft=1)", "got an unexpected keyword argument 'lft'. The skill's signature: pair(left: int, "),
        ("from skills import pair\npair()", "missing 1 required positional argument: 'left'. The skill's signature: "),
        ("load_skill('pair', version=1)(1, 2, 3)", "but 3 were given. The skill's signature: pair(left: int, "),
    ],
)
async def test_arguments_that_a_skill_does_not_take_are_answered_with_its_signature(
    served: Caller, call: str, said: str
) -> None:
    await save(served, "pair", "def pair(left: int, right: int = 1) -> int:\n    return len(left, right)")
    error = (await served.run(call))["error"]
    assert error["type"] == "TypeError"
    assert said in error["message"]
    within = (await served.run("skills.pair(1)"))["error"]
    assert within["message"] == "len() takes exactly one argument (2 given)", "this one is the skill's own"


def test_a_schema_whose_names_are_no_texts_is_refused_before_they_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(_schema: object) -> None:
        raise AssertionError("5,000 of them take half a minute")

    monkeypatch.setattr(Draft202012Validator, "check_schema", compared)
    many: list[Any] = [{"a": number} for number in range(5_000)]
    for hostile in (
        {"type": many},
        {"required": many},
        {"dependentRequired": {"a": many}},
        {"items": [{"type": many}]},
    ):
        with pytest.raises(ValueError, match=r"\A\Z"):
            source_facts._schema("wide", {"type": "object", "properties": {"a": hostile}})


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_a_skill_that_is_no_coroutine_may_be_awaited(served: Caller, isolation: str) -> None:
    await save(served, "plus_one", "def plus_one(x: int) -> int:\n    return x + 1\n")
    await save(served, "plus_later", "async def plus_later(x: int) -> int:\n    return await skills.plus_one(x)\n")
    code = """
from skills import plus_one
async def inner():
    return [await plus_one(1), plus_one(x=2), await skills["plus_one"](x=3), await load_skill("plus_one")(4)]
[*await inner(), await skills.plus_one.v1(*[5]), skills.plus_one(6), await skills.plus_later(7), await plus_one(**{"x": 8})]
"""
    report = await served.run(code, isolation=isolation)
    assert report["result"] == [2, 3, 4, 5, 6, 7, 8, 9], report["error"]
