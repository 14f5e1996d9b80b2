"""What `random` takes from the machine, taken from the run: see `guest.randomness`."""

from __future__ import annotations

import os
import random
from random import Random
from typing import Any, Final

from ....guest.randomness import seed_number, urandom

_seed_in_c: Final = Random.__base__.seed  # type: ignore[union-attr]  # `_random.Random`
_seed_in_python: Final = Random.seed


def install() -> None:
    """Let nothing of this process take random bytes from elsewhere. Facades that are built later give what is here."""
    os.urandom = urandom  # `uuid` reads it there
    vars(random)["_urandom"] = urandom  # `SystemRandom`, and `secrets` with it
    Random.seed = _seed  # type: ignore[method-assign]  # for all its instances
    Random.__init__ = _initialize  # type: ignore[method-assign]  # as above
    random.seed = vars(random)["_inst"].seed  # the method was bound before


def _seed(self: Random, a: Any = None, version: int = 2) -> None:
    """Initialize the internal state from a seed, or from random bytes."""
    _seed_in_python(self, seed_number() if a is None else a, version)


def _initialize(self: Random, x: Any = None) -> None:
    # C has seeded it from the machine, and a class may replace `seed` with one that leaves that as it is.
    if type(self).seed is Random.seed:
        _seed(self, x)
    else:
        _seed_in_c(self, seed_number())
        self.seed(x)
    vars(self)["gauss_next"] = None
