"""Fields in XML and HTML: elements, attributes, table cells beside their heading, definition lists, form inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding
from .keyed_values import field
from .tables import columns

_NAME = r"[A-Za-z_][\w:.-]{0,60}"
_ELEMENT = re.compile(rf"<({_NAME})(?:\s[^<>]{{0,400}})?>([^<>]{{1,600}})</(?=\1\s?>)")
_CDATA = re.compile(rf"<({_NAME})(?:\s[^<>]{{0,400}})?>\s{{0,20}}<!\[CDATA\[([^\]<]{{1,600}})\]\]>")
_ATTRIBUTE = re.compile(rf"(?<=\s)({_NAME})=(\"[^\"<>]{{1,600}}\"|'[^'<>]{{1,600}}')")
_TAG = re.compile(r"<[A-Za-z][^<>]{0,800}>")
_NAMED = re.compile(rf"\s(?:name|id|key|property|itemprop|field|for)=[\"']({_NAME})[\"']")
_VALUE = re.compile(r"\s(?:value|content)=(\"[^\"<>]{1,600}\"|'[^'<>]{1,600}')")
# <th>Phone</th><td>…</td>, <dt>Phone</dt><dd>…</dd>, <label>Phone</label><span>…</span>, <key>phone</key><string>…</string>
_HEADED = re.compile(
    r"<(?:th|dt|td|label|b|strong|key|span|div|h\d)(?:\s[^<>]{0,200})?>\s{0,20}([^\W\d_][^<>:]{0,48}):?\s{0,20}</\w{1,8}>:?\s{0,40}"
    r"(?:<(?:td|dd|span|string|div|p|integer|a|code)(?:\s[^<>]{0,200})?>){1,2}([^<>]{1,600})</"
)
_HEADED_BARE = re.compile(
    r"<(?:b|strong|th|em)>\s{0,8}([^\W\d_][^<>:]{0,48}):?\s{0,8}</\w{1,8}>:?[ ]{0,8}([^<>\n]{1,200})"
)
_ROW = re.compile(r"<tr\b[^<>]{0,200}>")
_CELL = re.compile(r"<(t[hd])\b[^<>]{0,200}>(?:<[a-z][^<>]{0,200}>){0,3}([^<>]{0,600})")


def markup(text: str) -> Iterator[Finding]:
    """Yield the values that the names of elements, attributes and headings make personal."""
    if "<" not in text or ">" not in text:
        return
    for pattern in (_ELEMENT, _CDATA):
        for match in pattern.finditer(text):
            yield from field(text, (match[1].rpartition(":")[2],), *match.span(2))
    for tag in _TAG.finditer(text):
        for match in _ATTRIBUTE.finditer(text, *tag.span()):
            yield from field(text, (match[1].rpartition(":")[2],), *match.span(2))
        name, value = _NAMED.search(tag[0]), _VALUE.search(tag[0])
        if name and value:
            yield from field(text, (name[1],), tag.start() + value.start(1), tag.start() + value.end(1))
        if name and not tag[0].endswith("/>"):
            end = text.find("<", tag.end(), tag.end() + 600)
            if end > tag.end():
                yield from field(text, (name[1],), tag.end(), end)
    for pattern in (_HEADED, _HEADED_BARE):
        for match in pattern.finditer(text):
            yield from field(text, (match[1],), *match.span(2))
    yield from _rows(text)


def _rows(text: str) -> Iterator[Finding]:
    """Read the rows of an HTML table below a row of headings."""
    starts = [row.end() for row in _ROW.finditer(text)]
    headings: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        cells = list(_CELL.finditer(text, start, min(end, start + 100_000)))
        if cells and all(cell[1] == "th" for cell in cells):
            headings = [cell[2] for cell in cells]
        elif headings and len(cells) == len(headings):
            yield from columns(text, headings, [cell.span(2) for cell in cells])
