"""Names and addresses in prose: what the model says, believed only where the text around lets it be true.

Tool results are mostly code, logs and records, where a model trained on letters sees names in everything. So a word is
a candidate only with a capital letter, unless its line reads like prose; never as a key, an identifier or beside a
character of code; and what the rules have found already is not asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..findings import Finding, PiiType
from .model import Kind, NerMissing, Rampart

__all__ = ["NamesInProse", "NerMissing"]

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_STOP = frozenset(
    "the a an of to in is it and or for on with at by from this that was are be as not but have has had you your i we they he she my his "
    "her our their its me him them us will would can could should do does did if then than so no yes all any some into out up down over "
    "under about after before when where who what which how there here just like get got go going been being were also only very more "
    "most other new now one two".split()
)
# Capitalised or not, these are no names by themselves; a line of nothing else need not be looked at.
_COMMON = _STOP | frozenset(
    "info debug warning warn error fatal trace critical notice get post put patch delete head options http https html json xml yaml utf null true false none "
    "ok todo fixme note usage example returns return raises args parameters type name value key id date time status code message description default "
    "monday tuesday wednesday thursday friday saturday sunday january february march june july august september october november december mon tue wed thu fri "
    "sat sun jan feb mar apr jun jul aug sep oct nov dec utc gmt cest cet est pst api url uri sql cpu gpu ram os linux windows python java javascript typescript "
    "select from where insert update create table index file line module class function test tests build failed passed success install installed version "
    "request response server client service started stopped running finished completed connection timeout retry exception traceback param params rename bump refactor fix remove add drop handle speed "
    "author account contact secret detail values full flag deployment envelope please confirmation summary total subtotal "
    "dev qa ops hr admin tel mob manager engineer developer designer sales legal marketing finance support role email phone address city country team mr mrs ms dr".split()
)
_LONGEST_WORD = 40
_CODE_BEFORE = frozenset("_/\\={}[]@#$%&~^`")
_CODE_AFTER = frozenset("_\\={[@#$%&*~^`/")
_KEY_AFTER = re.compile(r"\\{0,3}[\"']?\s{0,3}[:=](?!\s{0,8}\Z)")
_QUOTED_KEY_AFTER = re.compile(r"\\{0,3}\"\s{0,3}:")
_CAMEL = re.compile(r"[a-z][A-Z][a-z]*[A-Z]|^[a-z]+[A-Z]")
_JOINS_NAME = re.compile(r"\.?[ \t]{1,2}|[ ]?-[ ]?")
_JOINS_ADDRESS = re.compile(r"[ \t]{0,8}[,.;#-]?[ \t]{0,8}\n?[ \t]{0,8}")
_LETTER_WORD = re.compile(r"(?<![\w'])[A-Za-z']+(?!\w)")
_COMMENT = re.compile(r"[ \t]{0,40}(?:#|//)[ \t]")
_CAPITAL_BEFORE = re.compile(r"(?:(?<![\w.?!:] )(?<!\A)\b|\b(?:Mr|Mrs|Ms|Mx|Dr|Prof)\.? )[^\W\d_a-z][\w'’-]{1,30} \Z")
_PARTICLES = frozenset("de van von der den da la del di bin al dos du ibn ter zu e y".split())
_CODE_SIGNS = frozenset('{}[]=<>_\\|;$#"')
_COMPANY_AFTER = re.compile(
    r",?[ ](?:(?:and|&)[ ](?:Sons|Co|Company|Partners|Associates|Brothers|Daughters)\b|Inc|LLC|Ltd|Limited|GmbH|Corp|Corporation|Company|Group|Holdings?|PLC|AG|KG|OHG|"
    r"KGaA|mbH|S\.A|SA|SRL|Srl|BV|B\.V|Oy|AB|ASA|LLP|Incorporated|Industries|Technologies|Solutions|Systems|Partners|Associates|Analytics|Bank|University|Hospital|"
    r"Foundation|Institute|School|Airport|Stadium|Museum|Park|Award|Prize|"
    r"Orchestra|Investments?|Capital|Ventures|Insurance|Airlines|Consulting|Logistics|Pharmaceuticals|Motors|Records|Studios|"
    r"(?:is|was) an? (?:[\w-]{1,20} ){0,3}(?:company|agency|firm|manufacturer|supplier|provider|startup|retailer|bank))\b"
)
_SURE, _SURE_LOWER, _SURE_CAPITALS, _SURE_PLACE = 0.6, 0.85, 0.97, 0.8


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    text: str
    in_prose: bool


@dataclass(frozen=True, slots=True)
class _Judged:
    word: _Word
    kind: Kind
    score: float


class NamesInProse:
    """Finds people and addresses with the model."""

    def __init__(self) -> None:
        """Load the model; raises `NerMissing`."""
        self._model = Rampart()

    def find(self, text: str, covered: Sequence[Finding]) -> list[Finding]:
        """Return names and addresses outside, or around, what is covered by findings already (in order, disjoint)."""
        settled = sorted([*((each.start, each.end) for each in covered), *_comments(text)])
        words = list(_words(text, settled))
        spans = [(word.start, word.end) for word in words]
        likely = self._model.judge(text, spans, [_candidate(text, word) for word in words])
        judged = []
        for word, chances in zip(words, likely.tolist(), strict=True):
            kind, score = _believed(text, word, chances)
            judged.append(_Judged(word, kind, score))
        return [*_names(text, judged), *_addresses(text, judged)]


def _words(text: str, settled: Sequence[tuple[int, int]]) -> Iterator[_Word]:
    prose = _prose_lines(text)
    prose_start, prose_end = next(prose, (len(text), len(text)))
    index = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        while index < len(settled) and settled[index][1] <= start:
            index += 1
        if (index < len(settled) and settled[index][0] <= start) or end - start > _LONGEST_WORD:
            continue
        while prose_end <= start < len(text):
            prose_start, prose_end = next(prose, (len(text) + 1, len(text) + 1))
        yield _Word(start, end, match[0], prose_start <= start < prose_end)


def _comments(text: str) -> list[tuple[int, int]]:
    """Return blocks of two or more comment lines of code: whom they thank is published with it."""
    blocks: list[tuple[int, int]] = []
    start = lines = 0
    at = 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if _COMMENT.match(text, at, end + 1):
            start, lines = (at, 1) if not lines else (start, lines + 1)
        elif lines and (end > at and text[at] not in "#/"):
            if lines > 1:
                blocks.append((start, at))
            lines = 0
        at = end + 1
    if lines > 1:
        blocks.append((start, len(text)))
    return blocks


def _prose_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that read like natural language: small words, and few characters of code."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        words = _LETTER_WORD.findall(line[:4000])
        if len(words) >= 4:
            small = sum(word.lower() in _STOP for word in words)
            signs = sum(character in _CODE_SIGNS for character in line[:4000])
            if small / len(words) >= 0.18 and signs / min(len(line), 4000) < 0.02:
                yield start, end
        start = end + 1


def _candidate(text: str, word: _Word) -> bool:
    """Tell whether a word is worth the model's time: whether it would be believed."""
    said = word.text
    if said.lower() in _COMMON:
        return False
    capital = (said[0].isupper() and any(map(str.islower, said))) or (
        said.isupper() and len(said) > 2 and said.isalpha()
    )
    return (capital or word.in_prose) and not _is_code(text, word) and not _is_key(text, word)


def _believed(text: str, word: _Word, chances: Sequence[float]) -> tuple[Kind, float]:
    kind = Kind(max(range(Kind.OTHER), key=chances.__getitem__))
    if kind is Kind.NOTHING or _is_code(text, word) or _is_key(text, word):
        return Kind.NOTHING, 0.0
    if kind is Kind.PERSON:
        if (
            word.text[0].islower()
            and word.text not in _PARTICLES
            and _CAPITAL_BEFORE.search(text[max(0, word.start - 34) : word.start])
        ):
            # `Ms. Rennie flew`: what follows a name and is not written as one is a verb.
            return Kind.NOTHING, 0.0
        return (kind, chances[kind]) if _is_name(word, chances[kind]) else (Kind.NOTHING, 0.0)
    if sum(chances[Kind.PLACE : Kind.OTHER]) >= _SURE:
        return kind, chances[kind]
    return Kind.NOTHING, 0.0


def _is_name(word: _Word, chance: float) -> bool:
    text = word.text
    capital = text[0].isupper()
    return (
        chance >= (_SURE if capital else _SURE_LOWER)
        and (capital or word.in_prose)
        and not any(map(str.isdigit, text))
        and text.lower() not in _COMMON
        and not _CAMEL.search(text)
        and (chance >= _SURE_CAPITALS or word.in_prose or not (text.isupper() and len(text) > 1))
    )


def _is_code(text: str, word: _Word) -> bool:
    before = text[word.start - 1] if word.start else " "
    after = text[word.end : word.end + 2]
    return (
        before in _CODE_BEFORE
        or (before == "." and word.start > 1 and text[word.start - 2].isalnum())
        or after[:1] in _CODE_AFTER
        or after[:1] == "("
        or (after[:1] == "." and after[1:].isalnum())
    )


def _is_key(text: str, word: _Word) -> bool:
    before = text[word.start - 1] if word.start else "\n"
    following = text[word.end : word.end + 8]
    if _QUOTED_KEY_AFTER.match(following):
        return True
    return before in "\"'{,\\\n" and not following.startswith(": ") and _KEY_AFTER.match(following) is not None


def _names(text: str, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """Join neighbouring words of names."""
    start = end = -1
    best = 0.0
    for each in judged:
        if each.kind is not Kind.PERSON:
            continue
        word = each.word
        if end >= 0 and _JOINS_NAME.fullmatch(text, end, word.start):
            end, best = word.end, max(best, each.score)
            continue
        yield from _name(text, start, end, best)
        start, end, best = word.start, word.end, each.score
    yield from _name(text, start, end, best)


def _name(text: str, start: int, end: int, chance: float) -> Iterator[Finding]:
    if _COMPANY_AFTER.match(text, max(end, 0)):
        return
    if text.endswith(("'s", "’s"), max(start, 0), max(end, 0)):
        end -= 2
    length = end - start
    if length > 1 and (length > 2 or chance >= 0.9):
        yield Finding(start, end, PiiType.PERSON, round(0.4 + 0.5 * chance, 3))


def _addresses(text: str, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """Join neighbouring words of streets, places and codes to addresses."""
    block: list[_Judged] = []
    for each in judged:
        if each.kind not in (Kind.PLACE, Kind.STREET, Kind.CODE):
            yield from _address(text, block)
            block = []
            continue
        if block and not _JOINS_ADDRESS.fullmatch(text, block[-1].word.end, each.word.start):
            yield from _address(text, block)
            block = []
        block.append(each)
    yield from _address(text, block)


def _address(text: str, block: Sequence[_Judged]) -> Iterator[Finding]:
    if not block or _COMPANY_AFTER.match(text, block[-1].word.end):
        return
    start, end = block[0].word.start, block[-1].word.end
    named = any(each.kind is Kind.STREET and any(map(str.isalpha, each.word.text)) for each in block)
    numbered = any(each.word.text[0].isdigit() for each in block)
    if named and numbered and len(block) > 1:
        yield Finding(start, end, PiiType.ADDRESS, 0.75)
    elif any(each.kind is Kind.PLACE for each in block):
        places = [e for e in block if e.kind is not Kind.CODE and e.word.text[0].isupper()]
        codes = [
            e for e in block if e.kind is Kind.CODE and len(e.word.text) > 2 and any(map(str.isdigit, e.word.text))
        ]
        if places and places[0].score >= _SURE_PLACE:
            end = max(places[-1].word.end, codes[-1].word.end if codes else 0)
            yield Finding(places[0].word.start, end, PiiType.LOCATION, 0.6)
    elif (
        named
        and len(block) > 1
        and ". " not in text[start:end]
        and all(not each.word.text[0].islower() for each in block)
    ):
        yield Finding(start, end, PiiType.ADDRESS, 0.55)
