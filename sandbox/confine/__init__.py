"""Keeps a worker that runs hostile native code from reaching anything.

probe = confine.probe()                     # what this machine offers, found by trying
plan = confine.prepare(probe, required=…)   # once, in the zygote, after its imports; leaves root for good
confine.prove(plan)                         # a trial worker does nothing that it must not
pid = confine.fork(plan)                    # per worker: 0 in the worker
layers = confine.enter(plan, keep_fds=…)    # in the worker, before it reads a line of code
"""

from ..levels import Level, Probe, default_level, require
from .confine_worker import enter, fork
from .confine_zygote import prepare
from .overlay import see_anew
from .plan import Plan
from .probing import probe, probe_overlay
from .self_test import prove, with_overlay

__all__ = [
    "Level",
    "Plan",
    "Probe",
    "default_level",
    "enter",
    "fork",
    "prepare",
    "probe",
    "probe_overlay",
    "prove",
    "require",
    "see_anew",
    "with_overlay",
]
