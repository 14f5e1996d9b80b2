"""What was acknowledged, while whoever does it is killed at random moments, on SQLite and PostgreSQL: see `make crash`.

    python -m tests.benchmarks.crash [--saves N] [--runs N] [--sessions N] [--kills N] [--only PART]… [--database KIND]… [--seed N]

A line for each part and database says what was done, what was killed, and how much is wrong. Exits 1 where something is.
The seed decides the moments, as far as it can.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import partial

from .places import place_of
from .runs import runs_survive
from .saves import ServerLife, StoreLife, saves_survive
from .schedules import schedules_survive
from .sessions import sessions_survive

SHOWN_MAX = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saves", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--kills", type=int, default=1000, help="of those that fire schedules")
    parser.add_argument("--only", action="append", help="store, server, runs, sessions or schedules; may be repeated")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    parts = {
        "store": partial(saves_survive, life=StoreLife, saves=options.saves),
        "server": partial(saves_survive, life=ServerLife, saves=options.saves),
        "runs": partial(runs_survive, runs=options.runs),
        "sessions": partial(sessions_survive, sessions=options.sessions),
        "schedules": partial(schedules_survive, kills=options.kills),
    }
    print(f"seed {options.seed}")
    broken = False
    for name in options.only or parts:
        for kind in options.database or ["sqlite", "postgresql"]:
            began = time.monotonic()
            with place_of(kind) as place:
                figures, wrong = parts[name](place, dice=random.Random(options.seed))
            print(f"{name:<10}{kind:<12}{len(wrong)} wrong; {figures}; {time.monotonic() - began:.0f} s", flush=True)
            for each in wrong[:SHOWN_MAX]:
                print(f"  {each[:600]}")
            broken = broken or bool(wrong)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
