"""Skills that are there already: found when another of the same is saved, or a program writes one again."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from ....tools_registry.search.tokens import stem, words
from ...base.errors import ServerError
from ...base.identity import Right
from ...base.lru import Lru
from .recordings import Replay
from .search import call_of
from .testing import plan_of, run_tests

if TYPE_CHECKING:
    from ....skills_db.content import SkillDraft, SkillSummary
    from ....skills_db.skills import SkillStore, StoredSkill
    from ...governance.caller import Caller
    from ..host_functions.broker import Calls
    from ..runs.executor import Executor

LOOKED_AT_MAX = 5
"""Skills that a new one is compared with, the likest first."""
LIKE = 0.25
"""Share of the words of two skills' names and descriptions that both have, from which on their doing is compared."""
SAME = 0.8
"""The share from which on they are the same where they take the same."""
THIRD = 3
"""The run of one program from which on a hint is given."""
_PROGRAMS_MAX = 10_000
_PROGRAM_CHARS_MAX = 100_000
_LINES_LEAST = 2
_DEFINES_MAX = 50
"""Functions of a program that are compared with skills."""
_DEFINES = re.compile(r"^(?:async )?def ([^\W\d]\w{0,63})\(([^)\n]{0,500})\)", re.MULTILINE)
_SKILLS_OWN = ("save_skill(", "call_skill(")


def alike(store: SkillStore, draft: SkillDraft) -> list[tuple[float, StoredSkill]]:
    """Return the skills with as many parameters and similar words as a new one, each with its share, best first."""
    taken, own = len(parameters_in(draft.signature)), words_of(draft)
    shares = {
        each.name: likeness(own, words_of(each))
        for each in store.summaries().values()
        if each.name != draft.name and len(parameters_in(each.signature)) == taken
    }
    likest = sorted((name for name, share in shares.items() if share >= LIKE), key=lambda name: -shares[name])
    return [(shares[name], store.load(name)) for name in likest[:LOOKED_AT_MAX]]


async def same_as(
    executor: Executor,
    draft: SkillDraft,
    found: Collection[tuple[float, StoredSkill]],
    *,
    caller: Caller,
    within: Calls | None,
) -> StoredSkill | None:
    """Return the skill among those alike that does what the new one does; None where none does.

    That is one of the same code but for its name; one with the same parameters and similar words; or one whose tests
    the new code passes, with the answers of tools that were recorded.
    """
    code = shape_of(draft)
    for share, each in found:
        same_names = parameters_in(each.draft.signature) == parameters_in(draft.signature)
        if shape_of(each.draft) == code or (same_names and share >= SAME):
            return each
    for _, each in found:
        theirs = plan_of(each.draft)
        if not each.draft.tests.strip() or "assert" not in each.draft.tests:
            continue
        tried = replace(
            theirs, draft=replace(each.draft, code=draft.code), entry=plan_of(draft).entry, docstring_has_examples=False
        )
        try:
            await run_tests(executor, tried, caller=caller, within=within, replay=Replay(each.draft.recordings))
        except ServerError:
            continue
        return each
    return None


def parameters_in(signature: str) -> tuple[str, ...]:
    """Return the names of the parameters that a signature, or the part of it in parentheses, has."""
    inner = signature.partition("(")[2].rpartition(")")[0] if "(" in signature else signature
    return tuple(_named(inner))


def _named(inner: str) -> Iterator[str]:
    depth = begin = 0
    for place, sign in enumerate(f"{inner},"):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth <= 0:
            name = inner[begin:place].strip().lstrip("*").partition(":")[0].partition("=")[0].strip()
            begin = place + 1
            if name.isidentifier():
                yield name


def words_of(skill: SkillDraft | SkillSummary) -> frozenset[str]:
    """Return the stems of the words of a skill's name and description."""
    return frozenset(map(stem, words(f"{skill.name} {skill.description[:500]}")))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which share of all words two skills have in common, 0 to 1."""
    return len(one & other) / max(len(one | other), 1)


def shape_of(draft: SkillDraft) -> str:
    """Return the code without blanks and comments, and without its own name."""
    lines = (line.partition("#")[0].split() for line in draft.code.splitlines())
    return re.sub(rf"\b{re.escape(draft.name)}\b", "_", " ".join(" ".join(line) for line in lines if line))


@dataclass(slots=True)
class SkillHints:
    """Says of a program that ran well which skill it writes again, or that it ran for the third time.

    It looks at names and text alone, in time by the length of the program, and only at the skills that are known
    without asking the database. One hint at most is given for a run.
    """

    known: Callable[[], Mapping[str, SkillSummary]]
    _ran: Lru[tuple[str, bytes], int] = field(default_factory=lambda: Lru(_PROGRAMS_MAX))
    _saved: Lru[tuple[str, bytes], str] = field(default_factory=lambda: Lru(_PROGRAMS_MAX))
    _by_words: tuple[object, dict[tuple[frozenset[str], object], SkillSummary]] = field(
        default_factory=lambda: (None, {})
    )

    def saved(self, scope: str, code: str, name: str) -> None:
        """Note that a program of a caller was saved as a skill."""
        self._saved[scope, _digest(code)] = name

    def of(self, caller: Caller, run_id: str, code: str) -> str | None:
        """Return the hint for a program that a caller has run well once more; None where there is none."""
        if len(code) > _PROGRAM_CHARS_MAX or any(call in code for call in _SKILLS_OWN):
            return None
        key = caller.scope, _digest(code)
        times = self._ran[key] = self._ran.get(key, 0) + 1
        defines = islice(_DEFINES.finditer(code), _DEFINES_MAX) if caller.identity.may(Right.SKILLS_READ) else ()
        for match in defines:
            if (skill := self._written_again(match[1], match[2])) is not None:
                return f"There is a skill that does this: call {call_of(skill.signature)} instead of writing it."
        if times != THIRD or len(code.strip().splitlines()) < _LINES_LEAST:
            return None
        if (name := self._saved.get(key)) is not None:
            return f"This program is the skill {name}, and ran for the third time: call skills.{name}(…)."
        return (
            f'This program ran for the third time. save_skill("NAME", from_run="{run_id}") keeps it as skills.NAME(…), '
            "and what differs becomes parameters."
        )

    def _written_again(self, name: str, inner: str) -> SkillSummary | None:
        taken, known = parameters_in(inner), self.known()
        same = known.get(name)
        if same is not None and parameters_in(same.signature) == taken:
            return same
        if self._by_words[0] is not known:
            by_words: dict[tuple[frozenset[str], object], SkillSummary] = {}
            for each in known.values():
                by_words.setdefault((_words_in(each.name), parameters_in(each.signature)), each)
            self._by_words = known, by_words
        own = _words_in(name)
        return self._by_words[1].get((own, taken)) if taken and len(own) > 1 else None


def _words_in(name: str) -> frozenset[str]:
    return frozenset(name.casefold().split("_")) - {""}


def _digest(code: str) -> bytes:
    return sha256("\n".join(line.rstrip() for line in code.strip().splitlines()).encode(errors="replace")).digest()
