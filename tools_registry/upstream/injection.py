"""Flags text in a tool's definition that speaks to the model instead of describing the tool.

This only warns: patterns find the known shapes of tool poisoning, never all of it. What protects is that definitions
are pinned (`pins.py`) and that a tool can do no more than policy allows. Sources: Invariant Labs, "MCP Security
Notification: Tool Poisoning Attacks" (2025); OWASP LLM01:2025, prompt injection.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ..models import Json

CHARS_MAX: Final = 200_000
"""Characters of one tool's texts that are looked through."""

_SHOWN_CHARS = 80
_WINDOW_CHARS = 3_600
_LONGEST_MATCH = 400
"""Above what any of the patterns spans."""
_NOTHING: Mapping[str, Json] = MappingProxyType({})


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in alternatives), re.IGNORECASE)


_PATTERNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "overrides instructions": _pattern(
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}"
            r"\b(?:previous|prior|earlier|above|preceding|system|other|all|any|your)\b[^.\n]{0,30}"
            r"\b(?:instructions?|prompts?|rules?|guidelines?|directives?|messages?|context|policies|policy)\b",
            r"\bnew (?:system )?instructions?\b\s*:",
            r"\byou are now\b|\bfrom now on,? you\b",
        ),
        "marks text as important to the model": _pattern(
            r"<\s*/?\s*(?:important|system|secret|critical|instructions?|hidden|admin|assistant|priority)\b[^>\n]{0,40}>",
            r"\[/?(?:INST|SYSTEM)\]|<\|[a-z_]+\|>|^\s*#{0,4}\s*system prompt\b",
        ),
        "asks to hide something from the user": _pattern(
            r"\b(?:do not|don['\u2019]t|never|must not|without)\s+(?:ever\s+)?"
            r"(?:tell|inform|mention(?:ing)?|notify|notifying|telling|informing|reveal(?:ing)?|show(?:ing)?|alert(?:ing)?|"
            r"ask(?:ing)?|warn(?:ing)?|disclos(?:e|ing))\b[^.\n]{0,60}\b(?:user|human|anyone|operator|person|customer)s?\b",
            r"\b(?:hide|conceal|keep)\b[^.\n]{0,50}\b(?:from|secret)\b[^.\n]{0,20}\b(?:user|human|operator)s?\b",
            r"\b(?:secretly|silently|covertly|quietly)\s+(?:send|forward|copy|read|call|include|pass|upload|append|add)\b",
        ),
        "orders the model to act around other tools": _pattern(
            r"\b(?:before|prior to|after|instead of)\s+(?:you\s+)?"
            r"(?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|runn?(?:ing)?)\s+"
            r"(?:any|every|all|each|an?y?|the)?\s*(?:of\s+the\s+)?(?:other|another|different)\s+tools?\b",
            r"\b(?:before|after)\s+(?:using|calling|invoking|running)\s+(?:any|every|all|each)\s+(?:\w+\s+)?tools?\b",
            r"\b(?:you\s+must|always|must\s+first)\s+(?:first\s+)?(?:call|use|invoke|run)\s+this\s+tool\s+"
            r"(?:first|before|whenever|on\s+every|for\s+every|instead)\b",
            r"\b(?:other|all\s+other|any\s+other)\s+tools?\b[^.\n]{0,40}\b(?:are|is)\s+"
            r"(?:deprecated|broken|unsafe|compromised|disabled|obsolete|insecure)\b",
        ),
        "asks for secrets": _pattern(
            r"\b(?:read|include|send|pass|provide|attach|paste|upload|append)\b[^.\n]{0,80}"
            r"(?:~/\.(?:ssh|aws|cursor|config|gnupg)|\bid_rsa\b|/etc/(?:passwd|shadow)|\.env\b|\bmcp\.json\b|"
            r"\b(?:api|private|ssh|secret)\s+keys?\b[^.\n]{0,40}\bas\b|\bsystem prompt\b|"
            r"\b(?:whole|entire|full)\s+(?:conversation|chat)\b)",
        ),
    }
)

_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"(?<!\s)\s*\n\s*")
_HIDDEN = frozenset({"Cf", "Co", "Cn"})
_HARMLESS_FORMAT = frozenset("\u00ad\ufeff\u200c\u200d")
"""Soft hyphen, byte order mark and the joiners of emoji and Indic scripts."""


def flags(description: str, schema: object = _NOTHING, *more: str) -> tuple[str, ...]:
    """Return what speaks to the model in a tool's texts, one entry each: the kind, and the words it was seen by.

    `schema` is the input schema, of which names, titles, descriptions, defaults, examples and enums are read; `more`
    are other texts, such as the title. An empty tuple means that nothing known was found, not that nothing is there.
    Texts beyond `CHARS_MAX` are not looked through, and an entry says so.
    """
    found: dict[str, None] = {}
    left = CHARS_MAX
    for whole in itertools.chain((description, *more), _texts(schema)):
        text, left = whole[: max(0, left)], left - len(whole)
        even = _LINES.sub("\n", _BLANKS.sub(" ", text))  # patterns try each place of a run of blanks anew
        for kind, pattern in _PATTERNS.items():
            if match := _first(pattern, even):
                found[f"{kind}: “{_shown(match[0])}”"] = None
        if hidden := _hidden(text):
            found[f"hides characters: {hidden}"] = None
        if left < 0:
            found[f"is long: only {CHARS_MAX} characters were looked through"] = None
            break
    return tuple(found)


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Search a text in windows: no other thread runs during one search."""
    windows = range(0, len(text), _WINDOW_CHARS)
    found = (pattern.search(text, max(0, start - _LONGEST_MATCH), start + _WINDOW_CHARS) for start in windows)
    return next((match for match in found if match), None)


def _texts(schema: object) -> Iterator[str]:
    """Yield every text of a schema, keys included, without recursion: a schema may be nested as deeply as it likes."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (key for key in value if isinstance(key, str))
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def _hidden(text: str) -> str:
    """Name the first invisible or direction-changing character, or an escape sequence; empty where there is none."""
    if text.isascii() and "\x1b" not in text:
        return ""
    for character in text:
        if character == "\x1b" or (unicodedata.category(character) in _HIDDEN and character not in _HARMLESS_FORMAT):
            return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()
    return ""


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
