"""Full CPython behind all other layers: real workers, on this interpreter and on one with numpy, pandas, matplotlib."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sealab.sandbox.errors import SessionRefused, WorkerLost
from sealab.sandbox.host import zygote_launcher
from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Isolation, Json, Outcome, Status

from ..conftest import failure
from .conftest import SETTINGS, run, size_of, value


async def test_no_path_of_the_host_but_the_interpreters_own_is_anywhere_in_its_objects(
    pool: Pool, workspace: Path
) -> None:
    code = """
import gc, sys, sysconfig, types

gc.unfreeze()
own = {sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}
found = set()

def look(text, where):
    for head, tail in PARTS:
        wanted = head + tail
        if wanted in text:
            for path in own:
                text = text.replace(path, "")
            if wanted in text:
                found.add(f"{where}: {text[:200]}")

def texts(item):
    kind = type(item)
    if kind is str:
        yield item
    elif kind is bytes:
        yield item.decode("latin-1")
    elif kind is dict:
        for pair in list(item.items()):
            for part in pair:
                if type(part) in (str, bytes):
                    yield from texts(part)
    elif kind in (list, tuple, set, frozenset):
        for part in list(item):
            if type(part) in (str, bytes):
                yield from texts(part)

def codes(code):
    yield code
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            yield from codes(constant)

for item in gc.get_objects():
    for text in texts(item):
        look(text, type(item).__name__)
    if type(item) is types.FunctionType:
        for each in codes(item.__code__):
            look(each.co_filename, each.co_qualname)
    for slot in getattr(type(item), "__slots__", ()):
        value = getattr(item, slot, None)
        if type(value) is str:
            look(value, type(item).__name__ + "." + slot)
        elif type(value) is tuple:
            for text in texts(value):
                look(text, type(item).__name__ + "." + slot)
frame = sys._getframe()
while frame is not None:
    for name, value in list(frame.f_locals.items()):
        for text in texts(value):
            look(text, "frame " + frame.f_code.co_qualname + " " + name)
    look(frame.f_code.co_filename, "frame")
    frame = frame.f_back
look(" ".join([*sys.argv, *sys.orig_argv, *sys.path]), "arguments")
argv = ctypes.POINTER(ctypes.c_wchar_p)()
count = ctypes.c_int()
ctypes.pythonapi.Py_GetArgcArgv(ctypes.byref(count), ctypes.byref(argv))
look(" ".join(argv[at] for at in range(count.value)), "argc")
sorted(found)[:20]
"""
    program = Path(zygote_launcher.__file__).parent.parent.parent
    wanted = [str(workspace), str(workspace.parent), str(program), str(program.resolve())]
    # In two parts each, so that the text of the program itself is not found.
    parts = [[path[:4], path[4:]] for path in wanted]
    given = f"import ctypes\nPARTS = {parts!r}\n"
    assert await value(pool, given + code) == []


async def test_a_session_begins_with_all_the_memory_that_it_can_have(pool: Pool) -> None:
    assert (await run(pool, "1", session="small", memory_mb=100)).status is Status.OK
    with pytest.raises(SessionRefused, match=r"began with 100 MB of memory.*Ask for no more"):
        await run(pool, "2", session="small", memory_mb=101)
    assert (await run(pool, "3", session="small", memory_mb=50)).result == 3
    taken = await run(pool, "len(bytearray(70_000_000))", session="small", memory_mb=100)
    assert taken.result == 70_000_000
    await pool.end_session("small")
    assert (await run(pool, "len(bytearray(120_000_000))", session="small", memory_mb=200)).result == 120_000_000
    await pool.end_session("small")


async def test_an_exception_whose_class_has_no_plausible_name_is_told_by_a_plain_type(pool: Pool) -> None:
    for name in ("\x1b[31mEvil", "![x](https://x.example/?d=1)", "", "E" * 1000):
        outcome = await run(pool, f"raise type({name!r}, (ValueError,), {{}})('what happened')")
        assert outcome.error is not None
        assert outcome.error.type == "Exception"
        assert outcome.error.message.endswith("what happened")
        assert name[:100] in outcome.error.message


async def test_code_finds_no_arguments_and_an_empty_standard_input(pool: Pool) -> None:
    code = "import argparse, os, sys\n[vars(argparse.ArgumentParser().parse_args()), sys.argv, sys.stdin.read(), os.read(0, 9)]"
    assert await value(pool, code) == [{}, [""], "", ""]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 no object is immortal")
async def test_what_the_zygote_made_is_not_copied_by_counting_references_to_it(pool: Pool) -> None:
    code = "import json, sys\n[sys.getrefcount(json.loads) > 1 << 31, sys.getrefcount(object()) < 10]"
    assert await value(pool, code) == [True, True]


async def error_of(pool: Pool, code: str, **limits) -> str:
    outcome = await run(pool, code, **limits)
    assert outcome.status is Status.ERROR, outcome
    assert outcome.error is not None
    return f"{outcome.error.type}: {outcome.error.message} {outcome.error.hint}"


# All of Python.


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os\nos.path.join('a', 'b')", "a/b"),
        ("import ctypes\nctypes.sizeof(ctypes.c_int)", 4),
        ("class A: pass\nA().__class__.__name__", "A"),
        ("[].__class__.__mro__[-1].__subclasses__() != []", True),
        ("try:\n    raise ExceptionGroup('g', [ValueError()])\nexcept* ValueError:\n    result = 'star'", "star"),
        ("import pickle\nclass P:\n    x = 1\npickle.loads(pickle.dumps(P())).x", 1),
        ("import sqlite3\nsqlite3.connect('/tmp/a.db').execute('select 6 * 7').fetchone()", [42]),
        ("import inspect\ndef f():\n    return 1\ninspect.getsource(f)", "def f():\n    return 1\n"),
        ("__name__", "__main__"),
        ("math.floor(2.5), json.dumps([1])", [2, "[1]"]),
        ("summarize_list([1, 2, 3], limit=1)", {"count": 3, "sample": [1]}),
        ("result = 1\n2", 1),
        ("", None),
    ],
)
async def test_any_python_runs_and_reports_as_in_the_dialect(pool: Pool, code: str, expected: Json) -> None:
    assert await value(pool, code) == expected


async def test_the_report_names_the_layers_without_the_language(pool: Pool) -> None:
    outcome = await run(pool, "1")
    assert outcome.isolation is Isolation.PROCESS
    assert "language" not in outcome.layers
    assert {"process", "limits"} <= set(outcome.layers)


async def test_errors_tell_the_own_line_and_nothing_of_the_machinery(pool: Pool) -> None:
    outcome = await run(pool, "import json\ndef f():\n    json.loads('{')\nf()")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.line) == ("JSONDecodeError", 3)
    assert outcome.error.traceback is not None
    assert "full_python" not in outcome.error.traceback
    assert outcome.error.traceback.count("File ") == 2


async def test_a_syntax_error_is_an_ordinary_failure(pool: Pool) -> None:
    outcome = await run(pool, "x = \n")
    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.line) == ("SyntaxError", 1)
    assert outcome.refusal is None


async def test_exit_with_a_status_is_told_and_a_successful_one_is_no_failure(pool: Pool) -> None:
    assert (await run(pool, "exit()")).status is Status.OK
    assert "SystemExit: 3" in await error_of(pool, "import sys\nsys.exit(3)")


# Output.


async def test_output_of_every_kind_comes_in_order(pool: Pool) -> None:
    code = """
import ctypes, os, sys
print("print")
os.write(1, b"write\\n")
sys.stderr.write("error\\n")
os.write(2, b"two\\n")
sys.stdout.buffer.write(b"bytes\\n")
libc = ctypes.CDLL(None)
libc.puts(b"from C")
print("no newline", end="")
"""
    outcome = await run(pool, code)
    assert outcome.output.startswith("print\nwrite\ntwo\nbytes\n")
    assert outcome.stderr == "error\n"
    assert "from C\n" in outcome.output
    assert "no newline" in outcome.output


async def test_output_up_to_a_stop_is_kept(pool: Pool) -> None:
    outcome = await run(pool, "print('before')\nwhile True: pass", timeout_seconds=0.5)
    assert (outcome.status, outcome.output) == (Status.TIMEOUT, "before\n")


async def test_output_beyond_its_limit_stops_the_code_and_keeps_what_fits(pool: Pool) -> None:
    outcome = await run(pool, "while True: print('x' * 999)", output_bytes_max=10_000)
    assert outcome.status is Status.ERROR
    assert failure(outcome).type == "OutputFull"
    assert len(outcome.output) == 10_000


async def test_output_of_one_call_of_a_session_is_not_shown_with_the_next(pool: Pool) -> None:
    assert (await run(pool, "print('first' * 100)", session="output")).output == "first" * 100 + "\n"
    assert (await run(pool, "print('b')", session="output")).output == "b\n"
    await pool.end_session("output")


# Event loops and threads.


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.sleep(0)\nresult = 5",
        "async def f():\n    return 5\nasyncio.run(f())",
        "async def f():\n    return await asyncio.get_running_loop().run_in_executor(None, lambda: 5)\nasyncio.run(f())",
        "await asyncio.to_thread(lambda: 5)",
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(asyncio.sleep(0, 5))",
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as e:\n    result = max(e.map(int, '012345'))",
        "import threading\nfound = []\nt = [threading.Thread(target=found.append, args=(n,)) for n in range(20)]\nfor each in t: each.start()\nfor each in t: each.join()\nlen(found) - 15",
    ],
)
async def test_loops_and_threads_are_pythons_own(pool: Pool, code: str) -> None:
    assert await value(pool, code) == 5


async def test_threads_that_are_no_daemons_are_waited_for(pool: Pool) -> None:
    code = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
executor = ThreadPoolExecutor()
executor.submit(lambda: (time.sleep(0.1), print("pooled")))
threading.Thread(target=lambda: (time.sleep(0.2), print("later"))).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("first")
"""
    outcome = await run(pool, code)
    assert (outcome.status, outcome.output) == (Status.OK, "first\npooled\nlater\n")


async def test_multiprocessings_pools_of_threads_and_locks_work_within_the_one_process(pool: Pool) -> None:
    code = """
import multiprocessing as m
from multiprocessing.pool import ThreadPool
with ThreadPool(4) as threads:
    squares = threads.map(lambda n: n * n, range(5))
lock, many = m.RLock(), m.BoundedSemaphore(2)
with lock, lock:
    taken = [many.acquire(False) for _ in range(3)]
many.release(); many.release()
try:
    many.release()
except ValueError as error:
    told = str(error)
squares, taken, told
"""
    told = "semaphore or lock released too many times"
    assert await value(pool, code) == [[0, 1, 4, 9, 16], [True, True, False], told]


async def reads(name: str, arguments: Mapping[str, Json]) -> Json:
    """Answer as a host whose every file says its own name, the later asked the sooner."""
    assert name == "read_file"
    await asyncio.sleep(0.05 if arguments["filename"] == "slow" else 0.01)
    return {"content": str(arguments["filename"]), "truncated": False, "size": 4}


async def test_threads_and_loops_ask_the_host_at_once_and_each_gets_its_own_answer(pool: Pool) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
names = [f"file{n}" for n in range(12)]
async def main():
    beside = asyncio.create_task(asyncio.sleep(0.01, "slept"))
    asked = await asyncio.gather(*(asyncio.to_thread(read_file, name) for name in names))
    return asked, await beside
with ThreadPoolExecutor(4) as executor:
    plain = list(executor.map(read_file, names))
result = [plain == names, *[(got == names, slept) for got, slept in [await main()]]]
"""
    assert await value(pool, code, reads) == [True, [True, "slept"]]


async def test_a_thread_that_still_waits_for_the_host_when_a_run_ends_does_not_end_its_session(pool: Pool) -> None:
    async def never(name: str, _arguments: Mapping[str, Json]) -> Json:
        await asyncio.sleep(60 if name == "list_files" else 0)
        return {"content": name, "truncated": False, "size": 9}

    async def ran(code: str) -> Outcome:
        return await run(pool, code, never, session="with threads")

    asked = """
import asyncio, threading, time
x, said = 1, []
def ask():
    try:
        list_files()
    except RuntimeError as error:
        said.append(str(error))
threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.1)
"""
    assert (await ran(asked)).status is Status.OK
    await asyncio.sleep(0.1)
    answered = await ran("[x, read_file('a'), await asyncio.to_thread(read_file, 'b')]")
    assert (answered.result, answered.session_ended) == ([1, "read_file", "read_file"], None)
    ended = await ran("for thread in threads: thread.join(10)\nsaid")
    assert (len(ended.result), len(set(ended.result))) == (3, 1), ended
    assert "has ended, so there is no answer" in ended.result[0]


# Files.


async def test_the_workspace_can_be_read_and_not_written(pool: Pool) -> None:
    assert await value(pool, "open('/workspace/table.csv').read()") == "a,b\n1,2\n"
    assert "keep(path, name)" in await error_of(pool, "open('/workspace/new', 'w')")


async def test_home_and_temporary_files_are_in_a_scratch_directory_that_ends_with_the_run(pool: Pool) -> None:
    code = """
import os, tempfile, pathlib
with tempfile.NamedTemporaryFile(delete=False) as file:
    file.write(b"x")
pathlib.Path("relative").write_text("y")
result = [os.getcwd(), tempfile.gettempdir(), str(pathlib.Path.home()), len([name for name in os.listdir("/tmp") if os.access(name, os.W_OK)])]
"""
    assert await value(pool, code) == ["/tmp", "/tmp", "/tmp", 2]
    assert await value(pool, "import os\n[name for name in os.listdir('/tmp') if os.access(name, os.W_OK)]") == []


async def test_keep_brings_a_large_file_home_in_parts(pool: Pool) -> None:
    parts: list[Mapping[str, Json]] = []

    async def host(name: str, arguments: Mapping[str, Json]) -> Json:
        assert name == "keep"
        parts.append(arguments)
        return {"filename": "b", "size": 1} if arguments["last"] else None

    code = "import os\ndata = os.urandom(13_000_000)\nopen('a.bin', 'wb').write(data)\nkeep('a.bin', 'b')\nhash_of = __import__('hashlib').sha256(data).hexdigest()\nresult = hash_of"
    told = await value(pool, code, host)
    import hashlib

    whole = b"".join(base64.b64decode(str(part["content"])) for part in parts)
    assert hashlib.sha256(whole).hexdigest() == told
    assert [part["last"] for part in parts] == [0] * (len(parts) - 1) + [1]
    assert len(parts) > 1
    assert {part["filename"] for part in parts} == {"b"}


async def test_an_empty_file_is_kept_under_its_own_name(pool: Pool) -> None:
    async def host(name: str, arguments: Mapping[str, Json]) -> Json:
        return [name, arguments["filename"], arguments["content"], arguments["last"]]

    assert await value(pool, "open('/tmp/empty.txt', 'w').close()\nkeep('/tmp/empty.txt')", host) == [
        "keep",
        "empty.txt",
        "",
        1,
    ]


# What cannot be done, in words.


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nos.fork()", "no process can be started here"),
        ("import subprocess\nsubprocess.run(['true'])", "no process can be started here"),
        ("import os\nos.system('true')", "no process can be started here"),
        ("import multiprocessing as m\nm.Process(target=print).start()", "no process can be started here"),
        ("import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()", "no other process"),
        ("import urllib.request as u\nu.urlopen('http://127.0.0.1:1')", "there is no network here"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 1))", "there is no network here"),
        ("import socket\nsocket.socket()", "PermissionError"),
        ("import never_heard_of", "not installed here"),
        ("np.zeros(3)", "Write `import numpy as np` first"),
        ("input()", "EOFError"),
    ],
)
async def test_what_the_sandbox_forbids_is_said_in_words(pool: Pool, code: str, said: str) -> None:
    assert said in await error_of(pool, code)


@pytest.mark.parametrize(
    ("code", "signal_name", "line"),
    [
        ("import ctypes\ndef f():\n    ctypes.string_at(0)\n\nf()", "SIGSEGV", 3),
        ("import os\nprint('before')\nos.abort()", "SIGABRT", 3),
        (
            "import os, threading, time\n(threading.Thread(target=os.abort, daemon=True).start(), time.sleep(20))",
            "SIGABRT",
            2,
        ),
    ],
)
async def test_a_crash_in_native_code_tells_the_line_of_the_program(
    pool: Pool, code: str, signal_name: str, line: int
) -> None:
    outcome = await run(pool, code)
    assert outcome.status is Status.CRASHED
    assert outcome.error is not None
    assert f"{signal_name} at line {line}" in outcome.error.message
    assert outcome.error.line == line
    assert f'File "<code>", line {line}\n    {code.splitlines()[line - 1].strip()}\n' in str(outcome.error.traceback)
    assert "Fatal Python error" not in outcome.output + outcome.stderr


async def test_what_a_library_wrote_before_it_ended_the_process_is_told(pool: Pool) -> None:
    code = "import os\nos.write(2, b\"thread 'main' panicked at lib.rs:7:\\nindex out of bounds\\n\")\nos.abort()"
    outcome = await run(pool, code)
    assert "It wrote last: index out of bounds" in failure(outcome).message


async def test_a_crash_in_a_session_tells_the_line_of_the_call_that_ran(pool: Pool) -> None:
    await run(pool, "import os\n\n\ndef end():\n    os.abort()", session="crash")
    outcome = await run(pool, "x = 1\nend()", session="crash")
    assert failure(outcome).line == 2


async def test_a_line_that_the_program_does_not_have_is_not_believed(pool: Pool) -> None:
    told = 'Fatal Python error: Aborted\\n\\nThread 0x1:\\n  File "<code>", line 99999 in f\\n'
    outcome = await run(pool, f"import os, signal\nos.write(2, b'{told}')\nos.kill(os.getpid(), signal.SIGKILL)")
    assert failure(outcome).line is None


async def test_memory_is_bounded(pool: Pool) -> None:
    outcome = await run(pool, "x = bytearray(400_000_000)", memory_mb=200)
    assert outcome.status is Status.MEMORY


async def test_time_is_told_of_the_process_that_runs_the_code(pool: Pool) -> None:
    code = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    outcome = await run(pool, code)
    assert outcome.cpu_ms is not None
    assert outcome.cpu_ms >= 200


# Sessions and fresh workers.


async def test_a_session_keeps_variables_imports_and_results(pool: Pool) -> None:
    assert await value(pool, "import os\nx = [1]\nresult = 7", session="kept") == 7
    assert await value(pool, "x.append(os.sep)\nx", session="kept") == [1, "/"]
    assert await value(pool, "result + 1", session="kept") == 8
    assert await value(pool, "None", session="kept") is None
    assert await value(pool, "result", session="kept") == 7
    await pool.end_session("kept")


async def test_nothing_of_one_run_is_in_the_next(pool: Pool) -> None:
    await run(pool, "import builtins, json\nbuiltins.left = json.left = left = 1")
    outcome = await run(
        pool, "import builtins, json\n[hasattr(builtins, 'left'), hasattr(json, 'left'), 'left' in globals()]"
    )
    assert outcome.result == [False, False, False]


async def test_workers_do_not_share_a_seed(pool: Pool) -> None:
    first = await value(pool, "random.random()")
    assert first != await value(pool, "random.random()")


async def test_an_interpreter_that_cannot_start_is_named(tmp_path: Path) -> None:
    async with Pool(replace(SETTINGS, python=str(tmp_path / "none"))) as pool:
        with pytest.raises(WorkerLost, match=r"none cannot be started: No such file"):
            await run(pool, "1")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv without a single library but one called numpy, which starts a thread when it is imported."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=50)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "numpy.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\nmine = 5\n",
        encoding="utf-8",
    )
    return folder / "bin" / "python"


async def test_an_interpreter_without_any_library_will_do_even_if_a_package_starts_threads(bare_python: Path) -> None:
    async with Pool(replace(SETTINGS, python=str(bare_python))) as pool:
        assert await value(pool, "import numpy\nnumpy.mine") == 5
        assert "RestrictedPython" in await error_of(pool, "import RestrictedPython")


async def test_this_interpreters_packages_can_be_imported(pool: Pool) -> None:
    assert await value(pool, "import psutil\npsutil.__name__") == "psutil"
    assert await value(pool, "import sys\nsys.version_info[:2]") == list(sys.version_info[:2])


# numpy, pandas, matplotlib.


async def test_numpy_and_pandas_work(science: Pool) -> None:
    assert await value(science, "import numpy as np\nfloat((np.eye(300) @ np.ones(300)).sum())") == 300
    code = "import pandas as pd\npd.read_csv('/workspace/table.csv').eval('a + b').tolist()"
    assert await value(science, code) == [3]


async def test_an_array_within_itself_is_told_as_its_repr(science: Pool) -> None:
    outcome = await run(science, "import numpy as np\na = np.empty(1, dtype=object)\na[0] = a\na")
    assert outcome.status is Status.OK
    assert outcome.result == ["array([array(..., dtype=object)], dtype=object)"]


async def test_workers_do_not_share_numpys_seed(science: Pool) -> None:
    code = "import numpy as np\n[np.random.rand(), np.random.default_rng().random()]"
    first, second = await value(science, code), await value(science, code)
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first[0] != second[0]
    assert first[1] != second[1]


async def test_figures_that_are_shown_or_left_open_come_back_in_order(science: Pool) -> None:
    code = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
figure, axes = plt.subplots(figsize=(2, 1))
figure.show()
plt.figure(figsize=(1, 3))
closed = plt.figure()
plt.close(closed)
"""
    outcome = await run(science, code)
    assert outcome.status is Status.OK, outcome
    assert [size_of(figure) for figure in outcome.figures] == [(640, 480), (200, 100), (100, 300)]
    assert outcome.output == ""


async def test_figures_of_a_failed_run_come_back_too(science: Pool) -> None:
    outcome = await run(science, "import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0")
    assert outcome.status is Status.ERROR
    assert len(outcome.figures) == 1


async def test_figures_are_bounded_in_size_and_number_and_what_is_left_out_is_told(science: Pool) -> None:
    code = """
import matplotlib.pyplot as plt
plt.figure(figsize=(60, 30))
for _ in range(11):
    plt.figure(figsize=(1, 1))
"""
    outcome = await run(science, code)
    assert len(outcome.figures) == 10
    assert max(size_of(outcome.figures[0])) < 1568
    assert outcome.notes["images"].startswith("figure 11 is more than the 10 that a report shows; figure 12")


async def test_a_session_shows_each_figure_once(science: Pool) -> None:
    first = await run(science, "import matplotlib.pyplot as plt\nplt.plot([1])", session="figures")
    assert len(first.figures) == 1
    assert (await run(science, "1", session="figures")).figures == ()
    await science.end_session("figures")
