"""What a worker reports of the code it ran, and what becomes of children that do not keep to the protocol."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys

import pytest

from sealab.sandbox.host.free_memory import Memory
from sealab.sandbox.host.scheduler import Scheduler, SchedulerLimits
from sealab.sandbox.host.worker import CALLS_AT_ONCE_MAX, WorkerHandle
from sealab.sandbox.host.zygote_launcher import _ForkedWorker
from sealab.sandbox.job import Isolation, Job, Limits, Status
from sealab.sandbox.wire import output
from sealab.sandbox.wire.frames import TRACE_BYTES_MAX
from sealab.sandbox.wire.output import OutputBuffer
from sealab.sandbox.wire.zygote_packets import ProcessExit

from ..conftest import no_calls, run


async def test_context_variables_are_there(pool):
    job = Job("rows[1]['a'] + n", context_vars={"rows": [{"a": 1}, {"a": 2}], "n": 40}, limits=Limits(memory_mb=100))
    assert (await pool.run(job, no_calls)).result == 42


@pytest.mark.parametrize("name", ["a b", "class", "__builtins__", ""])
async def test_a_context_variable_without_a_plain_name_is_refused(pool, name):
    outcome = await pool.run(Job("1", context_vars={name: 1}, limits=Limits(memory_mb=100)), no_calls)
    assert outcome.status is Status.REFUSED


async def test_a_syntax_error_is_an_error_of_the_code(pool):
    outcome = await run(pool, "x = 1\nx = = 2")
    assert (outcome.status, outcome.error.type, outcome.error.line) == (Status.ERROR, "SyntaxError", 2)


async def test_a_result_is_shown_whatever_limit_on_digits_the_code_set(pool):
    outcome = await run(pool, "import sys\nsys.set_int_max_str_digits(640)\n[10**1000]")
    assert (outcome.result, outcome.notes) == ([10**1000], {})


async def test_a_report_believes_no_refusal_that_code_changed(pool):
    code = """
import doctest
class Ends(str):
    def split(self, *a): raise SystemExit(0)
def f():
    '''
    >>> f.__globals__
    '''
try: doctest.testmod(raise_on_error=True)
except doctest.UnexpectedException as error: refused = error.exc_info[1]
for name, value in {"type": "Forged", "instead": Ends("x"), "message": "Forged"}.items():
    try: setattr(refused, name, value)
    except AttributeError: pass
raise refused
"""
    outcome = await run(pool, code)
    assert (outcome.status, outcome.error.type) == (Status.ERROR, "SecurityError")
    assert "Forged" not in f"{outcome.error.message} {outcome.error.hint}"


async def test_output_before_a_failure_is_kept(pool):
    outcome = await run(pool, "print('so far')\n1 / 0")
    assert (outcome.status, outcome.output, outcome.error.line) == (Status.ERROR, "so far\n", 2)


@pytest.mark.parametrize("leaving", ["raise SystemExit(0)", "import sys\nsys.exit()", "quit(None)"])
async def test_leaving_well_is_an_ordinary_end(pool, leaving):
    outcome = await run(pool, f"print('kept')\n1\n{leaving}")
    assert (outcome.status, outcome.result, outcome.output, outcome.notes) == (Status.OK, None, "kept\n", {})
    left = await run(pool, f"result = 'of an earlier step'\n{leaving}")
    assert (left.status, left.result) == (Status.OK, None)
    assert left.stderr.startswith("The code ended itself, so its `result` is not shown.")
    within = f"import asyncio\nasync def main():\n    {leaving.replace(chr(10), ';')}\nasyncio.run(main())"
    assert (await run(pool, within)).status is Status.OK


async def test_leaving_with_a_failure_is_an_error_whose_words_go_to_standard_error(pool):
    outcome = await run(pool, "print('out')\nraise SystemExit('no input')")
    assert (outcome.status, outcome.error.type, outcome.error.message) == (Status.ERROR, "SystemExit", "no input")
    assert (outcome.output, outcome.stderr) == ("out\n", "no input\n")
    assert (await run(pool, "raise SystemExit(3)")).stderr == ""


async def test_standard_error_is_kept_when_the_run_is_killed(pool):
    code = "import sys\nprint('said', file=sys.stderr)\nprint('out')\nwhile True: pass"
    outcome = await pool.run(Job(code, limits=Limits(timeout_seconds=0.5)), no_calls)
    assert (outcome.status, outcome.output, outcome.stderr) == (Status.TIMEOUT, "out\n", "said\n")


async def test_more_on_standard_error_than_fits_is_an_error_after_what_fits(pool):
    outcome = await run(pool, "import sys\nsys.stderr.write('é' * 600_000)")
    assert (outcome.status, outcome.error.type) == (Status.ERROR, "OutputFull")
    assert 524_000 < len(outcome.stderr) <= 524_289


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "GeneratorExit", "RecursionError"])
async def test_whatever_the_code_raises_is_its_own_error(pool, name):
    outcome = await run(pool, f"raise {name}")
    assert (outcome.status, outcome.error.type) == (Status.ERROR, name)


async def test_endless_recursion_is_an_error_of_the_code(pool):
    outcome = await run(pool, "def f():\n    return f()\nf()")
    assert (outcome.status, outcome.error.type) == (Status.ERROR, "RecursionError")


async def test_a_memory_bomb_ends_as_memory_with_its_line(pool):
    outcome = await run(pool, "print('before')\nx = [0] * 10**9", memory_mb=50)
    assert (outcome.status, outcome.output, outcome.error.line) == (Status.MEMORY, "before\n", 2)
    assert "50 MB" in outcome.error.message


async def test_memory_filled_bit_by_bit_ends_as_memory(pool):
    outcome = await run(pool, "x = []\nwhile True:\n    x.append('x' * 1000 + str(len(x)))", memory_mb=50)
    assert outcome.status is Status.MEMORY


async def test_code_that_survives_its_memory_error_ends_well(pool):
    code = "try:\n    x = bytearray(10**9)\nexcept MemoryError:\n    result = 'less'"
    assert (await run(pool, code, memory_mb=50)).result == "less"


async def test_output_past_the_limit_is_a_clear_error_and_the_rest_is_kept(pool):
    outcome = await run(pool, "while True:\n    print('x' * 99)", output_bytes_max=10_000)
    assert outcome.status is Status.ERROR
    assert "10000 bytes" in outcome.error.message
    assert len(outcome.output) == 10_000


async def test_text_that_is_no_utf8_is_printed_escaped(pool):
    assert (await run(pool, "print('a\\ud800b')")).output == "a\\ud800b\n"


async def test_a_coroutine_that_nobody_awaited_is_told(pool):
    outcome = await run(pool, "async def f():\n    return 1\nf()\nx = 1")
    assert "await" in " ".join(outcome.notes.values())


async def test_random_numbers_differ_between_workers(pool):
    code = "import random\nrandom.random()"
    assert len({(await run(pool, code)).result for _ in range(3)}) == 3


async def test_a_large_result_arrives_whole(pool):
    outcome = await run(pool, "['x' * 1000] * 4000", memory_mb=200)
    assert len(outcome.result) == 4000


async def test_files_larger_than_one_answer_are_read_whole(pool):
    text = "äöü\n" * 2_000_000

    async def read(name, arguments):
        offset, limit = arguments["offset"], arguments["limit"]
        part = text[offset : offset + limit]
        return {"filename": "a", "content": part, "size": len(text), "truncated": offset + limit < len(text)}

    code = "text = read_file('a')\n[len(text), text[:4], len(read_file('a', 2, 5_000_000))]"
    assert (await run(pool, code, read, memory_mb=300)).result == [len(text), "äöü\n", 5_000_000]


async def test_bytes_are_written_as_they_are(pool):
    written = {}

    async def write(name, arguments):
        written.update(arguments)
        return {"filename": arguments["filename"], "size": 3}

    assert (await run(pool, "write_file('a', b'\\x00\\xff\\x01')", write)).result == {"filename": "a", "size": 3}
    assert written == {"filename": "a", "content": "AP8B", "encoding": "base64"}


async def test_writing_what_is_no_text_says_what_to_do(pool):
    outcome = await run(pool, "write_file('a', {'b': 1})")
    assert outcome.error.type == "TypeError"
    assert "json.dumps" in outcome.error.message


# What follows stands in for a worker whose Python has been broken: a program that writes what it likes to the channel.


async def hostile(program: str, host_calls=no_calls, *, timeout_seconds: float = 10.0, recorder=None):
    """Run a job in a child that runs `program`, with the channel as `c` and a whole frame as `f(text)`."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    prelude = (
        "import json,socket,struct,sys,time\n"
        "c = socket.socket(fileno=int(sys.argv[1]))\n"
        "def f(text): return struct.pack('>I', len(text)) + text.encode()\n"
        "done = f(json.dumps({'t':'done','status':'ok','result':'first','error':None,'notes':{}}))\n"
        "call = f(json.dumps({'t':'call','name':'echo','args':{}}))\n"
        "c.recv(1 << 16)\n"
    )
    with theirs:
        process = subprocess.Popen(  # noqa: ASYNC220 - takes milliseconds in a test
            [sys.executable, "-I", "-S", "-c", prelude + program, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
    ended = asyncio.get_running_loop().create_future()
    shared = OutputBuffer(output.create(1000))
    worker = WorkerHandle(
        _ForkedWorker(process.pid, os.pidfd_open(process.pid), ended), ours, shared, Isolation.RESTRICTED
    )

    async def bury() -> None:
        ended.set_result(ProcessExit(await asyncio.to_thread(process.wait), 0.0, 1.0))

    burying = asyncio.create_task(bury())
    shared.clear()
    worker._output.hand_over = shared.clear  # this child knows nothing of the buffer's mark
    job = Job("1", limits=Limits(timeout_seconds=timeout_seconds))
    scheduler = Scheduler(SchedulerLimits(turns=1, alive=1, queue=1, queue_seconds=1), Memory())
    try:
        async with scheduler.seat(job) as seat:
            return await worker.run(job, host_calls, seat, recorder)
    finally:
        scheduler.close()
        worker.end()
        await burying


GARBAGE = {
    "a length beyond all bounds": "c.send(b'\\xff\\xff\\xff\\xff' + b'x' * 10)",
    "a length of zero": "c.send(b'\\0\\0\\0\\0')",
    "no JSON": "c.send(f('x'))",
    "a pickle": "c.send(f('cposix\\nsystem\\n'))",
    "a frame of the host's": 'c.send(f(\'{"t":"answer","id":1,"value":1}\'))',
    "ready a second time": 'c.send(f(\'{"t":"ready","layers":[]}\'))',
    "a status of the host's": "c.send(done.replace(b'ok', b'ok')[:0] + f(json.dumps({'t':'done','status':'timeout','result':1,'error':None,'notes':{}})))",
    "deep nesting": "c.sendall(f('[' * 1_000_000))",
}


@pytest.mark.parametrize("program", GARBAGE.values(), ids=GARBAGE.keys())
async def test_a_child_that_breaks_the_protocol_is_killed_and_its_run_reported_as_crashed(program):
    outcome = await hostile(program + "\ntime.sleep(60)")
    assert outcome.status is Status.CRASHED
    assert "protocol" in outcome.error.message


async def test_a_child_that_closes_its_channel_is_reported_as_crashed():
    outcome = await hostile("c.close()\ntime.sleep(60)")
    assert outcome.status is Status.CRASHED


async def test_a_child_that_refuses_code_after_a_call_has_begun_it_and_is_killed():
    async def echo(name, arguments):
        return 1

    refused = (
        "{'t':'done','status':'refused','result':None,'error':None,'notes':{},'refusal':{'module':None,'modules':[]}}"
    )
    refusal = f"c.send(f(json.dumps({refused})))\ntime.sleep(60)"
    assert (await hostile(refusal)).status is Status.REFUSED
    outcome = await hostile(f"c.send(call)\nc.recv(1 << 16)\n{refusal}", echo)
    assert (outcome.status, outcome.refusal) == (Status.CRASHED, None)


class Recording:
    """Keeps what a run was recorded with."""

    def __init__(self):
        self.trace = b""

    def started(self, _start, program):
        assert program == 0

    def recorded(self, piece):
        self.trace += piece


async def test_a_child_cannot_have_more_recorded_of_its_run_than_may_be():
    piece = "piece = f(json.dumps({'t':'trace','piece':base64.b64encode(b'x' * (256 << 10)).decode()}))"
    sends = f"import base64\n{piece}\nfor _ in range(NUMBER): c.sendall(piece)\nc.sendall(done)\nc.recv(1)"
    whole = Recording()
    assert (await hostile(sends.replace("NUMBER", "32"), timeout_seconds=100, recorder=whole)).result == "first"
    assert len(whole.trace) == TRACE_BYTES_MAX
    longer = Recording()
    outcome = await hostile(sends.replace("NUMBER", "33"), timeout_seconds=100, recorder=longer)
    assert (outcome.status, len(longer.trace)) == (Status.CRASHED, TRACE_BYTES_MAX)
    assert (await hostile(sends.replace("NUMBER", "1"))).status is Status.CRASHED


async def test_only_the_first_report_counts():
    assert (await hostile("c.send(done + done.replace(b'first', b'other'))")).result == "first"


async def test_half_a_frame_and_silence_end_with_the_clock():
    assert (await hostile("c.send(done[:-1])\ntime.sleep(60)", timeout_seconds=1)).status is Status.TIMEOUT


async def test_bytes_of_a_frame_may_come_one_by_one():
    assert (await hostile("for byte in done: c.send(bytes([byte]))")).result == "first"


async def test_a_flood_of_calls_never_has_more_than_a_few_answered_at_once():
    now = most = total = 0

    async def slow(name, arguments):
        nonlocal now, most, total
        now, total = now + 1, total + 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return "x"

    outcome = await hostile("c.sendall(call * 300 + done)\nwhile c.recv(1 << 16): pass", slow)
    assert outcome.result == "first"
    assert 1 < most <= CALLS_AT_ONCE_MAX <= 16
    assert 250 < total <= 300


async def test_a_child_that_never_reads_its_answers_cannot_fill_the_host():
    answered = 0

    async def large(name, arguments):
        nonlocal answered
        answered += 1
        return "x" * 1_000_000

    outcome = await hostile("while True: c.sendall(call)", large, timeout_seconds=1)
    assert outcome.status is Status.TIMEOUT
    assert answered <= CALLS_AT_ONCE_MAX + 1


async def test_one_clock_counts_for_all_calls():
    async def quick(name, arguments):
        return 1

    outcome = await hostile("while True:\n c.sendall(call); c.recv(100)", quick, timeout_seconds=0.5)
    assert outcome.status is Status.TIMEOUT


async def test_calls_overlap_and_answers_find_their_callers(pool):
    """With the helpers that there are, all calls wait; the channel itself is asked here from inside the code's loop."""
    delays = [random.random() / 20 for _ in range(5)]

    async def slow(name, arguments):
        await asyncio.sleep(delays[arguments["offset"]])
        return {"filename": "a", "content": str(arguments["offset"]), "size": 1, "truncated": False}

    outcome = await run(pool, "[read_file('a', n) for n in range(5)]", slow)
    assert outcome.result == ["0", "1", "2", "3", "4"]


async def test_dataclasses_that_the_code_makes_come_out_as_objects(pool):
    code = """
from dataclasses import InitVar, dataclass, field
from typing import ClassVar

@dataclass(frozen=True, order=True)
class Tag:
    name: str
    count: ClassVar[int] = 3
    _hidden: int = 5

@dataclass(slots=True)
class Item:
    tag: Tag
    seed: InitVar[int] = 1
    parts: list = field(default_factory=list)

[Tag("a"), Item(Tag("b"), parts=[1.5])]
"""
    outcome = await run(pool, code)
    assert outcome.result == [
        {"name": "a", "_hidden": 5},
        {"tag": {"name": "b", "_hidden": 5}, "parts": [1.5]},
    ]
    assert outcome.notes == {}


async def test_an_object_with_forged_fields_is_shown_by_its_repr_with_a_note(pool):
    outcome = await run(pool, "class A:\n    __dataclass_fields__ = {'x': 1}\n    x = 1\nA()")
    assert outcome.result == "<A object>"
    assert "result" in outcome.notes


async def test_a_message_that_is_too_long_is_cut_with_a_note(pool):
    outcome = await run(pool, "raise ValueError('x' * 5000)")
    assert "… (3000 characters left out) …" in outcome.error.message
    assert "cut" in outcome.notes["error.message"]
