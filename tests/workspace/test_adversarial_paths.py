"""Attacks on the path boundary: hostile names, planted links, and folders that are swapped while they are used.

A boundary that failed here would write and delete outside its folder, so this runs only where nothing can be lost. The
canaries lie below `tmp_path`, and nothing is ever deleted by an absolute path.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sealab.workspace.errors import WorkspaceError
from sealab.workspace.names import Name
from sealab.workspace.store import Workspace

from .conftest import OWNER, kept_in

pytestmark = pytest.mark.adversarial

SECRET = "CANARY"
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=250)


class Outside:
    """What lies around the workspace, and a look at whether any of it changed."""

    def __init__(self, place: Path, inside: Path) -> None:
        self.place = place
        self.inside = inside
        (place / "outside" / "deep").mkdir(parents=True)
        (place / "outside" / "f").write_text(SECRET)
        (place / "outside" / "deep" / "f").write_text(SECRET)
        (place / "f").write_text(SECRET)
        self.before = self.look()

    def look(self) -> dict[str, tuple[int, bytes | None]]:
        seen: dict[str, tuple[int, bytes | None]] = {}
        for folder, folders, files in os.walk(self.place):
            for name in list(folders):
                if Path(folder, name) in {self.inside, kept_in(self.inside)}:
                    folders.remove(name)
            for name in (*folders, *files):
                path = Path(folder, name)
                mode = path.lstat().st_mode
                seen[str(path)] = (mode, path.read_bytes() if stat.S_ISREG(mode) else None)
        return seen

    def assert_untouched(self) -> None:
        assert self.look() == self.before


@pytest.fixture
def outside(tmp_path: Path, folder: Path, either_way: Workspace) -> Outside:
    around = Outside(tmp_path, folder)
    (folder / "to_folder").symlink_to(tmp_path / "outside")
    (folder / "to_file").symlink_to(tmp_path / "outside" / "f")
    (folder / "up").symlink_to("../..")
    (folder / "root").symlink_to("/")
    (folder / "self").symlink_to(".")
    (folder / "magic").symlink_to(f"/proc/{os.getpid()}/cwd")
    os.link(tmp_path / "f", folder / "hard")
    os.mkfifo(folder / "pipe")
    either_way.write("d/f", "mine")
    return around


_atoms = st.sampled_from(
    [
        "..", ".", "", "/", "//", "d", "f", "to_folder", "to_file", "up", "root", "self", "magic", "hard", "pipe", "outside",
        "deep", "home", "workspace", ".runs", ".ledger", "~", "$HOME", "%2e%2e", "%2f", "\\", "..\\", "C:", "\0", "\n", " ",
        "．．", "‥", "\u2215", "\u202e", "\udcff", "....", ".. ", " ..", "..;", "proc", "self", "fd", "a" * 255, "é" * 200,
        ".sealab-part-", "con", "-rf", "*",
    ]
)  # fmt: skip
_hostile = st.lists(_atoms, min_size=1, max_size=7).flatmap(
    lambda atoms: st.sampled_from(["/".join(atoms), "".join(atoms), "/" + "/".join(atoms), "/".join(atoms) + "/"])
)


def _everything(workspace: Workspace, name: str) -> None:
    for action in (
        lambda: workspace.read(name),
        lambda: workspace.read(name, encoding="base64"),
        lambda: workspace.list(name),
        lambda: workspace.write(name, "mine"),
        lambda: workspace.write(name, "mine", append=True),
        lambda: workspace.read(name),
        lambda: workspace.delete(name),
    ):
        try:
            said = repr(action())
        except WorkspaceError as error:
            said = str(error)
            assert len(said) < 600
        assert SECRET not in said


@given(name=_hostile | st.text(max_size=30))
@example(name="../../outside/f")
@example(name="to_folder/f")
@example(name="self/self/up/outside/f")
@example(name="root/etc/hostname")
@SLOW
def test_no_name_reads_writes_lists_or_deletes_anything_outside(
    either_way: Workspace, outside: Outside, name: str
) -> None:
    _everything(either_way, name)
    outside.assert_untouched()


@given(parts=st.lists(_atoms | st.text(max_size=5), max_size=6))
@example(parts=["..", "..", "outside", "f"])
@example(parts=["d", "..", "..", "..", "outside"])
@example(parts=["/", "etc"])
@SLOW
def test_parts_that_were_never_judged_do_not_open_anything_outside(
    either_way: Workspace, outside: Outside, parts: list[str]
) -> None:
    inside = (
        os.stat(outside.inside).st_dev,
        {os.stat(path).st_ino for path in (outside.inside, *outside.inside.rglob("*")) if not path.is_symlink()},
    )
    for opened in (either_way.root.open_file, lambda name: (either_way.root.open_folder(name.parts), None)):
        try:
            handle, _ = opened(Name(tuple(parts)))
        except (WorkspaceError, ValueError):
            continue
        status = os.fstat(handle if isinstance(handle, int) else handle._handle)
        os.close(handle if isinstance(handle, int) else handle._handle)
        assert (status.st_dev, status.st_ino in inside[1]) == (inside[0], True)
    outside.assert_untouched()


@pytest.mark.parametrize("name", ["/etc/hostname", "../../../../../../etc/hostname", "root/etc/hostname", "magic/f"])
def test_what_exists_outside_and_what_does_not_cannot_be_told_apart(
    either_way: Workspace, outside: Outside, name: str
) -> None:
    def said(name: str) -> str:
        with pytest.raises(WorkspaceError) as caught:
            either_way.read(name)
        return f"{type(caught.value)} {caught.value}"

    absent = name + "-absent"
    assert said(name) == said(absent).replace("-absent", "")


def test_devices_and_sockets_are_refused_and_never_read(either_way: Workspace, folder: Path, outside: Outside) -> None:
    planted = ["sock", "pipe"]
    with contextlib.suppress(PermissionError):
        os.mknod(folder / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        planted.append("zero")
    here = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{here}/sock")
        for name in planted:
            for action in (either_way.read, either_way.delete, lambda name: either_way.write(name, "x")):
                with pytest.raises(WorkspaceError):
                    action(name)
    os.close(here)
    outside.assert_untouched()


_FLIPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (os.fsencode(name) for name in sys.argv[1:])
RENAME_EXCHANGE, AT_FDCWD = 2, -100
if libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE):
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
while os.getppid() == int(os.environ["PARENT"]):
    libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
"""


@contextlib.contextmanager
def _flipping(one: Path, other: Path) -> Iterator[None]:
    """Swap two names in a loop, as fast as another process can."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("this system cannot exchange two names")
    flipper = subprocess.Popen(
        [sys.executable, "-c", _FLIPPER, str(one), str(other)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PARENT": str(os.getpid())},
    )
    assert flipper.stdout is not None
    try:
        assert flipper.stdout.readline() == "ready\n"
        yield
    finally:
        flipper.kill()
        flipper.wait()
        flipper.stdout.close()


def test_a_file_swapped_for_a_link_in_a_loop_never_leads_outside(
    either_way: Workspace, folder: Path, outside: Outside
) -> None:
    (folder / "flip").write_text("mine")
    (folder / "flop").symlink_to(outside.place / "outside" / "f")
    reads = refusals = 0
    with _flipping(folder / "flip", folder / "flop"):
        for _ in range(3000):
            try:
                assert either_way.read("flip").content == "mine"
                reads += 1
            except WorkspaceError:
                refusals += 1
    outside.assert_untouched()
    assert reads > 0, "the swapping let no read through, so nothing was shown"
    assert refusals > 0, "the swapping was never met, so nothing was shown"


def _a_round(workspace: Workspace, deep: str, made: str) -> list[Callable[[], object]]:
    return [
        lambda: workspace.write("flip/f", "mine"),
        lambda: workspace.write(deep, "mine"),
        lambda: workspace.write(made, "mine"),
        lambda: workspace.write("flip/f", "more", append=True),
        lambda: workspace.read("flip/f"),
        lambda: workspace.read("flip/deep/f"),
        lambda: workspace.list("flip"),
        workspace.list,
        lambda: workspace.delete("flip/f"),
        lambda: workspace.delete(deep),
        lambda: workspace.delete(made),
    ]


def test_a_folder_swapped_for_a_link_in_a_loop_never_leads_outside(
    either_way: Workspace, folder: Path, outside: Outside
) -> None:
    (folder / "flip" / "deep").mkdir(parents=True)
    (folder / "flip" / "keep").write_text("mine")
    (folder / "flop").symlink_to(outside.place / "outside")
    done = refusals = 0
    with _flipping(folder / "flip", folder / "flop"):
        for number in range(700):
            for action in _a_round(either_way, f"flip/deep/new{number % 5}", f"flip/made{number % 3}/x"):
                try:
                    assert SECRET not in repr(action())
                    done += 1
                except WorkspaceError:
                    refusals += 1
    outside.assert_untouched()
    assert done > 0
    assert refusals > 0
    usage = either_way.list()
    assert usage.used_bytes == either_way.usage().used_bytes


def test_a_folder_of_the_archive_swapped_for_a_link_never_leads_outside(
    either_way: Workspace, folder: Path, outside: Outside
) -> None:
    from sealab.workspace.archive import RunArchive

    (folder / "flop").symlink_to(outside.place / "outside")
    archive = RunArchive(either_way, kept=3)
    with _flipping(kept_in(folder), folder / "flop"):
        for number in range(500):
            with contextlib.suppress(WorkspaceError):
                archive.keep(f"r{number}", owner=OWNER, code="mine", output="mine")
    outside.assert_untouched()


def test_a_deep_tree_put_there_by_hand_is_walked_only_so_far(either_way: Workspace, folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert either_way.list().count == 0
    assert either_way.usage().entries == 32
    with pytest.raises(WorkspaceError):
        either_way.write("/".join(["d"] * 2000) + "/f", "x")
