"""Real workers, confined by the real kernel: what they can still do, and that they are refused when a layer is missing.

The code of these workers asks for things and does no harm where it gets them. What would do harm is in
`test_confine_attacks.py`.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sealab.sandbox.confine import Level, cgroups

SCRIPT = Path(__file__).parents[1] / "confined_worker.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel layers exist on Linux only")

WHO = [
    pytest.param(
        False, id="as_root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can show what root leaves")
    ),
    pytest.param(True, id="as_user"),
]


def start(code, *, isolation="restricted", user=False, without=(), workspace=None, required="limits", **more):
    request = {
        "code": textwrap.dedent(code),
        "isolation": isolation,
        "user": user and os.geteuid() == 0,
        "without": list(without),
        "workspace": workspace,
        "required": required,
        "plan": {},
        "workers": 1,
        "die": False,
        "group_limits": None,
        "cpus": None,
        "path": [],
        "kill_after": 0,
        "hollow_filter": False,
        **more,
    }
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", SCRIPT, json.dumps(request)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def confined(code, **request):
    """What one confined worker told, and all that is known about it."""
    with start(code, **request) as zygote:
        out, err = zygote.communicate(timeout=30)
    assert zygote.returncode == 0, err.decode()
    return json.loads(out) | {"stderr": err.decode()}


def told(code, **request):
    answer = confined(code, **request)
    assert answer.get("status") == 0, answer
    return answer["told"]


@pytest.fixture(scope="module")
def offered():
    """The level that this machine reaches at all."""
    return Level(confined("")["level"])


@pytest.fixture
def kernel(offered):
    if offered is not Level.KERNEL:
        pytest.skip(f"this machine reaches the level {offered} only")


@pytest.fixture(params=["restricted", "process"])
def isolation(request):
    return request.param


@pytest.fixture(params=WHO)
def user(request):
    return request.param


@pytest.mark.usefixtures("kernel")
class TestEveryWorker:
    def test_reports_the_layers_that_are_active(self, isolation, user):
        answer = confined("tell(layers)", isolation=isolation, user=user)
        assert answer["told"] == [["process", "seccomp", "landlock", "namespaces"]]
        assert answer["level"] == "kernel"

    def test_is_nobody_without_privileges_and_cannot_be_traced_or_dumped(self, isolation, user):
        code = """
            tell([os.getresuid(), os.getresgid()])
            tell([libc.prctl("", option) for option in (39, 21, 3)])
            bounding = [c for c in range(41) if libc.prctl("", 23, c)]
            tell(bounding)
        """
        ids, (no_new_privileges, seccomp_mode, dumpable), bounding = told(code, isolation=isolation, user=user)
        assert ids == [[65534] * 3, [65534] * 3]
        assert (no_new_privileges, seccomp_mode, dumpable) == (1, 2, 0)
        assert bounding == []

    def test_has_no_capability(self, isolation, user):
        code = """
            import struct
            header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
            sets = ctypes.create_string_buffer(b"x" * 24, 24)
            answer = ctypes.CDLL(None).capget(header, sets)
            tell([answer, sets.raw.hex()])
        """
        assert told(code, isolation=isolation, user=user) == [[0, "00" * 24]]

    def test_keeps_only_the_descriptors_it_was_given(self, isolation, user):
        code = """
            open_ones = {fd for fd in range(1024) if attempt(lambda: os.fstat(fd)) == "done"}
            tell([open_ones == kept, inherited in open_ones])
        """
        assert told(code, isolation=isolation, user=user) == [[True, False]]

    def test_sees_nothing_of_the_machine_s_files(self, isolation, user, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text("s")
        tmp_path.chmod(0o755)
        code = f"""
            files = ["/etc/passwd", "/etc/hostname", "/proc/self/status", "/proc/1/root", "/sys", "/bin/sh", "/root",
                     "/dev/mem", "/dev/shm", {str(secret)!r}, {__file__!r}]
            tell([path for path in files if attempt(lambda: os.close(os.open(path, os.O_RDONLY))) == "done"])
        """
        assert told(code, isolation=isolation, user=user) == [[]]

    def test_changes_no_file(self, isolation, user):
        code = """
            places = ["/", "/dev", "/etc", "/usr", "/workspace", "/var/tmp", "/dev/shm", os.path.dirname(os.__file__)]
            tell([p for p in places if attempt(lambda: open(p + "/mine", "w")) == "done"])
            tell([p for p in places if attempt(lambda: os.mkdir(p + "/mine")) == "done"])
        """
        assert told(code, isolation=isolation, user=user) == [[], []]

    def test_knows_neither_the_machine_s_name_nor_its_processes(self, isolation, user):
        code = """
            tell([os.uname().nodename, os.getpid() <= 2, os.getppid() > 0])
            tell([pid for pid in range(1, 100) if pid != os.getpid() and attempt(lambda: os.kill(pid, 0)) == "done"])
        """
        assert told(code, isolation=isolation, user=user) == [["sandbox", True, False], []]

    def test_starts_no_process_and_speaks_to_nobody(self, isolation, user):
        code = """
            tell([attempt(os.fork), attempt(socket.socket), attempt(lambda: socket.socket(socket.AF_UNIX))])
            tell([attempt(lambda: os.posix_spawn("/bin/true", ["true"], {})), os.getppid() > 0])
        """
        refused = "PermissionError"
        assert told(code, isolation=isolation, user=user) == [[refused] * 3, [refused, False]]

    def test_lowers_its_limits_and_never_raises_them_again(self, isolation, user):
        code = """
            resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
            tell(attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 21))))
            tell(resource.getrlimit(resource.RLIMIT_NOFILE))
        """
        assert told(code, isolation=isolation, user=user) == ["ValueError", [20, 20]]

    def test_imports_late_from_the_standard_library(self, isolation, user):
        code = """
            import colorsys
            tell(colorsys.rgb_to_hsv(1, 0, 0)[2])
        """
        if user and _closed_to_others(os.__file__):
            pytest.skip("an ordinary user cannot read this interpreter, and would not run it")
        assert told(code, isolation=isolation, user=user) == [1]

    def test_dies_with_its_zygote(self, isolation, user):
        code = """
            os.write(1, b"%d" % os.getpid())
            tell("")
            signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 65)) - {9, 19})
            while True:
                time.sleep(1)
        """
        with start("import time\n" + textwrap.dedent(code), isolation=isolation, user=user, die=True) as zygote:
            # The worker holds the other end of this pipe: it is empty for good only when the worker is gone too.
            out, err = zygote.communicate(timeout=30)
        assert zygote.returncode == 0, err
        assert out


def _closed_to_others(path):
    return any(not os.stat(folder).st_mode & 1 for folder in list(Path(path).parents)[:-1])


@pytest.mark.usefixtures("kernel")
class TestRestrictedCode:
    def test_reads_no_package_of_the_machine(self, user):
        code = """
            import sysconfig
            paths = [sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("-packages"))]
            paths += [os.path.join(os.path.dirname(os.__file__), name) for name in ("site-packages", "dist-packages")]
            tell([p for p in paths if os.path.isdir(p) and os.listdir(p)])
        """
        assert told(code, user=user) == [[]]

    def test_starts_no_thread(self, user):
        assert told("tell(attempt(threading.Thread(target=print).start))", user=user) == ["RuntimeError"]

    def test_has_no_executable_memory_and_loads_no_library(self, user):
        code = """
            tell(attempt(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)))
            tell(attempt(lambda: __import__("_sqlite3")))
        """
        assert told(code, user=user)[0] == "PermissionError"
        assert told(code, user=user)[1] in {"ImportError", "ModuleNotFoundError"}

    def test_ends_when_it_tries_to_become_another_program(self, user):
        answer = confined("tell(1)\nos.execv('/bin/true', ['true'])", user=user)
        assert answer["told"] == [1]
        assert answer["status"] == -signal.SIGSYS

    def test_ends_by_abort(self, user):
        assert confined("os.abort()", user=user)["status"] < 0


@pytest.mark.usefixtures("kernel")
class TestFullPython:
    def test_has_threads_and_an_event_loop(self, user):
        code = """
            thread = threading.Thread(target=tell, args=["thread"])
            thread.start()
            thread.join()
            async def both():
                return await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(lambda: 2))
            tell(asyncio.run(both()))
        """
        assert told(code, isolation="process", user=user) == ["thread", [1, 2]]

    def test_has_a_scratch_directory_of_limited_size_and_its_own(self, user):
        code = """
            # The way to an interpreter that is installed beneath /tmp is there too, read-only.
            tell([os.getcwd(), [name for name in os.listdir("/tmp") if os.access(name, os.W_OK)]])
            open("mine", "w").write("x" * 1000)
            os.rename("mine", "/tmp/ours")
            tell(len(open("/tmp/ours").read()))
            def fill():
                with open("big", "wb") as file:
                    while True:
                        file.write(bytes(65536))
            try:
                fill()
            except OSError as error:
                tell(error.errno)
        """
        first = ["/tmp", []], 1000, errno.ENOSPC
        assert told(code, isolation="process", user=user, workers=2) == [*first, *first]

    def test_executes_nothing_from_its_scratch_directory(self, user):
        code = """
            with open("/tmp/code", "w+b") as file:
                file.write(bytes(4096))
                file.flush()
                tell(attempt(lambda: mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)))
            tell(attempt(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)))
            tell(attempt(lambda: os.memfd_create("code")))
            os.chmod("/tmp/code", 0o755)
            tell(attempt(lambda: os.execv("/tmp/code", ["code"])))
        """
        assert told(code, isolation="process", user=user) == ["PermissionError"] * 4

    def test_loads_shared_libraries_late(self, user):
        if user and _closed_to_others(os.__file__):
            pytest.skip("an ordinary user cannot read this interpreter, and would not run it")
        code = """
            tell("audioop" in sys.modules or "_sqlite3" in sys.modules)
            import _lsprof
            tell(_lsprof.__name__)
        """
        assert told(code, isolation="process", user=user) == [False, "_lsprof"]

    def test_reads_the_workspace_and_does_not_change_it(self, user, tmp_path):
        workspace = tmp_path / "workspace"
        workspace.mkdir(mode=0o700)
        file = workspace / "table.csv"
        file.write_text("a,b\n")
        file.chmod(0o600)
        if user and os.geteuid() == 0:
            tmp_path.chmod(0o755)
            for folder in tmp_path.parents:
                if folder.owner() == "root" and not folder.stat().st_mode & 1:
                    folder.chmod(folder.stat().st_mode | 0o011)
            os.chown(workspace, 12345, 12345)
            os.chown(file, 12345, 12345)
        code = """
            tell([os.listdir("/workspace"), open("/workspace/table.csv").read()])
            tell([attempt(lambda: open("/workspace/table.csv", "a")), attempt(lambda: open("/workspace/new", "w")),
                  attempt(lambda: os.unlink("/workspace/table.csv")), attempt(lambda: os.chmod("/workspace", 0o777))])
        """
        answer = confined(code, isolation="process", user=user, workspace=str(workspace))
        if answer["notes"]:
            assert "/workspace is on a file system that cannot show" in answer["notes"][0]
            assert answer["told"] == []
            pytest.skip(answer["notes"][0])
        seen, changed = answer["told"]
        assert seen == [["table.csv"], "a,b\n"]
        assert "done" not in changed
        assert file.read_text() == "a,b\n"
        assert workspace.stat().st_mode & 0o777 == 0o700

    def test_finds_packages_that_are_installed_beneath_tmp(self, tmp_path):
        packages = tmp_path / "site-packages"
        packages.mkdir()
        (packages / "from_tmp.py").write_text("VALUE = 7")
        for folder in (packages, tmp_path, tmp_path.parent):
            folder.chmod(0o755)
        code = f"""
            import from_tmp
            tell(from_tmp.VALUE)
            for folder in {[str(packages), *map(str, tmp_path.parents)][:-2]!r}:
                tell(attempt(lambda: open(folder + "/mine.py", "w")))
            tell(attempt(lambda: open("/tmp/mine.py", "w").close()))
        """
        inside = len(tmp_path.parents) - 1
        assert told(code, isolation="process", path=[str(packages)]) == [7, *["OSError"] * inside, "done"]

    def test_is_not_the_first_process_so_that_signals_do_to_it_what_they_do_anywhere(self, user):
        code = "tell(os.getpid())\nos.kill(os.getpid(), signal.SIGSEGV)\ntell('survived')"
        answer = confined(code, isolation="process", user=user)
        assert answer["told"] == [2]
        assert answer["status"] == 128 + signal.SIGSEGV

    def test_cannot_signal_the_first_process(self, user):
        assert told("tell(attempt(lambda: os.kill(1, 9)))", isolation="process", user=user) == ["PermissionError"]

    def test_gets_an_error_and_not_an_end_from_what_libraries_try(self, user):
        code = """
            import subprocess
            tell(attempt(lambda: subprocess.run(["true"])))
            tell(attempt(lambda: os.execv("/bin/true", ["true"])))
        """
        assert told(code, isolation="process", user=user) == ["PermissionError", "PermissionError"]


@pytest.mark.usefixtures("kernel")
class TestAControlGroup:
    """Of a zygote and its workers; nothing is created where none is writable."""

    def test_bounds_the_memory_of_workers_and_leaves_no_group_behind(self):
        code = """
            try:
                with mmap.mmap(-1, 1 << 28) as memory:
                    for offset in range(0, 1 << 28, 4096):
                        memory[offset] = 1
                tell("held 256 MB")
            finally:
                tell(layers)
        """
        answer = confined(code, group_limits=[1 << 27, 50])
        if not answer["findings"]["cgroup"][0]:
            assert "cgroup" not in answer["layers"]
            pytest.skip(answer["findings"]["cgroup"][1])
        assert "cgroup" in answer["layers"]
        assert answer["told"] == []
        assert answer["status"] == -signal.SIGKILL
        cgroups.remove_empty()
        for folder in cgroups.where().split(", "):
            assert not [name for name in os.listdir(folder) if name == f"sealab-{answer['zygote']}"]

    def test_is_not_claimed_where_none_can_be_made(self):
        answer = confined("tell(layers)", user=os.geteuid() == 0, group_limits=[1 << 27, 50])
        assert "cgroup" not in answer["told"][0]


BUSY = """
    end, before = time.monotonic() + 1, time.process_time()
    while time.monotonic() < end:
        pass
    tell(time.process_time() - before)
"""


class TestAShareOfTheProcessors:
    def test_is_held_by_a_control_group_where_one_can_be_made(self, isolation):
        answer = confined(BUSY, cpus=0.1, isolation=isolation)
        if cgroups.where_processors() is None:
            pytest.skip("no control group for processors can be made here")
        assert "cpus" in answer["layers"]
        # A tenth of a second in each second, and what one period may lend.
        assert answer["told"][0] < 0.2
        cgroups.remove_empty()
        for folder in cgroups.where_processors().split(", "):
            assert f"sealab-{answer['zygote']}" not in os.listdir(folder)

    @pytest.mark.usefixtures("kernel")
    def test_is_whole_processors_without_control_groups_and_a_worker_cannot_take_others(self, isolation):
        code = """
            tell(layers)
            tell(len(os.sched_getaffinity(0)))
            tell(attempt(lambda: os.sched_setaffinity(0, range(64))))
            tell(len(os.sched_getaffinity(0)))
        """
        answer = confined(code, cpus=1, user=os.geteuid() == 0, isolation=isolation)
        assert "cpus" in answer["told"][0]
        assert answer["told"][1:] == [1, "PermissionError" if isolation == "process" else "OSError", 1]

    @pytest.mark.parametrize("said", ["", "usage_usec 5\n", "nr_throttled\n", "nr_throttled many\n", "a b c\n", "\xff"])
    def test_is_not_held_by_a_group_whose_statistics_do_not_say_so(self, tmp_path, said):
        statistics = tmp_path / "cpu.stat"
        statistics.write_text(said, encoding="latin-1")
        with pytest.raises(OSError, match="does not say"):
            cgroups.times_held_back(str(statistics))

    def test_is_held_by_a_group_that_says_how_often_processes_had_to_wait(self, tmp_path):
        statistics = tmp_path / "cpu.stat"
        statistics.write_text("usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 1\n", encoding="ascii")
        assert cgroups.times_held_back(str(statistics)) == 7

    def test_is_not_more_than_there_are(self):
        code = "tell(len(os.sched_getaffinity(0)))"
        assert told(code, cpus=1000, user=os.geteuid() == 0) == [len(os.sched_getaffinity(0))]

    def test_of_less_than_a_processor_is_refused_without_control_groups(self):
        answer = confined("tell(1)", cpus=0.5, user=os.geteuid() == 0)
        assert "CPUS is 0.5" in answer["refused"]
        assert "Make CPUS a whole number, or run the server where control groups can be written." in answer["refused"]

    def test_by_affinity_is_refused_to_full_python_that_no_filter_keeps_from_changing_it(self):
        without = {"cpus": 1, "user": os.geteuid() == 0, "without": ["seccomp"]}
        answer = confined("tell(1)", isolation="process", **without)
        assert "CPUS is 1, and could be held by affinity alone" in answer["refused"]
        assert "or remove CPUS" in answer["refused"]
        restricted = confined("tell(layers)", **without)
        assert "cpus" in restricted["told"][0]

    def test_leaves_the_choice_of_processors_to_workers_that_have_no_share(self):
        assert told("tell(attempt(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))))", isolation="process") == [
            "done"
        ]


class TestALayerThatIsMissing:
    """Each primitive taken away: the level falls and says so, and what is required is refused."""

    @pytest.mark.usefixtures("kernel")
    @pytest.mark.parametrize("missing", ["namespaces", "user namespaces"])
    def test_namespaces_leave_the_level_landlock_and_a_worker_that_still_reaches_nothing(
        self, missing, user, isolation
    ):
        code = """
            tell(layers)
            tell([p for p in ("/etc/passwd", "/proc/self/status") if attempt(lambda: open(p)) == "done"])
            tell([attempt(os.fork), attempt(socket.socket), attempt(lambda: os.kill(1, 0)), os.getppid() > 0])
            tell([libc.prctl("", option) for option in (39, 21, 3)])
        """
        answer = confined(code, without=[missing], user=user, isolation=isolation, required="landlock")
        assert answer["level"] == "landlock"
        assert answer["findings"]["namespaces"][0] is False
        assert "user namespaces" in answer["findings"]["namespaces"][2]
        assert answer["told"] == [["process", "seccomp", "landlock"], [], [*["PermissionError"] * 3, False], [1, 2, 0]]

    @pytest.mark.usefixtures("kernel")
    def test_without_landlock_the_namespaces_hold_and_the_level_is_lower(self, user):
        answer = confined("tell(layers)\ntell(attempt(lambda: open('/etc/passwd')))", without=["landlock"], user=user)
        assert answer["level"] == "landlock"
        assert answer["told"] == [["process", "seccomp", "namespaces"], "FileNotFoundError"]

    def test_without_a_filter_only_limits_are_left(self, user):
        answer = confined("tell(layers)", without=["seccomp"], user=user)
        assert answer["level"] == "limits"
        assert "seccomp" not in answer["told"][0]

    @pytest.mark.parametrize(
        ("missing", "required"),
        [
            (["seccomp"], "landlock"),
            (["namespaces", "landlock"], "landlock"),
            (["namespaces"], "kernel"),
            (["landlock"], "kernel"),
        ],
    )
    def test_a_level_that_is_required_and_not_reached_is_refused_with_what_to_do(self, missing, required, user):
        answer = confined("tell('ran')", without=missing, required=required, user=user)
        assert "told" not in answer
        for layer in missing:
            assert layer in answer["refused"]
        assert "SEALAB_REQUIRED_LEVEL" in answer["refused"]

    @pytest.mark.usefixtures("kernel")
    @pytest.mark.parametrize(
        ("isolation", "broken"),
        [
            ("restricted", {"ruleset_fd": 9999}),
            ("process", {"proc_fd": 9999}),
            ("process", {"uid": 1}),
            ("process", {"gid": 1}),
        ],
    )
    def test_a_step_that_fails_ends_the_worker_before_its_code(self, isolation, broken, user):
        answer = confined("tell('ran')", isolation=isolation, plan=broken, user=user)
        assert answer["told"] == []
        assert answer["status"] == 70
        assert "A worker could not be confined" in answer["stderr"]

    @pytest.mark.usefixtures("kernel")
    def test_a_filter_that_loads_and_lets_everything_through_is_found_by_the_trial_worker(self, user):
        answer = confined("tell('ran')", user=user, hollow_filter=True)
        assert "told" not in answer
        assert "still could: socket, fork" in answer["refused"]
