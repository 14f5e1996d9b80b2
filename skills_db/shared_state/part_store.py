"""Bounds that hold over all servers on a PostgreSQL database: each server has a part of a bound, for a time.

The parts of a bound never add up to more than it. Every call blocks: make it from a thread. Times are those of the
database's clock, so those of the servers need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..engine import Database
from ..postgresql import CLOCK
from ..sql import sa

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
        with self._database.transaction(durable=False) as session:
            session.execute(_LOCKED, {"lock": _LOCK})
            told = {"names": list(asked), "holder": holder}
            others = {name: (int(amount), int(lacking)) for name, amount, lacking in session.execute(_OTHERS, told)}
            given: dict[str, PartGiven] = {}
            for name, part in asked.items():
                of_others, others_lack = others.get(name, (0, 0))
                given[name] = PartGiven(max(0, min(part.amount, part.most - of_others)), of_others, others_lack)
            kept = [
                {
                    "name": name,
                    "holder": holder,
                    "amount": given[name].amount,
                    "lacking": max(0, part.needed - given[name].amount),
                    "seconds": part.seconds,
                }
                for name, part in asked.items()
                if given[name].amount or part.needed
            ]
            gone = [name for name, part in asked.items() if not (given[name].amount or part.needed)]
            if kept:
                session.execute(_KEEP, kept)
            if gone:
                session.execute(_DROP, {"names": gone, "holder": holder})
        return given

    def leave(self, holder: str) -> None:
        """Give back all parts of a server that ends, and drop those whose time is long up."""
        with self._database.transaction(durable=False) as session:
            session.execute(_LEAVE, {"holder": holder})


_LOCKED = sa.text("SELECT pg_advisory_xact_lock(:lock)")
_OTHERS = sa.text(
    "SELECT resource, sum(granted), sum(wanted) FROM sealab_part "  # noqa: S608 - no value is in it
    f"WHERE resource IN :names AND holder <> :holder AND until_time > {CLOCK} GROUP BY resource"
).bindparams(sa.bindparam("names", expanding=True))
_KEEP = sa.text(
    "INSERT INTO sealab_part (resource, holder, granted, wanted, until_time) "  # noqa: S608 - as above
    f"VALUES (:name, :holder, :amount, :lacking, {CLOCK} + :seconds) ON CONFLICT (resource, holder) DO UPDATE "
    "SET granted = excluded.granted, wanted = excluded.wanted, until_time = excluded.until_time"
)
_DROP = sa.text("DELETE FROM sealab_part WHERE holder = :holder AND resource IN :names").bindparams(
    sa.bindparam("names", expanding=True)
)
_LEAVE = sa.text(f"DELETE FROM sealab_part WHERE holder = :holder OR until_time < {CLOCK}")  # noqa: S608 - as above
