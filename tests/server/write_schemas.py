"""Writes the schemas of sealab's own tools to the file that a start reads them from (`make schemas`)."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.interfaces.protocol.strict_tool import SCHEMAS_FILE, derived_schemas
from sealab.server.interfaces.protocol.tools import tools_of


async def schemas_of_all_tools(home: Path) -> dict[str, dict[str, object]]:
    """Make the schemas of all tools from their functions, with the settings that hold where none is given."""
    async with running(Settings(workers_spare=0), Home(home)) as app:
        derived = {tool.name: derived_schemas(tool.fn) for tool in tools_of(app)}
    return {name: {"parameters": each.parameters, "output": each.output} for name, each in derived.items()}


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as home:
        schemas = asyncio.run(schemas_of_all_tools(Path(home)))
    SCHEMAS_FILE.write_text(json.dumps(schemas, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
