"""Full CPython as a worker's Python: nothing of the language is restricted, everything else of the sandbox is.

What the kernel's layers refuse is also explained here, so that code which starts a process or opens a connection gets a
reason; no protection depends on that.
"""

from __future__ import annotations

import _imp
import ast
import asyncio
import builtins
import ctypes
import errno
import faulthandler
import gc
import importlib
import importlib.util
import linecache
import os
import random
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import FileFinder
from inspect import CO_COROUTINE
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn, cast

from ..guest.guest import GUEST
from ..guest.host_channel import HostChannel
from ..guest.program_values import NO_LITERALS, put_in
from ..guest.runtime import PRELOADED, Program, RunExtras
from ..guest_api import host_modules, hosted_skills
from ..job import Json, Start
from ..report import disclosure
from ..report.results import result_of
from ..report.substitutes import NO_NETWORK, NO_PROCESS
from ..report.unawaited import Unawaited
from ..skill_source import docstrings
from ..wire.output import OutputBuffer
from . import changed_libraries, local_files, skill_scripts
from .figures import Figures
from .plain_values import PlainValues
from .reads import native_reads, reported_reads
from .stream_output import StreamOutput
from .tables import measured
from .thread_pools import VARIABLES, ThreadPools
from .thread_semaphores import ThreadSemaphore
from .threaded_channel import ThreadedChannel
from .unique_warnings import UniqueWarnings

AHEAD = ("numpy", "pandas")
"""What the zygote always imports where it is installed: in a worker it would cost a run up to seconds."""

_REHEARSAL = "<rehearsal>"
_LAST_VALUE = "<last value>"
_STDIN = 0
_STANDARD_ERROR = 2
_SCRATCH = "/tmp"  # noqa: S108 - the worker's own
_ENVIRONMENT = {
    "HOME": _SCRATCH,
    "TMPDIR": _SCRATCH,
    "PATH": "",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": f"{_SCRATCH}/.matplotlib",
    # It asks the processor by code that it writes to memory, which is refused here.
    "POLARS_SKIP_CPU_CHECK": "1",
    "POLARS_TEMP_DIR": _SCRATCH,
    "POLARS_OOC_SPILL_DIR": _SCRATCH,
    **dict.fromkeys(VARIABLES, "1"),
    # The allocators of Arrow, polars and DuckDB (jemalloc(3), TUNING). Address space is what is limited, and they would
    # keep what they gave back. A process with threads must not fork, and the first two would start one.
    **dict.fromkeys(("JE_ARROW_MALLOC_CONF", "_RJEM_MALLOC_CONF"), "background_thread:false,retain:false"),
    "DUCKDB_JE_MALLOC_CONF": "retain:false",
}

_THREAD_STACK_BYTES = 8 * 1024 * 1024
_ATTRIBUTES_BYTES = 64
"""More than any C library's pthread_attr_t has."""
_M_ARENA_MAX = -8

_IN_WORDS = {
    **dict.fromkeys(
        (
            "os.fork",
            "os.forkpty",
            "os.exec",
            "os.posix_spawn",
            "os.spawn",
            "os.system",
            "subprocess.Popen",
            "pty.spawn",
        ),
        NO_PROCESS,
    ),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.bind"), NO_NETWORK),
}


def _no_attributes(_path: object = None, *, follow_symlinks: bool = True) -> list[str]:
    """`os.listxattr` where there are no extended attributes. Raises OSError: ENOTSUP, as listxattr(2) says."""
    del follow_symlinks
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


class FullPython:
    """Code as any Python program, in a module `__main__` of its own."""

    layers: tuple[str, ...] = ()
    compiles_modules = False
    _channel: ThreadedChannel
    _output: StreamOutput

    def __init__(self) -> None:
        self._figures = Figures()
        self._plain = PlainValues(self._figures.take)
        self._warnings = UniqueWarnings()
        self._pools = ThreadPools()
        self._late: tuple[str, ...] = ()
        self._unawaited = Unawaited()

    def prepare(self, packages: Sequence[tuple[str, str]]) -> None:
        """Set the environment and import ahead what is installed of `AHEAD` and `packages`.

        On Linux none may leave a thread: one that does is imported by each spare.
        """
        GUEST.full_python = True
        GUEST.plain = self._plain
        GUEST.measure = measured
        GUEST.draw = self._figures.take
        GUEST.folder_of_skill, GUEST.run_script = skill_scripts.folder_of, skill_scripts.run
        os.environ.update(_ENVIRONMENT)
        sys.dont_write_bytecode = True
        _small_thread_stacks()
        changed_libraries.take_over(self._figures.take_over)
        self._late = tuple(filter(None, str(sys._xoptions.get("late", "")).split(",")))
        # Libraries that keep files of their own must not do so in the host's scratch directory.
        with tempfile.TemporaryDirectory() as own:
            os.environ.update(MPLCONFIGDIR=own, HOME=own)
            for name in (*AHEAD, *(module for _folder, module in packages)):
                if name not in self._late:
                    _import_ahead(name)
                    self._begin_anew_without(name)
            if _REHEARSAL not in self._late:
                changed_libraries.rehearse()
                self._begin_anew_without(_REHEARSAL)
        sys.argv[:] = [""]
        docstrings.preload()
        os.environ.update(_ENVIRONMENT)
        # The filter refuses all calls for extended attributes. `shutil` copies files without them where these are not
        # supported, and no file at all for any other reason.
        os.listxattr = _no_attributes  # type: ignore[assignment]
        self._pools.find()

    def _begin_anew_without(self, name: str) -> None:
        """Begin this process anew where what was just done left a thread, which cannot be undone, without that."""
        if _threads() > 1:
            # Of an option given twice, the last one counts.
            given = sys.orig_argv[3:] if self._late else sys.orig_argv[1:]
            again = f"late={','.join((*self._late, name))}"
            os.execv(sys.executable, [sys.executable, "-X", again, *given])  # noqa: S606 - itself

    def compile_modules(self) -> Mapping[str, bytes]:
        """Compile none: full Python imports what its interpreter has installed."""
        return {}

    def take_compiled(self, find: Callable[[str], memoryview | None]) -> None:
        """Do nothing, as above."""

    def may_mean(self, module: str, name: str) -> bool:
        """Return whether a module that is loaded already has a member of that name."""
        return hasattr(sys.modules.get(module), name)

    def seal(self) -> None:
        """Leave everything changeable, full Python promises nothing about itself; but name no folder of the host."""
        _forget_own_paths()

    def new_namespace(self, helpers: Mapping[str, object]) -> dict[str, object]:
        """Make a module `__main__` that holds the preloaded modules and `helpers`."""
        main = ModuleType("__main__")
        sys.modules["__main__"] = main
        host_modules.install()
        own = cast("dict[str, object]", vars(main))
        own.update({name: importlib.import_module(name) for name in PRELOADED})
        own.update(helpers, **local_files.helpers(), exit=_exit, quit=_exit, exec=_exec)
        own["__builtins__"] = builtins
        self._unawaited.given(own)
        return own

    def take_arguments(self, words: Sequence[str]) -> None:
        """Set `sys.argv`."""
        sys.argv[:] = words

    def module(self, program: Program, name: str, helpers: Mapping[str, object]) -> dict[str, object]:
        """Run as a module that others can import under its name."""
        made = ModuleType(name)
        own = cast("dict[str, object]", vars(made))
        own.update({known: importlib.import_module(known) for known in PRELOADED})
        own.update(helpers, **local_files.helpers(), exit=_exit, quit=_exit, exec=_exec)
        own["__builtins__"] = builtins
        sys.modules[name] = made
        self.run(program, own)
        return own

    def connections(self) -> tuple[HostChannel, OutputBuffer]:
        """Make a channel for threads, which makes itself known to loops, and an output that is a file too."""
        self._channel, self._output = ThreadedChannel(), StreamOutput()
        return self._channel, self._output

    def open(self, channel_fd: int, output_fd: int) -> frozenset[int]:
        """Map the output, and keep it open; standard input is empty already."""
        self._channel.connect(channel_fd)
        self._output.attach(output_fd)
        return frozenset({_STDIN, channel_fd, self._output.descriptor})

    def start(self) -> None:
        """Write to the output, seed every generator, and explain what the kernel refuses."""
        self._output.become_standard_streams()
        _tell_crashes()
        random.seed()
        multiprocessing = importlib.import_module("_multiprocessing")
        multiprocessing.SemLock = ThreadSemaphore  # type: ignore[attr-defined]  # no stubs speak of this module
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            numpy_random.seed()
        sys.path[:] = [path for path in sys.path if path]
        sys.addaudithook(_refuse_in_words)
        sys.addaudithook(reported_reads.report_read)
        self._unawaited.watch()
        self._warnings.take_over()

    def bound_pools(self, threads: int, memory_bytes: int) -> None:
        """Bound the threads of BLAS, polars, Arrow and DuckDB, and what two of them hold before they use the disk."""
        self._pools.bound(threads, memory_bytes)

    def follow(self, start: Start, trace: bytes, *, records: bool) -> None:
        """Do nothing: what full Python does cannot be held to a trace."""

    def rehearse(self) -> None:
        """Import what the zygote could not, and use pandas once."""
        for name in self._late:
            if name != _REHEARSAL:
                _import_ahead(name)
        changed_libraries.sum_by_group()

    def begin(self) -> None:
        """Drop figures and notes of earlier runs, and make libraries report what they read, if the host needs it."""
        self._figures.forget()
        self._plain.forget()
        self._warnings.begin()
        self._unawaited.begin()
        native_reads.begin()

    def compile(self, source: str, filename: str, literals: Mapping[str, Json] = NO_LITERALS) -> Program:
        """Compile as Python does, with `await` at the top level. Raises `SyntaxError` and the like."""
        # So that tracebacks that the code prints itself show its lines, and `inspect.getsource` works.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(
                source, filename, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
            put_in(tree, literals)
            if tree.body and isinstance(last := tree.body[-1], ast.Expr):
                name = ast.copy_location(ast.Name(_LAST_VALUE, ast.Store()), last)
                tree.body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
            code = cast("CodeType", compile(tree, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True))
        return Program(code, bool(code.co_flags & CO_COROUTINE))

    def run(self, program: Program, namespace: dict[str, object]) -> object:
        """Run in `namespace` and return what it is to show (`results`)."""

        def run() -> None:
            if program.is_async:
                asyncio.run(eval(program.code, namespace))  # noqa: S307 - it is what this process is for
            else:
                exec(program.code, namespace)  # noqa: S102 - as above

        return result_of(run, namespace, vars(builtins), _LAST_VALUE)

    def end(self, *, session: bool) -> RunExtras:
        """Write out what is held back, and give the figures that were shown or left open.

        As at the end of any program, threads that are not daemons are waited for; a session's go on.
        """
        if not session:
            with suppress(Exception):
                _wait_for_threads()
        with suppress(Exception):
            self._figures.take_open()
        with suppress(Exception):
            self._warnings.end()
        with suppress(Exception):
            self._output.write_out()
        notes = dict(self._figures.notes())
        with suppress(Exception):
            notes.update(self._unawaited.notes(GUEST.namespace))
        return RunExtras(
            notes=notes,
            figures=self._figures.images(),
            captions=self._figures.captions(),
            tables=self._plain.tables(),
        )


def _import_ahead(name: str) -> None:
    try:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a broken library concerns the code that imports it
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == name.partition(".")[0]]:
            del sys.modules[loaded]


def _threads() -> int:
    return len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1


def _tell_crashes() -> None:
    """Write where each thread is to standard error, which the host reads, on a signal that ends the process."""
    options = {"c_stack": False} if sys.version_info >= (3, 14) else {}
    faulthandler.enable(_STANDARD_ERROR, all_threads=True, **options)


def _small_thread_stacks() -> None:
    """Let threads have stacks and heaps that many of them fit into the limited address space.

    The main thread's deep stack is also the default of others (pthread_attr_setstacksize(3)), and each thread would
    reserve a heap of 64 MB (mallopt(3), M_ARENA_MAX).
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "pthread_setattr_default_np"):
        return
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_THREAD_STACK_BYTES))
    libc.pthread_setattr_default_np(attributes)
    libc.mallopt(_M_ARENA_MAX, 1)


def _wait_for_threads() -> None:
    executors = sys.modules.get("concurrent.futures.thread")
    if executors is not None:
        executors._python_exit()  # else their idle threads would be waited for in vain
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()


def _refuse_in_words(event: str, _arguments: tuple[object, ...]) -> None:
    words = _IN_WORDS.get(event)
    if words is not None:
        raise PermissionError(words)


def _exec(source: Any, variables: Any = None, own: Any = None, /, **more: Any) -> None:
    """Run source as `exec` does; a skill as `load_skill` gives it, too."""
    if variables is None:
        frame = sys._getframe(1)
        variables = frame.f_globals
        if own is None and frame.f_locals is not frame.f_globals:
            own = dict(frame.f_locals)
    exec(cast("Any", hosted_skills.source_of(source)), variables, own, **more)  # noqa: S102 - it is what this process is for


def _exit(code: object = None) -> NoReturn:
    """End the code."""
    raise SystemExit(code)


_PROGRAM = __package__.partition(".")[0]
_IN_PLACE = "<sealab>"


def _forget_own_paths() -> None:
    """Forget the paths of this program's modules, and search for modules only where there is something to find.

    Nothing of this program can be imported afterwards; what was imported stays. Call it in the root of the workers.
    """
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")
    own = [module for name, module in sys.modules.items() if name.partition(".")[0] == _PROGRAM]
    for item in gc.get_objects():
        if type(item) is FunctionType and item.__code__.co_filename.startswith(folder):
            # As importlib does where a compiled file was moved.
            _imp._fix_co_filename(item.__code__, _IN_PLACE)  # type: ignore[attr-defined]  # not in the stubs
    for module in own:
        _forget_origin(module)
    sys.path[:] = [path for path in sys.path if os.path.exists(path)]
    for path, finder in list(sys.path_importer_cache.items()):
        if not (isinstance(finder, FileFinder) and os.path.exists(path)):
            del sys.path_importer_cache[path]
    disclosure.update_known_folders()


def _forget_origin(module: ModuleType) -> None:
    variables = vars(module)
    for name in ("__file__", "__cached__"):
        variables.pop(name, None)
    module.__spec__ = module.__loader__ = None
    if "__path__" in variables:
        module.__path__ = []
