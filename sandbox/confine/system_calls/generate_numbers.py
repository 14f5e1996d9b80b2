"""Writes `syscalls.py` from the kernel's own headers.

    python -m sealab.sandbox.confine.system_calls.generate_numbers

Run it where the headers of Linux are installed (Debian: linux-libc-dev) with a C preprocessor, whenever `allow_list`
names a new call. arm64 uses the generic table (asm-generic/unistd.h) with the options that its own asm/unistd.h sets.
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

from .allow_list import NAMES

_HEAD = '''"""System call numbers of each machine, name by name. Written by `generate_numbers`; not to be edited."""

TABLES = {
'''
_WIDTH = 108
_HEADERS = {
    "x86_64": ("<asm/unistd_64.h>", ()),
    "aarch64": (
        "<asm-generic/unistd.h>",
        ("__ARCH_WANT_RENAMEAT", "__ARCH_WANT_NEW_STAT", "__ARCH_WANT_SET_GET_RLIMIT", "__ARCH_WANT_SYS_CLONE3"),
    ),
}


def numbers(architecture: str) -> dict[str, int]:
    """Read the numbers of every call named in the policy that the architecture has, in the policy's order."""
    header, options = _HEADERS[architecture]
    command = ["cpp", "-dM", *(f"-D{option}" for option in options), "-"]
    macros = subprocess.run(command, input=f"#include {header}\n", capture_output=True, text=True, check=True).stdout
    values = dict(re.findall(r"^#define (__NR\w+) (\w+)$", macros, re.MULTILINE))
    found: dict[str, int] = {}
    for name in NAMES:
        value = values.get(f"__NR_{name}")
        while value is not None and not value.isdigit():
            value = values.get(value)
        if value is not None:
            found[name] = int(value)
    return found


def written(tables: dict[str, dict[str, int]]) -> str:
    """Return the module that holds these tables."""
    text = _HEAD
    for architecture, table in tables.items():
        words = " ".join(f"{name}={number}" for name, number in table.items())
        lines = textwrap.wrap(words, _WIDTH, break_on_hyphens=False)
        text += "\n".join([f'    "{architecture}": """', *(f"        {line}" for line in lines), '    """,\n'])
    return text + "}\n"


def main() -> None:
    """Write both tables beside this module."""
    source = written({architecture: numbers(architecture) for architecture in _HEADERS})
    Path(__file__).with_name("syscalls.py").write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main()
