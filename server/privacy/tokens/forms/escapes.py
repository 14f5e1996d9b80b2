"""Texts within texts: what escapes, base 64 and hexadecimal digits say, and where each character of it stands.

A stretch that is cut anywhere is read from each of the places where its groups may begin.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import quopri
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....base.host_work import checked

_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+|(?:\\u[0-9A-Fa-f]{4})+|(?:\\x[0-9A-Fa-f]{2})+|\\{1,8}[nrt\"'/]"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8}\d{0,2});|(?:=[0-9A-F]{2}){2,}"
)
_WORD = r"=\?[\w-]{2,40}\?(?:[Qq]\?[^?\s]{0,200}|[Bb]\?[A-Za-z0-9+/=]{0,200})\?="
_MAIL = re.compile(
    rf"(?:{_WORD}(?:[ \t\r\n]{{1,8}}(?==\?))?)|(?:=[0-9A-F]{{2}}(?:=\r?\n(?==[0-9A-F]{{2}}))?)+|=[ \t]{{0,8}}\r?\n|\r?\n[ \t]"
)
"""Words that are encoded in headers (RFC 2047), quoted-printable (RFC 2045), folded lines (RFC 5322, 5545, 6350)."""
_IS_MAIL = re.compile(r"=\?[\w-]{2,40}\?[QqBb]\?|[^\n=]=\r?\n[^\s]|^BEGIN:V", re.MULTILINE)
_BODY_LEAST = 60
_BODY = re.compile(
    r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{60,76}+(?:\r?\n[A-Za-z0-9+/]{60,76}+)*+(?:\r?\n[A-Za-z0-9+/]{1,76}+={0,2}+)?+"
)
_OF_BASE64 = re.compile(r"[A-Za-z0-9+/=]")
_QUOTED = re.compile(r"=[0-9A-F]{2}=")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_MIXED = re.compile(r"[a-z][A-Z]|[0-9][A-Za-z]|[A-Za-z][0-9]|\d{12}")
_HEX = re.compile(r"(?:0x)?([0-9A-Fa-f]{8,})")
_HEX_OF_WORDS = re.compile(
    r"(?:[2-7][0-9A-Fa-f]|0[9AaDd]|[C-Fc-f][0-9A-Fa-f](?:[89ABab][0-9A-Fa-f]){1,3})+[0-9A-Fa-f]?"
)
_LONG_PART = re.compile(r"[A-Za-z0-9+]{8,}")
_PARTS = (re.compile(r"[A-Za-z0-9+/]+={0,2}"), re.compile(r"[A-Za-z0-9+]+={0,2}"))
_SHORT_RUN = 16
_RUN_MAX = 1 << 20
_LEAST = 4
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """What a stretch of a text says: the characters `text`, of which `changed` were written otherwise.

    `starts[n]` and `ends[n]` are where what says the character `n` begins and ends.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    changed: Sequence[tuple[int, int]] | None = None

    def concerns(self, start: int, end: int) -> bool:
        """Return whether any of the characters were written otherwise than as they are."""
        if self.changed is None:
            return True
        at = bisect_right(self.changed, (end,)) - 1
        return at >= 0 and self.changed[at][1] > start

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where those characters are said."""
        return self.starts[start], self.ends[end - 1]


def readings(text: str) -> Iterator[Reading]:
    """Yield what a text says otherwise than by its characters."""
    if "%" in text or "\\" in text or "&" in text or ("=" in text and _QUOTED.search(text)):
        read = _unescaped(text)
        if read is not None:
            yield read
    yield from mail(text)
    yield from encoded(text)


def mail(text: str) -> Iterator[Reading]:
    """Yield what a text says as a mail, or as a card or a calendar, which are folded alike, and bodies in base64."""
    if ("=" in text or "BEGIN:V" in text) and _IS_MAIL.search(text) and (read := _unescaped(text, _MAIL)) is not None:
        yield from _lines_changed(read)
    for body in checked(_BODY.finditer(text)) if len(text) > _BODY_LEAST else ():
        if "\n" not in body[0] or _OF_BASE64.match(text, body.end()):
            continue
        places = [place for place in range(*body.span()) if not text[place].isspace()]
        if len(places) <= _RUN_MAX:
            for read in _of_base64("".join(text[place] for place in places), 0):
                yield Reading(read.text, [places[at] for at in read.starts], [places[at - 1] + 1 for at in read.ends])


def _lines_changed(read: Reading) -> Iterator[Reading]:
    """Yield the lines of a reading in which something was written otherwise."""
    first = last = -1
    inside: list[tuple[int, int]] = []
    for start, end in (*(read.changed or ()), (len(read.text) + 2, 0)):
        if inside and start > last:
            changed = [(low - first, high - first) for low, high in inside]
            yield Reading(read.text[first:last], read.starts[first:last], read.ends[first:last], changed)
            inside = []
        if not inside:
            first = read.text.rfind("\n", 0, start) + 1
        inside.append((start, end))
        if end > last:
            last = read.text.find("\n", end)
            last = len(read.text) if last < 0 else last


def _unescaped(text: str, escape: re.Pattern[str] = _ESCAPE) -> Reading | None:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    changed: list[tuple[int, int]] = []
    at = 0
    for match in checked(escape.finditer(text)):
        said = _said(match[0])
        if said is None:
            continue
        parts.append(text[at : match.start()])
        starts += range(at, match.start())
        ends += range(at + 1, match.start() + 1)
        changed.append((len(starts), len(starts) + len(said)))
        parts.append(said)
        starts += [match.start()] * len(said)
        ends += [match.end()] * len(said)
        at = match.end()
    if not changed:
        return None
    parts.append(text[at:])
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return Reading("".join(parts), starts, ends, changed)


def _said(source: str) -> str | None:
    if source[0] == "%":
        return _from_bytes(bytes.fromhex(source.replace("%", "")))
    if source.startswith("=?"):
        return _word_said(source)
    if source[0].isspace() or source[1:2].isspace():
        return ""
    if source[0] == "=":
        source = _SOFT.sub("", source)
        return _from_bytes(bytes.fromhex(source.replace("=", "")))
    if source[0] == "&":
        said = html.unescape(source)
        return said if said != source else None
    if source.startswith("\\x"):
        return _from_bytes(bytes.fromhex(source.replace("\\x", "")))
    if source.startswith("\\u"):
        return str(json.loads(f'"{source}"'))
    return {"n": "\n", "r": "\r", "t": "\t"}.get(source[-1], source[-1])


_SOFT = re.compile(r"=\s+")


def _word_said(source: str) -> str | None:
    _, charset, how, said = source.rstrip().removesuffix("?=").split("?", 3)
    try:
        data = said.replace("_", " ").encode("ascii")
        return (binascii.a2b_base64(data) if how in "Bb" else quopri.decodestring(data)).decode(charset)
    except (binascii.Error, UnicodeError, LookupError):
        return None


def _from_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def encoded(text: str) -> Iterator[Reading]:
    """Yield what base64 and hexadecimal digits within a text say, where that is text."""
    for run in checked(_RUN.finditer(text)):
        source, start = run[0], run.start()
        if len(source) > _RUN_MAX or not _MIXED.search(source):
            continue
        yield from _of_run(source, start)
        if not source.isalnum() and _LONG_PART.search(source):
            for at, part in _parts(source):
                yield from _of_run(part, start + at)


def _of_run(source: str, at: int) -> Iterator[Reading]:
    digits = _HEX.fullmatch(source)
    if digits is not None:
        if _HEX_OF_WORDS.fullmatch(digits[1]):
            yield from _of_hex(digits[1], at + digits.start(1))
    elif source.lower() != source != source.upper() or (len(source) <= _SHORT_RUN and len(source) % 4 == 0):
        # Base 64 of more than a word has letters of both cases.
        yield from _of_base64(source, at)


def _parts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a run between signs, which base 64 has, but names of files and paths too."""
    seen = {(0, source)}
    for part in _PARTS:
        for match in part.finditer(source):
            if len(match[0]) >= _LEAST + 2 and (match.start(), match[0]) not in seen:
                seen.add((match.start(), match[0]))
                yield match.start(), match[0]


def _of_base64(source: str, at: int) -> Iterator[Reading]:
    bare = source.rstrip("=").replace("-", "+").replace("_", "/")
    for skipped in range(4):
        some = bare[skipped:]
        rest = len(some) % 4
        if rest == 1:
            some, rest = some[:-1], 0
        if len(some) < _LEAST:
            return
        try:
            data = base64.b64decode(some + "=" * (-len(some) % 4))
        except binascii.Error:
            continue
        for text, offset in _texts(data):
            places = [offset + place for place in _byte_places(text)]
            starts = [at + skipped + place // 3 * 4 for place in places[:-1]]
            most = at + skipped + len(some)
            ends = [min(most, at + skipped + (place + 2) // 3 * 4) for place in places[1:]]
            yield Reading(text, starts, ends)
        if skipped == 0 and _is_text(data):
            return


def _of_hex(source: str, at: int) -> Iterator[Reading]:
    try:
        text = bytes.fromhex(source[: len(source) // 2 * 2]).decode()
    except UnicodeDecodeError:
        return
    if _is_printable(text):
        places = [at + 2 * place for place in _byte_places(text)]
        yield Reading(text, places[:-1], places[1:])


def _byte_places(text: str) -> list[int]:
    places = [0]
    if text.isascii():
        return list(range(len(text) + 1))
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return places


def _texts(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield what of some bytes is text: all of it, but for what is cut off at both ends."""
    for skipped in range(min(4, len(data))):
        try:
            text = data[skipped:].decode()
        except UnicodeDecodeError as error:
            if error.start == 0:
                continue
            if skipped + error.start < len(data) - 4:
                return
            text = data[skipped : skipped + error.start].decode()
        if len(text) >= _LEAST_WORDS and _is_printable(text):
            yield text, skipped
        return


def _is_text(data: bytes) -> bool:
    try:
        return _is_printable(data.decode())
    except UnicodeDecodeError:
        return False


def _is_printable(text: str) -> bool:
    shown = text if text.isprintable() else text.translate(_BLANKS)
    return shown.isprintable()


_BLANKS = {9: 32, 10: 32, 13: 32}
