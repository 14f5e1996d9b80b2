"""E-mail addresses, at whatever domain: a reserved or internal one hides as much as a public one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from .prefilter import holds

_SIGN = re.compile("@")
_AT = re.compile(r"@|%40|\\u0040|&#64;|\s?[\[(](?:at|AT)[\])]\s?")
_SPELLED = ("%40", "\\u0040", "&#64;", "at]", "at)", "AT]", "AT)")
_LOCAL_HERE = frozenset(".+_-%'&~")
_LONGEST_LOCAL = 64
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.){{1,8}}(?:[^\W\d_]{{2,24}}|xn--[a-z0-9-]{{2,59}})(?![\w-])")
_SPELLED_DOMAIN = re.compile(r"[a-z0-9-]{2,40}(?:\.|\s?[\[(](?:dot|DOT)[\])]\s?)[a-z]{2,24}\b")
_BARE_HOST = re.compile(r"(?:localhost|[a-z][a-z0-9-]{2,30})(?=[>\"'\s,;)]|\Z)")
_IP_LITERAL = re.compile(r"\[(?:\d{1,3}\.){3}\d{1,3}\]")
# An address in form only: who fetches code by SSH, and the identifiers of messages.
_NO_PERSON = frozenset(("git", "hg", "svn"))
_MESSAGE_ID = re.compile(
    r"(?i)(?:message-id|in-reply-to|references|content-id|msgid)[\"']?\s{0,4}[:=]\s{0,4}[\"']?<?\Z"
)


def emails(text: str) -> Iterator[Finding]:
    """Yield the e-mail addresses."""
    for at in (_AT if holds(text, _SPELLED) else _SIGN).finditer(text):
        spelled = at[0] not in ("@", "%40", "\\u0040", "&#64;")
        start = _local_start(text, at.start())
        if start == at.start():
            continue
        domain = (_SPELLED_DOMAIN if spelled else _DOMAIN).match(text, at.end()) or _IP_LITERAL.match(text, at.end())
        score = 1.0
        if domain is None:
            domain = _BARE_HOST.match(text, at.end())
            named = "." in text[start : at.start()] and text[max(start - 1, 0)] in "\"'"
            if domain is None or not (named or text.startswith("<", max(start - 1, 0))):
                continue
            score = 0.7
        if text[start : at.start()] in _NO_PERSON and text.startswith((":", "/"), domain.end()):
            continue
        if _MESSAGE_ID.search(text, max(0, start - 24), start):
            continue
        yield Finding(start, domain.end(), PiiType.EMAIL, score)


def _local_start(text: str, end: int) -> int:
    """Return where the part before the `@` begins."""
    start = end
    least = max(0, end - _LONGEST_LOCAL)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in _LOCAL_HERE):
        start -= 1
    while start < end and not (text[start].isalnum() or text[start] == "_"):
        start += 1
    return start
