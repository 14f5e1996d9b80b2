"""Pivots and groups: with margins, wide to long and back, shares, ranks, bins."""

from __future__ import annotations

from typing import Any

from ..made_data import Numbers, People, csv_of, mean, sums
from ..task import Case, Frame, Group, Labelled, Text

pivot = Group("pivot")

REGIONS = ("east", "north", "west")
PRODUCTS = ("chair", "desk", "lamp")


def _sales(people: People, seed: int, count: int = 90) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [
        {
            "seller": people.of(n).name,
            "region": numbers.one_of(REGIONS),
            "product": numbers.one_of(PRODUCTS),
            "units": numbers.integer(1, 20),
            "revenue": numbers.real(10, 500),
        }
        for n in range(count)
    ]


@pivot("A pivot table of units by region and product, with totals.")
def margins(people: People) -> Case:
    rows = _sales(people, 40)

    def units(region: str | None, product: str | None) -> int:
        return sum(
            row["units"] for row in rows if region in (None, row["region"]) and product in (None, row["product"])
        )

    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sales.csv")
df.pivot_table(index="region", columns="product", values="units", aggfunc="sum", margins=True, margins_name="total")
""",
        result=Frame(
            [*PRODUCTS, "total"],
            [[units(region, product) for product in (*PRODUCTS, None)] for region in (*REGIONS, None)],
            labels=[*REGIONS, "total"],
        ),
    )


@pivot("Turn the wide table of months into a long one and save it.")
def melt(people: People) -> Case:
    rows = [
        {"name": people[n].name, "2025-01": n, "2025-02": n * 2, "2025-03": None if n == 4 else n * 3}
        for n in range(10)
    ]
    long = [
        {"name": row["name"], "month": month, "hours": row[month]}
        for row in sorted(rows, key=lambda row: row["name"])
        for month in ("2025-01", "2025-02", "2025-03")
        if row[month] is not None
    ]
    return Case(
        {"hours.csv": csv_of(rows)},
        """
import pandas as pd

wide = pd.read_csv("hours.csv")
long = wide.melt(id_vars="name", var_name="month", value_name="hours").dropna(subset=["hours"])
long["hours"] = long["hours"].astype(int)
long = long.sort_values(["name", "month"]).reset_index(drop=True)
long.to_csv("hours_long.csv", index=False)
long.shape
""",
        result=[29, 3],
        written={"hours_long.csv": Text("csv", long)},
    )


@pivot("What share of each department answered yes, no and maybe, in percent?")
def shares(people: People) -> Case:
    numbers = Numbers(42)
    rows = [
        {
            "name": people.of(n).name,
            "department": numbers.one_of(("finance", "it", "legal")),
            "answer": numbers.one_of(("maybe", "no", "yes")),
        }
        for n in range(75)
    ]
    wanted = []
    for department in ("finance", "it", "legal"):
        given = [row["answer"] for row in rows if row["department"] == department]
        wanted.append([round(100 * given.count(each) / len(given), 1) for each in ("maybe", "no", "yes")])
    return Case(
        {"poll.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("poll.csv")
table = pd.crosstab(df["department"], df["answer"], normalize="index").mul(100).round(1)
table
""",
        result=Frame(["maybe", "no", "yes"], wanted, labels=["finance", "it", "legal"]),
    )


@pivot("Orders, revenue, average and largest order by region.")
def named_aggregates(people: People) -> Case:
    rows = _sales(people, 43)
    wanted = []
    for region in REGIONS:
        revenue = [row["revenue"] for row in rows if row["region"] == region]
        wanted.append([len(revenue), sum(revenue), mean(revenue), max(revenue)])
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sales.csv")
summary = df.groupby("region").agg(
    orders=("revenue", "count"),
    revenue=("revenue", "sum"),
    average=("revenue", "mean"),
    largest=("revenue", "max"),
)
summary
""",
        result=Frame(["orders", "revenue", "average", "largest"], wanted, labels=REGIONS),
    )


@pivot("Units by region and product, one line for each pair.")
def two_levels(people: People) -> Case:
    rows = _sales(people, 44)
    pairs = sums(({"pair": (row["region"], row["product"]), **row} for row in rows), "pair", "units")
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sales.csv")
df.groupby(["region", "product"])["units"].sum()
""",
        result=Labelled(pairs),
    )


@pivot("With polars: total units per region and product, products as columns.")
def polars_pivot(people: People) -> Case:
    rows = _sales(people, 45)
    wanted = [
        [region, *(sum(r["units"] for r in rows if (r["region"], r["product"]) == (region, p)) for p in PRODUCTS)]
        for region in REGIONS
    ]
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import polars as pl

df = pl.read_csv("sales.csv")
wide = df.pivot(on="product", index="region", values="units", aggregate_function="sum")
wide.select("region", "chair", "desk", "lamp").sort("region")
""",
        result=Frame(["region", *PRODUCTS], wanted),
    )


@pivot("Subtotals of revenue by region and product, and the grand total, by SQL.")
def rollup(people: People) -> Case:
    rows = _sales(people, 46)
    wanted = []
    for region in REGIONS:
        of_region = [row for row in rows if row["region"] == region]
        wanted += [[region, p, round(sum(r["revenue"] for r in of_region if r["product"] == p), 2)] for p in PRODUCTS]
        wanted.append([region, None, round(sum(r["revenue"] for r in of_region), 2)])
    wanted.append([None, None, round(sum(r["revenue"] for r in rows), 2)])
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import duckdb

rows = duckdb.sql('''
    SELECT region, product, ROUND(SUM(revenue), 2) AS revenue
    FROM read_csv_auto('sales.csv')
    GROUP BY ROLLUP (region, product)
    ORDER BY region NULLS LAST, product NULLS LAST
''').fetchall()
for row in rows:
    print(row)
result = rows
""",
        result=wanted,
        printed=[each for row in wanted for each in row if each is not None],
    )


@pivot("How many people are in each age band?")
def bins(people: People) -> Case:
    numbers = Numbers(47)
    rows = [{"name": people.of(n).name, "age": numbers.integer(18, 89)} for n in range(120)]
    bands = {"18-29": (18, 29), "30-44": (30, 44), "45-64": (45, 64), "65+": (65, 200)}
    return Case(
        {"members.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("members.csv")
labels = ["18-29", "30-44", "45-64", "65+"]
df["band"] = pd.cut(df["age"], bins=[17, 29, 44, 64, 200], labels=labels)
df["band"].value_counts().reindex(labels)
""",
        result=Labelled({band: sum(low <= r["age"] <= high for r in rows) for band, (low, high) in bands.items()}),
    )


@pivot("The two best sellers of each region by revenue.")
def top_of_each(people: People) -> Case:
    rows = _sales(people, 48)
    wanted = []
    for region in REGIONS:
        of_region = sums((row for row in rows if row["region"] == region), "seller", "revenue")
        best = sorted(of_region.items(), key=lambda each: -each[1])[:2]
        wanted += [[region, seller, value] for seller, value in best]
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sales.csv")
totals = df.groupby(["region", "seller"], as_index=False)["revenue"].sum()
top = (
    totals.sort_values(["region", "revenue"], ascending=[True, False])
    .groupby("region").head(2).reset_index(drop=True)
)
print(top.to_string(index=False))
top
""",
        result=Frame(["region", "seller", "revenue"], wanted),
        printed=[each for row in wanted for each in row],
    )


@pivot("Each ticket has several tags. How often does each occur?")
def tags(people: People) -> Case:
    words = ("billing", "login", "mobile", "urgent")
    rows = [
        {
            "id": n,
            "reporter": people.of(n).email,
            "tags": ",".join(word for at, word in enumerate(words) if (n + at) % (at + 2) == 0),
        }
        for n in range(48)
    ]
    count = {word: sum(word in row["tags"].split(",") for row in rows) for word in words}
    ranked = dict(sorted(count.items(), key=lambda each: (-each[1], each[0])))
    return Case(
        {"tickets.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("tickets.csv")
tags = df["tags"].dropna().str.split(",").explode()
counts = tags.value_counts()
counts = counts.sort_index().sort_values(ascending=False, kind="stable")
counts.to_frame("n")
""",
        result=Frame(["n"], [[n] for n in ranked.values()], labels=list(ranked)),
    )


@pivot("Add to each sale its share of its region's revenue; which sale is the largest share?")
def share_of_group(people: People) -> Case:
    rows = _sales(people, 50)
    total = sums(rows, "region", "revenue")
    part = [row["revenue"] / total[row["region"]] for row in rows]
    best = max(range(len(rows)), key=part.__getitem__)
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sales.csv")
df["share"] = df["revenue"] / df.groupby("region")["revenue"].transform("sum")
assert abs(df["share"].sum() - df["region"].nunique()) < 1e-9
best = df.loc[df["share"].idxmax()]
print(f"{best['seller']} in {best['region']}: {best['share']:.1%}")
best.to_dict()
""",
        result={**rows[best], "share": part[best]},
        printed=[rows[best]["seller"], rows[best]["region"], part[best] * 100],
    )


@pivot("The columns are q1_2024, q2_2024, …: make it one row per person, year and quarter, and average by year.")
def wide_to_long(people: People) -> Case:
    numbers = Numbers(51)
    columns = [f"q{quarter}_{year}" for year in (2024, 2025) for quarter in (1, 2, 3, 4)]
    rows = [{"name": people[n].name, **{column: numbers.integer(1, 100) for column in columns}} for n in range(12)]
    wanted = [[mean(row[f"q{quarter}_{year}"] for row in rows) for quarter in (1, 2, 3, 4)] for year in (2024, 2025)]
    return Case(
        {"scores.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("scores.csv")
long = df.melt(id_vars="name", value_name="score")
long[["quarter", "year"]] = long["variable"].str.split("_", expand=True)
long["year"] = long["year"].astype(int)
print(len(long))
long.pivot_table(index="year", columns="quarter", values="score", aggfunc="mean")
""",
        result=Frame(["q1", "q2", "q3", "q4"], wanted, labels=[2024, 2025]),
        printed=[96],
    )
