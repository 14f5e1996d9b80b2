"""Runs a container engine so that a directory of root's is nobody's for it, and for nobody else.

The workspace of a server that runs as root is closed to everyone else, and the user of a container is nobody. So the
engine gets a mount namespace of its own, in which the workspace is mounted upon itself with owners translated
(mount_setattr(2), ID-mapped mounts); the container's read-only mount of it is a copy of that. It ends with the engine.
Where a file system cannot translate owners, code in the container reads the workspace through its helpers alone.

Called as `idmapped_engine.main()` with the directory and the engine's command as arguments.
"""

from __future__ import annotations

import os
import sys

from ..confine import namespaces, privileges, root


def main() -> None:
    """Become the engine, with the directory shown to it as nobody's."""
    directory, *command = sys.argv[2:]
    proc_fd = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    owner_map_fd = namespaces.owner_map(proc_fd, 0, privileges.NOBODY)
    namespaces.unshare(namespaces.NEW_MOUNT)
    root.show_as_another(directory, owner_map_fd)
    os.execvp(command[0], command)  # noqa: S606 - there is no shell to want
