"""Changes what is kept of runs: the one way to do so, for erasing what must not be kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from .errors import WorkspaceError
from .names import RUNS, Name, run_in
from .paths import write_all
from .store import Workspace


def rewrite_kept(workspace: Workspace, changed: Callable[[bytes], bytes], *, changes: bool) -> Iterator[str]:
    """Give the names of kept files that `changed` makes differ, and replace them where it `changes`.

    Names are as their owners read them. What is dropped meanwhile is passed over.
    """
    workspace.settle_runs()
    kept = getattr(workspace, "kept", None)
    if kept is not None:
        yield from kept.rewrite(changed, changes=changes)
        return
    for entry in list(workspace.beside.walk()):
        run_id = run_in(entry.parts[0])
        if run_id is None or not entry.is_plain:
            continue
        try:
            handle, _ = workspace.beside.open_file(Name(entry.parts), os.O_RDWR if changes else os.O_RDONLY)
        except WorkspaceError:
            continue
        with open(handle, "r+b" if changes else "rb", buffering=0) as file:
            before = file.read() or b""
            after = changed(before)
            if after == before:
                continue
            if changes:
                file.seek(0)
                write_all(handle, after)
                file.truncate(len(after))
        yield "/".join((RUNS, run_id, *entry.parts[1:]))
