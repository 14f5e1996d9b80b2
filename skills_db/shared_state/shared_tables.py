"""The tables of what servers on one database share, and the triggers that notify them of changes.

A trigger sends its notice with the commit of the change, and only then, whichever version of sealab made the change.
"""

from __future__ import annotations

from collections.abc import Mapping

CHANNEL = "sealab_notice"
"""Where notices are sent (PostgreSQL, NOTIFY). They carry names and versions, never what is stored."""

TABLES = (
    """CREATE TABLE sealab_document (
        name TEXT PRIMARY KEY,
        version BIGINT NOT NULL,
        content {bytes} NOT NULL
    )""",
    """CREATE TABLE sealab_document_revision (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number BIGINT NOT NULL
    )""",
    "INSERT INTO sealab_document_revision (id, number) VALUES (1, 0)",
    """CREATE TABLE sealab_part (
        resource TEXT NOT NULL,
        holder TEXT NOT NULL,
        granted BIGINT NOT NULL,
        wanted BIGINT NOT NULL,
        until_time {float} NOT NULL,
        PRIMARY KEY (resource, holder)
    )""",
    "CREATE INDEX sealab_part_by_until ON sealab_part (until_time)",
    """CREATE TABLE sealab_setup (
        holder TEXT PRIMARY KEY,
        setup TEXT NOT NULL,
        seen {float} NOT NULL
    )""",
)

_FUNCTION = f"""CREATE FUNCTION sealab_notice() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_notify('{CHANNEL}', json_build_object(
            'schema', TG_TABLE_SCHEMA, 'kind', TG_ARGV[0], 'version', NEW.number)::text);
        RETURN NULL;
    END $$"""

TRIGGERS: Mapping[str, tuple[str, ...]] = {
    "postgresql": (
        _FUNCTION,
        """CREATE TRIGGER sealab_document_notice AFTER UPDATE ON sealab_document_revision
            FOR EACH ROW WHEN (NEW.number <> OLD.number) EXECUTE FUNCTION sealab_notice('documents')""",
        """CREATE TRIGGER sealab_skill_notice AFTER UPDATE ON sealab_revision
            FOR EACH ROW WHEN (NEW.number <> OLD.number) EXECUTE FUNCTION sealab_notice('skills')""",
    )
}
