"""What code says of its own progress reaches the client, and its sessions are listed and closed from code."""

from __future__ import annotations

from ...waiting import until
from ..conftest import Caller

Seen = list[tuple[float, float | None, str | None]]


async def run_and_hear(caller: Caller, code: str) -> tuple[dict[str, object], Seen]:
    seen: Seen = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    answer = await caller.client.call_tool("execute_code", {"code": code}, progress_callback=hear)
    assert answer.structured_content is not None
    return answer.structured_content, seen


async def test_progress_of_code_reaches_the_client_that_asked_for_it(caller: Caller) -> None:
    code = "progress(0.25, 'a quarter')\nawait asyncio.sleep(0.3)\nprogress(1, 'done')\nresult = 'ended'"
    report, seen = await run_and_hear(caller, code)
    assert report["result"] == "ended"
    await until(lambda: len(seen) >= 2)
    assert seen == [(0.25, 1.0, "a quarter"), (1.0, 1.0, "done")]
    assert (await caller.run(code))["result"] == "ended"  # nobody asked


async def test_progress_that_comes_too_often_is_left_out_but_for_its_end_and_costs_no_calls(
    in_process_caller: Caller,
) -> None:
    report, seen = await run_and_hear(
        in_process_caller, "for n in range(20_001):\n    progress(n / 20_000)\nresult = 'ended'"
    )
    assert report["result"] == "ended"
    await until(lambda: bool(seen) and seen[-1][0] == 1)
    assert len(seen) < 100
    assert seen == sorted(seen, key=lambda each: each[0])


async def test_progress_never_goes_back(in_process_caller: Caller) -> None:
    code = (
        "await asyncio.sleep(1.2)\nfor share in (0.1, 0.5, 0.3, 1):\n    progress(share)\n    await asyncio.sleep(0.2)"
    )
    _, seen = await run_and_hear(in_process_caller, code)
    await until(lambda: bool(seen) and seen[-1][0] == seen[-1][1])
    values = [value for value, _, _ in seen]
    assert values == sorted(values)
    assert seen[0][1] == 30  # seconds, until the code says more
    assert [round(value / (total or 1), 2) for value, total, _ in seen[-3:]] == [0.1, 0.5, 1]


WRONG = [
    ("progress(50)", "ValueError", "a number from 0 to 1, not 50"),
    ("progress(-0.1)", "ValueError", "a number from 0 to 1"),
    ("progress(float('nan'))", "ValueError", "a number from 0 to 1"),
    ("progress('half')", "TypeError", "a number from 0 to 1, not str"),
    ("progress(True)", "TypeError", "not bool"),
    ("progress(0.5, 3)", "TypeError", "a message as text, not int"),
    ("close_session(3)", "TypeError", "for name"),
    ("close_session('a/b')", "ValueError", "1 to 64 letters, digits, dots"),
    ("close_session('')", "ValueError", "1 to 64 letters, digits, dots"),
]


async def test_wrong_arguments_say_what_to_give(in_process_caller: Caller) -> None:
    for call, error, said in WRONG:
        failure = (await in_process_caller.run(call))["error"]
        assert (call, failure["type"]) == (call, error)
        assert said in failure["message"], call


async def test_sessions_are_listed_and_closed_from_code(in_process_caller: Caller) -> None:
    await in_process_caller.run("x = 1", session="listed-1")
    await in_process_caller.run("x = 2", session="listed-2")
    listed = {each["name"]: each for each in (await in_process_caller.run("list_sessions()"))["result"]}
    assert {"listed-1", "listed-2"} <= listed.keys()
    assert listed["listed-1"]["isolation"] == "restricted"
    assert listed["listed-1"]["calls"] == 1
    own = (await in_process_caller.run("list_sessions()", session="listed-1"))["result"]
    assert {each["name"]: each for each in own}["listed-1"]["idle_seconds"] is None
    dry = await in_process_caller.run(
        "ended = close_session('listed-1'), close_session('listed-1'), close_session('none')\n"
        "[ended, 'listed-1' in [each['name'] for each in list_sessions()]]",
        dry_run=True,
    )
    assert dry["result"] == [[True, False, False], False]
    assert dry["dry_run"] == [{"tool": "close_session", "arguments": {"name": "listed-1"}}]
    assert (await in_process_caller.run("close_session('listed-1'), close_session('none')"))["result"] == [True, False]
    assert (await in_process_caller.run("close_session('listed-2')", session="listed-2"))["result"] is True
    report = await in_process_caller.run("x", session="listed-1")
    assert report["error"]["type"] == "NameError"
    assert "lost its variables: it was ended on request" in report["error"]["hint"]
    await in_process_caller.run("close_session('listed-1')")
    left = {each["name"] for each in (await in_process_caller.run("list_sessions()"))["result"]}
    assert not left & {"listed-1", "listed-2"}
