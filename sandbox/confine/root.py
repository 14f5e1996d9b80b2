"""Security boundary: the root directory in which a zygote and all its workers live.

The zygote moves into it once (pivot_root(2)) and every worker inherits it in a mount namespace of its own, so there
is no way back: the host's file system is not in their namespace at all, not even hidden beneath a mount. The root is a
small read-only tmpfs. It holds the directories named in a `Layout`, at the same paths as outside, read-only, without
devices and set-user-id; there is no /proc.

Mounts are made with the file descriptor based calls of Linux 5.12 (open_tree(2), move_mount(2), mount_setattr(2)),
which is older than Landlock: what lies beneath a directory that only root may enter can be mounted before root is
left.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import libc
from .system_calls import numbers

# The same numbers on every architecture.
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_FSOPEN = 430
_FSCONFIG = 431
_FSMOUNT = 432
_MOUNT_SETATTR = 442

# open_tree(2), move_mount(2), mount_setattr(2), fsopen(2).
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_OPEN_TREE_CLOEXEC = os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 4
_FSOPEN_CLOEXEC = 1
_FSCONFIG_SET_STRING = 1
_FSCONFIG_CMD_CREATE = 6
_FSMOUNT_CLOEXEC = 1
_RDONLY = 0x01
_NOSUID = 0x02
_NODEV = 0x04
_NOEXEC = 0x08
_IDMAP = 0x00100000
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2

_MOUNT_POINT = "/proc"
"""Where the new root stands while it is built: any directory that surely exists."""

_ROOT_BYTES = 256 * 1024
_BYTES_OF_AN_INODE = 1024
_BYTES_OF_A_SCRATCH_INODE = 4096
"""A tmpfs may hold one file or directory for so many bytes: what the kernel needs for each counts for nothing else."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the root holds.

    `readable` are directories and files outside, each at the same path inside; `code` are those among them from which
    shared libraries may be mapped. `devices` are device files that work. `placed` are directories at another path
    inside. `masked` are directories inside that look empty. `links` are symbolic links: path to target. `empty` are
    directories to mount on later.
    """

    readable: Sequence[str] = ()
    code: frozenset[str] = frozenset()
    devices: Sequence[str] = ()
    placed: Mapping[str, str] = field(default_factory=dict)
    masked: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    empty: Sequence[str] = ()


def move_in(layout: Layout, *, owner_map_fd: int | None = None) -> tuple[str, ...]:
    """Build the root and move this process into it, for good. Raises OSError.

    Returns the `placed` directories, by their paths inside, whose owners could not be translated.

    The process must be in a mount namespace of its own, with CAP_SYS_ADMIN over it. `owner_map_fd`, a user namespace,
    translates the owners of the `placed` directories (mount_setattr(2), ID-mapped mounts).
    """
    trees = _shown_trees(layout)
    placed, unmapped = _placed_trees(layout, owner_map_fd)
    trees += placed

    libc.mount_private("/")
    root = _tmpfs(_ROOT_BYTES, "755", 0)
    _attach(root, _MOUNT_POINT)
    os.fchdir(root)
    for path, tree in sorted(trees):
        _make_place(_inside(path), tree)
        _attach(tree, _inside(path))
        os.close(tree)
    _add_masks_and_links(layout)
    _set_attributes(root, _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    libc.syscall("pivot_root", numbers.number("pivot_root"), b".", b".")
    libc.umount(".", _MNT_DETACH)
    os.chdir("/")
    os.close(root)
    return tuple(unmapped)


def _shown_trees(layout: Layout) -> list[tuple[str, int]]:
    """Return what is shown at its own path: a detached copy of each, with what may be done there."""
    plain = [path for path in layout.readable if path not in layout.code]
    trees: list[tuple[str, int]] = []
    for paths, flags in (
        (plain, _RDONLY | _NOSUID | _NODEV | _NOEXEC),
        (sorted(layout.code), _RDONLY | _NOSUID | _NODEV),
        (layout.devices, _NOSUID | _NOEXEC),
    ):
        trees += [(path, _detached_copy(path, flags)) for path in sorted(paths)]
    return trees


def _placed_trees(layout: Layout, owner_map_fd: int | None) -> tuple[list[tuple[str, int]], list[str]]:
    """Return a detached copy of each placed directory, and the paths of those whose owners stay as they are."""
    trees: list[tuple[str, int]] = []
    unmapped: list[str] = []
    for inside, outside in layout.placed.items():
        tree = _detached_copy(outside, _RDONLY | _NOSUID | _NODEV | _NOEXEC)
        if owner_map_fd is not None and not _translate_owners(tree, owner_map_fd):
            unmapped.append(inside)
        trees.append((inside, tree))
    return trees, unmapped


def _add_masks_and_links(layout: Layout) -> None:
    """Hide what is masked, and make the empty directories and the links; the root is the current directory."""
    for path in layout.masked:
        mask = _tmpfs(4096, "555", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
        _attach(mask, _inside(path))
        os.close(mask)
    for path in layout.empty:
        os.makedirs(_inside(path), exist_ok=True)
    for path, target in layout.links.items():
        if not os.path.lexists(_inside(path)):
            os.symlink(target, _inside(path))


def mount_scratch(path: str, size_bytes: int, readable: Sequence[str] = ()) -> None:
    """Mount an empty tmpfs that holds at most `size_bytes` on a directory of the root, and go there.

    Nothing in it executes. Those of the `readable` paths that lie beneath (an interpreter installed in a temporary
    directory) stay where they are, read-only as before, and so are the directories that lead to them.
    """
    beneath = [(kept, _copied(kept)) for kept in readable if kept.startswith(path.rstrip("/") + "/")]
    scratch = _tmpfs(size_bytes, "700", _NOSUID | _NODEV | _NOEXEC, bytes_of_an_inode=_BYTES_OF_A_SCRATCH_INODE)
    _attach(scratch, path)
    os.fchdir(scratch)
    places = [(os.path.relpath(kept, path), tree) for kept, tree in beneath]
    leading: list[int] = []
    for first in sorted({place.partition("/")[0] for place, _tree in places if "/" in place}):
        leading.append(_tmpfs(_ROOT_BYTES, "755", _NOSUID | _NODEV | _NOEXEC))
        os.mkdir(first)
        _attach(leading[-1], first)
    for place, tree in places:
        _make_place(place, tree)
        _attach(tree, place)
        os.close(tree)
    for mounted in leading:
        _set_attributes(mounted, _RDONLY)
        os.close(mounted)
    os.close(scratch)


def show_as_another(directory: str, owner_map_fd: int) -> bool:
    """Mount a directory upon itself, read-only and with translated owners; return whether its file system can do that.

    For a process in a mount namespace of its own, with CAP_SYS_ADMIN over it; nothing of it is seen outside.
    """
    libc.mount_private("/")
    tree = _detached_copy(directory, _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    translated = _translate_owners(tree, owner_map_fd)
    if translated:
        _attach(tree, directory)
    os.close(tree)
    return translated


def _translate_owners(tree: int, owner_map_fd: int) -> bool:
    """Show the files of a tree with other owners, unless its file system cannot (overlayfs, network file systems)."""
    try:
        _set_attributes(tree, _IDMAP, owner_map_fd=owner_map_fd)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def _detached_copy(path: str, flags: int) -> int:
    """Copy the mount at `path`, and those beneath it, to a tree that stands nowhere yet and grants no more."""
    tree = _copied(path)
    _set_attributes(tree, flags, recursive=True)
    return tree


def _copied(path: str) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return libc.syscall(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def _set_attributes(tree: int, flags: int, *, recursive: bool = False, owner_map_fd: int = 0) -> None:
    # struct mount_attr: u64 attr_set, attr_clr, propagation, userns_fd.
    attributes = struct.pack("=QQQQ", flags, 0, _MS_PRIVATE if recursive else 0, owner_map_fd)
    at = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    libc.syscall("mount_setattr", _MOUNT_SETATTR, tree, b"", at, attributes, len(attributes))


def _tmpfs(size_bytes: int, mode: str, flags: int, *, bytes_of_an_inode: int = _BYTES_OF_AN_INODE) -> int:
    inodes = max(size_bytes // bytes_of_an_inode, 4)
    context = libc.syscall("fsopen", _FSOPEN, b"tmpfs", _FSOPEN_CLOEXEC)
    try:
        for key, value in (("size", str(size_bytes)), ("nr_inodes", str(inodes)), ("mode", mode)):
            libc.syscall("fsconfig", _FSCONFIG, context, _FSCONFIG_SET_STRING, key.encode(), value.encode(), 0)
        libc.syscall("fsconfig", _FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return libc.syscall("fsmount", _FSMOUNT, context, _FSMOUNT_CLOEXEC, flags)
    finally:
        os.close(context)


def _attach(tree: int, path: str) -> None:
    libc.syscall(f"move_mount {path}", _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH)


def _make_place(place: str, tree: int) -> None:
    """Make what a tree is mounted on: a directory, or an empty file where the tree is a file."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _inside(path: str) -> str:
    return path.lstrip("/") or "."
