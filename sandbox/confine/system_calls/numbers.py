"""System call numbers by architecture: see `syscalls`, which a script generates."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from .syscalls import TABLES


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a filter must know of one machine.

    `audit_arch` is the AUDIT_ARCH value of linux/audit.h: the ELF machine with the bits for 64 bit and little-endian.
    """

    name: str
    audit_arch: int
    numbers: Mapping[str, int]
    has_x32: bool = False


def _numbers(architecture: str) -> Mapping[str, int]:
    pairs = (each.partition("=") for each in TABLES[architecture].split())
    return {name: int(number) for name, _, number in pairs}


_64_BIT_LITTLE_ENDIAN = 0xC0000000
_ELF_MACHINE_X86_64 = 62
_ELF_MACHINE_AARCH64 = 183

X86_64 = Architecture("x86_64", _64_BIT_LITTLE_ENDIAN | _ELF_MACHINE_X86_64, _numbers("x86_64"), has_x32=True)
AARCH64 = Architecture("aarch64", _64_BIT_LITTLE_ENDIAN | _ELF_MACHINE_AARCH64, _numbers("aarch64"))

ARCHITECTURES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

ARCHITECTURE = ARCHITECTURES.get(platform.machine().lower(), Architecture("unknown", 0, {}))
"""This machine's; without numbers where there is no table for it."""


def number(name: str) -> int:
    """Give this machine's number of the call `name`; OSError where it has none."""
    try:
        return ARCHITECTURE.numbers[name]
    except KeyError:
        raise OSError(f"no system call number for {name} on {ARCHITECTURE.name}") from None
