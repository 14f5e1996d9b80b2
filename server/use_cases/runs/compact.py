"""Results as a model reads them with the fewest tokens: flat tables as TOON or Markdown, all else as JSON.

A flat table is a list of at least two objects with the same keys in any order, whose values are texts, numbers,
booleans or null. An object may hold tables beside such values. Everything else stays JSON, of which TOON takes more
tokens.
TOON: https://github.com/toon-format/spec (version 2, tabular arrays and the quoting of texts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias, cast

from ....sandbox.job import Json
from ...base.settings import OutputFormat

ROWS_LEAST = 2
STRING_CHARS_MAX = 200
"""Of a longer text inside a record only so much is shown, where a result is only shown."""

Records: TypeAlias = Sequence[Mapping[str, Json]]

_WORDS = re.compile(r" ?[^\W\d_]+|\d{1,3}| ?[^\w\s]+|_+|\s+")
_WORD_CHARS = 6
_BARE_KEY = re.compile(r"[A-Za-z_][\w.]*")
_QUOTED = re.compile(r'[,:"\\\[\]{}\x00-\x1f\x7f]|^-|^\s|\s$|^$|^(?:true|false|null)$|^[+-]?\d[\d.eE+-]*$')
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def written(value: Json, form: OutputFormat) -> str:
    """Return a result as text in that form; what is not a table is JSON in every form."""
    as_json = json.dumps(value, ensure_ascii=False)
    if form is OutputFormat.JSON or not has_table(value):
        return as_json
    if form is OutputFormat.TOON:
        return _toon(value)
    markdown = _markdown(value) if is_table(value) else None
    if form is OutputFormat.MARKDOWN:
        return as_json if markdown is None else markdown
    return min((as_json, _toon(value), *([] if markdown is None else [markdown])), key=likely_tokens)


def in_form(value: Json, form: OutputFormat) -> Json:
    """Return a table as the text that was asked for, and everything else as it is."""
    asked = form is OutputFormat.TOON or (form is OutputFormat.MARKDOWN and is_table(value))
    return written(value, form) if asked and has_table(value) else value


def why_json(value: Json, form: OutputFormat) -> str | None:
    """Return why a list or object stays JSON although a form for tables was asked for; None where it does not."""
    if form not in {OutputFormat.TOON, OutputFormat.MARKDOWN} or _is_plain(value) or not value:
        return None
    if is_table(value) or (form is OutputFormat.TOON and has_table(value)):
        return None
    return (
        f"JSON, not {form.value}, which takes two or more rows with the same keys, whose values are texts or numbers: "
        "flatten what is nested, and take one table as `result`."
    )


def is_table(value: Json) -> bool:
    """Return whether a value is a flat table."""
    if not isinstance(value, list | tuple) or len(value) < ROWS_LEAST or not isinstance(value[0], Mapping):
        return False
    keys = value[0].keys()
    return bool(keys) and all(
        isinstance(row, Mapping) and row.keys() == keys and all(_is_plain(each) for each in row.values())
        for row in value
    )


def has_table(value: Json) -> bool:
    """Return whether a value is a table, or an object of tables and plain values."""
    if not isinstance(value, Mapping):
        return is_table(value)
    kinds = [is_table(each) for each in value.values()]
    return any(kinds) and all(is_one or _is_plain(each) for is_one, each in zip(kinds, value.values(), strict=True))


def shortened(value: Json) -> Json:
    """Return a value with the long texts inside its records cut; a marker says how many characters are missing."""
    if isinstance(value, Mapping):
        return {key: shortened(each) for key, each in value.items()}
    if not isinstance(value, list | tuple):
        return value
    return [
        {key: _short(each) for key, each in item.items()} if isinstance(item, Mapping) else shortened(item)
        for item in value
    ]


def likely_tokens(text: str) -> int:
    """Return about how many tokens a text takes, to compare forms of one value.

    Counted are words of up to `_WORD_CHARS` letters, groups of up to three digits, and runs of signs and of blanks.
    """
    return sum(-(-len(piece) // _WORD_CHARS) for piece in _WORDS.findall(text))


def _short(value: Json) -> Json:
    if isinstance(value, str) and len(value) > STRING_CHARS_MAX:
        return f"{value[:STRING_CHARS_MAX]}… [{len(value) - STRING_CHARS_MAX} more characters]"
    return shortened(value)


def _is_plain(value: Json) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def _toon(value: Json) -> str:
    if not isinstance(value, Mapping):
        return _toon_table("", cast("Records", value))
    return "\n".join(
        f"{_toon_key(key)}: {_toon_value(each)}"
        if _is_plain(each)
        else _toon_table(_toon_key(key), cast("Records", each))
        for key, each in value.items()
    )


def _toon_table(name: str, rows: Records) -> str:
    keys = list(rows[0])
    head = f"{name}[{len(rows)}]{{{','.join(map(_toon_key, keys))}}}:"
    return "\n".join([head, *("  " + ",".join(_toon_value(row[key]) for key in keys) for row in rows)])


def _toon_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _in_quotes(key)


def _toon_value(value: Json) -> str:
    if isinstance(value, str):
        return _in_quotes(value) if _QUOTED.search(value) else value
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return json.dumps(value)


def _in_quotes(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(each, each) for each in text) + '"'


def _markdown(value: Json) -> str:
    rows = cast("Records", value)
    keys = list(rows[0])
    lines = [[_cell(key) for key in keys], ["-"] * len(keys), *([_cell(row[key]) for key in keys] for row in rows)]
    return "\n".join("|" + "|".join(line) + "|" for line in lines)


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", "").replace("\n", "<br>")
