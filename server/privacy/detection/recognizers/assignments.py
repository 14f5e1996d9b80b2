"""Keys and values in the notations of code, configuration and logs, one line of `_NOTATIONS` each.

Python and JavaScript literals, `k=v`, logfmt, TOML, INI, `.env`, shell flags, URL queries, database error details.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

from ..fields.judging import judge
from ..fields.rules import LIKELY
from ..findings import Finding, PiiType
from .keyed_values import field
from .prefilter import holds

_KEY = r"[^\W\d][\w.\-\[\]]{0,50}"
_SINGLE = r"'(?:[^'\\\n]|\\.){0,400}'"
_DOUBLE = r'"(?:[^"\\\n]|\\.){0,400}"'
_NOTATIONS = (
    # name='Jane', {'name': "O'Brien"}, name: "Jane", :name => 'Jane', name := "Jane"
    (
        re.compile(rf"(?<![\w\"'.-])['\"]?({_KEY})['\"]?\s{{0,20}}(?:=>|:=|[:=])\s{{0,20}}({_SINGLE}|{_DOUBLE})"),
        ("'", '"'),
    ),
    # level=warn user=jane, &user=jane, (name=Jane), MAIL=… ; the value ends at a space or a separator
    (re.compile(rf"(?<![\w.-])({_KEY})[ ]?=[ ]?([^\s,;&)(\"'|<>]{{2,512}}+)(?![(\[])"), ("=",)),
    # --user jane, --password="…"
    (re.compile(rf"(?<![\w-])--?([A-Za-z][\w-]{{1,40}})[ =]({_SINGLE}|{_DOUBLE}|[^\s\"'-]\S{{1,255}})"), ("-",)),
    # curl -H 'X-Api-Key: …', ["Cookie: sid=…"]
    (re.compile(r"['\"]([A-Za-z][\w-]{1,40}):[ ]([^'\"\n]{2,512})(?=['\"])"), (": ",)),
    # Key (email)=(jane@example.org) already exists
    (re.compile(r"\(([\w.]{2,60})\)=\(([^()\n]{1,200})\)"), (")=(",)),
)
# A whole line: what follows may hold any separator. DB_PASSWORD=a;b&c, name = Jane Doe
_LINE = re.compile(
    rf"(?m)^[ \t]{{0,40}}(?:export[ ]|set[ ]|-[ ]|//?[\w./-]{{1,80}}:)?({_KEY})[ \t]{{0,20}}=[ \t]{{0,20}}([^\s\"'=>][^\n]{{1,511}})$"
)
_QUERY = re.compile(rf"[?&;]({_KEY})=([^\s&;\"'<>#]{{2,512}})")
_LIST = re.compile(
    rf"(?<![\w\"'])['\"]?({_KEY})['\"]?\s{{0,20}}[:=]\s{{0,20}}\[((?:\s{{0,20}}(?:{_SINGLE}),?){{1,50}})\s{{0,20}}\]"
)
_STRING = re.compile(_SINGLE)


def assignments(text: str) -> Iterator[Finding]:
    """Yield the values that their keys make personal."""
    if "=" not in text and ":" not in text and "--" not in text:
        return
    for notation, needed in _NOTATIONS:
        for match in notation.finditer(text) if holds(text, needed) else ():
            for found in field(text, _path(match[1]), *match.span(2)):
                # In code, a bare word is a variable: `author = author`.
                # And `"name": "…"` is JSON's, where what is around it shows more.
                if found.type == PiiType.PERSON and found.score == LIKELY and text[match.end(1)] == '"' == match[2][0]:
                    continue
                if found.type != PiiType.PERSON or not text[found.start : found.end].islower() or match[2][0] in "'\"":
                    yield found
    for match in _LIST.finditer(text) if "[" in text and "'" in text else ():
        for string in _STRING.finditer(text, *match.span(2)):
            yield from field(text, _path(match[1]), *string.span())
    if "=" not in text:
        return
    for match in _LINE.finditer(text):
        yield from field(text, _path(match[1]), *match.span(2))
    for match in _QUERY.finditer(text):
        verdict = judge(_path(match[1]), unquote_plus(match[2]))
        if verdict is not None:
            yield Finding(*match.span(2), verdict.type, verdict.score)


def _path(key: str) -> tuple[str, ...]:
    """Return the keys of `customer.name` or `user[email]`, outermost first."""
    return tuple(part for part in re.split(r"[.\[\]]", key) if part)
