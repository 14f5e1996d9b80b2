"""What searches find beside upstream tools, such as skills, described in the keys that tools have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...sandbox.job import Json

if TYPE_CHECKING:
    from ...tools_registry.describing.details import DetailLevel
    from ...tools_registry.search.ranking import Searchable


@dataclass(frozen=True, slots=True)
class Extra:
    """Something beside tools that searches find, such as a skill; `description` is its first paragraph.

    `details` gives what else a full definition says of it.
    """

    document: Searchable
    signature: str
    description: str
    details: Callable[[], Awaitable[Mapping[str, Json]]]

    async def defined(self, level: DetailLevel) -> dict[str, Json]:
        """Return its description at a level of detail, all of it at `full`."""
        more = await self.details() if level.value == "full" else {}
        return {**self.told(level), **more}

    def told(self, level: DetailLevel) -> dict[str, Json]:
        """Return its description at a level of detail, in the keys that tools have."""
        document = self.document
        told: dict[str, Json] = {"name": document.name, "server": document.server, "category": document.category}
        match level.value:
            case "name":
                return told
            case "summary":
                names = [name for name, _ in document.parameters]
                return {**told, "description": self.description, "arguments": names}
            case _:
                return {**told, "description": self.description, "signature": self.signature}


Extras = Callable[[], tuple[object, Sequence[Extra]]]
"""Gives what is to be found beside tools, and before it something that is another with every change."""
