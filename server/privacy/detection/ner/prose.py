"""Names and addresses in prose: what the model finds, where the text around agrees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...token_texts import tokens_in
from ..findings import Finding, PiiType
from ..keys import is_label
from ..lists import EVERYDAY, LABELS, NO_NAMES
from ..recognizers.keyed_values import names_thing
from .model import Label, Rampart
from .words import (
    SMALL_FAMILIES,
    SMALL_GIVEN,
    Word,
    comes_after_cue,
    comments,
    follows_given,
    is_asked,
    is_code,
    is_full_name,
    is_key,
    protocol_lines,
    words,
)

_CAMEL = re.compile(r"[a-z][A-Z][a-z]*[A-Z]|^[a-z]+[A-Z]")
_HUMP = re.compile(r"(?!Fitz)[A-Z][a-z]{3,30}[A-Z]")
# A point behind a longer word than an initial or a title ends a sentence.
_JOINS_NAME = re.compile(r"(?:(?<![^\W\d_]{3})\.)?[ \t]{1,2}|[ ]?-[ ]?")
# Between the cells of a table there is no space behind the comma.
_JOINS_ADDRESS = re.compile(r"[ \t]{0,8}(?:[.#-]|[,;](?=\s))?[ \t]{0,8}\n?[ \t]{0,8}")
_CAPITAL_BEFORE = re.compile(r"(?:(?<![\w.?!:] )(?<!\A)\b|\b(?:Mr|Mrs|Ms|Mx|Dr|Prof)\.? )[^\W\d_a-z][\w'’-]{1,30} \Z")
_PARTICLES = frozenset("de van von der den da la del di bin al dos du ibn ter zu e y".split())
_COMPANY_AFTER = re.compile(
    r",?[ ](?:(?:and|&)[ ](?:Sons|Co|Company|Partners|Associates|Brothers|Daughters)\b|Inc|LLC|Ltd|Limited|GmbH|Corp|Corporation|Company|Group|Holdings?|PLC|AG|KG|OHG|"
    r"KGaA|mbH|S\.A|SA|SRL|Srl|BV|B\.V|Oy|AB|ASA|LLP|Incorporated|Industries|Technologies|Solutions|Systems|Partners|Associates|Analytics|Bank|University|Hospital|"
    r"Foundation|Institute|School|Airport|Stadium|Museum|Park|Award|Prize|"
    r"Orchestra|Investments?|Capital|Ventures|Insurance|Airlines|Consulting|Logistics|Pharmaceuticals|Motors|Records|Studios|"
    r"(?:is|was) an? (?:[\w-]{1,20} ){0,3}(?:company|agency|firm|manufacturer|supplier|provider|startup|retailer|bank))\b"
)
_SURE, _SURE_LOWER, _SURE_GIVEN, _SURE_CAPITALS, _SURE_PLACE = 0.6, 0.85, 0.3, 0.97, 0.8


_ERRORS = ("Error", "Exception", "Warning")
"""What names of Python's errors end with."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a word counts as; a person not surely where it has the form of an identifier."""

    word: Word
    kind: Label
    score: float
    is_sure: bool = True


class NamesInProse:
    """Finds people and addresses with the model."""

    def __init__(self) -> None:
        """Load the model."""
        self._model = Rampart()

    def find(self, text: str, covered: Sequence[Finding]) -> list[Finding]:
        """Return names and addresses outside, or around, what is covered by findings already (in order, disjoint)."""
        settled = sorted(
            [*((each.start, each.end) for each in covered), *comments(text), *protocol_lines(text), *tokens_in(text)]
        )
        said = list(words(text, settled))
        likely = self._model.judge(text, said, [is_asked(text, word) for word in said], settled)
        judged = [_believed(text, word, chances) for word, chances in likely]
        return [*_names(text, judged), *_addresses(text, judged)]


def _believed(text: str, word: Word, chances: Sequence[float]) -> _Judged:
    kind = Label(max(range(Label.OTHER), key=chances.__getitem__))
    chance = chances[kind]
    if is_code(text, word) or is_key(text, word):
        return _Judged(word, Label.NOTHING, 0.0)
    if kind is Label.PERSON and _is_name(word, chance) and not _is_verb(text, word):
        return _Judged(word, kind, chance, is_sure=word.in_prose or not _HUMP.match(word.text))
    if kind in (Label.PLACE, Label.STREET, Label.CODE) and sum(chances[Label.PLACE : Label.OTHER]) >= _SURE:
        return _Judged(word, kind, chance)
    if _is_known_name(text, word, chances[Label.PERSON]):
        follows_cue = chance >= _SURE_LOWER and comes_after_cue(text, word)
        return _Judged(word, Label.PERSON, chances[Label.PERSON], is_sure=follows_cue or follows_given(text, word))
    return _Judged(word, Label.NOTHING, 0.0)


def _is_known_name(text: str, word: Word, chance: float) -> bool:
    """Return whether a word without a capital of its own is a known given name, or stands behind one.

    Then the model may be less sure. It was taught that `jane doe` stands for a name rather than being one.
    """
    low = word.text.lower()
    return (
        word.text in (low, low.upper())
        and low.isalpha()
        and low not in EVERYDAY
        and (low in SMALL_GIVEN or follows_given(text, word))
        and (chance >= _SURE_GIVEN or is_full_name(text, word))
    )


def _is_verb(text: str, word: Word) -> bool:
    """Return whether a word only follows a name: `Ms. Rennie flew`; it is not written as names are."""
    return (
        word.text[0].islower()
        and word.text not in _PARTICLES
        and _CAPITAL_BEFORE.search(text[max(0, word.start - 34) : word.start]) is not None
    )


def _is_name(word: Word, chance: float) -> bool:
    text = word.text
    capital = text[0].isupper()
    return (
        chance >= (_SURE if capital else _SURE_LOWER)
        and (capital or word.in_prose)
        and not any(map(str.isdigit, text))
        and text.lower() not in NO_NAMES
        and text not in LABELS
        and not _CAMEL.search(text)
        and not text.endswith(_ERRORS)
        and (chance >= _SURE_CAPITALS or word.in_prose or not (text.isupper() and len(text) > 1))
    )


def _names(text: str, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """Join neighbouring words of names; what may be an identifier is one only beside another."""
    start = end = -1
    best = 0.0
    is_sure = in_prose = False
    for each in judged:
        if each.kind is not Label.PERSON:
            continue
        word = each.word
        if end >= 0 and _JOINS_NAME.fullmatch(text, end, word.start):
            end, best, is_sure = word.end, max(best, each.score), is_sure or each.is_sure
            continue
        if is_sure:
            yield from _name(text, start, end, best, in_prose=in_prose)
        start, end, best, is_sure, in_prose = word.start, word.end, each.score, each.is_sure, word.in_prose
    if is_sure:
        yield from _name(text, start, end, best, in_prose=in_prose)


def _name(text: str, start: int, end: int, chance: float, *, in_prose: bool) -> Iterator[Finding]:
    if _COMPANY_AFTER.match(text, max(end, 0)) or _is_label(text, start, end) or _is_thing(text, start, end):
        return
    if _is_heading(text, start, end) or _is_shouted(text, start, end):
        return
    if (
        not in_prose
        and chance < _SURE_ALONE
        and " " not in text[start:end]
        and _begins_foreign_sentence(text, start, end)
    ):
        return
    if text.endswith(("'s", "’s"), max(start, 0), max(end, 0)):
        end -= 2
    length = end - start
    if length > 1 and (length > 2 or chance >= 0.9):
        yield Finding(start, end, PiiType.PERSON, round(0.4 + 0.5 * chance, 3))


def _is_label(text: str, start: int, end: int) -> bool:
    """Return whether a name is part of what a field is called: before a colon, or in a line of such."""
    first, last = (
        text.rfind("\n", max(0, start - _LONGEST_HEADING), start) + 1,
        text.find("\n", end, end + _LONGEST_HEADING),
    )
    line_end = len(text) if last < 0 else last
    before, after = (
        _CELL_BEFORE.search(text, max(first, start - _LONGEST_LABEL), start),
        _CELL_AFTER.match(text, end, line_end),
    )
    if before is None or after is None:
        return False
    cell = text[before.start() : after.end()]
    if len(cell.split()) > _MOST_WORDS_OF_LABEL or not is_label(cell):
        return False
    if _COLON_AFTER.match(text, after.end()):
        return True
    line = text[first:line_end]
    return len(line) <= _LONGEST_HEADING and sum(map(is_label, _SEPARATOR.split(line))) > 1


def _is_heading(text: str, start: int, end: int) -> bool:
    """Return whether a name is a cell of the first line of a table, which has no digits: the second has as many cells."""
    first = text.rfind("\n", max(0, start - _LONGEST_HEADING), start) + 1
    last = text.find("\n", end, end + _LONGEST_HEADING)
    line = text[first : last if last >= 0 else len(text)]
    if (
        (first and text[first - 2 : first - 1] not in {"", "\n"})
        or any(map(str.isdigit, line))
        or len(line) > _LONGEST_HEADING
    ):
        return False
    separator = max(_SEPARATORS, key=line.count)
    cells = [cell.strip("\"'` ") for cell in line.strip(separator).split(separator)]
    if len(cells) < 3 or len(set(cells)) < len(cells) or not all(_HEADING_CELL.fullmatch(cell) for cell in cells):
        return False
    following = text[last + 1 : last + 1 + _LONGEST_HEADING].partition("\n")[0] if last >= 0 else ""
    if following.count(separator) >= line.count(separator):
        return any(map(str.isdigit, following)) or set(following) <= set("|-: +=")
    return first == 0 and any(cell.lower() in NO_NAMES or is_label(cell) for cell in cells)


def _is_shouted(text: str, start: int, end: int) -> bool:
    """Return whether one word in a line of capitals is all there is, and no known name: there any word is written so."""
    said = text[start:end].lower()
    if not text[start:end].isupper() or not said.isalpha() or said in SMALL_GIVEN or said in SMALL_FAMILIES:
        return False
    first = text.rfind("\n", max(0, start - _LONGEST_HEADING), start) + 1
    line = text[first:end] + text[end : end + _LONGEST_HEADING].partition("\n")[0]
    return line.isupper() and len(line.split()) > _FEWEST_SHOUTED


_HEADING_CELL = re.compile(r"[^\W\d_][\w .()/#%&'’-]{0,40}")
_FEWEST_SHOUTED = 2


def _is_thing(text: str, start: int, end: int) -> bool:
    """Return whether a name is that of a thing: `{"name": "Oak Chair", "price": 129}`."""
    return _NAME_BEFORE.search(text, max(0, start - _LONGEST_LABEL), start) is not None and names_thing(
        text, start, end
    )


def _begins_foreign_sentence(text: str, start: int, end: int) -> bool:
    """Return whether one word begins a sentence of another language than English, as any word may."""
    return (
        _SENTENCE_BEFORE.search(text, max(0, start - 4), start) is not None
        and (words := _WORDS_AFTER.match(text, end)) is not None
        and not words[0].isascii()
    )


_LONGEST_LABEL, _LONGEST_HEADING, _MOST_WORDS_OF_LABEL = 60, 400, 4
_SURE_ALONE = 0.97
_CELL_BEFORE = re.compile(r"[^\n,;|\"\t:]{0,60}\Z")
_CELL_AFTER = re.compile(r"[^\n,;|\"\t:]{0,40}")
_COLON_AFTER = re.compile(r"\\{0,3}[\"']?\s?:")
_SEPARATOR = re.compile(r"[,;|\t]")
_SEPARATORS = frozenset(",;\t|")
_NAME_BEFORE = re.compile(r"\"(?:name|title|label)\\{0,7}\"\s{0,8}:\s{0,8}\\{0,7}\"[^\"\n]{0,40}\Z")
_SENTENCE_BEFORE = re.compile(r"(?:\A|\n|[.!?] )\Z")
_WORDS_AFTER = re.compile(r"(?: [^\W_]{1,24}){3,8}")


def _addresses(text: str, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """Join neighbouring words of streets, places and codes to addresses."""
    block: list[_Judged] = []
    for each in judged:
        word = each.word
        if each.kind not in (Label.PLACE, Label.STREET, Label.CODE) or _is_heading(text, word.start, word.end):
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
    if _is_label(text, start, end):
        return
    named = any(each.kind is Label.STREET and any(map(str.isalpha, each.word.text)) for each in block)
    numbered = any(each.word.text[0].isdigit() for each in block)
    if named and numbered and len(block) > 1:
        yield Finding(start, end, PiiType.ADDRESS, 0.75)
    elif any(each.kind is Label.PLACE for each in block):
        places = [e for e in block if e.kind is not Label.CODE and e.word.text[0].isupper()]
        codes = [
            e for e in block if e.kind is Label.CODE and len(e.word.text) > 2 and any(map(str.isdigit, e.word.text))
        ]
        if places and places[0].score >= _SURE_PLACE:
            end = max(places[-1].word.end, codes[-1].word.end if codes else 0)
            yield Finding(places[0].word.start, end, PiiType.LOCATION, 0.6)
    elif (
        named
        and len(block) > 1
        and ". " not in text[start:end]
        and text[start - 1 : start] not in _SEPARATORS
        and all(not each.word.text[0].islower() for each in block)
    ):
        yield Finding(start, end, PiiType.ADDRESS, 0.55)
