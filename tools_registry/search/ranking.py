"""Finds the right tools and skills for a query: one index over all of them, built whenever the catalog changes.

A search adds up three judgements: what the words say (an inverted index, whole query and clause by clause), what they
mean (small word vectors), and whether the query is simply a name; and what was used after like searches, where that is
given (`usage`). Nothing is random: the same documents, query and usage give the same answer.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from ..collecting import no_collection
from .companions import COVERED, FIRST, Companions, is_task
from .file_paths import reworded
from .indexing import DocumentReader, Searchable
from .inverted_index import InvertedIndex
from .name_index import NameIndex
from .query_terms import Meaning, QueryTerms
from .tokens import words
from .vectors import document_vectors, load_everyday_vectors, load_word_vectors
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

__all__ = ["DocumentReader", "SearchHit", "SearchIndex", "Searchable"]

LONGEST_QUERY = 4000
CLAUSE_WEIGHT = 0.6
# A clause of one word says less than one of four: it must not outweigh the whole.
CLAUSE_LEAST = 0.5
CLAUSE_PER_TERM = 0.125
MEANING_WEIGHT = 0.5
# Among documents that all mean much the same, small differences of meaning stay small.
LEAST_DIFFERENCE = 0.2
# Between documents that fit about equally, the one of a server not shown yet comes first.
SAME_SERVER = 0.02
MOST_SAME_SERVER = 3
CANDIDATES_PER_HIT = 3
# Of a task in several steps each should find its tools: what is found for a step already counts less for the next.
COVERAGE_WEIGHT = 0.3
DECIMALS = 4
# Where half of the development queries were searched and answered before, this finds 0.9 % more of the rest.
USAGE_WEIGHT = 0.5
# A document fits weakly whose words are worth less than a share of the rarest word, say less than a share of what was
# asked, and mean something else. The more documents there are, the nearer one comes by chance. So chosen, 1 % of the
# development queries find weak documents alone, and of nonsense 29 to 79 % (`tests/benchmarks/search.py`).
FEW_DOCUMENTS = 400
# Of 100 queries in other words over 60 skills this puts 74 first and 93 among three; over 60 skills of other trades 73
# and 90, and over 60 more, half of whose queries nothing was chosen by, 66 and 87 (`test_other_words.py`).
MEANING_WEIGHT_AMONG_FEW = 5.0
SKILLS = "skills"
# Where the words of the best tools say little of a query of one clause, a skill gains what its cosine is above this.
# So, with 74 tools beside them, 68, 62 and 54 of the same queries find their skill first and 86, 79 and 75 among three;
# of 42 short queries for 56 tools at most two then find a skill before their tool.
LEAST_MEANT = 0.2
BEST_TOOLS = 3


@dataclass(frozen=True, slots=True)
class _Least:
    """What a document must have of one of these at least, so as not to be weak."""

    worth: float
    share: float
    cosine: float


WEAK_AMONG_FEW = _Least(worth=0.6, share=0.35, cosine=0.45)
WEAK_AMONG_MANY = _Least(worth=0.8, share=0.5, cosine=0.5)
MOST_WEAK = 5


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found; scores compare within one answer only, and more is better.

    `weak` says that neither its words nor their meaning have much to do with the query.
    """

    key: str
    name: str
    server: str
    category: str
    score: float
    weak: bool = False


class SearchIndex:
    """An index that never changes: any number of threads may search it."""

    def __init__(
        self, documents: Iterable[Searchable], *, vectors: bool = True, reader: DocumentReader | None = None
    ) -> None:
        """Read all documents, ten thousand in about half a second; `vectors=False` leaves out what words mean.

        A `reader` that has read most of them for an index before saves most of that time.
        """
        self._documents = tuple(sorted(documents, key=lambda each: (each.name, each.server, each.key)))
        self._numbers = {each.key: number for number, each in enumerate(self._documents)}
        self._by_category: defaultdict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(self._documents):
            self._by_category[each.category].append(number)
        count = len(self._documents)
        # Few documents of one category, such as skills, are looked for in everyday words, and by what they mean.
        few = len(self._by_category) == 1 and count <= FEW_DOCUMENTS
        self._vectors = None if not vectors else load_everyday_vectors() if few else load_word_vectors()
        self._meaning_weight = MEANING_WEIGHT_AMONG_FEW if few else MEANING_WEIGHT
        skills = [self._documents[number] for number in self._by_category.get(SKILLS, ())]
        # Beside tools they are ranked as they are alone.
        self._skills = SearchIndex(skills) if vectors and not few and 0 < len(skills) <= FEW_DOCUMENTS else None
        with no_collection():
            known = self._vectors.number if self._vectors else {}
            columns = (reader or DocumentReader()).columns(self._documents, known)
            self._names = NameIndex([(each.name, each.server) for each in self._documents], columns.names)
        self._inverted = InvertedIndex(columns.terms, documents=count, terms=len(columns.numbers))
        self._vocabulary = Vocabulary(columns.numbers, columns.surface, self._inverted.idf)
        self._companions = Companions(self._documents)
        self._meanings = document_vectors(self._vectors, columns.words, documents=count) if self._vectors else None

    def __len__(self) -> int:
        return len(self._documents)

    def search(
        self, query: str, *, category: str | None = None, limit: int = 10, used: Mapping[str, float] | None = None
    ) -> list[SearchHit]:
        """Return at most `limit` documents, best first; equal scores in the order of their names.

        `category` keeps only the documents of that category; up to 400 skills are then scored as if alone. A blank
        query lists documents in the order of their names, with score 0; a query of which nothing is known finds
        nothing, and one to which all documents are weak five at most. Of a query beyond 4,000 characters the beginning
        counts. `used` says of keys how like this query, 0 to 1, one was after which they were called. Behind the first
        five of a task in sentences is what they need and what else their servers do of it (`companions`). Raises
        ValueError for a limit below 1.
        """
        if limit < 1:
            raise ValueError(f"limit is {limit}: it must be at least 1")
        allowed = range(len(self)) if category is None else self._by_category.get(category, ())
        if not query.strip():
            return [self._hit(number, 0.0) for number in allowed[:limit]]
        if not allowed:
            return []
        if category == SKILLS and self._skills is not None:
            return self._skills.search(query, limit=limit, used=used)
        query = query[:LONGEST_QUERY]
        meanings = self._meanings_of(query)
        scores, by_step, named = self._scores(query, meanings)
        for key, likeness in (used or {}).items():
            number = self._numbers.get(key)
            if number is not None:
                scores[number] += USAGE_WEIGHT * likeness
                named.add(number)
        ranked = _best(scores if category is None else scores[list(allowed)], limit * CANDIDATES_PER_HIT)
        found = [(allowed[place], score) for place, score in ranked]
        chosen = _covering(found, by_step, limit) if by_step and found else self._spread(found)[:limit]
        weak = self._weak([number for number, _ in chosen], meanings, named)
        asked = words(query)
        if len(weak) == len(chosen):
            chosen = chosen[:MOST_WEAK]
        elif category is None and limit > FIRST and is_task(asked):
            own, weighing = dict(chosen), self._weighing(meanings[0])
            numbers = self._companions.filled(list(own), found, scores, by_step, asked, weighing, limit)
            # No score is above one before it.
            falling = accumulate((own.get(number, float(scores[number])) for number in numbers), min)
            chosen = list(zip(numbers, falling, strict=True))
        return [self._hit(number, score, weak=number in weak) for number, score in chosen]

    def matches(self, query: str) -> list[str]:
        """Return the keys of all documents that have anything to do with a query, best first, as `search` ranks them.

        In an index without vectors these are the documents that share a word with the query; with vectors, also all
        whose meaning is nearer to it than the median's.
        """
        if not self._documents:
            return []
        query = query[:LONGEST_QUERY]
        scores, *_ = self._scores(query, self._meanings_of(query))
        return [self._documents[number].key for number, _ in _best(scores, len(scores))]

    def _meanings_of(self, query: str) -> list[Meaning]:
        """Read a query: the whole of it, then its steps if it has several."""
        reading = QueryTerms(self._vocabulary, self._vectors, self._inverted.rarest)
        asked = reworded(query)
        return [reading.read(words(text)) for text in (asked, *_clauses(asked))]

    def _scores(self, query: str, meanings: Sequence[Meaning]) -> tuple[Floats, list[Floats], set[int]]:
        """Score every document, 0 for those unrelated to the query, and by the words of each step.

        The documents come last that the query names.
        """
        whole, *steps = meanings
        scores, by_step = self._by_words(whole, steps)
        scores = scores + self._by_meaning(meanings)
        named: set[int] = set()
        for bonuses in (self._names.bonuses(query), self._names.named_in(query)):
            named |= bonuses.keys()
            for number, bonus in bonuses.items():
                scores[number] += bonus
        if self._skills is not None:
            self._rank_skills(self._skills, query, whole, scores)
        return scores, by_step, named

    def _rank_skills(self, alone: SearchIndex, query: str, whole: Meaning, scores: Floats) -> None:
        """Exchange the scores of the skills, so that they rank as alone; raise them where no tool has the words."""
        import numpy as np

        skills, meanings = np.array(self._by_category[SKILLS]), alone._meanings_of(query)
        own, *_ = alone._scores(query, meanings)
        scores[skills[np.argsort(-own, kind="stable")]] = np.sort(scores[skills])[::-1]
        if len(meanings) > 1:
            return
        tools = scores.copy()
        tools[skills] = 0
        _, held = self._inverted.evidence(whole.terms, [number for number, _ in _best(tools, BEST_TOOLS)])
        if held.max(initial=0) < WEAK_AMONG_FEW.share * max(whole.rarity, 1e-9):
            scores[skills] += np.maximum(alone._cosines(meanings) - np.float32(LEAST_MEANT), 0)

    def _weak(self, numbers: Sequence[int], meanings: Sequence[Meaning], named: set[int]) -> set[int]:
        """Return which documents have little to do with a query and with each of its steps, and are not named in it."""
        import numpy as np

        least = WEAK_AMONG_FEW if len(self) <= FEW_DOCUMENTS else WEAK_AMONG_MANY
        doubtful = [number for number in numbers if number not in named]
        if doubtful and self._vectors is not None and self._meanings is not None:
            asked = np.array([self._vectors.of_words(meaning.words) for meaning in meanings])
            cosines = np.einsum("qd,nd->qn", asked, self._meanings[doubtful]).max(axis=0)
            doubtful = [number for number, cosine in zip(doubtful, cosines, strict=True) if cosine < least.cosine]
        for meaning in meanings:
            if not doubtful:
                break
            worth, held = self._inverted.evidence(meaning.terms, doubtful)
            weak = (worth < least.worth) & (held < least.share * max(meaning.rarity, 1e-9))
            doubtful = [number for number, each in zip(doubtful, weak, strict=True) if each]
        return set(doubtful)

    def _by_words(self, whole: Meaning, steps: Sequence[Meaning]) -> tuple[Floats, list[Floats]]:
        scores = self._inverted.scores(whole.terms)
        by_step: list[Floats] = []
        if steps:
            import numpy as np

            for step in steps:
                trust = min(1.0, CLAUSE_LEAST + CLAUSE_PER_TERM * len(step.terms))
                by_step.append(self._inverted.scores(step.terms) * np.float32(trust))
            scores = (1 - CLAUSE_WEIGHT) * scores + CLAUSE_WEIGHT * np.max(by_step, axis=0)
        return scores, by_step

    def _by_meaning(self, meanings: Sequence[Meaning]) -> Floats:
        """Score by the cosine to the nearest clause: the median document has 0, the best the weight of it at most."""
        import numpy as np

        cosines = self._cosines(meanings)
        best, middle = float(cosines.max()), float(np.median(cosines))
        scale = self._meaning_weight / max(best - middle, LEAST_DIFFERENCE)
        scores: Floats = np.maximum(cosines - np.float32(middle), 0) * np.float32(scale)
        return scores

    def _cosines(self, meanings: Sequence[Meaning]) -> Floats:
        """Return each document's cosine to the nearest clause; zeros in an index without vectors."""
        import numpy as np

        if self._vectors is None or self._meanings is None:
            return np.zeros(len(self._documents), np.float32)
        asked = np.array([self._vectors.of_words(meaning.words) for meaning in meanings])
        # Not `@`: so small a product gains nothing from threads of BLAS, and waits for them on a busy machine.
        cosines: Floats = np.einsum("qd,nd->qn", asked, self._meanings).max(axis=0)
        return cosines

    def _spread(self, ranked: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Order by score, less a little for each better document of the same server."""
        seen: Counter[str] = Counter()
        spread = []
        for number, score in ranked:
            server = self._documents[number].server
            spread.append((number, score - SAME_SERVER * min(seen[server], MOST_SAME_SERVER)))
            seen[server] += 1
        return sorted(spread, key=lambda pair: -pair[1])

    def _weighing(self, whole: Meaning) -> Callable[[str], float]:
        """Return what weighs a stem by a query: 0 where it was not asked for."""
        numbers = self._vocabulary.numbers
        return lambda word: whole.terms.get(numbers.get(word, -1), 0.0)

    def _hit(self, number: int, score: float, *, weak: bool = False) -> SearchHit:
        found = self._documents[number]
        return SearchHit(found.key, found.name, found.server, found.category, round(score, DECIMALS), weak)


def _covering(ranked: Sequence[tuple[int, float]], by_step: Sequence[Floats], limit: int) -> list[tuple[int, float]]:
    """Choose one after the other the document that adds most: its own score, and to the steps that have none yet.

    Source: Santos, Macdonald and Ounis, *Exploiting query reformulations for web search result diversification*, 2010
    (xQuAD); here each step of the task is a reformulation.
    """
    import numpy as np

    numbers = [number for number, _ in ranked]
    own = np.array([score for _, score in ranked])
    fits = np.array([step[numbers] for step in by_step], np.float64)
    fits /= np.maximum(fits.max(axis=1, keepdims=True), 1e-9)
    best, left = own.max(), np.ones(len(fits)) / len(fits)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(numbers))):
        values = (1 - COVERAGE_WEIGHT) * own + COVERAGE_WEIGHT * best * (left @ fits)
        place = int(values.argmax())
        chosen.append((numbers[place], float(values[place])))
        left = left * (1 - COVERED * fits[:, place])
        own[place] = -np.inf
    return chosen


def _best(scores: Floats, most: int) -> list[tuple[int, float]]:
    """Return the places of the best positive scores, best first, and equal ones in their order."""
    import numpy as np

    rounded = scores.round(DECIMALS)
    if most < len(rounded):
        least = np.partition(rounded, len(rounded) - most)[len(rounded) - most]
        places = np.flatnonzero(rounded >= max(least, 10**-DECIMALS))
    else:
        places = np.flatnonzero(rounded > 0)
    places = places[np.argsort(-rounded[places], kind="stable")[:most]]
    return list(zip(places.tolist(), rounded[places].tolist(), strict=True))


MOST_CLAUSES = 8
SHORTEST_CLAUSE = 9

# The verbs that begin a new step after a plain "and"; before a noun "and" joins two things of one step.
_VERBS = """
    add analyze book buy calculate check compare compute convert create delete determine download estimate evaluate
    export extract fetch find generate get give help identify list make monitor notify open plan post provide publish
    read recommend remove retrieve save schedule search send set show suggest summarize tell track translate update
    upload write
"""
_CONNECTIVES = """
    and then|then|and also|also|additionally|in addition|as well as|furthermore|moreover|besides|finally|lastly
    |after that|afterwards|next
"""
_CUT = re.compile(
    r"(?<=[.!?;])\s|\n|(?<=[\u3002\uff01\uff1f\uff1b])"
    rf"|,?\s(?:{'|'.join(each.strip() for each in _CONNECTIVES.split('|'))})\s"
    rf"|,\s(?=and\b)|\sand\s(?=(?:{'|'.join(_VERBS.split())})\b)",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"(?<!\s)\s*\n\s*")


def _clauses(text: str) -> list[str]:
    """Return the clauses of a text in their order, at most `MOST_CLAUSES`; a text of one clause gives none.

    Cut are sentences, lines, and steps: at "and then", "also", "finally", and at an "and" before a verb.
    """
    # Blanks are joined first: a run of them would cost the pattern quadratic time.
    even = _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()
    found = [part for part in _CUT.split(even) if len(part) >= SHORTEST_CLAUSE]
    return found[:MOST_CLAUSES] if len(found) > 1 else []
