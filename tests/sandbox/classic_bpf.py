"""A classic BPF machine, as small as the filters need: it lets a filter of any architecture be tried on this one."""

from __future__ import annotations

import struct

ALLOW = 0x7FFF0000
KILL = 0x80000000


def answer(code: bytes, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """Run the program over a `struct seccomp_data` and give the action it returns (seccomp(2))."""
    words = [argument & (1 << 64) - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("=IIQ6Q", number, arch, 0, *words)
    program = list(struct.iter_unpack("=HBBI", code))
    accumulator = 0
    at = 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case 0x05:
                at += operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"the kernel would not load operation {operation:#x}")
