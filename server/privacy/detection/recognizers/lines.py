"""`Key: value` on lines of their own: YAML with its nesting, headers of mails and of HTTP, forms written as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding
from .keyed_values import field

_LINE = re.compile(
    r"""(?mx) ^ (?P<indent>[ \t>]{0,200} (?:(?:[-*•+]|\d{1,3}[.)])[ \t]{1,20}){0,3}) (?P<bold>\*{0,2}_{0,2})
    (?: ["']? (?P<key>[^\W\d_][\w .()/&'’#°№-]{0,48}?|[№〒][\w .]{0,24}?) ["']? (?:\*\*|__)? [ \t]{0,8} (?: : (?:\*\*|__)? (?=[ \t\r\n]|\Z) | ：) )?
    [ \t]{0,200} (?P<value>[^\n]{0,600}) """
)
# A start at each tab is enough, and a value is read once: `_inline` finds where it ends.
_INLINE = re.compile(
    r"(?:(?<=[{,;|(\t—–])|(?<=\. )|(?<=^))[ ]{0,8}+([^\W\d_][\w .#'’()/°№-]{0,40}?)[ ]?:[ \t]{1,8}+(?=([^\s,;|{}\[\]\"'][^,;|{}\[\]\n\"]{0,160}+))",
    re.MULTILINE,
)
_BETWEEN_BARS = re.compile(r"[^|:\n]{0,160}(?=[ ]?\||\n|\Z)|")
_ENDS_INLINE = frozenset(",;|})\n")
# Cardholder ........ Jane Doe
_LEADER = re.compile(r"(?m)^[ \t]{0,40}([^\W\d_][\w /&'’#-]{1,40}?)[ ]?\.{3,80}:?[ ]{1,4}([^\s.][^\n]{1,200})$")
_COMMENT = re.compile(r"[ \t]#[ \t].{0,600}\Z")
_OPENERS = frozenset(("", "|", ">", "|-", ">-", "|+"))
_DEEPEST = 16


def lines(text: str) -> Iterator[Finding]:
    """Yield the values that the keys before them make personal."""
    if "..." in text:
        for match in _LEADER.finditer(text):
            yield from field(text, (match[1],), *match.span(2))
    if ":" not in text and "：" not in text:
        return
    yield from _nested(text)
    done = 0
    for match in _INLINE.finditer(text):
        start, end = match.span(2)
        if match.start() < done:
            continue
        if end < len(text) and text[end] not in _ENDS_INLINE:
            end = text.rfind(")", start + 1, end)
        elif text.startswith(",", end) and text.startswith("|", match.start() - 1):
            end = _BETWEEN_BARS.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
        if end > start:
            done = end
            yield from field(text, (match[1],), start, end)


def _nested(text: str) -> Iterator[Finding]:
    above: list[tuple[int, str]] = []
    for line in _LINE.finditer(text):
        value, indent, key = line["value"], len(line["indent"]), line["key"]
        if key is None:
            if not value:
                continue
            dashed = "-" in line["indent"]
            while above and (above[-1][0] > indent or (above[-1][0] == indent and not dashed)):
                above.pop()
            if dashed and above:
                yield from field(text, [name for _, name in above], *_span(line))
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if value.strip() in _OPENERS:
            if len(above) < _DEEPEST:
                above.append((indent, key))
        else:
            yield from field(text, [*(name for _, name in above), key], *_span(line))


def _span(line: re.Match[str]) -> tuple[int, int]:
    start, end = line.span("value")
    comment = _COMMENT.search(line["value"])
    return start, start + comment.start() if comment else end
