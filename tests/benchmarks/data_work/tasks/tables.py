"""Tables as they are shown, large ones, time, statistics by each package, SQL, and data in pieces on disk."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from statistics import mean, variance

from ..made_data import CITIES, PRODUCTS, Numbers, People, csv_of, grid, orders, sums, values_by
from ..task import Case, Database, Frame, Group, Labelled, Sheets, Text

tables = Group("tables, time and SQL")


@tables
def two_levels(people: People) -> Case:
    """Units by city and product, one line for each pair."""
    rows = orders(people)
    pairs = sums([{**row, "pair": (row["city"], row["product"])} for row in rows], "pair", "units")
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd

pd.read_csv("orders.csv").groupby(["city", "product"])["units"].sum()
""", result=Labelled(pairs))  # fmt: skip


@tables
def large_table(people: People) -> Case:
    """Score every order and show the whole table."""
    rows = orders(people, 5000)
    head = [[row["email"], row["units"], row["amount"], row["amount"] / (1 + row["units"])] for row in rows[:3]]
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd

df = pd.read_csv("orders.csv")[["email", "units", "amount"]]
df["score"] = df["amount"] / (1 + df["units"])
df
""", result=Frame(["email", "units", "amount", "score"], head, count=5000))  # fmt: skip


@tables
def many_files(people: People) -> Case:
    """Put the monthly files together into one, with the month as a column."""
    rows = [{**row, "month": row["day"][:7]} for row in orders(people, 120)]
    months = {month: [row for row in rows if row["month"] == month] for month in sorted({row["month"] for row in rows})}
    return Case({f"data/sales_{month}.csv": csv_of(each) for month, each in months.items()}, """
import glob
import os
import pandas as pd

frames = []
for path in sorted(glob.glob("data/sales_*.csv")):
    month = os.path.basename(path)[len("sales_"):-len(".csv")]
    frames.append(pd.read_csv(path).assign(month=month))
all_sales = pd.concat(frames, ignore_index=True)
os.makedirs("out", exist_ok=True)
all_sales.to_csv("out/all_sales.csv", index=False)
print(len(frames), "files,", len(all_sales), "rows")
all_sales.groupby("month")["units"].sum().to_dict()
""", result=sums(rows, "month", "units"), printed=[len(months), 120],
        written={"out/all_sales.csv": Text("csv", rows)})  # fmt: skip


@tables
def welch(people: People) -> Case:
    """Do chairs and desks differ in units? Welch's t statistic and degrees of freedom."""
    rows = orders(people)
    a, b, _lamps = values_by(rows, "product", "units").values()
    of_a, of_b = variance(a) / len(a), variance(b) / len(b)
    t = (mean(a) - mean(b)) / math.sqrt(of_a + of_b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
from scipy import stats

units = pd.read_csv("orders.csv").groupby("product")["units"]
test = stats.ttest_ind(units.get_group("chair"), units.get_group("desk"), equal_var=False)
print(f"t = {test.statistic:.4f}, dof = {test.df:.2f}")
test.statistic, test.df
""", result=[t, freedom], printed=[t, freedom])  # fmt: skip


@tables
def clusters(people: People) -> Case:
    """Cluster the points into three groups and give the centre and size of each."""
    numbers, centres = Numbers(90), ((0, 0), (20, 5), (5, 25))
    points = [[middle + numbers.real(-2, 2) for middle in centres[n % 3]] for n in range(45)]
    rows = [{"name": people[n].name, "x": x, "y": y} for n, (x, y) in enumerate(points)]
    return Case({"points.csv": csv_of(rows)}, """
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

df = pd.read_csv("points.csv")
km = KMeans(n_clusters=3, n_init=10, random_state=42).fit(df[["x", "y"]])
sizes = np.bincount(km.labels_)
sorted([float(c[0]), float(c[1]), int(s)] for c, s in zip(km.cluster_centers_, sizes))
""", result=sorted([*(mean(each) for each in zip(*points[n::3], strict=True)), 15] for n in range(3)))  # fmt: skip


@tables
def time_zone(people: People) -> Case:
    """The log is in UTC. At which hour in Berlin do most logins happen?"""
    numbers, rows, hours = Numbers(63), [], []
    for n in range(200):
        wait = timedelta(days=n % 20, hours=numbers.integer(0, 11) + n % 3, minutes=n % 60)
        at = datetime.fromisoformat("2025-03-20") + wait
        # Central European Summer Time began on 30 March 2025 at 01:00 UTC.
        hours.append((at + timedelta(hours=2 if at >= datetime.fromisoformat("2025-03-30T01:00") else 1)).hour)
        rows.append({"user": people[n].email, "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"})
    count = {hour: hours.count(hour) for hour in sorted(set(hours))}
    return Case({"logins.csv": csv_of(rows)}, """
import pandas as pd

df = pd.read_csv("logins.csv")
df["time"] = pd.to_datetime(df["time"], utc=True).dt.tz_convert("Europe/Berlin")
by_hour = df["time"].dt.hour.value_counts().sort_index()
print("Busiest hour:", by_hour.idxmax())
by_hour.to_dict()
""", result=count, printed=[max(count, key=count.__getitem__)])  # fmt: skip


@tables
def polars_dynamic(people: People) -> Case:
    """With polars: mean and maximum units of every ten days."""
    rows = orders(people)
    units = [row["units"] for row in rows]
    wanted = [[rows[n]["day"], mean(units[n : n + 10]), max(units[n : n + 10])] for n in range(0, 40, 10)]
    return Case({"orders.csv": csv_of(rows)}, """
import polars as pl

df = pl.read_csv("orders.csv", try_parse_dates=True).sort("day")
df.group_by_dynamic("day", every="10d", start_by="datapoint").agg(
    pl.col("units").mean().alias("mean"), pl.col("units").max().alias("max")
)
""", result=Frame(["day", "mean", "max"], wanted))  # fmt: skip


@tables
def rollup(people: People) -> Case:
    """Subtotals of amounts by city and product, and the grand total, by SQL."""
    rows = orders(people)
    wanted: list[list[object]] = []
    for city in CITIES:
        of_city = sums([row for row in rows if row["city"] == city], "product", "amount")
        wanted += [[city, product, of_city[product]] for product in PRODUCTS]
        wanted.append([city, None, sum(of_city.values())])
    wanted.append([None, None, sum(row["amount"] for row in rows)])
    return Case({"orders.csv": csv_of(rows)}, """
import duckdb

rows = duckdb.sql('''
    SELECT city, product, SUM(amount) AS amount FROM read_csv_auto('orders.csv')
    GROUP BY ROLLUP (city, product) ORDER BY city NULLS LAST, product NULLS LAST
''').fetchall()
for row in rows:
    print(row)
result = rows
""", result=wanted, printed=[each for row in wanted for each in row if each is not None])  # fmt: skip


@tables
def duckdb_file(people: People) -> Case:
    """Build a DuckDB database file from the CSV with a view of the totals by city."""
    rows = orders(people)
    amounts = sums(rows, "city", "amount")
    return Case({"orders.csv": csv_of(rows)}, """
import duckdb

con = duckdb.connect("orders.duckdb")
con.execute("CREATE OR REPLACE TABLE orders AS SELECT * FROM read_csv_auto('orders.csv')")
con.execute("CREATE OR REPLACE VIEW cities AS SELECT city, SUM(amount) AS amount FROM orders GROUP BY city")
rows = con.execute("SELECT * FROM cities ORDER BY city").fetchall()
con.close()
dict(rows)
""", result=amounts,
        written={"orders.duckdb": Database("select * from cities order by city", [*amounts.items()], "duckdb")})  # fmt: skip


@tables
def many_rows(people: People) -> Case:
    """200,000 readings: mean, minimum and maximum by station."""
    values = [(n * 7919) % 10_007 / 10 for n in range(200_000)]
    lines = [f"S{n % 8},{value},{people[n].name if n < 50 else ''}\n" for n, value in enumerate(values)]
    return Case({"readings.csv": f"station,value,checked_by\n{''.join(lines)}".encode()}, """
import pandas as pd

df = pd.read_csv("readings.csv")
print(f"{len(df):,} rows")
df.groupby("station")["value"].agg(["mean", "min", "max"])
""", result=Frame(
        ["mean", "min", "max"],
        [[math.fsum(values[s::8]) / 25_000, min(values[s::8]), max(values[s::8])] for s in range(8)],
        labels=[f"S{s}" for s in range(8)],
    ), printed=[200_000])  # fmt: skip


@tables
def pieces(people: People) -> Case:
    """Go through the file in pieces and write the large transactions to parquet."""
    rows = [{"id": n, "account": people[n].email, "cents": (n * 104_729) % 1_000_003} for n in range(60_000)]
    large = [row for row in rows if row["cents"] >= 999_000]
    return Case({"transactions.csv": csv_of(rows)}, """
import pandas as pd

parts, total = [], 0
for chunk in pd.read_csv("transactions.csv", chunksize=10_000):
    total += int(chunk["cents"].sum())
    parts.append(chunk[chunk["cents"] >= 999_000])
large = pd.concat(parts, ignore_index=True)
large.to_parquet("large.parquet", index=False)
print(total / 100, len(large))
""", printed=[sum(row["cents"] for row in rows) / 100, len(large)],
        written={"large.parquet": Sheets("parquet", {"": grid(large)})})  # fmt: skip


@tables
def partitions(people: People) -> Case:
    """Write one parquet file a city below a folder, then read back only York by pyarrow."""
    rows = orders(people)
    york = values_by(rows, "city", "units")["York"]
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import pyarrow.dataset as ds

df = pd.read_csv("orders.csv")
df.to_parquet("by_city", partition_cols=["city"], index=False)
dataset = ds.dataset("by_city", format="parquet", partitioning="hive")
table = dataset.to_table(filter=ds.field("city") == "York", columns=["id", "units"])
print(table.num_rows)
table.to_pandas()["units"].sum()
""", result=sum(york), printed=[len(york)])  # fmt: skip


@tables
def arrays(people: People) -> Case:
    """Save the matrix as .npy, read it back mapped, and give the sums of its rows."""
    rows = [{"name": people[n].name, **{f"d{k}": (n * 5 + k * 3) % 11 for k in range(20)}} for n in range(12)]
    return Case({"matrix.csv": csv_of(rows)}, """
import numpy as np
import pandas as pd

df = pd.read_csv("matrix.csv", index_col="name")
np.save("matrix.npy", df.to_numpy())
m = np.load("matrix.npy", mmap_mode="r")
print(m.shape, m.dtype)
pd.Series(m.sum(axis=1), index=df.index, name="total")
""", result=Labelled({row["name"]: sum(each for each in row.values() if isinstance(each, int)) for row in rows}),
        printed=[12, 20])  # fmt: skip
