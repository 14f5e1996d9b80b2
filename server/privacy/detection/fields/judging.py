"""What the name of a field says about its value: `customer.first_name`, `telefonnummer`, `DB_PASSWORD`.

A key is brought into words (camel, snake, kebab case, accents and separators do not matter) and looked up in a table
of rules; each rule also judges the value, so that `"password": "required"` or `"phone": "mobile"` stay as they are.
The table has the words of most European forms; `local_keys` those of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..findings import PiiType
from ..scripts import without_accents
from .local_keys import local_rule_for
from .name_keys import is_name_key, looks_like_full_name, person
from .rules import BEGINS_WITH_NAME, GENERIC_KEYS, LIKELY, SURE, FieldRule, FieldVerdict, rule_for
from .values import digits

_MAX_KEY_WORDS = 8
_MAX_VALUE = 4096
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
    """Return a key as lower-case words of plain letters with single spaces: `kundenName` is `kunden name`."""
    said = key[:200]
    return " ".join(_WORDS.findall(said if said.isascii() else without_accents(said))).lower()
