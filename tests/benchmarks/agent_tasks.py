"""Forty tasks for `agents.py`: what is asked, on which servers, and the program whose calls solve it.

The calls of a program are the calls that solve the task without one, too. A task is small where they are four or fewer.
FOLDER stands for the folder that the file server may reach.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One task: its group is a conversation with a model, which first looks up what the `servers` of the group offer."""

    group: str
    asked: str
    program: str


SERVERS = {
    "shop": ("shop",),
    "shop, small": ("shop",),
    "tracker": ("tracker",),
    "tracker, small": ("tracker",),
    "files": ("files",),
    "files and graph, small": ("files", "graph"),
    "database and weather": ("database", "weather"),
    "several servers": ("shop", "tracker", "files", "graph", "weather"),
}

_ALL_ORDERS = """
first = await tools.shop.list_orders()
rest = await asyncio.gather(*(tools.shop.list_orders(page=n) for n in range(2, first["pages"] + 1)))
orders = [order for page in (first, *rest) for order in page["items"]]
"""
_ALL_CUSTOMERS = """
first = await tools.shop.list_customers()
rest = await asyncio.gather(*(tools.shop.list_customers(page=n) for n in range(2, first["pages"] + 1)))
customers = [customer for page in (first, *rest) for customer in page["items"]]
"""
_ALL_ISSUES = """
first = await tools.tracker.list_issues(state="all")
rest = await asyncio.gather(
    *(tools.tracker.list_issues(state="all", page=n) for n in range(2, first["pages"] + 1))
)
issues = [issue for page in (first, *rest) for issue in page["items"]]
"""

TASKS = (
    Task("shop", "Revenue by status over all orders", f"""{_ALL_ORDERS}
result = {{}}
for order in orders:
    result[order["status"]] = round(result.get(order["status"], 0) + order["total"], 2)
"""),
    Task("shop", "The five customers who spent most", f"""{_ALL_ORDERS}
spent = collections.Counter()
for order in orders:
    spent[order["customer_id"]] += order["total"]
best = spent.most_common(5)
names = await asyncio.gather(*(tools.shop.get_customer(customer_id=each) for each, _ in best))
result = [{{"name": who["name"], "spent": round(sum_, 2)}} for who, (_, sum_) in zip(names, best)]
"""),
    Task("shop", "Which products of unpaid orders must be reordered", """
first = await tools.shop.list_orders(status="new")
pages = [first, *[await tools.shop.list_orders(status="new", page=n) for n in range(2, first["pages"] + 1)]]
skus = sorted({line["sku"] for page in pages for order in page["items"] for line in order["lines"]})
stock = await asyncio.gather(*(tools.shop.get_stock(sku=sku) for sku in skus))
result = [each["sku"] for each in stock if each["pieces"] < each["reorder_at"]]
"""),
    Task("shop", "How many customers of each city get the newsletter", f"""{_ALL_CUSTOMERS}
result = dict(sorted(collections.Counter(each["city"] for each in customers if each["newsletter"]).items()))
"""),
    Task("shop", "Ship all paid orders above 390", """
first = await tools.shop.list_orders(status="paid")
pages = [first, *[await tools.shop.list_orders(status="paid", page=n) for n in range(2, first["pages"] + 1)]]
large = [order["id"] for page in pages for order in page["items"] if order["total"] > 390]
await asyncio.gather(*(tools.shop.set_order_status(order_id=each, status="shipped") for each in large))
result = large
"""),
    Task("shop, small", "Name and city of the customer of order 1042", """
order = await tools.shop.get_order(order_id=1042)
customer = await tools.shop.get_customer(customer_id=order["customer_id"])
result = [customer["name"], customer["city"]]
"""),
    Task("shop, small", "Is everything in order 1007 in stock?", """
order = await tools.shop.get_order(order_id=1007)
stock = [await tools.shop.get_stock(sku=line["sku"]) for line in order["lines"][:3]]
result = all(each["pieces"] >= line["quantity"] for each, line in zip(stock, order["lines"]))
"""),
    Task("shop, small", "Which of the customers 3, 30 and 100 has been there for longest?", """
who = await asyncio.gather(*(tools.shop.get_customer(customer_id=n) for n in (3, 30, 100)))
result = min(who, key=lambda each: each["since"])["name"]
"""),
    Task("shop, small", "Ship the orders 1001 and 1002 if they are paid", """
result = []
for number in (1001, 1002):
    order = await tools.shop.get_order(order_id=number)
    if order["status"] == "paid":
        result.append(await tools.shop.set_order_status(order_id=number, status="shipped"))
"""),
    Task("shop, small", "How much has customer 12 spent?", """
orders = await tools.shop.list_orders(customer_id=12)
customer = await tools.shop.get_customer(customer_id=12)
result = {customer["name"]: round(sum(each["total"] for each in orders["items"]), 2)}
"""),
    Task("tracker", "Open issues by label and author", f"""{_ALL_ISSUES}
count = collections.Counter((each["labels"][0], each["author"]) for each in issues if each["state"] == "open")
result = [{{"label": label, "author": author, "open": number}} for (label, author), number in sorted(count.items())]
"""),
    Task("tracker", "The three issues with the most comments, and who commented", f"""{_ALL_ISSUES}
most = sorted(issues, key=lambda each: (-each["comments"], each["number"]))[:3]
told = await asyncio.gather(*(tools.tracker.list_comments(number=each["number"]) for each in most))
result = {{each["number"]: sorted({{one["author"] for one in of["comments"]}}) for each, of in zip(most, told)}}
"""),
    Task("tracker", "Open bugs that mention login, labelled as urgent", """
first = await tools.tracker.list_issues(label="bug")
pages = [first, *[await tools.tracker.list_issues(label="bug", page=n) for n in range(2, first["pages"] + 1)]]
found = [each["number"] for page in pages for each in page["items"] if "login" in each["body"]]
await asyncio.gather(*(tools.tracker.add_label(number=each, label="urgent") for each in found))
result = found
"""),
    Task("tracker", "Duplicates: titles that occur more than five times", f"""{_ALL_ISSUES}
titles = collections.Counter(each["title"] for each in issues)
result = sorted(title for title, count in titles.items() if count > 5)
"""),
    Task("tracker", "Issues per month", f"""{_ALL_ISSUES}
result = dict(sorted(collections.Counter(each["created"][:7] for each in issues).items()))
"""),
    Task("tracker, small", "Who commented on issue 20, and what is its title?", """
issue, told = await asyncio.gather(tools.tracker.get_issue(number=20), tools.tracker.list_comments(number=20))
result = [issue["title"], sorted({each["author"] for each in told["comments"]})]
"""),
    Task("tracker, small", "Label issue 7 as urgent if it has more than four comments", """
issue = await tools.tracker.get_issue(number=7)
labels = issue["labels"]
if issue["comments"] <= 4:
    labels = (await tools.tracker.add_label(number=7, label="urgent"))["labels"]
result = labels
"""),
    Task("tracker, small", "The states of the issues 4, 8, 15 and 16", """
issues = await asyncio.gather(*(tools.tracker.get_issue(number=n) for n in (4, 8, 15, 16)))
result = [each["state"] for each in issues]
"""),
    Task("tracker, small", "Answer issue 33, label it as a question, and say who wrote it", """
await tools.tracker.add_comment(number=33, body="Which version do you use?")
labelled = await tools.tracker.add_label(number=33, label="question")
result = [labelled["author"], labelled["labels"]]
"""),
    Task("tracker, small", "Which of the issues 60 and 61 has the longer discussion?", """
told = [await tools.tracker.list_comments(number=n) for n in (60, 61)]
result = 60 if len(told[0]["comments"]) >= len(told[1]["comments"]) else 61
"""),
    Task("files", "Errors by kind in all log files", """
listed = await tools.files.search_files(path="FOLDER/logs", pattern="**/*.log")
names = sorted(line for line in listed["content"].splitlines() if line)
texts = await asyncio.gather(*(tools.files.read_text_file(path=name) for name in names))
count = collections.Counter()
for text in texts:
    count.update(re.findall(r"ERROR (\\w+)", text["content"]))
result = dict(sorted(count.items()))
"""),
    Task("files", "The slowest request of each day", """
result = {}
for day in range(1, 7):
    text = (await tools.files.read_text_file(path=f"FOLDER/logs/day-{day}.log"))["content"]
    result[day] = max(int(each) for each in re.findall(r"took (\\d+) ms", text))
"""),
    Task("files", "Sales by region from three tables", """
total = collections.Counter()
for month in ("jan", "feb", "mar"):
    text = (await tools.files.read_text_file(path=f"FOLDER/sales-{month}.csv"))["content"]
    for line in text.strip().splitlines()[1:]:
        region, _product, amount = line.split(",")
        total[region] += int(amount)
result = dict(sorted(total.items()))
"""),
    Task("files", "Write a list of all open points of the notes to a file", """
listed = await tools.files.list_directory(path="FOLDER/notes")
names = sorted(line.removeprefix("[FILE] ") for line in listed["content"].splitlines() if line.startswith("[FILE]"))
points = []
for name in names:
    text = (await tools.files.read_text_file(path=f"FOLDER/notes/{name}"))["content"]
    points += [line.removeprefix("- [ ] ") for line in text.splitlines() if line.startswith("- [ ]")]
await tools.files.write_file(path="FOLDER/open.md", content="\\n".join(points))
result = len(points)
"""),
    Task("files", "Which notes mention the budget?", """
listed = await tools.files.list_directory(path="FOLDER/notes")
names = sorted(line.removeprefix("[FILE] ") for line in listed["content"].splitlines() if line.startswith("[FILE]"))
texts = await asyncio.gather(*(tools.files.read_text_file(path=f"FOLDER/notes/{name}") for name in names))
result = [name for name, text in zip(names, texts) if "budget" in text["content"]]
"""),
    Task(
        "files and graph, small",
        "Columns and number of rows of the three tables of sales",
        """
texts = [(await tools.files.read_text_file(path=f"FOLDER/sales-{m}.csv"))["content"] for m in ("jan", "feb", "mar")]
result = [[text.splitlines()[0], len(text.strip().splitlines()) - 1] for text in texts]
""",
    ),
    Task(
        "files and graph, small",
        "Which of the first four notes mention the budget?",
        """
texts = [await tools.files.read_text_file(path=f"FOLDER/notes/note-0{n}.md") for n in range(1, 5)]
result = [n for n, text in enumerate(texts, 1) if "budget" in text["content"]]
""",
    ),
    Task("files and graph, small", "Remember that Ada leads the project Kite", """
await tools.graph.create_entities(entities=[
    {"name": "Ada", "entityType": "person", "observations": ["leads"]},
    {"name": "Kite", "entityType": "project", "observations": []},
])
await tools.graph.create_relations(relations=[{"from": "Ada", "to": "Kite", "relationType": "leads"}])
found = await tools.graph.search_nodes(query="Ada")
result = [each["name"] for each in found["entities"]]
"""),
    Task("files and graph, small", "Copy the first line of two notes into a file", """
lines = []
for number in (3, 4):
    text = (await tools.files.read_text_file(path=f"FOLDER/notes/note-0{number}.md"))["content"]
    lines.append(text.splitlines()[0])
await tools.files.write_file(path="FOLDER/first.md", content="\\n".join(lines))
result = lines
"""),
    Task("files and graph, small", "Who leads Kite, and what is known of her?", """
found = await tools.graph.open_nodes(names=["Kite", "Ada"])
result = [each["observations"] for each in found["entities"] if each["entityType"] == "person"]
"""),
    Task("database and weather", "The wettest city of the database", """
described = await tools.database.describe_table(table="readings")
found = await tools.database.query(sql="select city, rain from readings join stations on id = station_id")
rain = collections.Counter()
for row in found["rows"]:
    rain[row["city"]] += row["rain"]
result = rain.most_common(1)
"""),
    Task("database and weather", "The warmest day of each station above 800 m", """
stations = await tools.database.query(sql="select id, name from stations where height > 800")
result = {}
for station in stations["rows"]:
    sql = f"select day, temperature from readings where station_id = {station['id']}"
    rows = (await tools.database.query(sql=sql))["rows"]
    result[station["name"]] = max(rows, key=lambda row: (row["temperature"], row["day"]))["day"]
"""),
    Task("database and weather", "Median temperature of each month", """
rows = (await tools.database.query(sql="select day, temperature from readings"))["rows"]
months = {}
for row in rows:
    months.setdefault(row["day"][:7], []).append(row["temperature"])
result = {month: statistics.median(values) for month, values in sorted(months.items())}
"""),
    Task("database and weather", "Where is the highest temperature of the next week, in Fahrenheit?", """
cities = (await tools.weather.list_cities())["cities"]
told = await asyncio.gather(*(tools.weather.forecast(city=city) for city in cities))
high, city = max((day["high"], each["city"]) for each in told for day in each["days"])
result = [city, (await tools.weather.convert(amount=high, unit="C", to="F"))["value"]]
"""),
    Task("database and weather", "How does the forecast of Bern and Oslo differ from the mean of the database?", """
result = {}
for city in ("Bern", "Oslo"):
    sql = f"select avg(temperature) as mean from readings join stations on id = station_id where city = '{city}'"
    mean = (await tools.database.query(sql=sql))["rows"][0]["mean"]
    days = (await tools.weather.forecast(city=city))["days"]
    result[city] = round(statistics.mean(day["high"] for day in days) - mean, 1)
"""),
    Task("several servers", "Orders to cities with rain tomorrow", f"""{_ALL_ORDERS}
cities = sorted({{order["address"]["city"] for order in orders}})
told = await asyncio.gather(*(tools.weather.forecast(city=city, days=1) for city in cities))
wet = {{each["city"] for each in told if any(hour["rain"] > 0.5 for hour in each["days"][0]["hours"])}}
result = sum(order["address"]["city"] in wet and order["status"] == "paid" for order in orders)
"""),
    Task("several servers", "A report of open bugs by month as a file", """
first = await tools.tracker.list_issues(label="bug")
pages = [first, *[await tools.tracker.list_issues(label="bug", page=n) for n in range(2, first["pages"] + 1)]]
count = collections.Counter(each["created"][:7] for page in pages for each in page["items"])
lines = [f"{month}: {number}" for month, number in sorted(count.items())]
await tools.files.write_file(path="FOLDER/bugs.md", content="\\n".join(lines))
result = lines
"""),
    Task("several servers", "Remember the ten largest orders with their customers", f"""{_ALL_ORDERS}
largest = sorted(orders, key=lambda order: (-order["total"], order["id"]))[:10]
who = await asyncio.gather(*(tools.shop.get_customer(customer_id=each["customer_id"]) for each in largest))
entities = [
    {{"name": f"order {{order['id']}}", "entityType": "order", "observations": [one["name"]]}}
    for order, one in zip(largest, who)
]
await tools.graph.create_entities(entities=entities)
result = [each["name"] for each in entities]
"""),
    Task("several servers", "Customers whose city has a station in no log of errors", f"""{_ALL_CUSTOMERS}
text = (await tools.files.read_text_file(path="FOLDER/logs/day-1.log"))["content"]
quiet = {{each["city"] for each in customers if each["city"] not in text}}
result = sorted(quiet)
"""),
    Task("several servers", "Comment on the issues that the notes name", """
numbers = set()
for number in range(1, 7):
    text = (await tools.files.read_text_file(path=f"FOLDER/notes/note-0{number}.md"))["content"]
    numbers |= {int(each) for each in re.findall(r"#(\\d+)", text)}
for number in sorted(numbers):
    await tools.tracker.add_comment(number=number, body="Mentioned in the notes.")
result = sorted(numbers)
"""),
)  # fmt: skip
