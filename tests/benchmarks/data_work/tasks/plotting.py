"""Plots: what is drawn (title, labels, the numbers of lines and bars), and where it goes: shown, or saved."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from ..made_data import Numbers, People, csv_of, mean, median, sums
from ..task import Case, Drawn, Group, Labelled, Picture

plots = Group("plots")
MONTHS = [f"2025-{month:02}" for month in range(1, 13)]


def _revenue(people: People, seed: int) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [
        {"month": month, "revenue": numbers.integer(50, 150), "costs": numbers.integer(30, 90), "by": people[n].name}
        for n, month in enumerate(MONTHS)
    ]


@plots("Plot revenue by month as a line and save it as revenue.png.")
def line(people: People) -> Case:
    rows = _revenue(people, 100)
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("revenue.csv")
plt.figure(figsize=(8, 4))
plt.plot(df["month"], df["revenue"], marker="o")
plt.title("Revenue by month")
plt.xlabel("Month")
plt.ylabel("Revenue (k EUR)")
plt.xticks(rotation=45)
plt.tight_layout()
plt.savefig("revenue.png")
plt.close()
print("saved")
""",
        printed=["saved"],
        written={"revenue.png": Picture(size=(800, 400))},
        drawn=[Drawn("Revenue by month", "Month", "Revenue (k EUR)", lines=[[row["revenue"] for row in rows]])],
    )


@plots("Show a bar chart of units by region.")
def bars(people: People) -> Case:
    numbers = Numbers(101)
    rows = [
        {"region": ("east", "north", "west")[n % 3], "units": numbers.integer(1, 30), "seller": people.of(n).name}
        for n in range(45)
    ]
    units = sums(rows, "region", "units")
    return Case(
        {"sales.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("sales.csv")
by_region = df.groupby("region")["units"].sum()
fig, ax = plt.subplots()
ax.bar(by_region.index, by_region.values, color="steelblue")
ax.set_title("Units sold by region")
ax.set_ylabel("Units")
plt.show()
by_region
""",
        result=Labelled(units),
        images=1,
        drawn=[Drawn("Units sold by region", y="Units", bars=list(units.values()))],
    )


@plots("A histogram of ages in bins of ten years.")
def histogram(people: People) -> Case:
    numbers = Numbers(102)
    ages = [numbers.integer(20, 79) for _ in range(100)]
    rows = [{"name": people.of(n).name, "age": age} for n, age in enumerate(ages)]
    return Case(
        {"people.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("people.csv")
plt.hist(df["age"], bins=range(20, 90, 10), edgecolor="white")
plt.title("Age distribution")
plt.xlabel("Age")
plt.show()
""",
        images=1,
        drawn=[
            Drawn(
                "Age distribution",
                "Age",
                bars=[sum(low <= age < low + 10 for age in ages) for low in range(20, 80, 10)],
            )
        ],
    )


@plots("Scatter weight against height with the fitted line.")
def scatter(people: People) -> Case:
    numbers = Numbers(103)
    points = [(float(150 + n), 60 + n * 0.8 + numbers.real(-4, 4)) for n in range(30)]
    rows = [{"name": people.of(n).name, "height": x, "weight": y} for n, (x, y) in enumerate(points)]
    x, y = mean(p[0] for p in points), mean(p[1] for p in points)
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return Case(
        {"body.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("body.csv")
m, b = np.polyfit(df["height"], df["weight"], 1)
fig, ax = plt.subplots(figsize=(6, 6))
ax.scatter(df["height"], df["weight"], alpha=0.6, label="people")
ax.plot(df["height"], m * df["height"] + b, color="red", label=f"y = {m:.2f}x + {b:.1f}")
ax.set(title="Weight by height", xlabel="cm", ylabel="kg")
ax.legend()
fig.savefig("scatter.png", dpi=100)
print(f"slope {m:.4f}")
""",
        printed=[slope],
        written={"scatter.png": Picture(size=(600, 600))},
        images=1,
        drawn=[
            Drawn(
                "Weight by height",
                "cm",
                "kg",
                lines=[[y + slope * (a - x) for a, _ in points]],
                points=[[a, b] for a, b in points],
            )
        ],
    )


@plots("Four panels: revenue, costs, profit, and profit summed up.")
def panels(people: People) -> Case:
    rows = _revenue(people, 104)
    profit = [row["revenue"] - row["costs"] for row in rows]
    total = [sum(profit[: n + 1]) for n in range(12)]
    series = {
        "Revenue": [row["revenue"] for row in rows],
        "Costs": [row["costs"] for row in rows],
        "Profit": profit,
        "Cumulative profit": total,
    }
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("revenue.csv")
df["profit"] = df["revenue"] - df["costs"]
df["total"] = df["profit"].cumsum()
fig, axes = plt.subplots(2, 2, figsize=(10, 8), sharex=True)
for ax, (column, title) in zip(axes.flat, [
    ("revenue", "Revenue"), ("costs", "Costs"), ("profit", "Profit"), ("total", "Cumulative profit"),
]):
    ax.plot(range(1, 13), df[column])
    ax.set_title(title)
fig.suptitle("Year 2025")
fig.tight_layout()
plt.savefig("panels.png", dpi=80)
plt.show()
""",
        written={"panels.png": Picture(size=(800, 640))},
        images=1,
        drawn=[Drawn(title, lines=[values]) for title, values in series.items()],
    )


@plots("A box plot of response times by team, with seaborn.")
def boxes(people: People) -> Case:
    numbers = Numbers(105)
    rows = [
        {"team": ("blue", "red")[n % 2], "hours": numbers.real(1, 48, 1), "agent": people.of(n).name} for n in range(60)
    ]
    return Case(
        {"tickets.csv": csv_of(rows)},
        """
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt

sns.set_theme(style="whitegrid")
df = pd.read_csv("tickets.csv")
ax = sns.boxplot(data=df, x="team", y="hours")
ax.set_title("Hours to answer")
plt.savefig("boxes.png")
df.groupby("team")["hours"].median().sort_index()
""",
        result=Labelled(
            {team: median(row["hours"] for row in rows if row["team"] == team) for team in ("blue", "red")}
        ),
        written={"boxes.png": Picture()},
        images=1,
        drawn=[Drawn("Hours to answer", "team", "hours")],
    )


@plots("A heat map of how the scores of the subjects go together.")
def heat_map(people: People) -> Case:
    numbers = Numbers(106)
    rows = [
        {
            "student": people.of(n).name,
            **{subject: numbers.integer(0, 100) for subject in ("art", "maths", "music", "sport")},
        }
        for n in range(40)
    ]
    return Case(
        {"scores.csv": csv_of(rows)},
        """
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt

df = pd.read_csv("scores.csv")
corr = df.drop(columns="student").corr()
plt.figure(figsize=(5, 4))
sns.heatmap(corr, annot=True, fmt=".2f", cmap="coolwarm", vmin=-1, vmax=1)
plt.title("Correlation of scores")
plt.tight_layout()
plt.show()
list(corr.columns)
""",
        result=["art", "maths", "music", "sport"],
        images=1,
        drawn=[Drawn("Correlation of scores"), Drawn()],
    )


@plots("Stacked bars of hours by project and month from the table.")
def stacked(people: People) -> Case:
    numbers = Numbers(107)
    rows = [
        {
            "month": MONTHS[n % 4],
            "project": ("Alpha", "Beta")[n // 4 % 2],
            "hours": numbers.integer(5, 40),
            "who": people.of(n).email,
        }
        for n in range(48)
    ]

    def hours(month: str, project: str) -> int:
        return sum(row["hours"] for row in rows if (row["month"], row["project"]) == (month, project))

    heights = [hours(month, project) for project in ("Alpha", "Beta") for month in MONTHS[:4]]
    return Case(
        {"hours.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("hours.csv")
table = df.pivot_table(index="month", columns="project", values="hours", aggfunc="sum")
ax = table.plot(kind="bar", stacked=True, title="Hours by month", rot=0)
ax.set_ylabel("hours")
plt.savefig("hours.png", bbox_inches="tight")
print(table)
""",
        printed=[each for month in MONTHS[:4] for each in (month, hours(month, "Alpha"), hours(month, "Beta"))],
        written={"hours.png": Picture()},
        images=1,
        drawn=[Drawn("Hours by month", "month", "hours", bars=heights)],
    )


@plots("A pie of the budget, as SVG for the report.")
def pie(people: People) -> Case:
    rows = [
        {"item": item, "amount": amount, "owner": people[n].name}
        for n, (item, amount) in enumerate((("Rent", 40), ("Staff", 120), ("Travel", 15), ("Other", 25)))
    ]
    return Case(
        {"budget.csv": csv_of(rows)},
        """
import os
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("budget.csv")
fig, ax = plt.subplots()
ax.pie(df["amount"], labels=df["item"], autopct="%1.1f%%")
ax.set_title("Budget")
os.makedirs("figures", exist_ok=True)
fig.savefig("figures/budget.svg")
plt.close(fig)
df["amount"].sum()
""",
        result=200,
        written={"figures/budget.svg": Picture("svg")},
        drawn=[Drawn("Budget")],
    )


@plots("Revenue as bars and margin as a line on a second axis.")
def two_axes(people: People) -> Case:
    rows = _revenue(people, 109)
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("revenue.csv")
df["margin"] = (df["revenue"] - df["costs"]) / df["revenue"] * 100
fig, ax1 = plt.subplots(figsize=(9, 4))
ax1.bar(range(len(df)), df["revenue"], color="lightgray")
ax1.set_ylabel("Revenue")
ax2 = ax1.twinx()
ax2.plot(range(len(df)), df["margin"], color="green")
ax2.set_ylabel("Margin (%)")
ax1.set_title("Revenue and margin")
plt.show()
""",
        images=1,
        drawn=[
            Drawn("Revenue and margin", y="Revenue", bars=[row["revenue"] for row in rows]),
            Drawn(y="Margin (%)", lines=[[(row["revenue"] - row["costs"]) / row["revenue"] * 100 for row in rows]]),
        ],
    )


@plots("Make a two-page PDF: one page a region.")
def pdf(people: People) -> Case:
    numbers = Numbers(110)
    rows = [
        {"region": ("east", "west")[n % 2], "week": n // 2 + 1, "sold": numbers.integer(1, 50), "by": people.of(n).name}
        for n in range(20)
    ]
    return Case(
        {"weeks.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt
from matplotlib.backends.backend_pdf import PdfPages

df = pd.read_csv("weeks.csv")
with PdfPages("regions.pdf") as pdf:
    for region, g in df.groupby("region"):
        fig, ax = plt.subplots()
        ax.plot(g["week"], g["sold"])
        ax.set_title(f"Region {region}")
        pdf.savefig(fig)
        plt.close(fig)
    pages = pdf.get_pagecount()
pages
""",
        result=2,
        written={"regions.pdf": Picture("pdf")},
        drawn=[
            Drawn(f"Region {region}", lines=[[row["sold"] for row in rows if row["region"] == region]])
            for region in ("east", "west")
        ],
    )


@plots("A large picture for print: 300 dpi.")
def print_quality(people: People) -> Case:
    rows = _revenue(people, 111)
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("revenue.csv")
fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(df["month"], df["costs"])
ax.set_xlabel("Costs")
fig.tight_layout()
fig.savefig("costs_print.png", dpi=300)
plt.close(fig)
from PIL import Image
Image.open("costs_print.png").size
""",
        result=[1800, 900],
        written={"costs_print.png": Picture(size=(1800, 900))},
        drawn=[Drawn(x="Costs")],
    )


@plots("Daily visitors with their seven-day average over time.")
def dates(people: People) -> Case:
    numbers = Numbers(112)
    values = [numbers.integer(100, 300) for _ in range(60)]
    rows = [
        {"date": str(date(2025, 1, 1) + timedelta(days=n)), "visitors": value, "on_duty": people.of(n).name}
        for n, value in enumerate(values)
    ]
    return Case(
        {"visitors.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt
import matplotlib.dates as mdates

df = pd.read_csv("visitors.csv", parse_dates=["date"], index_col="date")
df["7 days"] = df["visitors"].rolling(7, min_periods=1).mean()
fig, ax = plt.subplots(figsize=(10, 4))
ax.plot(df.index, df["visitors"], alpha=0.4, label="daily")
ax.plot(df.index, df["7 days"], label="7-day average")
ax.xaxis.set_major_formatter(mdates.DateFormatter("%d %b"))
ax.set_title("Visitors")
ax.legend()
plt.savefig("visitors.png")
plt.show()
""",
        written={"visitors.png": Picture(size=(1000, 400))},
        images=1,
        drawn=[Drawn("Visitors", lines=[values, [mean(values[max(0, n - 6) : n + 1]) for n in range(60)]])],
    )


@plots("Two figures, one after the other: revenue and then costs.")
def two_figures(people: People) -> Case:
    rows = _revenue(people, 113)
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("revenue.csv")
for column in ("revenue", "costs"):
    plt.figure(figsize=(6, 3))
    plt.plot(df[column])
    plt.title(column.title())
    plt.show()
    print(column, df[column].max())
""",
        printed=["revenue", max(row["revenue"] for row in rows), "costs", max(row["costs"] for row in rows)],
        images=2,
        drawn=[
            Drawn("Revenue", lines=[[row["revenue"] for row in rows]]),
            Drawn("Costs", lines=[[row["costs"] for row in rows]]),
        ],
    )
