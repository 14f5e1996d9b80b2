"""Types as docstrings say them in words, made the hints that Python would write.

list of float                  list[float]
{'mean', 'median'}, optional   Literal['mean', 'median']
str or None                    str | None
dict mapping str to int        dict[str, int]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_WORDS: Final = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "dictionary": "dict",
    "null": "None",
    "nonetype": "None",
}
_AFTERTHOUGHT: Final = re.compile(
    r"[,;]?\s*(?:\(?optional\)?|required|keyword[- ]only|\(?(?:by\s+)?defaults?\b(?:\s+(?:to|is)\b|\s*[=:])?.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_ARTICLE: Final = re.compile(r"\A(?:an?|the)\s+", re.IGNORECASE)
_MANY: Final = re.compile(
    r"\A(list|lists|array|arrays|sequence|sequences|iterable|collection|set|sets|tuple|tuples)\s+(?:of|\[of\])\s+(.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_MAPPING: Final = re.compile(
    r"\A(?:dict|dicts|dictionary|mapping|object)\s+(?:of|from|mapping|that\s+maps|with)\s+(.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_CHARS_MAX: Final = 500
_DEPTH_MAX: Final = 8


def hint_of(words: str, depth: int = 0) -> str:
    """Return the hint that these words mean; words that mean none come back as they are, or as no hint at all."""
    text = words.strip().rstrip(".").strip("`").strip()
    if not text or len(text) > _CHARS_MAX or depth > _DEPTH_MAX:
        return text
    while (shorter := _AFTERTHOUGHT.sub("", text).strip().rstrip(",").strip()) != text and shorter:
        text = shorter
    text = _unwrapped(_ARTICLE.sub("", text))
    if text.startswith("{") and text.endswith("}"):
        return f"Literal[{text[1:-1].strip()}]"
    alternatives = list(_alternatives(text))
    if len(alternatives) > 1:
        return " | ".join(hint_of(each, depth + 1) or "object" for each in alternatives)
    if many := _MANY.match(text):
        return f"list[{hint_of(many[2], depth + 1)}]"
    if mapping := _MAPPING.match(text):
        key, to, value = re.sub(r"\A(.+?)\s*(?:→|->)\s*", r"\1 to ", mapping[1], count=1).partition(" to ")
        return f"dict[{hint_of(key, depth + 1)}, {hint_of(value, depth + 1)}]" if to else "dict"
    return _word(text)


def _unwrapped(text: str) -> str:
    """Leave out brackets around all of it, as in `sequence of (int or str)`."""
    inner = text[1:-1]
    return inner if text.startswith("(") and text.endswith(")") and not {"(", ")"} & set(inner) else text


def _word(text: str) -> str:
    lower = text.lower()
    for spelling in (lower, lower.removesuffix("s"), re.sub(r"ies\Z", "y", lower)):
        if spelling in _WORDS:
            return _WORDS[spelling]
    if lower.removesuffix("s") in {"str", "int", "float", "bool", "dict", "list", "date", "datetime"}:
        return lower.removesuffix("s")
    return text


def _alternatives(text: str) -> Iterator[str]:
    """Yield what stands between the words `or`, bars and commas, outside of brackets and quotes."""
    start = depth = 0
    quote = ""
    parts: list[tuple[int, int]] = []
    for found in re.finditer(r"['\"]|[\[({]|[\])}]|\s+or\s+|\s*\|\s*|\s*,\s*(?:or\s+)?", text):
        sign = found[0]
        if sign in {"'", '"'}:
            quote = "" if quote == sign else quote or sign
        elif quote:
            continue
        elif sign in "[({":
            depth += 1
        elif sign in "])}":
            depth -= 1
        elif not depth:
            parts.append((start, found.start()))
            start = found.end()
    parts.append((start, len(text)))
    yield from (text[begin:end] for begin, end in parts if text[begin:end].strip())
