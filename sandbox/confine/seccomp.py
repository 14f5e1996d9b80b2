"""Security boundary: turns a policy of named system calls into a classic BPF program, and puts it in force.

The program is built once per zygote and only handed over by each worker (seccomp(2)). It looks at the architecture
first, since one number means different calls on different ones: `int 0x80` enters the 32-bit table of an x86-64
kernel, and the x32 table answers to numbers with bit 30 set. What no rule allows is answered with ENOSYS, so that
libraries fall back as they would on an older kernel, and what only an attacker would call ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import libc, numbers

# Actions, from SECCOMP_SET_MODE_FILTER in seccomp(2).
ALLOW = 0x7FFF0000
KILL = 0x80000000
ERRNO = 0x00050000

# struct seccomp_data, from seccomp(2): int nr; u32 arch; u64 instruction_pointer; u64 args[6].
_OFFSET_NUMBER = 0
_OFFSET_ARCH = 4
_OFFSET_ARGUMENTS = 16

_X32_SYSCALL_BIT = 0x40000000

# Classic BPF operations, from the kernel's Documentation/networking/filter.rst.
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP = 0x05  # BPF_JMP | BPF_JA
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_SECCOMP_SET_MODE_FILTER = 1
_LONGEST_JUMP = 255


def refuse(number: int) -> int:
    """Make the action that answers a call with the error `number` instead of making it."""
    return ERRNO | number


@dataclass(frozen=True, slots=True)
class OneOf:
    """The lower 32 bits of the argument are one of `values`."""

    argument: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoBits:
    """None of the bits of `mask` is set in the lower 32 bits of the argument."""

    argument: int
    mask: int


@dataclass(frozen=True, slots=True)
class Null:
    """The argument is zero in all its 64 bits: a pointer that points nowhere."""

    argument: int


@dataclass(frozen=True, slots=True)
class Own:
    """The argument is the process id of the worker that puts the filter in force."""

    argument: int


Condition = OneOf | NoBits | Null | Own


@dataclass(frozen=True, slots=True)
class Rule:
    """One call that is allowed, and why.

    With `when`, it is allowed if all conditions of one of its alternatives hold, and else answered by `otherwise`.
    The kernel reads pointers after the filter did, so no condition can judge what an argument points to.
    """

    why: str
    when: tuple[tuple[Condition, ...], ...] = ()
    otherwise: int = ERRNO | errno.EPERM


@dataclass(frozen=True, slots=True)
class Policy:
    """Calls by name: what is allowed, what is refused with an error, and what ends the process.

    A name that an architecture does not have is skipped there.
    """

    allowed: Mapping[str, Rule]
    refused: Mapping[str, int]
    deadly: frozenset[str]


@dataclass(frozen=True, slots=True)
class Filter:
    """A program ready to be loaded: `code` in the kernel's form, and where the worker's own pid goes in it."""

    code: bytes
    own_pid_offsets: tuple[int, ...]

    def load(self) -> None:
        """Put the filter in force for this process, for good. Raises OSError; needs no_new_privs (seccomp(2))."""
        code = bytearray(self.code)
        for offset in self.own_pid_offsets:
            struct.pack_into("=I", code, offset, os.getpid())
        buffer = (ctypes.c_char * len(code)).from_buffer(code)
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
        libc.syscall("seccomp", numbers.number("seccomp"), _SECCOMP_SET_MODE_FILTER, 0, program)


def build(policy: Policy, architecture: numbers.Architecture | None = None) -> Filter:
    """Assemble the policy for the architecture, by default this machine's."""
    architecture = architecture or numbers.ARCHITECTURE
    program = _Program()
    program.load(_OFFSET_ARCH)
    program.unless_equal_return(architecture.audit_arch, KILL)
    program.load(_OFFSET_NUMBER)
    if architecture.has_x32:
        program.if_at_least_return(_X32_SYSCALL_BIT, KILL)

    table = architecture.numbers
    plain = [table[name] for name, rule in policy.allowed.items() if not rule.when and name in table]
    program.match(plain, ALLOW)
    for name, rule in policy.allowed.items():
        if rule.when and name in table:
            program.match_rule(table[name], rule)
    for action in sorted(set(policy.refused.values())):
        program.match((table[name] for name, its in policy.refused.items() if its == action and name in table), action)
    program.match((table[name] for name in sorted(policy.deadly) if name in table), KILL)
    program.answer(refuse(errno.ENOSYS))
    return Filter(program.assemble(), program.own_pid_offsets())


class _Program:
    """Instructions in the order they run; a jump names the label it goes to until `assemble` counts the distance."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, str | int, str | int, int]] = []
        self._labels: dict[str, int] = {}
        self._own_pids: list[int] = []

    def load(self, offset: int) -> None:
        self._instructions.append((_LOAD, 0, 0, offset))

    def answer(self, action: int) -> None:
        self._instructions.append((_RETURN, 0, 0, action))

    def unless_equal_return(self, value: int, action: int) -> None:
        self._instructions.append((_JUMP_EQUAL, 1, 0, value))
        self.answer(action)

    def if_at_least_return(self, value: int, action: int) -> None:
        self._instructions.append((_JUMP_AT_LEAST, 0, 1, value))
        self.answer(action)

    def match(self, values: Iterable[int], action: int) -> None:
        """Answer with `action` when the loaded word is one of `values`; a jump reaches 255 instructions, no more."""
        pending = list(values)
        while pending:
            chunk, pending = pending[: _LONGEST_JUMP - 5], pending[_LONGEST_JUMP - 5 :]
            for index, value in enumerate(chunk):
                self._instructions.append((_JUMP_EQUAL, len(chunk) - index, 0, value))
            self._instructions.append((_JUMP, 0, 0, 1))
            self.answer(action)

    def match_rule(self, number: int, rule: Rule) -> None:
        """Answer the call `number` by its rule; the loaded word is the number before and after."""
        after = self._new_label()
        self._instructions.append((_JUMP_EQUAL, 0, after, number))
        for alternative in rule.when:
            failed = self._new_label()
            for condition in alternative:
                self._test(condition, failed)
            self.answer(ALLOW)
            self._place(failed)
        self.answer(rule.otherwise)
        self._place(after)

    def _test(self, condition: Condition, failed: str) -> None:
        low = _OFFSET_ARGUMENTS + 8 * condition.argument
        self.load(low)
        match condition:
            case OneOf(values=values):
                for index, value in enumerate(values[:-1]):
                    self._instructions.append((_JUMP_EQUAL, len(values) - 1 - index, 0, value))
                self._instructions.append((_JUMP_EQUAL, 0, failed, values[-1]))
            case NoBits(mask=mask):
                self._instructions.append((_JUMP_BITS, failed, 0, mask))
            case Null():
                self._instructions.append((_JUMP_EQUAL, 0, failed, 0))
                self.load(low + 4)
                self._instructions.append((_JUMP_EQUAL, 0, failed, 0))
            case Own():
                self._own_pids.append(len(self._instructions))
                self._instructions.append((_JUMP_EQUAL, 0, failed, 0))

    def _new_label(self) -> str:
        label = f"L{len(self._labels)}"
        self._labels[label] = -1
        return label

    def _place(self, label: str) -> None:
        self._labels[label] = len(self._instructions)

    def own_pid_offsets(self) -> tuple[int, ...]:
        return tuple(8 * index + 4 for index in self._own_pids)

    def assemble(self) -> bytes:
        """Give the array of `struct sock_filter`: u16 code, u8 jump if true, u8 jump if false, u32 operand."""
        return b"".join(
            struct.pack("=HBBI", operation, self._distance(at, if_true), self._distance(at, if_false), operand)
            for at, (operation, if_true, if_false, operand) in enumerate(self._instructions)
        )

    def _distance(self, at: int, target: str | int) -> int:
        return target if isinstance(target, int) else self._labels[target] - at - 1
