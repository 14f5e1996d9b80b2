"""What becomes of the files that a run of full Python wrote to the workspace by itself, when it has ended.

Where the run went well they come home, all of them within the quota. Where it failed they are kept with the run, as
`.runs/<run_id>/files/…`, and the workspace is as it was. In both cases the report says so, also of what was not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Failure, Json, Outcome, Status, WrittenFolder
from ....workspace.changes import ChangedFolder, Changes, Steps, TooManyChanges
from ....workspace.errors import NameRefused, WorkspaceError
from ....workspace.landing import KeptFiles, Landed, land, read_kept
from ....workspace.names import RUNS, Name
from ....workspace.store import Workspace
from ...base.errors import RightMissing
from ...base.host_work import Kind, in_turns
from ...governance.rights import HOST_FUNCTIONS, require
from ...privacy.gates.run_gate import ChangedNames, WrittenName
from ..host_functions.attachments import BYTES_MAX, FILES_MAX
from ..host_functions.broker import Calls
from .report import FileChanges, WrittenFile, there

_CLOCK_NS = 1_000_000_000
"""By how much times of files may lag behind the clock."""
_NAMED_MAX = 10
_NOTHING = "Nothing that the code wrote is in the workspace"
_FOLDER = "files"
_DryCall = tuple[str, dict[str, Json]]


@dataclass(slots=True)
class FilesHome:
    """Takes home what one run wrote; called once for each job of the run. `landed` and `kept` say what became of it."""

    workspace: Workspace
    calls: Calls
    run_id: str
    landed: Landed = field(default_factory=Landed)
    kept: dict[str, int] = field(default_factory=dict)
    cancelled: Outcome | None = None
    """That of a run that was cancelled, with what is to be said of its files; None where it wrote none."""
    running: asyncio.Task[Outcome] | None = None
    """The run, once it has begun in full Python."""

    async def accompany(self, running: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Return the outcome of a run of full Python.

        Where that is cancelled the caller is let go at once, though it is cancelled again and again; `running` then
        ends when the files are looked after.
        """
        task = self.running = asyncio.create_task(running)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(_seen)
            raise

    def going_on_after(self, error: BaseException) -> asyncio.Task[Outcome] | None:
        """Return the run that was cancelled, and ends when its files are looked after; None where it is over."""
        return self.running if isinstance(error, asyncio.CancelledError) else None

    async def __call__(self, outcome: Outcome, folder: WrittenFolder) -> Outcome:
        """Take it home, or keep it with the run, and return the outcome that says so."""
        handled = await self._handled(outcome, folder)
        if handled.status is Status.CANCELLED:
            self.cancelled = handled
        return handled

    async def _handled(self, outcome: Outcome, folder: WrittenFolder) -> Outcome:
        try:
            require(self.calls.caller.identity, HOST_FUNCTIONS, "write_file")
        except RightMissing as error:
            return _failed(outcome, f"{_NOTHING}. {error}")
        if outcome.status is Status.OK and self.calls.dry_run:
            return await in_turns(Kind.LANDING, self._note_dry(outcome, folder))
        return await in_turns(Kind.LANDING, self._take(outcome, folder))

    def _take(self, outcome: Outcome, folder: WrittenFolder) -> Steps[Outcome]:
        begun_ns = folder.made_ns - _CLOCK_NS
        try:
            with ChangedFolder(folder.path, folder.known, folder.mapped) as changed:
                changes = yield from changed.read()
                if outcome.status is Status.OK:
                    try:
                        self.landed = yield from land(self.workspace, changed, changes, begun_ns=begun_ns)
                    except WorkspaceError as error:
                        outcome = _failed(outcome, f"{_NOTHING}. {error}")
                    else:
                        return _noted(outcome, _not_kept(self.landed))
                kept = yield from self._keep(outcome, changed, changes, begun_ns)
                if self.calls.dry_run:
                    changed.remember(changes)
                return kept
        except TooManyChanges:
            return _failed(outcome, f"{_NOTHING}: it made too many files.", "Write fewer, or one archive of them.")
        except OSError as error:
            return _failed(outcome, f"{_NOTHING}: it cannot be read ({error.strerror}).", "Run it again.")

    def _keep(self, outcome: Outcome, changed: ChangedFolder, changes: Changes, begun_ns: int) -> Steps[Outcome]:
        """Keep with the run what it wrote, and say so: it failed."""
        attachments = self.calls.attachments
        kept = yield from read_kept(
            self.workspace,
            changed,
            changes,
            begun_ns=begun_ns,
            bytes_max=BYTES_MAX - attachments.size,
            files_max=FILES_MAX - len(attachments.files),
        )
        for name, content in kept.files.items():
            at = f"{RUNS}/{self.run_id}/{_FOLDER}/{name}"
            try:
                Name.parse(at)
            except NameRefused:
                kept.left_out[name] = "its name is too long to be kept"
                continue
            attachments.files[f"{_FOLDER}/{name}"] = content
            attachments.size += len(content)
            self.kept[at] = len(content)
        why = "was cancelled" if outcome.status is Status.CANCELLED else "failed"
        return _noted(outcome, self._said_of(kept, changes, why))

    def _said_of(self, kept: KeptFiles, changes: Changes, why: str) -> str | None:
        if not (kept.files or kept.left_out or changes.deleted or changes.replaced):
            return None
        note = f"The workspace is as it was before, since the run {why}."
        if self.kept:
            note += f" What the code wrote is kept below {RUNS}/{self.run_id}/{_FOLDER}/."
        if changes.deleted or changes.replaced:
            note += " What it deleted is still there."
        return note + _listed("Not kept", kept.left_out, kept.more_left_out)

    def _note_dry(self, outcome: Outcome, folder: WrittenFolder) -> Steps[Outcome]:
        try:
            with ChangedFolder(folder.path, folder.known, folder.mapped) as changed:
                changes = yield from changed.read()
                changed.remember(changes)  # so that the next call of a session does not take it home
        except TooManyChanges:
            return _noted(outcome, "What the code wrote cannot be listed: it made too many files.")
        except OSError as error:
            return _noted(outcome, f"What the code wrote cannot be listed: it cannot be read ({error.strerror}).")
        written: list[_DryCall] = [
            ("write_file", {"filename": "/".join(file.parts), "size": file.size}) for file in changes.files
        ]
        deleted: list[_DryCall] = [("delete_file", {"filename": "/".join(parts)}) for parts in changes.deleted]
        calls = [*written, *deleted]
        note = _listed("Could not come home", changes.refused, changes.more_refused)
        for number, (name, arguments) in enumerate(calls):
            try:
                self.calls.log.note_dry(name, arguments)
            except HostCallError:
                note += f" {len(calls) - number} more changes of files are not listed: there are too many."
                break
        return _noted(outcome, note.strip() or None)


async def accompanied(files: FilesHome | None, running: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Return the outcome of a run of full Python, whose files are looked after by `files`, if by anybody."""
    return await (running if files is None else files.accompany(running))


def changed_names(files: FilesHome, calls: Calls) -> ChangedNames:
    """Put together what a run of full Python changed in the workspace, by itself and through the host."""
    landed = files.landed
    by_host = {name: size for name, size in calls.written.items() if name not in landed.changed}
    return ChangedNames(
        _sorted({**by_host, **landed.new}),
        _sorted(landed.changed),
        tuple(sorted(landed.deleted)),
        _sorted(files.kept),
    )


def changed_files(changed: ChangedNames, most: int) -> FileChanges:
    """Return the changes as a report names them, `most` of each kind."""
    changes = {
        "new": written_files(changed.new, most),
        "changed": written_files(changed.changed, most),
        "deleted": list(changed.deleted[:most]),
        "kept": written_files(changed.kept, most),
    }
    return cast("FileChanges", there(changes))


def written_files(names: Sequence[WrittenName], most: int) -> list[WrittenFile]:
    """Return files as a report names them, `most` of them."""
    return [WrittenFile(name=each.name, size=each.size) for each in names[:most]]


def _sorted(sizes: Mapping[str, int]) -> tuple[WrittenName, ...]:
    return tuple(WrittenName(name, size) for name, size in sorted(sizes.items()))


def _seen(run: asyncio.Task[Outcome]) -> None:
    if not run.cancelled():
        run.exception()


def _not_kept(landed: Landed) -> str | None:
    return _listed("Not kept", landed.not_kept, landed.more_not_kept).strip() or None


def _listed(what: str, reasons: Mapping[str, str], more: int) -> str:
    if not reasons:
        return ""
    named = [f"{name} ({why})" for name, why in list(reasons.items())[:_NAMED_MAX]]
    left_out = len(reasons) + more - len(named)
    return f" {what}: {'; '.join(named)}{f'; and {left_out} more' if left_out else ''}."


def _noted(outcome: Outcome, note: str | None) -> Outcome:
    if note is None:
        return outcome
    before = outcome.notes.get("files")
    return replace(outcome, notes={**outcome.notes, "files": note if before is None else f"{before} {note}"})


def _failed(outcome: Outcome, message: str, hint: str | None = None) -> Outcome:
    """Return the outcome of a run whose files did not come home: it failed, or says so in a note."""
    if outcome.status is not Status.OK:
        return _noted(outcome, message)
    return replace(outcome, status=Status.ERROR, error=Failure("OSError", message, hint=hint))
