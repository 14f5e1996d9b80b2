"""Broken rows: too many cells, lines within cells, half a record, headers in between, and totals at the end."""

from __future__ import annotations

import json

from ..made_data import Numbers, People, csv_of, sums
from ..task import Case, Frame, Group, Labelled, Text

broken = Group("broken rows")


@broken("Some lines have too many cells. Skip them, say how many, and total the rest.")
def too_many_cells(people: People) -> Case:
    lines = ["id,name,amount"]
    lines += [f"{n},{people.of(n).name},{n * 2}" + (",extra,cells" if n % 9 == 4 else "") for n in range(50)]
    kept = [n for n in range(50) if n % 9 != 4]
    return Case(
        {"broken.csv": "\n".join(lines).encode()},
        """
import pandas as pd

bad = []
df = pd.read_csv("broken.csv", engine="python", on_bad_lines=lambda row: bad.append(row))
print(f"{len(bad)} bad lines skipped, {len(df)} rows read")
df["amount"].sum()
""",
        result=sum(n * 2 for n in kept),
        printed=[50 - len(kept), len(kept)],
    )


@broken("Comments run over several lines and hold quotes and commas. How long is each on average by rating?")
def lines_in_cells(people: People) -> Case:
    numbers = Numbers(161)
    rows = [
        {
            "name": people.of(n).name,
            "rating": numbers.integer(1, 3),
            "comment": 'Good, but "slow".\nWould buy again' + "!" * (n % 7),
        }
        for n in range(30)
    ]
    length = {
        rating: sum(len(row["comment"]) for row in rows if row["rating"] == rating)
        / sum(row["rating"] == rating for row in rows)
        for rating in (1, 2, 3)
    }
    return Case(
        {"reviews.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("reviews.csv")
assert len(df) == 30, len(df)
df["length"] = df["comment"].str.len()
df.groupby("rating")["length"].mean()
""",
        result=Labelled(length),
    )


@broken("The log of JSON lines was cut off and has some garbage. Save the good records, count the bad.")
def cut_json_lines(people: People) -> Case:
    records = [{"n": n, "user": people.of(n).email, "ok": n % 3 == 0} for n in range(40)]
    lines = [json.dumps(record) for record in records]
    lines[7] = "<<< disk full >>>"
    lines[21] = lines[21][:15]
    lines[39] = lines[39][:-4]
    good = [record for n, record in enumerate(records) if n not in (7, 21, 39)]
    return Case(
        {"app.jsonl": "\n".join(lines).encode()},
        """
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
""",
        result=sum(record["ok"] for record in good),
        printed=[8, 22, 40],
        written={"app_clean.jsonl": Text("jsonl", good)},
    )


@broken("The separators differ from file to file. Read all three and total the amounts.")
def mixed_separators(people: People) -> Case:
    numbers = Numbers(163)
    rows = [{"name": people.of(n).name, "amount": numbers.integer(1, 100)} for n in range(30)]
    files = {f"part{at + 1}.csv": csv_of(rows[at * 10 : at * 10 + 10], delimiter=mark) for at, mark in enumerate(",;|")}
    return Case(
        files,
        """
import csv
import pandas as pd

total = 0
used = {}
for i in (1, 2, 3):
    path = f"part{i}.csv"
    with open(path, newline="") as f:
        dialect = csv.Sniffer().sniff(f.read(500), delimiters=",;|")
    df = pd.read_csv(path, sep=dialect.delimiter)
    used[path] = dialect.delimiter
    total += int(df["amount"].sum())
print(used)
total
""",
        result=sum(row["amount"] for row in rows),
        printed=["part1.csv", ",", "part2.csv", ";", "part3.csv", "|"],
    )


@broken("There is a title above the header and a total below the data. Amount by department.")
def title_and_total(people: People) -> Case:
    numbers = Numbers(164)
    rows = [
        {"department": ("hr", "it")[n % 2], "employee": people.of(n).name, "amount": numbers.integer(10, 99)}
        for n in range(20)
    ]
    total = sum(row["amount"] for row in rows)
    content = b"Expenses 2025\nCreated by accounting\n\n" + csv_of(rows) + f"TOTAL,,{total}\n".encode()
    return Case(
        {"expenses.csv": content},
        """
import pandas as pd

df = pd.read_csv("expenses.csv", skiprows=3)
stated = df.loc[df["department"] == "TOTAL", "amount"].iloc[0]
df = df[df["department"] != "TOTAL"]
assert df["amount"].sum() == stated
print("Total checked:", stated)
df.groupby("department")["amount"].agg(["count", "sum", "max"])
""",
        result=Frame(
            ["count", "sum", "max"],
            [
                [
                    10,
                    sums(rows, "department", "amount")[each],
                    max(r["amount"] for r in rows if r["department"] == each),
                ]
                for each in ("hr", "it")
            ],
            labels=["hr", "it"],
        ),
        printed=[total],
    )


@broken("Several exports were pasted together, each with its header. Clean that up.")
def repeated_headers(people: People) -> Case:
    rows = [{"id": n, "email": people.of(n).email, "points": n % 6} for n in range(36)]
    content = b"".join(csv_of(rows[at : at + 12]) for at in (0, 12, 24))
    return Case(
        {"pasted.csv": content},
        """
import pandas as pd

df = pd.read_csv("pasted.csv", dtype=str)
df = df[df["id"] != "id"].astype({"id": int, "points": int}).reset_index(drop=True)
df.to_csv("pasted_clean.csv", index=False)
df["points"].describe()[["count", "mean", "min", "max"]]
""",
        result=Labelled({"count": 36, "mean": 2.5, "min": 0, "max": 5}),
        written={"pasted_clean.csv": Text("csv", rows)},
    )


@broken("Some rows are too short. Complete them with empty cells and report the line numbers.")
def too_short(people: People) -> Case:
    lines, whole, short = ["name,email,city"], [], []
    for n in range(15):
        cells = [people.of(n).name, people.of(n).email, "York"][: 2 if n % 4 == 3 else 3]
        lines.append(",".join(cells))
        whole.append(dict(zip(("name", "email", "city"), [*cells, ""], strict=False)))
        if len(cells) < 3:
            short.append(n + 2)
    return Case(
        {"short.csv": "\n".join(lines).encode()},
        """
import csv

short = []
with open("short.csv", newline="") as src, open("complete.csv", "w", newline="") as dst:
    reader, writer = csv.reader(src), csv.writer(dst)
    header = next(reader)
    writer.writerow(header)
    for row in reader:
        if len(row) < len(header):
            short.append(reader.line_num)
            row += [""] * (len(header) - len(row))
        writer.writerow(row)
short
""",
        result=short,
        written={"complete.csv": Text("csv", whole)},
    )


@broken("Numbers and text are mixed up in one column, some cells hold control characters. Sum what is a number.")
def control_characters(people: People) -> Case:
    cells = ["12", " 7 ", "1\u00a0250", "n.a.", "\u200b30", "5\t", "-", "1e2"]
    rows = [{"name": people[n].name, "value": cell} for n, cell in enumerate(cells)]
    return Case(
        {"mixed.csv": csv_of(rows)},
        r"""
import pandas as pd

df = pd.read_csv("mixed.csv", dtype=str)
cleaned = df["value"].str.replace(r"[\s\u200b\u00a0]", "", regex=True)
df["number"] = pd.to_numeric(cleaned, errors="coerce")
print(df[["value", "number"]].to_dict("list")["number"])
df["number"].sum()
""",
        result=12 + 7 + 1250 + 30 + 5 + 100,
        printed=[12, 7, 1250, 30, 5, 100],
    )
