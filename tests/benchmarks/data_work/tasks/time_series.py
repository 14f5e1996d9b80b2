"""Time series: by month and weekday, moving windows, gaps, zones, sessions."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from ..made_data import Numbers, People, csv_of, mean, sums
from ..task import Case, Frame, Group, Labelled, Text

series = Group("time series")
START = date(2025, 1, 1)


def _days(people: People, seed: int, count: int) -> list[dict[str, Any]]:
    numbers = Numbers(seed)
    return [
        {
            "date": str(START + timedelta(days=n)),
            "visitors": numbers.integer(100, 400),
            "on_duty": people.of(n).name,
        }
        for n in range(count)
    ]


@series("Sum the daily visitors by month.")
def monthly(people: People) -> Case:
    rows = _days(people, 60, 181)
    by_month = sums(({"month": row["date"][:7], **row} for row in rows), "month", "visitors")
    return Case(
        {"visitors.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("visitors.csv", parse_dates=["date"], index_col="date")
monthly = df["visitors"].resample("MS").sum()
monthly.index = monthly.index.strftime("%Y-%m")
monthly.to_csv("monthly.csv")
monthly
""",
        result=Labelled(by_month),
        written={"monthly.csv": Text("csv", [{"date": m, "visitors": v} for m, v in by_month.items()])},
    )


@series("The seven-day moving average: its last value and its peak.")
def moving_average(people: People) -> Case:
    rows = _days(people, 61, 90)
    values = [row["visitors"] for row in rows]
    moving = {rows[n]["date"]: mean(values[n - 6 : n + 1]) for n in range(6, 90)}
    peak = max(moving, key=moving.__getitem__)
    return Case(
        {"visitors.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("visitors.csv", parse_dates=["date"]).set_index("date")
df["avg7"] = df["visitors"].rolling(7).mean()
peak = df["avg7"].idxmax()
print(f"Last 7-day average: {df['avg7'].iloc[-1]:.2f}")
print(f"Peak: {df['avg7'].max():.2f} on {peak:%Y-%m-%d}")
""",
        printed=[moving[rows[-1]["date"]], moving[peak], peak],
    )


@series("Growth of revenue against the same month of the year before, in percent.")
def year_over_year(people: People) -> Case:
    numbers = Numbers(62)
    months = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
    rows = [
        {"month": month, "revenue": numbers.integer(900, 1500), "approved_by": people.of(n).email}
        for n, month in enumerate(months)
    ]
    growth = {months[n]: round(100 * (rows[n]["revenue"] / rows[n - 12]["revenue"] - 1), 2) for n in range(12, 24)}
    return Case(
        {"revenue.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("revenue.csv", index_col="month")
df["yoy"] = (df["revenue"].pct_change(12) * 100).round(2)
df["yoy"].dropna()
""",
        result=Labelled(growth),
    )


@series("The log is in UTC. At which hour in Berlin do most logins happen?")
def time_zone(people: People) -> Case:
    numbers = Numbers(63)
    rows, hours = [], []
    for n in range(200):
        at = datetime.fromisoformat("2025-03-20") + timedelta(
            days=n % 20, hours=numbers.integer(0, 11) + n % 3, minutes=n % 60
        )
        # Central European Summer Time began on 30 March 2025 at 01:00 UTC.
        hours.append((at + timedelta(hours=2 if at >= datetime.fromisoformat("2025-03-30T01:00") else 1)).hour)
        rows.append({"user": people.of(n).email, "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"})
    count = {hour: hours.count(hour) for hour in sorted(set(hours))}
    return Case(
        {"logins.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("logins.csv")
df["time"] = pd.to_datetime(df["time"], utc=True).dt.tz_convert("Europe/Berlin")
by_hour = df["time"].dt.hour.value_counts().sort_index()
print("Busiest hour:", by_hour.idxmax())
by_hour.to_dict()
""",
        result={str(hour): n for hour, n in count.items()},
        printed=[max(count, key=count.__getitem__)],
    )


@series("Where are there gaps of more than 15 minutes in the sensor's readings?")
def gaps(people: People) -> Case:
    at, times, missing = datetime.fromisoformat("2025-04-01"), [], []
    for n in range(120):
        times.append(at)
        step = {30: 45, 70: 20, 100: 180}.get(n, 10)
        if step > 15:
            missing.append([f"{at:%Y-%m-%d %H:%M}", step])
        at += timedelta(minutes=step)
    rows = [
        {"time": f"{each:%Y-%m-%d %H:%M:%S}", "value": n % 13, "operator": people.of(n).name}
        for n, each in enumerate(times)
    ]
    return Case(
        {"sensor.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("sensor.csv", parse_dates=["time"]).sort_values("time")
df["wait"] = df["time"].shift(-1) - df["time"]
gaps = df[df["wait"] > pd.Timedelta(minutes=15)]
[[t.strftime("%Y-%m-%d %H:%M"), w.total_seconds() / 60] for t, w in zip(gaps["time"], gaps["wait"])]
""",
        result=missing,
    )


@series("Fill the missing days by linear interpolation and give the completed series.")
def interpolate(people: People) -> Case:
    known = {0: 10.0, 1: 12.0, 4: 18.0, 5: 20.0, 9: 12.0, 10: 11.0}
    rows = [
        {"date": str(START + timedelta(days=n)), "level": value, "measured_by": people.of(n).name}
        for n, value in known.items()
    ]
    full = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 18.0, 16.0, 14.0, 12.0, 11.0]
    return Case(
        {"levels.csv": csv_of(rows)},
        """
import pandas as pd

s = pd.read_csv("levels.csv", parse_dates=["date"], index_col="date")["level"]
s = s.asfreq("D").interpolate()
s.rename("level").reset_index().to_csv("levels_full.csv", index=False)
print(s.isna().sum(), "missing")
s.tolist()
""",
        result=full,
        printed=[0],
        written={
            "levels_full.csv": Text(
                "csv", [{"date": str(START + timedelta(days=n)), "level": value} for n, value in enumerate(full)]
            )
        },
    )


@series("Group each user's clicks into sessions (new after 30 minutes); sessions per user and the longest.")
def sessions(people: People) -> Case:
    numbers = Numbers(66)
    clicks, at = [], datetime.fromisoformat("2025-05-01T08:00")
    for _ in range(150):
        at += timedelta(minutes=numbers.integer(1, 20))
        clicks.append((people.of(numbers.integer(0, 3)).email, at))
    counts: dict[str, int] = {}
    longest, began, last = timedelta(0), {}, {}
    for user, when in clicks:
        if user not in last or when - last[user] > timedelta(minutes=30):
            counts[user] = counts.get(user, 0) + 1
            began[user] = when
        last[user] = when
        longest = max(longest, when - began[user])
    rows = [{"user": user, "time": f"{when:%Y-%m-%d %H:%M:%S}"} for user, when in clicks]
    return Case(
        {"clicks.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("clicks.csv", parse_dates=["time"]).sort_values(["user", "time"])
new = df.groupby("user")["time"].diff().gt(pd.Timedelta("30min")) | ~df["user"].duplicated()
df["session"] = new.cumsum()
lengths = df.groupby("session")["time"].agg(lambda t: t.max() - t.min())
print("longest session (min):", lengths.max().total_seconds() / 60)
df.groupby("user")["session"].nunique()
""",
        result=Labelled(dict(sorted(counts.items()))),
        printed=[longest.total_seconds() / 60],
    )


@series("How many working days did each ticket take?")
def working_days(people: People) -> Case:
    rows, wanted = [], []
    for n in range(12):
        opened = START + timedelta(days=n * 3)
        closed = opened + timedelta(days=n + 1)
        rows.append({"ticket": n + 1, "owner": people[n].name, "opened": str(opened), "closed": str(closed)})
        wanted.append(sum((opened + timedelta(days=k)).weekday() < 5 for k in range(n + 1)))
    return Case(
        {"tickets.csv": csv_of(rows)},
        """
import numpy as np
import pandas as pd

df = pd.read_csv("tickets.csv", parse_dates=["opened", "closed"])
df["days"] = np.busday_count(df["opened"].values.astype("datetime64[D]"), df["closed"].values.astype("datetime64[D]"))
df[["ticket", "owner", "days"]]
""",
        result=Frame(["ticket", "owner", "days"], [[n + 1, people[n].name, wanted[n]] for n in range(12)]),
    )


@series("Which weekday has the most visitors on average?")
def weekdays(people: People) -> Case:
    rows = _days(people, 68, 140)
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    means = {
        name: mean(row["visitors"] for row in rows if date.fromisoformat(row["date"]).weekday() == n)
        for n, name in enumerate(names)
    }
    return Case(
        {"visitors.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("visitors.csv", parse_dates=["date"])
order = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
by_day = df.groupby(df["date"].dt.day_name())["visitors"].mean().reindex(order)
print(by_day.idxmax(), round(by_day.max(), 1))
by_day
""",
        result=Labelled(means),
        printed=[max(means, key=means.__getitem__), round(max(means.values()), 1)],
    )


@series("Smooth the prices exponentially with span 5 and forecast the next value.")
def smoothing(people: People) -> Case:
    numbers = Numbers(69)
    values = [numbers.real(90, 110) for _ in range(40)]
    rows = [
        {"day": str(START + timedelta(days=n)), "price": value, "dealer": people.of(n).name}
        for n, value in enumerate(values)
    ]
    smooth = [values[0]]
    for value in values[1:]:
        smooth.append(value / 3 + smooth[-1] * 2 / 3)
    return Case(
        {"prices.csv": csv_of(rows)},
        """
import pandas as pd

df = pd.read_csv("prices.csv")
df["smooth"] = df["price"].ewm(span=5, adjust=False).mean()
forecast = df["smooth"].iloc[-1]
print(f"Forecast: {forecast:.4f}")
df["smooth"].tail(3).tolist()
""",
        result=smooth[-3:],
        printed=[smooth[-1]],
    )


@series("With polars: mean and maximum temperature of every six hours.")
def polars_dynamic(people: People) -> Case:
    numbers = Numbers(70)
    values = [numbers.real(-5, 25, 1) for _ in range(48)]
    began = datetime.fromisoformat("2025-02-01")
    rows = [
        {"time": f"{began + timedelta(hours=n):%Y-%m-%d %H:%M:%S}", "celsius": value, "observer": people.of(n).email}
        for n, value in enumerate(values)
    ]
    wanted = [
        [f"{began + timedelta(hours=n):%Y-%m-%d %H:%M}", mean(values[n : n + 6]), max(values[n : n + 6])]
        for n in range(0, 48, 6)
    ]
    return Case(
        {"weather.csv": csv_of(rows)},
        """
import polars as pl

df = pl.read_csv("weather.csv", try_parse_dates=True).sort("time")
out = df.group_by_dynamic("time", every="6h").agg(
    pl.col("celsius").mean().alias("mean"), pl.col("celsius").max().alias("max")
)
out.with_columns(pl.col("time").dt.strftime("%Y-%m-%d %H:%M"))
""",
        result=Frame(["time", "mean", "max"], wanted),
    )


@series("The largest fall of the account from a peak, and when it was reached.")
def drawdown(people: People) -> Case:
    numbers = Numbers(71)
    balance, values = 1000.0, []
    for _ in range(100):
        balance = round(balance * (1 + numbers.real(-0.04, 0.045, 4)), 2)
        values.append(balance)
    rows = [
        {"date": str(START + timedelta(days=n)), "balance": value, "holder": people.of(n).name}
        for n, value in enumerate(values)
    ]
    falls = [value / max(values[: n + 1]) - 1 for n, value in enumerate(values)]
    worst = min(range(100), key=falls.__getitem__)
    return Case(
        {"account.csv": csv_of(rows)},
        """
import pandas as pd

s = pd.read_csv("account.csv", parse_dates=["date"], index_col="date")["balance"]
drawdown = s / s.cummax() - 1
print(f"Max drawdown: {drawdown.min():.2%} on {drawdown.idxmin().date()}")
result = {"drawdown": drawdown.min(), "date": drawdown.idxmin()}
""",
        result={"drawdown": falls[worst], "date": rows[worst]["date"]},
        printed=[falls[worst] * 100, rows[worst]["date"]],
    )
