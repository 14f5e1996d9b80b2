"""Security boundary: which arguments of a call name a party, a place or a sum.

A user's yes covers what these arguments were when it was given; all other arguments may vary. So an argument counts
where its schema, its name or the form of its value says so, and a doubtful one counts. What is free text by its name,
as a body or a subject, counts only where the whole of it is an address.

The forms are those of RFC 5322 (mail addresses), RFC 3986 (URLs), ISO 13616 (IBAN), E.164 (telephone numbers) and
RFC 9562 (UUID), each as people write them and looser than the standard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTIES = _words(
    "account actor airline assignee attendee author bcc beneficiary bic buyer carrier cc channel chat client "
    "collaborator company contact counterparty creditor customer debtor email employee firstname from fullname group "
    "guest handle hotel iban invitee lastname login mail mailbox member merchant mobile name nickname org organisation "
    "organization owner participant payee payer people person phone provider receiver recipient restaurant reviewer "
    "room sender seller shop subscriber supplier swift team tel telephone tenant to user username vendor who whom"
)
"""Words of names of arguments, in the singular, that say with whom something is done."""

PLACES = _words(
    "address attachment branch bucket callback calendar city collection country cwd database db dest destination dir "
    "directory document domain endpoint file filename folder host hostname href id identifier ip key link location "
    "path place postcode project ref reference repo repository resource server sheet site source src street table "
    "target uri url uuid venue webhook website where workspace zip"
)
"""Words that say where, or to which thing, something is done."""

SUMS = _words(
    "amount balance bid budget cent cost currency deposit discount fee money payment percent percentage price qty "
    "quantity rate salary share sum tip total unit value worth"
)
"""Words that say how much is moved."""

RIGHTS = _words("access acl admin credential passwd password permission pin privilege role scope secret visibility")
"""Words that say what somebody may do from then on."""

ORDERS = _words("cmd command expression query script sql statement")
"""Words of arguments that are carried out, and so may name anything."""

_NAMING = PARTIES | PLACES | SUMS | RIGHTS | ORDERS

FREE_TEXTS = _words(
    "body caption comment content description detail html label line markdown message note reason remark subject "
    "summary text title topic"
)
"""Words that, at the end of a name, say that it is a text for people: `email_body`, `account_description`."""

_FORMATS = _words(
    "directory-path email file-path hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference json-pointer path uri "
    "uri-reference uri-template url uuid"
)
_JOINED = re.compile(
    r"(?:account|bucket|card|channel|chat|customer|doc|document|event|file|folder|group|issue|item|message|order|page|"
    r"post|project|record|repo|room|task|team|thread|ticket|transaction|user)(?:ids?|names?|paths?|urls?|numbers?)"
)
"""Names of two words that are written as one."""
_WORD = re.compile(r"(?:[A-Z](?![a-z]))++|[A-Z]?[a-z]++|[0-9]++")
_NUMBERED = frozenset({"number", "no", "nr", "num", "code"})
"""Words that mean an identifier behind another word, as in `card_number`; alone they mean little."""

VALUE_CHARS_MAX = 2_000
"""A longer text is no address."""
_VALUES_MAX = 20_000
"""Values within an argument that are looked at; one that has more counts as naming something."""
_DEPTH_MAX = 16
_DOUBTFUL: Mapping[str, object] = {"format": "path"}
"""The schema of a value that lies too deep to be looked at: it counts as naming something."""
_JSON_CHARS_MAX = 20_000
"""A longer text is not looked into, though it may be JSON."""

_BETWEEN = re.compile(r"[\s,;<>]+")
_FORM = re.compile(
    r"""
    (?:mailto:)?[^\s@<>"]+@[^\s@<>"]+                       # a mail address, or a user at a host
    | [^<>\n]{0,200}<[^\s@<>]+@[^\s@<>]+>                   # the same with a display name
    | [A-Za-z][A-Za-z0-9+.-]{1,20}://\S+                    # a URL
    | (?:www\.)?(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?(?:/\S*)?  # a host, or a URL without scheme
    | [A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}        # an IBAN
    # a telephone or account number, and no date
    | (?!\d{4}-\d\d-\d\d\b|\d\d?\.\d\d?\.\d{4}$)\+?[0-9(](?:[ ()./-]?[0-9]){5,24}\)?
    | [0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}  # a UUID
    | (?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5})?(?:/\S*)?  # an IPv4 address
    | (?!\d\d?:\d\d:\d\d$)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}            # an IPv6 address
    | (?:~|\.{1,2})?/\S.*                                   # a path
    | (?:[A-Za-z]:)?\\\S.* | [A-Za-z]:/.*                   # a path on Windows
    | [\w.-]{1,100}(?:/[\w.-]{1,100}){1,20}                 # a relative path, owner/name
    | [$€£¥₹]\s?[0-9][0-9.,' ]* | [0-9][0-9.,' ]*\s?(?:[$€£¥₹]|[A-Z]{3})  # a sum
    | [@\#][\w.-]{1,100}                                    # a handle, a channel
    """,
    re.VERBOSE,
)


def identifying(name: str, schema: Mapping[str, object], value: object) -> bool:
    """Return whether an argument names a party, a place or a sum.

    `schema` is the JSON Schema of the argument alone, `value` its value as JSON. None and an empty value name nothing,
    and a truth value only where it is a right: `is_admin`. Takes time linear in what it looks at, which is bounded.
    """
    if isinstance(value, bool):
        return _is_right(name)
    if value is None or value in ("", [], {}):
        return False
    if _said_by_name(name) or _said_by_schema(schema):
        return True
    for count, (key, at, each) in enumerate(_values_in(_opened(name, value), schema, 0)):
        if count >= _VALUES_MAX:
            return True
        if key is not None and key_has_form(key):
            return True
        if isinstance(each, bool):
            if key is not None and _is_right(key):
                return True
            continue
        if key is not None and each not in (None, "", [], {}) and _said_by_name(key):
            return True
        if _said_by_schema(at) or (isinstance(each, str) and has_form(each)):
            return True
    return False


def has_form(text: str) -> bool:
    """Return whether a text as a whole has the form of an address, an account, a path or a sum."""
    stripped = text.strip()
    return len(stripped) <= VALUE_CHARS_MAX and _FORM.fullmatch(stripped) is not None


def key_has_form(key: str) -> bool:
    """Return whether a key of an object names somebody or something, as in `{"anna@example.org": "writer"}`."""
    return not key.isidentifier() and (len(key) > VALUE_CHARS_MAX or any(map(has_form, (key, *parts_of(key)))))


def parts_of(text: str) -> list[str]:
    """Return the parts of a text that may be a list of addresses, each with a name before it."""
    return [each for each in _BETWEEN.split(text) if each]


def is_sum(name: str, value: object) -> bool:
    """Return whether an argument is a number that says how much is moved, so that a rule can have a limit for it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return names_sum(name)


def names_sum(name: str) -> bool:
    """Return whether the name of an argument says that it is a sum, or in what one is counted."""
    return any(_singular(each.lower()) in SUMS for each in _WORD.findall(name))


def _is_right(name: str) -> bool:
    return any(_singular(each.lower()) in RIGHTS for each in _WORD.findall(name))


def _said_by_name(name: str) -> bool:
    words = [_singular(each.lower()) for each in _WORD.findall(name)]
    if not words or words[-1] in FREE_TEXTS:
        return False
    if words[-1] in _NUMBERED and len(words) > 1:
        return True
    return any(each in _NAMING or _JOINED.fullmatch(each) is not None for each in words)


def _singular(word: str) -> str:
    return word if word in _NAMING or not word.endswith("s") else word[:-1]


def _said_by_schema(schema: Mapping[str, object]) -> bool:
    if schema.get("format") in _FORMATS:
        return True
    return any(_said_by_schema(each) for each in _alternatives(schema))


def _alternatives(schema: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for keyword in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(keyword)
        for each in listed[:20] if isinstance(listed, list) else ():
            if isinstance(each, dict) and not any(word in each for word in ("anyOf", "oneOf", "allOf")):
                yield each


def _values_in(
    value: object, schema: Mapping[str, object], depth: int
) -> Iterator[tuple[str | None, Mapping[str, object], object]]:
    """Give each value within an argument, with its key, if it has one, and its schema as far as that is stated."""
    if depth > _DEPTH_MAX:
        yield None, _DOUBTFUL, value
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            inner = _inner(schema, "properties", str(key))
            yield str(key), inner, each
            yield from _values_in(_opened(str(key), each), inner, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        inner = _inner(schema, "items", None)
        for each in value:
            yield None, inner, each
            yield from _values_in(_opened("", each), inner, depth + 1)
    elif depth == 0:
        yield None, schema, value


def _opened(name: str, value: object) -> object:
    """Return the object or list that a text is as JSON; a text as it is where its name says that it is for people."""
    if not isinstance(value, str) or len(value) > _JSON_CHARS_MAX or value.lstrip()[:1] not in ("{", "["):
        return value
    if any(each.lower() in FREE_TEXTS for each in _WORD.findall(name)[-1:]):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _inner(schema: Mapping[str, object], keyword: str, key: str | None) -> Mapping[str, object]:
    for stated in (schema, *_alternatives(schema)):
        inner = stated.get(keyword)
        if key is not None:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return inner
    return {}
