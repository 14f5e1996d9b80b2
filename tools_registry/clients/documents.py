"""Reads the configuration files of other clients: JSON, JSON with comments, TOML and YAML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import ConfigurationRefused
from .places import Keys

_BYTES_MAX = 64 * 1024 * 1024
_JSON5_BYTES_MAX = 2 * 1024 * 1024
"""The parser of JSON with comments takes a second per megabyte; files that people write are far smaller."""

_TOML_LINE_MAX = 5_000
"""A name of many parts takes the parser quadratic time."""


def read(path: Path) -> object:
    """Return what a file says, None where there is no such file. Raises `ConfigurationRefused`."""
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _BYTES_MAX:
            raise ConfigurationRefused(f"it is larger than {_BYTES_MAX // 1024**2} MB. Look into it.")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationRefused(f"it cannot be read: {error.strerror}. Change its permissions.") from None
    return parsed(content, path.suffix)


def parsed(content: bytes, suffix: str) -> object:
    """Return what the content of a file says; `suffix` says its form. Raises `ConfigurationRefused`."""
    try:
        text = content.decode("utf-8-sig")
        match suffix.lower():
            case ".toml":
                return _toml(text)
            case ".yaml" | ".yml":
                return _yaml(text)
            case _:
                return _json(text)
    except UnicodeDecodeError:
        raise ConfigurationRefused("it is not UTF-8 text. Save it as UTF-8.") from None
    except RecursionError:
        raise ConfigurationRefused("it is nested too deeply. Make it flatter.") from None
    except ValueError as error:
        raise ConfigurationRefused(f"it cannot be parsed: {' '.join(str(error).split())}. Correct it there.") from None


def objects_at(document: object, keys: Keys, above: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Give the objects that a path of keys leads to, each with the key that `*` stood for."""
    if not keys:
        if isinstance(document, Mapping):
            yield above, document
        return
    if not isinstance(document, Mapping):
        return
    if keys[0] == "*":
        for key, below in document.items():
            yield from objects_at(below, keys[1:], str(key))
    elif keys[0] in document:
        yield from objects_at(document[keys[0]], keys[1:], above)


def _toml(text: str) -> object:
    if any(len(line) > _TOML_LINE_MAX for line in text.splitlines()):
        raise ValueError(f"a line is longer than {_TOML_LINE_MAX:,} characters")
    return tomllib.loads(text)


def _json(text: str) -> object:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except ValueError:
        if len(text) > _JSON5_BYTES_MAX:
            raise
    import json5

    return json5.loads(text)


def _yaml(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
