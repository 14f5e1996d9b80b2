"""Says in one line which servers are attached and what they are for, in at most 150 tokens.

Security boundary: this line stands in front of every model. Of what servers say of themselves only single lowercase
words get through, cut out of the names of their tools; no sentence of theirs does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from ....tools_registry.search.synonyms import EVERYDAY

TOKENS_MAX = 150
_ESTIMATE_MAX = 140
"""By the estimate of `_tokens`; the rest is for what joins the parts."""
_JOINTS = 2
"""What brackets and the semicolon of one server cost."""
_WORDS_MAX = 8
_WORD = re.compile(r"[a-z]{3,14}")
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_LETTERS = re.compile(r"[^A-Za-z]+")
_NAME_CHARS_MAX = 40
_COMMON = frozenset({"the", "and", "for", "with", "from", "get", "set", "mcp", "tool", "tools", "server", "api"})


def overview(servers: Mapping[str, Sequence[str]]) -> str:
    """Return the line, or nothing without servers: `{alias: [tool, …]}` gives "git (log, diff, commit); time".

    The same servers and tools give the same line, whatever their order.
    """
    aliases = sorted(alias for alias in servers if len(alias) <= _NAME_CHARS_MAX)
    left = _ESTIMATE_MAX
    shown: dict[str, list[str]] = {}
    for alias in aliases:
        cost = _tokens(alias) + _JOINTS
        if cost > left:
            break
        left -= cost
        shown[alias] = []
    waiting = {alias: _words(alias, servers[alias]) for alias in shown}
    for number in range(_WORDS_MAX):
        for alias, words in waiting.items():
            cost = _tokens(words[number]) + 1 if number < len(words) else 0
            if 0 < cost <= left:
                left -= cost
                shown[alias].append(words[number])
    parts = [f"{alias} ({', '.join(words)})" if words else alias for alias, words in shown.items()]
    hidden = len(servers) - len(shown)
    more = [f"{hidden} more in list_servers()"] if hidden else []
    return "; ".join([*parts, *more])


def _words(alias: str, tools: Sequence[str]) -> list[str]:
    """Return the words that most of a server's tools have in their names, without those of its own name."""
    own = {*_split(alias), *_COMMON}
    counted = Counter(word for tool in tools for word in dict.fromkeys(_split(tool[:200])) if word not in own)
    return sorted(counted, key=lambda word: (-counted[word], word not in EVERYDAY, word))[:_WORDS_MAX]


def _split(name: str) -> list[str]:
    words = _NOT_LETTERS.split(_CASE_CHANGE.sub(" ", name))
    return [word for word in map(str.lower, words) if _WORD.fullmatch(word)]


def _tokens(text: str) -> int:
    """Estimate the tokens of an ASCII name, rather too many.

    An everyday word is one; of other words two small letters are one at most, and every other sign is.
    """
    parts = re.findall(r"[a-z]+|[^a-z]", text)
    return sum(1 if part in EVERYDAY else ceil(len(part) / 2) for part in parts)
