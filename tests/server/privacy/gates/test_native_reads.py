"""What polars, DuckDB and Arrow open in native code is hidden as what any other code reads.

The cases need an interpreter with these libraries (`TEST_SCIENCE_PYTHON`), and are skipped for those that it lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ....sandbox.science import science_python
from ...conftest import Caller, in_this_process
from .people import person

MADE: dict[str, tuple[str, str]] = {
    "csv": ("people.csv", "open(p, 'w').write('customer_name,mobile\\n' + name + ',+49 30 901820\\n')"),
    "parquet": ("people.parquet", "import pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table(columns), p)"),
    "many": (
        "many/part-1.parquet",
        "import pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table(columns), p)",
    ),
    "feather": ("people.feather", "import pyarrow as pa, pyarrow.feather as f; f.write_feather(pa.table(columns), p)"),
    "duckdb": (
        "people.duckdb",
        (
            "import duckdb\nwith duckdb.connect(p) as c: c.execute('create table people (customer_name text)'); "
            "c.execute('insert into people values (?)', [name])"
        ),
    ),
    "packed": (
        "people.csv.gz",
        "import gzip; gzip.open(p, 'wt').write('customer_name,mobile\\n' + name + ',+49 30 901820\\n')",
    ),
    "sqlite": (
        "people.sqlite",
        (
            "import sqlite3; c = sqlite3.connect(p); c.execute('create table people (customer_name text)'); "
            "c.execute('insert into people values (?)', [name]); c.commit(); c.close()"
        ),
    ),
}
"""How each file is made by code whose name is spelled so that nothing is learned of it."""
WAYS: dict[str, tuple[str, str, str]] = {
    "polars, a scan": ("polars", "parquet", "pl.scan_parquet('people.parquet').collect()['customer_name'][0]"),
    "polars, a pattern": ("polars", "many", "pl.scan_parquet('many/*.parquet').collect()['customer_name'][0]"),
    "polars, a folder": ("polars", "many", "pl.read_parquet('many')['customer_name'][0]"),
    "polars, a list": ("polars", "parquet", "pl.read_parquet(['people.parquet'])['customer_name'][0]"),
    "polars, csv": ("polars", "csv", "pl.read_csv('people.csv')['customer_name'][0]"),
    "polars, a file of Arrow": ("polars", "feather", "pl.read_ipc('people.feather')['customer_name'][0]"),
    "pandas, parquet": ("pandas", "parquet", "pd.read_parquet('people.parquet')['customer_name'][0]"),
    "pandas, feather": ("pandas", "feather", "pd.read_feather('people.feather')['customer_name'][0]"),
    "pyarrow, a table": ("pyarrow", "parquet", "pq.read_table('people.parquet')['customer_name'][0].as_py()"),
    "pyarrow, a file": ("pyarrow", "parquet", "pq.ParquetFile('people.parquet').read()['customer_name'][0].as_py()"),
    "pyarrow, a dataset": ("pyarrow", "many", "ds.dataset('many').to_table()['customer_name'][0].as_py()"),
    "pyarrow, mapped": (
        "pyarrow",
        "feather",
        "pa.ipc.open_file(pa.memory_map('people.feather')).read_all()['customer_name'][0].as_py()",
    ),
    "duckdb, a path in a query": ("duckdb", "parquet", "duckdb.sql(\"from 'people.parquet'\").fetchall()[0][0]"),
    "duckdb, a function in a query": (
        "duckdb",
        "csv",
        "duckdb.connect().execute(\"select customer_name from read_csv('people.csv')\").fetchall()[0][0]",
    ),
    "duckdb, a method": ("duckdb", "parquet", "duckdb.connect().read_parquet('people.parquet').fetchall()[0][0]"),
    "duckdb, a database": (
        "duckdb",
        "duckdb",
        "duckdb.connect('people.duckdb').sql('select * from people').fetchall()[0][0]",
    ),
}
_FIRST_CELL = ".read().decode().split('\\n')[1].split(',')[0]"
_ATTACHED = (
    "(lambda c: (c.execute({}), c.execute('select * from p.people').fetchone()[0])[1])(sqlite3.connect(':memory:'))"
)
SELDOM: dict[str, tuple[str, str, str]] = {
    "pyarrow, a file by its path": (
        "pyarrow",
        "feather",
        "pa.ipc.open_file('people.feather').read_all()['customer_name'][0].as_py()",
    ),
    "pyarrow, bytes": ("pyarrow", "csv", f"pa.OSFile('people.csv'){_FIRST_CELL}"),
    "pyarrow, what is packed": (
        "pyarrow",
        "packed",
        f"pa.CompressedInputStream('people.csv.gz', 'gzip'){_FIRST_CELL}",
    ),
    "pyarrow, a file system": ("pyarrow", "csv", f"fs.LocalFileSystem().open_input_file('people.csv'){_FIRST_CELL}"),
    "pyarrow, a part of a file system": (
        "pyarrow",
        "csv",
        f"fs.SubTreeFileSystem('/workspace', fs.LocalFileSystem()).open_input_stream('people.csv'){_FIRST_CELL}",
    ),
    "pyarrow, an address": (
        "pyarrow",
        "csv",
        f"fs.FileSystem.from_uri('file:///workspace')[0].open_input_file('/workspace/people.csv'){_FIRST_CELL}",
    ),
    "pyarrow, a fragment": (
        "pyarrow",
        "parquet",
        "ds.ParquetFileFormat().make_fragment('people.parquet', fs.LocalFileSystem()).to_table()['customer_name'][0].as_py()",
    ),
    "pyarrow, a copy": (
        "pyarrow",
        "csv",
        f"(fs.copy_files('people.csv', 'copy.csv'), open('copy.csv', 'rb'){_FIRST_CELL})[1]",
    ),
    "pyarrow, the least value": (
        "pyarrow",
        "parquet",
        "pq.read_metadata('people.parquet').row_group(0).column(0).statistics.min",
    ),
    "duckdb, no quotes": ("duckdb", "csv", "duckdb.sql('select customer_name from people.csv').fetchall()[0][0]"),
    "duckdb, a comment before": (
        "duckdb",
        "csv",
        "duckdb.sql(\"-- the file's first\\nselect customer_name from 'people.csv'\").fetchall()[0][0]",
    ),
    "duckdb, quotes of dollars": (
        "duckdb",
        "csv",
        "duckdb.sql('select customer_name from read_csv($$people.csv$$)').fetchall()[0][0]",
    ),
    "duckdb, escapes": (
        "duckdb",
        "csv",
        "duckdb.sql(r\"select customer_name from read_csv(e'peopl\\x65.csv')\").fetchall()[0][0]",
    ),
    "duckdb, a computed name": (
        "duckdb",
        "csv",
        "duckdb.sql(\"select customer_name from read_csv('people' || '.csv')\").fetchall()[0][0]",
    ),
    "duckdb, a variable": (
        "duckdb",
        "csv",
        (
            "(duckdb.sql(\"set variable f = 'people' || '.csv'\"), "
            "duckdb.sql(\"select customer_name from read_csv(getvariable('f'))\").fetchall()[0][0])[1]"
        ),
    ),
    "duckdb, a computed table": (
        "duckdb",
        "csv",
        "duckdb.sql(\"select customer_name from query_table('people' || '.csv')\").fetchall()[0][0]",
    ),
    "duckdb, a statement": (
        "duckdb",
        "csv",
        "duckdb.execute(duckdb.extract_statements(\"select customer_name from 'people.csv'\")[0]).fetchall()[0][0]",
    ),
    "duckdb, a part of a query": (
        "duckdb",
        "csv",
        "duckdb.sql('select 1 as i').project(\"(select customer_name from 'people.csv')\").fetchall()[0][0]",
    ),
    "sqlite, attached": ("sqlite", "sqlite", _ATTACHED.format("\"attach 'people.sqlite' as p\"")),
    "sqlite, attached by a value": ("sqlite", "sqlite", _ATTACHED.format("'attach ? as p', ['people.sqlite']")),
}
_IMPORTS = {
    "polars": "import polars as pl\n",
    "pandas": "import pandas as pd\n",
    "pyarrow": "import pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset as ds, pyarrow.ipc, pyarrow.fs as fs\n",
    "sqlite": "import sqlite3\n",
    "duckdb": "import duckdb\n",
}


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    environment = {
        "SEALAB_PRIVACY": "auto",
        "SEALAB_PRIVACY_MODE": "fast",
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
        "SEALAB_WORKERS_SPARE": "1",
        "SEALAB_PROCESS_PYTHON": science_python(),
    }
    async with in_this_process(tmp_path_factory.mktemp("home"), environment) as opened:
        yield opened


async def ran(caller: Caller, code: str) -> dict[str, Any]:
    """Run code in full Python, which must not fail but for a library that there is not."""
    report = await caller.run(code, isolation="process", memory_mb=1000)
    if not report["success"] and "not installed" in str(report["error"]):
        pytest.skip(str(report["error"]["message"]))
    assert report["success"], report
    return report


async def made(caller: Caller, kind: str, number: int) -> str:
    """Make the file with a name of its own in it; return the name."""
    spelled = [list(each) for each in person(number).split()]
    path, writes = MADE[kind]
    code = f"""
import os
name = " ".join("".join(letters) for letters in {spelled!r})
columns = {{"customer_name": [name], "mobile": ["+49 30 901820"]}}
p = {path!r}
os.makedirs(os.path.dirname(p) or ".", exist_ok=True)
if os.path.exists(p): os.remove(p)
{writes}
None
"""
    await ran(caller, code)
    return person(number)


async def hidden_where_printed(caller: Caller, library: str, kind: str, read: str, number: int) -> dict[str, Any]:
    """Run code that prints a name that a library read; return the report, which does not say it."""
    name = await made(caller, kind, number)
    # No heading and no form says what the printed words are.
    code = f"{_IMPORTS[library]}x = {read}\nprint('<' + x + '>', x.upper())"
    report = await ran(caller, code)
    assert name.lower() not in json.dumps(report).lower()
    return report


@pytest.mark.parametrize(("number", "way"), list(enumerate(WAYS)), ids=list(WAYS))
async def test_what_a_library_opens_in_native_code_is_learned_before(caller: Caller, number: int, way: str) -> None:
    library, kind, read = WAYS[way]
    report = await hidden_where_printed(caller, library, kind, read, number)
    assert report["privacy"]["hidden"]["PERSON"] >= 1


@pytest.mark.parametrize(("number", "way"), list(enumerate(SELDOM, len(WAYS))), ids=list(SELDOM))
async def test_what_only_a_library_knows_the_name_of_is_learned_too(caller: Caller, number: int, way: str) -> None:
    library, kind, read = SELDOM[way]
    report = await hidden_where_printed(caller, library, kind, read, number)
    # Only of a value that is known does the token of another form begin as its own does.
    assert len(set(re.findall(r"PERSON_(\w{6})", report["output"]))) == 1, report


async def test_what_libraries_are_told_of_changes_nothing_else_of_them(caller: Caller) -> None:
    code = """
import duckdb, polars as pl, sqlite3
def of_a_variable():
    mine = pl.DataFrame({"a": [1, 2]})
    return [
        duckdb.sql("select * from mine").fetchall(),
        duckdb.connect().execute("select * from mine").fetchall(),
        duckdb.sql("select 1 as i").query("t", "select * from mine").fetchall(),
        pl.sql("select * from mine").collect().rows(),
    ]
db = sqlite3.connect(":memory:")
db.execute("attach ':memory:' as other")
db.execute("create table other.t (a)")
[of_a_variable(), db.execute("select count(*) from other.t").fetchone()]
"""
    report = await ran(caller, code)
    assert report["result"] == [[[[1], [2]]] * 4, [0]], report


async def test_a_table_that_cannot_be_looked_through_is_not_opened(caller: Caller) -> None:
    code = "open('broken.parquet', 'wb').write(b'PAR1' + b'Jorinde Quastenbergz' * 9)\nNone"
    await caller.run(code, isolation="process")
    report = await caller.run("print(open('broken.parquet', 'rb').read())", isolation="process")
    if "pyarrow" not in str(report["error"]) and "ArrowInvalid" not in str(report["error"]):
        pytest.skip("needs a library that reads parquet")
    assert report["error"]["type"] == "PermissionError"
    assert "could not be looked through" in report["error"]["message"]


async def test_values_that_are_no_paths_are_not_looked_for_one_by_one(caller: Caller) -> None:
    code = """
import duckdb, os
counted = []
plain = os.path.isdir
os.path.isdir = lambda path: counted.append(path) or plain(path)
c = duckdb.connect()
c.execute("create table t (x text)")
counted.clear()
c.executemany("insert into t values (?)", [[f"value {n}?"] for n in range(2000)])
len(counted)
"""
    assert (await ran(caller, code))["result"] == 0


async def test_the_preview_of_a_table_is_filtered(caller: Caller) -> None:
    name = await made(caller, "parquet", 47)
    told = await caller.call("read_workspace_file", filename="people.parquet")
    assert not told.is_error, told
    assert name not in str(told)
