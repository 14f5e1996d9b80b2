"""Names of people and places, and whether words are one, in scripts without capital letters too.

Of Russian and Ukrainian names the lists have the form in which they are called; endings of cases are cut from what is
looked up. In Devanagari and Arabic words are as `readable` gives them.
"""

from __future__ import annotations

import re

from .lists import lists
from .scripts import ARABIC, CYRILLIC, DEVANAGARI, HAN, HANGUL, KANA, readable

_LISTS = lists("names")


def _words(heading: str) -> frozenset[str]:
    return frozenset(readable(_LISTS[heading]).split())


GIVEN_NAMES = _words("latin given")
"""Given names in Latin letters, without those that are everyday words where they are common."""
FAMILY_NAMES = _words("english family")
"""Family names beside which a word is a given name that else is something else, without everyday words of English."""
PLACES_AND_WORDS = _words("places and words")
"""Given names that are as often a place, a month or an everyday word."""
TURKISH_FAMILIES = _words("turkish family")
CHINESE_GIVEN, CHINESE_NO_NAMES = _words("chinese given"), _words("chinese no names")
CHINESE_FAMILIES, CHINESE_DOUBLE_FAMILIES = (
    frozenset(_LISTS["chinese family"].strip()),
    _words("chinese double family"),
)
JAPANESE_FAMILIES, KOREAN_FAMILIES = _words("japanese family"), frozenset(_LISTS["korean family"].strip())
JAPANESE_GIVEN_LETTERS, CHINESE_GIVEN_LETTERS, KOREAN_GIVEN_LETTERS = (
    frozenset(_LISTS[f"{each} given letters"].strip()) for each in ("japanese", "chinese", "korean")
)
JAPANESE_PREFECTURES, CHINESE_PROVINCES, KOREAN_PROVINCES = (
    _words(each) for each in ("japanese prefectures", "chinese provinces", "korean provinces")
)
EAST_ASIAN_CITIES = _words("east asian cities")
HINDI_TOWNS, HINDI_CITIES, HINDI_NO_NAMES, HINDI_COMMON_WORDS = (
    _words(f"hindi {each}") for each in ("towns", "cities", "no names", "common words")
)
ARABIC_CITIES = readable(" ".join(_LISTS["arabic cities"].split()))
"""Alternatives of an expression."""
ARABIC_NO_NAMES, ARABIC_LIKE_PARTICLES = _words("arabic no names"), _words("arabic beginning like a particle")
"""Words that begin no name, and names that begin with a letter that is also a particle."""
CYRILLIC_CITIES, CYRILLIC_NO_FAMILIES = _words("cyrillic cities"), _words("cyrillic no family")
_KOREAN_NO_NAMES, _CYRILLIC_GIVEN = _words("korean no names"), _words("cyrillic given")
_HINDI, _HINDI_GIVEN, _HINDI_FAMILIES = _words("hindi"), _words("hindi given"), _words("hindi family")
_ARABIC, _ARABIC_FAMILIES = _words("arabic"), _words("arabic family")
_HAN_KANA = re.compile(f"[{HAN}{KANA}]+")
_SCRIPTS = tuple((name, re.compile(f"[{letters}]+")) for name, letters in (
    ("hangul", HANGUL), ("devanagari", DEVANAGARI), ("arabic", ARABIC), ("cyrillic", CYRILLIC),
))  # fmt: skip
_LONGEST_FAMILY = 3
_PATRONYMIC = re.compile(
    "(?:ович|евич|ьич|йович|овна|евна|ична|івна|ївна|йовича|овича|евича|овны|евны|овне|івни|овичу|евичу|ну)\\Z"
)
_FAMILY_ENDS = re.compile(
    "(?:ов|ова|ев|ева|ёв|ёва|ин|ина|ын|ына|ский|ская|цкий|цкая|ський|ська|цький|цька|зький|зька|енко|ко|чук|щук|юк|ук|як|чак|ич|ів|їв|ишин|иха|ых|их|ян|швили|дзе)"
    "(?:а|у|ом|ым|ой|е|ого|ому|ої|ою|і)?\\Z"
)
_CASE_ENDS = ("", "а", "у", "ю", "я", "ы", "и", "е", "ой", "ей", "ом", "ем", "ою", "єю", "і", "ї", "ові", "еві")
_CASE_OF = ("", "а", "я", "й", "ь", "о")


def _is_japanese_name(name: str) -> bool:
    """Return whether a word is a Japanese family name, and perhaps a given one: 田中, 田中太郎, 佐藤さくら."""
    for length in range(min(_LONGEST_FAMILY, len(name)), 0, -1):
        if name[:length] in JAPANESE_FAMILIES:
            given = name[length:].strip()
            return len(given) <= 4 and all(c in JAPANESE_GIVEN_LETTERS or "\u3041" <= c <= "\u30fc" for c in given)
    return False


def _is_chinese_name(name: str) -> bool:
    """Return whether a word is a Chinese family and given name, of two to four letters."""
    family = 2 if name[:2] in CHINESE_DOUBLE_FAMILIES else 1
    given = name[family:]
    return (
        1 <= len(given) <= 2
        and (family == 2 or name[0] in CHINESE_FAMILIES)
        and all(c in CHINESE_GIVEN_LETTERS for c in given)
    )


def is_korean_name(name: str) -> bool:
    """Return whether a word is a Korean family name and a given name of two syllables."""
    return (
        len(name) == 3
        and name[0] in KOREAN_FAMILIES
        and name not in _KOREAN_NO_NAMES
        and name[:2] not in _KOREAN_NO_NAMES
        and all(c in KOREAN_GIVEN_LETTERS for c in name[1:])
    )


def is_hindi_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a given or a family name."""
    return word in _HINDI or (word.endswith(_HINDI_HONOUR) and word.removesuffix(_HINDI_HONOUR) in _HINDI)


_HINDI_HONOUR = readable("जी")


def is_hindi_family_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a common family name."""
    return word.removesuffix(_HINDI_HONOUR) in _HINDI_FAMILIES or word in _HINDI_FAMILIES


def is_hindi_given_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a given name; it may be a word of its own too."""
    return word in _HINDI_GIVEN or word in _HINDI


def is_arabic_family_name(word: str) -> bool:
    """Return whether an Arabic word, as `readable` gives it, is a common family name."""
    return word in _ARABIC_FAMILIES


def is_arabic_name(word: str) -> bool:
    """Return whether an Arabic word, as `readable` gives it, is a given or a family name."""
    return word in _ARABIC or (word[:1] in "لوب" and word[1:] in _ARABIC)


def is_cyrillic_given_name(word: str) -> bool:
    """Return whether a word in Cyrillic is a given name, or a patronymic, in any case."""
    low = word.lower()
    if low in _CYRILLIC_GIVEN:
        return True
    if len(low) > 5 and _PATRONYMIC.search(low) and not low.endswith("ну"):
        return True
    return any(
        low.removesuffix(end) + base in _CYRILLIC_GIVEN
        for end in _CASE_ENDS
        if end and low.endswith(end) and len(low) - len(end) > 1
        for base in _CASE_OF
    )


def is_cyrillic_family_name(word: str) -> bool:
    """Return whether a word in Cyrillic has an ending of family names."""
    return len(word) > 3 and _FAMILY_ENDS.search(word.lower()) is not None


def looks_like_local_name(value: str) -> bool:
    """Return whether a value alone is a full name in Han, kana, Hangul, Devanagari or Arabic."""
    words = readable(_SIGNS.sub(" ", value)).split()
    if not words or len(words) > _MOST_WORDS:
        return False
    whole = "".join(words)
    if _HAN_KANA.fullmatch(whole):
        return value not in EAST_ASIAN_CITIES and len(whole) <= _LONGEST_HAN and _is_han_name(words, whole)
    script = next((name for name, letters in _SCRIPTS if letters.fullmatch(whole)), "")
    if script == "hangul":
        return (
            value not in EAST_ASIAN_CITIES
            and whole[0] in KOREAN_FAMILIES
            and (len(whole) == 3 or len(words) == 2)
            and all(c in KOREAN_GIVEN_LETTERS for c in whole[1:])
        )
    if script in {"devanagari", "arabic"}:
        return len(words) > 1 and not _NO_NAME_WORDS & set(words)
    return False


def _is_han_name(words: list[str], whole: str) -> bool:
    if len(words) == 2:
        return words[0] in JAPANESE_FAMILIES or _is_chinese_name(whole)
    return len(words) == 1 and (_is_chinese_name(whole) or (len(whole) > 2 and _is_japanese_name(whole)))


_MOST_WORDS, _LONGEST_HAN = 6, 8
_SIGNS = re.compile("[・·'’.\u002d]")
_NO_NAME_WORDS = _words("words of companies in other scripts")
_LISTS.clear()
