"""Names of runs: sortable by the time they began, and not to be guessed."""

from __future__ import annotations

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_LETTERS = 10
_RANDOM_LETTERS = 16
_SHIFTS = tuple(5 * place for place in reversed(range(_TIME_LETTERS + _RANDOM_LETTERS)))


def new_run_id() -> str:
    """Return 26 letters and digits: 48 bits of the time in milliseconds, then 80 random bits.

    The form is a ULID's in lower case (Crockford's base 32, without i, l, o, u), so that names sort as the runs began.
    """
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join([_ALPHABET[number >> shift & 31] for shift in _SHIFTS])
