"""What of the findings is hidden: disjoint ones, names without titles, no amounts, nothing allowed; and the same values elsewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .findings import Finding, PiiType
from .keys import is_label, label_at_end
from .lists import EVERYDAY, PLAIN_WORDS
from .names import FAMILY_NAMES, GIVEN_NAMES
from .scripts import CAPITALS, HANGUL, UNSPACED

# Of these, what remains beside a stronger finding is still personal: the rest of an address beside its postal code.
_PERSONAL_IN_PART = frozenset((PiiType.ADDRESS, PiiType.PERSON, PiiType.LOCATION, PiiType.SECRET))
_LEAST_LETTERS = 2
_CONTAINERS = frozenset((PiiType.ADDRESS, PiiType.SECRET))


def disjoint(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return disjoint findings in order: the higher score wins, then the longer one; remainders of some types stay."""
    taken = bytearray(len(text))
    kept: list[Finding] = []
    for finding in sorted(_united(findings), key=lambda f: (-_rank(f), f.start - f.end, f.start, f.type)):
        first = taken.find(1, finding.start, finding.end)
        pieces: Iterable[Finding] = (finding,)
        if first >= 0:
            pieces = _remainders(text, taken, finding) if finding.type in _PERSONAL_IN_PART else ()
        for piece in pieces:
            taken[piece.start : piece.end] = b"\x01" * (piece.end - piece.start)
            kept.append(piece)
    return sorted(kept)


def _united(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Make one of findings of one type that overlap, with the best score of theirs."""
    last: Finding | None = None
    for finding in sorted(set(findings), key=lambda f: (f.type, f.start, -f.end)):
        if last and last.type == finding.type and finding.start < last.end:
            last = Finding(last.start, max(last.end, finding.end), last.type, max(last.score, finding.score))
            continue
        if last:
            yield last
        last = finding
    if last:
        yield last


def _rank(finding: Finding) -> float:
    """Return the score; an address wins over the codes and places within it, when it is about as sure."""
    return finding.score + 0.15 * (finding.type in _CONTAINERS)


def _remainders(text: str, taken: bytearray, finding: Finding) -> Iterator[Finding]:
    at = finding.start
    while at < finding.end:
        if taken[at]:
            at += 1
            continue
        end = taken.find(1, at, finding.end)
        end = finding.end if end < 0 else end
        start, following = at, end
        while start < end and not text[start].isalnum():
            start += 1
        while end > start and not text[end - 1].isalnum():
            end -= 1
        if sum(map(str.isalnum, text[start:end])) >= _LEAST_LETTERS:
            yield Finding(start, end, finding.type, finding.score)
        at = following


# Those that are also words or names count with their point alone.
# `CV.pdf` behind a name, or `.docx` alone
_FILE_END = re.compile(r"(?:[ _-](?:[A-Z]{2,3}|[a-z]{2,12}))?\.(?:[a-z]{2}[a-z0-9]{1,2}|7z)(?!\w)")
_LONGEST_FILE_END, _LONGEST_EXTENSION = 14, 6
_COLON = re.compile(
    r"((?:[ .#/-]{1,2}[^\W\d_]{0,16}){0,2}\.?)(?:[ ]?(?::(?!\S)|\uff1a)|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]):)"
)
"""Behind a name that runs into the next label: `Jane Roe Date` of `Jane Roe Date of Birth:`."""
_KEYED, _LONGEST_KEYED = re.compile(r"[^\W\d_]\.?:[ \t]{1,8}(?:[^\W\d_]{1,6}\.? ){0,2}\Z"), 32
"""Before a name that is a value: what runs into the next colon is a label then, and not the speaker's."""
_BEFORE = re.compile(
    r"(?:(?:(?<=\d )[AaPp]\.?[Mm]\.?|(?:Dr|Prof|Mr|Mrs|Ms|Mx|Sr|Sra|Srta|Dra|Sig|Dott|Mme|Mlle|Dhr|Mevr|dr|prof|mr|mrs|ms|DR|PROF|MR|MRS|MS)\.?"
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
    if colon := _COLON.match(text, end):
        label = start + label_at_end(text[start : colon.end(1)])
        if label < end and (
            is_label(text[label : colon.end(1)])
            or text[label:end].lower() in EVERYDAY
            or (" " in text[start:label].strip() and _KEYED.search(text, max(0, start - _LONGEST_KEYED), start))
        ):
            end = label
    if file := _FILE_END.search(text, max(start, end - _LONGEST_FILE_END), end + _LONGEST_EXTENSION):
        end = max(start, file.start()) if file.start() < end else end
    if (of := _OF.search(text, start, end)) and of[1] in GIVEN_NAMES and not _may_be_name(text[start : of.start()]):
        start = of.start(1)
    if text[start:end].isupper() and text[start:end].isalpha():
        start, end = _with_capitals(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    if (start, end) == (finding.start, finding.end) or sum(map(str.isalpha, text[start:end])) < _FEWEST_LETTERS:
        return finding
    return Finding(start, end, finding.type, finding.score)


_OF = re.compile(r" (?:von|van|de|di|da|del|af|av) ([^\W\d_a-z][^\W\d_]{2,24})\b")
_CAPITALS_AFTER = re.compile(rf",? ([{CAPITALS}'’-]{{3,24}})(?: [{CAPITALS}]\.?)?(?![\w-]|,? [{CAPITALS}]{{2}})")
_CAPITALS_BEFORE = re.compile(rf"(?<![\w-])(?<![{CAPITALS}]{{2}} )([{CAPITALS}'’-]{{3,24}}),? \Z")
_LONGEST_CAPITALS = 27


def _may_be_name(words: str) -> bool:
    return " " in words or words in GIVEN_NAMES or words in FAMILY_NAMES


def _with_capitals(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where a name in capitals stands with the other one of two: `ROE` of `ROE, JANE`, where `JANE` is known."""
    after = _CAPITALS_AFTER.match(text, end)
    if after and after[1].lower() not in PLAIN_WORDS and not is_label(after[1]):
        return start, after.end()
    before = _CAPITALS_BEFORE.search(text, max(0, start - _LONGEST_CAPITALS), start)
    if before and before[1].lower() not in PLAIN_WORDS and not is_label(before[1]):
        return before.start(), end
    return start, end


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
_ALLOWED_IN_PART = frozenset((PiiType.PERSON, PiiType.ADDRESS, PiiType.LOCATION))


def fitted(text: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as they are hidden: names of people without titles, and of numbers none that are amounts."""
    for each in findings:
        if each.type == PiiType.PERSON:
            yield _without_titles(text, each)
        elif each.type not in _NUMBERS or not (_is_amount(text, each) or _is_of_thing(text, each)):
            yield each


_SERIAL = re.compile(
    r"(?i)(?:\b(?:s/n|serial|serien-?(?:nr|nummer)|seriennummer|num[eé]ro de s[eé]rie|n[uú]mero de serie|batch|lot|sku|part|charge)(?: ?(?:no|number|nr|num|id))?|arn:[\w-]{1,20}:[\w-]{0,30}:[\w-]{0,30})[\"']?[ .:#=]{1,3}[\"']?\Z"
)
_OF_PAPER = re.compile(
    r"(?i)(?:\b(?:project|order|invoice|ticket|case|tracking|waybill|claim|booking|delivery note|purchase order|lieferschein|rechnungs?|bestell(?:ungs)?|auftrags?|vorgangs?|facture|factura|fattura|faktura|commande|pedido|ordine|bestelling|zamówieni[ae])[ _-]?(?:no|number|nr|num|nummer|numer|numero|número|numéro|n[°º]|id|#)?)[\"']?[ .:#=]{1,3}[\"']?\Z"
)
"""Before a number that is one of a paper, where only the word `number` made it one of a telephone."""
_LONGEST_SERIAL = 90
_LISTED = re.compile(r"0\d{5,12}(?:[ ]0\d{5,12}){1,3}")


def _is_of_thing(text: str, finding: Finding) -> bool:
    """Return whether a number is that of a thing or of a cloud's account, or several with leading zeros in a row."""
    before = max(0, finding.start - _LONGEST_SERIAL), finding.start
    return _SERIAL.search(text, *before) is not None or (
        finding.type == PiiType.PHONE
        and (
            _LISTED.fullmatch(text, finding.start, finding.end) is not None
            or (text[finding.start] != "+" and _OF_PAPER.search(text, *before) is not None)
        )
    )


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
        elif finding.type not in _ALLOWED_IN_PART:
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


_WORD = re.compile(r"\w+")
_NAME_PART = re.compile(r"[^\W\d_][\w'’-]{1,40}")
_SWEPT = frozenset(
    (
        PiiType.EMAIL, PiiType.PHONE, PiiType.CARD, PiiType.IBAN, PiiType.SSN, PiiType.PASSPORT, PiiType.DRIVING_LICENCE,
        PiiType.BANK, PiiType.TAX_ID, PiiType.NATIONAL_ID, PiiType.MEDICAL, PiiType.SECRET, PiiType.ADDRESS, PiiType.USERNAME,
    )
)  # fmt: skip
_SHORTEST, _SHORTEST_NAME = 5, 3
_SHORTEST_WIDE, _FIRST_WIDE = 2, "\u3041"  # a Chinese name may have two letters
_SURE_NAME = 0.6
_SCORE = 0.6
# Parts of names that are words of their own: alone they name nobody.
_ORDINARY = frozenset(
    "will may mark grant rose hope joy grace art bill rich van von the and long young black white brown green king page price early case day "
    "park hill wood stone field lane street ever best good way june april august sun key love der den del dos iii inc dev test user name "
    "mail phone data admin new old first last client customer manager team support sales bank office north south east west".split()
)


def same_values(text: str, found: Sequence[Finding]) -> list[Finding]:
    """Return further findings, none overlapping those given: the same values, and the single parts of people's names.

    Looks each word of the text up once, so that many values cost no more than few.
    """
    values: dict[str, str] = {}
    for finding in found:
        value = text[finding.start : finding.end]
        if finding.type == PiiType.PERSON:
            # One word in small letters may also be a variable.
            if finding.score >= _SURE_NAME and not (value.islower() and value.isalpha()):
                values.update(dict.fromkeys(_names(value), finding.type))
        elif finding.type in _SWEPT and len(value) >= _SHORTEST and not (value.isalpha() and value.islower()):
            values[value] = finding.type
    taken = bytearray(len(text))
    for finding in found:
        taken[finding.start : finding.end] = b"\x01" * (finding.end - finding.start)
    if len(values) <= _FEW:
        values = {value: kind for value, kind in values.items() if _stands_free(text, value, taken)}
    by_first_word: dict[str, list[str]] = defaultdict(list)
    for value in values:
        if first := _WORD.match(value):
            by_first_word[first[0]].append(value)
    for candidates in by_first_word.values():
        candidates.sort(key=len, reverse=True)
    more = list(_unspaced(text, values, taken))
    for word in _WORD.finditer(text) if by_first_word else ():
        start = word.start()
        for value in by_first_word.get(word[0], ())[:_MOST_CANDIDATES]:
            end = start + len(value)
            if text.startswith(value, start) and not _goes_on(text, end) and taken.find(1, start, end) < 0:
                more.append(Finding(start, end, values[value], _SCORE))
                taken[start:end] = b"\x01" * len(value)
                break
    return more


def _unspaced(text: str, values: Mapping[str, str], taken: bytearray) -> Iterator[Finding]:
    """Yield values that begin in a script without spaces, wherever they stand: there no word begins or ends."""
    by_start: dict[str, list[str]] = defaultdict(list)
    for value in values:
        if len(value) > 1 and _UNSPACED.match(value):
            by_start[value[:2]].append(value)
    if not by_start:
        return
    for candidates in by_start.values():
        candidates.sort(key=len, reverse=True)
    for letter in _UNSPACED.finditer(text):
        start = letter.start()
        for value in by_start.get(text[start : start + 2], ())[:_MOST_CANDIDATES]:
            end = start + len(value)
            if text.startswith(value, start) and taken.find(1, start, end) < 0:
                yield Finding(start, end, values[value], _SCORE)
                taken[start:end] = b"\x01" * len(value)
                break


_UNSPACED = re.compile(f"[{UNSPACED}{HANGUL}]")
_MOST_CANDIDATES = 200
_FEW = 40
"""So many values are looked for one by one before the words of the text are: mostly none stands anywhere else."""


def _stands_free(text: str, value: str, taken: bytearray) -> bool:
    """Return whether a value stands anywhere where nothing is found yet."""
    at = text.find(value)
    while at >= 0:
        last = taken.rfind(1, at, at + len(value))
        if last < 0:
            return True
        # Places may overlap: the next that is free begins behind what is found here.
        at = text.find(value, last + 1)
    return False


def _names(value: str) -> list[str]:
    """Return a name and those of its parts that name somebody alone."""
    parts = [part[0] for part in _NAME_PART.finditer(value)]
    alone = [p for p in parts if len(p) >= _SHORTEST_NAME and p[0].isupper() and p.lower() not in _ORDINARY]
    if value.lower() in _ORDINARY:
        return []
    return [value, *alone] if len(value) >= (_SHORTEST_NAME if value[0] < _FIRST_WIDE else _SHORTEST_WIDE) else alone


def _goes_on(text: str, end: int) -> bool:
    return end < len(text) and (text[end].isalnum() or text[end] == "_")
