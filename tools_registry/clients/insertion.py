"""Puts one more entry into the text of a configuration file, or takes some out, and leaves the rest as it is.

Comments, order and layout of the file are a user's. A text in which the place cannot be found is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ..errors import ConfigurationRefused
from .places import Keys

# A comment or string without its end goes to the end of the text, or each that begins in it would be looked at anew.
_COMMENT = r"//[^\n]*|/\*[^*]*+(?:\*++[^*/][^*]*+)*+(?:\*++/?)?"
_BLANK = re.compile(rf"(?:\s|{_COMMENT})*")
_STRING = re.compile(r'(?<!\\)"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_TOKEN = re.compile(rf'(?<!\\)"(?:[^"\\]|\\.)*"|{_COMMENT}|[{{}}\[\]]', re.DOTALL)
_INDENT = re.compile(r'\n([ \t]+)"')
_YAML_INDENT = re.compile(r"([ ]+)[^\s#]")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TOML_KEY = re.compile(r'([A-Za-z0-9_-]+)|((?<!\\)"(?:[^"\\]|\\.)*")')


class Insertion(NamedTuple):
    """A text in three parts; only `added` is new."""

    before: str
    added: str
    after: str


def into_json(text: str, keys: Keys, name: str, entry: Mapping[str, object]) -> Insertion:
    """Insert an entry into the object at `keys` of JSON, with comments or without; what leads to it is made.

    Raises `ConfigurationRefused` for a text of another form.
    """
    if not text.strip("\ufeff \t\r\n"):
        return Insertion(text, _as_json(_nested(keys, name, entry), "  ") + "\n", "")
    at, missing = _blank(text, 1 if text.startswith("\ufeff") else 0), list(keys)
    _expect(text, at, "{")
    while missing:
        start = next((value for key, value in _members(text, at) if key == missing[0]), None)
        if start is None:
            break
        _expect(text, start, "{")
        at = start
        missing.pop(0)
    first, *inner = [*missing, name]
    value = _nested(tuple(inner[:-1]), inner[-1], entry) if inner else entry
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    return _with_member(text, at, first, _as_json(value, unit), unit, depth=len(keys) - len(missing))


def into_toml(text: str, keys: Keys, name: str, entry: Mapping[str, object]) -> Insertion:
    """Insert an entry as a table at the end of TOML; values are texts, lists or objects of texts, numbers, truths."""
    path = ".".join(each if _BARE_KEY.fullmatch(each) else json.dumps(each) for each in (*keys, name))
    lines = [f"[{path}]", *(f"{key} = {_as_toml(value)}" for key, value in entry.items())]
    blank = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    return _insertion(text, blank + "\n".join(lines) + "\n", "")


def into_yaml(text: str, keys: Keys, name: str, entry: Mapping[str, object]) -> Insertion:
    """Insert an entry into the block at one top-level key of YAML, which is made where it is not there."""
    (key,) = keys
    head = re.search(rf"^{re.escape(key)}:[ \t]*(?:#.*)?\r?(?:\n|\Z)", text, re.MULTILINE)
    below = text[head.end() :] if head else ""
    pad = next((found[1] for line in below.splitlines() if (found := _YAML_INDENT.match(line))), "  ")
    # The values' JSON is YAML too.
    lines = [f"{pad}{name}:", *(f"{pad * 2}{each}: {json.dumps(value)}" for each, value in entry.items())]
    block = "\n".join(lines) + "\n"
    if head is None:
        blank = "" if not text or text.endswith("\n") else "\n"
        return _insertion(text, f"{blank}{key}:\n{block}", "")
    start = text[: head.end()]
    return _insertion(start, ("" if start.endswith("\n") else "\n") + block, below)


def out_of_json(text: str, keys: Keys, names: Collection[str]) -> str:
    """Return JSON, with comments or without, that lacks members of the object at `keys`.

    Raises `ConfigurationRefused` for a text of another form.
    """
    at = _blank(text, 1 if text.startswith("\ufeff") else 0)
    for key in keys:
        at = next((value for name, value in _members(text, at) if name == key), -1)
        if at < 0:
            raise _unclear()
        _expect(text, at, "{")
    begins = _blank(text, at + 1)
    cuts: list[tuple[int, int]] = []
    kept_end = None
    for name, value in _members(text, at):
        end = _end_of_value(text, value)
        comma = _blank(text, end)
        follows = text[comma : comma + 1] == ","
        if name not in names:
            kept_end = end
        elif follows:
            cuts.append((begins, _blank(text, comma + 1)))
        else:
            start = begins if kept_end is None else _blank(text, kept_end)
            cuts = [cut for cut in cuts if cut[0] < start]
            cuts.append((start, end))
        begins = _blank(text, comma + 1) if follows else comma
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def out_of_toml(text: str, keys: Keys, names: Collection[str]) -> str:
    """Return TOML without the tables, and the tables below them, that `keys` and one of the names lead to."""
    path = [*keys]

    def goes(line: str) -> bool:
        parts = [plain or json.loads(quoted) for plain, quoted in _TOML_KEY.findall(line)]
        return parts[: len(path)] == path and len(parts) > len(path) and parts[len(path)] in names

    kept, leaves = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            leaves = goes(line.partition("]")[0])
        if not leaves:
            kept.append(line)
    return "".join(kept)


def out_of_yaml(text: str, keys: Keys, names: Collection[str]) -> str:
    """Return YAML without members of the block at one top-level key; of a block that they empty the key stays."""
    (key,) = keys
    kept: list[str] = []
    inside = leaves = False
    pad: str | None = None
    for line in text.splitlines(keepends=True):
        found = _YAML_INDENT.match(line)
        if line.strip() and not line[0].isspace() and not line.startswith("#"):
            inside, leaves, pad = line.startswith(f"{key}:"), False, None
        elif inside and found is not None:
            pad = pad or found[1]
            if found[1] == pad:
                leaves = line.partition(":")[0].strip().strip("'\"") in names
        if not leaves:
            kept.append(line)
    return "".join(kept)


def _as_toml(value: object) -> str:
    """Return a value as TOML: the JSON of all but objects is that too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {json.dumps(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def _insertion(before: str, added: str, after: str) -> Insertion:
    """Return the parts, the added lines ending as the others do."""
    windows = "\r\n" in before or "\r\n" in after
    return Insertion(before, added.replace("\n", "\r\n") if windows else added, after)


def _nested(keys: Keys, name: str, entry: Mapping[str, object]) -> Mapping[str, object]:
    value: Mapping[str, object] = {name: entry}
    for key in reversed(keys):
        value = {key: value}
    return value


def _as_json(value: object, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit)


def _with_member(text: str, at: int, key: str, value: str, unit: str, *, depth: int) -> Insertion:
    """Put a member first into the object that begins at `at`."""
    inside = unit * (depth + 1)
    member = f"\n{json.dumps(key)}: {value}".replace("\n", f"\n{inside}")
    rest = text[at + 1 :]
    if not text.startswith("}", _blank(text, at + 1)):
        member += "," if rest[:1].isspace() else f",\n{inside}"
    elif not rest[: _blank(rest, 0)].strip():  # nothing but blanks up to its end
        member, rest = f"{member}\n{unit * depth}", rest.lstrip()
    return _insertion(text[: at + 1], member, rest)


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Give the keys of the object that begins at `at`, each with where its value begins."""
    at = _blank(text, at + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise _unclear()
        colon = _blank(text, key.end())
        _expect(text, colon, ":")
        value = _blank(text, colon + 1)
        yield str(json.loads(key[0], strict=False)), value
        at = _blank(text, _end_of_value(text, value))
        if text[at : at + 1] == ",":
            at = _blank(text, at + 1)
        elif text[at : at + 1] != "}":
            raise _unclear()


def _end_of_value(text: str, at: int) -> int:
    if text[at : at + 1] in ("{", "["):
        depth = 0
        for token in _TOKEN.finditer(text, at):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
            if depth == 0 and token[0] in "}]":
                return token.end()
        raise _unclear()
    value = _STRING.match(text, at) or _SCALAR.match(text, at)
    if value is None:
        raise _unclear()
    return value.end()


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _expect(text: str, at: int, mark: str) -> None:
    if text[at : at + 1] != mark:
        raise _unclear()


def _unclear() -> ConfigurationRefused:
    return ConfigurationRefused("it is not laid out as its client writes it. Add the entry by hand.")
