"""Three replicas, nginx, PostgreSQL and an S3 server on this machine, and what is asked of them; see `make cluster`.

    python -m tests.cluster.drive checks|faults|growth [--only NAME]… [--store moto|s3rver|none] [--clients N] [--together]
        [--agents N] [--slower N] [--loopback] [--verbose]

`faults` kills, fills and parts, and runs under a command that gives it a throw-away machine alone. Each thing is a line:
what, whether it held, and what was seen. Exits 1 if something failed, never for a figure without a goal.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from .checks import CHECKS
from .harness import Running, cluster
from .official import SUITES
from .report import Report


def check(chosen: argparse.Namespace, report: Report) -> None:
    """All checks on one cluster."""
    with _running(chosen) as running:
        for name, look in (CHECKS | SUITES).items():
            if not chosen.only or name in chosen.only:
                _revive(running)
                report.of(name, look, running)


def _running(chosen: argparse.Namespace):
    return cluster(store=chosen.store, isolated=not chosen.loopback)


def _revive(running: Running) -> None:
    """Start what a check that failed left dead."""
    for name, replica in running.replicas.items():
        if replica.process.poll() is not None:
            running.start(name)


def fault(chosen: argparse.Namespace, report: Report) -> None:
    """All faults, on a cluster each, as one may be left in any state; or `together` on one, which takes less time."""
    from .faults import FAULTS

    with ExitStack() as stack:
        shared: list[Running] = []

        def made(*, own: bool = False, **more: Any) -> AbstractContextManager[Running]:
            if own or any(more.values()) or not chosen.together:
                return _fresh(chosen, **more)
            if not shared:
                shared.append(stack.enter_context(_fresh(chosen)))
            _revive(shared[0])
            return nullcontext(shared[0])

        for name, look in FAULTS.items():
            if not chosen.only or name in chosen.only:
                report.of(name, look, made)


def _fresh(chosen: argparse.Namespace, **more: Any) -> AbstractContextManager[Running]:
    return cluster(store=chosen.store, isolated=not chosen.loopback, clients=chosen.clients, **more)


def grow(chosen: argparse.Namespace, report: Report) -> None:
    """The figures of growth."""
    from .growth import FIGURES

    for name, look in FIGURES.items():
        if not chosen.only or name in chosen.only:
            report.of(name, look, report, chosen)


PARTS = {"checks": check, "faults": fault, "growth": grow}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--only", action="append", help="one of its names; may be repeated")
    parser.add_argument("--store", choices=("moto", "s3rver", "none"), default="moto", help="none: a folder")
    parser.add_argument("--loopback", action="store_true", help="use no network namespaces")
    parser.add_argument("--clients", type=int, default=200, help="how many work during a fault")
    parser.add_argument("--together", action="store_true", help="one fault after the other on one cluster")
    parser.add_argument("--agents", type=int, default=10_000, help="how many are simulated")
    parser.add_argument("--slower", type=float, default=10, help="how many times as long agents think as stated there")
    parser.add_argument("--verbose", action="store_true", help="show where a check failed")
    chosen = parser.parse_args()
    chosen.store = None if chosen.store == "none" else chosen.store
    if chosen.part == "faults" and os.environ.get("SEALAB_DISPOSABLE") != "1":
        print(
            "this kills processes, parts networks and fills disks: use `make cluster WRAPPER=…` with a command that gives"
            " it a throw-away machine",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is removed on this path too
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{chosen.part}: Python {platform.python_version()}, {os.cpu_count()} processors, load average {load}",
        flush=True,
    )
    report = Report(verbose=chosen.verbose)
    PARTS[chosen.part](chosen, report)
    if report.failed:
        print(f"\n{len(report.failed)} failed: {', '.join(report.failed)}", flush=True)
    return int(bool(report.failed))


if __name__ == "__main__":
    sys.exit(main())
