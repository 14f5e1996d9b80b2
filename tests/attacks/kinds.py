"""The one table from what our report says to the kinds of outcome that a corpus names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OF_STATUS: Mapping[str, frozenset[str]] = {
    "ok": frozenset({"ok"}),
    "error": frozenset({"error", "exception", "runtime", "guest_error"}),
    "refused": frozenset({"SecurityError", "refused"}),
    "timeout": frozenset({"timeout", "limit"}),
    "memory": frozenset({"memory", "limit"}),
    "crashed": frozenset({"crash"}),
    "cancelled": frozenset({"cancelled"}),
}
OF_ERROR_TYPE: Mapping[str, frozenset[str]] = {
    "SyntaxError": frozenset({"SyntaxError"}), "IndentationError": frozenset({"SyntaxError"}),
    "NameError": frozenset({"NameError"}), "ImportError": frozenset({"ImportError"}),
    "ModuleNotFoundError": frozenset({"ImportError"}), "RecursionError": frozenset({"recursion"}),
    "OutputFull": frozenset({"output_limit", "limit"}),
}  # fmt: skip
BROKE_PROTOCOL = "broke the protocol"


def kinds_of(report: Mapping[str, Any] | None, tool_error: str | None) -> frozenset[str]:
    """Name every kind that fits: several words of a corpus may mean the same outcome.

    A report that never came is `internal`; a request that was refused before anything ran is `invalid_request`.
    """
    if report is None:
        if tool_error is None:
            return frozenset({"internal"})
        too_large = {"source_too_large", "limit"} if "too large" in tool_error or "too long" in tool_error else set()
        busy = {"busy"} if "busy" in tool_error else set()
        return frozenset({"invalid_request", "error"} | too_large | busy)
    error = report.get("error") or {}
    cut = report.get("truncated") or {}
    kinds = set(OF_STATUS[report["status"]]) | OF_ERROR_TYPE.get(error.get("type", ""), frozenset())
    if "output" in cut:
        kinds |= {"ok_truncated"}
    if any(where == "result" for where in cut):
        kinds |= {"ok_truncated", "result_too_large"}
    if BROKE_PROTOCOL in (error.get("message") or ""):
        kinds |= {"protocol_violation"}
    return frozenset(kinds)
