"""Whether words in scripts without capital letters, or in Cyrillic, are a name: by lists of names and their letters."""

from __future__ import annotations

import re

from ..scripts import ARABIC, CYRILLIC, DEVANAGARI, HAN, HANGUL, KANA, readable
from .by_country import ARABIC_FAMILIES, HINDI_FAMILIES, HINDI_GIVEN
from .east_asian import (
    CHINESE_DOUBLE_FAMILIES,
    CHINESE_FAMILIES,
    CHINESE_GIVEN_LETTERS,
    CITIES,
    JAPANESE_FAMILIES,
    JAPANESE_GIVEN_LETTERS,
    KOREAN_FAMILIES,
    KOREAN_GIVEN_LETTERS,
    KOREAN_NO_NAMES,
)
from .spaced_scripts import ARABIC_NAMES, CYRILLIC_NAMES, HINDI_NAMES

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


def is_japanese_name(name: str) -> bool:
    """Return whether a word is a Japanese family name, and perhaps a given one: 田中, 田中太郎, 佐藤さくら."""
    for length in range(min(_LONGEST_FAMILY, len(name)), 0, -1):
        if name[:length] in JAPANESE_FAMILIES:
            given = name[length:].strip()
            return len(given) <= 4 and all(c in JAPANESE_GIVEN_LETTERS or "\u3041" <= c <= "\u30fc" for c in given)
    return False


def is_chinese_name(name: str) -> bool:
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
        and name not in KOREAN_NO_NAMES
        and name[:2] not in KOREAN_NO_NAMES
        and all(c in KOREAN_GIVEN_LETTERS for c in name[1:])
    )


def is_hindi_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a given or a family name."""
    return word in HINDI_NAMES or (word.endswith(_HINDI_HONOUR) and word.removesuffix(_HINDI_HONOUR) in HINDI_NAMES)


_HINDI_HONOUR = readable("जी")


_HINDI_FAMILIES, _HINDI_GIVEN, _ARABIC_FAMILIES = (
    frozenset(map(readable, names)) for names in (HINDI_FAMILIES, HINDI_GIVEN, ARABIC_FAMILIES)
)


def is_hindi_family_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a common family name."""
    return word.removesuffix(_HINDI_HONOUR) in _HINDI_FAMILIES or word in _HINDI_FAMILIES


def is_hindi_given_name(word: str) -> bool:
    """Return whether a word in Devanagari, as `readable` gives it, is a given name; it may be a word of its own too."""
    return word in _HINDI_GIVEN or word in HINDI_NAMES


def is_arabic_family_name(word: str) -> bool:
    """Return whether an Arabic word, as `readable` gives it, is a common family name."""
    return word in _ARABIC_FAMILIES


def is_arabic_name(word: str) -> bool:
    """Return whether an Arabic word, as `readable` gives it, is a given or a family name."""
    return word in ARABIC_NAMES or (word[:1] in "لوب" and word[1:] in ARABIC_NAMES)


def is_cyrillic_given_name(word: str) -> bool:
    """Return whether a word in Cyrillic is a given name, or a patronymic, in any case."""
    low = word.lower()
    if low in CYRILLIC_NAMES:
        return True
    if len(low) > 5 and _PATRONYMIC.search(low) and not low.endswith("ну"):
        return True
    return any(
        low.removesuffix(end) + base in CYRILLIC_NAMES
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
        return value not in CITIES and len(whole) <= _LONGEST_HAN and _is_han_name(words, whole)
    script = next((name for name, letters in _SCRIPTS if letters.fullmatch(whole)), "")
    if script == "hangul":
        return (
            value not in CITIES
            and whole[0] in KOREAN_FAMILIES
            and (len(whole) == 3 or len(words) == 2)
            and all(c in KOREAN_GIVEN_LETTERS for c in whole[1:])
        )
    if script in {"devanagari", "arabic"}:
        return len(words) > 1 and not _NO_NAME_WORDS & set(words)
    return False


def _is_han_name(words: list[str], whole: str) -> bool:
    if len(words) == 2:
        return words[0] in JAPANESE_FAMILIES or is_chinese_name(whole)
    return len(words) == 1 and (is_chinese_name(whole) or (len(whole) > 2 and is_japanese_name(whole)))


_MOST_WORDS, _LONGEST_HAN = 6, 8
_SIGNS = re.compile("[・·'’.\u002d]")
_NO_NAME_WORDS = frozenset(
    readable(
        "कंपनी लिमिटेड बैंक कुर्सी मेज़ मेज टेबल सेवा विभाग उत्पाद स्कूल अस्पताल होटल दुकान संस्थान विश्वविद्यालय प्राइवेट और का की के में शहर नगर लैपटॉप फ़ोन मोबाइल किताब "
        "شركة مؤسسة بنك مصرف فندق مطعم مدرسة جامعة مستشفى قسم خدمة منتج كرسي طاولة هاتف كتاب متجر مكتب وزارة إدارة من في على و حاسوب مصباح"
    ).split()
)
