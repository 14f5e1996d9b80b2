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
_FSPICK = 433
_MOUNT_SETATTR = 442

# open_tree(2), move_mount(2), mount_setattr(2), fsopen(2).
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_OPEN_TREE_CLOEXEC = os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 4
_FSOPEN_CLOEXEC = 1
_FSCONFIG_SET_FLAG = 0
_FSCONFIG_SET_STRING = 1
_FSCONFIG_CMD_CREATE = 6
_FSCONFIG_CMD_RECONFIGURE = 7
_FSMOUNT_CLOEXEC = 1
_FSPICK_CLOEXEC = 1
READ_ONLY = 0x01
_NOSUID = 0x02
_NODEV = 0x04
_NOEXEC = 0x08
FOR_DATA = _NOSUID | _NODEV | _NOEXEC
"""What holds where code may write: nothing there executes, is a device, or gives anything away."""
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
    inside, and `changeable` such that may be written. `masked` are directories inside that look empty. `links` are
    symbolic links: path to target. `empty` are directories to mount on later.
    """

    readable: Sequence[str] = ()
    code: frozenset[str] = frozenset()
    devices: Sequence[str] = ()
    placed: Mapping[str, str] = field(default_factory=dict)
    changeable: Mapping[str, str] = field(default_factory=dict)
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
    root = tmpfs(_ROOT_BYTES, "755", 0)
    attach(root, _MOUNT_POINT)
    os.fchdir(root)
    for path, tree in sorted(trees):
        _make_place(_inside(path), tree)
        attach(tree, _inside(path))
        os.close(tree)
    _add_masks_and_links(layout)
    _set_attributes(root, READ_ONLY | FOR_DATA)
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
        (plain, READ_ONLY | FOR_DATA),
        (sorted(layout.code), READ_ONLY | _NOSUID | _NODEV),
        (layout.devices, _NOSUID | _NOEXEC),
    ):
        trees += [(path, _detached_copy(path, flags)) for path in sorted(paths)]
    return trees


def _placed_trees(layout: Layout, owner_map_fd: int | None) -> tuple[list[tuple[str, int]], list[str]]:
    """Return a detached copy of each placed directory, and the paths of those whose owners stay as they are."""
    trees: list[tuple[str, int]] = []
    unmapped: list[str] = []
    for inside, outside in layout.placed.items():
        tree = _detached_copy(outside, READ_ONLY | FOR_DATA)
        if owner_map_fd is not None and not _translate_owners(tree, owner_map_fd):
            unmapped.append(inside)
        trees.append((inside, tree))
    trees += [(inside, _detached_copy(outside, FOR_DATA)) for inside, outside in layout.changeable.items()]
    return trees, unmapped


def _add_masks_and_links(layout: Layout) -> None:
    """Hide what is masked, and make the empty directories and the links; the root is the current directory."""
    for path in layout.masked:
        mask = tmpfs(4096, "555", READ_ONLY | FOR_DATA)
        attach(mask, _inside(path))
        os.close(mask)
    for path in layout.empty:
        os.makedirs(_inside(path), exist_ok=True)
    for path, target in layout.links.items():
        if not os.path.lexists(_inside(path)):
            os.symlink(target, _inside(path))


def mount_scratch(path: str, size_bytes: int, readable: Sequence[str] = ()) -> None:
    """Mount an empty tmpfs that holds at most `size_bytes` on a directory of the root, and go there."""
    scratch = tmpfs(size_bytes, "700", FOR_DATA, bytes_of_an_inode=_BYTES_OF_A_SCRATCH_INODE)
    mount_over(scratch, path, readable)


def mount_over(scratch: int, path: str, readable: Sequence[str] = ()) -> None:
    """Mount what code may write on a directory of the root, and go there; the descriptor is closed.

    Nothing in it executes. Those of the `readable` paths that lie beneath (an interpreter installed in a temporary
    directory) stay where they are, read-only as before, and so are the directories that lead to them.
    """
    beneath = [(kept, copied(kept)) for kept in readable if kept.startswith(path.rstrip("/") + "/")]
    attach(scratch, path)
    os.fchdir(scratch)
    places = [(os.path.relpath(kept, path), tree) for kept, tree in beneath]
    leading: list[int] = []
    for first in sorted({place.partition("/")[0] for place, _tree in places if "/" in place}):
        leading.append(tmpfs(_ROOT_BYTES, "755", FOR_DATA))
        os.mkdir(first)
        attach(leading[-1], first)
    for place, tree in places:
        _make_place(place, tree)
        attach(tree, place)
        os.close(tree)
    for mounted in leading:
        _set_attributes(mounted, READ_ONLY)
        os.close(mounted)
    os.close(scratch)


def show_as_another(directory: str, owner_map_fd: int) -> bool:
    """Mount a directory upon itself, read-only and with translated owners; return whether its file system can do that.

    For a process in a mount namespace of its own, with CAP_SYS_ADMIN over it; nothing of it is seen outside.
    """
    libc.mount_private("/")
    tree = _detached_copy(directory, READ_ONLY | FOR_DATA)
    translated = _translate_owners(tree, owner_map_fd)
    if translated:
        attach(tree, directory)
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
    tree = copied(path)
    _set_attributes(tree, flags, recursive=True)
    return tree


def copied(path: str) -> int:
    """Copy the mount at `path`, and those beneath it, to a tree that stands nowhere yet. Raises OSError."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return libc.syscall(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def _set_attributes(tree: int, flags: int, *, recursive: bool = False, owner_map_fd: int = 0) -> None:
    # struct mount_attr: u64 attr_set, attr_clr, propagation, userns_fd.
    attributes = struct.pack("=QQQQ", flags, 0, _MS_PRIVATE if recursive else 0, owner_map_fd)
    at = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    libc.syscall("mount_setattr", _MOUNT_SETATTR, tree, b"", at, attributes, len(attributes))


def tmpfs(size_bytes: int, mode: str, flags: int, *, bytes_of_an_inode: int = _BYTES_OF_AN_INODE) -> int:
    """Make a tmpfs that stands nowhere yet, and return it. Raises OSError."""
    inodes = max(size_bytes // bytes_of_an_inode, 4)
    return made("tmpfs", {"size": str(size_bytes), "nr_inodes": str(inodes), "mode": mode}, flags)


def made(kind: str, options: Mapping[str, str | None], flags: int) -> int:
    """Make a file system that stands nowhere yet; an option without a value is a flag. Raises OSError."""
    context = libc.syscall(f"fsopen {kind}", _FSOPEN, kind.encode(), _FSOPEN_CLOEXEC)
    try:
        for key, value in options.items():
            given, word = (_FSCONFIG_SET_FLAG, None) if value is None else (_FSCONFIG_SET_STRING, os.fsencode(value))
            libc.syscall(f"fsconfig {kind} {key}", _FSCONFIG, context, given, key.encode(), word, 0)
        libc.syscall(f"fsconfig {kind}", _FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return libc.syscall(f"fsmount {kind}", _FSMOUNT, context, _FSMOUNT_CLOEXEC, flags)
    finally:
        os.close(context)


def picked(path: str) -> int:
    """Return a descriptor by which the file system mounted at a path can be `reconfigured` (fspick(2))."""
    return libc.syscall(f"fspick {path}", _FSPICK, _AT_FDCWD, os.fsencode(path), _FSPICK_CLOEXEC)


def reconfigured(picked_fd: int) -> None:
    """Mount a file system again as it is, by which the kernel drops all that it remembers of names there.

    Needs CAP_SYS_ADMIN in the user namespace in which it was mounted, which the owner of that namespace has, from the
    one above (user_namespaces(7)). Raises OSError.
    """
    libc.syscall("fsconfig reconfigure", _FSCONFIG, picked_fd, _FSCONFIG_CMD_RECONFIGURE, None, None, 0)


def attach(tree: int, path: str) -> None:
    """Mount a tree that stands nowhere yet at a path. Raises OSError."""
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
