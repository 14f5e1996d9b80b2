"""Plots: what is drawn (title, labels, the heights of bars), and where it goes: shown, or saved."""

from __future__ import annotations

from statistics import median

from ..made_data import CITIES, PRODUCTS, People, csv_of, orders, sums, values_by
from ..task import Case, Drawn, Group, Labelled, Picture

plots = Group("plots")


@plots
def line(people: People) -> Case:
    """Plot units by day as a line and save it as units.png."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("orders.csv", parse_dates=["day"])
plt.figure(figsize=(8, 4))
plt.plot(df["day"], df["units"], marker="o")
plt.title("Units by day")
plt.xlabel("Day")
plt.ylabel("Units")
plt.xticks(rotation=45)
plt.tight_layout()
plt.savefig("units.png")
plt.close()
print("saved")
""", printed=["saved"], written={"units.png": Picture(size=(800, 400))})  # fmt: skip


@plots
def bars(people: People) -> Case:
    """Show a bar chart of units by city."""
    rows = orders(people)
    units = sums(rows, "city", "units")
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import matplotlib.pyplot as plt

by_city = pd.read_csv("orders.csv").groupby("city")["units"].sum()
fig, ax = plt.subplots()
ax.bar(by_city.index, by_city.values, color="steelblue")
ax.set_title("Units sold by city")
ax.set_ylabel("Units")
plt.show()
by_city
""", result=Labelled(units), images=1,
        drawn=[Drawn("Units sold by city", y="Units", bars=list(units.values()))])  # fmt: skip


@plots
def panels(people: People) -> Case:
    """A panel for each product, in one picture that is saved and shown."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("orders.csv")
fig, axes = plt.subplots(1, 3, figsize=(10, 4), sharey=True)
for ax, (product, g) in zip(axes.flat, df.groupby("product")):
    ax.plot(g["id"], g["units"])
    ax.set_title(product)
fig.suptitle("2025")
fig.tight_layout()
plt.savefig("panels.png", dpi=80)
plt.show()
""", written={"panels.png": Picture(size=(800, 320))}, images=1,
        drawn=[Drawn(product) for product in PRODUCTS])  # fmt: skip


@plots
def boxes(people: People) -> Case:
    """A box plot of units by city, with seaborn."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt

sns.set_theme(style="whitegrid")
df = pd.read_csv("orders.csv")
ax = sns.boxplot(data=df, x="city", y="units")
ax.set_title("Units of an order")
plt.savefig("boxes.png")
df.groupby("city")["units"].median().sort_index()
""", result=Labelled({city: median(units) for city, units in values_by(rows, "city", "units").items()}),
        written={"boxes.png": Picture()}, images=1, drawn=[Drawn("Units of an order", "city", "units")])  # fmt: skip


@plots
def pie(people: People) -> Case:
    """A pie of the units, as SVG for the report."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import os
import pandas as pd
import matplotlib.pyplot as plt

units = pd.read_csv("orders.csv").groupby("product")["units"].sum()
fig, ax = plt.subplots()
ax.pie(units, labels=units.index, autopct="%1.1f%%")
ax.set_title("Units")
os.makedirs("figures", exist_ok=True)
fig.savefig("figures/units.svg")
plt.close(fig)
units.sum()
""", result=sum(row["units"] for row in rows), written={"figures/units.svg": Picture("svg")})  # fmt: skip


@plots
def pdf(people: People) -> Case:
    """Make a PDF: one page a city."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import matplotlib.pyplot as plt
from matplotlib.backends.backend_pdf import PdfPages

df = pd.read_csv("orders.csv")
with PdfPages("cities.pdf") as pdf:
    for city, g in df.groupby("city"):
        fig, ax = plt.subplots()
        ax.plot(g["id"], g["units"])
        ax.set_title(city)
        pdf.savefig(fig)
        plt.close(fig)
    pages = pdf.get_pagecount()
pages
""", result=len(CITIES), written={"cities.pdf": Picture("pdf")})  # fmt: skip


@plots
def two_figures(people: People) -> Case:
    """Two figures, one after the other: units and then amounts."""
    rows = orders(people)
    return Case({"orders.csv": csv_of(rows)}, """
import pandas as pd
import matplotlib.pyplot as plt

df = pd.read_csv("orders.csv")
for column in ("units", "amount"):
    plt.figure(figsize=(6, 3))
    plt.plot(df[column])
    plt.title(column.title())
    plt.show()
    print(column, df[column].max())
""", printed=[each for column in ("units", "amount") for each in (column, max(row[column] for row in rows))], images=2,
        drawn=[Drawn("Units"), Drawn("Amount")])  # fmt: skip
