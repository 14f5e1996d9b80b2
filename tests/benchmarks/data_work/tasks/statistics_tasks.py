"""Statistics: what describes a table, what goes together, lines through points, tests, and small linear algebra."""

from __future__ import annotations

import math
from typing import Any

from ..made_data import Numbers, People, csv_of, deviation, mean, quantile
from ..task import Case, Frame, Group, Large

stats = Group("statistics")


def _measured(people: People, seed: int, count: int = 60) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    rows = []
    for n in range(count):
        height = numbers.real(150, 200, 1)
        rows.append(
            {
                "name": people.of(n).name,
                "group": ("control", "treated")[n % 2],
                "height": height,
                "weight": round(height * 0.9 - 90 + numbers.real(-8, 8, 1) + (3 if n % 2 else 0), 1),
                "age": numbers.integer(18, 70),
            }
        )
    return rows


def _correlation(xs: list[float], ys: list[float]) -> float:
    x, y = mean(xs), mean(ys)
    top = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return top / math.sqrt(sum((a - x) ** 2 for a in xs) * sum((b - y) ** 2 for b in ys))


@stats("Describe the numeric columns.")
def describe(people: People) -> Case:
    rows = _measured(people, 80)
    columns = [[row[name] for row in rows] for name in ("height", "weight", "age")]
    kinds = {
        "count": len,
        "mean": mean,
        "std": deviation,
        "min": min,
        "25%": lambda values: quantile(values, 0.25),
        "50%": lambda values: quantile(values, 0.5),
        "75%": lambda values: quantile(values, 0.75),
        "max": max,
    }
    return Case(
        {"measured.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("measured.csv")
df.describe()
""",
        result=Frame(
            ["height", "weight", "age"],
            [[kind(values) for values in columns] for kind in kinds.values()],
            labels=list(kinds),
        ),
    )


@stats("The correlation matrix of height, weight and age.")
def correlations(people: People) -> Case:
    rows = _measured(people, 81)
    names = ["height", "weight", "age"]
    columns = {name: [row[name] for row in rows] for name in names}
    return Case(
        {"measured.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("measured.csv")
corr = df[["height", "weight", "age"]].corr()
print(corr.round(3))
corr
""",
        result=Frame(names, [[_correlation(columns[a], columns[b]) for b in names] for a in names], labels=names),
        printed=["height", 1.0, round(_correlation(columns["height"], columns["weight"]), 3)],
    )


@stats("Fit a straight line of weight on height: slope, intercept, R².")
def straight_line(people: People) -> Case:
    rows = _measured(people, 82)
    xs, ys = [row["height"] for row in rows], [row["weight"] for row in rows]
    x, y = mean(xs), mean(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
    return Case(
        {"measured.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

df = pd.read_csv("measured.csv")
slope, intercept = np.polyfit(df["height"], df["weight"], 1)
predicted = slope * df["height"] + intercept
r2 = 1 - ((df["weight"] - predicted) ** 2).sum() / ((df["weight"] - df["weight"].mean()) ** 2).sum()
{"slope": slope, "intercept": intercept, "r2": r2}
""",
        result={"slope": slope, "intercept": y - slope * x, "r2": _correlation(xs, ys) ** 2},
    )


@stats("Is the weight different between the groups? Welch's t statistic and degrees of freedom.")
def welch(people: People) -> Case:
    rows = _measured(people, 83)
    a, b = ([row["weight"] for row in rows if row["group"] == group] for group in ("treated", "control"))
    of_a, of_b = deviation(a) ** 2 / len(a), deviation(b) ** 2 / len(b)
    t = (mean(a) - mean(b)) / math.sqrt(of_a + of_b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return Case(
        {"measured.csv": csv_of(rows)},
        """
import pandas as pd
from scipy import stats

df = pd.read_csv("measured.csv")
a = df.loc[df["group"] == "treated", "weight"]
b = df.loc[df["group"] == "control", "weight"]
test = stats.ttest_ind(a, b, equal_var=False)
print(f"t = {test.statistic:.4f}, dof = {test.df:.2f}")
print("significant" if test.pvalue < 0.05 else "not significant")
test.statistic, test.df
""",
        result=[t, freedom],
        printed=[t, freedom],
    )


@stats("The 5th, 50th and 95th percentile of response times for each endpoint.")
def percentiles(people: People) -> Case:
    numbers = Numbers(84)
    rows = [
        {"endpoint": ("/cart", "/home", "/pay")[n % 3], "ms": numbers.integer(5, 900), "user": people.of(n).email}
        for n in range(150)
    ]
    wanted = [
        [quantile([row["ms"] for row in rows if row["endpoint"] == each], at) for at in (0.05, 0.5, 0.95)]
        for each in ("/cart", "/home", "/pay")
    ]
    return Case(
        {"requests.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("requests.csv")
q = df.groupby("endpoint")["ms"].quantile([0.05, 0.5, 0.95]).unstack()
q.columns = ["p05", "p50", "p95"]
q
""",
        result=Frame(["p05", "p50", "p95"], wanted, labels=["/cart", "/home", "/pay"]),
    )


@stats("The mean rating by course, weighted by the number of participants.")
def weighted(people: People) -> Case:
    numbers = Numbers(85)
    rows = [
        {
            "course": ("chess", "go")[n % 2],
            "teacher": people.of(n).name,
            "rating": numbers.real(1, 5, 1),
            "participants": numbers.integer(3, 30),
        }
        for n in range(30)
    ]
    wanted = {}
    for course in ("chess", "go"):
        of_course = [row for row in rows if row["course"] == course]
        people_count = sum(row["participants"] for row in of_course)
        wanted[course] = sum(row["rating"] * row["participants"] for row in of_course) / people_count
    return Case(
        {"courses.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

df = pd.read_csv("courses.csv")
result = {
    course: float(np.average(g["rating"], weights=g["participants"])) for course, g in df.groupby("course")
}
""",
        result=wanted,
    )


@stats("Who is more than 1.5 standard deviations from the mean age?")
def z_scores(people: People) -> Case:
    rows = _measured(people, 86)
    ages = [row["age"] for row in rows]
    middle, spread = mean(ages), deviation(ages)
    far = [[row["name"], row["age"], (row["age"] - middle) / spread] for row in rows]
    far = [row for row in far if abs(row[2]) > 1.5]
    return Case(
        {"measured.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("measured.csv")
df["z"] = (df["age"] - df["age"].mean()) / df["age"].std()
df.loc[df["z"].abs() > 1.5, ["name", "age", "z"]]
""",
        result=Frame(["name", "age", "z"], far),
    )


@stats("Do answer and age group depend on each other? The chi-squared statistic of the table.")
def chi_squared(people: People) -> Case:
    numbers = Numbers(87)
    rows = [
        {
            "name": people.of(n).name,
            "age_group": numbers.one_of(("young", "old")),
            "answer": numbers.one_of(("a", "b", "c")),
        }
        for n in range(90)
    ]
    statistic = 0.0
    for age in ("young", "old"):
        for answer in ("a", "b", "c"):
            seen = sum(row["age_group"] == age and row["answer"] == answer for row in rows)
            ages = sum(row["age_group"] == age for row in rows)
            expected = ages * sum(row["answer"] == answer for row in rows) / 90
            statistic += (seen - expected) ** 2 / expected
    return Case(
        {"answers.csv": csv_of(rows)},
        """
import pandas as pd
from scipy.stats import chi2_contingency

df = pd.read_csv("answers.csv")
observed = pd.crosstab(df["age_group"], df["answer"])
chi2, p, dof, expected = chi2_contingency(observed)
print("chi2 =", round(chi2, 4), "dof =", dof)
chi2
""",
        result=statistic,
        printed=[round(statistic, 4), 2],
    )


@stats("The Gini coefficient of incomes, and the share of the richest tenth.")
def gini(people: People) -> Case:
    numbers = Numbers(88)
    incomes = [round(20_000 * 1.05 ** numbers.integer(0, 40), 2) for _ in range(100)]
    rows = [{"email": people.of(n).email, "income": income} for n, income in enumerate(incomes)]
    apart = sum(abs(a - b) for a in incomes for b in incomes)
    return Case(
        {"incomes.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

x = np.sort(pd.read_csv("incomes.csv")["income"].to_numpy())
n = len(x)
gini = (2 * np.arange(1, n + 1) - n - 1).dot(x) / (n * x.sum())
top = x[-n // 10:].sum() / x.sum()
{"gini": round(float(gini), 6), "top_10_percent": round(float(top), 6)}
""",
        result={
            "gini": round(apart / (2 * 100 * sum(incomes)), 6),
            "top_10_percent": round(sum(sorted(incomes)[-10:]) / sum(incomes), 6),
        },
    )


@stats("Solve the mix: how much of each ingredient gives these totals?")
def linear_system(people: People) -> Case:
    rows = [
        {"nutrient": "protein", "a": 2, "b": 1, "c": 3, "total": 19, "checked_by": people[0].name},
        {"nutrient": "fat", "a": 1, "b": 4, "c": 1, "total": 16, "checked_by": people[1].name},
        {"nutrient": "fibre", "a": 3, "b": 2, "c": 5, "total": 31, "checked_by": people[2].name},
    ]
    # 2a + b + 3c = 19, a + 4b + c = 16, 3a + 2b + 5c = 31, by Cramer's rule.
    det = 2 * (4 * 5 - 1 * 2) - 1 * (1 * 5 - 1 * 3) + 3 * (1 * 2 - 4 * 3)
    of_a = 19 * (4 * 5 - 1 * 2) - 1 * (16 * 5 - 1 * 31) + 3 * (16 * 2 - 4 * 31)
    of_b = 2 * (16 * 5 - 1 * 31) - 19 * (1 * 5 - 1 * 3) + 3 * (1 * 31 - 16 * 3)
    of_c = 2 * (4 * 31 - 16 * 2) - 1 * (1 * 31 - 16 * 3) + 19 * (1 * 2 - 4 * 3)
    return Case(
        {"mix.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

df = pd.read_csv("mix.csv")
A = df[["a", "b", "c"]].to_numpy(dtype=float)
x = np.linalg.solve(A, df["total"].to_numpy(dtype=float))
assert np.allclose(A @ x, df["total"])
print("condition number:", np.linalg.cond(A) < 100)
x
""",
        result=[of_a / det, of_b / det, of_c / det],
        printed=["True"],
    )


@stats("Cluster the points into three groups and give the centre and size of each.")
def clusters(people: People) -> Case:
    numbers = Numbers(90)
    centres = ((0, 0), (20, 5), (5, 25))
    rows = [
        {
            "name": people.of(n).name,
            "x": centres[n % 3][0] + numbers.real(-2, 2),
            "y": centres[n % 3][1] + numbers.real(-2, 2),
        }
        for n in range(45)
    ]
    wanted = sorted([mean(row["x"] for row in rows[n::3]), mean(row["y"] for row in rows[n::3]), 15] for n in range(3))
    return Case(
        {"points.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

df = pd.read_csv("points.csv")
km = KMeans(n_clusters=3, n_init=10, random_state=42).fit(df[["x", "y"]])
df["cluster"] = km.labels_
sizes = np.bincount(km.labels_)
sorted([float(c[0]), float(c[1]), int(s)] for c, s in zip(km.cluster_centers_, sizes))
""",
        result=wanted,
    )


@stats("Counts of the waiting times in bins of ten minutes.")
def waiting_times(people: People) -> Case:
    numbers = Numbers(91)
    waits = [numbers.integer(0, 59) for _ in range(80)]
    rows = [{"patient": people.of(n).name, "minutes": each} for n, each in enumerate(waits)]
    return Case(
        {"waits.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

waits = pd.read_csv("waits.csv")["minutes"]
counts, edges = np.histogram(waits, bins=np.arange(0, 70, 10))
for n, lo, hi in zip(counts, edges[:-1], edges[1:]):
    print(f"{lo:>3}-{hi:<3} {n:>3} {'#' * n}")
{"counts": counts, "edges": edges}
""",
        result={
            "counts": [sum(low <= wait < low + 10 for wait in waits) for low in range(0, 60, 10)],
            "edges": list(range(0, 70, 10)),
        },
    )


@stats("Mean, median and mode of the grades, with nothing but the standard library.")
def standard_library(people: People) -> Case:
    grades = [1, 2, 2, 3, 3, 3, 4, 5, 2, 3, 1, 4]
    rows = [{"student": people[n].name, "grade": grade} for n, grade in enumerate(grades)]
    return Case(
        {"grades.csv": csv_of(rows)},
        """
import csv
import statistics

with open("grades.csv", newline="") as f:
    grades = [int(row["grade"]) for row in csv.DictReader(f)]
print(f"mean {statistics.mean(grades):.2f}, median {statistics.median(grades)}, mode {statistics.mode(grades)}")
result = {"mean": statistics.mean(grades), "median": statistics.median(grades), "mode": statistics.mode(grades)}
""",
        result={"mean": 33 / 12, "median": 3, "mode": 3},
        printed=[2.75, 3, 3],
    )


@stats("Score every customer (recency and spending) and show the whole table.")
def large_table(people: People) -> Case:
    numbers = Numbers(93)
    rows = [
        {"customer": people.of(n).email, "days": numbers.integer(0, 365), "spent": numbers.integer(1, 1000)}
        for n in range(5000)
    ]
    head = [[row["customer"], row["days"], row["spent"], row["spent"] / (1 + row["days"])] for row in rows[:3]]
    return Case(
        {"customers.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("customers.csv")
df["score"] = df["spent"] / (1 + df["days"])
df
""",
        result=Large(5000, ["customer", "days", "spent", "score"], head),
    )
