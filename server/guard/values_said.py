"""What a request itself said, so that its answer does not give away which token a value has.

A security boundary. A server that repeats what it was asked would let a model find the value of a token by trying: it
sends one candidate after the other until a known token comes back. So of what stands in a request only as many values
get the tokens of the scope as `privacy/tokens/run_tokens.py` allows for those that a caller brings itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...sandbox.job import Json

SAID_CHARS_MAX = 1_000_000
SAID_VALUES_MAX = 50_000
"""Of a request that says more, every value of the answer counts as said."""


@dataclass(frozen=True, slots=True)
class SaidBy:
    """The texts and numbers of a request, folded; None where they are too much to look through."""

    text: str | None = ""

    @classmethod
    def of(cls, params: Mapping[str, Json]) -> SaidBy:
        """Return what is said in the parameters of a request."""
        pieces: list[str] = []
        size, waiting = 0, [value for key, value in params.items() if key != "_meta"]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += [*value.keys(), *value.values()]
            elif isinstance(value, list):
                waiting += value
            elif value is not None and not isinstance(value, bool):
                pieces.append(str(value))
                size += len(pieces[-1])
                if size > SAID_CHARS_MAX or len(pieces) > SAID_VALUES_MAX:
                    return cls(None)
        return cls("\n".join(pieces).casefold())

    def has(self, value: str) -> bool:
        """Return whether a value stands in it."""
        return self.text is None or value.casefold() in self.text


class NotSaid(set[str]):
    """All values but those that a request said."""

    def __init__(self, said: SaidBy) -> None:
        super().__init__()
        self._said = said

    def __contains__(self, value: object) -> bool:
        return not (isinstance(value, str) and self._said.has(value))
