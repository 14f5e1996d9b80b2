"""Runs a script of a skill's folder as a program of its own, with the folder's files read-only beside it.

The files are written below the worker's own scratch directory when a run first needs them, so whatever a script does to
them ends with the worker.
"""

from __future__ import annotations

import base64
import io
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import cast

from ..guest.guest import GUEST

_PLACE = "/tmp/skills"  # noqa: S108 - the worker's own
_SHOWN_CHARS_MAX = 2000


class ScriptFailed(RuntimeError):
    """A script ended with an exit code other than 0."""

    __module__ = "builtins"


def folder_of(key: str) -> str:
    """Return the folder of a version of a skill, `name@version`, with all its files, where modules are looked for."""
    name, _, version = key.partition("@")
    folder = Path(_PLACE, key)
    if not folder.exists():
        files = GUEST.call_host("skill_files", {"name": name, "version": int(version), "path": None})
        for path, data in cast("Mapping[str, str]", files).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(base64.b64decode(data))
            target.chmod(0o444)
        for place, _folders, _files in os.walk(folder, topdown=False):
            os.chmod(place, 0o555)  # noqa: S103 - takes the right to write away
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return str(folder)


def run(key: str, path: str, words: Sequence[str]) -> str:
    """Run a script with words, in the current directory, and return what it prints.

    Raises `ScriptFailed` for an exit code other than 0, and what the script raises.
    """
    folder = folder_of(key)
    script = os.path.join(folder, path)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)
    error_output = io.StringIO()
    before = sys.argv, list(sys.path), set(sys.modules)
    sys.argv, sys.path[:0] = [script, *map(str, words)], [os.path.dirname(script)]
    try:
        with redirect_stdout(output), redirect_stderr(error_output):
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in {None, 0}:
            said = (
                str(end.code)
                if isinstance(end.code, str)
                else error_output.getvalue().strip() or _printed(output).strip()
            )
            code = 1 if isinstance(end.code, str) else end.code
            raise ScriptFailed(f"{path} ended with exit code {code}: {said[-_SHOWN_CHARS_MAX:]}") from None
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        for name in set(sys.modules) - before[2]:  # another script may have a neighbour of that name
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
                del sys.modules[name]
        GUEST.write_error(error_output.getvalue())
    return _printed(output)


def _printed(output: io.TextIOWrapper) -> str:
    output.flush()
    return cast("io.BytesIO", output.buffer).getvalue().decode(errors="replace")
