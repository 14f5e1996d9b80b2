"""What full Python's tables and arrays are in a report: real workers with the libraries that the interpreter has."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Column, HostCalls, Isolation, Job, Json, Outcome, Status

from . import conftest
from .conftest import needs


@pytest.fixture
def keeps(workspace: Path) -> HostCalls:
    """Answer `keep` as the server does: the file is there once its last part has come."""
    parts: dict[str, bytes] = {}

    async def answer(name: str, arguments: Mapping[str, Json]) -> Json:
        assert name == "keep", name
        filename = str(arguments["filename"])
        parts[filename] = parts.get(filename, b"") + base64.b64decode(str(arguments["content"]))
        if not arguments["last"]:
            return None
        (workspace / filename).write_bytes(parts.pop(filename))
        return {"filename": filename, "size": (workspace / filename).stat().st_size}

    return answer


async def no_calls(name: str, _arguments: Mapping[str, Json]) -> Json:
    raise HostCallError(f"{name} is refused: the quota is used up.", type="OSError")


async def run(pool: Pool, code: str, host_calls: HostCalls = no_calls, *, session: str | None = None) -> Outcome:
    outcome = await conftest.run(pool, code, host_calls, session=session, memory_mb=1000)
    assert outcome.status is Status.OK, outcome
    return outcome


# Small tables are shown whole.


async def test_a_small_table_is_its_rows_and_the_report_says_its_types_and_what_is_missing(science: Pool) -> None:
    code = "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': [0.5, None]}, index=pd.Index(['x', 'y'], name='key'))"
    outcome = await run(science, code)
    assert outcome.result == [{"key": "x", "a": 1, "b": 0.5}, {"key": "y", "a": 2, "b": None}]
    (table,) = outcome.tables
    assert (table.place, table.kind, table.shape, table.shown) == ("result", "pandas.DataFrame", (2, 2), 2)
    assert table.columns[0].is_index
    assert table.columns[1:] == (Column("a", "int64"), Column("b", "float64", 1))
    assert outcome.notes == {}


async def test_described_and_grouped_tables_keep_their_labels(science: Pool) -> None:
    code = """
import pandas as pd
df = pd.DataFrame({"city": ["a", "b", "a"], "year": [1, 1, 2], "n": [1.0, 2.0, 4.0]})
{
    "described": df[["n"]].describe().loc[["count", "mean"]],
    "grouped": df.groupby("city")["n"].agg(["sum", "max"]),
    "two_keys": df.groupby(["city", "year"])["n"].sum(),
    "pivoted": df.pivot_table(index="city", columns="year", values="n", aggfunc=["sum"]),
    "counted": df["city"].value_counts(),
}
"""
    assert (await run(science, code)).result == {
        "described": [{"index": "count", "n": 3.0}, {"index": "mean", "n": 7 / 3}],
        "grouped": [{"city": "a", "sum": 5.0, "max": 4.0}, {"city": "b", "sum": 2.0, "max": 2.0}],
        "two_keys": [
            {"city": "a", "year": 1, "n": 1.0},
            {"city": "a", "year": 2, "n": 4.0},
            {"city": "b", "year": 1, "n": 2.0},
        ],
        "pivoted": [{"city": "a", "sum.1": 1.0, "sum.2": 4.0}, {"city": "b", "sum.1": 2.0, "sum.2": None}],
        "counted": {"a": 2, "b": 1},
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("np.int64(3)", 3),
        ("np.bool_(True)", True),
        ("np.float32(0.5)", 0.5),
        ("np.arange(6).reshape(2, 3)", [[0, 1, 2], [3, 4, 5]]),
        ("{'mean': np.array([1.0, np.nan])}", {"mean": [1.0, None]}),
        ("np.datetime64('2024-02-03')", "2024-02-03"),
        ("pd.DataFrame({'a': [1, 2], 'b': ['x', None]})", [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        ("pd.Series([1.5, 2.5], index=['x', 'y'])", {"x": 1.5, "y": 2.5}),
        ("pd.Timestamp('2024-02-03T04:05:06')", "2024-02-03T04:05:06"),
        ("[pd.NaT, pd.NA]", [None, None]),
        ("pd.Index(['a', 'b'])", ["a", "b"]),
        ("pd.Series(['a', 'b', None]).unique()", ["a", "b", None]),
        ("pd.Series(['a']).astype('category').unique()", ["a"]),
        ("pd.MultiIndex.from_tuples([(1, 'a')])", [[1, "a"]]),
        ("[pd.Period('2024-01'), pd.Interval(1, 2)]", ["2024-01", "(1, 2]"]),
        ("pd.Series([1, 2], index=['x', 'x'])", [{"index": "x", "value": 1}, {"index": "x", "value": 2}]),
        ("pd.DataFrame([[1, 2]], columns=['a', 'a'])", [{"a": 1, "a_2": 2}]),
        ("pd.DataFrame({'a': []})", []),
        ("pd.DataFrame(index=['x', 'y'])", [{"index": "x"}, {"index": "y"}]),
        ("np.array(['2024-01-01', 'NaT'], dtype='datetime64[D]')", ["2024-01-01", None]),
        ("np.array([[1.5, np.nan]])", [[1.5, None]]),
        ("np.array([1, 2], dtype='timedelta64[D]')", ["1 days", "2 days"]),
    ],
)
async def test_columns_labels_and_arrays_of_every_kind_come_as_plain_values(
    science: Pool, code: str, expected: Json
) -> None:
    outcome = await run(science, f"import numpy as np, pandas as pd\n{code}")
    assert (outcome.result, outcome.notes) == (expected, {})


# Larger ones become files.


async def test_a_larger_table_is_shown_by_its_ends_and_the_next_call_reads_all_of_it(
    science: Pool, keeps: HostCalls
) -> None:
    code = """
import pandas as pd
df = pd.DataFrame({"n": range(5000), "when": pd.date_range("2024-01-01", periods=5000, freq="h")})
df.loc[7, "n"] = None
{"top": df}
"""
    outcome = await run(science, code, keeps)
    assert isinstance(outcome.result, Mapping)
    shown = outcome.result["top"]
    assert isinstance(shown, Mapping)
    assert (shown["rows"], shown["columns"]) == (5000, 2)
    assert shown["head"][0] == {"n": 0.0, "when": "2024-01-01T00:00:00"}  # type: ignore[index,call-overload]
    assert [row["n"] for row in shown["tail"]] == [4995.0, 4996.0, 4997.0, 4998.0, 4999.0]  # type: ignore[union-attr,index,call-overload]
    (table,) = outcome.tables
    assert (table.place, table.shape, table.shown, table.file) == ("result.top", (5000, 2), 10, shown["file"])
    assert table.columns[0] == Column("n", "float64", 1)
    assert str(table.file).startswith("tables/top-")
    read = await run(
        science,
        f"import pandas as pd\ndf = {shown['read_with']}\n[len(df), str(df.dtypes['when'])[:10], int(df.n.isna().sum())]",
    )
    assert read.result == [5000, "datetime64", 1]


async def test_a_file_keeps_the_index_and_flat_names_of_columns(science: Pool, keeps: HostCalls) -> None:
    code = """
import pandas as pd
df = pd.DataFrame({"a": range(3000), "b": range(3000)}, index=pd.Index(range(10, 3010), name="id"))
df.columns = pd.MultiIndex.from_tuples([("sum", 1), ("mean", 1)])
df
"""
    shown = (await run(science, code, keeps)).result
    assert isinstance(shown, Mapping)
    read = await run(
        science, f"import pandas as pd\ndf = {shown['read_with']}\n[df.index.name, list(df.columns), int(df.index[0])]"
    )
    assert read.result == ["id", ["sum.1", "mean.1"], 10]


async def test_a_table_that_parquet_cannot_hold_becomes_csv(science: Pool, keeps: HostCalls) -> None:
    code = "import pandas as pd\npd.DataFrame({'mixed': [1, 'a', None, 2.5] * 500})"
    outcome = await run(science, code, keeps)
    assert str(outcome.tables[0].file).endswith(".csv")
    read = await run(science, f"import pandas as pd\nlen({outcome.tables[0].read_with})")
    assert read.result == 2000


async def test_a_larger_array_is_told_by_its_extent_and_kept_without_pickle(science: Pool, keeps: HostCalls) -> None:
    outcome = await run(science, "import numpy as np\nnp.arange(6000.0).reshape(100, 60)", keeps)
    shown = outcome.result
    assert isinstance(shown, Mapping)
    assert (shown["shape"], shown["dtype"], shown["min"], shown["max"]) == ([100, 60], "float64", 0.0, 5999.0)
    assert (len(shown["head"]), len(shown["head"][0])) == (5, 30)  # type: ignore[arg-type,index,call-overload]
    read = await run(science, f"import numpy as np\n{shown['read_with']}.shape")
    assert read.result == [100, 60]


async def test_a_file_that_cannot_be_kept_is_told_and_the_run_stays_good(science: Pool) -> None:
    outcome = await run(science, "import pandas as pd\npd.DataFrame({'n': range(5000)})")
    assert isinstance(outcome.result, Mapping)
    assert outcome.result["file"] is None
    assert len(outcome.result["head"]) == 5  # type: ignore[arg-type]
    assert "quota is used up" in str(outcome.tables[0].why_not_kept)


async def test_more_tables_than_a_report_describes_are_shown_all_the_same(science: Pool) -> None:
    outcome = await run(science, "import pandas as pd\n[pd.DataFrame({'n': [n]}) for n in range(30)]")
    assert len(outcome.tables) == 20
    assert outcome.result == [[{"n": n}] for n in range(30)]


async def test_tables_of_one_call_are_not_told_with_the_next(science: Pool) -> None:
    await run(science, "import pandas as pd\ndf = pd.DataFrame({'n': [1]})\ndf", session="tables")
    assert (await run(science, "1", session="tables")).tables == ()
    await science.end_session("tables")


# Other libraries.


async def test_tables_of_polars_come_with_their_own_types(science: Pool, keeps: HostCalls) -> None:
    await needs(science, "polars")
    code = "import polars as pl\ndf = pl.DataFrame({'n': range(5000), 's': ['a', None] * 2500})\n{'all': df, 'few': df.head(2), 'one': df['n'].head(2)}"
    outcome = await run(science, code, keeps)
    assert isinstance(outcome.result, Mapping)
    assert outcome.result["few"] == [{"n": 0, "s": "a"}, {"n": 1, "s": None}]
    assert outcome.result["one"] == [0, 1]
    assert outcome.tables[0].columns == (Column("n", "Int64"), Column("s", "String", 2500))
    read = await run(science, f"import polars as pl\n{outcome.tables[0].read_with}.shape")
    assert read.result == [5000, 2]


@pytest.mark.parametrize("library", ["pandas", "polars"])
async def test_columns_whose_long_names_begin_alike_are_all_shown(science: Pool, library: str) -> None:
    await needs(science, library)
    code = f"import {library}\n{library}.DataFrame({{'n' * 300 + 'a': [1], 'n' * 300 + 'b': [2]}})"
    outcome = await run(science, code)
    assert [[*row.values()] for row in outcome.result] == [[1, 2]]  # type: ignore[union-attr]  # rows of a table


async def test_tables_of_arrow_and_queries_of_duckdb_come_as_rows_and_files(science: Pool, keeps: HostCalls) -> None:
    await needs(science, "pyarrow", "duckdb")
    code = """
import duckdb, pyarrow as pa
few = duckdb.sql("select 1 as a, 'x' as b union all select 2, null order by a")
{"few": few, "all": duckdb.sql("select range as n from range(5000)"), "arrow": pa.table({"n": [1, None]}), "one": pa.scalar(3)}
"""
    outcome = await run(science, code, keeps)
    assert isinstance(outcome.result, Mapping)
    assert outcome.result["few"] == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert (outcome.result["arrow"], outcome.result["one"]) == ([{"n": 1}, {"n": None}], 3)
    kept = next(each for each in outcome.tables if each.place == "result.all")
    read = await run(science, f"import duckdb\nlen({kept.read_with})")
    assert read.result == 5000


# Display.


async def test_what_is_displayed_comes_in_order_beside_the_result(science: Pool) -> None:
    code = """
import pandas as pd
df = pd.DataFrame({"n": [1]})
display(df, "text")
df.loc[0, "n"] = 5
display(df)
"last"
"""
    outcome = await run(science, code)
    assert outcome.displayed == [[{"n": 1}], "text", [{"n": 5}]]
    assert outcome.result == "last"
    assert [each.place for each in outcome.tables] == ["displayed[0]", "displayed[2]"]


async def test_what_a_failed_run_displayed_is_kept(science: Pool) -> None:
    job = Job("display([1, 2])\n1 / 0", isolation=Isolation.PROCESS)
    outcome = await science.run(job, no_calls)
    assert (outcome.status, outcome.displayed) == (Status.ERROR, [[1, 2]])
