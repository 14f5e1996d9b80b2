"""`configparser` of text: `read` opens files in the real one."""

from __future__ import annotations

import configparser
from typing import Any, NoReturn

__all__ = ["ConfigParser", "RawConfigParser"]


class RawConfigParser(configparser.RawConfigParser):
    """Parses INI text, given by `read_string`, `read_file` (an iterable of lines) or `read_dict`."""

    def read(self, filenames: Any, encoding: str | None = None) -> NoReturn:
        """Refuse: there are no files to open."""
        raise NotImplementedError("files cannot be opened here; use parser.read_string(read_file(name))")


class ConfigParser(RawConfigParser, configparser.ConfigParser):
    """Parses INI text with interpolation."""
