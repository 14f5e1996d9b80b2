"""Two upstream servers over stdio: `crm.py customers COUNT` gives invented people, `crm.py mail FILE` writes down what it gets."""

from __future__ import annotations

import base64
import gzip
import json
import random
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import BlobResourceContents, EmbeddedResource, ToolAnnotations

FIRST = [
    "Ines",
    "Tomas",
    "Petra",
    "Lukas",
    "Miriam",
    "Jonas",
    "Agnes",
    "Viktor",
    "Paula",
    "Emil",
    "Zoë",
    "Anselm",
    "Ruth",
    "Kasimir",
    "Lea",
    "Oskar",
]
LAST = [
    "Hallgrim",
    "Varga",
    "Ostrowe",
    "Kessling",
    "Marchetti",
    "Lindqvist",
    "Oduya",
    "Brannock",
    "Tesfaye",
    "Whitlock",
    "Krüger",
    "Almeida",
]


def customers(count: int) -> list[dict[str, object]]:
    """Return as many invented people; the same for the same number."""
    chance = random.Random(7)
    made: list[dict[str, object]] = []
    for number in range(count):
        first, last = chance.choice(FIRST), chance.choice(LAST)
        name = f"{first} {last}" if number % 7 else f"{first} O'{last}"
        made.append(
            {
                "id": number,
                "customer_name": name,
                "email": f"{first.lower()}.{number}@{last.lower()}-mail.example".encode("ascii", "ignore").decode(),
                "phone": f"+1 {chance.randint(201, 989)}-{chance.randint(201, 989)}-{chance.randint(1000, 9999)}",
                "card": _with_luhn(f"4{chance.randint(10**13, 10**14 - 1)}"),
                "iban": _iban(f"{chance.randint(10**17, 10**18 - 1)}"),
                "ssn": f"{chance.randint(100, 665)}-{chance.randint(10, 99)}-{chance.randint(1000, 9999)}",
                "api_key": f"sk_live_{''.join(chance.choices('abcdefghijkmnpqrstuvwxyzABCDEFGH23456789', k=32))}",
                "balance": chance.randint(1, 999),
                "active": chance.random() < 0.7,
            }
        )
    return made


def _with_luhn(digits: str) -> int:
    total = sum(sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    return int(f"{digits}{-total % 10}")


def _iban(account: str) -> str:
    check = 98 - int(f"{account}131400") % 97
    return f"DE{check:02}{account}"


def serve_customers(count: int) -> None:
    server = MCPServer("customers", log_level="ERROR")
    made = customers(count)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def list_customers(ctx: Context) -> dict[str, list[dict[str, object]]]:
        """List all customers."""
        await ctx.report_progress(1, 2, f"reading {made[0]['email']}")
        return {"customers": made}

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def as_text() -> str:
        """List all customers as lines of JSON, in one text."""
        return "\n".join(json.dumps(each) for each in customers(count))

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def packed() -> EmbeddedResource:
        """Give the names of all customers as a packed table."""
        table = "customer_name\n" + "".join(f"{each['customer_name']}\n" for each in made)
        blob = base64.b64encode(gzip.compress(table.encode())).decode()
        resource = BlobResourceContents(uri="file:///names.csv.gz", mime_type="application/gzip", blob=blob)
        return EmbeddedResource(type="resource", resource=resource)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def page(token: str = "") -> dict[str, object]:
        """Give a page of customers, and the token that the next page is asked for with."""
        return {"customers": made[:1], "page_token": f"pg_{'4f9a2c7e1b8d' * 3}", "asked": bool(token)}

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def fail_on(number: int) -> str:
        """Fail with what is known of a customer."""
        raise ToolError(f"cannot reach {customers(count)[number]}")

    server.run()


def serve_mail(file: Path) -> None:
    server = MCPServer("mail", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
    async def send(to: str, subject: str, body: str, token: str = "") -> str:
        """Send a mail."""
        with file.open("a", encoding="utf-8") as written:
            written.write(json.dumps({"to": to, "subject": subject, "body": body, "token": token}) + "\n")
        return f"sent to {to}"

    server.run()


if __name__ == "__main__":
    if sys.argv[1] == "customers":
        serve_customers(int(sys.argv[2]))
    else:
        serve_mail(Path(sys.argv[2]))
