"""What was called after which search, so that a search in like words finds it again: for each owner apart, and local.

Of a query there are kept keyed hashes of the stems of ordinary words: those that the bundled word vectors have and that
stand in lowercase in it, so no names, numbers or identifiers, and nothing of what a tool was given or gave.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ..kept import KeptText, kept_at
from .tokens import STOP_WORDS, fold, runs, stem
from .vectors import load_word_vectors

_LOG = logging.getLogger(__name__)
OWNERS_MAX = 100
ENTRIES_MAX = 500
"""Pairs of a search and a tool that are kept for one owner; the oldest go."""
_WORDS_MAX = 16
_LONGEST_QUERY = 2000
_SHORTEST_WORD = 3
_SEARCHES_OPEN = 3
"""Searches in a row without a call in between that count as one wish in several words."""
_TOOLS_PER_SEARCH = 5
_OPEN_SECONDS = 600.0
LEAST_LIKENESS = 0.3
_KEY_BYTES = 16
_HASH_BYTES = 8

Words: TypeAlias = frozenset[str]
_Entries: TypeAlias = "OrderedDict[tuple[Words, str], None]"


@dataclass(slots=True)
class _Open:
    """The last searches of an owner, and which tools were called since."""

    searches: list[Words] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    at: float = 0.0


class SearchUsage:
    """The searches of each owner with the tools called after them, kept in one text that servers may share.

    Threads may call it. `searched` and `called` touch memory alone; `save` and `refresh` do not, so call them in a
    thread.
    """

    def __init__(self, place: Path | KeptText) -> None:
        self._kept = kept_at(place)
        self._lock = threading.Lock()
        """For what is in memory: never held while something is read or written, since the event loop takes it."""
        self._storing = threading.Lock()
        key, self._known = _read(self._kept)
        self._key = key or secrets.token_bytes(_KEY_BYTES)
        self._new: dict[str, _Entries] = {}
        self._on_way: dict[str, _Entries] = {}
        """What is being saved."""
        self._brief: set[str] = set()
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def searched(self, owner: str, query: str, *, brief: bool = False) -> None:
        """Note a search; what a `brief` owner did is not written to the file."""
        words = self._words(query)
        with self._lock:
            now = time.monotonic()
            opened = self._open.get(owner)
            if opened is None or opened.called or now - opened.at > _OPEN_SECONDS:
                opened = self._open[owner] = _Open()
            self._open.move_to_end(owner)
            if len(self._open) > OWNERS_MAX:
                gone, _ = self._open.popitem(last=False)
                if gone in self._brief:
                    self._brief.discard(gone)
                    self._new.pop(gone, None)
            opened.at = now
            if words:
                opened.searches = [*opened.searches, words][-_SEARCHES_OPEN:]
            if brief:
                self._brief.add(owner)

    def called(self, owner: str, tool: str) -> None:
        """Note that a call of a tool went well."""
        with self._lock:
            opened = self._open.get(owner)
            late = opened is None or time.monotonic() - opened.at > _OPEN_SECONDS
            if opened is None or late or tool in opened.called or len(opened.called) >= _TOOLS_PER_SEARCH:
                return
            opened.called.add(tool)
            entries = self._new.setdefault(owner, OrderedDict())
            for words in opened.searches:
                _add(entries, (words, tool))

    def likeness(self, owner: str, query: str) -> Mapping[str, float]:
        """Return the tools called after searches in like words: how like the most like one is, up to 1.

        The likeness is the cosine of the sets of words.
        """
        words = self._words(query)
        found: dict[str, float] = {}
        if not words:
            return found
        with self._lock:
            known = self._known.get(self._named(owner), ())
            entries = [*known, *self._on_way.get(owner, ()), *self._new.get(owner, ())]
        for other, tool in entries:
            likeness = len(words & other) / (len(words) * len(other)) ** 0.5
            if likeness >= LEAST_LIKENESS and likeness > found.get(tool, 0.0):
                found[tool] = likeness
        return found

    def save(self) -> None:
        """Add what is new to what the file holds by now. Where it cannot be written, it stays in memory alone."""
        with self._storing:
            with self._lock:
                noted = {owner: entries for owner, entries in self._new.items() if owner not in self._brief}
                self._new = {owner: entries for owner, entries in self._new.items() if owner in self._brief}
                self._on_way = noted
            if not noted:
                return
            saved: OrderedDict[str, _Entries] | None = None
            key: bytes | None = None
            try:
                with self._kept.editing() as draft:
                    key, known = _parsed(draft.data, self._kept.where)
                    if key is None or key == self._key:
                        known = self._with(known, noted)
                        draft.data = _written(self._key, known)
                saved = known
            except OSError as error:
                _LOG.warning("What was called after searches is not kept for the next session: %s.", error)
            finally:
                with self._lock:
                    self._on_way = {}
                    if saved is None:
                        for owner, entries in noted.items():
                            for entry in self._new.get(owner, ()):
                                _add(entries, entry)
                            self._new[owner] = entries
                    else:
                        self._take(key, saved)

    @property
    def has_unsaved(self) -> bool:
        """Whether something was noted that is to be saved and is not."""
        return bool(self._on_way or self._new.keys() - self._brief)

    def refresh(self) -> None:
        """Take what others have saved. Where they saved first, their key holds, and what was noted here is dropped."""
        with self._storing:
            key, known = _read(self._kept)
            with self._lock:
                self._take(key, known)

    def _take(self, key: bytes | None, known: OrderedDict[str, _Entries]) -> None:
        """Take what is kept now, under the lock. Where another process began it, its hashes are others."""
        if key is not None and key != self._key:
            self._key, self._new = key, {}
        self._known = known

    def _with(self, known: OrderedDict[str, _Entries], noted: Mapping[str, _Entries]) -> OrderedDict[str, _Entries]:
        """Return what is kept with what was noted; beyond the bound, the owners go that were there the longest ago."""
        for owner, entries in noted.items():
            kept = known.pop(self._named(owner), OrderedDict())
            for entry in entries:
                _add(kept, entry)
            known[self._named(owner)] = kept
        return OrderedDict(list(known.items())[-OWNERS_MAX:])

    def _words(self, query: str) -> Words:
        known = load_word_vectors().number
        stems = dict.fromkeys(
            stem(word)
            for word in runs(fold(query[:_LONGEST_QUERY]))
            if word.islower() and len(word) >= _SHORTEST_WORD and word not in STOP_WORDS and word in known
        )
        return frozenset(self._hashed(each) for each in list(stems)[:_WORDS_MAX])

    def _hashed(self, word: str) -> str:
        return hashlib.blake2b(word.encode(), key=self._key, digest_size=_HASH_BYTES).hexdigest()

    def _named(self, owner: str) -> str:
        return self._hashed(f"owner {owner}")


def _add(entries: _Entries, entry: tuple[Words, str]) -> None:
    entries[entry] = None
    entries.move_to_end(entry)
    if len(entries) > ENTRIES_MAX:
        entries.popitem(last=False)


def _written(key: bytes, known: Mapping[str, _Entries]) -> bytes:
    owners = {owner: [[sorted(words), tool] for words, tool in entries] for owner, entries in known.items()}
    return json.dumps({"key": key.hex(), "owners": owners}, ensure_ascii=False).encode()


def _read(kept: KeptText) -> tuple[bytes | None, OrderedDict[str, _Entries]]:
    """Return the key and the entries by owner; no key where there is nothing that can be read."""
    try:
        return _parsed(kept.read(), kept.where)
    except OSError as error:
        _LOG.warning("What is called after searches is noted anew: %s cannot be read: %r.", kept.where, error)
        return None, OrderedDict()


def _parsed(data: bytes | None, where: str) -> tuple[bytes | None, OrderedDict[str, _Entries]]:
    if data is None:
        return None, OrderedDict()
    try:
        content = json.loads(data)
        key = bytes.fromhex(content["key"])
        known: OrderedDict[str, _Entries] = OrderedDict()
        for owner, entries in content["owners"].items():
            known[str(owner)] = OrderedDict(((frozenset(map(str, words)), str(tool)), None) for words, tool in entries)
        if len(key) == _KEY_BYTES:
            return key, known
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _LOG.warning("What is called after searches is noted anew: %s cannot be read: %r.", where, error)
    return None, OrderedDict()
