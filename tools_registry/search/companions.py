"""Fills an answer to a task: the tools that the first ones need, and what else their server does of what was asked.

The words of a task name what is to be changed, seldom what must be read before: who rents cars in a city before their
prices, the channels before a message. Tools say it by their names and parameters: one that takes a `channel` needs one
that reads channels and takes none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .indexing import MOST_PARAMETERS, Searchable
from .tokens import STOP_WORDS, stem, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

# So many are ranked by the query alone.
FIRST = 5
# A wish in sentences has words such as "my", "the" and "please"; a few key words name one tool.
LEAST_STOP_WORDS = 2
MOST_CANDIDATES = 50
MOST_FILLED = 20
SERVERS_BEST = 4
COVERED = 0.8
SMALL_SERVER = 15
# Chosen on AgentDojo's tasks and 30 of our own; around these values most change the tasks found whole by 0 to 2.
SERVER_WEIGHT = 0.5
WHOLE_SERVER = 2.0
LEAST_SHARE, CLEAR_SHARE = 0.2, 0.6
NAME_WEIGHT = 0.9
STEP_WEIGHT = 0.2
NEED_WEIGHT = 0.5
COPY_COST = 0.6
NEEDED_PARAMETER, NEEDED_NOUN, NEEDED_WORD = 1.0, 0.6, 0.4
# What a tool needs that was chosen to fill is less sure.
FILLED_TRUST = 0.5
# A reader of more than what is needed, the drafts of all emails, comes after that of nothing else.
SPECIAL = 3.0
COMMON = 0.6
LEAST_FOR_COMMON = 5
LONGEST_SENTENCE = 150

_READS = """
    browse check count describe discover explore fetch fetcher find finder get getter list lister load look lookup open
    query read reader retrieve search searcher show view
"""
_WRITES = """
    add append apply approve archive assign attach book buy cancel change close comment complete copy create delete
    deploy disable download edit enable execute export generate insert invite kill leave make mark merge move pay place
    post publish put reject remove rename replace reply reschedule reserve reset restart run save schedule send set
    share start stop submit transfer update upload write
"""
_GENERAL = """
    code codes content current data detail details end first format formats ids info information key keys last limit
    name names new next number numbers offset old option options page path paths query recent source start target text
    today type types uuid value values
"""
READS, WRITES = frozenset(_READS.split()), frozenset(_WRITES.split())
GENERAL = STOP_WORDS | frozenset(_GENERAL.split())


@dataclass(frozen=True, slots=True)
class Role:
    """What a tool is about, by stems: the words of its name, what it gives that it does not take, and what it needs."""

    said: frozenset[str]
    gives: frozenset[str]
    needs: Mapping[str, float]


def role_of(tool: Searchable) -> Role:
    """Read the role from a tool's name and parameters, and if it changes something from the first sentence too."""
    name = words(tool.name)
    verb = next((word for word in name if word in READS or word in WRITES), "")
    nouns = _stems(word for word in name if word not in READS and word not in WRITES)
    takes = _stems(word for parameter, _ in tool.parameters[:MOST_PARAMETERS] for word in words(parameter))
    needs = dict.fromkeys(takes, NEEDED_PARAMETER)
    if verb not in READS:
        for word in nouns:
            needs.setdefault(word, NEEDED_NOUN)
        for word in _stems(words(tool.description[:LONGEST_SENTENCE].split(". ")[0])):
            needs.setdefault(word, NEEDED_WORD)
    said = nouns | {stem(word) for word in name if word in WRITES}
    return Role(said, nouns - takes if verb in READS else frozenset(), needs)


def _stems(found: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in found if len(word) > 2 and word not in GENERAL)  # noqa: PLR2004 - "id"


def is_task(query: Sequence[str]) -> bool:
    """Return whether the words of a query are a wish in sentences, and not a few key words."""
    return sum(word in STOP_WORDS and word not in {"and", "or", "get"} for word in query) >= LEAST_STOP_WORDS


class Companions:
    """The tools of an index by their servers, with their roles, which are read when first asked for."""

    def __init__(self, tools: Sequence[Searchable]) -> None:
        import numpy as np

        self._tools = tools
        self._roles: dict[int, Role] = {}
        numbers: dict[str, int] = {}
        self._server = np.array([numbers.setdefault(each.server, len(numbers)) for each in tools], np.intp)
        self._sizes = np.bincount(self._server, minlength=len(numbers)).tolist()
        self._names = [frozenset(words(name)) - {"mcp", "server"} for name in numbers]

    def filled(  # noqa: PLR0917 - what a search knows of a query
        self,
        ranked: Sequence[int],
        best: Sequence[tuple[int, float]],
        scores: Floats,
        steps: Sequence[Floats],
        query: Sequence[str],
        asked: Callable[[str], float],
        limit: int,
    ) -> list[int]:
        """Return the first of `ranked`, then one after the other the tool that adds most, then the other ranked.

        `best` are the best scores, `scores` all of them, by the query and by each step; `asked` weighs a stem. A
        tool counts the more, the more of its name is asked for, the more its server is meant, if it does a step that
        none does yet, and if it reads what a chosen one needs. A small server that is named or clearly meant comes
        whole.
        """
        import numpy as np

        affinity = self._affinity(best)
        first = self._without_copies(ranked[:FIRST], affinity)
        pull, whole = np.zeros(len(self._sizes), np.float32), set()
        for server, count in Counter(self._server[first].tolist()).items():
            name, share = self._names[server], count / FIRST
            if self._sizes[server] <= SMALL_SERVER and name and (share >= CLEAR_SHARE or name <= set(query)):
                whole.add(server)
            meant = min(1.0, (share - LEAST_SHARE) / (CLEAR_SHARE - LEAST_SHARE)) if name else 0.0  # skills have none
            pull[server] = SERVER_WEIGHT * affinity[server] ** 2 * meant + WHOLE_SERVER * (server in whole)
        worth = scores / scores.max() + pull[self._server]
        order = np.argpartition(-worth, min(MOST_CANDIDATES, len(worth) - 1))[:MOST_CANDIDATES]
        tools = [*first, *(number for number in np.sort(order).tolist() if number not in first)]
        servers = self._server[tools].tolist()
        roles = [self._role(number) for number in tools]
        related = (scores[tools] > 0) | np.array([server in whole for server in servers])
        worth = worth[tools] + NAME_WEIGHT * np.array(
            [sum(min(1.0, asked(word)) for word in role.said) / max(len(role.said), 1) for role in roles]
        )
        fits = np.array([step[tools] for step in steps], np.float64).reshape(-1, len(tools))
        fits /= np.maximum(fits.max(axis=1, keepdims=True), 1e-9)

        common = _common(servers, roles)
        copies: defaultdict[str, list[int]] = defaultdict(list)
        givers: defaultdict[int, list[int]] = defaultdict(list)
        for place, (number, server, role) in enumerate(zip(tools, servers, roles, strict=True)):
            copies[self._tools[number].name].append(place)
            if role.gives:
                givers[server].append(place)
        needs: defaultdict[int, dict[str, float]] = defaultdict(dict)
        companions = np.zeros(len(tools))
        filled: list[int] = []
        while len(filled) < min(limit, MOST_FILLED, len(tools)):
            place = len(filled)
            if place >= len(first):
                values = worth + NEED_WEIGHT * companions + STEP_WEIGHT * fits.max(axis=0, initial=0)
                values[~related & (companions == 0)] = -np.inf
                place = int(values.argmax())
                if values[place] == -np.inf:
                    break
            trust = 1.0 if len(filled) < len(first) else FILLED_TRUST
            filled.append(tools[place])
            worth[place] = -np.inf
            fits *= 1 - COVERED * fits[:, place : place + 1]
            server, wanted = servers[place], needs[servers[place]]
            for word, need in roles[place].needs.items():
                if (server, word) not in common:
                    wanted[word] = max(wanted.get(word, 0.0), need * trust)
            worth[copies[self._tools[tools[place]].name]] -= COPY_COST
            for other in givers[server]:
                gives = roles[other].gives
                met = [wanted[word] for word in gives if word in wanted]
                companions[other] = max(met, default=0.0) / (1 + SPECIAL * (len(gives) - len(met)))
        return [*filled, *(number for number in ranked if number not in filled)][:limit]

    def _role(self, number: int) -> Role:
        role = self._roles.get(number)
        if role is None:
            role = self._roles[number] = role_of(self._tools[number])
        return role

    def _affinity(self, best: Sequence[tuple[int, float]]) -> list[float]:
        """Return how well the best tools of each server fit, the best of all servers being 1."""
        affinity = [0.0] * len(self._sizes)
        counted: Counter[int] = Counter()
        for number, score in best:
            server = int(self._server[number])
            counted[server] += 1
            if counted[server] <= SERVERS_BEST:
                affinity[server] += score
        most = max(*affinity, 1e-9)
        return [each / most for each in affinity]

    def _without_copies(self, numbers: Sequence[int], affinity: Sequence[float]) -> list[int]:
        """Keep of tools that have the same name the one whose server fits best, in the place of the first."""
        kept: dict[str, int] = {}
        for number in numbers:
            other = kept.setdefault(self._tools[number].name, number)
            if affinity[self._server[number]] > affinity[self._server[other]]:
                kept[self._tools[number].name] = number
        return list(kept.values())


def _common(servers: Sequence[int], roles: Sequence[Role]) -> set[tuple[int, str]]:
    """Return by server the words that most of its tools have in their names: they tell none from the others."""
    sizes = Counter(servers)
    having = Counter((server, word) for server, role in zip(servers, roles, strict=True) for word in role.said)
    return {
        (server, word)
        for (server, word), count in having.items()
        if sizes[server] >= LEAST_FOR_COMMON and count > COMMON * sizes[server]
    }
