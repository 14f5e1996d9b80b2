"""What of a finding is hidden: a name without its titles, no amount of money as a number, nothing that is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .findings import Finding, PiiType

# Those that are also words or names count with their point alone.
_BEFORE = re.compile(
    r"(?:(?:(?:Dr|Prof|Mr|Mrs|Ms|Mx|Sr|Sra|Srta|Dra|Sig|Dott|Mme|Mlle|Dhr|Mevr|dr|prof|mr|mrs|ms|DR|PROF|MR|MRS|MS)\.?"
    r"|(?:PD|M|MM|Mag|Ing|Lic|Arq|Avv|Rev|Hon|Doç|Öğr|Uzm|Uz|Av|Okt|Çev|Arş|Gör|Yrd|Sig\.ra|Dott\.ssa|Dr\.ssa|Dipl\.-Ing|Dipl\.-Kfm|Univ\.-?Prof|dhr|mevr|B\.Sc|M\.Sc)\."
    r"|Miss|Sir|Dame|Herrn?|Frau|Monsieur|Madame|Mademoiselle|Señora?|Señorita|Signora?|Signorina|Senhora?|Doutora?"
    r"|[Mm]evrouw|[Mm]eneer|[Pp]ani?|Bay|Bayan|Sayın"
    r"|[Гг]-н|[Гг]-жа|[Гг]-на|[Гг]осподин|[Гг]оспожа|[Пп]ан[іа]?|панна|[Дд]-р|тов\.|товарищ"
    r"|श्रीमती|श्रीमान|श्री|सुश्री|कुमारी|डॉ\.?|डा\.|माननीय|आदरणीय|पंडित"
    r"|السيدة|السيد|الأستاذة|الأستاذ|الدكتورة|الدكتور|المهندسة|المهندس|الآنسة|د\.|أ\.|م\.)[ \t\u00a0]{1,2}){1,4}"
)
_AFTER = re.compile(r"[ \u3000]?(?:様|さん|さま|殿|先生|女士|小姐|님|씨)\Z| (?:जी|साहब)\Z")
_LONGEST_AFTER, _FEWEST_LETTERS = 4, 2


def _without_titles(text: str, finding: Finding) -> Finding:
    """Return a person's finding without the titles that it begins or ends with, unless nothing else is in it."""
    start, end = finding.start, finding.end
    if before := _BEFORE.match(text, start, end):
        start = before.end()
    if not text[end - 1].isascii() and (after := _AFTER.search(text, max(start, end - _LONGEST_AFTER), end)):
        end = after.start()
    if (start, end) == (finding.start, finding.end) or sum(map(str.isalpha, text[start:end])) < _FEWEST_LETTERS:
        return finding
    return Finding(start, end, finding.type, finding.score)


_NUMBERS = frozenset(
    (
        *(PiiType.PHONE, PiiType.CARD, PiiType.SSN, PiiType.BANK, PiiType.TAX_ID, PiiType.NATIONAL_ID),
        *(PiiType.PASSPORT, PiiType.DRIVING_LICENCE, PiiType.MEDICAL, PiiType.ZIP, PiiType.IBAN),
    )
)
_AMOUNT = re.compile(r"[-+]?(?:\d{1,15}|\d{1,3}(?:,\d{3}){1,4})\.\d{1,2}|[-+]?\d{1,3}(?:\.\d{3}){1,4},\d{2}")
_WHOLE = re.compile(r"\d{1,15}")
_DECIMALS = re.compile(r"\.\d{1,2}(?![\d.])")
_NAMES_OF_CODE = frozenset((PiiType.PERSON, PiiType.LOCATION, PiiType.USERNAME))
_IN_ERRORS = re.compile(
    r"'(\w{1,80})' object (?:has|is|does|cannot)\b"
    r"|\bname '(\w{1,80})' is not defined|\bcannot import name '(\w{1,80})'|\bno attribute '(\w{1,80})'"
    r"|\bvariable '(\w{1,80})' (?:referenced|where|is not)|\bkeyword argument '(\w{1,80})'|\bargument: '(\w{1,80})'"
    r"|\bNo module named '([\w.]{1,80})'|\. Did you mean: '(\w{1,80})'\?"
)
_ERROR_SIGNS = (
    " is not defined",
    "cannot import",
    "no attribute",
    "variable '",
    "argument",
    "No module",
    "Did you mean",
)
_DIVISIBLE = frozenset((PiiType.PERSON, PiiType.ADDRESS, PiiType.LOCATION))


def fitted(text: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as they are hidden: names of people without titles, and of numbers none that are amounts."""
    for each in findings:
        if each.type == PiiType.PERSON:
            yield _without_titles(text, each)
        elif each.type not in _NUMBERS or not _is_amount(text, each):
            yield each


def _is_amount(text: str, finding: Finding) -> bool:
    """Return whether a number has one or two decimals: only a word beside it made it a telephone number or the like."""
    value = text[finding.start : finding.end]
    return _AMOUNT.fullmatch(value) is not None or (
        _WHOLE.fullmatch(value) is not None and _DECIMALS.match(text, finding.end) is not None
    )


def without_names_of_code(text: str, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings but those that are what code calls something, as Python's messages of errors quote it."""
    if "'" not in text or not any(sign in text for sign in _ERROR_SIGNS):
        return findings
    quoted = [match.span(match.lastindex or 0) for match in _IN_ERRORS.finditer(text)]
    return [
        each
        for each in findings
        if each.type not in _NAMES_OF_CODE or not any(start <= each.start and each.end <= end for start, end in quoted)
    ]


class Allowed:
    """Values that are never personal: exact ones, and expressions that match a whole value."""

    def __init__(self, values: Iterable[str], patterns: Sequence[re.Pattern[str]]) -> None:
        self._values = frozenset(values)
        self._patterns = patterns
        words = sorted((value for value in self._values if value), key=len, reverse=True)
        self._parts = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)") if words else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is allowed."""
        return not self._values and not self._patterns

    def remaining(self, text: str, finding: Finding) -> Iterator[Finding]:
        """Yield what of a finding is not allowed: of a name, a place or an address the parts beside it."""
        value = text[finding.start : finding.end]
        if self.is_empty:
            yield finding
        elif value in self._values or any(pattern.fullmatch(value) for pattern in self._patterns):
            return
        elif finding.type not in _DIVISIBLE:
            yield finding
        else:
            yield from _beside(finding, value, self._allowed_parts(value))

    def _allowed_parts(self, value: str) -> list[tuple[int, int]]:
        parts = [match.span() for match in self._parts.finditer(value)] if self._parts else []
        if self._patterns:
            parts += [
                word.span()
                for word in _WORDS.finditer(value)
                if any(pattern.fullmatch(word[0]) for pattern in self._patterns)
            ]
        return sorted(parts)


def _beside(finding: Finding, value: str, allowed: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    if not allowed:
        yield finding
        return
    at = 0
    for start, end in (*allowed, (len(value), len(value))):
        left = value[at:start]
        inner = _INNER.search(left)
        if inner and any(map(str.isalnum, left)):
            first = finding.start + at + inner.start()
            yield Finding(first, first + len(inner[0]), finding.type, finding.score)
        at = max(at, end)


_WORDS = re.compile(r"\w+(?:[.'’-]\w+)*")
_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)
