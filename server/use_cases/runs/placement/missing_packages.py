"""Says of a module that code cannot import which command of the operator would bring it, where one would."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .....sandbox.guest_names import needs_network
from .....sandbox.job import Isolation, Outcome
from ....base.host_work import Kind, in_thread
from ....base.startup.package_names import distribution_of, installed_distributions
from ...managed_python.full_python import NOT_SET_UP

if TYPE_CHECKING:
    from ...managed_python.full_python import FullPythonInterpreter

HELPERS: Final = frozenset({"mcp", "skills", "tools"})
"""Modules that are made of sealab's own helpers: no other Python has more of them."""
_IMPORT_ERRORS: Final = frozenset({"ImportError", "ModuleNotFoundError"})
_ASKS_PROCESS: Final = re.compile(r' ?Or ask for isolation="process"\.|isolation="process" or ')
_MISSING: Final = re.compile(r"No module named '(\w+)|optional dependency '(\w+)|`Import (\w+)` failed")
"""What Python says of a module that is not there, and pandas of one that it would use."""


async def with_package_hint(full_python: FullPythonInterpreter, outcome: Outcome) -> Outcome:
    """Return the outcome of a run; where it lacks a package, with a hint that names the command which brings it.

    Advice to ask for full Python is left out of the hint where that has no such module either.
    """
    modules = _missing(outcome)
    if outcome.error is None or not modules:
        return outcome
    await in_thread(Kind.FILES, installed_distributions, charged=False)
    why_not = full_python.why_not()
    if why_not == NOT_SET_UP and outcome.isolation is Isolation.RESTRICTED:
        from ...managed_python.first_need import is_locked

        if full_python.is_set_up_by_itself or not is_locked(modules):
            return outcome
        return hinted(outcome, "Full Python has it, once the operator has run `sealab data setup`.")
    if why_not is not None or full_python.has_one_of(modules):
        return outcome
    names = [name for name in map(distribution_of, modules) if name is not None]
    advice = ""
    if full_python.managed() is not None and names:
        advice = f"The operator can add it to full Python by `sealab packages add {' '.join(dict.fromkeys(names))}`."
    return hinted(outcome, advice, in_vain=True)


def without_process(hint: str | None) -> str | None:
    """Take the advice to ask for `process` from a hint: the worker that gave it does not know that it is in vain."""
    return None if hint is None else _ASKS_PROCESS.sub("", hint).strip()


def _missing(outcome: Outcome) -> Collection[str]:
    """Return the top modules for which a run failed, of packages that bring them; none where it was not for that."""
    named: Collection[str] = ()
    if outcome.isolation is Isolation.RESTRICTED and outcome.refusal is not None and outcome.refusal.module:
        named = outcome.refusal.modules
    elif outcome.isolation is Isolation.PROCESS and outcome.error is not None:
        said = _MISSING.search(outcome.error.message) if outcome.error.type in _IMPORT_ERRORS else None
        named = () if said is None else [name for name in said.groups() if name is not None]
    tops = dict.fromkeys(name.partition(".")[0] for name in named)
    return [top for top in tops if top not in HELPERS and top not in sys.stdlib_module_names and not needs_network(top)]


def hinted(outcome: Outcome, advice: str, *, in_vain: bool = False) -> Outcome:
    """Return an outcome with something more in its hint; without the advice to ask for `process` where that is vain."""
    error = outcome.error
    if error is None:
        return outcome
    hint = without_process(error.hint) if in_vain else error.hint
    return replace(outcome, error=replace(error, hint=" ".join(filter(None, (hint, advice))) or None))
