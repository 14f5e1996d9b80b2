"""Everything `sealab.workspace` raises.

    WorkspaceError
    ├── NameRefused      the text is not a workspace name; nothing was looked up
    ├── Reserved         the name belongs to sealab itself: it can be read, not written or deleted
    ├── NotFound         nothing has this name
    ├── NotAFile         a folder, a link, a device, or a file that has a second name elsewhere
    ├── ChangedMeanwhile another program or server changed the file, so nothing was overwritten
    ├── QuotaFull        the bytes or the number of files would pass the quota; nothing was written
    ├── ContentRefused   the content or the slice asked for does not fit the encoding
    └── Unavailable      the operating system or the object store refused: disk full, no permission, no answer

Each class has a stable `code`. A message says what was wrong, then what to do; it names files as the caller
does and never says where the workspace lies on the host.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class WorkspaceError(Exception):
    """The base of all errors of this folder; `code` is stable, the message is for people.

    `number` is what `open(2)` and its kind would set `errno` to.
    """

    code: ClassVar[str] = "workspace"
    usual_number: ClassVar[int] = errno.EIO

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.number = self.usual_number if number is None else number


class NameRefused(WorkspaceError):
    """The text cannot be the name of a file here; it was judged by its letters alone."""

    code = "name"
    usual_number = errno.EINVAL


class Reserved(WorkspaceError):
    """The name belongs to sealab, which writes and drops it by itself."""

    code = "reserved"
    usual_number = errno.EACCES


class NotFound(WorkspaceError):
    """Nothing in the workspace has this name."""

    code = "not_found"
    usual_number = errno.ENOENT


class NotAFile(WorkspaceError):
    """What has this name is not a plain file with that one name."""

    code = "not_a_file"
    usual_number = errno.EACCES


class ChangedMeanwhile(WorkspaceError):
    """Another program or server changed the file since it was read; what it wrote is there."""

    code = "changed"
    usual_number = errno.ESTALE


class QuotaFull(WorkspaceError):
    """The workspace would hold more bytes or more entries than allowed; nothing was changed."""

    code = "quota"
    usual_number = errno.ENOSPC


class ContentRefused(WorkspaceError):
    """The content, or the slice of it asked for, does not fit the encoding."""

    code = "content"
    usual_number = errno.EINVAL


class Unavailable(WorkspaceError):
    """The operating system or the object store refused what should have worked."""

    code = "unavailable"
