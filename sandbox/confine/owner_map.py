"""Makes the directory of a root user readable to workers that are nobody, without touching its files.

The workspace of a server that runs as root belongs to root and is closed to all others. An ID-mapped mount
(mount_setattr(2)) shows the same files with another owner; the translation is that of a user namespace.
"""

from __future__ import annotations

import os
import signal

from . import namespaces


def make(proc_fd: int, stored_id: int, shown_id: int) -> int:
    """Give a descriptor of a user namespace that shows files of `stored_id`, user and group, as `shown_id`'s.

    Needs CAP_SETUID and CAP_SETGID in this process's user namespace. Raises OSError.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = namespaces.fork_into(namespaces.NEW_USER)
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        os.close(reading)
        for file in ("uid_map", "gid_map"):
            fd = os.open(f"{pid}/{file}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc_fd)
            try:
                os.write(fd, f"{stored_id} {shown_id} 1".encode())
            finally:
                os.close(fd)
        return os.open(f"{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc_fd)
    finally:
        os.close(writing)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
