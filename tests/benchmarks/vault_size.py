"""How long a vault of very many values takes: to open, to be known of, and for single values.

    python -m tests.benchmarks.vault_size [VALUES]

The vault is made beside the program's own way, all at once; its last 20,000 values are real.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sealab.skills_db import DATABASE_FILE
from sealab.skills_db.engine import open_database
from sealab.skills_db.vault import Value, Vault

GOAL_SECONDS = 1.0
REAL = 20_000
BATCH = 100_000
KEY = bytes(range(32))
COLUMNS = "scope, token, type, form, lookup, sealed, expires"


def fill(file: Path, values: int) -> None:
    """Put so many values into a new vault."""
    database = sqlite3.connect(file, isolation_level=None)
    scope = Vault(open_database(None, file.parent), KEY).scope_name("home")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -500000")
    made = database.execute("SELECT sql FROM sqlite_master WHERE name = 'sealab_vault_value'").fetchone()[0]
    indexes = database.execute(
        "SELECT sql FROM sqlite_master WHERE tbl_name = 'sealab_vault_value' AND type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    database.execute("DROP TABLE sealab_vault_value")
    bare = made.replace("UNIQUE (scope, token)", "CHECK (1)").replace("UNIQUE (scope, lookup)", "CHECK (1)")
    database.execute(bare)
    expires = time.time() + 86_400 * 90
    for start in range(0, values, BATCH):
        random = os.urandom(BATCH * 16)
        rows = (
            (scope, _token(start + at), "EMAIL", "text", random[16 * at : 16 * at + 16].hex(), b"x" * 56, expires)
            for at in range(BATCH)
        )
        database.execute("BEGIN")
        database.executemany(f"INSERT INTO sealab_vault_value ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        database.execute("COMMIT")
    for (sql,) in indexes:
        database.execute(sql)
    for column in ("token", "lookup"):
        database.execute(f"CREATE UNIQUE INDEX by_{column} ON sealab_vault_value (scope, {column})")
    database.execute("INSERT INTO sealab_vault_total VALUES (?, ?, ?, 0)", (scope, values, values * 56))
    database.close()


def _token(number: int) -> str:
    """Return another token for each number, in no order."""
    return f"{number * 0x9E3779B97F % (1 << 40):010x}"


def took(what: str, work: Callable[[], object]) -> None:
    """Print how long something takes."""
    began = time.perf_counter()
    work()
    print(f"{what:<58}{1000 * (time.perf_counter() - began):>10.1f} ms", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("values", type=int, nargs="?", default=1_000_000)
    values = parser.parse_args().values
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, DATABASE_FILE)
        fill(file, values)
        real = [("EMAIL", f"jane.roe{number}@example.com") for number in range(REAL)]
        database = open_database(None, Path(folder))
        Vault(database, KEY, ttl_days=90).show_many("home", real)
        database.close()
        print(f"{values + REAL} values, {file.stat().st_size / 1e9:.1f} GB (goal: begun within {GOAL_SECONDS:g} s)")
        opened: list[Vault] = []
        began = time.perf_counter()
        took("open the database", lambda: opened.append(open_database(None, Path(folder))))  # type: ignore[arg-type]
        database = opened.pop()  # type: ignore[assignment]
        took("open the vault", lambda: opened.append(Vault(database, KEY, ttl_days=90)))
        vault = opened.pop()
        took("read the newest 10,000 values", lambda: vault.known("home", most=10_000))
        print(f"{'together':<58}{1000 * (time.perf_counter() - began):>10.1f} ms", flush=True)
        took("the token of a value that is known", lambda: vault.tokens_for("home", [Value(*real[5])]))
        took("the token of a new value", lambda: vault.tokens_for("home", [Value("PERSON", "Jane Roe")]))
        took("the token of another", lambda: vault.tokens_for("home", [Value("PERSON", "John Roe")]))
        took("the tokens of 10,000 known values", lambda: vault.show_many("home", real[:10_000]))
        took(
            "the tokens of 10,000 new values",
            lambda: vault.show_many("home", [("PERSON", f"Ana {number}") for number in range(10_000)]),
        )
        took("the counts of the statistics", vault.counts)


if __name__ == "__main__":
    main()
