"""What the name of a field says about its value: `customer.first_name`, `telefonnummer`, `DB_PASSWORD`.

A key is brought into words (camel, snake, kebab case, accents and separators do not matter) and looked up in a table
of rules; each rule also judges the value, so that `"password": "required"` or `"phone": "mobile"` stay as they are.
The table is `keys.txt`: below a heading that says type and form of the values stand the keys, then those in scripts
other than Latin (`local`), and last what people are called by what they are to somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from .findings import PiiType
from .lists import EVERYDAY, lists
from .names import GIVEN_NAMES, looks_like_local_name
from .scripts import without_accents


def _digits(value: str) -> int:
    return sum(map(str.isdigit, value))


def _letters(value: str) -> int:
    return sum(map(str.isalpha, value))


def _number(least: int, longest: int) -> Callable[[str], bool]:
    """Judge something like a number: at least so many digits, at most so many characters."""
    return lambda value: len(value) <= longest and _digits(value) >= least and "\n" not in value and "://" not in value


def _code(longest: int) -> Callable[[str], bool]:
    return lambda value: (
        len(value) <= longest and value.replace(" ", "").isalnum() and value.lower() not in _PLACEHOLDERS
    )


def _phone(value: str) -> bool:
    return 6 <= _digits(value) <= 20 and len(value) <= 40 and _letters(value) <= 9 and not _DATE.match(value)


def _email(value: str) -> bool:
    return "@" in value.strip("@") and len(value) <= 320 and " " not in value


def _zip_code(value: str) -> bool:
    return len(value) <= 12 and (_digits(value) >= 3 or (_digits(value) >= 2 and len(value) <= 9))


def _date(value: str) -> bool:
    return len(value) <= 40 and _digits(value) >= 4


def _address(value: str) -> bool:
    return (
        _letters(value) >= (3 if value.isascii() else 2)
        and len(value) <= 200
        and value[0] not in "{[<$%#"
        and "://" not in value
        and "@" not in value
        and not _CALL.search(value)
        and value.lower() not in _PLACEHOLDERS
        and not (value.isascii() and _IDENTIFIER.fullmatch(value) and not value[0].isupper())
    )


def _address_line(value: str) -> bool:
    """Judge a line of a postal address whose label says no more than which line it is, as of a program: no sentence."""
    return _address(value) and not is_sentence(value)


def is_sentence(value: str) -> bool:
    """Return whether longer words of a value begin with small letters, as no name and few addresses have them."""
    return not value[0].isdigit() and any(
        word[0].islower() and len(word) > 3 and not _digits(word) for word in value.split()
    )


def _place(value: str) -> bool:
    return _letters(value) >= 2 and len(value) <= 60 and not _digits(value) and value.lower() not in _PLACEHOLDERS


def _username(value: str) -> bool:
    return (
        3 <= len(value) <= 64
        and _USERNAME.fullmatch(value) is not None
        and not value.isdecimal()
        and not _UUID.fullmatch(value)
        and value.lower() not in _SYSTEM_USERS
        and value.lower() not in _PLACEHOLDERS
    )


def _secret(value: str) -> bool:
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and not any(map(str.isspace, value))


def _passphrase(value: str) -> bool:
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and value.count(" ") <= 24


def _ip(value: str) -> bool:
    return _IP.fullmatch(value) is not None and value not in {"0.0.0.0", "127.0.0.1"}  # noqa: S104 - compared only


_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|\Z)")
_IDENTIFIER = re.compile(r"[\w.$-]{1,200}")
_CALL = re.compile(r"\w\(|=")
_USERNAME = re.compile(r"[\w.@+\\-]{1,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{16,64}")
_IP = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F:]{6,39}")
# What stands where a secret would: placeholders, references to variables, expressions, paths.
_NO_SECRET = re.compile(
    r"(?i)\$.*|<.*>|\{\{?.*\}|%\(?.*|\*+|x{3,}|\.{3,}|\[.*|null|nil|none|true|false|string|text|str|int|bytes|undefined|changeme"
    r"|required|optional|redacted|hidden|bearer|basic|password|secret|token|varchar.*|\d{1,3}|\d+(?:\.\d+){1,3}"
    r"|(?:os|process|env|config|settings|self|this|args|request|secrets|vars|var|local|data)\..*|[A-Za-z_][\w.]{0,80}\([^()]{0,80}\)|[a-z_]\w{0,40}(?:\.[a-z_]\w{0,40}){1,5}"
    r"|(?:https?|file)://[^@]*|/[\w./-]*|arn:.*|.*\.(?:pem|key|crt|json|ya?ml|txt)"
)
_PLACEHOLDERS = frozenset(
    "true false null none nil string str text varchar integer int number unknown undefined n/a na admin root system "
    "anonymous user username name default email phone address required optional yes no on off test example bot tbd "
    "object array boolean private public internal external".split()
)
_SYSTEM_USERS = frozenset(
    "root admin administrator user users app postgres mysql ubuntu debian ec2-user system bot none null guest test "
    "default service nobody daemon www-data git jenkins ci deploy runner sa redis nginx apache node oracle anonymous "
    "me self you __token__ oauth2".split()
)


_SURE = 0.85
LIKELY = 0.5


@dataclass(frozen=True, slots=True)
class FieldVerdict:
    """What a value is, and how sure that is."""

    type: PiiType
    score: float


@dataclass(frozen=True, slots=True)
class _FieldRule:
    type: PiiType
    key: re.Pattern[str]
    fits: Callable[[str], bool]


def _phrases(text: str) -> re.Pattern[str]:
    """Compile _phrases separated by commas, to be searched in a key.

    Words may also be written together (`first name` is `firstname` too); `*` stands for any letters at that end of a
    word; a phrase after `=` must be the whole key.
    """
    alternatives = []
    for phrase in (" ".join(part.split()) for part in text.split(",")):
        words = " ?".join(phrase.strip("=*").split())
        start = r"\A" if phrase.startswith("=") else "" if phrase.startswith("*") else r"\b"
        end = r"\Z" if phrase.startswith("=") else "" if phrase.endswith("*") else r"\b"
        alternatives.append(f"{start}{words}{end}")
    return re.compile("|".join(alternatives))


_NEVER = re.compile(
    r"\b(?:count|limit|type|kind|expires|expiry|expiration|ttl|length|max|min|usage|policy|bucket|hint|reset|enabled|disabled|"
    r"verified|valid|status|format|version|size|rate|total|used|index|path|file|dir|uri|url|link|href|required|regex|pattern|"
    r"field|column|label|algorithm|class|method|schema|placeholder|at|budget|timeout|prefix|suffix|source|tokens|decision|reason|mode)\Z"
    r"|\A(?:is|has|max|min|num|total|count|n(?! (?:de|cart|tarj|kart|tel|cel))|show|hide|allow|use|enable|disable|require)\b"
)
"""Keys that never name something personal, whatever they contain: `token_count`, `is_email`, `password_policy`."""

# An address that is not a person's: what networks and computers call so.
_NO_POSTAL_ADDRESS = re.compile(
    r"\b(?:e ?mail|mac|ip|ips|url|wallet|web|memory|bind|listen|remote|base|host|server|net|network|peer|node|btc|eth|contract|"
    r"virtual|physical|hw|from|to|return|reply)\b"
)
_PLACE_OF_BIRTH = re.compile(
    r"\b(?:\w{0,8}ort|\w{0,10}plaats|place|city|town|country|lieu|ville|lugar|ciudad|luogo|citta|local|cidade|miejsce|yeri|sted)\b"
)
# `Billing address: Jane Doe`, with the street on the next line.
_BEGINS_WITH_NAME = re.compile(r"\b(?:billing|shipping|delivery|mailing|postal)\b")
_SUPPLIERS = frozenset("issuer vendor supplier merchant partner".split())
_PARTIES = _SUPPLIERS | frozenset("seller buyer customer client payee sprzedawca nabywca".split())
"""What a company may be too: below these, one that is called so is no person."""
_GENERIC_KEYS = frozenset(
    "value values val text content number data v raw formatted primary canonical national international".split()
)
"""Keys that say nothing of their values: what is above them does."""


_JUDGES: Mapping[str, Callable[..., Any]] = {
    each.__name__[1:]: each
    for each in (
        _number,
        _code,
        _phone,
        _email,
        _zip_code,
        _date,
        _address,
        _address_line,
        _place,
        _username,
        _secret,
        _passphrase,
        _ip,
    )
}


def _rule(heading: str, keys: str) -> _FieldRule:
    kind, judge, *lengths = heading.split()
    fits = _JUDGES[judge](*map(int, lengths)) if lengths else _JUDGES[judge]
    return _FieldRule(PiiType[kind], _phrases(keys), fits)


_LATIN, _LOCAL = lists("keys"), {}
for _heading in [each for each in _LATIN if each.startswith("local ")]:
    _LOCAL[_heading.removeprefix("local ")] = without_accents(_LATIN.pop(_heading)).lower()
_RULES, _LOCAL_RULES = (
    [_rule(heading, keys) for heading, keys in some.items() if heading[0].isupper()] for some in (_LATIN, _LOCAL)
)
_NAME_KEYS, _PERSON_KEYS = _phrases(_LATIN["names of people"]), _phrases(_LATIN["people"])
_LOCAL_NAME_KEYS, _LOCAL_NEVER, _LOCAL_PLACE_OF_BIRTH = (
    _phrases(_LOCAL[each]) for each in ("names of people", "never", "place of birth")
)
_SEVERAL_PEOPLE = _phrases(_LOCAL["several people"])
_PERSON_WORDS, _NOT_PEOPLE, _PRODUCTS = (
    frozenset(_LATIN[f"words for {each}"].split()) for each in ("people", "things", "products")
)
_STATES = EVERYDAY | frozenset(_LATIN["what somebody is"].split())


@lru_cache(maxsize=16384)
def rule_for(key: str) -> _FieldRule | None:
    """Return the rule that speaks about a key, in words; remembered, since payloads repeat their keys."""
    is_local = not key.isascii()
    if _NEVER.search(key) or (is_local and _LOCAL_NEVER.search(key)):
        return None
    never = frozenset[PiiType]()
    if (_LOCAL_PLACE_OF_BIRTH if is_local else _PLACE_OF_BIRTH).search(key):
        never |= {PiiType.DATE_OF_BIRTH}
    if not is_local and _NO_POSTAL_ADDRESS.search(key):
        never |= {PiiType.ADDRESS}
    rules = _LOCAL_RULES if is_local else _RULES
    return next((rule for rule in rules if rule.type not in never and rule.key.search(key)), None)


@lru_cache(maxsize=8192)
def _names_people(key: str) -> bool:
    """Return whether the values of a key with other letters than Latin ones are names of people."""
    return _LOCAL_NAME_KEYS.search(key) is not None and not _LOCAL_NEVER.search(key)


_NAME_BESIDE_ROLE = "name|namen|nachname|vorname|nom|nombre|nome|naam|nazwisko|imie|adi|isim|jmeno|prijmeni|nev|neve|nume|namn|navn|nimi|ime|ten|nama"
_OF_ROLE = "of|of the|des|der|de|del|de la|de l|du|della|dello|dell|do|da|van|van de|av|af"
_ROLES = "|".join(sorted({word.replace("_", " ") for word in _LATIN["roles"].split()}, key=len, reverse=True))
_ROLE_KEY = re.compile(
    rf"\A(?:(?:{_NAME_BESIDE_ROLE}) (?:(?:{_OF_ROLE}) )?)?(?:{_ROLES})(?: ?(?:in|innen|s|es|n|en|e|er|i|y|a|lar|ler))?(?: ?(?:{_NAME_BESIDE_ROLE}))?\Z"
)


@lru_cache(maxsize=8192)
def is_role(key: str) -> bool:
    """Return whether a key, in words, is what a person is to somebody: `tenant`, `inquilina`."""
    return _ROLE_KEY.search(key) is not None


_ROLES_OF_MACHINES = frozenset(
    "account agent profile tenant host identity operator worker handler actor owner manager client lead".split()
)
_PROGRAMS = frozenset("agent host worker handler profile identity".split())
"""What programs are called too: one word below these is a person's only where it is a given name."""
_NOBODY = re.compile(
    r"[@/\\{}<>=_$:;|\[\]()#*+]|\.(?:com|org|io|py|js|net|de)\b|[a-z](?:SQL|DB|MQ|API|JS|OS)\b|\A[a-z]+(?:[-.][a-z]+)+\Z|\A[a-z]+[A-Z]"
)
_PARTICLES = frozenset("de van von der den da la del di bin al dos y el le du ibn ter ten zu do das e of st".split())
_BEFORE_NAME = frozenset("pan pani пан пані dr dra prof ing mag sig sr sra mr mrs ms herr frau bay bayan".split())
_AFTER_NAME = frozenset("mba phd md dds dvm cpa msc bsc jr sr ii iii iv bed beng llb llm ba ma".split())
_COMPANY = re.compile(
    r"(?i)\b(?:inc|llc|ltd|gmbh|corp|corporation|company|co|ag|kg|sa|srl|plc|group|holdings?|bank|university|school|hospital|department|"
    r"team|platform|desk|guild|crew|squad|committee|board|council|services?|solutions|systems|technologies|foundation|institute|hotel|restaurant|store|shop|bv|oy|pty|sarl|sas|ug|ohg|kgaa)\b"
    r"|\b(?:s\.a|b\.v|n\.v|s\.r\.l|s\.p\.a|s\.r\.o|sp\. z o\. ?o)\.?\Z"
)
_LONGEST_NAME, _MOST_WORDS = 80, 6


def is_name_key(key: str) -> bool:
    """Return whether a key, in words, names people whatever is around it."""
    return _NAME_KEYS.search(key) is not None if key.isascii() else _names_people(key)


def names_several(key: str) -> bool:
    """Return whether a key as it stands in a text has a list of people below it: `Present`, `出席者`."""
    return _SEVERAL_PEOPLE.search(in_words(key)) is not None


def is_company(name: str) -> bool:
    """Return whether a name has a word that only names of companies have."""
    return _COMPANY.search(name) is not None


def is_placeholder(value: str) -> bool:
    """Return whether a value says that there is none."""
    return value.lower() in _PLACEHOLDERS


def person(key: str, parent: str, value: str) -> FieldVerdict | None:
    """Judge the value of a key that may name a person."""
    if _NEVER.search(key) or not _could_be_name(value):
        return None
    if not key.isascii() and _names_people(key):
        return FieldVerdict(PiiType.PERSON, _SURE) if _named(value) and not _COMPANY.search(value) else None
    words = set(key.split())
    if words & _SUPPLIERS and _COMPANY.search(value):
        return None
    said = value.rstrip(".!")
    if not _NAME_KEYS.search(key) and (said.lower() in _STATES or _is_program(key, said)):
        return None
    if words & (_NOT_PEOPLE | _PRODUCTS) and not words & _PERSON_WORDS & {"account", "policyholder", "lead", "manager"}:
        return None
    if _NAME_KEYS.search(key) or (key.endswith(("name", "names", " nm")) and words & _PERSON_WORDS):
        is_machine = words <= _ROLES_OF_MACHINES | {"name", "names"} and value.islower()
        return FieldVerdict(PiiType.PERSON, _SURE) if _named(value) and not is_machine else None
    if _PERSON_KEYS.search(key):
        is_machine = words <= _ROLES_OF_MACHINES and value.islower() and " " not in value
        return (
            FieldVerdict(PiiType.PERSON, 0.8)
            if _named(value) and not is_machine and not _COMPANY.search(value)
            else None
        )
    if is_role(key) and any(word[0].isupper() or _uncased(word[0]) for word in value.split()):
        return FieldVerdict(PiiType.PERSON, 0.8) if not _COMPANY.search(value) else None
    if key.rpartition(" ")[2] in _PERSON_WORDS - _ROLES_OF_MACHINES and looks_like_full_name(value):
        return FieldVerdict(PiiType.PERSON, LIKELY)
    if key == "user" and looks_like_full_name(value):
        return FieldVerdict(PiiType.PERSON, LIKELY)
    if key in {"name", "names"}:
        around = set(parent.split()) | {word.removesuffix("s") for word in parent.split()}
        if around & _NOT_PEOPLE:
            return None
        if around & _PERSON_WORDS and _named(value) and not _COMPANY.search(value):
            return FieldVerdict(PiiType.PERSON, _SURE)
        if looks_like_full_name(value):
            return FieldVerdict(PiiType.PERSON, LIKELY)
    return None


def _could_be_name(value: str) -> bool:
    return (
        len(value) <= _LONGEST_NAME
        and not _digits(value)
        and _letters(value) >= 1
        and len(value.split()) <= _MOST_WORDS
        and value.lower() not in _PLACEHOLDERS
        and not _NOBODY.search(value)
    )


def _named(value: str) -> bool:
    """Return whether a value below a key that names people may be a name: most have a capital letter."""
    words = value.split()
    return any(c.isupper() or _uncased(c) for word in words for c in word[:3]) or len(words) in {1, 2}


def _uncased(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


def looks_like_full_name(value: str) -> bool:
    """Return whether a value alone looks like given and family name: `Ana de Souza`, not `Acme GmbH` or `IT Team`."""
    if not value.isascii() and _uncased(value[0]):
        return looks_like_local_name(value)
    words = value.split()
    while len(words) > 2 and words[0].strip(".").lower() in _BEFORE_NAME:
        words = words[1:]
    while len(words) > 2 and words[-1].replace(".", "").lower() in _AFTER_NAME:
        words = words[:-1]
    return (
        2 <= len(words) <= 5
        and all(word[0].isupper() or word.lower() in _PARTICLES for word in words)
        and (words[0][0].isupper() or words[-1][0].isupper())
        and (not any(word.isupper() and len(word.strip(".")) > 2 for word in words) or _is_in_capitals(words))
        and not _COMPANY.search(value)
        and not set(value.lower().split()) & _NOT_PEOPLE
        and all(c.isalpha() or c in " .'’-," for c in value)
    )


_GIVEN_IN_CAPITALS = frozenset(name.upper() for name in GIVEN_NAMES if name.lower() not in EVERYDAY)


def _is_in_capitals(words: Sequence[str]) -> bool:
    """Return whether words in capitals are a name: one is a given name, or an initial ends `DOE, J` and `ROE, JANE L`."""
    return all(map(str.isupper, words)) and (
        not _GIVEN_IN_CAPITALS.isdisjoint((words[0], words[-1], words[1]))
        or (words[0].endswith(",") and len(words[-1].strip(".")) == 1)
    )


def label_at_end(said: str) -> int:
    """Return where in some words the name of the next field begins, as in `Jane Roe Date of Birth` before a colon.

    Of words that are no known label only the last counts, and those before it that are no names; the first is never one.
    """
    words = list(_LABEL_WORD.finditer(said))
    if len(words) < 2:
        return len(said)
    first = next((at for at in range(len(words) - 1, 0, -1) if is_label(said[words[at].start() :])), len(words) - 1)
    if first > 2 and first == len(words) - 1 and words[first][0].strip(".#°").lower() in _HEADS:
        first -= 1
    while first > 1 and words[first - 1][0].strip(".,").lower() in EVERYDAY:
        first -= 1
    return words[first].start()


_LABEL_WORD = re.compile(r"\S+")
_HEADS = frozenset("no nr n num number nummer numer numero número id code date datum data type status name".split())
"""A label that ends with one of these has a word before it: `Claim No`."""
_MAX_KEY_WORDS = 8
_MAX_VALUE = 4096
_MAX_HEADING = 80
_LOST = re.compile("\ufffd{1,2}")
"""What stands for a letter that cannot be read: two of them where it was two bytes of UTF-8."""
_LOST_MAX = 2
_VOWELS = ("a", "e", "i", "o", "u", "ae", "oe", "ue", "")
_MAY_BE_LOST = (*_VOWELS, "c", "n", "s", "z", "l", "y", "r", "t", "d", "ss")
_EITHER_GENDER = re.compile(r"[*:/_(]-?in(?:nen)?\)?(?=\Z|[\s_-])")
"""What is put behind a word in German that it may be a woman: `Käufer*in`, `Käufer:innen`, `Käufer/-in`, `Käufer(in)`."""
_KEY_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
KEYS_OF_THINGS = frozenset(
    "price prices unit_price unitprice list_price sku brand qty quantity color colour stock in_stock instock currency weight upc "
    "ean asin isbn manufacturer barcode rating runtime image_url thumbnail cuisine genre capacity voltage material price_cents price_unit price_subtotal subtotal line_total".split()
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
        if key in _GENERIC_KEYS and parent:
            # `phones: [{"number": …}]`: the parent names the field.
            key, parent = parent, grandparent
        self._key = key if key.count(" ") < _MAX_KEY_WORDS and parent != _ROLE_OF_CLOUD else ""
        self._parent = parent
        self._heading = in_words(path[-1]) if path else ""
        self._rule = rule_for(key) if self._key else None
        self._is_secret = self._rule is not None and self._rule.type is PiiType.SECRET
        self._may_name = (
            self._rule is not None and self._rule.type is PiiType.ADDRESS and bool(_BEGINS_WITH_NAME.search(key))
        )
        self._verdict = None if self._rule is None else FieldVerdict(self._rule.type, _SURE)

    def __call__(self, value: str) -> FieldVerdict | None:
        """Return what a value is, or None; it is without quotes and without space at its ends."""
        if not value or len(value) > _MAX_VALUE or not self._key:
            return None
        if value.lstrip("\ufeff")[:1].lower() == self._heading[:1] and in_words(value[:_MAX_HEADING]) == self._heading:
            return None  # a heading that stands in the table again is no value
        rule = self._rule
        if rule is not None and rule.fits(value) and not (self._is_secret and _names_secret(rule, self._key, value)):
            if self._may_name and not _digits(value) and looks_like_full_name(value):
                return FieldVerdict(PiiType.PERSON, LIKELY)
            return self._verdict
        return person(self._key, self._parent, value)


_ROLE_OF_CLOUD = "session issuer"
"""Whom logs of clouds call so is a role, not a person."""


def names_role_of_cloud(path: Sequence[str]) -> bool:
    """Return whether a key stands below one whose values speak about a role of a cloud."""
    return len(path) > 1 and in_words(path[-2]) == _ROLE_OF_CLOUD


def names_product(path: Sequence[str], value: str) -> bool:
    """Return whether a key says that its value is the name of a product, a company or a program: `brand`, `agent`."""
    key = in_words(path[-1]) if path else ""
    words = {_NAME_AT_END.sub("", word) for word in key.split()} - _NAME_WORDS
    if (bool(words) and words <= _PRODUCTS) or _is_program(key, value.rstrip(".!")):
        return True
    return key.removesuffix(" name") in _PARTIES and is_company(value)


_NAME_AT_END = re.compile(r"(?<=...)s?(?:name|naam|namn|navn)\Z")
_NAME_WORDS = frozenset((*_NAME_BESIDE_ROLE.split("|"), *_OF_ROLE.replace("|", " ").split(), ""))


def _is_program(key: str, value: str) -> bool:
    return key in _PROGRAMS and (value[-1:].isdigit() or " " not in value) and value not in GIVEN_NAMES


def is_label(words: str) -> bool:
    """Return whether words, as they stand in a text, are what a field is called: `Posta Kodu`, `PLZ`, `氏名`."""
    key = in_words(words)
    return bool(key) and (rule_for(key) is not None or is_name_key(key))


def _names_secret(rule: _FieldRule, key: str, value: str) -> bool:
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
    return " ".join(_KEY_WORDS.findall(said if said.isascii() else without_accents(said))).lower()


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
