r"""Keys and string or number values in JSON, also in JSON that is cut off, embedded in a log line, or escaped.

JSON as text inside JSON has its quotes escaped, once more for each level: `"` then `\"` then `\\\"`. So each level is
read by itself, as the strings between quotes with that many backslashes, and the same code finds the fields of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..fields.judging import KEYS_OF_THINGS
from ..fields.rules import LIKELY
from ..findings import Finding, PiiType
from .keyed_values import field

_QUOTE = re.compile(r'(?<!\\)(\\{0,31})"')
_LEVELS = (0, 1, 3, 7)
_KEY = re.compile(r"[^\W\d][\w .,$@:/?'’()°№&#-]{0,60}|[№〒][\w .]{0,24}")
_COLON = re.compile(r"\s{0,40}:\s{0,400}")
_NUMBER = re.compile(r"-?\d{4,24}(?=[\s,}\]\\]|\Z)")
_LONGEST_KEY = 62
_DEEPEST = 64
_Quotes = list[tuple[int, int]]


def json_pairs(text: str) -> Iterator[Finding]:
    """Yield the values that their keys make personal."""
    if '"' not in text:
        return
    by_level: dict[int, _Quotes] = {}
    for quote in _QUOTE.finditer(text):
        slashes = quote.end(1) - quote.start(1)
        # A string at the outermost level may end in an escaped backslash.
        level = 0 if slashes and slashes % 2 == 0 else slashes
        start = quote.end(1) if level == 0 else quote.start()
        for each in _LEVELS:
            if level <= each:
                by_level.setdefault(each, []).append((start, quote.end()) if level == each else (-1, quote.end()))
    for level in _LEVELS:
        quotes = by_level.get(level, [])
        if any(start >= 0 for start, _ in quotes):
            yield from _one_level(text, quotes)


def _one_level(text: str, quotes: _Quotes) -> Iterator[Finding]:
    """Yield findings among the strings between quotes; a start of -1 marks a quote that ends the enclosing level."""
    enclosing: list[tuple[str, str]] = []
    pending = ""
    outside = 0
    index = 0
    while index < len(quotes) - 1:
        (opens, inside), (closes, after) = quotes[index], quotes[index + 1]
        if opens < 0:
            enclosing, pending, outside = [], "", inside
            index += 1
            continue
        if closes < 0:
            index += 1
            continue
        pending = _follow(text, outside, opens, enclosing, pending)
        outside = after
        colon = _COLON.match(text, after)
        if colon and closes - inside <= _LONGEST_KEY and _KEY.fullmatch(text, inside, closes):
            pending = text[inside:closes]
            index += 2
            if number := _NUMBER.match(text, colon.end()):
                yield from field(text, _path(enclosing, pending), number.start(), number.end())
            continue
        if pending or (enclosing and enclosing[-1][0] == "["):
            for found in field(text, _path(enclosing, pending), inside, closes):
                if found.type != PiiType.PERSON or found.score > LIKELY or not names_thing(text, inside, closes):
                    yield found
            yield from _typed(text, quotes, index, pending)
        next_is_key = _starts_key(text, quotes, index + 1)
        index += 1 if next_is_key and not _starts_key(text, quotes, index + 2) else 2
    # What comes after the last string cannot be a string's value any more.


def _path(enclosing: list[tuple[str, str]], pending: str) -> list[str]:
    """Return the keys that lead to a value; the strings of a list are below the key of the list."""
    return [*(key for _, key in enclosing[-3:]), pending]


def _starts_key(text: str, quotes: _Quotes, index: int) -> bool:
    """Return whether a key begins at this quote: a stray quote before it must not turn strings inside out."""
    if index + 1 >= len(quotes):
        return False
    (opens, inside), (closes, after) = quotes[index], quotes[index + 1]
    return (
        opens >= 0
        and 0 <= closes - inside <= _LONGEST_KEY
        and _COLON.match(text, after) is not None
        and _KEY.fullmatch(text, inside, closes) is not None
    )


def _follow(text: str, start: int, end: int, enclosing: list[tuple[str, str]], pending: str) -> str:
    """Follow brackets between two strings; return the key that still waits for its value."""
    for character in text[start:end] if end - start <= 4096 else "":
        if character in "{[":
            if len(enclosing) < _DEEPEST:
                enclosing.append((character, pending))
            pending = ""
        elif character in "}]":
            if enclosing:
                enclosing.pop()
            pending = ""
        elif character == ",":
            pending = ""
    return pending


_THING = re.compile(rf'"(?:{"|".join(sorted(KEYS_OF_THINGS))})\\{{0,7}}"\s{{0,20}}:', re.IGNORECASE)
_AROUND = 200


def names_thing(text: str, start: int, end: int) -> bool:
    """Return whether the object around a name has fields that only things have: a price, a stock."""
    before = text[max(0, start - _AROUND) : start]
    before = before[max(before.rfind("{"), before.rfind("}")) + 1 :]
    after = text[end : end + _AROUND].partition("}")[0].partition("{")[0]
    return _THING.search(before) is not None or _THING.search(after) is not None


# `{"label": "Phone", "value": "…"}` and the like: one field names the other.
_NAMING = frozenset(
    ("label", "name", "key", "type", "system", "field", "title", "question", "attribute", "kind", "rel", "id", "code")
)
_NAMED = frozenset(("value", "answer", "text", "content", "val", "number", "address", "display", "data"))


def _typed(text: str, quotes: _Quotes, index: int, pending: str) -> Iterator[Finding]:
    if pending.lower() not in _NAMING or index + 5 >= len(quotes):
        return
    (_, named), (named_end, _) = quotes[index], quotes[index + 1]
    (key_opens, key), (key_end, after_key) = quotes[index + 2], quotes[index + 3]
    (opens, value), (value_end, _) = quotes[index + 4], quotes[index + 5]
    if min(named_end, key_opens, key_end, opens, value_end) < 0 or key_end - key > _LONGEST_KEY:
        return
    if (
        text[key:key_end].lower() in _NAMED
        and _COLON.fullmatch(text, after_key, opens)
        and "}" not in text[named_end:key_opens]
    ):
        yield from field(text, (text[named:named_end][:_LONGEST_KEY],), value, value_end)
