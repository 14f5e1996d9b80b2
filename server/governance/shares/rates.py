"""How many runs of one caller, and of one tenant, may begin within a minute: a sliding window, counted exactly."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress

from ....sandbox.errors import Busy

WINDOW_SECONDS = 60.0


class Rates:
    """The begins of the last minute of one tenant; 0 is no bound. `clock` gives seconds, as `time.monotonic`.

    Who has not begun a run for a minute is forgotten, so it holds a time for each run of the last minute at most.
    """

    def __init__(self, caller_max: int, tenant_max: int, clock: Callable[[], float]) -> None:
        self.caller_max = caller_max
        self.tenant_max = tenant_max
        self._clock = clock
        self._callers: OrderedDict[str, deque[float]] = OrderedDict()  # who began one the longest ago first
        self._tenant: deque[float] = deque()

    def take(self, caller: str) -> None:
        """Count one begin. Raises `Busy`, and counts nothing, where the caller or the tenant has had as many."""
        now = self._forget()
        own = self._own(caller, now)
        for begun, most, whose, name in (
            (own, self.caller_max, "caller", "CALLER_RUNS_PER_MINUTE"),
            (self._tenant, self.tenant_max, "tenant", "TENANT_RUNS_PER_MINUTE"),
        ):
            if most and len(begun) >= most:
                raise Busy(
                    f"This {whose} has begun {most} runs within a minute, as many as one may ({name}).",
                    max(1, math.ceil(begun[-most] + WINDOW_SECONDS - now)),
                    limit=name,
                )
        own.append(now)
        self._callers[caller] = own
        self._callers.move_to_end(caller)
        self._tenant.append(now)

    def take_back(self, caller: str) -> None:
        """Count the newest begin of a caller no more: it was refused after all."""
        own = self._callers.get(caller)
        if own:
            with suppress(ValueError):
                self._tenant.remove(own[-1])
            own.pop()
            if not own:
                del self._callers[caller]

    def next_free_seconds(self, caller: str) -> float:
        """Return how long it is until a begin of a caller here is older than a minute; a whole one without any."""
        now = self._forget()
        own = self._own(caller, now)
        return own[0] + WINDOW_SECONDS - now if own else WINDOW_SECONDS

    def of(self, caller: str) -> int:
        """Return how many runs of a caller began within the last minute."""
        return len(self._own(caller, self._forget()))

    def of_tenant(self) -> int:
        """Return how many runs of all callers began within the last minute."""
        self._forget()
        return len(self._tenant)

    def _own(self, caller: str, now: float) -> deque[float]:
        own = self._callers.get(caller, deque())
        while own and own[0] <= now - WINDOW_SECONDS:
            own.popleft()
        return own

    def _forget(self) -> float:
        now = self._clock()
        since = now - WINDOW_SECONDS
        while self._tenant and self._tenant[0] <= since:
            self._tenant.popleft()
        while self._callers:
            caller, begun = next(iter(self._callers.items()))
            if begun[-1] > since:
                break
            del self._callers[caller]
        return now
