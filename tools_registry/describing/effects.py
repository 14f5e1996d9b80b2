"""Proposes of tools whose server does not say so whether they only read: what an operator is shown, and may accept.

A proposal decides nothing. It reads the name, the first sentence and the names of the arguments, and proposes `write`
wherever these leave a doubt: a needless question is cheaper than a write that nobody was asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from ..models import Json, Schema

_READING = frozenset(
    "analyze browse calculate check compare compute convert count describe detect diff estimate explain fetch find get "
    "grep inspect list locate lookup measure peek ping preview query read retrieve search see show summarize tail "
    "validate verify view whoami".split()
)
_READING_NOUNS = frozenset("diff history info log logs stats status summary tree version".split())
"""Nouns that say what is read, where the name has no verb: `git_status`."""
_WRITING = frozenset(
    "accept activate add apply approve archive assign attach book buy call cancel change checkout clear click "
    "clone close comment commit configure connect copy deactivate disable do drag drop enable evaluate exec fill "
    "fork go grant handle hover import init invite invoke join kill leave lock login logout make mark merge move "
    "mute navigate open order patch pay perform pin post press process publish pull push put react reject release "
    "reload reply request reset resize resolve restart restore resume revoke rotate run save schedule select set "
    "share sign start stash stop store submit subscribe switch sync tag test toggle transfer trigger type undo "
    "unlock unsubscribe upgrade use wait".split()
)
_WRITING_ANYWHERE = frozenset(
    "append create delete deploy destroy drop edit execute insert install modify overwrite purge remove rename "
    "replace send truncate uninstall update upload upsert write".split()
)
_PROGRAMS = frozenset(
    {"code", "command", "expression", "function", "javascript", "query", "script", "sql", "statement"}
)
"""Arguments that may hold a program, which does what it says."""
_SAFEGUARDS = frozenset({"confirm", "dry_run", "dryrun", "force", "overwrite"})
"""Arguments that only tools have which change something."""
_WRITES_IN_WORDS = re.compile(
    r"\b(?:adds?|appends?|applies|creates?|deletes?|edits?|executes?|inserts?|modif(?:y|ies)|overwrites?|"
    r"removes?|renames?|sends?|updates?|uploads?|writes?)\b",
    re.IGNORECASE,
)
_READS_IN_WORDS = re.compile(r"\bread[- ]?only\b|\bselect (?:query|queries|statements?)\b", re.IGNORECASE)
_NO_EFFECT = re.compile(r"\b(?:without|does not|never|not) \w+ing\b|\bdoes not \w+\b", re.IGNORECASE)
_WORD = re.compile(r"(?<![A-Z])[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_SENTENCE_CHARS_MAX = 300


class Effect(StrEnum):
    """What a call of a tool does."""

    READ = "read"
    WRITE = "write"


def proposed_effect(name: str, description: str, input_schema: Schema) -> Effect:
    """Return what a tool seems to do: `READ` only where name, first sentence and arguments all speak for it."""
    words = [word.lower() for word in _WORD.findall(name)]
    sentence = _SENTENCE_END.split(description.strip()[:_SENTENCE_CHARS_MAX], maxsplit=1)[0]
    arguments = _argument_names(input_schema)
    if _WRITING_ANYWHERE.intersection(words) or _SAFEGUARDS & arguments:
        return Effect.WRITE
    said_to_read = _READS_IN_WORDS.search(sentence) is not None
    if not _reads(words, sentence) or (_PROGRAMS & arguments and _runs_programs(words) and not said_to_read):
        return Effect.WRITE
    claimed = _NO_EFFECT.sub("", sentence)
    return Effect.WRITE if _WRITES_IN_WORDS.search(claimed) and not said_to_read else Effect.READ


def _reads(words: list[str], sentence: str) -> bool:
    """Return whether the first verb is one of reading: that of the name, else that of the first sentence."""
    for word in words:
        if word in _READING:
            return True
        if word in _WRITING:
            return False
    if _READING_NOUNS.intersection(words):
        return True
    first = next(iter(_WORD.findall(sentence)), "").lower()
    return bool({first, first.removesuffix("s"), first.removesuffix("es")} & (_READING | {"return", "returns"}))


def _runs_programs(words: list[str]) -> bool:
    """Return whether a tool by its name may take a program: what is searched or looked up takes a query in words."""
    return not {"find", "get", "grep", "list", "lookup", "search", "fetch"}.intersection(words)


def _argument_names(schema: Schema) -> set[str]:
    properties: Json = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return set()
    return {"_".join(word.lower() for word in _WORD.findall(name)) for name in properties}
