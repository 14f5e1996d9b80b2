"""How a value is written where its token stands, so that what was valid before is so after, and nothing else begins.

A security boundary: a value with a quote in it must not end the literal of a query or the word of a command.
JSON (RFC 8259), separated values (RFC 4180), HTML and XML (HTML standard, 13.1.2), URLs (RFC 3986), literals of SQL
(ISO 9075-2, 5.3), words of the shell (POSIX, XCU 2.2). They may stand in each other. Whatever has no writing for its
place raises `DoesNotFit`.
"""

from __future__ import annotations

import html
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import quote

from ....skills_db.vault_entries import Form, VaultEntry
from ...base.host_work import checked
from ..token_texts import Edit, spliced
from .notations import (
    PLAIN,
    JsonNotation,
    Leaf,
    LeafKind,
    Notation,
    PlainNotation,
    TableScanner,
    WrittenLeaf,
    is_table,
    written_leaves,
)

_NESTED_MAX = 4
_TAG_MAX = 4096
_SAFE = re.compile(r"[\w@%+=:,./-]*")
"""What is one word in every shell, and no literal's end anywhere."""


@dataclass(frozen=True, slots=True)
class Put:
    """A value that is put in place of the characters `start` to `end`."""

    start: int
    end: int
    entry: VaultEntry


class DoesNotFit(Exception):
    """The value of a token has no writing where it stands."""

    def __init__(self, where: str, entry: VaultEntry | None = None) -> None:
        super().__init__(where)
        self.where = where
        self.entry = entry


_Leaves: TypeAlias = "Sequence[tuple[WrittenLeaf, Notation]]"


def placed(text: str, puts: Sequence[Put], hint: str = "", *, depth: int = 0) -> list[Edit]:
    """Return how values are put into a text, each as it is written at its place. Raises `DoesNotFit`.

    `hint` is what the text is called: an argument, an attribute or the ending of a file.
    """
    if len(puts) == 1 and (puts[0].start, puts[0].end) == (0, len(text)):
        return [(0, len(text), puts[0].entry.value.plain)]
    if depth > _NESTED_MAX:
        return [(put.start, put.end, put.entry.value.plain) for put in puts]
    leaves = _leaves(text, hint.lower()) if depth < _NESTED_MAX else None
    if leaves is None:
        may_be_url = any(mark in text for mark in _OF_URLS)
        return [(put.start, put.end, _in_plain(text, put) if may_be_url else _within_quotes(text, put)) for put in puts]
    edits: list[Edit] = []
    rest = iter(puts)
    put = next(rest, None)
    for written, notation in leaves:
        mine: list[Put] = []
        while put is not None and put.end <= written.end:
            if put.start < written.start:
                edits.append((put.start, put.end, _word(put)))
            else:
                mine.append(put)
            put = next(rest, None)
        if mine:
            source = text[written.start : written.end]
            offsets = notation.offsets(source)
            inside = [
                replace(
                    each,
                    start=bisect_left(offsets, each.start - written.start),
                    end=bisect_left(offsets, each.end - written.start),
                )
                for each in mine
            ]
            edits.append((written.start, written.end, written_in(source, written.leaf, notation, inside, depth=depth)))
    while put is not None:
        edits.append((put.start, put.end, _word(put)))
        put = next(rest, None)
    return edits


def written_in(
    source: str, leaf: Leaf, notation: Notation, puts: Sequence[Put], *, hint: str | None = "", depth: int = 0
) -> str:
    """Return the source of a leaf with values in it; `puts` count the characters of what it says.

    Raises `DoesNotFit`.
    """
    is_json = isinstance(notation, JsonNotation)
    if len(puts) == 1 and is_json and (puts[0].start, puts[0].end) == (0, len(leaf.text)):
        value = puts[0].entry.value
        if value.form is Form.NUMBER and leaf.kind is LeafKind.STRING:
            return value.text
    offsets = notation.offsets(source)
    edits: list[Edit] = []
    entry: VaultEntry | None = None
    if isinstance(notation, _Escaping) and not notation.nests:
        hint = None
    try:
        inner = placed(
            leaf.text,
            puts,
            "" if hint is None else leaf.path[-1] if leaf.path else hint,
            depth=_NESTED_MAX + 1 if hint is None else depth + (notation is not PLAIN),
        )
        waiting = list(reversed(puts))
        for start, end, said in inner:
            entry = waiting[-1].entry
            while waiting and waiting[-1].start < end:
                waiting.pop()
            is_as_it_stood = is_json and entry.value.form is Form.JSON and said == entry.value.plain
            escaped = entry.value.text if is_as_it_stood else notation.escaped(source, said)
            edits.append((offsets[start], offsets[end], escaped))
    except DoesNotFit as error:
        raise DoesNotFit(error.where, error.entry or entry) from None
    return notation.tidied(spliced(source, edits))


def _word(put: Put) -> str:
    """Return a value that stands where only a word may, such as in the name of an element."""
    if not _SAFE.fullmatch(put.entry.value.plain):
        raise DoesNotFit("outside of quotes", put.entry)
    return put.entry.value.plain


# URLs, which stand in any text.

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|www\.|mailto:|tel:|sms:|/[^?]*\?|\A[\w.%~-]*\?[\w.%+-]{1,60}=")
_OF_URLS = ("://", "www.", "mailto:", "tel:", "sms:", "?", "&", "%5", "%255")
_ENDS_URL = " \t\r\n\"'<>`|\\"
_FORM = re.compile(r"[\w.%+-]{1,100}=(?:[^&=]*&[\w.%+-]{1,100}=)*[^&=]*")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*\Z")
_HOST = re.compile(r"[\w.:-]*")
_URL_CHARS_MAX = 2_000
_ESCAPED_BRACKET = re.compile(r"%(?:25)?5[bB]")


def _within_quotes(text: str, put: Put) -> str:
    """Return a value as it is; in a text of no known notation nobody knows how a quote in quotes is written."""
    value, mark = put.entry.value.plain, text[put.start - 1 : put.start]
    if mark and mark in "\"'" and mark in value and text.startswith(mark, put.end):
        raise DoesNotFit("quotes that it has itself", put.entry)
    return value


def _in_plain(text: str, put: Put) -> str:
    value = _within_quotes(text, put)
    begin = max(0, put.start - _URL_CHARS_MAX)
    before = text[max(begin, *(text.rfind(mark, begin, put.start) + 1 for mark in _ENDS_URL)) : put.start]
    url = _URL.search(before)
    if url is None:
        is_form = "&" in before + text[put.end : put.end + 1] and _FORM.fullmatch(before) is not None
        return quote(value, safe="") if is_form or _ESCAPED_BRACKET.match(text, put.start) else value
    is_authority = _AUTHORITY.match(before, url.start()) is not None
    if is_authority:
        if _HOST.fullmatch(value):
            return value
        if "@" not in text[put.end : put.end + _URL_CHARS_MAX].partition("/")[0]:
            raise DoesNotFit("the name of a host in a URL", put.entry)
    is_address = url[0] in {"mailto:", "tel:", "sms:"} and "?" not in before
    # RFC 3986, 3.3 and 3.4: paths and queries have "@" and ":" as they are.
    return quote(value, safe="@+" if is_address else "" if is_authority else "@:")


# The notations that a text may be in.

_SQL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*[^*]{0,400}\*/|\(|explain\s(?:analy[sz]e\s)?)*+"
    r"(?:select\s[^;]{0,4000}\b(?:from|where)\s|select\s+'|(?:values|call\s[\w.]+)\s*\(\s*(?:N?'|\d|null\b)|exec(?:ute)?\s[\w.\[\]]+\s+(?:@|N?')|where\s[\w.\"`]+\s*(?:=|<>|!=|like|in\s*\()\s*'"
    r"|[\w.\"`]+\s*(?:=|<>|!=|like)\s*'[^']*'\s+(?:and|or)\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s"
    r"|with\s+\w+.{0,80}\bas\s*\(|replace\s+into\s|merge\s+into\s|create\s+(?:table|view|user|role)\s|alter\s+\w+\s)",
    re.IGNORECASE | re.DOTALL,
)
_SHELL_HINTS = frozenset("command cmd shell bash sh zsh commandline command_line shell_command".split())  # noqa: SIM905
_SHELL = re.compile(
    r"#![^\n]*sh\b|(?:sudo )?(?:curl|wget|echo|printf|grep|sed|awk|git|ssh|scp|psql|mysql"
    r"|sqlite3|mail|sendmail|docker|kubectl|aws|gh)\s(?=.*[-'\"|>$])"
)
_MARKUP_HINTS = frozenset({"html", "htm", "xml", "svg", "xhtml"})
_MARKUP = re.compile(
    r"<(?:[A-Za-z][\w:-]{0,60}(?:\s[^<>]{0,2000})?/?>|!--|!DOCTYPE\b|!\[CDATA\[|\?xml\b)", re.IGNORECASE
)
_TABLE_HINTS = frozenset({"csv", "tsv"})


def _leaves(text: str, hint: str) -> _Leaves | None:
    """Return the places of a text, in order, each with how it is written; None for one that is in no notation."""
    json_leaves = written_leaves(text)
    if json_leaves is not None:
        notation = JsonNotation()
        return [(written, notation) for written in json_leaves]
    hint = hint.rpartition(".")[2]
    starts_markup = text.lstrip()[:1] == "<"
    if not starts_markup and (hint in _TABLE_HINTS or is_table(text)):
        scanner = TableScanner()
        found = scanner.feed(text, final=True)[0]
        return [(written, scanner.notation) for written in found]
    if not starts_markup and (_SQL.match(text) or hint == "sql"):
        return list(checked(_sql(text)))
    if not starts_markup and (hint in _SHELL_HINTS or _SHELL.match(text)):
        return list(checked(_shell(text)))
    if hint in _MARKUP_HINTS or _MARKUP.search(text):
        return list(checked(_markup(text)))
    return None


class _Escaping(PlainNotation):
    """A stretch of a text: `escape` writes a value there, and `pair` is what may say one character by several.

    `nests` says whether it may hold a text of another notation.
    """

    def __init__(
        self,
        escape: Callable[[str], str],
        pair: re.Pattern[str] | None = None,
        said: Callable[[str], str] = lambda source: source[-1],
        *,
        nests: bool = True,
    ) -> None:
        self.nests = nests
        self._escape = escape
        self._pair = pair
        self._said = said

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character begins in its source, and where the last ends."""
        return self._read(source)[1]

    def escaped(self, _source: str, text: str) -> str:
        """Return a text as it stands there. Raises `DoesNotFit`."""
        return self._escape(text)

    def leaf(self, text: str, start: int, end: int, name: str = "") -> tuple[WrittenLeaf, Notation]:
        """Return a stretch as a leaf."""
        return WrittenLeaf(Leaf((name,), self._read(text[start:end])[0]), start, end), self

    def _read(self, source: str) -> tuple[str, Sequence[int]]:
        if self._pair is None or self._pair.search(source) is None:
            return source, range(len(source) + 1)
        parts, offsets, at = list[str](), list[int](), 0
        for match in self._pair.finditer(source):
            said = self._said(match[0])
            if len(said) == 1:
                parts += (source[at : match.start()], said)
                offsets += range(at, match.start() + 1)
                at = match.end()
        return "".join(parts) + source[at:], [*offsets, *range(at, len(source) + 1)]


def _only(allowed: Callable[[str], bool], where: str) -> _Escaping:
    def escape(value: str) -> str:
        if not allowed(value):
            raise DoesNotFit(where)
        return value

    return _Escaping(escape, nests=False)


_Places: TypeAlias = Iterator[tuple[WrittenLeaf, Notation]]


# SQL

_SQL_MARK = re.compile(r"(?:(?<![\w$])[eE])?'|\"|`|--|/\*|\$\w{0,60}\$")
_BODIES = {
    "'": re.compile(r"(?:[^']|'')*+"),
    '"': re.compile(r"(?:[^\"]|\"\")*+"),
    "`": re.compile(r"(?:[^`]|``)*+"),
    "E'": re.compile(r"(?:[^'\\]|''|\\.)*+", re.DOTALL),
}
"""What stands between the quotes of literals and names, by the opening one."""


def _doubling(mark: str, two: re.Pattern[str], where: str) -> _Escaping:
    def escape(value: str) -> str:
        if "\\" in value or "\0" in value:
            raise DoesNotFit(f"{where}, since it has a backslash, which databases read in different ways")
        return value.replace(mark, mark * 2)

    return _Escaping(escape, two)


_IN_QUOTES = {
    "'": _doubling("'", re.compile("''"), "a literal of SQL"),
    '"': _doubling('"', re.compile('""'), "a name of SQL"),
    "`": _doubling("`", re.compile("``"), "a name of SQL"),
    "E'": _Escaping(lambda value: value.replace("\\", "\\\\").replace("'", "''"), re.compile(r"''|\\.", re.DOTALL)),
}
_SQL_BARE = _only(
    lambda value: re.fullmatch(r"[\w.@+ -]*", value) is not None and "--" not in value, "SQL outside of quotes"
)
_SQL_OTHER = _only(lambda value: _SAFE.fullmatch(value) is not None and "--" not in value, "a comment or a body of SQL")


def _sql(text: str) -> _Places:
    at = 0
    while match := _SQL_MARK.search(text, at):
        yield _SQL_BARE.leaf(text, at, match.start())
        mark, at = match[0].upper(), match.end()
        end = _BODIES[mark].match(text, at).end() if mark in _BODIES else text.find(_ENDS.get(mark, match[0]), at)  # type: ignore[union-attr]
        is_whole = mark in _BODIES and end < len(text)
        end = len(text) if end < 0 else end
        yield (_IN_QUOTES[mark] if is_whole else _SQL_OTHER).leaf(text, at, end)
        at = min(len(text), end + (1 if mark in _BODIES else len(_ENDS.get(mark, mark))))
    yield _SQL_BARE.leaf(text, at, len(text))


_ENDS = {"--": "\n", "/*": "*/"}


# The shell

_SHELL_PART = re.compile(
    r"(?P<h>\$'|<<)|(?P<q>['\"])|(?P<c>(?:(?<=\s)|\A)#[^\n]*+)|(?P<b>(?:[^\s'\"<;&|()$`#\\]|\\.|(?<=\S)#|\$(?!'))++)|.",
    re.DOTALL,
)
_IN_DOUBLES = re.compile(r"(?:[^\"\\]|\\.)*+", re.DOTALL)
_NESTED_COMMAND = re.compile(r"\$\(|`")
_IN_SINGLE = _Escaping(lambda value: value.replace("'", "'\\''"))
_IN_DOUBLE = _Escaping(lambda value: re.sub(r"([\\\"$`])", r"\\\1", value), re.compile(r"\\[\\\"$`]"))
_SHELL_WORD = _Escaping(shlex.quote)
_SHELL_OTHER = _only(lambda value: _SAFE.fullmatch(value) is not None, "this part of a command")


def _shell(text: str) -> _Places:
    at = 0
    while match := _SHELL_PART.match(text, at):
        start, at = match.span()
        if match["q"]:
            end = text.find("'", at) if match["q"] == "'" else _IN_DOUBLES.match(text, at).end()  # type: ignore[union-attr]
            is_hard = not 0 <= end < len(text) or (match["q"] == '"' and _NESTED_COMMAND.search(text, at, end))
            end = end if end >= 0 else len(text)
            yield (_SHELL_OTHER if is_hard else _IN_SINGLE if match["q"] == "'" else _IN_DOUBLE).leaf(text, at, end)
            at = end + 1
        elif match["h"]:  # what follows is read otherwise
            yield _SHELL_OTHER.leaf(text, at, len(text))
            return
        elif match["c"] or match["b"]:
            yield (_SHELL_OTHER if match["c"] or "\\" in match[0] else _SHELL_WORD).leaf(text, start, at)


# HTML and XML

_OPENING = re.compile(r"<!--|<!\[CDATA\[|<(?P<raw>script|style)\b|<[A-Za-z/!?]", re.IGNORECASE)
_TAG = re.compile(r"<[^<>\"']*+(?:\"[^\"]*+\"[^<>\"']*+|'[^']*+'[^<>\"']*+)*+>")
_ATTRIBUTE = re.compile(r"(?<![^\s\"'<>/=])([^\s\"'<>/=]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'=<>`]+))")
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});")
_HTML_TEXT = _Escaping(lambda value: html.escape(value, quote=False), _REFERENCE, html.unescape)
_HTML_ATTRIBUTE = _Escaping(
    # XML 1.0, 3.3.3: a tab or a line break in an attribute is read as a blank.
    lambda value: re.sub(r"[\t\r\n]", lambda sign: f"&#{ord(sign[0])};", html.escape(value)),
    _REFERENCE,
    html.unescape,
)
_HTML_BARE = _Escaping(lambda value: re.sub(r"[\s\"'=<>`&]", lambda sign: f"&#{ord(sign[0])};", value), _REFERENCE)
_PROGRAM = re.compile(r"(?:on[a-z]+|style)\s*=|\w+\s*=\s*[\"']?\s*javascript:", re.IGNORECASE)
_HTML_OTHER = _only(
    lambda value: re.search(r"[<>'\"\\`\r\n\u2028\u2029]|--|\]\]|\*/|\$\{", value) is None,
    "a script, a style or a comment of HTML",
)


def _markup(text: str) -> _Places:
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        yield _HTML_TEXT.leaf(text, at, start)
        closing = {"<!--": "-->", "<![cdata[": "]]>"}.get(opening[0].lower())
        if closing is None:
            tag = _TAG.match(text, start, start + _TAG_MAX)
            if tag is None:
                yield _HTML_OTHER.leaf(text, start, start + 1)
                at = start + 1
                continue
            yield from _attributes(text, *tag.span())
            at = tag.end()
            if opening["raw"] is None:
                continue
            closing = f"</{opening['raw']}"
        else:
            at = opening.end()
        end = re.compile(re.escape(closing), re.IGNORECASE).search(text, at)
        stop = len(text) if end is None else end.start()
        yield _HTML_OTHER.leaf(text, at, stop)
        at = stop if closing[0] == "<" or end is None else end.end()
    yield _HTML_TEXT.leaf(text, at, len(text))


def _attributes(text: str, start: int, end: int) -> _Places:
    for match in _ATTRIBUTE.finditer(text, start, end):
        notation = _HTML_BARE if match[4] is not None else _HTML_ATTRIBUTE
        if _PROGRAM.match(match[0]):
            notation = _HTML_OTHER
        yield notation.leaf(text, *match.span(match.lastindex or 0), match[1])
