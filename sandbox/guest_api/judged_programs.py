"""Has the host judge the calls of tools in a program, and in the skills that it names, before the program runs.

A program is refused for a wrong name, a wrong argument or a missing `await` only where the call is certain to be made
and its failure is not caught; for what is not allowed in a skill, where the skill is certain to make that call.

Where a source calls tools by names that it computes, the texts in the program and its skills that may be such names
count as calls too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

from ..errors import Refused
from ..guest.guest import GUEST
from ..guest.host_channel import HostGone
from ..job import Json
from . import hosted_skills, hosted_tools
from .planned_calls import CALLS_MAX, SkillUse, SourceCalls, read_program

SKILLS_MAX: Final = 50
"""Skills whose source is read for one program; calls of further ones are judged when they are made."""
NAMES_MAX: Final = 20
"""Texts that are sent since they may be names of tools."""
_LEVELS_MAX: Final = 8
"""How deep skills are followed that use skills."""


def why_refused(source: str, namespace: Mapping[str, object], within: str | None = None) -> Refused | None:
    """Return why a program may not run, or None where it may. `within` is the skill whose tests it is."""
    program = read_program(source, namespace, own_skill=within)
    if program is None:
        return None
    read: list[tuple[SourceCalls, SkillUse | None]] = [(program, None), *_skills_in(program.skills())]
    calls = [call for each, use in read for call in each.calls(use)]
    if any(each.computes_names for each, _use in read):
        named = [call for each, use in read for call in each.tool_names(use)][:NAMES_MAX]
        calls += named[: max(0, CALLS_MAX - 1 - len(calls))]
    if not calls:
        return None
    hides = {"hides": True} if any(each.hides for each, _use in read) else {}
    match GUEST.call_host("judge_calls", {"calls": calls[:CALLS_MAX], **hides}):
        case {"message": str(message), "line": int(line), "instead": str(instead)}:
            return Refused(message, line=line, type="ToolError", instead=instead)
    return None


def _skills_in(uses: list[SkillUse]) -> Iterator[tuple[SourceCalls, SkillUse]]:
    """Read the skills that a program uses, and those that they use."""
    seen: set[str] = set()
    for _level in range(_LEVELS_MAX):
        uses = [use for use in uses if use.key not in seen][: SKILLS_MAX - len(seen)]
        if not uses:
            return
        seen.update(use.key for use in uses)
        sources = _sources([use.key for use in uses])
        used: dict[str, SkillUse] = {}
        for use in uses:
            match sources.get(use.key):
                case {"code": str(code), "entry": str(entry)}:
                    names = {**hosted_tools.helpers(), **hosted_skills.helpers(), **hosted_tools.bridge_names(code)}
                    program = read_program(code, names, entry=entry, entered=use.sites)
                    if program is not None:
                        yield program, use
                        for inner in program.skills():
                            used[inner.key] = _within(use, inner, used.get(inner.key))
        uses = list(used.values())


def _within(outer: SkillUse, inner: SkillUse, before: SkillUse | None) -> SkillUse:
    """Return how a program uses a skill that it uses through another one, and as it did `before`."""
    if before is not None:
        known = None if before.sites is None or inner.sites is None else (*before.sites, *inner.sites)
        return replace(before, sites=known)
    caught, certain = inner.caught or outer.caught, inner.certain and outer.certain
    return SkillUse(inner.key, outer.line, caught, certain, inner.sites)


def _sources(keys: list[str]) -> Mapping[str, Json]:
    """Return the sources of skills, as far as the host gives them: the call of another will say what is wrong."""
    try:
        return cast("Mapping[str, Json]", GUEST.call_host("skill_sources", {"names": list(keys)}) or {})
    except HostGone:
        raise
    except Exception:  # noqa: BLE001 - no protection depends on it
        return {}
