"""Writes `syscalls_x86_64.py` and `syscalls_aarch64.py` from the kernel's own headers.

    python -m sealab.sandbox.confine.system_calls.generate_numbers

Run it where the headers of Linux are installed (Debian: linux-libc-dev) with a C preprocessor, whenever `allow_list`
names a new call. arm64 uses the generic table (asm-generic/unistd.h) with the options that its own asm/unistd.h sets.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .allow_list import NAMES

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


def main() -> None:
    """Write both tables beside this module."""
    for architecture in _HEADERS:
        lines = [f'    "{name}": {number},' for name, number in numbers(architecture).items()]
        source = (
            f'"""System call numbers of {architecture}. Written by `generate_numbers`; not to be edited."""\n\n'
            + "\n".join(["NUMBERS = {", *lines, "}"])
            + "\n"
        )
        target = Path(__file__).with_name(f"syscalls_{architecture}.py")
        target.write_text(source, encoding="utf-8")
        sys.stderr.write(f"{target.name}: {len(lines)} calls\n")


if __name__ == "__main__":
    main()
