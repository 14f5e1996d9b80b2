"""The words of a text that the model is asked about.

Tool results are mostly code, logs and records, where a model trained on letters sees names in everything; and asking is
what costs. So a word is asked about only with a capital letter that the start of a sentence does not explain, in prose
without capitals, or after a word that people often follow; never as a key, an identifier or beside a character of code;
and what the rules have found already is not asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..lists import EVERYDAY, NO_NAMES, SMALL
from ..names import FAMILY_NAMES, GIVEN_NAMES

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LONGEST_WORD = 40
_CODE_BEFORE = frozenset("_/\\={}[]@#$%&~^`")
_CODE_AFTER = frozenset("_\\={[@#$%&*~^`/(")
_KEY_AFTER = re.compile(r"\\{0,3}[\"']?\s{0,3}[:=](?!\s{0,8}\Z)")
_QUOTED_KEY_AFTER = re.compile(r"\\{0,3}\"\s{0,3}:")
_KEY_BEFORE = frozenset("\"'{,\\\n")
_LETTER_WORD = re.compile(r"(?<![\w'])[A-Za-z']+(?!\w)")
_COMMENT = re.compile(r"[ \t]{0,40}(?:#|//)(?:[ \t]|\r?$)", re.MULTILINE)
_FILLED = re.compile(r"[ \t\r]{0,200}[^ \t\r]")
_CODE_LINE = re.compile(
    r"[ \t]{0,80}+(?:"
    r"(?:import|from|package|using|include|require|use)[ \t]+[^\s,]+(?:[ \t]+(?:import|as)\b[^\n]*|,[^\n.]*)?;?\s*\Z"
    r"|return\b(?:[ \t]+[\w.]+)?;?\s*\Z|#include\b|@\w|\"\"\"|'''|\[[\w. -]{1,80}\]\s*\Z"
    r"|[a-z_][\w.-]{0,80}(?::(?:[ \t]+\S+)?\s*\Z|[ \t]?[:+*|-]?=)"
    r"|[^\n]*(?:[;{}(\[]\s*\Z|\w\((?!s\))|[\w\])] [:+*/|-]?=[ ]))"
)
"""A line that only code and settings have; or else a `_STATEMENT`."""
_CODE_SIGN = re.compile(r'[{}\[\]=<>_\\|;$#"]')
_SENTENCE_STARTS = re.compile(r"(?:\A|[\n.!?:;)>\"“”'•*–—-])[ \t]{0,3}\Z")
_EXPECTED_CAPITAL = re.compile(r"(?:\A[ \t>*-]{0,8}|[.!?:] )[\"“']?[^\W\d_]['’\w]*|\bI(?:['’](?:m|ve|ll|d))?(?!\w)")
_BEFORE_PEOPLE = re.compile(
    r"\b(?:with|meet|met|saw|asks?|asked|tells?|told|calls?|called|e?mail|contact|thanks?|hi|hello|dear|mrs?|ms|dr|cousin|"
    r"name is|name['’]s|i['’]m|i am|this is|"
    r"named|beside|colleague|friend|boss|neighbou?r|brother|sister|wife|husband|son|daughter|uncle|aunt)\.? \Z",
    re.IGNORECASE,
)
_LONGEST_BEFORE = 14
_OPERATORS = "and|or|not|in|is|if|else|for|as|lambda|await|from|case"
_NOT_IN_CODE = "the|to|of|us|it|we|you|he|she|they|him|them|her|his|my|our|your|their|was|were|are|who|so"
_STATEMENT = re.compile(
    r"[ \t]{0,80}(?:if|elif|for|while|with|except|def|class|case|async)\b"
    # Code names things by one word each, and has no words that only sentences need.
    rf"(?![^\n]*\b(?!(?:{_OPERATORS})\b)[^\W\d]+ (?!(?:{_OPERATORS})\b)[^\W\d]+)"
    rf"(?![^\n]*\b(?:{_NOT_IN_CODE})\b)"
    r"[^\n]*:[ \t]*\Z"
)
_LONGEST_LINE = 4000
_FEWEST_WORDS, _SMALL_SHARE, _CODE_SHARE = 4, 0.18, 0.02
_SHORTEST_CAPITALS = 3
_SHORTEST_GIVEN = 3
_GIVEN_BEFORE = re.compile(r"(?<![\w.@/-])([a-z]{3,24}|[A-Z]{3,24}) \Z")
_LONGEST_GIVEN = 26
_WORDS_ALSO = frozenset(
    "elif ela jet hale dean chad mick bas ties sil sem paca lope luce els nur sait rana gala pili isa bibi beau mercedes salvador dolores srta".split()
)
SMALL_GIVEN = frozenset(
    low
    for name in GIVEN_NAMES
    if len(low := name.lower()) >= _SHORTEST_GIVEN and low not in EVERYDAY and low not in _WORDS_ALSO
)
"""Given names as they are written in small letters."""
SMALL_FAMILIES = frozenset(map(str.lower, FAMILY_NAMES))
_FAMILY_AFTER = re.compile(r" ([a-z]{2,24}|[A-Z]{2,24})(?![\w@])")


class Word(NamedTuple):
    """A word and where it stands; `in_prose`: its line reads like natural language.

    `in_small`: and has no capitals. `in_sentences`: and has none but those of `I` and of words that begin sentences.
    """

    start: int
    end: int
    text: str
    in_prose: bool
    in_small: bool
    in_sentences: bool


def words(text: str, settled: Sequence[tuple[int, int]]) -> Iterator[Word]:
    """Yield the words that begin outside the stretches that are settled (in order)."""
    prose = _prose_lines(text)
    nothing = (len(text) + 1, len(text) + 1, False, False)
    prose_start, prose_end, in_small, in_sentences = next(prose, nothing)
    index = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        while index < len(settled) and settled[index][1] <= start:
            index += 1
        if (index < len(settled) and settled[index][0] <= start) or end - start > _LONGEST_WORD:
            continue
        while prose_end <= start:
            prose_start, prose_end, in_small, in_sentences = next(prose, nothing)
        in_prose = prose_start <= start
        yield Word(start, end, match[0], in_prose, in_prose and in_small, in_prose and in_sentences)


_PROTOCOL = re.compile(
    r"^(?:BEGIN|END|METHOD|ACTION|STATUS|TRANSP|CLASS|BUSYTYPE|CALSCALE|PRODID|TZNAME|TZID)[^:\r\n]{0,60}:[^\r\n]*",
    re.MULTILINE,
)


MODE_OF_FILE = r"[-dlbcps](?:[r-][w-][-xsStT]){3}[.+@]?"
"""How `ls -l` writes it."""
_LISTED = re.compile(rf"^{MODE_OF_FILE}(?: +[\w.:-]{{1,40}}){{7}} ", re.MULTILINE)
"""A line of `ls -l` up to the name of the file."""


def protocol_lines(text: str) -> list[tuple[int, int]]:
    """Return the lines of calendars and contact cards (RFC 5545, 6350) that hold words of the format alone."""
    lines = [match.span() for match in _PROTOCOL.finditer(text)] if "BEGIN:V" in text else []
    return lines + [match.span() for match in _LISTED.finditer(text)]


def comments(text: str) -> list[tuple[int, int]]:
    """Return blocks of two or more comment lines beside code: whom they thank is published with it."""
    if "# " not in text and "// " not in text and "#\t" not in text and "//\t" not in text:
        return []
    blocks: list[tuple[int, int]] = []
    start = lines = 0
    follows_code = False  # whether the last line before the block that is not empty is code
    waiting: list[tuple[int, int]] = []  # blocks with no code before them, until it is known what comes after
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if _COMMENT.match(text, at, end + 1):
            start, lines = (at, 1) if not lines else (start, lines + 1)
        else:
            if lines > 1:
                (blocks if follows_code else waiting).append((start, at))
            lines = 0
            if _FILLED.match(text, at, end):
                line = text[at : min(end, at + _LONGEST_LINE)]
                follows_code = bool(_CODE_LINE.match(line) or _STATEMENT.match(line))
                blocks += waiting if follows_code else ()
                waiting = []
        at = end + 1
    if lines > 1 and follows_code:
        blocks.append((start, len(text)))
    return blocks


def is_asked(text: str, word: Word) -> bool:
    """Return whether a word is worth the model's time: whether it could be a name and would count as one."""
    said = word.text
    if said[0].isupper():
        low = said.lower()
        if low in NO_NAMES or (said.isupper() and (len(said) < _SHORTEST_CAPITALS or not said.isalpha())):
            return False
        if low in EVERYDAY and _SENTENCE_STARTS.search(text, max(0, word.start - 4), word.start):
            return False
    elif said in EVERYDAY or not (
        word.in_small
        or said in SMALL_GIVEN
        or follows_given(text, word)
        or (word.in_sentences and comes_after_cue(text, word))
    ):
        return False
    return not is_code(text, word) and not is_key(text, word)


def comes_after_cue(text: str, word: Word) -> bool:
    """Return whether what stands before a word often stands before people: `with`, `called`, `my name is`."""
    return _BEFORE_PEOPLE.search(text, max(0, word.start - _LONGEST_BEFORE), word.start) is not None


def follows_given(text: str, word: Word) -> bool:
    """Return whether a given name in small letters stands right before a word."""
    before = _GIVEN_BEFORE.search(text, max(0, word.start - _LONGEST_GIVEN), word.start)
    return before is not None and before[1].lower() in SMALL_GIVEN


def is_full_name(text: str, word: Word) -> bool:
    """Return whether a word without a capital of its own is one of a given and a family name that are both known."""
    low = word.text.lower()
    if low in SMALL_GIVEN:
        after = _FAMILY_AFTER.match(text, word.end)
        return after is not None and after[1].lower() in SMALL_FAMILIES
    return low in SMALL_FAMILIES and follows_given(text, word)


def is_code(text: str, word: Word) -> bool:
    """Return whether a character of code stands beside a word."""
    start, end = word.start, word.end
    if start:
        before = text[start - 1]
        if before in _CODE_BEFORE or (before == "." and start > 1 and text[start - 2].isalnum()):
            return True
    after = text[end : end + 2]
    return after[:1] in _CODE_AFTER or (after[:1] == "." and after[1:].isalnum()) if after else False


def is_key(text: str, word: Word) -> bool:
    """Return whether a word is the key of a field."""
    following = text[word.end : word.end + 8]
    if ":" not in following and "=" not in following:
        return False
    if _QUOTED_KEY_AFTER.match(following):
        return True
    before = text[word.start - 1] if word.start else "\n"
    return before in _KEY_BEFORE and not following.startswith(": ") and _KEY_AFTER.match(following) is not None


def _prose_lines(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield the lines that read like natural language, by small words and few signs, and which capitals they have."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start : min(end, start + _LONGEST_LINE)]
        said = _LETTER_WORD.findall(line)
        if len(said) >= _FEWEST_WORDS and not _STATEMENT.match(line):
            small = sum(word.lower() in SMALL for word in said)
            if small >= _SMALL_SHARE * len(said) and len(_CODE_SIGN.findall(line)) < _CODE_SHARE * len(line):
                rest = _EXPECTED_CAPITAL.sub("", line)
                yield start, end, line == line.lower(), rest == rest.lower()
        start = end + 1
