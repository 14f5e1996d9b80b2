"""Formats: parquet, feather, JSON, Excel, SQLite, archives, fixed widths, XML; read and written by each package."""

from __future__ import annotations

import gzip
from statistics import mean

from ..made_data import CITIES, People, csv_of, grid, orders, sqlite_of, sums, values_by, zip_of
from ..task import Archive, Case, Database, Frame, Group, Labelled, Sheets, Text

formats = Group("formats")


@formats
def polars_parquet(people: People) -> Case:
    """With polars, scan the parquet file and give the three largest orders."""
    rows = orders(people)
    top = sorted(rows, key=lambda row: (-row["amount"], row["id"]))[:3]
    return Case({"orders.parquet": Sheets("parquet", {"": grid(rows)})}, """
import polars as pl

lazy = pl.scan_parquet("orders.parquet").sort(["amount", "id"], descending=[True, False])
lazy.head(3).select("id", "name", "amount").collect()
""", result=Frame(["id", "name", "amount"], grid(top, "id", "name", "amount")[1:]))  # fmt: skip


@formats
def duckdb_parquet(people: People) -> Case:
    """Query the parquet file by SQL and export the summary to CSV."""
    rows = orders(people)
    by_city = values_by(rows, "city", "amount")
    return Case({"data/orders.parquet": Sheets("parquet", {"": grid(rows)})}, """
import duckdb

con = duckdb.connect()
con.execute('''
    COPY (
        SELECT city, COUNT(*) AS n, ROUND(AVG(amount), 4) AS mean
        FROM 'data/orders.parquet' GROUP BY city ORDER BY city
    ) TO 'summary.csv' (HEADER, DELIMITER ',')
''')
con.execute("SELECT COUNT(*) FROM 'data/orders.parquet'").fetchone()[0]
""", result=len(rows), written={
        "summary.csv": Text(
            "csv", [{"city": city, "n": len(each), "mean": round(mean(each), 4)} for city, each in by_city.items()]
        )
    })  # fmt: skip


@formats
def feather(people: People) -> Case:
    """Save the frame as feather with categories and read it back by pyarrow."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import pyarrow.feather as feather

df = pd.read_csv("orders.csv", dtype={"city": "category"})
df.to_feather("orders.feather")
table = feather.read_table("orders.feather")
print(table.num_rows, table.column_names)
df["city"].cat.categories.tolist()
""", result=list(CITIES), printed=[len(rows), *rows[0]],
        written={"orders.feather": Sheets("feather", {"": grid(rows)})})  # fmt: skip


@formats
def write_json_lines(people: People) -> Case:
    """Turn the CSV into JSON lines for import, with the amount in cents."""
    rows = orders(people)
    wanted = [
        {**{key: row[key] for key in row if key != "amount"}, "cents": round(row["amount"] * 100)} for row in rows
    ]
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd

df = pd.read_csv("orders.csv")
df["cents"] = (df["amount"] * 100).round().astype(int)
df.drop(columns="amount").to_json("orders.jsonl", orient="records", lines=True, force_ascii=False)
sum(1 for _ in open("orders.jsonl"))
""", result=len(rows), written={"orders.jsonl": Text("jsonl", wanted)})  # fmt: skip


@formats
def read_excel(people: People) -> Case:
    """The workbook has one sheet a year. Total by year and city."""
    rows = orders(people)
    years = {"2024": rows[:25], "2025": rows[25:]}
    return Case({"orders.xlsx": Sheets("xlsx", {year: grid(each) for year, each in years.items()})}, """
import pandas as pd

sheets = pd.read_excel("orders.xlsx", sheet_name=None)
df = pd.concat([sheet.assign(year=name) for name, sheet in sheets.items()])
df.pivot_table(index="year", columns="city", values="amount", aggfunc="sum")
""",
        result=Frame(CITIES, [[*sums(each, "city", "amount").values()] for each in years.values()], labels=list(years)))  # fmt: skip


@formats
def edit_excel(people: People) -> Case:
    """Fill in the total column of the workbook, keep the rest, make the header bold."""
    prices = [[people[n].name, 2.5 + n, n + 1] for n in range(10)]
    totals = [price * count for _, price, count in prices]
    header = ["name", "price", "quantity", "total"]
    after = [header, *([*row, total] for row, total in zip(prices, totals, strict=True))]
    return Case({"invoice.xlsx": Sheets("xlsx", {"Invoice": [header, *([*row, None] for row in prices)]})}, """
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
""", printed=[sum(totals)], written={"invoice_filled.xlsx": Sheets("xlsx", {"Invoice": after})})  # fmt: skip


@formats
def read_sqlite(people: People) -> Case:
    """Query the SQLite database: the three customers with the highest spending."""
    rows = orders(people)
    customers = [{"email": person.email, "name": person.name} for person in people]
    top = sorted(sums(rows, "name", "units").items(), key=lambda each: (-each[1], each[0]))[:3]
    return Case({"shop.db": sqlite_of({"customers": customers, "orders": rows})}, """
import sqlite3
import pandas as pd

con = sqlite3.connect("shop.db")
df = pd.read_sql_query('''
    SELECT c.name, SUM(o.units) AS units
    FROM orders o JOIN customers c ON c.email = o.email
    GROUP BY c.name ORDER BY units DESC, c.name LIMIT 3
''', con)
con.close()
df
""", result=Frame(["name", "units"], top))  # fmt: skip


@formats
def write_sqlite(people: People) -> Case:
    """Load the CSV into a SQLite database with an index on e-mail."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import sqlite3
import pandas as pd

df = pd.read_csv("orders.csv")
with sqlite3.connect("orders.db") as con:
    df.to_sql("orders", con, if_exists="replace", index=False)
    con.execute("CREATE INDEX idx_email ON orders(email)")
    n = con.execute("SELECT COUNT(*) FROM orders").fetchone()[0]
con.close()
n
""", result=len(rows), written={
        "orders.db": Database(
            "select * from orders indexed by idx_email where email > '' order by id", grid(rows)[1:]
        )
    })  # fmt: skip


@formats
def read_zip(people: People) -> Case:
    """The zip holds one CSV a city. Which city has the highest mean?"""
    rows = orders(people)
    parts = {f"cities/{city}.csv": csv_of([row for row in rows if row["city"] == city]) for city in CITIES}
    means = {city: mean(each) for city, each in values_by(rows, "city", "amount").items()}
    best = max(means, key=means.__getitem__)
    return Case({"cities.zip": zip_of(parts)}, """
import zipfile
import pandas as pd

means = {}
with zipfile.ZipFile("cities.zip") as z:
    for name in z.namelist():
        with z.open(name) as f:
            means[name.split("/")[-1].removesuffix(".csv")] = pd.read_csv(f)["amount"].mean()
best = max(means, key=means.get)
print(best, round(means[best], 2))
means
""", result=means, printed=[best, round(means[best], 2)])  # fmt: skip


@formats
def write_zip(people: People) -> Case:
    """Split the table by city and pack the parts into one zip."""
    rows = orders(people)
    parts = {f"{city.lower()}.csv": Text("csv", [row for row in rows if row["city"] == city]) for city in CITIES}
    return Case({"orders.csv": csv_of(rows)}, """
import zipfile
import pandas as pd

df = pd.read_csv("orders.csv")
with zipfile.ZipFile("by_city.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for city, g in df.groupby("city"):
        z.writestr(f"{city.lower()}.csv", g.to_csv(index=False))
zipfile.ZipFile("by_city.zip").namelist()
""", result=list(parts), written={"by_city.zip": Archive(parts)})  # fmt: skip


@formats
def gzipped(people: People) -> Case:
    """Read the gzipped CSV and write the mean amount by city as gzipped JSON."""
    rows = orders(people)
    means = {city: round(mean(each), 3) for city, each in values_by(rows, "city", "amount").items()}
    return Case({"orders.csv.gz": gzip.compress(csv_of(rows), mtime=0)}, """
import gzip
import json
import pandas as pd

df = pd.read_csv("orders.csv.gz")
means = df.groupby("city")["amount"].mean().round(3).to_dict()
with gzip.open("means.json.gz", "wt", encoding="utf-8") as f:
    json.dump(means, f)
means
""", result=means, written={"means.json.gz": Text("json", means, packed="gzip")})  # fmt: skip


@formats
def fixed_and_xml(people: People) -> Case:
    """The bank's file has fixed columns, the contact list is XML. Sum the payments by contact."""
    rows = orders(people)
    lines = [f"20250601{row['email'][:4]:<6}{row['units']:>10}EUR" for row in rows]
    contacts = "".join(f'<contact account="{each.email[:4]}"><name>{each.name}</name></contact>' for each in people)
    return Case(
        {"payments.txt": "\n".join(lines).encode(), "contacts.xml": f"<contacts>{contacts}</contacts>".encode()},
        """
import pandas as pd
import xml.etree.ElementTree as ET

names = ["date", "account", "cents", "currency"]
payments = pd.read_fwf("payments.txt", widths=[8, 6, 10, 3], names=names, dtype={"date": str})
root = ET.parse("contacts.xml").getroot()
contacts = {c.get("account"): c.findtext("name") for c in root.iter("contact")}
payments["name"] = payments["account"].map(contacts)
(payments.groupby("name")["cents"].sum() / 100).sort_index()
""",
        result=Labelled({name: cents / 100 for name, cents in sums(rows, "name", "units").items()}),
    )
