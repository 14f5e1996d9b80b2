"""The tables of the audit log, and the triggers that refuse to change a line.

The triggers are against mistakes: who owns the database can drop them. What shows that such a one changed a line is the
chain (`chain`). A line may be removed only once the sealed head says that the log begins after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TABLES = (
    """CREATE TABLE sealab_audit_line (
        number BIGINT NOT NULL PRIMARY KEY,
        at_us BIGINT NOT NULL,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        credential TEXT NOT NULL,
        event TEXT NOT NULL,
        run TEXT NOT NULL,
        tool TEXT NOT NULL,
        decision TEXT NOT NULL,
        rule TEXT NOT NULL,
        bytes_in BIGINT NOT NULL,
        bytes_out BIGINT NOT NULL,
        outcome TEXT NOT NULL,
        details TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL
    )""",
    "CREATE INDEX sealab_audit_line_by_run ON sealab_audit_line (run)",
    "CREATE INDEX sealab_audit_line_by_time ON sealab_audit_line (at_us)",
    """CREATE TABLE sealab_audit_head (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number BIGINT NOT NULL,
        hash TEXT NOT NULL,
        before_number BIGINT NOT NULL,
        before_hash TEXT NOT NULL,
        key_mark TEXT NOT NULL,
        seal TEXT NOT NULL
    )""",
    """INSERT INTO sealab_audit_head (id, number, hash, before_number, before_hash, key_mark, seal)
        VALUES (1, 0, '', 0, '', '', '')""",
)
# ruff: noqa: S608 - what is put into these statements is a constant
_REFUSED = "lines of the audit log are not changed; sealab audit trim removes old ones"

TRIGGERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sqlite": (
            f"""CREATE TRIGGER sealab_audit_line_kept BEFORE UPDATE ON sealab_audit_line
                BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
            f"""CREATE TRIGGER sealab_audit_line_stays BEFORE DELETE ON sealab_audit_line
                WHEN OLD.number > (SELECT before_number FROM sealab_audit_head)
                BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
            f"""CREATE TRIGGER sealab_audit_head_stays BEFORE DELETE ON sealab_audit_head
                BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
        ),
        "postgresql": (
            f"""CREATE FUNCTION sealab_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    RAISE EXCEPTION '{_REFUSED}' USING ERRCODE = 'insufficient_privilege';
                END $$""",
            f"""CREATE FUNCTION sealab_audit_refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
                DECLARE
                    gone BIGINT;
                BEGIN
                    EXECUTE 'SELECT before_number FROM ' || quote_ident(TG_TABLE_SCHEMA) || '.sealab_audit_head'
                        INTO gone;
                    IF gone IS NULL OR OLD.number > gone THEN
                        RAISE EXCEPTION '{_REFUSED}' USING ERRCODE = 'insufficient_privilege';
                    END IF;
                    RETURN OLD;
                END $$""",
            """CREATE TRIGGER sealab_audit_line_kept BEFORE UPDATE ON sealab_audit_line
                FOR EACH ROW EXECUTE FUNCTION sealab_audit_refuse()""",
            """CREATE TRIGGER sealab_audit_line_stays BEFORE DELETE ON sealab_audit_line
                FOR EACH ROW EXECUTE FUNCTION sealab_audit_refuse_delete()""",
            """CREATE TRIGGER sealab_audit_line_whole BEFORE TRUNCATE ON sealab_audit_line
                FOR EACH STATEMENT EXECUTE FUNCTION sealab_audit_refuse()""",
            """CREATE TRIGGER sealab_audit_head_stays BEFORE DELETE OR TRUNCATE ON sealab_audit_head
                FOR EACH STATEMENT EXECUTE FUNCTION sealab_audit_refuse()""",
        ),
    }
)
"""The triggers of each kind of database."""
