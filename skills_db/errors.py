"""Everything `sealab.skills_db` raises.

    SkillsDbError
    ├── DatabaseUnavailable   it cannot be opened or written, or another program holds it too long
    │   └── DatabaseUnreachable   its server cannot be reached, or does not answer in time
    ├── DatabaseDamaged       the file is not a database, or a damaged one; it was not touched
    ├── DatabaseNewer         a newer sealab has changed its tables; this one would misread them
    ├── DatabaseOlder         it was made before the first release, or lacks tables that its user may not make
    ├── CommitUnknown        the connection went away while a change was being committed
    ├── SkillNotFound         no skill, or no version of it, has this name
    ├── SkillRefused          what was to be stored is too large, or no text that a database can hold
    │   └── SkillSourceMissing    there is nothing to import by that name
    ├── StoreFull             the store holds as much of skills as it may
    ├── BackupRefused         the archive is not a backup, is damaged, or contradicts what is stored
    ├── VaultKeyWrong         the vault was made with another key
    ├── VaultDamaged          an entry of the vault was changed or is damaged
    ├── VaultFull             a scope has as many values as it may have
    ├── ScheduleMoved         a schedule was fired or changed by another at the same moment
    ├── RunNotCut             a run that was to be taken up has ended, or a process is at work on it
    ├── JournalNotFound       no run of this id has a journal, or it has outlived its time
    ├── JournalErased         the journal of a run was erased, since it held data of a person
    ├── JournalNewer          a journal was written by a newer sealab; this one would misread it
    ├── JournalDamaged        a journal was changed or cut
    ├── SignInUnreadable      a sign-in to an upstream server was changed, or sealed with another key
    └── AuditDamaged          the audit log was changed from outside

Each class has a stable `code`. A message says what was wrong, then what to do; it never holds a password, nor
anything that was to be stored. Whatever is raised, nothing was changed, except where `CommitUnknown` says otherwise.
"""

from __future__ import annotations

from typing import ClassVar


class SkillsDbError(Exception):
    """The base of all errors of this folder; `code` is stable, the message is for people."""

    code: ClassVar[str] = "skills_db"


class DatabaseUnavailable(SkillsDbError):
    """The database cannot be reached, opened, read or written."""

    code = "database"


class DatabaseUnreachable(DatabaseUnavailable):
    """The server of the database cannot be reached, or did not answer in time."""

    code = "database_unreachable"


class DatabaseDamaged(SkillsDbError):
    """What is there is not a database, or not a whole one."""

    code = "database_damaged"


class DatabaseNewer(SkillsDbError):
    """The tables were changed by a version of sealab that this one does not know."""

    code = "database_newer"


class DatabaseOlder(SkillsDbError):
    """The tables are of before the first release, or lack what the user of the database may not add."""

    code = "database_older"


class CommitUnknown(SkillsDbError):
    """The connection was lost during a commit: the change may or may not be stored."""

    code = "database_outcome"


class SkillNotFound(SkillsDbError):
    """No skill has this name, or it has no such version."""

    code = "skill_not_found"


class SkillRefused(SkillsDbError):
    """What was given is too large for the store, or is not text that every database can hold."""

    code = "skill_refused"


class SkillSourceMissing(SkillRefused):
    """There is nothing to import by that name, or nothing that can hold skills."""

    code = "skill_source"


class StoreFull(SkillsDbError):
    """The store holds as many bytes of skills as it may."""

    code = "skills_full"


class BackupRefused(SkillsDbError):
    """An archive cannot be written, read, or brought together with what is stored."""

    code = "backup"


class VaultKeyWrong(SkillsDbError):
    """The key is not the one that the vault was made with, or none that can be used."""

    code = "vault_key"


class VaultDamaged(SkillsDbError):
    """An entry of the vault does not open: it was changed, or the disk damaged it."""

    code = "vault_damaged"


class VaultFull(SkillsDbError):
    """A scope has as many values as it may have."""

    code = "vault_full"


class JournalNotFound(SkillsDbError):
    """No run of this id has a journal, or not any more."""

    code = "journal_not_found"


class JournalErased(SkillsDbError):
    """What was kept of a run was erased, since it held data of a person."""

    code = "journal_erased"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"What was kept of the run {run_id} was erased by `sealab pii forget`, so it cannot be shown or run again. "
            "Run its code as a new run."
        )


class ScheduleMoved(SkillsDbError):
    """A schedule has changed since it was read: another server fired it, or its owner changed it."""

    code = "schedule_moved"


class RunNotCut(SkillsDbError):
    """A run cannot be taken up: it has ended, or a process has it."""

    code = "run_not_cut"


class JournalNewer(SkillsDbError):
    """A journal was written in a format that this version does not know."""

    code = "journal_newer"


class JournalDamaged(SkillsDbError):
    """A journal does not open, or lacks a part: it was changed, or the disk damaged it."""

    code = "journal_damaged"


class SignInUnreadable(SkillsDbError):
    """A sign-in to an upstream server was changed, or sealed with another key."""

    code = "sign_in_unreadable"


class AuditDamaged(SkillsDbError):
    """The audit log was changed by somebody who has not its key, or put back to an earlier state."""

    code = "audit_damaged"
