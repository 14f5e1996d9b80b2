"""Which callers have seen what which tools return, so that reports say it once."""

from __future__ import annotations

from collections import OrderedDict

_CALLERS_MAX = 200
_TOOLS_MAX = 2_000


class ShownReturnTypes:
    """For each caller's scope the tools whose return types it has seen; of very many the newest are kept."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def note(self, scope: str, tool: str) -> None:
        """Note that a caller has seen what a tool returns."""
        tools = self._shown.setdefault(scope, OrderedDict())
        self._shown.move_to_end(scope)
        tools[tool] = None
        tools.move_to_end(tool)
        if len(tools) > _TOOLS_MAX:
            tools.popitem(last=False)
        if len(self._shown) > _CALLERS_MAX:
            self._shown.popitem(last=False)

    def has(self, scope: str, tool: str) -> bool:
        """Return whether a caller has seen what a tool returns."""
        return tool in self._shown.get(scope, ())
