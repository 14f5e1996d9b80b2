"""`linecache` as guest code: the lines that code itself put into `cache`, since no source has a file here."""

__all__ = ["checkcache", "clearcache", "getline", "lazycache"]

cache = {}
"""File name to (size, time, lines, full name), as code that writes code enters it."""


def getline(filename, lineno, module_globals=None):
    lines = getlines(filename)
    return lines[lineno - 1] if 1 <= lineno <= len(lines) else ""


def getlines(filename, module_globals=None):
    entry = cache.get(filename)
    return entry[2] if entry is not None and len(entry) > 1 else []


updatecache = getlines


def clearcache():
    cache.clear()


def checkcache(filename=None):
    """Do nothing: no file changes."""


def lazycache(filename, module_globals):
    """Return False: no module gives its source."""
    return False
