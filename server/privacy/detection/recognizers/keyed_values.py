"""Keys and values in the notations of data, code and forms, each judged by its key.

- Lines of `key: value`: YAML with its nesting, headers of mails and of HTTP, forms written as text.
- Assignments, one line of `_NOTATIONS` each: Python and JavaScript literals, `k=v`, logfmt, TOML, INI, `.env`, shell
  flags, URL queries, database error details.
- JSON, also where it is cut off, embedded in a log line, or escaped. JSON as text inside JSON has its quotes escaped,
  once more for each level: a quote, one backslash and a quote, three and a quote. So each level is read by itself, as
  the strings between quotes with that many backslashes, and the same code finds the fields of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_plus

from ..findings import SURE_THING, THING, Finding, PiiType
from ..keys import (
    KEYS_OF_THINGS,
    LIKELY,
    is_label,
    judge,
    label_at_end,
    looks_like_full_name,
    names_product,
    names_role_of_cloud,
    names_several,
)
from ..scripts import holds

_QUOTES = "\"'`"
_SURELY_THING = 0.9


def field(text: str, path: Sequence[str], start: int, end: int) -> Iterator[Finding]:
    """Yield the finding that `text[start:end]` is, being the value below `path`, without quotes and outer space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start and text[start] in _QUOTES:
        while end > start and text[end - 1] in ",;":
            end -= 1
    if end - start >= 2 and text[start] in _QUOTES and text[end - 1] == text[start]:
        start, end = start + 1, end - 1
    verdict = judge(path, text[start:end])
    if verdict is not None:
        yield Finding(start, end, verdict.type, verdict.score)
    elif end > start and names_role_of_cloud(path):
        yield Finding(start, end, THING, _SURELY_THING)
    elif end > start and names_product(path, text[start:end]):
        yield Finding(start, end, THING, SURE_THING)


_COLON_AFTER = re.compile(r"(?<=[^\W_]|[.)〒])[ ]?:(?=[ \t]|\Z)")


def _fields(text: str, path: Sequence[str], start: int, end: int) -> Iterator[Finding]:
    """Yield what `field` does, of each of the fields that a line holds: `Patient: Jane Roe DOB: 7/30/1978`."""
    at = start
    for colon in _COLON_AFTER.finditer(text, start, end):
        said = text[at : colon.start()]
        label = len(said) if len(said) > _LONGEST_INLINE or _PARTS_FIELDS.search(said) else label_at_end(said)
        if (slash := said.rfind(" / ")) >= 0:
            label = slash + len(" / ")
        is_field = slash >= 0 or is_label(said[label:]) or said[:label].rstrip().endswith(".")
        if not (is_field or _CAPITALISED.fullmatch(said, 0, label)) or label == len(said):
            break
        yield from field(text, path, at, at + len(said[:label].rstrip(" ./")))
        path, at = (said[label:],), colon.end()
    yield from field(text, path, at, end)
    if names_several(path[-1]):
        yield from several(text, at, end)


def several(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the names in a list of people."""
    for part in _LISTED.finditer(text, start, end):
        said = part[0].rstrip(" .。")
        if looks_like_full_name(said) or (said[0] > "\u0900" and len(said) <= _LONGEST_UNCASED):
            yield Finding(part.start(), part.start() + len(said), PiiType.PERSON, LIKELY)


_LONGEST_UNCASED = 10
_LISTED = re.compile(
    r"(?!(?:and|und|et|e|y|en|i|ve|और) )[^\W\d_](?:(?! (?:and|und|et|e|y|en|i|ve|और) )[^,;、；，\n]){2,60}"
)


_LONGEST_INLINE = 120
_PARTS_FIELDS = re.compile(r"[|;\t•·]")
"""Between fields that `_INLINE` finds."""
_CAPITALISED = re.compile(r"\s*(?:(?:[^\W\d_a-z][\w.'’-]*|[\d+(#][\w./()+-]*|d[aeiou]s?|v[ao]n|der|la|y|e),?\s+){1,6}")


_LINE = re.compile(
    r"""(?mx) ^ (?P<indent>[ \t>]{0,200} (?:(?:[-*•+]|\d{1,3}[.)])[ \t]{1,20}){0,3}) (?P<bold>\*{0,2}_{0,2})
    (?: ["']? (?P<key>[^\W\d_][\w .()/&'’#°№-]{0,48}?|[№〒][\w .]{0,24}?) ["']? (?:\*\*|__)? [ \t]{0,8} (?: : (?:\*\*|__)? (?=[ \t\r\n]|\Z) | ：) )?
    [ \t]{0,200} (?P<value>[^\n]{0,600}) """
)
# A start at each tab is enough, and a value is read once: `_inline` finds where it ends.
_INLINE = re.compile(
    r"(?:(?<=[{,;|(\t—–])|(?<=\. )|(?<= / )|(?<=^))[ ]{0,8}+([^\W\d_][\w .#'’()/°№-]{0,40}?)[ ]?:[ \t]{1,8}+(?=([^\s,;|{}\[\]\"'][^,;|{}\[\]\n\"]{0,160}+))",
    re.MULTILINE,
)
_BETWEEN_BARS = re.compile(r"[^|:\n]{0,160}(?=[ ]?\||\n|\Z)|")
_ENDS_INLINE = frozenset(",;|})\n")
# Cardholder ........ Jane Doe
_LEADER = re.compile(r"(?m)^[ \t]{0,40}([^\W\d_][\w /&'’#-]{1,40}?)[ ]?\.{3,80}:?[ ]{1,4}([^\s.][^\n]{1,200})$")
_COMMENT = re.compile(r"[ \t]#[ \t].{0,600}\Z")
_OPENERS = frozenset(("", "|", ">", "|-", ">-", "|+"))
_DEEPEST = 16


# What programs write into mails and requests about themselves: none of their words is a name.
_TRACE = re.compile(
    r"(?mi)^(?:Received|User-Agent|X-Mailer|X-Sieve|X-Virus-[\w-]{1,20}|MIME-Version|Authentication-Results|Received-SPF):[ \t]([^\n]{0,1000}(?:\n[ \t][^\n]{0,1000}){0,20})"
)
_TRACE_WORD = re.compile(r"(?<![^\s(\[=;])[A-Za-z][\w.+:/-]{0,80}(?![\w@.+:/-])")


def lines(text: str) -> Iterator[Finding]:
    """Yield the values that the keys before them make personal."""
    if "..." in text:
        for match in _LEADER.finditer(text):
            yield from field(text, (match[1],), *match.span(2))
    if ":" not in text and "：" not in text:
        return
    for header in _TRACE.finditer(text):
        for word in _TRACE_WORD.finditer(text, *header.span(1)):
            yield Finding(*word.span(), THING, _SURELY_THING)
    yield from _nested(text)
    done = 0
    for match in _INLINE.finditer(text):
        start, end = match.span(2)
        if match.start() < done:
            continue
        if end < len(text) and text[end] not in _ENDS_INLINE:
            end = text.rfind(")", start + 1, end)
        elif text.startswith(",", end) and text.startswith("|", match.start() - 1):
            end = _BETWEEN_BARS.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
        if end > start:
            done = end
            yield from _fields(text, (match[1],), start, end)


def _nested(text: str) -> Iterator[Finding]:
    above: list[tuple[int, str]] = []
    opened = ""
    for line in _LINE.finditer(text):
        value, indent, key = line["value"], len(line["indent"]), line["key"]
        if key is None:
            if not value:
                continue
            dashed = "-" in line["indent"]
            while above and (above[-1][0] > indent or (above[-1][0] == indent and not dashed)):
                above.pop()
            if dashed and above:
                yield from field(text, [name for _, name in above], *_span(line))
            elif opened and looks_like_full_name(value.strip()):  # Bill to:, with the name on the next line
                yield from field(text, (opened,), *_span(line))
            opened = ""
            continue
        opened = ""
        while above and above[-1][0] >= indent:
            above.pop()
        if value.strip() in _OPENERS:
            if len(above) < _DEEPEST:
                above.append((indent, key))
                opened = key
        else:
            yield from _fields(text, [*(name for _, name in above), key], *_span(line))


def _span(line: re.Match[str]) -> tuple[int, int]:
    start, end = line.span("value")
    comment = _COMMENT.search(line["value"])
    return start, start + comment.start() if comment else end


_VARIABLE = r"[^\W\d][\w.\-\[\]]{0,50}"
_SINGLE = r"'(?:[^'\\\n]|\\.){0,400}'"
_DOUBLE = r'"(?:[^"\\\n]|\\.){0,400}"'
_NOTATIONS = (
    # name='Jane', {'name': "O'Brien"}, name: "Jane", :name => 'Jane', name := "Jane"
    (
        re.compile(rf"(?<![\w\"'.-])['\"]?({_VARIABLE})['\"]?\s{{0,20}}(?:=>|:=|[:=])\s{{0,20}}({_SINGLE}|{_DOUBLE})"),
        ("'", '"'),
    ),
    # level=warn user=jane, &user=jane, (name=Jane), MAIL=… ; the value ends at a space or a separator
    (
        re.compile(
            rf"(?<![\w.-])({_VARIABLE})[ ]?=[ ]?((?:(?!\\[nr][\w.-]{{1,40}}[ ]?[=:])[^\s,;&)(\"'|<>]){{2,512}}+)(?![(\[])"
        ),
        ("=",),
    ),
    # --user jane, --password="…"
    (re.compile(rf"(?<![\w-])--?([A-Za-z][\w-]{{1,40}})[ =]({_SINGLE}|{_DOUBLE}|[^\s\"'-]\S{{1,255}})"), ("-",)),
    # curl -H 'X-Api-Key: …', ["Cookie: sid=…"]
    (re.compile(r"['\"]([A-Za-z][\w-]{1,40}):[ ]([^'\"\n]{2,512})(?=['\"])"), (": ",)),
    # Key (email)=(jane@example.org) already exists
    (re.compile(r"\(([\w.]{2,60})\)=\(([^()\n]{1,200})\)"), (")=(",)),
)
# A whole line: what follows may hold any separator. DB_PASSWORD=a;b&c, Luogo di nascita = Asti
_ASSIGNED_LINE = re.compile(
    r"(?m)^[ \t]{0,40}(?:export[ ]|set[ ]|-[ ]|//?[\w./-]{1,80}:)?((?:[^\W\d]|[№〒])[\w.()/'’°\[\] -]{0,50}?)[ \t]{0,20}=[ \t]{0,20}([^\s\"'=>][^\n]{1,511})$"
)
_QUERY = re.compile(rf"[?&;]({_VARIABLE})=([^\s&;\"'<>#]{{2,512}})")
_LIST = re.compile(
    rf"(?<![\w\"'])['\"]?({_VARIABLE})['\"]?\s{{0,20}}[:=]\s{{0,20}}\[((?:\s{{0,20}}(?:{_SINGLE}),?){{1,50}})\s{{0,20}}\]"
)
_STRING = re.compile(_SINGLE)


_LATEX = re.compile(
    r"\\(name|author|signature|firstname|familyname|lastname|address|phone|mobile|email)(?:\[[^\]\n]{0,40}\])?"
    r"\{([^{}\n\\]{2,120})\}(?:\{([^{}\n\\]{2,120})\})?"
)
_OF_LATEX = dict.fromkeys(("name", "signature"), "author")
"""What the arguments of letters and curricula vitae in LaTeX hold."""


def assignments(text: str) -> Iterator[Finding]:
    """Yield the values that their keys make personal."""
    if not holds(text, ("=", ":", "--", "\\")):
        return
    for notation, needed in _NOTATIONS:
        for match in notation.finditer(text) if holds(text, needed) else ():
            for found in field(text, _keys_of(match[1]), *match.span(2)):
                # In code, a bare word is a variable: `author = author`.
                # And `"name": "…"` is JSON's, where what is around it shows more.
                if found.type == PiiType.PERSON and found.score == LIKELY and text[match.end(1)] == '"' == match[2][0]:
                    continue
                if found.type != PiiType.PERSON or not text[found.start : found.end].islower() or match[2][0] in "'\"":
                    yield found
    for match in _LIST.finditer(text) if "[" in text and "'" in text else ():
        for string in _STRING.finditer(text, *match.span(2)):
            yield from field(text, _keys_of(match[1]), *string.span())
    for match in _LATEX.finditer(text) if "\\" in text and "{" in text else ():
        for group in range(2, 2 + (match[3] is not None) + 1):
            yield from field(text, (_OF_LATEX.get(match[1], match[1]),), *match.span(group))
    if "=" not in text:
        return
    for match in _ASSIGNED_LINE.finditer(text):
        yield from field(text, _keys_of(match[1]), *match.span(2))
    for match in _QUERY.finditer(text):
        verdict = judge(_keys_of(match[1]), unquote_plus(match[2]))
        if verdict is not None:
            yield Finding(*match.span(2), verdict.type, verdict.score)


def _keys_of(key: str) -> tuple[str, ...]:
    """Return the keys of `customer.name` or `user[email]`, outermost first; of a label with points, itself."""
    if " " in key or ("." in key and is_label(key)):
        return (key,)
    return tuple(part for part in re.split(r"[.\[\]]", key) if part)


_QUOTE = re.compile(r'(?<!\\)(\\{0,31})"')
_LEVELS = (0, 1, 3, 7)
_JSON_KEY = re.compile(r"[^\W\d][\w .,$@:/?'’()°№&#-]{0,60}|[№〒][\w .]{0,24}")
_COLON = re.compile(r"\s{0,40}:\s{0,400}")
_NUMBER = re.compile(r"-?\d{4,24}(?=[\s,}\]\\]|\Z)")
_LONGEST_KEY = 62
_JSON_DEEPEST = 64
_Quotes = list[tuple[int, int]]


def json_pairs(text: str) -> Iterator[Finding]:
    """Yield the values that their keys make personal."""
    if '"' not in text:
        return
    by_level: dict[int, _Quotes] = {}
    for quote in _QUOTE.finditer(text):
        slashes = quote.end(1) - quote.start(1)
        # A string at the outermost level may end in an escaped backslash.
        level = 0 if slashes and slashes % 2 == 0 else slashes
        start = quote.end(1) if level == 0 else quote.start()
        for each in _LEVELS:
            if level <= each:
                by_level.setdefault(each, []).append((start, quote.end()) if level == each else (-1, quote.end()))
    for level in _LEVELS:
        quotes = by_level.get(level, [])
        if any(start >= 0 for start, _ in quotes):
            yield from _one_level(text, quotes)


def _one_level(text: str, quotes: _Quotes) -> Iterator[Finding]:
    """Yield findings among the strings between quotes; a start of -1 marks a quote that ends the enclosing level."""
    enclosing: list[tuple[str, str]] = []
    pending = ""
    outside = 0
    index = 0
    while index < len(quotes) - 1:
        (opens, inside), (closes, after) = quotes[index], quotes[index + 1]
        if opens < 0:
            enclosing, pending, outside = [], "", inside
            index += 1
            continue
        if closes < 0:
            index += 1
            continue
        pending = _follow(text, outside, opens, enclosing, pending)
        outside = after
        colon = _COLON.match(text, after)
        if colon and closes - inside <= _LONGEST_KEY and _JSON_KEY.fullmatch(text, inside, closes):
            pending = text[inside:closes]
            index += 2
            if number := _NUMBER.match(text, colon.end()):
                yield from field(text, _keys_to(enclosing, pending), number.start(), number.end())
            continue
        if pending or (enclosing and enclosing[-1][0] == "["):
            found = list(field(text, _keys_to(enclosing, pending), inside, closes))
            doubtful = [each for each in found if each.type == PiiType.PERSON and each.score <= LIKELY]
            is_thing = (pending == "name" or bool(doubtful)) and names_thing(text, inside, closes)
            if is_thing and pending == "name":
                yield Finding(inside, closes, THING, SURE_THING)
            yield from (each for each in found if not (is_thing and each in doubtful))
            yield from _typed(text, quotes, index, pending)
        next_is_key = _starts_key(text, quotes, index + 1)
        index += 1 if next_is_key and not _starts_key(text, quotes, index + 2) else 2
    # What comes after the last string cannot be a string's value any more.


def _keys_to(enclosing: list[tuple[str, str]], pending: str) -> list[str]:
    return [*(key for _, key in enclosing[-3:]), pending]


def _starts_key(text: str, quotes: _Quotes, index: int) -> bool:
    """Return whether a key begins at this quote: a stray quote before it must not turn strings inside out."""
    if index + 1 >= len(quotes):
        return False
    (opens, inside), (closes, after) = quotes[index], quotes[index + 1]
    return (
        opens >= 0
        and 0 <= closes - inside <= _LONGEST_KEY
        and _COLON.match(text, after) is not None
        and _JSON_KEY.fullmatch(text, inside, closes) is not None
    )


def _follow(text: str, start: int, end: int, enclosing: list[tuple[str, str]], pending: str) -> str:
    """Follow brackets between two strings; return the key that still waits for its value."""
    for character in text[start:end] if end - start <= 4096 else "":
        if character in "{[":
            if len(enclosing) < _JSON_DEEPEST:
                enclosing.append((character, pending))
            pending = ""
        elif character in "}]":
            if enclosing:
                enclosing.pop()
            pending = ""
        elif character == ",":
            pending = ""
    return pending


_THING = re.compile(rf'"(?:{"|".join(sorted(KEYS_OF_THINGS))})\\{{0,7}}"\s{{0,20}}:', re.IGNORECASE)
_AROUND = 200


def names_thing(text: str, start: int, end: int) -> bool:
    """Return whether the object around a name has fields that only things have: a price, a stock."""
    before = text[max(0, start - _AROUND) : start]
    before = before[max(before.rfind("{"), before.rfind("}")) + 1 :]
    after = text[end : end + _AROUND].partition("}")[0].partition("{")[0]
    return _THING.search(before) is not None or _THING.search(after) is not None


# `{"label": "Phone", "value": "…"}` and the like: one field names the other.
_NAMING = frozenset(
    ("label", "name", "key", "type", "system", "field", "title", "question", "attribute", "kind", "rel", "id", "code")
)
_NAMED = frozenset(("value", "answer", "text", "content", "val", "number", "address", "display", "data"))


def _typed(text: str, quotes: _Quotes, index: int, pending: str) -> Iterator[Finding]:
    if pending.lower() not in _NAMING or index + 5 >= len(quotes):
        return
    (_, named), (named_end, _) = quotes[index], quotes[index + 1]
    (key_opens, key), (key_end, after_key) = quotes[index + 2], quotes[index + 3]
    (opens, value), (value_end, _) = quotes[index + 4], quotes[index + 5]
    if min(named_end, key_opens, key_end, opens, value_end) < 0 or key_end - key > _LONGEST_KEY:
        return
    if (
        text[key:key_end].lower() in _NAMED
        and _COLON.fullmatch(text, after_key, opens)
        and "}" not in text[named_end:key_opens]
    ):
        yield from field(text, (text[named:named_end][:_LONGEST_KEY],), value, value_end)
