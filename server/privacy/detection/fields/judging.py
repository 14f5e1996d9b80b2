"""What the name of a field says about its value: `customer.first_name`, `telefonnummer`, `DB_PASSWORD`.

A key is brought into words (camel, snake, kebab case, accents and separators do not matter) and looked up in a table
of rules; each rule also judges the value, so that `"password": "required"` or `"phone": "mobile"` stay as they are.
The table has the words of most European forms; `local_keys` those of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from ..findings import PiiType
from ..scripts import without_accents
from .local_keys import local_rule_for
from .name_keys import is_name_key, looks_like_full_name, person
from .roles import is_role
from .rules import BEGINS_WITH_NAME, GENERIC_KEYS, LIKELY, SURE, FieldRule, FieldVerdict, rule_for
from .values import digits

_MAX_KEY_WORDS = 8
_MAX_VALUE = 4096
_LOST = re.compile("\ufffd{1,2}")
"""What stands for a letter that cannot be read: two of them where it was two bytes of UTF-8."""
_LOST_MAX = 2
_VOWELS = ("a", "e", "i", "o", "u", "ae", "oe", "ue", "")
_MAY_BE_LOST = (*_VOWELS, "c", "n", "s", "z", "l", "y", "r", "t", "d", "ss")
_EITHER_GENDER = re.compile(r"[*:/_(]-?in(?:nen)?\)?(?=\Z|[\s_-])")
"""What is put behind a word in German that it may be a woman: `Käufer*in`, `Käufer:innen`, `Käufer/-in`, `Käufer(in)`."""
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
KEYS_OF_THINGS = frozenset(
    "price prices unit_price unitprice list_price sku brand qty quantity color colour stock in_stock instock currency weight upc "
    "ean asin isbn manufacturer barcode rating runtime image_url thumbnail cuisine genre capacity voltage material price_cents".split()
)
"""Keys beside a `name` that show that it is not a person's, in lower case."""


def judge(path: Sequence[str], value: str) -> FieldVerdict | None:
    """Return what `value` is, by the key `path[-1]` and the keys around it, or None.

    `value` is without quotes and without space at its ends.
    """
    return KeyJudge(path)(value)


class KeyJudge:
    """Judges values below one path: what its keys say is found out once."""

    def __init__(self, path: Sequence[str]) -> None:
        names = [name for name in path[-3:] if name and not name.isdecimal()]
        key, parent, grandparent = (*(in_words(name) for name in reversed(names)), "", "", "")[:3]
        if key in GENERIC_KEYS and parent:
            # `phones: [{"number": …}]`: the parent names the field.
            key, parent = parent, grandparent
        self._key = key if key.count(" ") < _MAX_KEY_WORDS else ""
        self._parent = parent
        self._rule = (rule_for(key) if key.isascii() else local_rule_for(key)) if self._key else None
        self._is_secret = self._rule is not None and self._rule.type is PiiType.SECRET
        self._may_name = (
            self._rule is not None and self._rule.type is PiiType.ADDRESS and bool(BEGINS_WITH_NAME.search(key))
        )
        self._verdict = None if self._rule is None else FieldVerdict(self._rule.type, SURE)

    def __call__(self, value: str) -> FieldVerdict | None:
        """Return what a value is, or None; it is without quotes and without space at its ends."""
        if not value or len(value) > _MAX_VALUE or not self._key:
            return None
        rule = self._rule
        if rule is not None and rule.fits(value) and not (self._is_secret and _names_secret(rule, self._key, value)):
            if self._may_name and not digits(value) and looks_like_full_name(value):
                return FieldVerdict(PiiType.PERSON, LIKELY)
            return self._verdict
        return person(self._key, self._parent, value)


def is_label(words: str) -> bool:
    """Return whether words, as they stand in a text, are what a field is called: `Posta Kodu`, `PLZ`, `氏名`."""
    key = in_words(words)
    return bool(key) and ((rule_for(key) if key.isascii() else local_rule_for(key)) is not None or is_name_key(key))


def _names_secret(rule: FieldRule, key: str, value: str) -> bool:
    """Return whether a value only says which secret is meant: `keyName: RootKey`, `--secret dbPassword`."""
    if key.endswith((" name", "private key id", "signing key id", "encryption key id")):
        return True
    words = in_words(value)
    return value.isalpha() and value[0].islower() and " " in words and rule.key.search(words) is not None


@lru_cache(maxsize=4096)
def in_words(key: str) -> str:
    """Return a key as lower-case words of plain letters with single spaces: `kundenName` is `kunden name`.

    A key that was read in another encoding than it is written in, `kÃ¤ufer` or `k\ufffdufer`, is what it was.
    """
    said = _EITHER_GENDER.sub("", key[:200])
    if said.isascii():
        return _words_of(said)
    if _LOST.search(said):
        return _with_lost_letters(said)
    return _words_of(_read_anew(said))


def _words_of(said: str) -> str:
    return " ".join(_WORDS.findall(said if said.isascii() else without_accents(said))).lower()


def _read_anew(said: str) -> str:
    """Return what was UTF-8 and was read as Windows-1252 or Latin-1; anything else as it is."""
    for encoding in ("cp1252", "latin-1"):
        try:
            return said.encode(encoding).decode()
        except UnicodeError:
            continue
    return said


def _with_lost_letters(said: str) -> str:
    """Return words with such letters in place of the lost ones that they are a label, if there are such.

    Where more than one is lost only vowels are tried, and only what people are called: of hostile text each label may
    be another, and to look through all rules takes long.
    """
    lost = len(_LOST.findall(said))
    if lost > _LOST_MAX:
        return _words_of(said)
    for letters in product(_MAY_BE_LOST if lost == 1 else _VOWELS, repeat=lost):
        words = _words_of(_filled(said, letters))
        if is_role(words) or is_name_key(words) or (lost == 1 and rule_for(words) is not None):
            return words
    return _words_of(said)


def _filled(said: str, letters: Sequence[str]) -> str:
    left = iter(letters)
    return _LOST.sub(lambda _found: next(left), said)
