"""A throw-away PostgreSQL: made in a temporary folder, reached by a socket there, gone afterwards.

`python -m tests.skills_db.postgres COMMAND…` runs a command with its address in SEALAB_DATABASE_URL.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from sealab.skills_db.engine import open_database
from sealab.skills_db.tables import FIRST_ROWS

INSTALL = "`make system` installs it; the service need not run."
_PR_SET_PDEATHSIG = 1
_STATEMENT = re.compile(r"LOG:\s+(?:statement|execute [^:]*): (.*)")
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SELECT SET_CONFIG", "SET SESSION", "SHOW", "RELEASE", "SAVEPOINT")
"""What marks out a transaction, and the settings of a connection or of one change."""
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(sealab_\w+)", re.IGNORECASE)
_MADE = """
SELECT md5(string_agg(row, ' ' ORDER BY row)) FROM (
  SELECT format('%s %s %s %s %s', relname, relkind, relacl, relnatts, reloptions) row FROM pg_class
    WHERE relnamespace = 'public'::regnamespace UNION ALL
  SELECT format('%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull) FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid WHERE relnamespace = 'public'::regnamespace AND NOT attisdropped UNION ALL
  SELECT format('%s %s', tgname, tgenabled) FROM pg_trigger UNION ALL
  SELECT format('%s %s', nspname, nspacl) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%temp%' UNION ALL
  SELECT format('%s %s', setrole, setconfig) FROM pg_db_role_setting s
    JOIN pg_database d ON d.oid = setdatabase AND datname = current_database() UNION ALL
  SELECT format('%s %s', datacl, datconnlimit) FROM pg_database WHERE datname = current_database()) made
"""
"""Changes when a table, a right, a trigger, a schema or a setting of the database does."""
_EMPTIED = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
SET session_replication_role = replica;
DO $$ DECLARE each regclass; BEGIN
  FOR each IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace LOOP
    IF each IN (SELECT seqrelid FROM pg_sequence) THEN EXECUTE format('ALTER SEQUENCE %s RESTART', each);
    ELSIF each <> 'sealab_migration'::regclass THEN EXECUTE format('DELETE FROM %s', each); END IF;
  END LOOP;
END $$
"""


def find_binaries() -> Path | None:
    """Return the folder of `initdb` and `postgres`: the newest one installed, or what the PATH gives."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]), reverse=True)
    folders += [os.path.dirname(found)] if (found := shutil.which("initdb")) else []
    return next((Path(folder) for folder in folders if os.access(f"{folder}/postgres", os.X_OK)), None)


@dataclass
class Cluster:
    """A running server of ours, with a superuser whose password is random."""

    binaries: Path
    folder: Path
    password: str
    owner: str | None
    durable: bool
    options: Mapping[str, object] = field(default_factory=dict)
    process: subprocess.Popen | None = None
    emptied: list[tuple[str, str | None]] = field(default_factory=list)
    """The names of databases whose tables are made and empty, and what `_MADE` says of them."""

    def url(self, name: str) -> str:
        return f"postgresql://sealab:{self.password}@/{name}?host={self.folder}"

    def create(self, name: str, options: str = "") -> str:
        """Make an empty database and return its URL."""
        self.execute(sql.SQL("CREATE DATABASE {} " + options).format(sql.Identifier(name)))
        return self.url(name)

    def drop(self, name: str) -> None:
        self.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def database(self) -> Iterator[str]:
        """Lend a database with empty tables: one that was lent before, unless more than rows of it changed."""
        name, made = self.emptied.pop() if self.emptied else (f"test_{secrets.token_hex(4)}", None)
        if made is None:
            with open_database(self.create(name), self.folder):
                pass
            made = self._made(name)
        yield self.url(name)
        if self._made(name) == made:
            self._empty(name)
            self.emptied.append((name, made))
        else:
            self.drop(name)

    def _made(self, name: str) -> str | None:
        """Return what `_MADE` says of a database, or None where it lets nobody in."""
        with suppress(psycopg.OperationalError), psycopg.connect(self.url(name)) as connection:
            return connection.execute(_MADE).fetchone()[0]
        return None

    def _empty(self, name: str) -> None:
        with psycopg.connect(self.url(name)) as connection:
            connection.execute(_EMPTIED)
            for table, row in FIRST_ROWS:
                values = (sql.Literal(value) for value in (1, *row.values()))
                connection.execute(
                    sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                        sql.Identifier(table.name),
                        sql.SQL(", ").join(map(sql.Identifier, ("id", *row))),
                        sql.SQL(", ").join(values),
                    )
                )

    def set_for(self, url: str, setting: str) -> None:
        """Make a setting the default of the database at `url`."""
        name = url.split("@/")[1].partition("?")[0]
        self.execute(sql.SQL("ALTER DATABASE {} SET " + setting).format(sql.Identifier(name)))

    def execute(self, statement: sql.Composable) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def make(self) -> None:
        """Write the files of a new cluster. PostgreSQL refuses to be root's, so root lends them to somebody else."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self.owner:
            for path in (self.folder, secret):
                shutil.chown(path, self.owner)
        arguments = ["-D", self.folder / "data", "-U", "sealab", "-A", "scram-sha-256", f"--pwfile={secret}"]
        arguments += ["-E", "UTF8", "--locale=C", "--no-sync"]
        made = self._run([self.binaries / "initdb", *arguments], stdout=subprocess.PIPE, text=True)
        output = made.communicate()[0]
        if made.returncode:
            raise RuntimeError(f"initdb failed: {output}")

    def start(self) -> None:
        options = {"listen_addresses": "", "unix_socket_directories": self.folder, "max_connections": 60}
        options |= {"autovacuum": "off", "max_wal_size": "256MB", "shared_buffers": "32MB"}
        options |= {} if self.durable else {"fsync": "off"}
        options |= self.options
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self.process = self._run(
                [self.binaries / "postgres", "-D", self.folder / "data", *flags],
                stdout=log,
                preexec_fn=_end_with_parent,
            )
        deadline = time.monotonic() + 50
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}") from None
                time.sleep(0.05)
            else:
                return

    def statements(self, since: int) -> tuple[Counter[str], int]:
        """Count the statements in the log from there on by what they do, and return where it ends.

        A database has them logged with `set_for(url, "log_statement = 'all'")`. What marks out transactions, and the
        empty statements that show that a connection lives, are left out.
        """
        text = (self.folder / "log").read_bytes()
        counts: Counter[str] = Counter()
        lines = text[since:].decode(errors="replace").replace("\n\t", " ").splitlines()  # a tab: the line goes on
        for found in map(_STATEMENT.search, lines):
            if found and not (statement := found[1].strip()).upper().startswith(_CONTROL) and statement.strip("; "):
                table = _TABLE.search(statement)
                counts[f"{statement.split()[0].upper()} {table[1] if table else statement[:50]}"] += 1
        return counts, len(text)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: at once but tidily, or with SIGKILL, by its process id."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(30)

    def _run(self, command, **options) -> subprocess.Popen:
        somebody = {} if self.owner is None else {"user": self.owner, "group": _group(self.owner), "extra_groups": []}
        return subprocess.Popen(
            [os.fspath(part) for part in command],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            **somebody,
            **options,
        )


@contextmanager
def throwaway_cluster(*, durable: bool = True, options: Mapping[str, object] | None = None) -> Iterator[Cluster]:
    """Make and start a cluster; on the way out it is ended and removed. Raises `LookupError` without binaries.

    One that need not be durable is faster, and loses data only when the machine crashes. `options` are settings of the
    server, and win over those that all tests have.
    """
    binaries = find_binaries()
    if binaries is None:
        raise LookupError(INSTALL)
    with tempfile.TemporaryDirectory(prefix="sealab-postgres-") as folder:
        cluster = Cluster(binaries, Path(folder), secrets.token_urlsafe(12), _somebody_else(), durable, options or {})
        cluster.make()
        cluster.start()
        try:
            yield cluster
        finally:
            if cluster.process is not None and cluster.process.poll() is None:
                cluster.stop()


def _somebody_else() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    command = parser.parse_args().command
    with throwaway_cluster() as shown:
        environment = os.environ | {"SEALAB_DATABASE_URL": shown.create("sealab")}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
