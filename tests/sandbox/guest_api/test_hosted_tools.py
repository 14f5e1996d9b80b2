"""What code sees of upstream tools, in restricted and in full Python; the host is played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.errors import HostCallError, Refused
from sealab.sandbox.guest_api import hosted_tools
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import HostCalls, Isolation, Job, Json, Outcome
from sealab.sandbox.report import answer_shapes

from ...zygotes import Launch
from ..conftest import failure

ROWS = {"userName": "ada", "rows": [{"maxCount": 1}], "a_b": 1, "aB": 2}


async def host(name: str, arguments: Mapping[str, Json]) -> Json:
    match name:
        case "list_names":
            return ["git", "time"] if arguments["server"] is None else ["git_log", "status"]
        case "named_servers":
            return [each for each in arguments["names"] if each in {"git", "time"}]
        case "list_tools":
            return [{"name": "git.git_log", "call": "tools.git.git_log(n)", "with": dict(arguments)}]
        case "list_servers":
            return [{"name": "git"}, {"name": "time"}]
        case "call_tool" if arguments["name"] == "git.bad":
            raise HostCallError("The server said no.", type="ToolError")
        case "call_tool":
            return {"called": dict(arguments), **ROWS}
        case _:
            return {"asked": name, "with": dict(arguments), "tools": []}


@pytest.fixture(scope="module", params=[Isolation.RESTRICTED, Isolation.PROCESS])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return request.param


@pytest.fixture(scope="module")
async def pool(isolation: Isolation, lent_zygotes: Launch) -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(isolation=isolation, spares=1), lent_zygotes) as made:
        yield made


async def ran(pool: Pool, code: str, calls: HostCalls = host) -> Outcome:
    return await pool.run(Job(code, isolation=pool._settings.isolation), calls)


async def value(pool: Pool, code: str) -> Json:
    outcome = await ran(pool, code)
    assert outcome.error is None, outcome.error
    return outcome.result


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        ("tools.git.git_log(repo_path='.', n=1)", "git.git_log", {"repo_path": ".", "n": 1}),
        ("tools.git.git_log({'repo_path': '.'})", "git.git_log", {"repo_path": "."}),
        ("tools['my-git'].git_log()", "my-git.git_log", {}),
        ("tools.git['list-all'](x=1)", "git.list-all", {"x": 1}),
        ("call_tool('git.git_log', {'a': {3, 1}})", "git.git_log", {"a": [1, 3]}),
        ("call_tool('git.git_log', since=datetime.date(2024, 1, 2))", "git.git_log", {"since": "2024-01-02"}),
        ("call_tool('git_log')", "git_log", {}),
        ("call_tool('git', 'git_log', {'x': 1})", "git.git_log", {"x": 1}),
        ("call_tool('git', 'git_log', x=1)", "git.git_log", {"x": 1}),
        ("call_tool('git', 'git_log')", "git.git_log", {}),
        ("call_tool('git.git_log', arguments={'x': 1})", "git.git_log", {"x": 1}),
        ("call_tool('git.git_log', None)", "git.git_log", {}),
        ("call_tool(name='git.git_log', arguments={'x': 1})", "git.git_log", {"x": 1}),
        ("call_tool(server='git', tool='git_log', arguments={'x': 1})", "git.git_log", {"x": 1}),
        ("call_tool(tool_name='git.git_log', x=1)", "git.git_log", {"x": 1}),
        (
            "call_tool('git.git_log', name='a', tool='b', server='c')",
            "git.git_log",
            {"name": "a", "tool": "b", "server": "c"},
        ),
        ("tools.read_file(path='a')", "read_file", {"path": "a"}),
        ("tools['read-file'](path='a')", "read-file", {"path": "a"}),
        ("git.git_log(x=1)", "git.git_log", {"x": 1}),
        ("time.get_current_time()", "time.get_current_time", {}),
        ("mcp.time.get_current_time()", "time.get_current_time", {}),
        ("mcp_git.git_log(x=1)", "git.git_log", {"x": 1}),
        ("mcp_servers['my-git'].git_log(x=1)", "my-git.git_log", {"x": 1}),
        ("mcp_servers.get('git').git_log(x=1)", "git.git_log", {"x": 1}),
        ("tools.a.format(x=1)", "a.format", {"x": 1}),
        ("tools.a.get_context(x=1)", "a.get_context", {"x": 1}),
        ("tools.a.obj.__call__(x=1)", "a.obj", {"x": 1}),
    ],
)
async def test_a_call_goes_to_the_host_as_it_was_written(pool, call, name, arguments) -> None:
    assert await value(pool, f"import datetime\n(await {call})['called']") == {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import mcp\nawait mcp.git.git_log()", "git.git_log"),
        ("from mcp import git\nawait git.git_log()", "git.git_log"),
        ("async def f():\n    return await git.git_log()\nawait f()", "git.git_log"),
    ],
)
async def test_a_server_is_found_by_its_bare_name_wherever_the_code_has_it(pool, code, expected) -> None:
    assert (await value(pool, code))["called"]["name"] == expected


@pytest.mark.parametrize(
    "code",
    [
        "class git:\n    async def git_log(): return 1\nawait git.git_log()",
        "import time\nimport asyncio\nawait asyncio.sleep(0)\ntime.time() > 0 and 1",
        "async def f(git):\n    return git.index(5)\nawait f([4, 5])",
        "async def f(): return len(list.__name__) and str.upper('a') == 'A' and 1\nawait f()",
        "async def f(): return json.loads('1')\nawait f()",
    ],
)
async def test_a_name_that_means_something_already_keeps_its_meaning(pool, code) -> None:
    async def no_host(name: str, arguments: Mapping[str, Json]) -> Json:
        raise AssertionError((name, arguments))

    outcome = await ran(pool, code, no_host)
    assert (outcome.error, outcome.result) == (None, 1)


async def test_a_module_that_was_not_imported_is_no_server(pool) -> None:
    outcome = await ran(pool, "async def f(): return time.time()\nawait f()")
    assert failure(outcome).type == "NameError"


async def test_a_tool_called_of_the_module_that_hides_its_server_is_named_with_the_way_to_call_it(pool) -> None:
    outcome = await ran(pool, "import time\nawait time.get_current_time()")
    assert outcome.error is not None
    assert outcome.error.hint is not None
    assert "tools.time.get_current_time(…)" in outcome.error.hint


async def test_the_helpers_stand_on_tools_too_whatever_servers_there_are(pool) -> None:
    assert (await value(pool, "tools.list_tools()"))[0]["name"] == "git.git_log"
    assert (await value(pool, "await tools.search_tools('x')"))["asked"] == "search_tools"
    assert (await value(pool, "await tools.list_tools('git')"))[0]["with"]["server"] == "git"
    assert (await value(pool, "await tools.call_tool('a.b')"))["called"]["name"] == "a.b"
    assert (await value(pool, "await tools['list_tools'].x()"))["called"]["name"] == "list_tools.x"


@pytest.mark.parametrize("code", ["mcp_servers()", "tools()", "skills()", "import mcp\nmcp()"])
async def test_what_has_only_members_cannot_be_called(pool, code) -> None:
    outcome = await ran(pool, code)
    assert failure(outcome).type == "TypeError"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("r['userName'], r['user_name'], r['USERNAME'], r.get('user_name')", ["ada"] * 4),
        ("r['rows'][0]['max_count']", 1),
        ("r['a_b'], r['aB'], r.get('ab', 'ambiguous')", [1, 2, "ambiguous"]),
        ("'user_name' in r, 'userName' in r", [False, True]),
        ("isinstance(r, dict), dict(r) == r, json.loads(json.dumps(r)) == r, {**r} == r", [True] * 4),
        ("copy.deepcopy(r)['user_name']", "ada"),
        ("str(r['rows'])", "[{'maxCount': 1}]"),
    ],
)
async def test_a_field_of_an_answer_is_found_in_either_spelling(pool, expression, expected) -> None:
    assert await value(pool, f"import copy, json\nr = await tools.a.b()\n{expression}") == expected


async def test_a_missing_field_is_a_key_error_that_names_the_fields(pool) -> None:
    outcome = await ran(pool, "r = await tools.a.b()\nr['user_nam']")
    assert outcome.error is not None
    assert outcome.error.type == "KeyError"
    assert "userName" in (outcome.error.hint or "")


async def test_an_answer_is_a_dict_by_its_type_in_restricted_code(pool, isolation) -> None:
    restricted = isolation is Isolation.RESTRICTED
    assert await value(pool, "type(await tools.a.b()) is dict") is restricted


async def test_errors_name_an_answer_as_a_dict(pool) -> None:
    for call, kind in (("await tools.a.b()", "dict"), ("search_tools('x')", "dict"), ("list_servers()", "list")):
        outcome = await ran(pool, f"({call}).no_such_name")
        assert failure(outcome).message == f"'{kind}' object has no attribute 'no_such_name'"


async def test_a_failed_call_can_be_caught(pool) -> None:
    code = "try:\n    await tools.git.bad()\nexcept ToolError as error:\n    result = type(error).__name__, str(error)"
    assert await value(pool, code) == ["ToolError", "The server said no."]


async def test_a_failed_call_that_is_not_caught_ends_the_run_with_its_line(pool) -> None:
    outcome = await ran(pool, "x = 1\nawait tools.git.bad()")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message, outcome.error.line) == ("ToolError", "The server said no.", 2)


async def test_arguments_by_position_are_for_the_host_to_name(pool) -> None:
    called = {"name": "git.git_log", "arguments": {"since": "today"}, "positional": [".", 3]}
    assert await value(pool, "(await tools.git.git_log('.', 3, since='today'))['called']") == called


async def test_bytes_are_passed_as_base64_and_their_places_told_to_the_host(pool) -> None:
    called = {"name": "git.put", "arguments": {"files": [{"data": "eA=="}]}, "binary": ["files[0].data"]}
    assert await value(pool, "(await tools.git.put(files=[{'data': b'x'}]))['called']") == called
    outcome = await ran(pool, "await tools.git.put(b'x')")
    assert "git.put cannot be passed [0]: 1 bytes as base64" in failure(outcome).message


async def test_an_argument_by_position_that_json_cannot_hold_is_named(pool) -> None:
    outcome = await ran(pool, "await tools.git.git_log('.', object())")
    assert "git.git_log cannot be passed [1]" in failure(outcome).message


@pytest.mark.parametrize("argument", ["object()", "float('nan')", "[1, [lambda: 1]]"])
async def test_an_argument_that_json_cannot_hold_is_named(pool, argument) -> None:
    outcome = await ran(pool, f"await tools.git.git_log(since={argument})")
    assert outcome.error is not None
    assert outcome.error.type == "TypeError"
    assert "git.git_log cannot be passed since" in outcome.error.message


async def test_calls_run_at_the_same_time(pool) -> None:
    together = 0
    most = 0

    async def counting(_name: str, _arguments: Mapping[str, Json]) -> Json:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(0.05)
        together -= 1
        return None

    code = "import asyncio\nawait asyncio.gather(*[tools.a.b(n=n) for n in range(8)])"
    outcome = await ran(pool, code, counting)
    assert outcome.error is None
    assert most == 8


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dir(tools)", ["git", "time"]),
        ("dir(tools.git)", ["git_log", "status"]),
        ("len(mcp_servers), len(tools.git), bool(tools.nowhere)", [2, 2, True]),
        ("list(mcp_servers), mcp_servers.keys(), 'git' in mcp_servers, 'x' in tools", [["git", "time"]] * 2 + [True, False]),
        ("hasattr(tools, '_x'), hasattr(tools.git, '__file__')", [False, False]),
        ("runtime.list_servers_sync(), runtime.list_servers(), runtime.discovered_servers()", [["git", "time"]] * 3),
        ("await runtime.list_servers(), await runtime.discovered_servers()", [["git", "time"]] * 2),
        ("list_servers()", [{"name": "git"}, {"name": "time"}]),
        ("(await search_tools('x', limit=3))['with']", {"query": "x", "category": None, "detail_level": "summary", "limit": 3}),
        ("get_tool_definition('a.b')['with']", {"tool_name": "a.b", "category": None, "detail_level": "full"}),
        ("runtime.query_tool_docs_sync('git')[0]['toolAlias']", "git_log"),
        ("runtime.query_tool_docs_sync('git')[0]['with']", {"server": "git", "tool": None, "detail_level": "summary"}),
        ("(await runtime.query_tool_docs('git', 'x', detail='full'))[0]['with']", {"server": "git", "tool": "x", "detail_level": "full"}),
        ("await runtime.search_tool_docs('x', limit=2)", []),
        ("runtime.describe_server('git')['with']", {"server": "git"}),
        ("runtime.capability_summary()['asked']", "capability_summary"),
    ],
)  # fmt: skip
async def test_discovery_answers_at_once_and_can_be_awaited(pool, expression, expected) -> None:
    assert await value(pool, f"from mcp import runtime\n{expression}") == expected


@pytest.mark.parametrize(
    "code",
    [
        "tools.git.x = 1",
        "tools.x = 1",
        "call_tool = tools.a.b\ncall_tool.__globals__",
        "tools.a.b.__code__",
        "tools._find",
    ],
)
def test_restricted_code_cannot_change_or_open_what_it_is_given(code) -> None:
    with pytest.raises((AttributeError, Refused)):
        run_program(compile_program(code), new_namespace(hosted_tools.helpers()))


async def shaped(name: str, arguments: Mapping[str, Json]) -> Json:
    if name != "call_tool":
        return await host(name, arguments)
    match arguments["name"]:
        case "git.git_log":
            return {"commits": [{"hash": "a1", "author": {"name": "Ada"}}], "total": 1}
        case "git.status":
            return "clean"
        case "git.picture":
            return ["Here it is", {"handle": "a.png", "size": 1}, {"handle": "b.png", "size": 2}]
        case _:
            return None


LOG = 'git.git_log returned {"commits": list[{"hash": str, "author": {"name": str}}], "total": int}.'


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("log = await tools.git.git_log()\nlog['entries']", LOG),
        ("(await tools.git.git_log())['entries']", LOG),
        ("log = await call_tool('git.git_log', {})\nfor each in log['commits']:\n    each['date']", LOG),
        ("async def fetch():\n    return await tools.git.git_log()\nfound = await fetch()\nfound[0]", LOG),
        ("def day(commit):\n    return commit['day']\nlog = await tools.git.git_log()\nday(log['commits'][0])", LOG),
        (
            "import asyncio\nlog, state = await asyncio.gather(tools.git.git_log(), tools.git.status())\nlog['x']",
            f"{LOG} git.status returned str.",
        ),
        ("state = await tools.git.status()\nstate['branch']", "git.status returned str."),
        ("log = await tools.git.git_log()\nlog.entries", LOG),
        ("state = await tools.git.status()\nstate.get('branch')", "git.status returned str."),
        ("tags = await tools.git.tags()\nlen(tags)", "git.tags returned None."),
        (
            "picture = await tools.git.picture()\nwrite_file('a.png', picture)",
            'git.picture returned list[str | {"handle": str, "size": int}].',
        ),
    ],
)
async def test_the_hint_on_a_value_that_a_tool_returned_shows_what_it_returned(
    pool: Pool, code: str, said: str
) -> None:
    outcome = await ran(pool, code, shaped)
    assert (failure(outcome).hint or "").endswith(said)


@pytest.mark.parametrize(
    "code",
    [
        "log = await tools.git.git_log()\ncounts = {'a': 1}\ncounts[log['total']]",
        "log = await tools.git.git_log()\nlen(log, 1)",
        "log = await tools.git.git_log()\nclass P:\n    pass\np = P()\np.log = log\np.other",
        "log = await tools.git.git_log()\n{'a': 1}['b']",
        "log = await tools.git.git_log()\nNone['b']",
    ],
)
async def test_the_hint_on_another_value_says_nothing_of_tools(pool: Pool, code: str) -> None:
    outcome = await ran(pool, code, shaped)
    assert "returned" not in (failure(outcome).hint or "").replace("methods return", "")


def test_the_shape_of_any_answer_is_written_in_bounded_length_and_time() -> None:
    wide: dict[str, object] = {f"key_{n}" * 9: [[{"a": n}] * 1000] * 1000 for n in range(1000)}
    deep: object = 1
    for _ in range(500):
        deep = {"a": [deep]}
    for answer in (wide, [wide] * 1000, deep, {"a": wide, "b": deep}):
        assert len(answer_shapes.shape_of(answer)) <= 200
    assert answer_shapes.shape_of({"a": [], "b": [None, 1.5], "c": True}) == (
        '{"a": list (empty), "b": list[None | float], "c": bool}'
    )
    answers: dict[str, str] = {}
    answer_shapes.note(answers, "a.b", {"dry_run": True})
    assert answers == {}, "nothing is known of what a dry run left out"
    for number in range(100):
        answer_shapes.note(answers, f"a.b{number}", 1)
    assert len(answers) == answer_shapes.TOOLS_MAX
