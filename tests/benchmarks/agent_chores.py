"""What thirty chores of one conversation cost a model, with a fresh home: with skills, and with each program anew.

The second fifteen are the first fifteen again, with other values and in other words. Each way the model looks up the
signatures of four real local servers, and runs a program for each of the first fifteen; with skills it saves what it
has just run, naming the variables that become parameters. For the second fifteen it writes the program anew, calls the
skill by the name that it gave it, or, as in a new conversation, finds it by what the user says. The results are
compared. Counted are the tokens (o200k) of the names and arguments of its calls, which it writes, and of the texts that
it reads back; the definitions of tools, which are the same each way, are not.

    python -m tests.benchmarks.agent_chores
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from .agent_tasks import _ALL_CUSTOMERS, _ALL_ISSUES, _ALL_ORDERS
from .agents import OWN, entries, tokens

SHARE_MAX = 0.40
ENVIRONMENT = {"SEALAB_REQUIRED_LEVEL": "limits", "SEALAB_PROFILE": "open"}
"""Nobody is there to be asked about a query that a program made after it had read texts."""
NEW, KNOWN, FOUND = "written anew", "skills, by name", "skills, by search"
Values = Mapping[str, object]


@dataclass(frozen=True)
class Chore:
    """A program with the values of its first and its second use, and how the user asks for each."""

    name: str
    asked: str
    again: str
    first: Values
    second: Values
    body: str

    def program(self, values: Values) -> str:
        """Return the program as a model writes it, its values on top."""
        return "\n".join([*(f"{name} = {value!r}" for name, value in values.items()), self.body.strip()])


CHORES = (
    Chore("orders_above", "Which paid orders are above 390?", "List the new orders over 300",
          {"status": "paid", "least": 390}, {"status": "new", "least": 300}, """
first = await tools.shop.list_orders(status=status)
pages = [first, *[await tools.shop.list_orders(status=status, page=n) for n in range(2, first["pages"] + 1)]]
result = [order["id"] for page in pages for order in page["items"] if order["total"] > least]
"""),
    Chore("revenue_by_city", "Revenue of shipped orders by city", "How much did each city bring in with returned orders?",
          {"status": "shipped"}, {"status": "returned"}, f"""{_ALL_ORDERS}
result = {{}}
for order in orders:
    if order["status"] == status:
        city = order["address"]["city"]
        result[city] = round(result.get(city, 0) + order["total"], 2)
"""),
    Chore("best_customers", "The three customers who spent most", "Our five biggest clients, please",
          {"most": 3}, {"most": 5}, f"""{_ALL_ORDERS}
spent = collections.Counter()
for order in orders:
    spent[order["customer_id"]] += order["total"]
best = spent.most_common(most)
names = await asyncio.gather(*(tools.shop.get_customer(customer_id=each) for each, _ in best))
result = [{{"name": who["name"], "spent": round(total, 2)}} for who, (_, total) in zip(names, best)]
"""),
    Chore("newsletter_readers_by_city", "How many customers since 2015 of each city get the newsletter?",
          "Count the newsletter subscribers per city who joined from 2020 on",
          {"year": "2015"}, {"year": "2020"}, f"""{_ALL_CUSTOMERS}
chosen = [each for each in customers if each["newsletter"] and each["since"] >= year]
result = dict(sorted(collections.Counter(each["city"] for each in chosen).items()))
"""),
    Chore("products_to_reorder", "Which products of new orders must be reordered?",
          "What of the paid orders is running low in stock?",
          {"status": "new"}, {"status": "paid"}, """
first = await tools.shop.list_orders(status=status)
pages = [first, *[await tools.shop.list_orders(status=status, page=n) for n in range(2, first["pages"] + 1)]]
skus = sorted({line["sku"] for page in pages for order in page["items"] for line in order["lines"]})
stock = await asyncio.gather(*(tools.shop.get_stock(sku=sku) for sku in skus))
result = [each["sku"] for each in stock if each["pieces"] < each["reorder_at"]]
"""),
    Chore("open_issues_by_author", "Who has how many open bugs?", "How many open questions did each author write?",
          {"label": "bug"}, {"label": "question"}, """
first = await tools.tracker.list_issues(label=label)
pages = [first, *[await tools.tracker.list_issues(label=label, page=n) for n in range(2, first["pages"] + 1)]]
result = dict(collections.Counter(each["author"] for page in pages for each in page["items"]).most_common())
"""),
    Chore("most_discussed_issues", "The three issues with the most comments, and who commented",
          "Which two issues are discussed most, and by whom?", {"most": 3}, {"most": 2}, f"""{_ALL_ISSUES}
chosen = sorted(issues, key=lambda each: (-each["comments"], each["number"]))[:most]
told = await asyncio.gather(*(tools.tracker.list_comments(number=each["number"]) for each in chosen))
result = {{str(each["number"]): sorted({{one["author"] for one in of["comments"]}}) for each, of in zip(chosen, told)}}
"""),
    Chore("issues_that_mention", "Open bugs that mention login", "Which docs issues talk about export?",
          {"label": "bug", "word": "login"}, {"label": "docs", "word": "export"}, """
first = await tools.tracker.list_issues(label=label)
pages = [first, *[await tools.tracker.list_issues(label=label, page=n) for n in range(2, first["pages"] + 1)]]
result = [each["number"] for page in pages for each in page["items"] if word in each["body"]]
"""),
    Chore("issues_per_month", "Bugs per month", "Monthly numbers of feature issues",
          {"label": "bug"}, {"label": "feature"}, f"""{_ALL_ISSUES}
months = collections.Counter(each["created"][:7] for each in issues if label in each["labels"])
result = dict(sorted(months.items()))
"""),
    Chore("repeated_issue_titles", "Titles of issues that occur more than five times", "Duplicate issues: six times and up",
          {"times": 5}, {"times": 6}, f"""{_ALL_ISSUES}
titles = collections.Counter(each["title"] for each in issues)
result = sorted(title for title, count in titles.items() if count > times)
"""),
    Chore("wettest_cities", "The two wettest cities of the database", "Top three cities by rain in the measurements",
          {"most": 2}, {"most": 3}, """
found = await tools.database.query(sql="select city, rain from readings join stations on id = station_id")
rain = collections.Counter()
for row in found["rows"]:
    rain[row["city"]] += row["rain"]
result = rain.most_common(most)
"""),
    Chore("warmest_day_of_high_stations", "The warmest day of each station above 800 m",
          "When was it hottest at the stations over 900 m?", {"height": 800}, {"height": 900}, """
stations = await tools.database.query(sql=f"select id, name from stations where height > {height}")
result = {}
for station in stations["rows"]:
    sql = f"select day, temperature from readings where station_id = {station['id']}"
    rows = (await tools.database.query(sql=sql))["rows"]
    result[station["name"]] = max(rows, key=lambda row: (row["temperature"], row["day"]))["day"]
"""),
    Chore("median_temperature_by_month", "Median temperature of each month in Bern", "Oslo: the median degrees per month",
          {"city": "Bern"}, {"city": "Oslo"}, """
sql = f"select day, temperature from readings join stations on id = station_id where city = '{city}'"
months = {}
for row in (await tools.database.query(sql=sql))["rows"]:
    months.setdefault(row["day"][:7], []).append(row["temperature"])
result = {month: statistics.median(values) for month, values in sorted(months.items())}
"""),
    Chore("hottest_forecast", "Where is the highest temperature of the next week, in Fahrenheit?",
          "Which place gets hottest in the coming 3 days, in F?", {"days": 7}, {"days": 3}, """
cities = (await tools.weather.list_cities())["cities"]
told = await asyncio.gather(*(tools.weather.forecast(city=city, days=days) for city in cities))
high, city = max((day["high"], each["city"]) for each in told for day in each["days"])
result = [city, (await tools.weather.convert(amount=high, unit="C", to="F"))["value"]]
"""),
    Chore("forecast_against_mean", "How does the forecast of Bern differ from the mean of the database?",
          "Is the forecast for Porto warmer than its average so far?", {"city": "Bern"}, {"city": "Porto"}, """
sql = f"select avg(temperature) as mean from readings join stations on id = station_id where city = '{city}'"
mean = (await tools.database.query(sql=sql))["rows"][0]["mean"]
days = (await tools.weather.forecast(city=city))["days"]
result = round(statistics.mean(day["high"] for day in days) - mean, 1)
"""),
)  # fmt: skip


@dataclass
class Spent:
    """What a model wrote and read, in tokens, by how many calls, and what came out."""

    tokens: int = 0
    calls: int = 0
    results: list[Any] = field(default_factory=list)


class Model:
    """Makes the calls that a model makes in one conversation, and counts them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.spent = Spent()

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; count what is written and read."""
        answer = await self._client.call_tool(tool, dict(arguments))
        told = answer.structured_content
        assert told is not None, answer
        assert not answer.is_error, answer
        self.spent.tokens += tokens(f"{tool} {json.dumps(arguments, ensure_ascii=False, separators=(',', ':'))}")
        self.spent.tokens += tokens("".join(block.text for block in answer.content if block.type == "text"))
        self.spent.calls += 1
        return told

    async def run(self, code: str) -> None:
        """Run a program, and keep its result."""
        self.spent.results.append((await self.call("execute_code", code=code))["result"])

    async def use(self, name: str, values: Values) -> None:
        """Run a skill, and keep its result."""
        self.spent.results.append((await self.call("run_skill", name=name, arguments=values))["result"])

    def half(self) -> Spent:
        """Return what was spent since this was called last."""
        spent, self.spent = self.spent, Spent()
        return spent


async def first_half(model: Model, *, saves: bool) -> Spent:
    """Look up what the servers offer, and do the first chores; with `saves` keep each as a skill."""
    for server in OWN:
        await model.call("search_tools", query=server, category=server, detail_level="signature", limit=20)
    for chore in CHORES:
        await model.run(chore.program(chore.first))
        if saves:
            about = {"description": chore.asked, "from_run": "last"}
            saved = await model.call("save_skill", name=chore.name, code=",".join(chore.first), **about)
            assert list(saved["constants"]["parameters"]) == list(chore.first), saved
    return model.half()


async def second_half(model: Model, way: str) -> tuple[Spent, int]:
    """Do the second chores; return what that took, and of how many the skill was not among the first three found."""
    missed = 0
    for chore in CHORES:
        if way == FOUND:
            found = await model.call("search_tools", query=chore.again, category="skills", limit=3)
            missed += chore.name not in {each["name"] for each in found["tools"]}
        if way == NEW:
            await model.run(chore.program(chore.second))
        else:
            await model.use(chore.name, chore.second)
    return model.half(), missed


async def measured(place: Path) -> dict[str, tuple[Spent, Spent, int]]:
    """Do all chores each way; return for each way both halves, and what a search missed."""
    servers = {
        name: {**each, "approve": "never"}
        for name, each in entries(place, place / "graph.jsonl").items()
        if name in OWN
    }
    told: dict[str, tuple[Spent, Spent, int]] = {}
    for saves, ways in ((False, (NEW,)), (True, (KNOWN, FOUND))):
        home = place / ways[0].replace(" ", "-")
        home.mkdir()
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        serve = ["-P", "-m", "sealab.server", "serve", "--home", str(home)]
        process = StdioServerParameters(command=sys.executable, args=serve, env=ENVIRONMENT)
        async with Client(process) as client:
            model = Model(client)
            first = await first_half(model, saves=saves)
            for way in ways:
                told[way] = (first, *await second_half(model, way))
    return told


def main() -> int:
    """Print the table; return 1 where the goal is missed."""
    with tempfile.TemporaryDirectory() as folder:
        told = asyncio.run(measured(Path(folder)))
    print("| thirty chores | tokens: first half | second half | calls: first half | second half |")
    print("| --- | --- | --- | --- | --- |")
    _, anew, _ = told[NEW]
    for way, (first, second, _missed) in told.items():
        assert second.results == anew.results, (way, second.results, anew.results)
        share = f"{second.tokens:,} ({second.tokens / anew.tokens:.0%})"
        print(f"| {way} | {first.tokens:,} | {share} | {first.calls} | {second.calls} |")
    print(f"\nOf the second half, {told[FOUND][2]} skills were not among the first three that a search found.")
    return 0 if told[KNOWN][1].tokens <= SHARE_MAX * anew.tokens else 1


if __name__ == "__main__":
    sys.exit(main())
