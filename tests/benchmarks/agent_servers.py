"""Small MCP servers with invented data that is the same each time, for `agents.py`.

python tests/benchmarks/agent_servers.py shop|tracker|database|weather
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PAGE = 25
CITIES = ("Bern", "Lyon", "Oslo", "Porto", "Graz", "Turku", "Ghent", "Brno")
STATES = ("new", "paid", "shipped", "returned")
LABELS = ("bug", "feature", "question", "docs")
WORDS = ("login", "export", "search", "invoice", "upload", "report", "mobile", "cache")


def _paged(items: list[dict[str, Any]], page: int) -> dict[str, Any]:
    rows = items[(page - 1) * PAGE : page * PAGE]
    return {"items": rows, "page": page, "pages": -(-len(items) // PAGE), "total": len(items)}


def shop(server: MCPServer[Any]) -> None:
    """Customers, orders and stock."""
    customers: list[dict[str, Any]] = [
        {
            "id": n,
            "name": f"Customer {n}",
            "city": CITIES[n % 8],
            "since": f"20{10 + n % 15}-0{1 + n % 9}-15",
            "newsletter": n % 3 == 0,
            "note": "Prefers delivery in the morning, and a call before it. " * (1 + n % 3),
        }
        for n in range(1, 121)
    ]
    orders: list[dict[str, Any]] = [
        {
            "id": 1000 + n,
            "customer_id": 1 + n * 7 % 120,
            "status": STATES[n * 3 % 4],
            "total": round(9.5 + n * 37 % 400, 2),
            "lines": [{"sku": f"SKU-{(n + k) % 40:03}", "quantity": 1 + (n + k) % 5} for k in range(1 + n % 4)],
            "address": {"street": f"Main Street {n}", "city": CITIES[n * 7 % 8], "country": "EU"},
        }
        for n in range(300)
    ]

    @server.tool()
    def list_customers(page: int = 1) -> dict[str, Any]:
        """List customers, 25 on a page."""
        return _paged(customers, page)

    @server.tool()
    def get_customer(customer_id: int) -> dict[str, Any]:
        """Get one customer by id."""
        return next(each for each in customers if each["id"] == customer_id)

    @server.tool()
    def list_orders(customer_id: int | None = None, status: str | None = None, page: int = 1) -> dict[str, Any]:
        """List orders, 25 on a page, of one customer or with one status."""
        found = [
            each for each in orders if customer_id in (None, each["customer_id"]) and status in (None, each["status"])
        ]
        return _paged(found, page)

    @server.tool()
    def get_order(order_id: int) -> dict[str, Any]:
        """Get one order by id."""
        found = next((each for each in orders if each["id"] == order_id), None)
        if found is None:
            raise ToolError(f"There is no order {order_id}.")
        return found

    @server.tool()
    def set_order_status(order_id: int, status: str) -> dict[str, Any]:
        """Set the status of an order: new, paid, shipped or returned."""
        return {"id": order_id, "status": status, "accepted": True}

    @server.tool()
    def get_stock(sku: str) -> dict[str, Any]:
        """Tell how many pieces of a product are in stock, and where."""
        number = int(sku.removeprefix("SKU-"))
        return {"sku": sku, "pieces": number * 13 % 50, "warehouse": CITIES[number % 8], "reorder_at": 10}


def tracker(server: MCPServer[Any]) -> None:
    """Issues of a software project."""
    issues: list[dict[str, Any]] = [
        {
            "number": n,
            "title": f"{WORDS[n % 8].title()} fails in step {n % 5}",
            "state": "open" if n % 3 else "closed",
            "labels": [LABELS[n % 4]],
            "author": f"user{n % 11}",
            "comments": n % 7,
            "created": f"2026-0{1 + n % 9}-{1 + n % 27:02}",
            "body": f"When I use {WORDS[n % 8]}, nothing happens. " + "I expected it to work as described. " * 6,
        }
        for n in range(1, 201)
    ]

    @server.tool()
    def list_issues(state: str = "open", label: str | None = None, page: int = 1) -> dict[str, Any]:
        """List issues of a state (open, closed or all), 25 on a page."""
        return _paged(
            [each for each in issues if state in ("all", each["state"]) and label in (None, *each["labels"])], page
        )

    @server.tool()
    def get_issue(number: int) -> dict[str, Any]:
        """Get one issue with its body."""
        return issues[number - 1]

    @server.tool()
    def list_comments(number: int) -> dict[str, Any]:
        """List the comments of an issue."""
        count = issues[number - 1]["comments"]
        return {
            "comments": [
                {"author": f"user{(number + k) % 11}", "body": f"I see this too with version 1.{k}. " * 4}
                for k in range(count)
            ]
        }

    @server.tool()
    def add_label(number: int, label: str) -> dict[str, Any]:
        """Add a label to an issue."""
        return {**issues[number - 1], "labels": sorted({*issues[number - 1]["labels"], label})}

    @server.tool()
    def add_comment(number: int, body: str) -> dict[str, Any]:
        """Comment on an issue."""
        return {"number": number, "comment": {"author": "agent", "body": body}}


def database(server: MCPServer[Any]) -> None:
    """A SQLite database of measurements."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(
        "create table stations (id integer primary key, name text, city text, height integer);"
        "create table readings (station_id integer, day text, temperature real, rain real);"
    )
    connection.executemany(
        "insert into stations values (?, ?, ?, ?)",
        [(n, f"Station {n}", CITIES[n % 8], 100 + n * 31 % 900) for n in range(1, 21)],
    )
    connection.executemany(
        "insert into readings values (?, ?, ?, ?)",
        [
            (n, f"2026-{month:02}-{day:02}", round(5 + (n * 7 + day * 3 + month) % 250 / 10, 1), n * day % 9 / 2)
            for n in range(1, 21)
            for month in range(1, 4)
            for day in range(1, 29)
        ],
    )

    @server.tool()
    def list_tables() -> dict[str, Any]:
        """List the tables."""
        return {"tables": [name for (name,) in connection.execute("select name from sqlite_master")]}

    @server.tool()
    def describe_table(table: str) -> dict[str, Any]:
        """Describe the columns of a table."""
        columns = connection.execute("select name, type from pragma_table_info(?)", (table,))
        return {"columns": [{"name": name, "type": kind} for name, kind in columns]}

    @server.tool()
    def query(sql: str) -> dict[str, Any]:
        """Run a SELECT and return its rows."""
        found = connection.execute(sql)
        names = [each[0] for each in found.description]
        return {"rows": [dict(zip(names, row, strict=True)) for row in found]}


def weather(server: MCPServer[Any]) -> None:
    """Forecasts and conversions."""

    @server.tool()
    def list_cities() -> dict[str, Any]:
        """List the cities that there are forecasts for."""
        return {"cities": list(CITIES)}

    @server.tool()
    def forecast(city: str, days: int = 7) -> dict[str, Any]:
        """Forecast the weather of a city for up to 7 days."""
        start = CITIES.index(city)
        hours = [
            {
                "hour": hour,
                "temperature": 8 + (start * 5 + hour) % 17,
                "wind": (start + hour) % 30,
                "rain": hour % 3 / 2,
            }
            for hour in range(0, 24, 3)
        ]
        return {
            "city": city,
            "days": [
                {"day": day, "high": 12 + (start * 5 + day * 3) % 15, "low": 2 + (start + day) % 8, "hours": hours}
                for day in range(1, days + 1)
            ],
        }

    @server.tool()
    def convert(amount: float, unit: str, to: str) -> dict[str, Any]:
        """Convert temperatures (C, F) and speeds (kmh, ms)."""
        ways = {("C", "F"): amount * 9 / 5 + 32, ("F", "C"): (amount - 32) * 5 / 9, ("kmh", "ms"): amount / 3.6}
        return {"amount": amount, "unit": unit, "to": to, "value": round(ways[unit, to], 2)}


def main() -> None:
    """Serve one of them over the standard streams."""
    name = sys.argv[1]
    server: MCPServer[Any] = MCPServer(name)
    {"shop": shop, "tracker": tracker, "database": database, "weather": weather}[name](server)
    server.run()


if __name__ == "__main__":
    main()
