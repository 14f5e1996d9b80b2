"""Finds the values of a vault in a text, however they got there.

Detection needs context: a name is a name because it stands under `customer_name`. Once it is in the vault it is found
without, wherever the same words stand again, in their other forms too (`forms`). A text costs a few looks per word,
however many values there are. Those in memory are found: the newest of the vault, and what was met since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...base.host_work import checked
from ..token_texts import Span

if TYPE_CHECKING:
    from .forms.form_index import FormIndex

_NAME_LEAST = 2
_TEXT_LEAST = 4
_DIGITS_LEAST = 6
_SECRET_LEAST = 8
_PREFIX = 8
"""Letters that any secret has which is found anywhere."""
_FEW = 32
"""Beginnings that are looked for one by one; of more, every place of the text is looked at."""
KNOWN_MAX = 100_000
"""Values of a scope that are found again; at least the newer half is, whatever comes."""
KNOWN_CHARS_MAX = 32_000_000
"""Characters that they have together."""


class KnownValues:
    """The values of one scope, to be found again. Changed by one thread at a time; any may look meanwhile.

    Of many, the newer half at least is kept: values are in one of two generations, and when the younger is full the
    older is dropped. A value that is added again is young again.
    """

    def __init__(self, most: int = KNOWN_MAX) -> None:
        self._most = most // 2
        self._generations = (_Generation(), _Generation())

    def __len__(self) -> int:
        return sum(len(each.kinds) for each in self._generations)

    def add(self, text: str, kind: str, *, has_forms: bool = True) -> bool:
        """Find a value from now on, in all its forms; return whether it was not before.

        What is itself found as a form of another value has none of its own.
        """
        young, old = self._generations
        if text in young.kinds:
            return False
        if len(young.kinds) >= self._most or young.chars >= KNOWN_CHARS_MAX // 2:
            young, old = _Generation(), young
            self._generations = young, old
        young.kinds[text] = kind
        young.chars += len(text)
        if has_forms and _stands_out(text, kind):
            young.add(text, kind)
        return text not in old.kinds

    def kind_of(self, text: str) -> str | None:
        """Return the type of a value that is just this text, or None where there is none."""
        young, old = self._generations
        return young.kinds.get(text) or old.kinds.get(text)

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
        """Give where known values stand in `text[start:end]`, the longest at each place."""
        whole = start == 0 and (end is None or end >= len(text))
        part = text if whole else text[start:end]
        generations = [each for each in self._generations if each.kinds]
        if not part or not generations:
            return
        indexes = [each.forms for each in generations if each.forms is not None]
        if indexes:
            from .forms.form_index import find

            opens, closes = start == 0 or text[start - 1] == "\n", start + len(part) == len(text)
            hits = find(part, indexes, opens=opens, closes=closes)
            yield from (Span(hit.start + start, hit.end + start, hit.kind) for hit in hits)
        for each in generations:
            for begin, finish in each.secrets_in(part):
                yield Span(begin + start, finish + start, "SECRET")

    def origin_of(self, text: str) -> tuple[str, str] | None:
        """Return the value, and its type, that a text is another form of; None where it is of none, or of several.

        A secret has no other forms.
        """
        indexes = [each.forms for each in self._generations if each.forms is not None]
        if not indexes:
            return None
        from .forms.form_index import origin_of

        return origin_of(text, indexes)


def load_forms() -> None:
    """Load what the first value would load: a text that is looked through later need not wait for it."""
    known = KnownValues()
    known.add("Jane Roe", "PERSON")
    known.origin_of("jane_roe")


class _Generation:
    """Values, the forms of those that are found as words, and the secrets among them, which are found anywhere."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.chars = 0
        self.forms: FormIndex | None = None
        self._secrets: dict[str, _Secrets] = {}

    def add(self, text: str, kind: str) -> None:
        if kind == "SECRET" and len(text) >= _SECRET_LEAST:
            # A secret is found with other letters beside it too: `"key" + secret`.
            for form in dict.fromkeys((text, text.lower(), text.upper())):
                self._secrets.setdefault(form[:_PREFIX], _Secrets()).add(form)
        else:
            if self.forms is None:
                from .forms.form_index import FormIndex

                self.forms = FormIndex()
            self.forms.add(text, kind)

    def secrets_in(self, text: str) -> Iterator[tuple[int, int]]:
        if not self._secrets:
            return
        yield from self._secret_places(text)
        from .forms.escapes import readings

        for reading in readings(text):
            for start, end in self._secret_places(reading.text):
                if reading.concerns(start, end):
                    yield reading.place(start, end)

    def _secret_places(self, text: str) -> Iterator[tuple[int, int]]:
        beginnings = list(self._secrets)
        if len(beginnings) <= _FEW:
            places = (place for each in beginnings for place in _places(text, each))
        else:
            places = (place for place in checked(range(len(text))) if text[place : place + _PREFIX] in self._secrets)
        for place in places:
            end = self._secrets[text[place : place + _PREFIX]].end_at(text, place)
            if end is not None:
                yield place, end


class _Secrets:
    """Secrets that begin alike, and the lengths they have, the longest first."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._lengths: tuple[int, ...] = ()

    def add(self, text: str) -> None:
        self._texts.add(text)
        if len(text) not in self._lengths:
            self._lengths = tuple(sorted((*self._lengths, len(text)), reverse=True))

    def end_at(self, text: str, place: int) -> int | None:
        ends = (place + length for length in checked(self._lengths))  # as many as somebody made secrets
        return next((end for end in ends if text[place:end] in self._texts and end <= len(text)), None)


def _places(text: str, beginning: str) -> Iterator[int]:
    at = text.find(beginning)
    while at >= 0:
        yield at
        at = text.find(beginning, at + 1)


def _stands_out(text: str, kind: str) -> bool:
    """Return whether a value is one to look for in any text: `12` is not, though it be a house number."""
    if sum(map(str.isalnum, text)) < (_NAME_LEAST if kind == "PERSON" else _TEXT_LEAST):
        return False
    if not any(map(str.isalpha, text)):
        return sum(map(str.isdigit, text)) >= _DIGITS_LEAST
    return kind != "PERSON" or any(letter.isupper() or not letter.islower() for letter in text if letter.isalpha())
