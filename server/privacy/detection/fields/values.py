"""What the values of fields look like: a number, a telephone, an address, a secret, or what stands where one would.

The numbers below are lengths: the shortest and longest forms in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable


def digits(value: str) -> int:
    """Count the digits."""
    return sum(map(str.isdigit, value))


def letters(value: str) -> int:
    """Count the letters."""
    return sum(map(str.isalpha, value))


def number(least: int, longest: int) -> Callable[[str], bool]:
    """Judge something like a number: at least so many digits, at most so many characters."""
    return lambda value: len(value) <= longest and digits(value) >= least and "\n" not in value and "://" not in value


def code(longest: int) -> Callable[[str], bool]:
    """Judge a code of letters and digits, such as a SWIFT code or a card's check digits."""
    return lambda value: (
        len(value) <= longest and value.replace(" ", "").isalnum() and value.lower() not in PLACEHOLDERS
    )


def phone(value: str) -> bool:
    """Judge a telephone number."""
    return 6 <= digits(value) <= 20 and len(value) <= 40 and letters(value) <= 9 and not _DATE.match(value)


def email(value: str) -> bool:
    """Judge a mail address."""
    return "@" in value.strip("@") and len(value) <= 320 and " " not in value


def zip_code(value: str) -> bool:
    """Judge a postal code."""
    return len(value) <= 12 and (digits(value) >= 3 or (digits(value) >= 2 and len(value) <= 9))


def date(value: str) -> bool:
    """Judge a date in whatever form."""
    return len(value) <= 40 and digits(value) >= 4


def address(value: str) -> bool:
    """Judge a postal address, or a line of one."""
    return (
        letters(value) >= (3 if value.isascii() else 2)
        and len(value) <= 200
        and value[0] not in "{[<$%#"
        and "://" not in value
        and "@" not in value
        and not _CALL.search(value)
        and value.lower() not in PLACEHOLDERS
        and not (value.isascii() and _IDENTIFIER.fullmatch(value) and not value[0].isupper())
    )


def address_line(value: str) -> bool:
    """Judge a line of a postal address whose label says no more than which line it is, as of a program: no sentence."""
    words = value.split()
    return address(value) and (
        value[0].isdigit() or all(digits(word) or not word[0].islower() or len(word) <= 3 for word in words)
    )


def place(value: str) -> bool:
    """Judge the name of a place."""
    return letters(value) >= 2 and len(value) <= 60 and not digits(value) and value.lower() not in PLACEHOLDERS


def username(value: str) -> bool:
    """Judge the name of an account that is a person's."""
    return (
        3 <= len(value) <= 64
        and _USERNAME.fullmatch(value) is not None
        and not value.isdecimal()
        and not _UUID.fullmatch(value)
        and value.lower() not in _SYSTEM_USERS
        and value.lower() not in PLACEHOLDERS
    )


def secret(value: str) -> bool:
    """Judge a secret of one word."""
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and not any(map(str.isspace, value))


def passphrase(value: str) -> bool:
    """Judge a secret of several words, or of one."""
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and value.count(" ") <= 24


def ip(value: str) -> bool:
    """Judge an address on a network."""
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
PLACEHOLDERS = frozenset(
    "true false null none nil string str text varchar integer int number unknown undefined n/a na admin root system "
    "anonymous user username name default email phone address required optional yes no on off test example bot tbd "
    "object array boolean private public internal external".split()
)
_SYSTEM_USERS = frozenset(
    "root admin administrator user users app postgres mysql ubuntu debian ec2-user system bot none null guest test "
    "default service nobody daemon www-data git jenkins ci deploy runner sa redis nginx apache node oracle anonymous "
    "me self you __token__ oauth2".split()
)
