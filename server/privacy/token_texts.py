"""Tokens in texts: how they are written, where they may be put, and how they are read back.

A token is `[TYPE_xxxxxxxxxx]`: the type of what it stands for, and ten letters and digits of Crockford's base 32 that
only the vault can make and resolve (`sealab.skills_db.vault`). Nothing is ever replaced inside a token, and what a
token is restored to is not looked at again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..base.host_work import checked
from .detection.findings import PiiType

TOKEN = re.compile(r"\[([A-Z](?:[A-Z0-9_]{0,30}[A-Z0-9])?)_([0-9a-hjkmnp-tv-z]{10})\]")

_OPENS, _CLOSES = "[\uff3b\u3010\u3014\u3016", "]\uff3d\u3011\u3015\u3017"
_ESCAPED = re.compile(
    r"&(?:amp;)?(?:#0{0,4}9[135]|#[xX]0{0,4}5[bBdDfF]|l[sb]r?qb|r[sb]r?qb|lbrack|rbrack|lowbar|UnderBar);"
    r"|%(?:25)?5[bBdDfF]|=5[BDF]|\\{1,4}u005[bBdDfF]|\\{1,4}u\{0{0,4}5[bBdDfF]\}|\\{1,4}x5[bBdDfF]"
    r"|\\{1,4}[\[\]_*`{}-]|=[ \t]{0,4}\r?\n|\\\r?\n[ \t]{0,16}|<wbr ?/?>"
    r"|[\u00ad\u200b-\u200f\u2060\ufeff\uff10-\uff19\uff21-\uff3d\uff3f\uff41-\uff5a\u3010\u3011\u3014-\u3017]"
)
"""What is written for a sign of a token: entities, percent and unicode escapes, Markdown's, quoted-printable,
full-width letters; and what stands between two and is not seen."""
_WRAP = r"[ \t]{0,4}\r?\n[ \t>|#*]{0,16}"
_NEAR = re.compile(
    rf"(?<![A-Za-z0-9_])_{{0,2}}([A-Za-z][A-Za-z0-9]{{0,30}}(?:[_-][A-Za-z]{{1,30}}){{0,2}})"
    rf"(?:(?:{_WRAP})?[_-](?:{_WRAP})?| (?=[0-9A-Za-z]{{10}}(?![0-9A-Za-z_-])))"
    r"([0-9A-Za-z]{10}(?![0-9A-Za-z])|[0-9A-Za-z]{3,16}(?![0-9A-Za-z]|[_-][0-9A-Za-z]))"
    rf"(?:({_WRAP})([0-9A-Za-z]{{1,7}})(?![0-9A-Za-z]))?"
)
"""A type and what may be the rest of a token, which a line break may part."""
_SPREAD = re.compile(r"\[[ \t\r\n]{0,8}([A-Za-z][A-Za-z0-9_ \t\r\n>|#*:./\u00a0\u2010-\u2014-]{8,90})\]")
"""All that stands between two brackets, where it may be a token with blanks or line breaks or other signs in it."""
_SPREAD_TOKEN = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]{0,30}[A-Za-z0-9])?)_{0,3}([0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{10})")
_BLANKS = re.compile(r"[ \t\r\n>|#*:./\u00a0\u2010-\u2014-]+")
_NUMBERED = re.compile(r"\[([A-Z](?:[A-Z0-9_]{0,30}[A-Z0-9])?)[_ -]?(?:[0-9]{1,3}|[A-Z])\]")
"""What models write for somebody without having a token."""
_BARE = re.compile(
    r"\[([0-9a-hjkmnp-tv-z]{10})(?:(?:_[A-Za-z_]{2,30})?\]|(?![0-9A-Za-z_]))|(?<![0-9A-Za-z])([0-9a-hjkmnp-tv-z]{10})\]"
)
"""A token that lost its type."""
_CUT_END = re.compile(r"(?:\.{2,4}|…)?\]?")
_LEFT_OUT = re.compile(r"\[([A-Z][A-Z0-9_]{0,31})_(?:\.{2,4}|…)\]?")
_OF_TOKEN = re.compile(r"[0-9a-hjkmnp-tv-z]+")
_MIXED = re.compile(r"[0-9]+[A-Za-z]|[A-Za-z]+[0-9]")
TOKEN_LETTERS = 10
_SIGN = re.compile(r"[_-]")
_BRACKET_WITHIN = 200
_BRACKET = re.compile(r"[^\[\]]+")
_AROUND = "<>()`*\"' "
_LINK = re.compile(r"\((?:https?:|mailto:|tel:|\.{0,2}/|#)")
"""Behind a token whose brackets are those of a link in Markdown, too."""
KINDS = frozenset(map(str, PiiType))
"""The types by which a token is recognized that lost its brackets or some of its letters."""

Edit: TypeAlias = tuple[int, int, str]
"""What is replaced, from a character to another, by what."""
_NOT_OF_TYPE = re.compile(r"[^A-Z0-9]")
_WORDY = re.compile(r"\w")
_PIECE_LEAST = 3
"""Letters and digits that must be left of a finding that overlaps another, for the rest to count as a finding."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (half open) of a text are to be replaced; they are of `type`."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Mention:
    """What may be a token in a text; `kind` and `token` as they are looked up, whatever they were rewritten to.

    `token` is empty where too few or too many letters are left of it to be looked up. `exact`: it is written as it was
    shown. `clear`: it is a token by its form alone; what is not is one where the vault has it.
    """

    start: int
    end: int
    kind: str
    token: str
    exact: bool = True
    clear: bool = True

    def names(self, kind: str) -> bool:
        """Return whether the type that stands in the text is the one in the vault."""
        return kind == self.kind if self.exact else _bare(kind) == _bare(self.kind)


def tokens_in(text: str) -> list[tuple[int, int]]:
    """Return where tokens stand in a text."""
    return [match.span() for match in TOKEN.finditer(text)] if "[" in text else []


def mentions_in(text: str) -> list[Mention]:
    """Return the tokens of a text in order, also those that were rewritten, cut or altered."""
    found = [
        Mention(match.start() + is_link, match.end() - is_link, match[1], match[2])
        for match in (TOKEN.finditer(text) if "[" in text else ())
        for is_link in (_LINK.match(text, match.end()) is not None,)
    ]
    plain, places = _plain(TOKEN.sub(_blank, text) if found else text)
    taken: list[tuple[int, int]] = []
    for mention in _near(plain):
        start, end = mention.start, mention.end
        if places is not None:
            start, end = places[start][0], places[end - 1][1]
        at = bisect_left(taken, (start, start))
        if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < end):
            continue
        taken.insert(at, (start, end))
        found.append(Mention(start, end, mention.kind, mention.token, exact=False, clear=mention.clear))
    found.sort(key=lambda mention: mention.start)
    return found


def _blank(match: re.Match[str]) -> str:
    return "\0" * (match.end() - match.start())


def _plain(text: str) -> tuple[str, Sequence[tuple[int, int]] | None]:
    """Return a text with the signs of tokens as they were, and where each of its characters stands, if that differs."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for match in checked(_ESCAPED.finditer(text)):
        start, end = match.span()
        said = _sign(match[0])
        parts += (text[at:start], said)
        places += ((place, place + 1) for place in range(at, start))
        places += [(start, end)] * len(said)
        at = end
    if not at:
        return text, None
    places += ((place, place + 1) for place in range(at, len(text)))
    return "".join(parts) + text[at:], places


def _sign(source: str) -> str:
    if len(source) == 1:
        return "[" if source in _OPENS else "]" if source in _CLOSES else _folded(source)
    if source[0] == "&":
        said = source[1:-1].lower().removeprefix("amp;").lstrip("#x0")
        return {"91": "[", "5b": "[", "93": "]", "5d": "]", "95": "_", "5f": "_"}.get(said) or (
            "_" if said in {"lowbar", "underbar"} else "[" if said[0] == "l" else "]"
        )
    code = source.rstrip("}") if "{" in source else source
    if code[-2] == "5" and source[0] in "%=\\":
        return {"b": "[", "d": "]", "f": "_"}[code[-1].lower()]
    return source[-1] if source[0] == "\\" and not source[-1].isspace() else ""


def _folded(sign: str) -> str:
    return chr(ord(sign) - 0xFEE0) if "\uff00" < sign < "\uff5f" else ""


def _near(text: str) -> Iterator[Mention]:
    """Yield what may be tokens in a text whose signs are plain; in no order, and several may stand at one place."""
    if "[" in text:
        for match in checked(_SPREAD.finditer(text)):
            said = _SPREAD_TOKEN.fullmatch(_BLANKS.sub("", match[1]))
            if said is not None and said[1].upper() in KINDS:
                yield Mention(*match.span(), said[1], said[2].lower(), clear=_is_mixed(said[2]))
        for pattern in (_LEFT_OUT, _NUMBERED):
            for match in checked(pattern.finditer(text)):
                if match[1] in KINDS:
                    yield Mention(*match.span(), match[1], "")
    inside = len(text) - len(text.lstrip(_AROUND)), len(text.rstrip(_AROUND))
    for match in checked(_NEAR.finditer(text)):
        is_words = match[2].isalpha() and text[match.end(1)] == " "
        if not is_words or text[match.start(1) - 1 : match.start(1)] == "[":
            yield from _near_at(text, match, *inside)
    if "[" in text or "]" in text:
        for match in checked(_BARE.finditer(text)):
            if _is_mixed(match[1] or match[2]):
                yield Mention(*match.span(), "", match[1] or match[2], clear=False)


def _near_at(text: str, match: re.Match[str], first: int, last: int) -> Iterator[Mention]:
    """Yield what a match is; all but signs around a token stands from `first` to `last` (half open) in the text."""
    kind, letters, start, end = match[1], match[2], match.start(1), match.end(2)
    is_spaced = text[match.end(1) : match.start(2)] == " "
    if match[4] and len(letters) + len(match[4]) == TOKEN_LETTERS:
        letters, end = letters + match[4], match.end(4)
    opened, closed = text[start - 1 : start] == "[", text[end : end + 1] == "]"
    behind = next((part for part in _parts_behind(kind) if part.upper() in KINDS), kind)
    kind, start = behind, start + len(kind) - len(behind)
    is_word, is_type = not _is_mixed(letters), kind.upper() in KINDS
    if is_spaced and not is_type:
        kind, start = "", match.start(2)
    if opened and (closed or not _BRACKET.sub("", text[end : end + _BRACKET_WITHIN]).startswith("]")):
        start -= 1
    if closed and (opened or not _BRACKET.sub("", text[max(0, start - _BRACKET_WITHIN) : start]).endswith("[")):
        end += 1
    while text[start - 1 : start] == "{" and text[end : end + 1] == "}":
        start, end = start - 1, end + 1
    if start <= first and last <= end:
        start, end = 0, len(text)
    if len(letters) == TOKEN_LETTERS and _OF_TOKEN.fullmatch(letters.lower()):
        if not (is_spaced and is_word) or (opened and closed):
            yield Mention(start, end, kind, letters.lower(), clear=not is_word and (opened or closed or is_type))
        return
    # Too few letters of one, too many, or others.
    is_named = not is_spaced and (is_type or kind.isupper()) and (opened or (is_type and kind.isupper()))
    is_cut = opened and not closed and is_type and kind.isupper() and letters.islower()
    if is_cut or (is_named and not is_word and (opened or letters == letters.lower())):
        cut = _CUT_END.match(text, end)
        yield Mention(start - (text[start - 1 : start] == "["), end if cut is None else cut.end(), kind, "")


def _parts_behind(kind: str) -> Iterator[str]:
    """Yield what stands behind each sign in a name, the longest first: `cc-EMAIL` may be a word and a type."""
    yield kind
    yield from (kind[match.end() :] for match in _SIGN.finditer(kind))


def _is_mixed(letters: str) -> bool:
    return _MIXED.match(letters) is not None


def disjoint(text: str, spans: Iterable[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return spans in order that overlap neither each other nor what is `taken`, and hide all that the given ones do.

    The longest comes first; what is left of one that overlaps it stays a span of its own, unless that is hardly a word.
    """
    kept: list[Span] = []
    borders = sorted(taken)
    for span in checked(sorted(spans, key=lambda each: (each.start - each.end, each.start))):
        for start, end in list(_outside(span.start, span.end, borders)):
            whole = (start, end) == (span.start, span.end)
            start, end = (start, end) if whole else _trimmed(text, start, end)  # noqa: PLW2901 - the same piece, tidied
            if start < end and (whole or len(_WORDY.findall(text, start, end)) >= _PIECE_LEAST):
                kept.append(Span(start, end, span.type))
                insort(borders, (start, end))
    return sorted(kept, key=lambda each: each.start)


def gaps(length: int, taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the stretches of a text of that length that are not taken."""
    yield from _outside(0, length, sorted(taken))


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with each `(start, end, replacement)` put in; the edits are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, replacement in edits:
        parts += (text[at:start], replacement)
        at = end
    return "".join(parts) + text[at:]


def _outside(start: int, end: int, borders: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give what of a stretch lies outside the borders, which are in order and do not overlap."""
    at = start
    position = bisect_left(borders, (start, start))
    if position and borders[position - 1][1] > start:
        position -= 1
    while position < len(borders) and borders[position][0] < end:
        low, high = borders[position]
        if at < low:
            yield at, low
        at = max(at, high)
        position += 1
    if at < end:
        yield at, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not _WORDY.match(text[start]):
        start += 1
    while start < end and not _WORDY.match(text[end - 1]):
        end -= 1
    return start, end


def _bare(kind: str) -> str:
    return _NOT_OF_TYPE.sub("", kind.upper())
