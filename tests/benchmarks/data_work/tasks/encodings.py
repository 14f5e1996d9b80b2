"""Encodings: old ones, marks at the beginning, the same letters in two forms; read, recognized and written."""

from __future__ import annotations

import unicodedata
from typing import Any

from ..made_data import Numbers, People, csv_of, sums
from ..task import Case, Frame, Group, Labelled, Text

encodings = Group("encodings")
CITIES = ("Köln", "Málaga", "Århus")


def _rows(people: People, seed: int) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [{"name": people.of(n).name, "city": CITIES[n % 3], "amount": numbers.integer(1, 100)} for n in range(24)]


@encodings("The file is Latin-1. Amount by city, saved as UTF-8.")
def latin_1(people: People) -> Case:
    rows = _rows(people, 150)
    return Case(
        {"old.csv": csv_of(rows, encoding="latin-1")},
        """
import pandas as pd

df = pd.read_csv("old.csv", encoding="latin-1")
df.to_csv("new.csv", index=False, encoding="utf-8")
df.groupby("city")["amount"].sum()
""",
        result=Labelled(sums(rows, "city", "amount")),
        written={"new.csv": Text("csv", rows)},
    )


@encodings("Prices with euro signs from Windows: sum them.")
def windows_1252(people: People) -> Case:
    lines = ["artikel;preis;käufer"] + [f"Größe {n};{n},50 €;{people[n].name}" for n in range(1, 10)]
    return Case(
        {"preise.csv": "\r\n".join(lines).encode("cp1252")},
        """
import pandas as pd

df = pd.read_csv("preise.csv", sep=";", encoding="cp1252")
df["preis"] = df["preis"].str.replace(" €", "").str.replace(",", ".").astype(float)
print(df.columns.tolist())
df["preis"].sum()
""",
        result=sum(n + 0.5 for n in range(1, 10)),
        printed=["artikel", "preis", "käufer"],
    )


@encodings("The first column has a strange name. Fix it and list the columns.")
def byte_order_mark(people: People) -> Case:
    rows = _rows(people, 152)
    return Case(
        {"bom.csv": b"\xef\xbb\xbf" + csv_of(rows)},
        """
import csv

with open("bom.csv", encoding="utf-8-sig", newline="") as f:
    reader = csv.DictReader(f)
    columns = reader.fieldnames
    total = sum(int(row["amount"]) for row in reader)
result = {"columns": columns, "total": total}
""",
        result={"columns": ["name", "city", "amount"], "total": sum(row["amount"] for row in rows)},
    )


@encodings("Excel's 'Unicode text' export (UTF-16, tabs): rows per city.")
def utf_16(people: People) -> Case:
    rows = _rows(people, 153)
    return Case(
        {"unicode.txt": csv_of(rows, delimiter="\t", encoding="utf-16")},
        """
import pandas as pd

df = pd.read_csv("unicode.txt", sep="\\t", encoding="utf-16")
df["city"].value_counts().to_dict()
""",
        result=dict.fromkeys(CITIES, 8),
    )


@encodings("A Japanese list in Shift-JIS: how many of each product, saved as UTF-8 JSON.")
def shift_jis(people: People) -> Case:
    products = ("りんご", "みかん", "ぶどう")
    rows = [{"商品": products[n % 3], "数": n + 1, "email": people[n].email} for n in range(12)]
    total = {product: sum(row["数"] for row in rows if row["商品"] == product) for product in products}
    return Case(
        {"list.csv": csv_of(rows, encoding="shift_jis")},
        """
import json
import pandas as pd

df = pd.read_csv("list.csv", encoding="shift_jis")
totals = df.groupby("商品")["数"].sum().to_dict()
with open("totals.json", "w", encoding="utf-8") as f:
    json.dump(totals, f, ensure_ascii=False)
totals
""",
        result=total,
        written={"totals.json": Text("json", total)},
    )


@encodings("I do not know the encodings of these files. Read them all and say which each has.")
def unknown(people: People) -> Case:
    rows = _rows(people, 155)
    kinds = {"a.csv": "utf-8", "b.csv": "utf-16", "c.csv": "cp1252"}
    return Case(
        {name: csv_of(rows[at * 8 : at * 8 + 8], encoding=kind) for at, (name, kind) in enumerate(kinds.items())},
        """
import pandas as pd
from pathlib import Path

found, total = {}, 0
for path in sorted(Path(".").glob("*.csv")):
    raw = path.read_bytes()
    if raw.startswith((b"\\xff\\xfe", b"\\xfe\\xff")):
        candidates = ["utf-16"]
    else:
        candidates = ["utf-8", "cp1252"]
    for encoding in candidates:
        try:
            df = pd.read_csv(path, encoding=encoding)
            break
        except UnicodeDecodeError:
            continue
    found[path.name] = encoding
    total += int(df["amount"].sum())
print(total)
found
""",
        result=kinds,
        printed=[sum(row["amount"] for row in rows)],
    )


@encodings("Save the table so that Excel opens it with the right letters.")
def for_excel(people: People) -> Case:
    rows = _rows(people, 156)
    return Case(
        {"table.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("table.csv")
df.to_csv("for_excel.csv", index=False, sep=";", encoding="utf-8-sig")
open("for_excel.csv", "rb").read(3).hex()
""",
        result="efbbbf",
        written={"for_excel.csv": Text("csv", rows, delimiter=";", encoding="utf-8-sig")},
    )


@encodings("The join of the two lists finds almost nothing, though the cities look the same. Fix it.")
def two_normal_forms(people: People) -> Case:
    rows = _rows(people, 157)
    left = [{**row, "city": unicodedata.normalize("NFD", row["city"])} for row in rows]
    right = [{"city": city, "country": country} for city, country in zip(CITIES, ("DE", "ES", "DK"), strict=True)]
    by_country = {
        country: sum(row["amount"] for row in rows if row["city"] == city)
        for city, country in zip(CITIES, ("DE", "ES", "DK"), strict=True)
    }
    return Case(
        {"sales.csv": csv_of(left), "cities.csv": csv_of(right)},
        """
import pandas as pd

sales = pd.read_csv("sales.csv")
cities = pd.read_csv("cities.csv")
print("before:", len(sales.merge(cities, on="city")))
for df in (sales, cities):
    df["city"] = df["city"].str.normalize("NFC")
merged = sales.merge(cities, on="city")
print("after:", len(merged))
merged.groupby("country", as_index=False)["amount"].sum()
""",
        result=Frame(["country", "amount"], [[country, by_country[country]] for country in sorted(by_country)]),
        printed=[0, 24],
    )
