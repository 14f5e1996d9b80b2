"""Security boundary: turns a policy of named system calls into a classic BPF program, and puts it in force.

The program is built once per zygote and only handed over by each worker (seccomp(2)). It looks at the architecture
first, since one number means different calls on different ones: `int 0x80` enters the 32-bit table of an x86-64
kernel, and the x32 table answers to numbers with bit 30 set. What no rule allows is answered with ENOSYS, so that
libraries fall back as they would on an older kernel, and what only an attacker would call ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .. import libc
from . import numbers

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


@dataclass(frozen=True, slots=True, eq=False)
class SyscallFilter:
    """A program ready to be loaded: `code` in the kernel's form, and where the worker's own pid goes in it."""

    code: bytes
    own_pid_offsets: tuple[int, ...]

    def load(self) -> None:
        """Put the filter in force for this process, for good. Raises OSError; needs no_new_privs (seccomp(2))."""
        calls, _code = _ready(self, os.getpid())
        libc.make(calls)

    def make_ahead(self) -> None:
        """Make what the first process of a pid namespace will load, so that it need not."""
        _ready(self, 1)


@functools.cache  # which also keeps the code where it is
def _ready(made: SyscallFilter, pid: int) -> tuple[tuple[libc.Call], bytearray]:
    """Return the call that loads the `struct sock_fprog` of the worker `pid`, and the code whose address that holds."""
    code = bytearray(made.code)
    for offset in made.own_pid_offsets:
        struct.pack_into("=I", code, offset, pid)
    # Its first byte shows where it lies.
    program = struct.pack("@HP", len(code) // _BYTES, ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return (libc.ready("seccomp", numbers.number("seccomp"), _SECCOMP_SET_MODE_FILTER, 0, program),), code


def build(policy: Policy, architecture: numbers.Architecture | None = None) -> SyscallFilter:
    """Assemble the policy for the architecture, by default this machine's.

    The answer is found by halving the numbers, so that no call waits for a long list of comparisons, nor the kernel,
    which tries the program with every number when it is loaded.
    """
    architecture = architecture or numbers.ARCHITECTURE
    answers = _answers(policy, architecture.numbers)
    highest = max(answers, default=0)
    runs: list[tuple[int, _Code]] = []  # the first number of each run of equal answers
    for number in range(highest + 2):
        answer = answers.get(number, _answer(refuse(errno.ENOSYS)))
        if not runs or runs[-1][1] != answer:
            runs.append((number, answer))
    program = [
        _Instruction(_LOAD, operand=_OFFSET_ARCH),
        _Instruction(_JUMP_EQUAL, if_true=1, operand=architecture.audit_arch),
        *_answer(KILL),
        _Instruction(_LOAD, operand=_OFFSET_NUMBER),
    ]
    if architecture.has_x32:
        program += [_Instruction(_JUMP_AT_LEAST, if_false=1, operand=_X32_SYSCALL_BIT), *_answer(KILL)]
    program += _halved(runs)
    own_pids = tuple(_BYTES * index + _OPERAND_AT for index, its in enumerate(program) if its.takes_own_pid)
    return SyscallFilter(b"".join(its.encoded() for its in program), own_pids)


@dataclass(frozen=True, slots=True)
class _Instruction:
    """One `struct sock_filter`: the jumps count the instructions to leave out."""

    operation: int
    if_true: int = 0
    if_false: int = 0
    operand: int = 0
    takes_own_pid: bool = False

    def encoded(self) -> bytes:
        return struct.pack("=HBBI", self.operation, self.if_true, self.if_false, self.operand)


_BYTES = 8
_OPERAND_AT = 4
_Code: TypeAlias = tuple[_Instruction, ...]
"""Instructions that can stand anywhere, since jumps are relative, and that return or fall out at their end."""


def _answers(policy: Policy, table: Mapping[str, int]) -> dict[int, _Code]:
    answers = {table[name]: _answer(KILL) for name in policy.deadly if name in table}
    answers |= {table[name]: _answer(action) for name, action in policy.refused.items() if name in table}
    return answers | {table[name]: _judged(rule) for name, rule in policy.allowed.items() if name in table}


def _answer(action: int) -> _Code:
    return (_Instruction(_RETURN, operand=action),)


def _judged(rule: Rule) -> _Code:
    """Try each alternative; what fails one goes on to the next, and in the end to the refusal."""
    if not rule.when:
        return _answer(ALLOW)
    return (*(its for alternative in rule.when for its in _alternative(alternative)), *_answer(rule.otherwise))


def _alternative(conditions: tuple[Condition, ...]) -> _Code:
    code = _answer(ALLOW)
    for condition in reversed(conditions):
        code = (*_tested(condition, len(code)), *code)
    return code


def _tested(condition: Condition, rest: int) -> _Code:
    """Fall out at the end when the condition holds, else leave out the `rest` instructions after it as well."""
    low = _OFFSET_ARGUMENTS + 8 * condition.argument
    load = _Instruction(_LOAD, operand=low)
    match condition:
        case OneOf(values=values):
            more = tuple(
                _Instruction(_JUMP_EQUAL, if_true=len(values) - 1 - index, operand=value)
                for index, value in enumerate(values[:-1])
            )
            return (load, *more, _Instruction(_JUMP_EQUAL, if_false=rest, operand=values[-1]))
        case NoBits(mask=mask):
            return (load, _Instruction(_JUMP_BITS, if_true=rest, operand=mask))
        case Null():
            return (
                load,
                _Instruction(_JUMP_EQUAL, if_false=rest + 2),
                _Instruction(_LOAD, operand=low + 4),
                _Instruction(_JUMP_EQUAL, if_false=rest),
            )
        case Own():
            return (load, _Instruction(_JUMP_EQUAL, if_false=rest, takes_own_pid=True))


def _halved(runs: Sequence[tuple[int, _Code]]) -> _Code:
    """Go to the code of the run that the loaded number lies in."""
    if len(runs) == 1:
        return runs[0][1]
    middle = len(runs) // 2
    below, above = _halved(runs[:middle]), _halved(runs[middle:])
    first = runs[middle][0]
    if len(below) <= _LONGEST_JUMP:
        return (_Instruction(_JUMP_AT_LEAST, if_true=len(below), operand=first), *below, *above)
    far = _Instruction(_JUMP, operand=len(below))
    return (_Instruction(_JUMP_AT_LEAST, if_false=1, operand=first), far, *below, *above)
