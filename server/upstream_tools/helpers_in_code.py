"""Names the functions that code has beside the tools, where a search or a call looks for one among the tools."""

from __future__ import annotations

import re
from types import MappingProxyType

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
    """Say which functions of code a query may mean; None without one."""
    words = {word.removesuffix("s") for word in _WORD.findall(text.lower())}
    calls = [call for word, found in _BY_WORD.items() if word in words for call in found]
    return f"Code also has {', '.join(calls)}, which are no tools." if calls else None


def helper_for_tool_name(tool: str) -> str | None:
    """Say which function of code a tool's name means, such as `fs.list_resources`; None where it means none."""
    wanted = tool.rpartition(".")[2]
    calls = (call for found in _BY_WORD.values() for call in found)
    found = next((call for call in calls if call.partition("(")[0] == wanted), None)
    return None if found is None else f"There is no tool {tool!r}: in code, call {found}."
