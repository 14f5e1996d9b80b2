"""Formats: parquet, feather, JSON in its kinds, Excel, SQLite, archives, fixed widths, XML; read and written."""

from __future__ import annotations

import gzip
import io
import sqlite3
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..made_data import Numbers, People, csv_of, json_of, jsonl_of, mean, sums
from ..task import Archive, Case, Database, Frame, Group, Labelled, Sheets, Text

formats = Group("formats")


def _rows(people: People, seed: int, count: int = 40) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [
        {
            "id": n,
            "name": people.of(n).name,
            "email": people.of(n).email,
            "city": numbers.one_of(("Bristol", "Leeds", "York")),
            "amount": numbers.real(1, 100),
        }
        for n in range(count)
    ]


def _grid(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def _zip(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0)), content)
    return packed.getvalue()


def _sqlite(tables: Mapping[str, list[dict[str, Any]]]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.db")
        database = sqlite3.connect(path)
        for name, rows in tables.items():
            database.execute(f"create table {name} ({', '.join(rows[0])})")
            database.executemany(
                f"insert into {name} values ({', '.join('?' * len(rows[0]))})", [tuple(row.values()) for row in rows]
            )
        database.commit()
        database.close()
        return path.read_bytes()


@formats("Convert the CSV to parquet and check that nothing was lost.")
def csv_to_parquet(people: People) -> Case:
    rows = _rows(people, 120)
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("orders.csv")
df.to_parquet("orders.parquet", index=False)
back = pd.read_parquet("orders.parquet")
assert back.equals(df)
print(back.shape)
""",
        printed=[40, 5],
        written={"orders.parquet": Sheets("parquet", {"": _grid(rows)})},
    )


@formats("Read the parquet file: amount by city.")
def read_parquet(people: People) -> Case:
    rows = _rows(people, 121)
    return Case(
        {"orders.parquet": Sheets("parquet", {"": _grid(rows)})},
        """
import pandas as pd

df = pd.read_parquet("orders.parquet")
df.groupby("city")["amount"].sum()
""",
        result=Labelled(sums(rows, "city", "amount")),
    )


@formats("With polars, scan the parquet file and give the three largest orders.")
def polars_parquet(people: People) -> Case:
    rows = _rows(people, 122)
    top = sorted(rows, key=lambda row: -row["amount"])[:3]
    return Case(
        {"orders.parquet": Sheets("parquet", {"": _grid(rows)})},
        """
import polars as pl

(
    pl.scan_parquet("orders.parquet")
    .sort("amount", descending=True)
    .head(3)
    .select("id", "name", "amount")
    .collect()
)
""",
        result=Frame(["id", "name", "amount"], [[row["id"], row["name"], row["amount"]] for row in top]),
    )


@formats("Query the parquet file by SQL and export the summary to CSV.")
def duckdb_parquet(people: People) -> Case:
    rows = _rows(people, 123)
    summary = [
        {
            "city": city,
            "n": sum(row["city"] == city for row in rows),
            "mean": round(mean(row["amount"] for row in rows if row["city"] == city), 4),
        }
        for city in ("Bristol", "Leeds", "York")
    ]
    return Case(
        {"data/orders.parquet": Sheets("parquet", {"": _grid(rows)})},
        """
import duckdb

con = duckdb.connect()
con.execute('''
    COPY (
        SELECT city, COUNT(*) AS n, ROUND(AVG(amount), 4) AS mean
        FROM 'data/orders.parquet' GROUP BY city ORDER BY city
    ) TO 'summary.csv' (HEADER, DELIMITER ',')
''')
con.execute("SELECT COUNT(*) FROM 'data/orders.parquet'").fetchone()[0]
""",
        result=40,
        written={"summary.csv": Text("csv", summary)},
    )


@formats("The export is tab-separated with comment lines; how many rows per city?")
def tsv(people: People) -> Case:
    rows = _rows(people, 124)
    content = b"# exported 2025-06-01\n# by the nightly job\n" + csv_of(rows, delimiter="\t")
    return Case(
        {"export.tsv": content},
        """
import pandas as pd

df = pd.read_csv("export.tsv", sep="\\t", comment="#")
df["city"].value_counts().sort_index().to_dict()
""",
        result={city: sum(row["city"] == city for row in rows) for city in sorted({row["city"] for row in rows})},
    )


@formats("Flatten the nested JSON of orders into one row a line item.")
def nested_json(people: People) -> Case:
    orders = [
        {
            "id": 500 + n,
            "customer": {"name": people[n].name, "contact": {"email": people[n].email}},
            "lines": [{"sku": f"S{k}", "qty": k + n % 3 + 1} for k in range(1 + n % 3)],
        }
        for n in range(8)
    ]
    flat = [
        [line["sku"], line["qty"], order["id"], order["customer"]["name"]]
        for order in orders
        for line in order["lines"]
    ]
    return Case(
        {"orders.json": json_of({"orders": orders})},
        """
import json
import pandas as pd

with open("orders.json") as f:
    data = json.load(f)
df = pd.json_normalize(data["orders"], record_path="lines", meta=["id", ["customer", "name"]])
df.columns = ["sku", "qty", "order", "customer"]
print("total quantity:", df["qty"].sum())
df
""",
        result=Frame(["sku", "qty", "order", "customer"], flat),
        printed=[sum(row[1] for row in flat)],
    )


@formats("Events in JSON lines: events by type and distinct users.")
def json_lines(people: People) -> Case:
    numbers = Numbers(126)
    events = [
        {"type": numbers.one_of(("click", "login", "view")), "user": people.of(numbers.integer(0, 11)).email, "n": n}
        for n in range(90)
    ]
    return Case(
        {"events.jsonl": jsonl_of(events)},
        """
import pandas as pd

df = pd.read_json("events.jsonl", lines=True)
df.groupby("type").agg(events=("n", "size"), users=("user", "nunique"))
""",
        result=Frame(
            ["events", "users"],
            [
                [
                    sum(e["type"] == kind for e in events),
                    len({e["user"] for e in events if e["type"] == kind}),
                ]
                for kind in ("click", "login", "view")
            ],
            labels=["click", "login", "view"],
        ),
    )


@formats("Turn the CSV into JSON lines for import, with the amount in cents.")
def write_json_lines(people: People) -> Case:
    rows = _rows(people, 127, 20)
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("orders.csv")
df["cents"] = (df["amount"] * 100).round().astype(int)
df.drop(columns="amount").to_json("orders.jsonl", orient="records", lines=True, force_ascii=False)
sum(1 for _ in open("orders.jsonl"))
""",
        result=20,
        written={
            "orders.jsonl": Text(
                "jsonl",
                [
                    {key: value for key, value in row.items() if key != "amount"}
                    | {"cents": round(row["amount"] * 100)}
                    for row in rows
                ],
            )
        },
    )


@formats("The workbook has one sheet a year. Total by year and city.")
def read_excel(people: People) -> Case:
    years = {"2024": _rows(people, 128, 24), "2025": _rows(people, 129, 30)}
    cities = ("Bristol", "Leeds", "York")
    return Case(
        {"orders.xlsx": Sheets("xlsx", {year: _grid(rows) for year, rows in years.items()})},
        """
import pandas as pd

sheets = pd.read_excel("orders.xlsx", sheet_name=None)
df = pd.concat([sheet.assign(year=name) for name, sheet in sheets.items()])
df.pivot_table(index="year", columns="city", values="amount", aggfunc="sum")
""",
        result=Frame(
            list(cities),
            [[sums(rows, "city", "amount")[city] for city in cities] for rows in years.values()],
            labels=["2024", "2025"],
        ),
    )


@formats("Write a workbook with a summary sheet and a sheet for each city.")
def write_excel(people: People) -> Case:
    rows = _rows(people, 130)
    total = sums(rows, "city", "amount")
    sheets = {"summary": [["city", "amount"], *([city, round(value, 2)] for city, value in total.items())]}
    for city in total:
        sheets[city] = _grid([row for row in rows if row["city"] == city])
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("orders.csv")
with pd.ExcelWriter("report.xlsx", engine="openpyxl") as writer:
    df.groupby("city", as_index=False)["amount"].sum().round(2).to_excel(writer, sheet_name="summary", index=False)
    for city, g in df.groupby("city"):
        g.to_excel(writer, sheet_name=city, index=False)
pd.ExcelFile("report.xlsx").sheet_names
""",
        result=["summary", "Bristol", "Leeds", "York"],
        written={"report.xlsx": Sheets("xlsx", sheets)},
    )


@formats("Fill in the total column of the workbook, keep the rest, make the header bold.")
def edit_excel(people: People) -> Case:
    rows = [["name", "price", "quantity", "total"]]
    rows += [[people[n].name, 2.5 + n, n + 1, None] for n in range(10)]
    after = [rows[0], *([name, price, count, price * count] for name, price, count, _ in rows[1:])]
    return Case(
        {"invoice.xlsx": Sheets("xlsx", {"Invoice": rows})},
        """
from openpyxl import load_workbook
from openpyxl.styles import Font

wb = load_workbook("invoice.xlsx")
ws = wb["Invoice"]
for cell in ws[1]:
    cell.font = Font(bold=True)
grand_total = 0
for row in ws.iter_rows(min_row=2):
    row[3].value = row[1].value * row[2].value
    grand_total += row[3].value
wb.save("invoice_filled.xlsx")
print("Grand total:", grand_total)
""",
        printed=[sum(row[3] for row in after[1:])],
        written={"invoice_filled.xlsx": Sheets("xlsx", {"Invoice": after})},
    )


@formats("Query the SQLite database: the three customers with the highest spending.")
def read_sqlite(people: People) -> Case:
    numbers = Numbers(132)
    customers = [{"id": n, "name": people[n].name} for n in range(12)]
    orders = [{"customer_id": numbers.integer(0, 11), "amount": numbers.integer(1, 500)} for _ in range(60)]
    spent = sums(orders, "customer_id", "amount")
    top = sorted(spent.items(), key=lambda each: (-each[1], people[each[0]].name))[:3]
    return Case(
        {"shop.db": _sqlite({"customers": customers, "orders": orders})},
        """
import sqlite3
import pandas as pd

con = sqlite3.connect("shop.db")
df = pd.read_sql_query('''
    SELECT c.name, SUM(o.amount) AS spent
    FROM orders o JOIN customers c ON c.id = o.customer_id
    GROUP BY c.name ORDER BY spent DESC, c.name LIMIT 3
''', con)
con.close()
df
""",
        result=Frame(["name", "spent"], [[people[n].name, value] for n, value in top]),
    )


@formats("Load the CSV into a SQLite database with an index on e-mail.")
def write_sqlite(people: People) -> Case:
    rows = _rows(people, 133, 30)
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import sqlite3
import pandas as pd

df = pd.read_csv("orders.csv")
with sqlite3.connect("orders.db") as con:
    df.to_sql("orders", con, if_exists="replace", index=False)
    con.execute("CREATE INDEX idx_email ON orders(email)")
    n = con.execute("SELECT COUNT(*) FROM orders").fetchone()[0]
con.close()
n
""",
        result=30,
        written={
            "orders.db": Database(
                "select id, name, email, city, amount from orders indexed by idx_email where email > '' order by id",
                [list(row.values()) for row in rows],
            )
        },
    )


@formats("The zip holds one CSV a branch. Which branch has the highest mean?")
def read_zip(people: People) -> Case:
    branches = {branch: _rows(people, 134 + n, 20) for n, branch in enumerate(("alpha", "beta", "gamma"))}
    means = {branch: mean(row["amount"] for row in rows) for branch, rows in branches.items()}
    return Case(
        {"branches.zip": _zip({f"branches/{name}.csv": csv_of(rows) for name, rows in branches.items()})},
        """
import zipfile
import pandas as pd

means = {}
with zipfile.ZipFile("branches.zip") as z:
    for name in z.namelist():
        if name.endswith(".csv"):
            with z.open(name) as f:
                means[name.split("/")[-1].removesuffix(".csv")] = pd.read_csv(f)["amount"].mean()
best = max(means, key=means.get)
print(best, round(means[best], 2))
means
""",
        result=means,
        printed=[max(means, key=means.__getitem__), round(max(means.values()), 2)],
    )


@formats("Split the table by city and pack the parts into one zip.")
def write_zip(people: People) -> Case:
    rows = _rows(people, 138)
    parts = {
        f"{city.lower()}.csv": Text("csv", [row for row in rows if row["city"] == city])
        for city in ("Bristol", "Leeds", "York")
    }
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import zipfile
import pandas as pd

df = pd.read_csv("orders.csv")
with zipfile.ZipFile("by_city.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for city, g in df.groupby("city"):
        z.writestr(f"{city.lower()}.csv", g.to_csv(index=False))
zipfile.ZipFile("by_city.zip").namelist()
""",
        result=list(parts),
        written={"by_city.zip": Archive(parts)},
    )


@formats("Read the gzipped CSV and write the mean amount by city as gzipped JSON.")
def gzipped(people: People) -> Case:
    rows = _rows(people, 139, 60)
    means = {
        city: round(mean(row["amount"] for row in rows if row["city"] == city), 3)
        for city in ("Bristol", "Leeds", "York")
    }
    return Case(
        {"orders.csv.gz": gzip.compress(csv_of(rows), mtime=0)},
        """
import gzip
import json
import pandas as pd

df = pd.read_csv("orders.csv.gz")
means = df.groupby("city")["amount"].mean().round(3).to_dict()
with gzip.open("means.json.gz", "wt", encoding="utf-8") as f:
    json.dump(means, f)
means
""",
        result=means,
        written={"means.json.gz": Text("json", means, packed="gzip")},
    )


@formats("Save the frame as feather with categories and read it back by pyarrow.")
def feather(people: People) -> Case:
    rows = _rows(people, 140, 25)
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import pandas as pd
import pyarrow.feather as feather

df = pd.read_csv("orders.csv", dtype={"city": "category"})
df.to_feather("orders.feather")
table = feather.read_table("orders.feather")
print(table.num_rows, table.column_names)
df["city"].cat.categories.tolist()
""",
        result=sorted({row["city"] for row in rows}),
        printed=[25, "id", "name", "email", "city", "amount"],
        written={"orders.feather": Sheets("feather", {"": _grid(rows)})},
    )


@formats("The bank's file has fixed columns, the contact list is XML. Sum the payments by contact.")
def fixed_and_xml(people: People) -> Case:
    numbers = Numbers(141)
    payments = [(f"K{n % 5}", numbers.integer(100, 99_999)) for n in range(25)]
    lines = [f"{'20250601'}{account:<6}{cents:>10}EUR" for account, cents in payments]
    contacts = "".join(
        f'<contact account="K{n}"><name>{people[n].name}</name><mail>{people[n].email}</mail></contact>'
        for n in range(5)
    )
    totals = {people[n].name: sum(cents for account, cents in payments if account == f"K{n}") / 100 for n in range(5)}
    return Case(
        {"payments.txt": "\n".join(lines).encode(), "contacts.xml": f"<contacts>{contacts}</contacts>".encode()},
        """
import pandas as pd
import xml.etree.ElementTree as ET

payments = pd.read_fwf(
    "payments.txt", widths=[8, 6, 10, 3], names=["date", "account", "cents", "currency"], dtype={"date": str}
)
root = ET.parse("contacts.xml").getroot()
names = {c.get("account"): c.findtext("name") for c in root.iter("contact")}
payments["name"] = payments["account"].map(names)
(payments.groupby("name")["cents"].sum() / 100).sort_index()
""",
        result=Labelled(dict(sorted(totals.items()))),
    )
