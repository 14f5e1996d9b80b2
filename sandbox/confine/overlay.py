"""Security boundary: the workspace as code of full Python may change it, without changing anything of the workspace.

An overlay (the kernel's Documentation/filesystems/overlayfs.rst) lies on the workspace: what code writes goes to a
folder on the host's disk that belongs to this one worker, and the host looks at it when the worker's processes are
gone. A worker mounts it as the owner of its user namespace, which Linux allows since 5.11; the marks of what was
deleted and replaced are then extended attributes of users (`userxattr`), and no file of the overlay leads to another
(`redirect_dir` and `metacopy` cannot be had). Nothing there executes, is a device, or is set-user-id.

The folders of all workers lie below one mount of the root. Each worker covers it before its first line of code, and no
rule of Landlock leads there.

A session sees what others changed in the workspace at its next call (`see_anew`), but for files that it changed itself:
those it goes on seeing as it left them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import layout, root

UPPER, WORK, SCRATCH = "upper", "work", "tmp"
"""What a worker's folder holds: what it wrote, what the kernel needs beside that, and its temporary files."""

_COVER_BYTES = 4096


def mount(name: str, readable: Sequence[str]) -> int:
    """Mount the overlay of the worker's folder of this name, and its scratch directory, and go into the workspace.

    Returns a descriptor for `see_anew`.

    For a process in a mount namespace of its own, with CAP_SYS_ADMIN over it, that is in the root of `layout_for`.
    Raises OSError where the kernel or the file system of the folder cannot do that.
    """
    own = f"{layout.RUN_FOLDERS}/{name}"
    lay_over(layout.WORKSPACE, f"{own}/{UPPER}", f"{own}/{WORK}", at=layout.WORKSPACE)
    root.mount_over(root.copied(f"{own}/{SCRATCH}"), layout.SCRATCH, readable)
    os.chdir(layout.WORKSPACE)
    return root.picked(layout.WORKSPACE)


def lay_over(lower: str, upper: str, work: str, *, at: str) -> None:
    """Mount an overlay at a directory, in a user namespace of which this process is the owner. Raises OSError."""
    options = {
        "lowerdir": lower,
        "upperdir": upper,
        "workdir": work,
        "userxattr": None,
        "index": "off",
        # The upper layer outlives neither the worker nor a crash: no need to wait for the disk.
        "volatile": None,
    }
    mounted = root.made("overlay", options, root.FOR_DATA)
    root.attach(mounted, at)
    os.close(mounted)


def see_anew(picked_fd: int) -> None:
    """Remount an overlay to show the workspace as it is now, from the process that forked its worker. Raises OSError.

    The kernel looks up a name of the workspace once, and then goes on showing the file that was there, or that there
    was none, as long as it remembers that.
    """
    root.reconfigured(picked_fd)


def cover() -> None:
    """Hide the folders of all workers from this one, for good: it will have no right to take a mount away."""
    cover = root.tmpfs(_COVER_BYTES, "555", root.FOR_DATA | root.READ_ONLY)
    root.attach(cover, layout.RUN_FOLDERS)
    os.close(cover)
