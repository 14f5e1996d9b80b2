"""The ledger of what the model wrote and read for a run, and of what it would have without sealab, in characters.

Counted is only what there was: the calls that were made and the answers that came, and of definitions those of the
servers whose tools were called, once for each caller of a tenant. That a model would have called the same tools by
itself is an assumption; tokens are characters by four (`CHARS_PER_TOKEN`), on both sides.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ....sandbox.job import Json, Outcome
from ....skills_db.tenants.used import Use
from ...base.stats.run_stats import TOTALS
from .report import Report, brief

if TYPE_CHECKING:
    from .run import Run

CHARS_PER_TOKEN: Final = 4
TOKENIZER: Final = (
    "4 characters a token: against o200k_base within 15 % for code, up to 21 % too few for prose, up to half too few "
    "for JSON of numbers and hashes"
)


def note_use(run: Run, outcome: Outcome, report: Report) -> None:
    """Record a run that has ended, and what it took of the model's context and would have taken; returns at once."""
    request, log = run.request, run.calls.log
    tenant, scope = request.caller.identity.tenant, request.caller.scope
    counted = run.executor.definitions_counted
    written = len(request.code) + (len(_json(request.context_vars)) if request.context_vars else 0)
    read = len(_json(brief(report, layers=False)))
    defined = 0
    for server, chars in log.definitions.items():
        if (scope, server) not in counted:
            counted[scope, server] = True
            defined += chars
    use = Use(0.0, 1, written, read, log.called_chars, defined)
    run.executor.shares.note(scope, use)
    run.executor.recorder.note(
        run.run_id,
        owner=scope,
        duration_ms=outcome.duration_ms,
        status=outcome.status.value,
        isolation=outcome.isolation.value,
        skills=run.calls.skills,
        use=use,
    )
    TOTALS.count_tokens(
        tenant,
        {
            name: chars // CHARS_PER_TOKEN
            for name, chars in zip(("written", "read", "called", "defined"), use[2:], strict=True)
        },
    )


def use_tokens(use: Use) -> dict[str, Json]:
    """Return what of a use is tokens, as lists show it."""
    written, read, called, defined = (chars // CHARS_PER_TOKEN for chars in use[2:])
    return {
        "tokens": {"written": written, "read": read},
        "tokens_directly": {"calls": called, "definitions": defined},
    }


def _json(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
