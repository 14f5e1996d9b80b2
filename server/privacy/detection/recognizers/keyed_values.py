"""One field, a key and a value in some notation, judged by its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..fields.judging import judge
from ..findings import Finding

_QUOTES = "\"'`"


def field(text: str, path: Sequence[str], start: int, end: int) -> Iterator[Finding]:
    """Yield the finding that `text[start:end]` is, being the value below `path`, without quotes and outer space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start and text[start] in _QUOTES:
        while end > start and text[end - 1] in ",;":
            end -= 1
    if end - start >= 2 and text[start] in _QUOTES and text[end - 1] == text[start]:
        start, end = start + 1, end - 1
    verdict = judge(path, text[start:end])
    if verdict is not None:
        yield Finding(start, end, verdict.type, verdict.score)
