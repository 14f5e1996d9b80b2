"""Whose values are hidden: those of one run or request, and what their tokens may reveal to it.

A security boundary. Where values are not given back to the model, a token must not be found by trying values: by hiding
one candidate after the other until a token comes out that was seen before. So the scope's own tokens are for values
that a tool or a file gave, and for few others; the rest get tokens that hold for this run alone. They are restored as
any others are, but say nothing of what another token stands for.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...base.errors import HostWorkRefused
from .known_values import KnownValues

if TYPE_CHECKING:
    from ....skills_db.vault import Value

VALUES_MAX = 50_000
"""Values that one run or request may bring: no more than are kept in memory for sure."""
BYTES_MAX = 8_000_000
"""Bytes that they may have together."""
STORED_MAX = 5_000_000
"""Values that one run or request may bring into the vault from tables, which are not kept in memory as words."""
STORED_BYTES_MAX = 500_000_000
"""Bytes that they may have together."""
_SCOPES_MAX = 10_000
_LOOKED_AT = 32
_SHRUNK_AFTER = 4
"""Waits until a wait that has doubled is halved again to the first."""


class Brake:
    """Lets each scope do something `most` times, and then not until it has waited `seconds`.

    Where it `grows`, each wait is twice as long as the one before, up to a day, and shrinks as slowly.

    A scope costs its caller one made-up header, so none makes it forget another: it forgets those alone whose waits
    are over and have shrunk again. Where it knows as many as it may, all further ones are counted as one.
    """

    def __init__(self, most: int, seconds: float, *, grows: bool = False) -> None:
        self.most = most
        self._seconds = seconds
        self._grows = grows
        self._scopes: OrderedDict[str, _Spent] = OrderedDict()
        self._others = self._unspent()
        self._changing = threading.Lock()

    def room(self, scope: str) -> int:
        """Return how often the scope may do it now."""
        with self._changing:
            return max(0, self.most - self._current(scope).count)

    def spend(self, scope: str, count: int) -> None:
        """Note that it was done so often."""
        with self._changing:
            spent = self._current(scope)
            if spent is not self._others:
                self._scopes[scope] = spent
            spent.count += count
            if spent.count >= self.most:
                spent.until = time.monotonic() + spent.seconds

    def _current(self, scope: str) -> _Spent:
        spent = self._scopes.get(scope)
        if spent is None:
            if self._is_full():
                spent = self._others
            else:
                return self._unspent()
        now = time.monotonic()
        if now >= spent.until:
            if self._grows:
                longer = 2 * spent.seconds if spent.count >= self.most else spent.seconds / 2
                spent.seconds = min(max(longer, self._seconds), _DAY)
            spent.count, spent.until = 0, now + spent.seconds
        return spent

    def _unspent(self) -> _Spent:
        return _Spent(time.monotonic() + self._seconds, self._seconds)

    def _is_full(self) -> bool:
        """Forget what is as good as new among those looked at longest ago; return whether there is room for no more."""
        now = time.monotonic()
        for _ in range(min(_LOOKED_AT, _SCOPES_MAX) if len(self._scopes) >= _SCOPES_MAX else 0):
            scope, spent = self._scopes.popitem(last=False)
            if now < spent.until + (_SHRUNK_AFTER * spent.seconds if self._grows else 0):
                self._scopes[scope] = spent
        return len(self._scopes) >= _SCOPES_MAX


@dataclass(slots=True)
class _Spent:
    """How often something was done; counted anew from a moment on, which a wait puts off by `seconds`."""

    until: float
    seconds: float
    count: int = 0


_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ShownToken:
    """A token as it is shown, and the type of its value."""

    token: str
    type: str


@dataclass(slots=True)
class RunTokens:
    """One run or request, as its values are hidden.

    With a `brake`, the scope's own tokens are for values that were `met`, and for as many others as that allows. With
    `values` of its own, it has none of the scope's: neither its tokens nor its values.
    """

    scope: str
    brake: Brake | None = None
    values: KnownValues | None = None
    salt: bytes = field(default_factory=lambda: os.urandom(16))
    met: set[str] = field(default_factory=set)
    """What tools and files gave this run."""
    tokens: dict[Value, ShownToken] = field(default_factory=dict)
    """The tokens that hold for this run alone."""
    brought: int = 0
    brought_bytes: int = 0
    stored: int = 0
    stored_bytes: int = 0

    def bring(self, texts: Iterable[str]) -> None:
        """Count values that are new. Raises `HostWorkRefused` where they are too many."""
        for text in texts:
            self.brought += 1
            self.brought_bytes += len(text.encode("utf-8", "surrogatepass"))
        if self.brought > VALUES_MAX or self.brought_bytes > BYTES_MAX:
            raise HostWorkRefused(
                f"There are more than {VALUES_MAX} new personal values here, or {BYTES_MAX} bytes of them, the most "
                "that one run may bring. Work on less at once, such as a part of a file."
            )

    def store(self, count: int, size: int) -> None:
        """Count values of a table that are new to the vault. Raises `HostWorkRefused` where they are too many."""
        self.stored += count
        self.stored_bytes += size
        if self.stored > STORED_MAX or self.stored_bytes > STORED_BYTES_MAX:
            raise HostWorkRefused(
                f"There are more than {STORED_MAX} new personal values here, or {STORED_BYTES_MAX} bytes of them, the "
                "most that one run may bring. Work on less at once, such as a part of a file."
            )

    def may_share(self) -> int:
        """Return how many values that no tool or file gave may get the scope's own tokens now."""
        if self.values is not None:
            return 0
        return VALUES_MAX if self.brake is None else self.brake.room(self.scope)

    def shared(self, count: int) -> None:
        """Note how many did."""
        if self.brake is not None and count:
            self.brake.spend(self.scope, count)
