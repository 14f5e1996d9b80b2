"""Latin spellings of values: of letters that have two letters for one, and of Cyrillic and Greek by the usual tables.

Sources: ICAO Doc 9303 part 3 section 6 (passports), ISO 9:1995 without its accents, the tables of the BGN/PCGN and of
GOST R 7.79-2000 system B, ELOT 743 for Greek; beside them the letter by letter tables that programs use.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

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


def latin_spellings(text: str) -> Iterator[str]:
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
