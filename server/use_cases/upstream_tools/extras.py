"""What searches find beside upstream tools, or say of functions that code has.

Skills, for example, are found described in the keys that tools have.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from ....sandbox.job import Json

if TYPE_CHECKING:
    from ....tools_registry.describing.details import DetailLevel
    from ....tools_registry.search.ranking import Searchable


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
        return {**self.described(level), **more}

    def described(self, level: DetailLevel) -> dict[str, Json]:
        """Return its description at a level of detail, in the keys that tools have."""
        document = self.document
        entry: dict[str, Json] = {"name": document.name, "server": document.server, "category": document.category}
        match level.value:
            case "name":
                return entry
            case "summary":
                names = [name for name, _ in document.parameters]
                return {**entry, "description": self.description, "arguments": names}
            case _:
                return {**entry, "description": self.description, "signature": self.signature}


class Extras(Protocol):
    """Gives what is to be found beside tools."""

    async def refresh(self) -> None:
        """Bring it up to date."""

    def __call__(self) -> tuple[object, Sequence[Extra]]:
        """Return it, and before it something that is another with every change."""
        ...


_BY_WORD = MappingProxyType(
    {
        "resource": ("list_resources(server)", "read_resource(server, uri)"),
        "prompt": ("list_prompts(server)",),
        "progress": ("progress(fraction, message)",),
        "session": ("list_sessions()", "close_session(name)"),
    }
)
_WORD = re.compile(r"[a-z]+")


def helpers_for_query(text: str) -> str | None:
    """Return which functions of code a query may mean; None without one."""
    words = {word.removesuffix("s") for word in _WORD.findall(text.lower())}
    calls = [call for word, found in _BY_WORD.items() if word in words for call in found]
    return f"Code also has {', '.join(calls)}, which are no tools." if calls else None


def helper_for_tool_name(tool: str) -> str | None:
    """Return which function of code a tool's name means, such as `fs.list_resources`; None where it means none."""
    wanted = tool.rpartition(".")[2]
    calls = (call for found in _BY_WORD.values() for call in found)
    found = next((call for call in calls if call.partition("(")[0] == wanted), None)
    return None if found is None else f"There is no tool {tool!r}: in code, call {found}."
