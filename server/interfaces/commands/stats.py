"""`sealab stats`: what runs used, by day, tenant or person: CPU seconds and tokens, and the tokens of direct calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from ....skills_db.tenants.tenant_store import CpuDayStore
from ....skills_db.tenants.used import Use
from ...governance.scopes import principal_of
from ...use_cases.runs.ledger import CHARS_PER_TOKEN, TOKENIZER
from ...use_cases.tenants.contents import operators_database
from .command import Command
from .terminal import Here, Output, moment_of

By = Literal["day", "tenant", "who"]


def _stats(
    here: Here, *, tenant: str | None = None, who: str | None = None, since: str = "7d", by: By = "day"
) -> Output:
    """Show what runs used, and what the same calls of tools would have cost the model directly.

    tenant: of one tenant
    who PRINCIPAL: of one person
    since TIME: from when on, such as 12h, 7d or a date; kept are 35 days, of UTC
    by: add it up by day, tenant or person
    """
    first = datetime.fromtimestamp(moment_of(since, "--since"), UTC).strftime("%Y-%m-%d")
    sums: dict[str, Use] = {}
    with operators_database(here.settings, here.home) as database:
        for key, use in CpuDayStore(database).since(first).items():
            person = principal_of(key.principal)
            if tenant in {None, key.tenant} and who in {None, person}:
                row = {"day": key.day, "tenant": key.tenant, "who": f"{key.tenant}/{person}"}[by]
                sums[row] = sums.get(row, Use()).plus(use)
    rows = [{by: row, **_told(use)} for row, use in sorted(sums.items())]
    total: Use = Use()
    for use in sums.values():
        total = total.plus(use)
    lines = [_line(str(row[by]), row) for row in rows] + ([_line("in all", _told(total))] if rows else [])
    lines.append(f"Tokens are estimated at {TOKENIZER}.")
    return Output({"since": first, "by": by, "rows": rows, "total": _told(total), "tokenizer": TOKENIZER}, lines)


stats = Command(_stats)


def _told(use: Use) -> dict[str, object]:
    written, read, called, defined = (chars // CHARS_PER_TOKEN for chars in use[2:])
    return {
        "runs": use.runs,
        "cpu_seconds": round(use.seconds, 3),
        "tokens": {"written": written, "read": read},
        "tokens_directly": {"calls": called, "definitions": defined},
    }


def _line(row: str, told: dict[str, object]) -> str:
    tokens, directly = told["tokens"], told["tokens_directly"]
    assert isinstance(tokens, dict)
    assert isinstance(directly, dict)
    return (
        f"{row}  {told['runs']} runs  {told['cpu_seconds']} CPU s  tokens written {tokens['written']}, read "
        f"{tokens['read']}; directly: calls {directly['calls']}, definitions {directly['definitions']}"
    )
