"""Joining: by one key and several, by the nearest time, what has no partner, files of many months, versions of a table."""

from __future__ import annotations

from ..made_data import Numbers, People, csv_of, sums
from ..task import Case, Frame, Group, Labelled, Text

join = Group("join")


@join("How much did each customer spend? Some orders have no customer; count them.")
def left_join(people: People) -> Case:
    numbers = Numbers(20)
    customers = [{"customer_id": n, "name": people[n].name, "email": people[n].email} for n in range(8)]
    orders = [
        {"order_id": n, "customer_id": numbers.integer(0, 9), "total": numbers.integer(5, 200)} for n in range(80)
    ]
    known = [{**row, "name": people[row["customer_id"]].name} for row in orders if row["customer_id"] < 8]
    spent = sorted(sums(known, "name", "total").items(), key=lambda each: (-each[1], each[0]))
    return Case(
        {"customers.csv": csv_of(customers), "orders.csv": csv_of(orders)},
        """
import pandas as pd

customers = pd.read_csv("customers.csv")
orders = pd.read_csv("orders.csv")
merged = orders.merge(customers, on="customer_id", how="left")
print("orders without customer:", merged["name"].isna().sum())
(merged.groupby("name")["total"].sum().reset_index()
       .sort_values(["total", "name"], ascending=[False, True]).set_index("name")["total"])
""",
        result=Labelled(dict(spent)),
        printed=[80 - len(known)],
    )


@join("Compare actual sales with targets by store and month. Which missed the target?")
def two_keys(people: People) -> Case:
    numbers = Numbers(21)
    keys = [(store, month) for store in ("A", "B", "C") for month in ("2025-01", "2025-02", "2025-03")]
    sales = [
        {"store": store, "month": month, "manager": people.of(n).name, "sales": numbers.integer(80, 120)}
        for n, (store, month) in enumerate(keys)
    ]
    targets = [{"store": store, "month": month, "target": 100} for store, month in reversed(keys)]
    missed = [[row["store"], row["month"], row["sales"] - 100] for row in sales if row["sales"] < 100]
    return Case(
        {"sales.csv": csv_of(sales), "targets.csv": csv_of(targets)},
        """
import pandas as pd

sales = pd.read_csv("sales.csv")
targets = pd.read_csv("targets.csv")
df = sales.merge(targets, on=["store", "month"])
df["gap"] = df["sales"] - df["target"]
df.loc[df["gap"] < 0, ["store", "month", "gap"]].sort_values(["store", "month"]).reset_index(drop=True)
""",
        result=Frame(["store", "month", "gap"], missed),
    )


@join("Which invited people did not register?")
def anti_join(people: People) -> Case:
    invited = [{"name": people[n].name, "email": people[n].email} for n in range(12)]
    registered = [{"mail": people[n].email, "when": f"2025-05-{n + 1:02}"} for n in range(0, 12, 2)]
    absent = [people[n].name for n in range(1, 12, 2)]
    return Case(
        {"invited.csv": csv_of(invited), "registered.csv": csv_of(registered)},
        """
import pandas as pd

invited = pd.read_csv("invited.csv")
registered = pd.read_csv("registered.csv")
merged = invited.merge(registered, left_on="email", right_on="mail", how="left", indicator=True)
missing = merged[merged["_merge"] == "left_only"]
print(f"{len(missing)} of {len(invited)} did not register")
missing[["name", "email"]].to_csv("not_registered.csv", index=False)
missing["name"].tolist()
""",
        result=absent,
        printed=[6, 12],
        written={
            "not_registered.csv": Text(
                "csv", [{"name": people[n].name, "email": people[n].email} for n in range(1, 12, 2)]
            )
        },
    )


@join("For each trade take the last quote before it, and give the average slippage by symbol.")
def nearest_time(people: People) -> Case:
    numbers = Numbers(23)
    quotes = [
        {"time": f"2025-06-02 09:{n:02}:00", "symbol": symbol, "bid": numbers.real(50, 60)}
        for n in range(0, 60, 3)
        for symbol in ("AAA", "BBB")
    ]
    trades = [
        {
            "time": f"2025-06-02 09:{5 + n * 2 % 55:02}:30",
            "symbol": ("AAA", "BBB")[n % 2],
            "price": numbers.real(50, 60),
            "trader": people.of(n).name,
        }
        for n in range(24)
    ]
    slips: dict[str, list[float]] = {"AAA": [], "BBB": []}
    for trade in trades:
        before = [q for q in quotes if q["symbol"] == trade["symbol"] and q["time"] <= trade["time"]]
        slips[trade["symbol"]].append(trade["price"] - max(before, key=lambda q: q["time"])["bid"])
    return Case(
        {"quotes.csv": csv_of(quotes), "trades.csv": csv_of(trades)},
        """
import pandas as pd

quotes = pd.read_csv("quotes.csv", parse_dates=["time"]).sort_values("time")
trades = pd.read_csv("trades.csv", parse_dates=["time"]).sort_values("time")
df = pd.merge_asof(trades, quotes, on="time", by="symbol", direction="backward")
df["slippage"] = df["price"] - df["bid"]
df.groupby("symbol")["slippage"].mean().to_dict()
""",
        result={symbol: sum(each) / len(each) for symbol, each in slips.items()},
    )


@join("What changed between the two inventory exports: new, gone, different stock?")
def two_versions(people: People) -> Case:
    old = [{"sku": f"S{n:02}", "stock": n * 3, "owner": people.of(n).email} for n in range(20)]
    new = [
        {"sku": f"S{n:02}", "stock": n * 3 + (4 if n % 6 == 0 else 0), "owner": people.of(n).email}
        for n in range(3, 24)
    ]
    return Case(
        {"inventory_old.csv": csv_of(old), "inventory_new.csv": csv_of(new)},
        """
import pandas as pd

old = pd.read_csv("inventory_old.csv")
new = pd.read_csv("inventory_new.csv")
both = old.merge(new, on="sku", how="outer", suffixes=("_old", "_new"), indicator=True)
changed = both[(both["_merge"] == "both") & (both["stock_old"] != both["stock_new"])]
report = {
    "new": both.loc[both["_merge"] == "right_only", "sku"].tolist(),
    "gone": both.loc[both["_merge"] == "left_only", "sku"].tolist(),
    "changed": {row.sku: int(row.stock_new - row.stock_old) for row in changed.itertuples()},
}
import json
with open("changes.json", "w") as f:
    json.dump(report, f, indent=2)
report
""",
        result={
            "new": ["S20", "S21", "S22", "S23"],
            "gone": ["S00", "S01", "S02"],
            "changed": {"S06": 4, "S12": 4, "S18": 4},
        },
        written={
            "changes.json": Text(
                "json",
                {
                    "new": ["S20", "S21", "S22", "S23"],
                    "gone": ["S00", "S01", "S02"],
                    "changed": {"S06": 4, "S12": 4, "S18": 4},
                },
            )
        },
    )


@join("Put the monthly files together into one, with the month as a column.")
def many_files(people: People) -> Case:
    months = {
        month: [{"seller": people.of(n + at).name, "units": (n * 7 + at * 3) % 40 + 1} for n in range(6)]
        for at, month in enumerate(("2025-01", "2025-02", "2025-03", "2025-04"))
    }
    return Case(
        {f"data/sales_{month}.csv": csv_of(rows) for month, rows in months.items()},
        """
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
""",
        result={month: sum(row["units"] for row in rows) for month, rows in months.items()},
        printed=[4, 24],
        written={
            "out/all_sales.csv": Text(
                "csv", [{**row, "month": month} for month, rows in months.items() for row in rows]
            )
        },
    )


@join("Using polars, join the ratings to the products and give the mean rating of those with at least three.")
def polars_join(people: People) -> Case:
    numbers = Numbers(26)
    products = [{"product_id": n, "product": f"Product {chr(65 + n)}"} for n in range(8)]
    ratings = [
        {"product_id": numbers.integer(0, 7), "user": people.of(n).email, "stars": numbers.integer(1, 5)}
        for n in range(40)
    ]
    stars = {
        product["product"]: [each["stars"] for each in ratings if each["product_id"] == product["product_id"]]
        for product in products
    }
    wanted = [[name, sum(given) / len(given), len(given)] for name, given in stars.items() if len(given) >= 3]
    return Case(
        {"products.csv": csv_of(products), "ratings.csv": csv_of(ratings)},
        """
import polars as pl

products = pl.read_csv("products.csv")
ratings = pl.read_csv("ratings.csv")
out = (
    ratings.join(products, on="product_id", how="inner")
    .group_by("product")
    .agg(pl.col("stars").mean().alias("mean"), pl.len().alias("n"))
    .filter(pl.col("n") >= 3)
    .sort("product")
)
out
""",
        result=Frame(["product", "mean", "n"], wanted),
    )


@join("With SQL on the CSV files: revenue by country.")
def duckdb_join(people: People) -> Case:
    numbers = Numbers(27)
    customers = [{"id": n, "name": people[n].name, "country": ("UK", "France", "Spain")[n % 3]} for n in range(12)]
    orders = [{"customer": numbers.integer(0, 11), "amount": numbers.integer(1, 99)} for _ in range(100)]
    revenue = sums(({"country": customers[o["customer"]]["country"], **o} for o in orders), "country", "amount")
    ranked = sorted(revenue.items(), key=lambda each: -each[1])
    return Case(
        {"customers.csv": csv_of(customers), "orders.csv": csv_of(orders)},
        """
import duckdb

df = duckdb.sql('''
    SELECT c.country, CAST(SUM(o.amount) AS BIGINT) AS revenue, COUNT(*) AS orders
    FROM 'orders.csv' o JOIN 'customers.csv' c ON c.id = o.customer
    GROUP BY c.country ORDER BY revenue DESC
''').df()
df
""",
        result=Frame(
            ["country", "revenue", "orders"],
            [
                [country, total, sum(customers[o["customer"]]["country"] == country for o in orders)]
                for country, total in ranked
            ],
        ),
    )


@join("Join salaries to people, but make sure that each person stands in the list once.")
def validated(people: People) -> Case:
    persons = [{"email": people.of(n).email, "name": people.of(n).name} for n in range(14)]
    salaries = [{"email": people[n].email, "salary": 40_000 + n * 1000} for n in range(12)]
    twice = sorted({people[n].email for n in range(2)})
    return Case(
        {"persons.csv": csv_of(persons), "salaries.csv": csv_of(salaries)},
        """
import pandas as pd

persons = pd.read_csv("persons.csv")
salaries = pd.read_csv("salaries.csv")
try:
    merged = persons.merge(salaries, on="email", validate="one_to_one")
except pd.errors.MergeError as e:
    dupes = persons.loc[persons["email"].duplicated(), "email"].tolist()
    print("Duplicates found, dropping:", len(dupes))
    merged = persons.drop_duplicates("email").merge(salaries, on="email", validate="one_to_one")
result = {"rows": len(merged), "duplicates": sorted(dupes), "total": int(merged["salary"].sum())}
""",
        result={"rows": 12, "duplicates": twice, "total": sum(40_000 + n * 1000 for n in range(12))},
        printed=[2],
    )


@join("Add the region of each postcode; use 'other' where it is unknown.")
def lookup(people: People) -> Case:
    regions = {"LS": "north", "BS": "west", "YO": "north"}
    places = ("LS1 4AB", "BS2 8QQ", "YO10 5DD", "ZZ9 9ZZ")
    rows = [{"name": people.of(n).name, "postcode": places[n % 4], "amount": n + 1} for n in range(20)]
    totals = sums(({"region": regions.get(r["postcode"][:2], "other"), **r} for r in rows), "region", "amount")
    return Case(
        {"donations.csv": csv_of(rows), "regions.json": b'{"LS": "north", "BS": "west", "YO": "north"}'},
        """
import json
import pandas as pd

regions = json.load(open("regions.json"))
df = pd.read_csv("donations.csv")
df["region"] = df["postcode"].str[:2].map(regions).fillna("other")
summary = df.groupby("region").agg(donations=("amount", "size"), total=("amount", "sum"))
print(summary)
summary
""",
        result=Frame(
            ["donations", "total"],
            [[{"north": 10, "other": 5, "west": 5}[region], total] for region, total in totals.items()],
            labels=list(totals),
        ),
        printed=["north", 10, totals["north"], "other", 5, totals["other"], "west", 5, totals["west"]],
    )


@join("Who earns more than their manager?")
def self_join(people: People) -> Case:
    numbers = Numbers(30)
    staff = [
        {
            "id": n,
            "name": people[n].name,
            "manager_id": None if n == 0 else (n - 1) // 3,
            "salary": numbers.integer(40, 90) * 1000,
        }
        for n in range(12)
    ]
    more = [
        [row["name"], row["salary"], staff[row["manager_id"]]["salary"]]
        for row in staff
        if row["manager_id"] is not None and row["salary"] > staff[row["manager_id"]]["salary"]
    ]
    return Case(
        {"staff.csv": csv_of(staff)},
        """
import pandas as pd

staff = pd.read_csv("staff.csv")
pairs = staff.merge(
    staff[["id", "salary"]].rename(columns={"id": "manager_id", "salary": "manager_salary"}), on="manager_id"
)
pairs.loc[pairs["salary"] > pairs["manager_salary"]].sort_values("id")[["name", "salary", "manager_salary"]]
""",
        result=Frame(["name", "salary", "manager_salary"], more),
    )


@join("Apply the price corrections to the price list and save it as TSV.")
def corrections(people: People) -> Case:
    prices = [{"sku": f"P{n}", "price": 10.0 + n, "buyer": people.of(n).email} for n in range(15)]
    fixes = [{"sku": f"P{n}", "price": 99.5} for n in (2, 5, 11)]
    after = [{**row, "price": 99.5 if row["sku"] in ("P2", "P5", "P11") else row["price"]} for row in prices]
    return Case(
        {"prices.csv": csv_of(prices), "fixes.csv": csv_of(fixes)},
        """
import pandas as pd

prices = pd.read_csv("prices.csv").set_index("sku")
fixes = pd.read_csv("fixes.csv").set_index("sku")
before = prices["price"].sum()
prices.update(fixes)
prices.reset_index().to_csv("prices_fixed.tsv", sep="\\t", index=False)
print(f"{before:.2f} -> {prices['price'].sum():.2f}")
""",
        printed=[sum(row["price"] for row in prices), sum(row["price"] for row in after)],
        written={"prices_fixed.tsv": Text("csv", after, delimiter="\t")},
    )
