"""SQL and larger tables: windows, files of databases, lazy scans, pieces, arrays on disk."""

from __future__ import annotations

from typing import Any

from ..made_data import Numbers, People, csv_of, mean, sums
from ..task import Case, Database, Frame, Group, Labelled, Sheets, Text

queries = Group("queries and larger tables")


def _trips(people: People, seed: int, count: int) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [
        {
            "trip": n,
            "driver": people.of(numbers.integer(0, 11)).name,
            "zone": f"Z{numbers.integer(0, 9)}",
            "km": numbers.integer(1, 400) / 8,
            "fare": numbers.integer(20, 800) / 4,
        }
        for n in range(count)
    ]


@queries("By SQL: each driver's longest trip and its rank among all.")
def window_functions(people: People) -> Case:
    rows = _trips(people, 170, 400)
    best: dict[str, float] = {}
    for row in rows:
        best[row["driver"]] = max(best.get(row["driver"], 0), row["km"])
    ranked = sorted(best.items(), key=lambda each: (-each[1], each[0]))
    wanted = [[driver, km, 1 + sum(other > km for other in best.values())] for driver, km in ranked[:5]]
    return Case(
        {"trips.csv": csv_of(rows)},
        """
import duckdb

duckdb.sql('''
    WITH longest AS (SELECT driver, MAX(km) AS km FROM 'trips.csv' GROUP BY driver)
    SELECT driver, km, RANK() OVER (ORDER BY km DESC) AS rank FROM longest ORDER BY km DESC, driver LIMIT 5
''').df()
""",
        result=Frame(["driver", "km", "rank"], wanted),
    )


@queries("Build a DuckDB database file from the CSV with a view of the totals by zone.")
def duckdb_file(people: People) -> Case:
    rows = _trips(people, 171, 300)
    fares = sums(rows, "zone", "fare")
    return Case(
        {"trips.csv": csv_of(rows)},
        """
import duckdb

con = duckdb.connect("trips.duckdb")
con.execute("CREATE OR REPLACE TABLE trips AS SELECT * FROM read_csv_auto('trips.csv')")
con.execute("CREATE OR REPLACE VIEW zones AS SELECT zone, SUM(fare) AS fare FROM trips GROUP BY zone")
rows = con.execute("SELECT * FROM zones ORDER BY zone").fetchall()
con.close()
dict(rows)
""",
        result=fares,
        written={
            "trips.duckdb": Database(
                "select zone, fare from zones order by zone", [list(each) for each in fares.items()], "duckdb"
            )
        },
    )


@queries("With polars, lazily: mean fare per km of trips longer than 10 km, by zone.")
def lazy_scan(people: People) -> Case:
    rows = _trips(people, 172, 2000)
    wanted = []
    for zone in sorted({row["zone"] for row in rows}):
        of_zone = [row["fare"] / row["km"] for row in rows if row["zone"] == zone and row["km"] > 10]
        wanted.append([zone, mean(of_zone), len(of_zone)])
    return Case(
        {"trips.csv": csv_of(rows)},
        """
import polars as pl

result = (
    pl.scan_csv("trips.csv")
    .filter(pl.col("km") > 10)
    .with_columns((pl.col("fare") / pl.col("km")).alias("per_km"))
    .group_by("zone")
    .agg(pl.col("per_km").mean(), pl.len().alias("trips"))
    .sort("zone")
    .collect()
)
""",
        result=Frame(["zone", "per_km", "trips"], wanted),
    )


@queries("200,000 readings: mean, minimum and maximum by station.")
def many_rows(people: People) -> Case:
    values = [(n * 7919) % 10_007 / 10 for n in range(200_000)]
    lines = ["station,value,checked_by"]
    lines += [f"S{n % 8},{value},{people.of(n).name if n < 50 else ''}" for n, value in enumerate(values)]
    wanted = [[mean(values[s::8]), min(values[s::8]), max(values[s::8])] for s in range(8)]
    return Case(
        {"readings.csv": "\n".join(lines).encode()},
        """
import pandas as pd

df = pd.read_csv("readings.csv")
print(f"{len(df):,} rows")
df.groupby("station")["value"].agg(["mean", "min", "max"])
""",
        result=Frame(["mean", "min", "max"], wanted, labels=[f"S{s}" for s in range(8)]),
        printed=[200_000],
    )


@queries("Go through the file in pieces and write the large transactions to parquet.")
def pieces(people: People) -> Case:
    rows = [{"id": n, "account": people.of(n).email, "cents": (n * 104_729) % 1_000_003} for n in range(60_000)]
    large = [list(row.values()) for row in rows if row["cents"] >= 999_000]
    return Case(
        {"transactions.csv": csv_of(rows)},
        """
import pandas as pd

parts, total = [], 0
for chunk in pd.read_csv("transactions.csv", chunksize=10_000):
    total += int(chunk["cents"].sum())
    parts.append(chunk[chunk["cents"] >= 999_000])
large = pd.concat(parts, ignore_index=True)
large.to_parquet("large.parquet", index=False)
print(total / 100, len(large))
""",
        printed=[sum(row["cents"] for row in rows) / 100, len(large)],
        written={"large.parquet": Sheets("parquet", {"": [["id", "account", "cents"], *large]})},
    )


@queries("Write one parquet file a zone below a folder, then read back only zone Z3 by pyarrow.")
def partitions(people: People) -> Case:
    rows = _trips(people, 175, 500)
    third = [row for row in rows if row["zone"] == "Z3"]
    return Case(
        {"trips.csv": csv_of(rows)},
        """
import pandas as pd
import pyarrow.dataset as ds

df = pd.read_csv("trips.csv")
df.to_parquet("trips_by_zone", partition_cols=["zone"], index=False)
dataset = ds.dataset("trips_by_zone", format="parquet", partitioning="hive")
table = dataset.to_table(filter=ds.field("zone") == "Z3", columns=["trip", "km"])
print(table.num_rows)
table.to_pandas()["km"].sum()
""",
        result=sum(row["km"] for row in third),
        printed=[len(third)],
    )


@queries("Save the matrix as .npy, read it back mapped, and give the sums of its rows.")
def arrays(people: People) -> Case:
    rows = [{"name": people[n].name, **{f"d{k}": (n * 5 + k * 3) % 11 for k in range(20)}} for n in range(12)]
    totals = {people[n].name: sum((n * 5 + k * 3) % 11 for k in range(20)) for n in range(12)}
    return Case(
        {"matrix.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

df = pd.read_csv("matrix.csv", index_col="name")
np.save("matrix.npy", df.to_numpy())
m = np.load("matrix.npy", mmap_mode="r")
print(m.shape, m.dtype)
pd.Series(m.sum(axis=1), index=df.index, name="total")
""",
        result=Labelled(totals),
        printed=[12, 20],
    )


@queries("A report in Markdown with the totals by zone, and the table as CSV beside it.")
def report(people: People) -> Case:
    rows = _trips(people, 177, 300)
    table = [
        {"zone": zone, "trips": sum(row["zone"] == zone for row in rows), "fare": round(fare, 2)}
        for zone, fare in sums(rows, "zone", "fare").items()
    ]
    return Case(
        {"trips.csv": csv_of(rows)},
        """
from pathlib import Path
import pandas as pd

df = pd.read_csv("trips.csv")
by_zone = df.groupby("zone").agg(trips=("trip", "count"), fare=("fare", "sum")).round(2)
out = Path("report")
out.mkdir(exist_ok=True)
by_zone.to_csv(out / "by_zone.csv")
lines = ["# Trips", "", "| zone | trips | fare |", "| --- | --- | --- |"]
lines += [f"| {zone} | {row.trips:.0f} | {row.fare:.2f} |" for zone, row in by_zone.iterrows()]
(out / "report.md").write_text("\\n".join(lines) + "\\n")
print((out / "report.md").read_text())
""",
        printed=[each for row in table for each in (row["zone"], row["trips"], row["fare"])],
        written={"report/by_zone.csv": Text("csv", table)},
    )
