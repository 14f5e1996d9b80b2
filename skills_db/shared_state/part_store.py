"""Bounds that hold over all servers on a PostgreSQL database: each server has a part of a bound, for a time.

The parts of a bound never add up to more than it. Every call blocks: make it from a thread. Times are those of the
database's clock, so those of the servers need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..engine import Database
from ..postgresql import CLOCK
from ..sql import insert, sa
from ..tables import PART

_LOCK = 0x5EA1AB0E
"""A number that no other program is likely to take as its advisory lock."""


@dataclass(frozen=True, slots=True)
class PartAsked:
    """What a server asks of one bound: `amount` of `most` in all, for so long, of which it needs `needed` now."""

    most: int
    amount: int
    needed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PartGiven:
    """What it has of it from now on, what the others have together, and how much more those need."""

    amount: int
    of_others: int
    others_lack: int


class PartStore:
    """The parts of all bounds. Any number of stores, threads and programs may share one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def settle(self, holder: str, asked: Mapping[str, PartAsked]) -> Mapping[str, PartGiven]:
        """Change the parts of one server, and return what it has of each bound by the bound's name.

        It is given what it asks for, or what the others leave where that is less: never less than it has already, but
        where its time is up. All changes are made one after another.
        """
        others = sa.select(_PART.resource, sa.func.sum(_PART.granted), sa.func.sum(_PART.wanted)).group_by(
            _PART.resource
        )
        others = others.where(_PART.resource.in_(asked), _PART.holder != holder, _PART.until_time > CLOCK)
        with self._database.transaction(durable=False) as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            of_others = {name: (int(amount), int(lacking)) for name, amount, lacking in connection.execute(others)}
            given: dict[str, PartGiven] = {}
            for name, part in asked.items():
                taken, lacking = of_others.get(name, (0, 0))
                given[name] = PartGiven(max(0, min(part.amount, part.most - taken)), taken, lacking)
            kept = [
                {
                    "resource": name,
                    "holder": holder,
                    "granted": given[name].amount,
                    "wanted": max(0, part.needed - given[name].amount),
                    "seconds": part.seconds,
                }
                for name, part in asked.items()
                if given[name].amount or part.needed
            ]
            if kept:
                connection.execute(_KEEP, kept)
            if gone := asked.keys() - {each["resource"] for each in kept}:
                connection.execute(sa.delete(PART).where(_PART.holder == holder, _PART.resource.in_(gone)))
        return given

    def leave(self, holder: str) -> None:
        """Give back all parts of a server that ends, and drop those whose time is long up."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(sa.delete(PART).where((_PART.holder == holder) | (_PART.until_time < CLOCK)))


_PART = PART.c
_KEPT = insert(PART).values(until_time=CLOCK + sa.bindparam("seconds", type_=sa.Double))
_KEEP = _KEPT.on_conflict_do_update(
    index_elements=["resource", "holder"],
    set_={name: _KEPT.excluded[name] for name in ("granted", "wanted", "until_time")},
)
