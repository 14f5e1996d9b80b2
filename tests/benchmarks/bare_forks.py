"""What the sandbox is measured against when many run at once: confined forks without a sandbox around them.

`BareForks` is what one would write first, and what the goal speaks of: a warm process with the data modules that forks
into all six namespaces, maps the ids, moves into a root of its own, sets limits, Landlock and seccomp, has
RestrictedPython compile the code, runs it and answers in JSON. No dialect, facades, report, protocol or clock.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import select
import socket
import subprocess
import sys
import time
from typing import NoReturn

if __name__ == "__main__":
    sys.path[:0] = json.loads(sys.argv[1])

from sealab.sandbox.confine import landlock, namespaces, privileges, root
from sealab.sandbox.confine.system_calls import allow_list, seccomp

CODE = b"result = 1 + 1"
READABLE = ("/usr",)
MODULES = """
    abc base64 bisect calendar collections.abc contextlib copy csv dataclasses datetime decimal enum fractions functools
    hashlib heapq io itertools json math numbers operator random re statistics string textwrap time traceback types
    typing unicodedata uuid zoneinfo RestrictedPython
"""


class Forks:
    """A process that forks when asked, as many at once as there are clients; apart, since a zygote cannot go back."""

    def __init__(self, at_once: int) -> None:
        paths = json.dumps([os.path.abspath(path) for path in sys.path if path])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", __file__, paths, str(at_once)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def rate(self, forks: int) -> float:
        """Give forks a second."""
        commands, answers = self._process.stdin, self._process.stdout
        assert commands is not None
        assert answers is not None
        commands.write(b"%d\n" % forks)
        commands.flush()
        return forks / float(answers.readline())

    def end(self) -> None:
        """Be done with it."""
        self._process.communicate(timeout=10)


def main() -> None:
    """Be the process that forks: read numbers, answer with the seconds that so many forks took."""
    # As launcher._BOOT does: a zygote's forks run no hooks.
    os.register_at_fork = lambda **_hooks: None
    at_once, forks = int(sys.argv[2]), BareForks()
    for line in sys.stdin.buffer:
        began = time.perf_counter()
        forks.fork(int(line), at_once)
        os.write(1, b"%f\n" % (time.perf_counter() - began))


class BareForks:
    """Forks and confines processes that each run a line of code and answer."""

    def __init__(self) -> None:
        for name in MODULES.split():
            importlib.import_module(name)
        _compiled(CODE)
        self._filter = seccomp.build(allow_list.RESTRICTED)
        self._filter.make_ahead()
        self._abi = landlock.abi()
        self._proc_fd = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
        privileges.leave_root()
        privileges.set_dumpable(True)
        self._ids = os.geteuid(), os.getegid()
        gc.collect()
        gc.freeze()

    def fork(self, forks: int, at_once: int) -> None:
        """Fork so often, and wait for all answers."""
        poll = select.poll()
        running: dict[int, tuple[socket.socket, int]] = {}
        begun = ended = 0
        while ended < forks:
            while begun < forks and len(running) < at_once:
                ours, theirs = socket.socketpair()
                pid = namespaces.fork_into(namespaces.ALL)
                if pid == 0:
                    self._run(theirs)
                theirs.close()
                ours.sendall(CODE)
                running[ours.fileno()] = ours, pid
                poll.register(ours, select.POLLIN)
                begun += 1
            for descriptor, _event in poll.poll():
                ours, pid = running.pop(descriptor)
                poll.unregister(ours)
                assert json.loads(ours.recv(1 << 16))["result"] == 2
                ours.close()
                os.waitpid(pid, 0)
                ended += 1

    def _run(self, channel: socket.socket) -> NoReturn:
        try:
            namespaces.map_ids(self._proc_fd, *self._ids)
            root.move_in(root.Layout(readable=READABLE))
            privileges.die_with_parent()
            for limit, most in ((resource.RLIMIT_CPU, 10), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_FSIZE, 0)):
                resource.setrlimit(limit, (most, most))
            privileges.drop_capabilities()
            privileges.no_new_privileges()
            landlock.restrict(landlock.ruleset(self._abi, READABLE, ()))
            privileges.close_others(frozenset({channel.fileno()}))
            privileges.set_dumpable(False)
            self._filter.load()
            names: dict[str, object] = {"__builtins__": {}, "__name__": "user"}
            exec(_compiled(os.read(channel.fileno(), 1 << 16)), names)
            os.write(channel.fileno(), json.dumps({"result": names["result"]}).encode())
        finally:
            os._exit(0)


def _compiled(code: bytes) -> object:
    from RestrictedPython import compile_restricted_exec

    return compile_restricted_exec(code.decode(), filename="<user>").code


if __name__ == "__main__":
    main()
