"""What an answer names, for provenance: the values that have a field of their own, and those in the midst of free text.

A value is looked for in two forms. In a field it is *exact*: NFKC, without case and white space, so that
`evil-bank.com` never passes for `evilbank.com`. In a text it is *loose*: its letters and digits alone, so that an
account counts however it is spaced or quoted. Of a text only what can be a name is taken: words with a digit, an `@`, a
dot, a slash or a capital letter, words in quotes or behind a colon, and those of a row together. What is written in
base64, hexadecimal digits, percent signs or one letter a line is read too. Everything here is linear in the length of
the answer.

Nothing of the values is kept: what is returned are keyed hashes (BLAKE2b with a key, RFC 7693).
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from ....sandbox.job import Json
from ...base.host_work import checked
from .instructions import gives_orders
from .parties import FREE_TEXTS, has_form

Digest = Callable[[bytes], int]

VALUES_MAX = 20_000
"""Values of one answer; with more it counts as one of which not all is known."""
_FIELD_CHARS_MAX = 200
_FIELD_WORDS_MAX = 8
"""What is longer is a text, whatever its field is called."""
_NAME_WORDS = 3
"""A field of no more words is a name or a title as a whole; of others the parts count as text."""
_ROW_WORDS, _NUMBERED_ROW_WORDS = 5, 9
"""Words that are one name together, and groups of an account number."""
_LETTERS_LEAST = 6
"""So many single letters in a row are one word."""
_ENCODED_LEAST = 16
_KEY_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PIECES = re.compile(r"[<>\"'`()\[\]{},:;|=\u201c\u201d\u2018\u2019«»]+")
_URL_PARTS = re.compile(r"[/?&=#:]+")
_URL_PART_LEAST = 6
_NO_LIST = re.compile(r"[\w.@+ -]*")
_AROUND = ".,;:!?\"'`()[]{}<>*_~|…\u201c\u201d\u2018\u2019«»"
_QUOTES = "\"'`\u201c\u2018«"
_JOINING = frozenset({"of", "and", "de", "del", "der", "di", "du", "la", "le", "the", "van", "von", "&"})
_WITHIN = frozenset("@/\\_.:#%-")
_DROPPED = bytes(each for each in range(128) if not chr(each).isalnum())
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}:)?(?://)?(?:www\.)?", re.IGNORECASE)
_HOST_END = re.compile(r"[/?#:]")
_NUMBER = re.compile(r"[^\w+-]?([+-]?[0-9][0-9.,']{0,30})[^\w]?(?:[A-Z]{3})?")


def exact(text: str) -> bytes:
    """Return the form in which a value has to stand in a field."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(text.split()).lower().encode("utf-8", "surrogatepass")


def loose(text: str) -> bytes:
    """Return the form in which a value is found in a text; of a URL that is without scheme and `www.`."""
    if text.isascii():
        if "://" in text or text[:4].lower() == "www.":
            text = text[_SCHEME.match(text).end() :]  # type: ignore[union-attr]  # it matches anything
        return text.lower().encode().translate(None, _DROPPED)
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, text)).encode("utf-8", "surrogatepass")


def number(value: object) -> bytes | None:
    """Return the one form of a number, or of a text that is one: `1,100.00 EUR` is 1100. None for what is none."""
    if isinstance(value, str):
        # Of what is longer than two signs before a digit nothing is one: most texts are not looked at.
        found = (
            _NUMBER.fullmatch(value) if value[:1].isdigit() or value[1:2].isdigit() or value[2:3].isdigit() else None
        )
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    else:
        text = repr(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)
        return b"\0" + text.encode()
    if found is None:
        return None
    text = found[1].rstrip(".,'").replace("'", "")
    dot, comma = text.rfind("."), text.rfind(",")
    if dot >= 0 and comma >= 0:  # the last one parts the fraction
        text = text.replace("," if dot > comma else ".", "")
    text = text.replace(",", ".")
    whole, _, fraction = text.rpartition(".")
    if whole and (len(fraction) == 3 or "." in whole):  # noqa: PLR2004 - thousands
        return b"\0" + text.replace(".", "").encode()
    return b"\0" + (text.rstrip("0").rstrip(".") if whole else text).encode()


def host_of(text: str) -> str | None:
    """Return the host of a URL; None for what is none."""
    if "://" not in text and not text.lower().startswith("www."):
        return None
    rest = text[_SCHEME.match(text).end() :]  # type: ignore[union-attr]  # as above
    return _HOST_END.split(rest, maxsplit=1)[0].rpartition("@")[2] or None


@dataclass(slots=True)
class Found:
    """What an answer names: digests of fields, and of what stands in text with the line of each, from 1 on."""

    fields: dict[int, None] = field(default_factory=dict)
    texts: dict[int, int] = field(default_factory=dict)
    has_text: bool = False
    ordering: dict[int, int] = field(default_factory=dict)
    """As `texts`, what stands in what gives orders to an assistant."""
    gives_orders: bool = False
    is_whole: bool = True

    def take(self, glanced: Found) -> None:
        """Take what a text is that stands in the answer."""
        self.has_text |= glanced.has_text
        self.gives_orders |= glanced.gives_orders


def read(value: Json, digest: Digest, *, is_text: bool = False, is_glanced: bool = False) -> Found:
    """Return what an answer names. With `is_text`, or where it is a text as a whole, all of it is free text.

    With `is_glanced` it is not looked at again for what `glanced` finds.
    """
    found = Found()
    forms: dict[bytes, int] = {}
    ordering: dict[bytes, int] = {}
    texts = [value] if isinstance(value, str) else []
    fields: list[str] = []
    left: list[tuple[str, Json]] = [] if texts else [("", value)]
    while left:
        key, each = left.pop()
        if isinstance(each, Mapping):
            for name, inner in each.items():
                if not (name.islower() and name.isidentifier()):
                    if is_text or len(name) > _FIELD_CHARS_MAX:
                        texts.append(name)
                    else:
                        found.fields[digest(exact(name))] = None
                left.append((name, inner))
        elif isinstance(each, list):
            left += [(key, inner) for inner in each]
        elif isinstance(each, str):
            if is_text or not _is_field(key, each):
                texts.append(each)
            else:
                _read_field(each, digest, found, forms)
                if " " in each:
                    fields.append(each)
        elif each is not None and not isinstance(each, bool):
            found.fields[digest(number(each) or b"")] = None
        if len(found.fields) + len(left) > VALUES_MAX:
            found.is_whole = False
            break
    for text in () if is_glanced else checked(texts, every=1):  # all of them: those with orders may come last
        found.take(glance := glanced(text))
        if glance.gives_orders:
            _read_text(text, ordering)
    for text in fields if found.gives_orders else ():
        if gives_orders(text):
            _read_text(text, ordering)
    for text in texts:
        _read_text(text, forms)
        if len(forms) > VALUES_MAX:
            found.is_whole = False
            break
    found.texts = {digest(form): line for form, line in forms.items()}
    found.ordering = {digest(form): line for form, line in ordering.items()}
    return found


def glanced(text: str) -> Found:
    """Return whether a text is more than one word, and whether it gives orders; what it names is not read."""
    is_prose = " " in text or "\n" in text
    return Found(has_text=is_prose, gives_orders=is_prose and gives_orders(text))


def _is_field(key: str, text: str) -> bool:
    if len(text) > _FIELD_CHARS_MAX or "\n" in text or text.count(" ") >= _FIELD_WORDS_MAX:
        return False
    return not (is_of_text(key) if len(key) <= _FIELD_CHARS_MAX else True)


@lru_cache(maxsize=4096)
def is_of_text(key: str) -> bool:
    """Return whether a field of this name holds a text for people: `body`, `issueComment`."""
    words = _KEY_WORD.findall(key)
    return bool(words) and words[-1].lower().removesuffix("s") in FREE_TEXTS


def _read_field(text: str, digest: Digest, found: Found, forms: dict[bytes, int]) -> None:
    """Take a field: the whole of it, each address in a list of them, and its parts as a text has them."""
    found.fields[digest(exact(text))] = None
    if text.isalpha():
        return
    if (numeric := number(text)) is not None:
        found.fields[digest(numeric)] = None
    if (host := host_of(text)) is not None:
        found.fields[digest(exact(host))] = None
    has_parts = text.count(" ") >= _NAME_WORDS or (" " in text and (not text.isascii() or "@" in text or "/" in text))
    if text.isalnum() or (not has_parts and _NO_LIST.fullmatch(text)):
        return
    pieces = [each.strip() for each in _PIECES.split(text)]
    if len(pieces) > 1 and any(has_form(each) for each in pieces if each):
        found.fields.update((digest(exact(each)), None) for each in pieces if each and has_form(each))
    if has_parts or "@" in text or "/" in text:
        _add_names(text, forms, 1)


def _read_text(text: str, forms: dict[bytes, int]) -> None:
    letters: list[str] = []
    for line, words in enumerate(text.split("\n"), 1):
        if len(forms) > VALUES_MAX:
            return
        core = words.strip(_AROUND + " \t\r")
        if len(core) == 1:
            letters.append(core)
            continue
        if core and letters:
            _add_letters(letters, forms, line)
            letters = []
        if core:
            _add_names(words, forms, line)
    _add_letters(letters, forms, 1)


def _add_letters(letters: list[str], forms: dict[bytes, int], line: int) -> None:
    if len(letters) >= _LETTERS_LEAST:
        forms.setdefault(loose("".join(letters)), line)


def _add_names(text: str, forms: dict[bytes, int], line: int, *, is_decoded: bool = False) -> None:
    """Take what can be a name of a line."""
    row: list[bytes] = []
    letters: list[str] = []
    is_said = is_numbered = False
    for word in text.split():
        if word.islower() and word.isalpha() and word.isascii():  # most words of a text
            if len(word) == 1:
                letters.append(word)
            elif is_said:
                forms.setdefault(word.encode(), line)
            if row and word not in _JOINING:
                _add_row(row, forms, line, is_numbered=is_numbered)
                row, is_numbered = [], False
            is_said = False
            continue
        core = word.strip(_AROUND)
        if not core:
            continue
        if len(core) == 1:
            letters.append(core)
        form = loose(core)
        _add_word(core, form, forms, line, is_quoted=is_said or word[0] in _QUOTES)
        if len(core) >= _ENCODED_LEAST and not is_decoded:
            for plain in _decoded(core):
                _add_names(plain, forms, line, is_decoded=True)
        is_in_row = core[0].isupper() or core[0].isdigit()
        if is_in_row:
            row.append(form)
            is_numbered = is_numbered or core[-1].isdigit()
        if row and (not is_in_row or word[-1] in ".!?;,"):
            _add_row(row, forms, line, is_numbered=is_numbered)
            row, is_numbered = [], False
        is_said = word[-1] in ":="
    if row:
        _add_row(row, forms, line, is_numbered=is_numbered)
    _add_letters(letters, forms, line)


def _add_row(row: list[bytes], forms: dict[bytes, int], line: int, *, is_numbered: bool) -> None:
    most = _NUMBERED_ROW_WORDS if is_numbered else _ROW_WORDS
    for start, together in enumerate(row):
        for each in row[start + 1 : start + most]:
            together += each  # noqa: PLW2901 - bytes do not change
            forms.setdefault(together, line)


def _add_word(core: str, form: bytes, forms: dict[bytes, int], line: int, *, is_quoted: bool) -> None:
    """Take the forms of a word that can be a name; `form` is its own."""
    is_plain = core.isalpha()
    if is_plain and core.islower() and core.isascii() and not is_quoted:
        return
    if (numeric := number(core)) is not None:
        forms.setdefault(numeric, line)
    forms.setdefault(form, line)
    if is_plain or core.isalnum():
        return
    if (host := host_of(core)) is not None:
        forms.setdefault(loose(host), line)
    pieces = _PIECES.split(core)
    if len(pieces) > 1:
        for piece in pieces:
            if len(piece) > 1:
                forms.setdefault(loose(piece), line)
                if (host := host_of(piece)) is not None:
                    forms.setdefault(loose(host), line)
    if "/" in core or "&" in core:
        for part in _URL_PARTS.split(core):
            if len(part) >= _URL_PART_LEAST:
                forms.setdefault(loose(part), line)
    if core.endswith(("'s", "\u2019s")):
        forms.setdefault(loose(core[:-2]), line)


def _decoded(core: str) -> Iterable[str]:
    """Give the texts that a word is when it is decoded: percent signs, hexadecimal digits, base64."""
    if "%" in core:
        yield unquote(core)
    data: list[bytes] = []
    if _HEX.fullmatch(core):
        data.append(bytes.fromhex(core))
    if _BASE64.fullmatch(core):
        plain = core.rstrip("=")
        with suppress(ValueError):
            data.append(base64.urlsafe_b64decode((plain + "=" * (-len(plain) % 4)).translate({43: "-", 47: "_"})))
    for each in data:
        try:
            text = each.decode()
        except UnicodeDecodeError:
            continue
        if text.isprintable():
            yield text
