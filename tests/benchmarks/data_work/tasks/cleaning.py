"""Cleaning: duplicates, missing values, amounts and dates as people type them, names and codes in one form."""

from __future__ import annotations

from typing import Any

from ..made_data import Numbers, People, csv_of, median, quantile
from ..task import Case, Frame, Group, Labelled, Text

clean = Group("clean")


@clean("Drop duplicate customers (same e-mail in any spelling), tidy the names, save as customers_clean.csv.")
def duplicates(people: People) -> Case:
    rows = []
    for n in range(30):
        who = people.of(n)
        name = (who.name, f"  {who.name.upper()} ", who.name.lower())[n % 3]
        rows.append({"id": n + 1, "name": name, "email": who.email.upper() if n % 2 else f" {who.email}"})
    return Case(
        {"customers.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("customers.csv")
before = len(df)
df["name"] = df["name"].str.strip().str.title()
df["email"] = df["email"].str.strip().str.lower()
df = df.drop_duplicates(subset="email", keep="first").reset_index(drop=True)
df.to_csv("customers_clean.csv", index=False)
print(f"Removed {before - len(df)} duplicates, {len(df)} customers left")
""",
        printed=[18, 12],
        written={
            "customers_clean.csv": Text(
                "csv", [{"id": n + 1, "name": people[n].name, "email": people[n].email} for n in range(12)]
            )
        },
    )


@clean("Fill missing salaries with the median of their department.")
def missing_by_group(people: People) -> Case:
    numbers = Numbers(2)
    rows = [
        {
            "name": people.of(n).name,
            "department": ("sales", "support", "research")[n % 3],
            "salary": None if n % 5 == 0 else numbers.integer(30, 90) * 1000,
        }
        for n in range(36)
    ]
    medians = {
        each: median(row["salary"] for row in rows if row["department"] == each and row["salary"] is not None)
        for each in ("research", "sales", "support")
    }
    filled = [row["salary"] if row["salary"] is not None else medians[row["department"]] for row in rows]
    means = {
        each: sum(pay for row, pay in zip(rows, filled, strict=True) if row["department"] == each) / 12
        for each in medians
    }
    return Case(
        {"staff.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("staff.csv")
print("missing before:", df["salary"].isna().sum())
df["salary"] = df["salary"].fillna(df.groupby("department")["salary"].transform("median"))
print("missing after:", df["salary"].isna().sum())
df.groupby("department")["salary"].mean()
""",
        result=Labelled(means),
        printed=[8, 0],
    )


@clean("The amounts are typed by hand. What is the total by currency?")
def typed_amounts(people: People) -> Case:
    typed = ["$1,234.50", "EUR 99", "€ 1,000.25", "usd 12", "$ 7.5", "1,250 EUR", "USD 3,000.00", "€45.75"]
    rows = [{"payer": people.of(n).name, "email": people.of(n).email, "amount": text} for n, text in enumerate(typed)]
    return Case(
        {"payments.csv": csv_of(rows)},
        r"""
import pandas as pd
import re

df = pd.read_csv("payments.csv")

def parse(text):
    value = float(re.sub(r"[^\d.]", "", text))
    currency = "EUR" if "€" in text or "EUR" in text.upper() else "USD"
    return pd.Series({"currency": currency, "value": value})

df = df.join(df["amount"].apply(parse))
totals = df.groupby("currency")["value"].sum().round(2)
print(totals)
result = totals.to_dict()
""",
        result={"EUR": 2395.0, "USD": 4254.0},
        printed=[2395.0, 4254.0],
    )


@clean("The dates come in three spellings. Give them all as ISO dates and say how many signed up each month.")
def spelled_dates(people: People) -> Case:
    days = [(2025, 1 + n * 5 % 12, 1 + n * 7 % 28) for n in range(24)]
    months = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
    spelled = [
        (f"{y}-{m:02}-{d:02}", f"{d:02}.{m:02}.{y}", f"{months[m - 1]} {d}, {y}")[n % 3]
        for n, (y, m, d) in enumerate(days)
    ]
    rows = [{"name": people.of(n).name, "signed_up": text} for n, text in enumerate(spelled)]
    count = {f"2025-{m:02}": sum(day[1] == m for day in days) for m in sorted({day[1] for day in days})}
    return Case(
        {"signups.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("signups.csv")

def parse(value):
    for fmt in ("%Y-%m-%d", "%d.%m.%Y", "%B %d, %Y"):
        parsed = pd.to_datetime(value, format=fmt, errors="coerce")
        if not pd.isna(parsed):
            return parsed
    return pd.NaT

df["signed_up"] = df["signed_up"].apply(parse)
assert df["signed_up"].notna().all()
df.to_csv("signups_iso.csv", index=False, date_format="%Y-%m-%d")
counts = df.groupby(df["signed_up"].dt.to_period("M")).size()
counts.index = counts.index.astype(str)
counts
""",
        result=Labelled(count),
        written={
            "signups_iso.csv": Text(
                "csv",
                [{"name": people.of(n).name, "signed_up": f"{y}-{m:02}-{d:02}"} for n, (y, m, d) in enumerate(days)],
            )
        },
    )


@clean("Remove outliers of order value by the 1.5 IQR rule. How many, and what are the bounds?")
def outliers(people: People) -> Case:
    numbers = Numbers(5)
    values = [numbers.real(20, 80) for _ in range(97)] + [400.0, 950.5, -300.0]
    rows = [{"order": n, "customer": people.of(n).email, "value": value} for n, value in enumerate(values)]
    low, high = quantile(values, 0.25), quantile(values, 0.75)
    bounds = (low - 1.5 * (high - low), high + 1.5 * (high - low))
    kept = [value for value in values if bounds[0] <= value <= bounds[1]]
    return Case(
        {"orders.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("orders.csv")
q1, q3 = df["value"].quantile([0.25, 0.75])
iqr = q3 - q1
lower, upper = q1 - 1.5 * iqr, q3 + 1.5 * iqr
mask = df["value"].between(lower, upper)
print(f"Bounds: {lower:.2f} to {upper:.2f}")
print(f"Outliers removed: {(~mask).sum()}")
{"kept": int(mask.sum()), "mean": df.loc[mask, "value"].mean()}
""",
        result={"kept": len(kept), "mean": sum(kept) / len(kept)},
        printed=[*bounds, 100 - len(kept)],
    )


@clean("Bring the phone numbers into one form and list who has no valid one.")
def phone_numbers(people: People) -> Case:
    spelled = []
    for n in range(12):
        digits = people[n].phone.replace("+44 ", "").replace(" ", "")
        spelled.append((f"0{digits}", f"+44 {digits[:2]} {digits[2:]}", f"0044-{digits}", "unknown", digits[:6])[n % 5])
    rows = [{"name": people[n].name, "phone": text} for n, text in enumerate(spelled)]
    invalid = [people[n].name for n in range(12) if n % 5 in (3, 4)]
    return Case(
        {"contacts.csv": csv_of(rows)},
        r"""
import pandas as pd

df = pd.read_csv("contacts.csv", dtype=str)
digits = df["phone"].str.replace(r"\D", "", regex=True)
digits = digits.str.replace(r"^(0044|44|0)", "", regex=True)
df["e164"] = ("+44" + digits).where(digits.str.len() == 10)
df.to_csv("contacts_clean.csv", index=False)
print("valid:", df["e164"].notna().sum())
df.loc[df["e164"].isna(), "name"].tolist()
""",
        result=invalid,
        printed=[12 - len(invalid)],
        written={
            "contacts_clean.csv": Text(
                "csv",
                [
                    {
                        "name": people[n].name,
                        "phone": spelled[n],
                        "e164": "" if n % 5 in (3, 4) else people[n].phone.replace(" ", ""),
                    }
                    for n in range(12)
                ],
            )
        },
    )


@clean("The consent column is a mess of yes, Y, true, 1 and so on. How many agreed, declined, or did not say?")
def booleans(people: People) -> Case:
    said = ["yes", "Y", "TRUE", "1", "no", "N", "false", "0", "", "maybe", "Yes ", " NO"]
    rows = [{"name": people[n].name, "email": people[n].email, "consent": text} for n, text in enumerate(said)]
    return Case(
        {"consent.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("consent.csv", dtype=str)
mapping = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
df["consent"] = df["consent"].str.strip().str.lower().map(mapping).astype("boolean")
result = {
    "agreed": int(df["consent"].sum()),
    "declined": int((~df["consent"]).sum()),
    "unknown": int(df["consent"].isna().sum()),
}
""",
        result={"agreed": 5, "declined": 5, "unknown": 2},
    )


@clean("Split the full names into first and last name and save the table sorted by last name.")
def split_names(people: People) -> Case:
    rows = [{"full_name": people[n].name, "email": people[n].email} for n in range(12)]
    split = sorted(
        (
            {"last_name": person.name.split()[1], "first_name": person.name.split()[0], "email": person.email}
            for person in (people[n] for n in range(12))
        ),
        key=lambda row: (row["last_name"], row["first_name"]),
    )
    return Case(
        {"people.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("people.csv")
df[["first_name", "last_name"]] = df["full_name"].str.split(" ", n=1, expand=True)
out = df[["last_name", "first_name", "email"]].sort_values(["last_name", "first_name"])
out.to_csv("people_sorted.csv", index=False)
out.head(3)
""",
        result=Frame(
            ["last_name", "first_name", "email"],
            [list(row.values()) for row in split[:3]],
        ),
        written={"people_sorted.csv": Text("csv", split)},
    )


@clean("Rename the columns to snake_case and tell me the columns and their types.")
def column_names(people: People) -> Case:
    rows = [
        {"Customer Name": people[n].name, " Order-ID": 100 + n, "Total (EUR)": n * 2.5, "Is Paid?": n % 2 == 0}
        for n in range(10)
    ]
    return Case(
        {"export.csv": csv_of(rows)},
        r"""
import pandas as pd

df = pd.read_csv("export.csv")
df.columns = (
    df.columns.str.strip().str.lower().str.replace(r"[^a-z0-9]+", "_", regex=True).str.strip("_")
)
print(df.head(2))
{column: df[column].dtype.kind for column in df.columns if column != "customer_name"} | {"first": df.columns[0]}
""",
        result={"order_id": "i", "total_eur": "f", "is_paid": "b", "first": "customer_name"},
        printed=["order_id", "total_eur", "is_paid", 100, 0.0, 101, 2.5],
    )


@clean("How many values are missing in each column?")
def missing_report(people: People) -> Case:
    rows = [
        {
            "name": people.of(n).name,
            "email": people.of(n).email if n % 4 else None,
            "age": 20 + n if n % 3 else None,
            "city": ("Leeds", "Bristol", None)[n % 3],
            "score": n / 2,
        }
        for n in range(60)
    ]
    return Case(
        {"survey.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("survey.csv")
missing = df.isna().sum().sort_values(ascending=False, kind="stable")
missing[missing > 0]
""",
        result=Labelled({"age": 20, "city": 20, "email": 15}),
    )


@clean("This export has German number formats. What is the total revenue and the best month?")
def german_numbers(people: People) -> Case:
    values = [(n * 7919 % 500_000) + 0.25 * (n % 4) for n in range(1, 13)]

    def german(value: float) -> str:
        return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")

    lines = ["monat;umsatz;verantwortlich"]
    lines += [f"2025-{n:02};{german(value)};{people[n - 1].name}" for n, value in enumerate(values, 1)]
    best = max(range(12), key=values.__getitem__)
    return Case(
        {"umsatz.csv": "\n".join(lines).encode()},
        """
import pandas as pd

df = pd.read_csv("umsatz.csv", sep=";", decimal=",", thousands=".")
total = df["umsatz"].sum()
best = df.loc[df["umsatz"].idxmax()]
print(f"Total revenue: {total:,.2f}")
print(f"Best month: {best['monat']} ({best['umsatz']:,.2f}), {best['verantwortlich']}")
""",
        printed=[sum(values), f"2025-{best + 1:02}", values[best], people[best].name],
    )


@clean("With polars: drop rows without amount, make the ids unique, and sum by category.")
def polars_clean(people: People) -> Case:
    rows = [
        {
            "id": n // 2,
            "name": people.of(n).name,
            "category": ("a", "b", "c")[n // 2 % 3],
            "amount": None if n % 7 == 0 else n * 1.5,
        }
        for n in range(60)
    ]
    kept: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row["amount"] is not None:
            kept.setdefault(row["id"], row)
    total = {each: sum(row["amount"] for row in kept.values() if row["category"] == each) for each in "abc"}
    return Case(
        {"items.csv": csv_of(rows)},
        """
import polars as pl

df = (
    pl.read_csv("items.csv")
    .drop_nulls("amount")
    .unique(subset="id", keep="first", maintain_order=True)
)
print(df.shape)
df.group_by("category").agg(pl.col("amount").sum().alias("total")).sort("category")
""",
        result=Frame(["category", "total"], [[each, value] for each, value in total.items()]),
        printed=[len(kept), 4],
    )


@clean("Pull the order number and the city out of the free-text notes.")
def extract(people: People) -> Case:
    cities = ("Leeds", "Bristol", "York")
    rows = [
        {
            "agent": people.of(n).name,
            "note": f"Customer called about order #{4000 + n * 3}, ships to {cities[n % 3]} next week."
            if n % 4
            else "No answer, try again.",
        }
        for n in range(20)
    ]
    found = [(4000 + n * 3, cities[n % 3]) for n in range(20) if n % 4]
    return Case(
        {"notes.csv": csv_of(rows)},
        r"""
import pandas as pd

df = pd.read_csv("notes.csv")
parts = df["note"].str.extract(r"#(?P<order>\d+), ships to (?P<city>\w+)")
df = df.join(parts).dropna(subset=["order"])
df["order"] = df["order"].astype(int)
df[["agent", "order", "city"]].to_csv("orders_found.csv", index=False)
df["city"].value_counts().sort_index()
""",
        result=Labelled({city: sum(each[1] == city for each in found) for city in sorted(cities)}),
        written={
            "orders_found.csv": Text(
                "csv",
                [
                    {"agent": people.of(n).name, "order": 4000 + n * 3, "city": cities[n % 3]}
                    for n in range(20)
                    if n % 4
                ],
            )
        },
    )


@clean("Convert the sensor values to numbers; what cannot be converted, list with its line.")
def coerce(people: People) -> Case:
    typed = ["12.5", "13", "n/a", "12,9", "14.25", "", "error", "1e1", "13.75", "--"]
    rows = [{"operator": people[n].name, "value": text} for n, text in enumerate(typed)]
    return Case(
        {"readings.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("readings.csv", dtype=str, keep_default_na=False)
df["number"] = pd.to_numeric(df["value"], errors="coerce")
bad = df[df["number"].isna()]
for i, row in bad.iterrows():
    print(f"line {i + 2}: {row['value']!r}")
df["number"].mean()
""",
        result=(12.5 + 13 + 14.25 + 10 + 13.75) / 5,
        printed=[4, "n/a", 5, "12,9", 7, 8, "error", 11, "--"],
    )
