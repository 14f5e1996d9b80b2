"""Tokens in a program and its variables under `PRIVACY=auto`: the code gets the values that they stand for.

A security boundary. Inside the code values are real, so that they compare with what tools and files give. The source
itself keeps its tokens: in tracebacks, in questions to the user, and where the run is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from ....sandbox.job import Job, Json
from ...governance.caller import Caller
from ..privacy import Privacy, holds_token
from ..token_texts import TOKEN


@dataclass(frozen=True, slots=True)
class ProgramTokens:
    """What became of the tokens in a program: how many different ones are values, and which stand for none."""

    values: int = 0
    withheld: Mapping[str, int] = field(default_factory=dict)
    """How many stay tokens by the policy, by type."""
    unknown: tuple[str, ...] = ()
    literals: Mapping[str, Json] = field(default_factory=dict, repr=False)


async def with_values(privacy: Privacy, caller: Caller, job: Job, *, run: str) -> tuple[Job, ProgramTokens]:
    """Return a job whose program has values in place of tokens, and what became of these.

    Raises `RequestRefused` where too many are unknown, and `PrivacyFailed`.
    """
    if not privacy.filters:
        return job, ProgramTokens()
    job = replace(job, tells_reads=True)
    tokens = dict.fromkeys(match[0] for match in TOKEN.finditer(job.code)) if "[" in job.code else {}
    in_variables = holds_token(job.context_vars, near=True)
    if not tokens and not in_variables:
        return job, ProgramTokens()
    asked: Json = [list(tokens), job.context_vars if in_variables else {}]
    restored = await privacy.restored_for_code(caller, asked, run=run, leaves=True)
    values, variables = cast("tuple[list[Json], Mapping[str, Json]]", restored.content)
    literals = {token: value for token, value in zip(tokens, values, strict=True) if value != token}
    changed = replace(job, literals=literals, context_vars=variables if in_variables else job.context_vars)
    return changed, ProgramTokens(restored.count, dict(restored.kept), restored.unknown, literals)
