"""What is known of one scope in this process, and which tokens its values have.

Values are known by their words, in all their forms (`KnownValues`), those of long texts by hashes (`LearnedValues`).
The vault has all of them; what it gave lately is remembered here.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ....skills_db.vault_entries import Form, Value, VaultEntry
from ...base.host_work import checked, checkpoint
from ..token_texts import Span
from .known_values import KnownValues
from .learned_values import LEARNED_MAX, LearnedValues
from .long_texts import Learned, learn_long
from .run_tokens import RunTokens, ShownToken

if TYPE_CHECKING:
    from ....skills_db.vault import Vault
    from ..detection.findings import Detection

_T = TypeVar("_T")

LOADED_MAX = 10_000
"""Values of a scope that are read from the vault when it is first asked for: the newest."""
ENTRIES_MAX = 20_000
"""Tokens of a scope that are held in memory, of values no longer than `_ENTRY_CHARS_MAX`; the vault has them all."""
WORDS_OF_TABLES_MAX = 20_000
"""Values of a scope up to which those of tables are also known by their words, not by their hashes alone."""
TEXTS_LEARNED_MAX = 2_000_000
"""Values of a scope's long texts that need not be looked through again where the same text is read again."""
SHOWN_MAX = 4096
"""Texts that were shown lately, each as its hash."""
_SHOWN_PER_VALUE = 4
"""So many texts that were shown take as much memory as one value."""
_ENTRY_CHARS_MAX = 256
_MANY = 100_000
"""Values of tables that are stored at once: the database's other writers wait for as long."""
_BATCH = 500
"""Values that are learned at once: other runs wait for as long."""


class KnownScope:
    """One scope; changed only by who holds `_turn`, and never for long."""

    def __init__(self, scope: str, vault: Vault, *, durable: bool) -> None:
        self._scope = scope
        self._vault = vault
        self._tokens_for = partial(vault.tokens_for, scope, durable=durable)
        self._show_many = partial(vault.show_many, scope, durable=durable)
        self._turn = threading.RLock()
        self._last = 0
        self._purges: int | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.values = KnownValues()
        self.learned = LearnedValues()
        self._texts: OrderedDict[bytes, Learned] = OrderedDict()
        self._texts_weight = 0
        self._entries: OrderedDict[tuple[Form, str], VaultEntry] = OrderedDict()
        self._shown: OrderedDict[bytes, None] = OrderedDict()

    @property
    def weight(self) -> int:
        """How much memory this takes, counted in known values."""
        return len(self.values) + len(self._shown) // _SHOWN_PER_VALUE

    @property
    def learned_weight(self) -> int:
        """How many hashes this holds."""
        return len(self.learned) + self._texts_weight

    @property
    def _room(self) -> int:
        """How many values of tables may still be known by their words."""
        return max(0, WORDS_OF_TABLES_MAX - len(self.values))

    def values_for(self, run_tokens: RunTokens | None) -> KnownValues:
        """Return the values that are found for a run."""
        return self.values if run_tokens is None or run_tokens.values is None else run_tokens.values

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
        """Give where known values stand in `text[start:end]`, those of long texts among them; they may overlap."""
        if len(self.values):
            yield from self.values.find(text, start, end)
        for span in self.learned.find(text[start:end]):
            yield Span(start + span.start, start + span.end, span.type)

    def refresh(self) -> None:
        """Read what this or another server has shown, and begin anew where something was removed."""
        with self._turn:
            news = self._vault.known(self._scope, self._last, most=LOADED_MAX)
            if self._purges is not None and self._purges >= 0 and news.purges != self._purges:
                self._last = 0
                self._begin_anew()
                news = self._vault.known(self._scope, most=LOADED_MAX)
            self._purges = news.purges
            for entry in news.entries:
                self._keep(entry)
            self._last = max((entry.number for entry in news.entries), default=self._last)

    def learn(self, values: Sequence[Value], run_tokens: RunTokens | None) -> None:
        """Find these values from now on. Raises `HostWorkRefused` where a run brings too many."""
        for some in batches(values):
            with self._turn:
                new = [value.plain for value in some if self.values.add(value.plain, value.type)]
            if run_tokens is not None:
                run_tokens.met.update(value.plain for value in some)
                run_tokens.bring(new)

    def learn_text(self, text: str, detector: Detection, run_tokens: RunTokens | None) -> Learned | None:
        """Learn a long text, unless it was learned lately; None for JSON that is no lines, which is learned as parts.

        As long as there is room, values are also known by their words, and so in more forms than by their hashes.
        """
        run = _number_of(run_tokens)
        digest = digest_of(text)
        with self._turn:
            learned = self._texts.get(digest)
            if learned is not None:
                self._texts.move_to_end(digest)
        if learned is None or not all(self.learned.met_again(hashes, run) for hashes in learned.hashes):
            learned = learn_long(text, detector, self.learned, run, words=self._room)
            if learned is None:
                return None
            with self._turn:
                self._texts[digest] = learned
                self._texts_weight += learned.weight
                while self._texts_weight > TEXTS_LEARNED_MAX:
                    self._texts_weight -= self._texts.popitem(last=False)[1].weight
        self.learn(learned.values, run_tokens)
        self.learn(learned.words[: self._room], run_tokens)
        return learned

    def meet(self, entries: Iterable[VaultEntry]) -> None:
        """Find the values of entries from now on, however long ago the vault got them."""
        with self._turn:
            for entry in entries:
                self.values.add(entry.value.plain, entry.value.type)

    def tokens_for(self, values: Sequence[Value], run_tokens: RunTokens | None) -> tuple[dict[Value, ShownToken], bool]:
        """Return the token of each value, and whether any value is new.

        The vault is asked only for what is, and for what it has to know that it was met again.
        """
        with self._turn:
            origins = self._origins(values, run_tokens)
            own, apart = self._divided(values, run_tokens)
            tokens: dict[Value, ShownToken] = {}
            for value in own:
                entry = self._entries.get((value.form, value.text))
                if entry is not None and not self._vault.fades(entry, self._scope):
                    tokens[value] = ShownToken(entry.shown, entry.value.type)
                    self.values.add(entry.value.plain, entry.value.type)
            grown = False
            missing = [value for value in own if value not in tokens]
            if missing:
                missing = self._akin(missing, origins, run_tokens)
                made = self._tokens_for(missing, admits=_admits(missing, run_tokens))
                grown = self._took(made)
                tokens |= _shown(missing, made)
            if run_tokens is not None and apart:
                grown |= self._tell_apart(apart, run_tokens)
                tokens |= {value: run_tokens.tokens[value] for value in apart}
        return tokens, grown

    def show_many(self, values: Mapping[str, str], form: Form, run_tokens: RunTokens | None) -> dict[str, str]:
        """Return the token of each value, given with its type, as it is shown; have all of them found from now on."""
        if not values:
            return {}
        own, apart = self._divided_many(values, form, run_tokens)
        admits = None if run_tokens is None else run_tokens.store
        shown: dict[str, str] = {}
        for some in batches(list(own), _MANY):
            checkpoint()
            made = self._show_many([(values[text], text) for text in some], form, admits=admits)
            shown |= zip(some, made.shown, strict=True)
            with self._turn:
                if made.before == self._last and made.last is not None:
                    self._last = made.last  # no other server's came in between: `refresh` need not read them again
        if run_tokens is not None and apart:
            rest = [Value(values[text], text, form) for text in apart]
            with self._turn:
                self._tell_apart(rest, run_tokens)
                shown |= {value.text: run_tokens.tokens[value].token for value in rest}
        if run_tokens is None and len(self.learned) + len(own) > LEARNED_MAX:
            self.learned = LearnedValues()  # a file without end: all of its values are in the vault
        kinds: dict[str, list[str]] = {}
        for text in own:
            kinds.setdefault(values[text], []).append(text)
        for kind, texts in kinds.items():
            _hashes, left = self.learned.add(kind, texts, _number_of(run_tokens))
            for text in [*left, *texts[: self._room]]:
                self.values.add(text, kind)
        return shown

    def was_shown(self, mark: bytes | None) -> bool:
        """Return whether just this was shown lately: what was sanitised is not looked at again."""
        return mark is not None and mark in self._shown

    def remember_shown(self, marks: Iterable[bytes | None]) -> None:
        """Remember that these were shown; None stands for what need not be remembered."""
        with self._turn:
            self._shown |= {mark: None for mark in marks if mark is not None}
            while len(self._shown) > SHOWN_MAX:
                self._shown.popitem(last=False)

    def _origins(self, values: Sequence[Value], run_tokens: RunTokens | None) -> dict[Value, Value]:
        """Return the values of which some are other forms.

        Where trying values could tell something, only those that a tool or a file gave: a form tells as much.
        """
        if run_tokens is not None and run_tokens.values is not None:
            return {}
        met = None if run_tokens is None or run_tokens.brake is None else run_tokens.met
        found: dict[Value, Value] = {}
        for value in checked(values):
            if value.plain in met if met is not None else (value.form, value.text) in self._entries:
                continue
            origin = self.values.origin_of(value.plain)
            if origin is not None and (
                met is None or origin[0] in met or self.learned.was_met(origin[0], _number_of(run_tokens))
            ):
                found[value] = replace(value, text=origin[0], type=origin[1], form=Form.TEXT)
        if run_tokens is not None:
            run_tokens.met.update(value.plain for value in found)  # who was given a value was given its forms
        return found

    def _akin(
        self, missing: Sequence[Value], origins: Mapping[Value, Value], run_tokens: RunTokens | None
    ) -> list[Value]:
        """Return values with the tokens of those that they are other forms of, which are stored with them."""
        needed = list(dict.fromkeys(origins[value] for value in missing if value in origins))
        if not needed:
            return list(missing)
        made = self._tokens_for(needed, admits=_admits(needed, run_tokens))
        self._took(made)
        tokens = {origin: entry.token for origin, entry in zip(needed, made, strict=True)}
        return [replace(value, akin=tokens[origins[value]]) if value in origins else value for value in missing]

    def _divided(
        self, values: Sequence[Value], run_tokens: RunTokens | None
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Return the values that get the scope's own tokens, and those that get tokens for the run alone."""
        if run_tokens is None:
            return values, ()
        run = _number_of(run_tokens)
        rest = [
            value
            for value in values
            if value.plain not in run_tokens.met
            and value not in run_tokens.tokens
            and not self.learned.was_met(value.plain, run)
        ]
        room = run_tokens.may_share()
        if room:
            rest = [each for each in rest if not (self.values.kind_of(each.plain) or self.learned.kind_of(each.plain))]
            run_tokens.shared(min(len(rest), room))
        apart = {*rest[room:], *(value for value in values if value in run_tokens.tokens)}
        return [value for value in values if value not in apart], list(apart)

    def _divided_many(
        self, values: Mapping[str, str], form: Form, run_tokens: RunTokens | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Do for many what `_divided` does for some: the vault gives what is met, and some more, the scope's tokens."""
        texts = list(values)
        if run_tokens is None or run_tokens.brake is None:
            return texts, ()
        known, met = self.learned.known_and_met(texts, _number_of(run_tokens))
        own: list[str] = []
        rest: list[tuple[str, bool]] = []
        apart: list[str] = []
        for text, is_known, is_met in zip(texts, known, met, strict=True):
            if Value(values[text], text, form) in run_tokens.tokens:
                apart.append(text)
            elif is_met or text in run_tokens.met:
                own.append(text)
            else:
                rest.append((text, is_known or self.values.kind_of(text) is not None))
        room = run_tokens.may_share()
        if not room:
            return own, apart + [text for text, _is_known in rest]
        new = [text for text, is_known in rest if not is_known]
        run_tokens.shared(min(len(new), room))
        own += (text for text, is_known in rest if is_known)
        return own + new[:room], apart + new[room:]

    def _tell_apart(self, values: Sequence[Value], run_tokens: RunTokens) -> bool:
        """Make the run's own tokens for values that have none yet; return whether there were any."""
        missing = [value for value in values if value not in run_tokens.tokens]
        if not missing:
            return False
        made = self._tokens_for(missing, salt=run_tokens.salt, admits=_admits(missing, run_tokens))
        run_tokens.tokens |= _shown(missing, made)
        known = self.values_for(run_tokens)
        for value in missing:
            known.add(value.plain, value.type)
        return True

    def _took(self, made: Sequence[VaultEntry]) -> bool:
        """Take in what the vault has made; return whether any value is new."""
        numbers = sorted({entry.number for entry in made})
        if numbers == list(range(self._last + 1, self._last + 1 + len(numbers))):
            self._last = numbers[-1]  # no other server's came in between: `refresh` need not read them again
        return sum(self._keep(entry) for entry in made) > 0

    def _keep(self, entry: VaultEntry) -> bool:
        """Find a value from now on, and remember its token; return whether it is new."""
        value = entry.value
        if not entry.apart and len(value.text) <= _ENTRY_CHARS_MAX:
            self._entries[value.form, value.text] = entry
            if len(self._entries) > ENTRIES_MAX:
                self._entries.popitem(last=False)
        return self.values.add(value.plain, value.type, has_forms=not value.akin)


def batches(values: Sequence[_T], most: int = _BATCH) -> Iterator[Sequence[_T]]:
    """Give values some at a time."""
    for start in range(0, len(values), most):
        yield values[start : start + most]


def digest_of(text: str) -> bytes:
    """Return the hash by which a text is recognised."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _number_of(run_tokens: RunTokens | None) -> int:
    """Return by what number the values are known that a run met: two runs have the same by chance, once in 65,535."""
    return 0 if run_tokens is None else 1 + int.from_bytes(run_tokens.salt, "big") % 0xFFFF


def _admits(values: Sequence[Value], run_tokens: RunTokens | None) -> Callable[[int, int], None] | None:
    """Return what the vault asks before it stores what is new of these."""
    return None if run_tokens is None else lambda count, _size: run_tokens.bring(value.text for value in values[:count])


def _shown(values: Sequence[Value], made: Sequence[VaultEntry]) -> dict[Value, ShownToken]:
    return {value: ShownToken(entry.shown, entry.value.type) for value, entry in zip(values, made, strict=True)}
