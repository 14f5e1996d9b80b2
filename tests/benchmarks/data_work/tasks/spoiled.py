"""Spoiled files: old and unknown encodings, too many cells, cut records, several separators, control characters."""

from __future__ import annotations

import json

from ..made_data import People, csv_of, orders, sums
from ..task import Case, Group, Text

spoiled = Group("encodings and broken rows")


@spoiled
def utf_16(people: People) -> Case:
    """Excel's 'Unicode text' export (UTF-16, tabs): units per city."""
    rows = [{**row, "city": ("Köln", "Málaga", "Århus")[row["id"] % 3]} for row in orders(people)]
    return Case({"unicode.txt": csv_of(rows, delimiter="\t", encoding="utf-16")}, """
import pandas as pd

df = pd.read_csv("unicode.txt", sep="\\t", encoding="utf-16")
df.groupby("city")["units"].sum().to_dict()
""", result=sums(rows, "city", "units"))  # fmt: skip


@spoiled
def shift_jis(people: People) -> Case:
    """A Japanese list in Shift-JIS: how many of each product, saved as UTF-8 JSON."""
    rows = [{"商品": ("りんご", "みかん", "ぶどう")[n % 3], "数": n + 1, "email": people[n].email} for n in range(12)]
    return Case({"list.csv": csv_of(rows, encoding="shift_jis")}, """
import json
import pandas as pd

df = pd.read_csv("list.csv", encoding="shift_jis")
totals = df.groupby("商品")["数"].sum().to_dict()
with open("totals.json", "w", encoding="utf-8") as f:
    json.dump(totals, f, ensure_ascii=False)
totals
""", result=sums(rows, "商品", "数"), written={"totals.json": Text("json", sums(rows, "商品", "数"))})  # fmt: skip


@spoiled
def unknown(people: People) -> Case:
    """I do not know the encodings of these files. Read them all and say which each has."""
    rows = [{**row, "city": "Århus"} for row in orders(people)]
    kinds = {"a.csv": "utf-8", "b.csv": "utf-16", "c.csv": "cp1252"}
    return Case({name: csv_of(rows[at::3], encoding=kind) for at, (name, kind) in enumerate(kinds.items())}, """
import pandas as pd
from pathlib import Path

found, total = {}, 0
for path in sorted(Path(".").glob("*.csv")):
    marked = path.read_bytes().startswith((b"\\xff\\xfe", b"\\xfe\\xff"))
    for encoding in ["utf-16"] if marked else ["utf-8", "cp1252"]:
        try:
            df = pd.read_csv(path, encoding=encoding)
            break
        except UnicodeDecodeError:
            continue
    found[path.name] = encoding
    total += int(df["units"].sum())
print(total)
found
""", result=kinds, printed=[sum(row["units"] for row in rows)])  # fmt: skip


@spoiled
def for_excel(people: People) -> Case:
    """Save the table so that Excel opens it with the right letters."""
    rows = [{**row, "city": "Köln"} for row in orders(people)]
    return Case({"table.csv": csv_of(rows)}, """
import pandas as pd

df = pd.read_csv("table.csv")
df.to_csv("for_excel.csv", index=False, sep=";", encoding="utf-8-sig")
open("for_excel.csv", "rb").read(3).hex()
""", result="efbbbf", written={"for_excel.csv": Text("csv", rows, delimiter=";", encoding="utf-8-sig")})  # fmt: skip


@spoiled
def too_many_cells(people: People) -> Case:
    """Some lines have too many cells. Skip them, say how many, and total the rest."""
    rows = [{"id": n, "name": people[n].name, "amount": f"{n * 2},more" if n % 9 == 4 else n * 2} for n in range(50)]
    kept = [row["id"] * 2 for row in rows if row["id"] % 9 != 4]
    return Case({"broken.csv": csv_of(rows).replace(b'"', b"")}, """
import pandas as pd

bad = []
df = pd.read_csv("broken.csv", engine="python", on_bad_lines=lambda row: bad.append(row))
print(f"{len(bad)} bad lines skipped, {len(df)} rows read")
df["amount"].sum()
""", result=sum(kept), printed=[50 - len(kept), len(kept)])  # fmt: skip


@spoiled
def cut_json_lines(people: People) -> Case:
    """The log of JSON lines was cut off and has some garbage. Save the good records, count the bad."""
    records = [{"n": n, "user": people[n].email, "ok": n % 3 == 0} for n in range(40)]
    lines = [json.dumps(record) for record in records]
    lines[7], lines[21], lines[39] = "<<< disk full >>>", lines[21][:15], lines[39][:-4]
    good = [record for record in records if record["n"] not in (7, 21, 39)]
    return Case({"app.jsonl": "\n".join(lines).encode()}, """
import json

good, bad = [], []
with open("app.jsonl", encoding="utf-8") as f:
    for number, line in enumerate(f, 1):
        try:
            good.append(json.loads(line))
        except json.JSONDecodeError:
            bad.append(number)
with open("app_clean.jsonl", "w", encoding="utf-8") as f:
    for record in good:
        f.write(json.dumps(record) + "\\n")
print("bad lines:", bad)
sum(record["ok"] for record in good)
""", result=sum(bool(record["ok"]) for record in good), printed=[8, 22, 40],
        written={"app_clean.jsonl": Text("jsonl", good)})  # fmt: skip


@spoiled
def mixed_separators(people: People) -> Case:
    """The separators differ from file to file. Read all three and total the units."""
    rows = [{"name": row["name"], "units": row["units"]} for row in orders(people)]
    return Case({f"part{at}.csv": csv_of(rows[at::3], delimiter=mark) for at, mark in enumerate(",;|")}, """
import csv
import pandas as pd

total, used = 0, {}
for i in range(3):
    with open(f"part{i}.csv", newline="") as f:
        dialect = csv.Sniffer().sniff(f.read(500), delimiters=",;|")
    used[f"part{i}.csv"] = dialect.delimiter
    total += int(pd.read_csv(f"part{i}.csv", sep=dialect.delimiter)["units"].sum())
print(used)
total
""", result=sum(row["units"] for row in rows),
        printed=["part0.csv", ",", "part1.csv", ";", "part2.csv", "|"])  # fmt: skip


@spoiled
def control_characters(people: People) -> Case:
    """Numbers and text are mixed up in one column, some cells hold control characters. Sum what is a number."""
    cells = ["12", " 7 ", "1\u00a0250", "n.a.", "\u200b30", "5\t", "-", "1e2"]
    return Case({"mixed.csv": csv_of([{"name": people[n].name, "value": cell} for n, cell in enumerate(cells)])}, r"""
import pandas as pd

df = pd.read_csv("mixed.csv", dtype=str)
cleaned = df["value"].str.replace(r"[\s\u200b\u00a0]", "", regex=True)
df["number"] = pd.to_numeric(cleaned, errors="coerce")
print(df[["value", "number"]].to_dict("list")["number"])
df["number"].sum()
""", result=12 + 7 + 1250 + 30 + 5 + 100, printed=[12, 7, 1250, 30, 5, 100])  # fmt: skip
