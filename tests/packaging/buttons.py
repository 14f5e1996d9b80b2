"""Makes the links by which Cursor and VS Code install sealab, from `server.json`, and the buttons that hold them.

python -m tests.packaging.buttons
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

ROOT = Path(__file__).resolve().parents[2]


def entry_of(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a client starts the package of a registry entry that speaks over the standard streams."""
    (package,) = (each for each in server["packages"] if each["transport"]["type"] == "stdio")
    return {"command": package["runtimeHint"], "args": [package["identifier"]]}


def links(server: Mapping[str, Any]) -> dict[str, str]:
    """Return the link of each client. They are https addresses that lead to the client's own scheme (see their documents)."""
    name, entry = server["title"], entry_of(server)
    config = base64.b64encode(json.dumps(entry).encode()).decode()
    return {
        "Cursor": "https://cursor.com/en/install-mcp?" + urlencode({"name": name, "config": config}),
        "VS Code": "https://insiders.vscode.dev/redirect/mcp/install?"
        + urlencode({"name": name, "config": json.dumps(entry)}, quote_via=quote),
    }


def buttons(pictures: str) -> str:
    """Return the buttons as Markdown, where `pictures` is the folder of the pictures as seen from the page."""
    made = links(json.loads((ROOT / "server.json").read_text()))
    return " ".join(
        f"[![Install in {client}]({pictures}/install-{client.lower().replace(' ', '-')}.svg)]({link})"
        for client, link in made.items()
    )


if __name__ == "__main__":
    print(buttons("docs/pictures"))
