"""What each parameter of the tools is for, in as few words as possible: clients load them all up front.

Some clients and models refuse a parameter without a description or without a type.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_BY_NAME: Mapping[str, str] = MappingProxyType(
    {
        "arguments": "named",
        "background": "see get_run",
        "cancel": "end it",
        "category": "only this",
        "code": "Python",
        "content": "all of it",
        "context_vars": "variables",
        "detail_level": "detail",
        "dry_run": "only note writes",
        "encoding": "of content",
        "filename": "path",
        "format": "of tables",
        "from_run": "run_id or last",
        "isolation": "kind",
        "limit": "most",
        "memory_mb": "limit",
        "name": "skill",
        "offset": "start",
        "query": "words",
        "record": "for tests",
        "run_id": "id",
        "servers": "used ones",
        "session": "name",
        "subpath": "folder",
        "tag": "only this",
        "tags": "topics",
        "tests": "asserts",
        "text": "text",
        "timeout": "seconds",
        "timeout_seconds": "limit",
        "tool_name": "server.tool",
        "version": "else latest",
        "wait_seconds": "for end",
    }
)
_OF_ONE_TOOL: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("save_skill", "description"): "what it does",
        ("save_skill", "name"): "function",
        ("read_workspace_file", "limit"): "characters",
    }
)


def description_of(tool: str, parameter: str) -> str:
    """Return what a parameter of a tool is for. Raises `KeyError` for one that this page does not list."""
    return _OF_ONE_TOOL.get((tool, parameter)) or _BY_NAME[parameter]
