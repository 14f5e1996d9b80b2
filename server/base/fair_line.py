"""Who is next of those that wait: each tenant in its turn, and each caller of a tenant in its turn there."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ...sandbox.job import Owner

_T = TypeVar("_T")


class FairLine(Generic[_T]):
    """What waits, by its owners. What one caller has waiting is in its order. Not safe to use from several threads.

    However much one tenant has waiting, the next of another waits for one of each tenant at most.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, deque[_T]]] = {}  # by tenant and caller, who is next first
        self._of_tenant: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._of_tenant.total()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, owner: Owner, item: _T) -> None:
        """Queue something, behind what its caller has waiting already."""
        self._waiting.setdefault(owner.tenant, {}).setdefault(owner.caller, deque()).append(item)
        self._of_tenant[owner.tenant] += 1

    def take(self) -> _T:
        """Return what is next. Raises `IndexError` where nothing waits."""
        if not self._waiting:
            raise IndexError("Nothing waits. Look whether something does first.")
        tenant = next(iter(self._waiting))
        callers = self._waiting.pop(tenant)
        caller = next(iter(callers))
        items = callers.pop(caller)
        item = items.popleft()
        self._count_down(tenant)
        if items:
            callers[caller] = items
        if callers:
            self._waiting[tenant] = callers
        return item

    def newest_of_most(self, owner: Owner) -> _T | None:
        """Take out the newest item of whoever has most waiting, for one more of this owner.

        It is of the tenant with most, and there of the caller with most. None where that is this owner, or as good.
        """
        tenant = owner.tenant
        if self._of_tenant:
            most, count = self._of_tenant.most_common(1)[0]
            if count > self._of_tenant[tenant] + 1:
                tenant = most
        callers = self._waiting.get(tenant, {})
        caller = max(callers, key=lambda each: len(callers[each]), default=None)
        own = len(callers.get(owner.caller, ())) if tenant == owner.tenant else -1
        if caller is None or (tenant == owner.tenant and len(callers[caller]) <= own + 1):
            return None
        item = callers[caller].pop()
        self._count_down(tenant)
        if not callers[caller]:
            del callers[caller]
        if not callers:
            del self._waiting[tenant]
        return item

    def drop(self, is_over: Callable[[_T], bool]) -> None:
        """Take out what no longer waits for anything."""
        for tenant, callers in list(self._waiting.items()):
            for caller, items in list(callers.items()):
                left = deque(item for item in items if not is_over(item))
                self._of_tenant[tenant] -= len(items) - len(left)
                if left:
                    callers[caller] = left
                else:
                    del callers[caller]
            if not callers:
                del self._waiting[tenant]
                del self._of_tenant[tenant]

    def any(self, is_so: Callable[[_T], bool]) -> bool:
        """Return whether that is so of something that waits."""
        return any(is_so(item) for callers in self._waiting.values() for items in callers.values() for item in items)

    def _count_down(self, tenant: str) -> None:
        self._of_tenant[tenant] -= 1
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
