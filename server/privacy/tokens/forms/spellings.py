"""What a value may look like, by its type: the letters of each form, and what else must hold where they stand.

Latin spellings of Cyrillic and Greek: ICAO Doc 9303 part 3 section 6 (passports), ISO 9:1995 without its accents, the
tables of the BGN/PCGN and of GOST R 7.79-2000 system B, ELOT 743 for Greek; beside them the letter by letter tables
that programs use.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from ...detection.lists import ALSO_NAMES, GLUED_WORDS, PLAIN_WORDS, ROLES_OF_MAILBOXES
from .dates import dates_said
from .folding import folded_letters

_TWO_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae", "œ": "oe", "þ": "th", "ð": "dh", "đ": "dj", "ĳ": "ij"}
)  # fmt: skip
_SHARP_S = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th", "ĳ": "ij"})
"""What also becomes two letters where accents are only left out, as by `upper()` or a slug."""
_SLUG = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th", "ĳ": "ij", "ø": "oe", "å": "aa", "ð": "d", "đ": "d"})

_RUSSIAN = dict(zip("абвгдезийклмнопрстуфыэіґ", "a b v g d e z i i k l m n o p r s t u f y e i g".split(), strict=True))
_COMMON = {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ё": "e", "ю": "iu", "я": "ia", "є": "ie", "ї": "i", "ў": "u", "ј": "j", "љ": "lj", "њ": "nj", "ћ": "c", "ђ": "dj", "џ": "dz", "ѓ": "g", "ќ": "k"}  # fmt: skip
_ICAO = {**_RUSSIAN, **_COMMON, "ъ": "ie"}
_PROGRAMS = {**_RUSSIAN, **_COMMON, "ё": "io", "ї": "yi", "є": "ye"}
_BGN = {**_RUSSIAN, **_COMMON, "й": "y", "ю": "yu", "я": "ya", "ё": "yo", "є": "ye", "ї": "yi"}
_PLAIN_YE = {**_BGN, "ё": "e", "х": "h", "ї": "i"}
_ISO9 = {**_RUSSIAN, **_COMMON, "ж": "z", "й": "j", "х": "h", "ц": "c", "ч": "c", "ш": "s", "щ": "s", "ю": "u", "я": "a", "є": "e"}  # fmt: skip
_GOST = {**_BGN, "й": "j", "х": "x", "ц": "cz", "щ": "shh", "ї": "yi"}
_UKRAINIAN = {**_ICAO, "г": "h", "и": "y", "ъ": ""}
_CYRILLIC = tuple(str.maketrans(table) for table in (_ICAO, _PROGRAMS, _BGN, _PLAIN_YE, _ISO9, _GOST))
_CYRILLIC_UKRAINIAN = (str.maketrans(_UKRAINIAN), str.maketrans({**_UKRAINIAN, "й": "y", "ю": "yu", "я": "ya", "є": "ye", "ї": "yi"}))  # fmt: skip

_GREEK = dict(zip("αβγδεζικλμνοπρσςτφω", "a v g d e z i k l m n o p r s s t f o".split(), strict=True))
_ELOT = {**_GREEK, "η": "i", "θ": "th", "ξ": "x", "υ": "y", "χ": "ch", "ψ": "ps"}
_GREEK_PROGRAMS = {**_ELOT, "β": "b", "η": "e", "υ": "u", "φ": "ph", "χ": "kh"}
_GREEK_ISO = {**_ELOT, "η": "i", "υ": "y", "χ": "ch", "ω": "o"}
_GREEK_CLASSIC = {**_ELOT, "β": "b", "η": "e", "φ": "ph"}
_GREEK_TABLES = tuple(str.maketrans(table) for table in (_ELOT, _GREEK_PROGRAMS, _GREEK_ISO, _GREEK_CLASSIC))
_VOICELESS = "θκξπστφχψ"


def _latin_spellings(text: str) -> Iterator[str]:
    """Yield the other spellings of a text, in small letters, with its spaces; the text itself is not one of them."""
    if text.isascii():
        return
    small = unicodedata.normalize("NFC", text).lower()
    yield small.translate(_SHARP_S)
    yield small.translate(_TWO_LETTERS)
    yield small.translate(_SLUG)
    if any("\u0370" <= letter <= "\u03ff" for letter in small):
        bare = _bare(small)
        for table in _GREEK_TABLES:
            yield bare.translate(table)
        yield _elot(bare)
    elif any("\u0400" <= letter <= "\u04ff" for letter in small):
        for table in _CYRILLIC:
            yield small.translate(table)
        for table in _CYRILLIC_UKRAINIAN:
            yield small.translate(table)
        yield _initials_apart(small)
    elif any("\uac00" <= letter <= "\ud7a3" for letter in small):
        yield unicodedata.normalize("NFD", small)


def _bare(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


def _elot(bare: str) -> str:
    """Return Greek as ELOT 743 has it, with its pairs of letters."""
    made = ""
    at = 0
    while at < len(bare):
        pair = bare[at : at + 2]
        if pair == "ου":
            made += "ou"
        elif pair in {"αυ", "ευ", "ηυ"}:
            follows = bare[at + 2 : at + 3]
            made += pair[0].translate(_GREEK_TABLES[0]) + (
                "f" if follows in _VOICELESS or not follows.isalpha() else "v"
            )
        elif pair == "γγ":
            made += "ng"
        elif pair == "γξ":
            made += "nx"
        elif pair == "γχ":
            made += "nch"
        elif pair == "μπ" and not bare[at - 1 : at].isalpha():
            made += "b"
        else:
            made += bare[at].translate(_GREEK_TABLES[0])
            at += 1
            continue
        at += 2
    return made


def _initials_apart(text: str) -> str:
    """Return Ukrainian as its passports have it since 2010: some letters are written otherwise where a word begins."""
    begins = {"є": "ye", "ї": "yi", "й": "y", "ю": "yu", "я": "ya"}
    made = ""
    for at, letter in enumerate(text):
        is_first = not text[at - 1 : at].isalpha() if at else True
        made += begins[letter] if is_first and letter in begins else letter.translate(_CYRILLIC_UKRAINIAN[0])
    return made


_PARTS = re.compile(r"[^\s,;]+")
_LETTERS = re.compile(r"[^\W\d_]")
_WORDS = re.compile(r"[^\W_]+")
_PARTS_FIELDS = re.compile(r"[\n\r;:|\"]")
_NOT_BESIDE_INITIALS = re.compile(r"[^\w\s.,'’\u0300-\u036f-]|[\n\r]")
_TITLES = frozenset(
    "mr mrs ms mx miss dr prof sir dame lord lady rev hon herr frau fr hr dipl ing mag univprof mme mlle m monsieur madame mademoiselle me sr sra srta don dona "
    "dott dottssa sig sigra signor signora avv av dhr mevr mw pan pani sayin bay bayan jr senior junior ii iii iv v phd md dds dvm esq mba ba ma bsc msc "
    "beng meng msci llb llm ba bed г гн гжа д р".split()
)
_PARTICLES = frozenset(
    "van von der den de del della di da du la le los las dos das zu zur zum ten ter te bin ibn al el y e i".split()
)
_SHORT_NAME, _SHORT_MAILBOX, _LONE_WORD, _FEW_LETTERS = 6, 4, 4, 5
_FEW_LETTERS_AND_DIGITS = 6
_DIGITS_LEAST, _EPOCH_DIGITS_LEAST, _DATE_DIGITS = 6, 8, 8
_COUNTRY_CODES = frozenset(
    "1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98".split()
)
_COUNTRY_CODE_CHARS = 3
_NATIONAL_LEAST = 7
_EXTENSION = re.compile(r"(?i)(?<!\s)\s*(?:x|ext\.?|#|;ext=)\s*\d{1,6}\s*\Z")
_ABROAD = re.compile(r"\+|00|011")
_AS_WRITTEN = frozenset({"IP"})
NEVER_WITHIN = frozenset({"PERSON", "EMAIL", "DOB", "ADDRESS", "LOCATION", "ZIP", "USERNAME", "IP"})
"""Types whose values are part of others': 1.2.3.4 of 1.2.3.45, a day of a number."""
WITHIN_LEAST, WITHIN_MOST = 8, 40
"""Letters of a form that is looked for within longer runs: eight digits stand in one of 100,000,000 places by chance."""
DIGITS_WITHIN = 6
"""Digits among them."""
_GROUPED_LEAST = 15
_IN_GROUPS = re.compile(r"[^\W_]{2,6}(?:([ .\u00a0\u202f-])[^\W_]{1,6})(?:\1[^\W_]{1,6})*+")
_UNCASED = "\u0590"
"""From this letter on scripts have no initials."""


class SpellingRule(Enum):
    """What must hold of a stretch of text that has the letters of a form."""

    EXACT = "as it was written, or in capitals"
    ANY = "nothing more"
    IN_LINE = "no line ends in it, and nothing that parts fields stands there"
    ONE_WORD = "nothing stands between its letters"
    NO_BLANK = "no blank stands between its letters"
    NO_SMALL_WORD = "it is no single word in small letters"
    PLAIN = "its words have capitals, or neither a blank nor a line between them"
    PLAIN_APART = "its words have capitals"
    INITIAL = "it is an initial and a name: together, or with a point or a line between them, or both with capitals"
    INITIAL_APART = "as before, but never together"
    INITIAL_EVERYDAY = "as before, with a point or an underline alone where the letters are small"
    DIGITS = "it has no letters"
    CASELESS = "as it was written but for case"


@dataclass(frozen=True, slots=True)
class FormSpelling:
    """The letters of a form, and its rule."""

    letters: str
    rule: SpellingRule


def spellings(text: str, kind: str) -> list[FormSpelling]:
    """Return the forms in which a value is looked for, its own first."""
    found: dict[str, SpellingRule] = {}
    for letters, rule in _spellings(text, kind):
        if letters:
            found.setdefault(letters, rule)
    return [FormSpelling(letters, rule) for letters, rule in found.items()]


def _spellings(text: str, kind: str) -> Iterator[tuple[str, SpellingRule]]:
    if kind == "PERSON":
        yield from _of_person(text)
    elif kind == "EMAIL":
        yield from _of_email(text)
    elif kind == "PHONE":
        yield from _of_phone(text)
    elif kind == "DOB":
        yield from _of_date(text)
    elif kind in _AS_WRITTEN:
        yield folded_letters(text), SpellingRule.CASELESS
    else:
        yield from _of_words(text)


def _of_words(text: str) -> Iterator[tuple[str, SpellingRule]]:
    letters = folded_letters(text)
    if not _LETTERS.search(text):
        yield letters, SpellingRule.DIGITS if len(letters) >= _DIGITS_LEAST else SpellingRule.EXACT
        return
    words = [word.casefold() for word in _WORDS.findall(text)]
    weight = sum(1 + (letter >= _UNCASED) for letter in letters)
    says_nothing = weight < _FEW_LETTERS or all(word in ALSO_NAMES for word in words)
    rule = SpellingRule.ANY if len(words) > 1 else _rule_of_word(letters)
    yield letters, SpellingRule.EXACT if says_nothing else rule
    if not says_nothing:
        for other in _latin_spellings(text):
            yield folded_letters(other), rule


def _rule_of_word(letters: str) -> SpellingRule:
    """Return the rule of a value of one word: it may stand in parts only in scripts that have no words."""
    return SpellingRule.ANY if letters[0] >= _UNCASED or not letters.isalpha() else SpellingRule.ONE_WORD


def _of_person(text: str) -> Iterator[tuple[str, SpellingRule]]:
    yield from _of_name(text)
    for other in _latin_spellings(text):
        yield from _of_name(other)


def _of_name(text: str) -> Iterator[tuple[str, SpellingRule]]:
    parts = parts_of_name(text)
    whole = folded_letters(text)
    if len(parts) < 2:
        word = parts[0] if parts else whole
        rule = (
            SpellingRule.EXACT
            if word in ALSO_NAMES or (len(word) < _LONE_WORD and word.isascii())
            else _rule_of_word(word)
        )
        yield whole, rule
        yield word, rule
        return
    long_parts = [part for part in parts if len(part) > 1 or part[0] >= _UNCASED]
    if len(long_parts) == 1 and len(parts) == 2:
        yield whole, SpellingRule.EXACT
    yield from _orders(parts, whole)
    if parts[0][0] < _UNCASED:
        yield from _with_initials(parts)


def _orders(parts: list[str], whole: str) -> Iterator[tuple[str, SpellingRule]]:
    """Yield a name whole, without what stands between the first and the last part, and with the family first."""
    given, family = parts[0], parts[-1]
    begins = next((at for at, part in enumerate(parts) if at and part in _PARTICLES), len(parts) - 1)
    families = {"".join(parts[begins:]): None, family: None}
    rows = {whole: None, "".join(parts): None}
    for each in families:
        rows |= {given + each: None, each + given: None}
    if len(parts) > 2:
        rows |= {"".join(parts[at:] + parts[:at]): None for at in {1, begins, len(parts) - 1}}
        if given < _UNCASED:
            rows[given + "".join(part[0] for part in parts[1:begins]) + "".join(parts[begins:])] = None
        if parts[1] not in _PARTICLES:
            rows[given + parts[1]] = None  # two family names, as in Spanish, of which either may be left out
    has_plain = PLAIN_WORDS.issuperset(parts)
    for letters in rows:
        if has_plain:
            yield letters, SpellingRule.PLAIN_APART if letters in GLUED_WORDS else SpellingRule.PLAIN
        elif letters in GLUED_WORDS or len(letters) < _SHORT_NAME:
            yield letters, SpellingRule.NO_SMALL_WORD
        else:
            yield letters, SpellingRule.ANY if letters in {whole, "".join(parts)} else SpellingRule.IN_LINE


def _with_initials(parts: Sequence[str]) -> Iterator[tuple[str, SpellingRule]]:
    begins = next((at for at, part in enumerate(parts) if at and part in _PARTICLES), len(parts) - 1)
    first = parts[0][0]
    families = dict.fromkeys(("".join(parts[begins:]), parts[-1], parts[1] if len(parts) > 2 else parts[-1]))
    firsts = dict.fromkeys((first, "".join(part[0] for part in parts[:begins])))
    for family in families:
        if len(family) < 2 or (family in _PARTICLES):
            continue
        for initials in firsts:
            yield initials + family, _rule_of_initial(initials + family, family)
            # Together they are mostly a word with an ending: `Bird S.`
            yield family + initials, SpellingRule.INITIAL_APART


def _rule_of_initial(letters: str, family: str) -> SpellingRule:
    if family in ALSO_NAMES:
        return SpellingRule.INITIAL_APART if letters in GLUED_WORDS else SpellingRule.INITIAL_EVERYDAY
    if letters in GLUED_WORDS or len(letters) < _SHORT_MAILBOX:
        return SpellingRule.INITIAL_APART
    return SpellingRule.INITIAL


def parts_of_name(text: str) -> list[str]:
    """Return the letters of each part of a name, the given name first, without titles."""
    before, comma, after = text.partition(",")
    said = f"{after} {before}" if comma and folded_letters(after) not in _TITLES else text
    parts: list[str] = []
    for match in _PARTS.finditer(said):
        part = match[0].strip("()[]\"'“”„«»")
        letters = folded_letters(part)
        if not letters:
            continue
        if (
            letters in _TITLES
            or ("." in part[:-1] and not _are_initials(part))
            or (part.endswith(".") and len(letters) > 1)
        ):
            continue
        parts.append(letters)
    return parts


def _are_initials(part: str) -> bool:
    return all(len(each.strip("-")) <= 1 for each in part.split("."))


def _of_email(text: str) -> Iterator[tuple[str, SpellingRule]]:
    yield folded_letters(text), SpellingRule.ANY
    mailbox = text.rpartition("@")[0]
    for name in dict.fromkeys((mailbox, mailbox.partition("+")[0])):
        letters = folded_letters(name)
        if len(letters) < _SHORT_MAILBOX or not ROLES_OF_MAILBOXES.isdisjoint((name.casefold(), letters)):
            continue
        if letters.isdecimal():
            if len(letters) >= _DIGITS_LEAST:
                yield letters, SpellingRule.DIGITS
        elif len(letters) < _FEW_LETTERS_AND_DIGITS and not letters.isalpha():
            yield letters, SpellingRule.NO_BLANK
        elif all(word in ALSO_NAMES for word in _WORDS.findall(name.casefold().replace("_", " "))):
            yield letters, SpellingRule.EXACT
        else:
            yield letters, SpellingRule.ANY


def _of_phone(text: str) -> Iterator[tuple[str, SpellingRule]]:
    bare = _EXTENSION.sub("", text)
    whole = folded_letters(text)
    yield whole, SpellingRule.ANY if _LETTERS.search(text) else SpellingRule.DIGITS
    digits = folded_letters(bare)
    if not digits.isdecimal():
        return
    if bare != text:
        yield "".join(each for each in whole if each.isdecimal()), SpellingRule.DIGITS
    yield digits, SpellingRule.DIGITS
    abroad = _ABROAD.match(bare.strip().lstrip("("))
    rest = digits
    if abroad:
        rest = digits.removeprefix(abroad[0].strip("+"))
        yield rest, SpellingRule.DIGITS
        rest = rest[_country_code_chars(rest) :]
    yield from _national(rest)
    if abroad and rest.startswith("0"):  # +44 (0) 20
        yield digits[: len(digits) - len(rest)] + rest[1:], SpellingRule.DIGITS


def _national(digits: str) -> Iterator[tuple[str, SpellingRule]]:
    significant = digits.removeprefix("0")
    for each in (digits, significant, f"0{significant}"):
        if len(each) >= _NATIONAL_LEAST:
            yield each, SpellingRule.DIGITS


def _country_code_chars(digits: str) -> int:
    return next((n for n in (1, 2) if digits[:n] in _COUNTRY_CODES), _COUNTRY_CODE_CHARS)


def _of_date(text: str) -> Iterator[tuple[str, SpellingRule]]:
    letters = folded_letters(text)
    if letters.isdecimal() and len(letters) != _DATE_DIGITS:
        yield letters, SpellingRule.EXACT  # 3/5/2026 has the digits of many numbers
    else:
        yield letters, SpellingRule.ANY
    for day in dates_said(text):
        moment = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        for number in (moment, moment * 1000):
            if len(str(abs(number))) >= _EPOCH_DIGITS_LEAST:
                yield str(abs(number)), SpellingRule.DIGITS


def fits(rule: SpellingRule, surface: str, value: str) -> bool:
    """Return whether a stretch of text that has the letters of a form of a value is one."""
    if rule is SpellingRule.ANY:
        return True
    if rule is SpellingRule.DIGITS:
        return not _LETTERS.search(surface)
    if rule is SpellingRule.IN_LINE:
        return not _PARTS_FIELDS.search(surface)
    if rule is SpellingRule.ONE_WORD:
        return _without_marks(surface).isalnum()
    if rule is SpellingRule.NO_BLANK:
        return not any(map(str.isspace, surface))
    if rule is SpellingRule.NO_SMALL_WORD:
        return not (surface.isalpha() and surface.islower())
    if rule in {SpellingRule.PLAIN, SpellingRule.PLAIN_APART}:
        is_capital = all(word[0].isupper() for word in _WORDS.findall(surface))
        return (is_capital and not _PARTS_FIELDS.search(surface)) or (
            rule is SpellingRule.PLAIN and not any(each.isspace() or each in "-,;:/|" for each in surface)
        )
    if rule is SpellingRule.CASELESS:
        return surface.casefold() == value.casefold()
    if rule is SpellingRule.EXACT:
        return _as_written(surface) in {_as_written(value), _as_written(value).upper()}
    return _fits_initial(rule, surface)


def _as_written(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _without_marks(text: str) -> str:
    return text if text.isascii() else "".join(each for each in text if not unicodedata.combining(each))


def stands_within(kind: str, letters: str) -> bool:
    """Return whether a form is looked for within longer runs of digits and letters: no other number has it by chance."""
    if kind in NEVER_WITHIN or not WITHIN_LEAST <= len(letters) <= WITHIN_MOST:
        return False
    digits = sum(map(str.isdecimal, letters))
    return digits >= DIGITS_WITHIN if kind != "PHONE" else digits == len(letters)


def fits_within(surface: str, value: str) -> bool:
    """Return whether what has the letters of a form is one though it touches others: as written, or in even groups."""
    if surface.isalnum() or surface.casefold() == value.casefold():
        return True
    return len(surface) >= _GROUPED_LEAST and _IN_GROUPS.fullmatch(surface) is not None


_APOSTROPHES = {ord(each): None for each in "'’ʼ`"}


def _fits_initial(rule: SpellingRule, surface: str) -> bool:
    if _without_marks(surface).translate(_APOSTROPHES).isalnum():
        # Together; of small letters alone where that is no other word.
        return rule is not SpellingRule.INITIAL_APART or not (
            surface.islower() or surface.istitle() or surface.isupper()
        )
    if _NOT_BESIDE_INITIALS.search(surface):
        return False
    words = _WORDS.findall(surface)
    if all(word[0].isupper() or not word[0].isalpha() or word[0].lower() == word[0].upper() for word in words):
        between = surface[len(words[0]) : len(surface) - len(words[-1])]
        return not (
            rule is not SpellingRule.INITIAL
            and words[0] in {"A", "I"}
            and between.isspace()
            and words[-1].lower() in PLAIN_WORDS
        )
    if rule is SpellingRule.INITIAL:
        return any(mark in surface for mark in "._-")
    return any(mark in surface for mark in "._") and not any(map(str.isspace, surface))
