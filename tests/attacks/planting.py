"""What a run finds on its throw-away machine: canaries, markers, and the traps that a case asks for."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import string
import subprocess
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from ctypes import CDLL, get_errno
from pathlib import Path
from typing import Any

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_DEVICES = {(1, 3): "/dev/null", (1, 5): "/dev/zero", (1, 7): "/dev/full", (1, 9): "/dev/urandom"}
_LETTERS = string.ascii_letters + string.digits


class Ground:
    """One lane's folders outside every sandbox, world-readable on purpose, and the secrets that must stay there."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="attacks-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.token = "CANARY-" + secrets.token_hex(16)
        self.memory_token = "CANARY-MEM-" + "".join(secrets.choice(_LETTERS) for _ in range(32))
        self.canary_folder = self.base / "treasure"
        self.canary_folder.mkdir(mode=0o755)
        self.canary_file = self.canary_folder / "secret.txt"
        self.canary_file.write_text(self.token + "\n")
        self.canary_file.chmod(0o644)
        self.marks = self.base / "marks"
        self.marks.mkdir(mode=0o777)
        self.marks.chmod(0o777)
        self.marker_file = self.marks / "marker"
        self.unix_socket = self.base / "listening"
        self.other_workspace = self.base / "other-home" / "workspace"
        self.other_workspace.mkdir(parents=True)
        # In the standard library, so that even a child whose root holds nothing else can really read it.
        self.readable = Path(sysconfig.get_path("stdlib")) / f"readable_{self.base.name[-8:]}.txt"
        self.readable.write_text("a:b\nc:d\n")
        self.readable.chmod(0o644)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def close(self) -> None:
        self._listener.close()
        self.readable.unlink(missing_ok=True)
        shutil.rmtree(self.base, ignore_errors=True)

    def places(self, *, server_pid: int, workspace: Path, project: Path) -> dict[str, str]:
        """Return what each placeholder means now."""
        return {
            "READABLE_FILE": str(self.readable),
            "CANARY_FILE": str(self.canary_file),
            "CANARY_DIR": str(self.canary_folder),
            "CANARY_NAME": self.canary_file.name,
            "MARKER_FILE": str(self.marker_file),
            "WORKSPACE": str(workspace),
            "OTHER_SESSION": "other",
            "OTHER_WORKSPACE": str(self.other_workspace),
            "SERVER_PID": str(server_pid),
            "SERVER_PORT": str(self.port),
            "SERVER_DIR": str(project),
            "SERVER_PACKAGE": "sealab",
            "UNIX_SOCKET": str(self.unix_socket),
            "CTL_FD": "CTL_FD",
        }

    def canary_is_whole(self) -> bool:
        try:
            return self.canary_file.read_text() == self.token + "\n"
        except OSError:
            return False

    def environment(self) -> dict[str, str]:
        """Secrets that the server holds in its environment and memory."""
        return {"ATTACK_CANARY": self.token, "ATTACK_MEMORY_CANARY": self.memory_token}


@contextmanager
def planted(setup: Mapping[str, Any], ground: Ground, workspace: Path) -> Iterator[None]:
    """Set the traps of a case, and take away what listens or flips when it is over."""
    with ExitStack() as stack:
        for kind, *arguments in setup.get("plant", ()):
            _plant(kind, arguments, ground, workspace, stack)
        if "canary_at" in setup:
            place = Path(setup["canary_at"])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(ground.token)
        if "listen_unix" in setup:
            stack.enter_context(_listening(setup["listen_unix"]))
        if "listen_abstract" in setup:
            stack.enter_context(_listening("\0" + setup["listen_abstract"]))
        yield


def _plant(kind: str, arguments: list[Any], ground: Ground, workspace: Path, stack: ExitStack) -> None:
    place = workspace / arguments[0]
    place.parent.mkdir(parents=True, exist_ok=True)
    stack.callback(_remove, place)
    match kind:
        case "symlink":
            place.symlink_to(arguments[1])
        case "hardlink":
            # A hard link cannot cross file systems, and the workspace is on the same one here.
            os.link(arguments[1], place)
        case "fifo":
            os.mkfifo(place)
            place.chmod(0o666)
        case "chardev":
            _device(place, arguments[1], arguments[2], stack)
        case "socket":
            # Bound by a relative name: the whole path may be longer than an address may be.
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(os.path.relpath(place))
        case "symlink_chain":
            for number in range(arguments[1]):
                link = place.with_name(f"{place.name}{number}")
                link.symlink_to(f"{place.name}{number + 1}")
                stack.callback(_remove, link)
        case "flipper" | "dir_flipper":
            stack.enter_context(_flipping(place, Path(arguments[1]), folder=kind == "dir_flipper"))
        case _:
            raise ValueError(f"The runner cannot plant a {kind}.")


def _device(place: Path, major: int, minor: int, stack: ExitStack) -> None:
    try:
        os.mknod(place, 0o020666, os.makedev(major, minor))
    except PermissionError:
        # A throw-away machine may make no devices; one of its own can still be shown at that place.
        place.touch()
        subprocess.run(["mount", "--bind", _DEVICES[major, minor], str(place)], check=True)
        stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=True)


@contextmanager
def _listening(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        try:
            if not address.startswith("\0"):
                Path(address).chmod(0o666)
            yield
        finally:
            if not address.startswith("\0"):
                Path(address).unlink(missing_ok=True)


@contextmanager
def _flipping(place: Path, target: Path, *, folder: bool) -> Iterator[None]:
    """Swap an honest file or folder for a symbolic link to `target` and back, as fast as it goes."""
    libc = CDLL(None, use_errno=True)
    twin = place.with_name(place.name + ".twin")
    if folder:
        place.mkdir()
        (place / target.name).write_text("honest")
        twin.symlink_to(target if target.is_dir() else target.parent)
    else:
        place.write_text("honest")
        twin.symlink_to(target)
    stop = threading.Event()

    def flip() -> None:
        one, other = os.fsencode(place), os.fsencode(twin)
        while not stop.is_set():
            if libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE) and get_errno():
                stop.wait(0.001)

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _remove(twin)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
