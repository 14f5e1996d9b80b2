"""Says which isolation layers this machine offers, and which of them a real worker had switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from typing_extensions import TypedDict

from ..sandbox import confine
from ..sandbox.errors import SandboxError
from ..sandbox.run import Job
from .app import running
from .home import Home
from .settings import Settings


class LayerFinding(TypedDict):
    """One layer: whether the machine offers it, whether a worker has it on, what was seen, and what to do."""

    layer: str
    available: bool
    active: bool
    why: str
    do: str


class Findings(TypedDict):
    """Every layer; `ok` says that the required level is reached and that a worker ran."""

    ok: bool
    level: str
    required_level: str
    layers: list[LayerFinding]
    problem: str | None


def examined(settings: Settings, home: Home) -> Findings:
    """Try every layer, then run one line of code in a real worker and see what it has on.

    Call it from a process with one thread and no event loop: trying a layer forks.
    """
    probe = confine.probe()
    active, problem = asyncio.run(_layers_of_a_worker(settings, home))
    found = [
        LayerFinding(
            layer=finding.layer,
            available=finding.available,
            active=finding.layer in active,
            why=finding.detail,
            do=finding.remedy,
        )
        for finding in probe.findings
    ]
    known = {finding["layer"] for finding in found}
    own = [
        LayerFinding(layer=layer, available=True, active=True, why="a worker of this server has it on", do="")
        for layer in active
        if layer not in known
    ]
    return Findings(
        ok=problem is None,
        level=probe.level.value,
        required_level=settings.required_level.value,
        layers=own + found,
        problem=problem,
    )


async def _layers_of_a_worker(settings: Settings, home: Home) -> tuple[tuple[str, ...], str | None]:
    """Return the layers that a worker had on, and what kept it from running, or None."""
    try:
        async with running(replace(settings, workers_spare=0), home) as app:
            outcome = await app.pools.run(Job("6 * 7"), _no_calls)
    except SandboxError as error:
        return (), str(error)
    if outcome.result != 42:  # noqa: PLR2004 - 6 * 7
        reason = outcome.error.message if outcome.error else outcome.status.value
        return outcome.layers, f"A worker could not run 6 * 7: {reason}"
    return outcome.layers, None


async def _no_calls(name: str, _arguments: object) -> None:
    raise SandboxError(f"{name} was called by code that calls nothing.")


def as_lines(findings: Findings) -> Iterator[str]:
    """Say the findings for a terminal."""
    for layer in findings["layers"]:
        state = "active" if layer["active"] else ("available, not active" if layer["available"] else "not available")
        yield f"{layer['layer']:<14}{state:<24}{layer['why']}"
        if layer["do"] and not layer["active"]:
            yield f"{'':<14}to do: {layer['do']}"
    yield f"level: {findings['level']} (required: {findings['required_level']})"
    yield "ok" if findings["problem"] is None else findings["problem"]
