"""Of findings that overlap, keep disjoint ones, and leave nothing unhidden that one of them covers for good reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .findings import Finding, PiiType

# Of these, what remains beside a stronger finding is still personal: the rest of an address beside its postal code.
_DIVISIBLE = frozenset((PiiType.ADDRESS, PiiType.PERSON, PiiType.LOCATION, PiiType.SECRET))
_LEAST_LETTERS = 2
_CONTAINERS = frozenset((PiiType.ADDRESS, PiiType.SECRET))


def disjoint(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return disjoint findings in order: the higher score wins, then the longer one; remainders of some types stay."""
    taken = bytearray(len(text))
    kept: list[Finding] = []
    for finding in sorted(_united(findings), key=lambda f: (-_rank(f), f.start - f.end, f.start, f.type)):
        first = taken.find(1, finding.start, finding.end)
        pieces: Iterable[Finding] = (finding,)
        if first >= 0:
            pieces = _remainders(text, taken, finding) if finding.type in _DIVISIBLE else ()
        for piece in pieces:
            taken[piece.start : piece.end] = b"\x01" * (piece.end - piece.start)
            kept.append(piece)
    return sorted(kept)


def _united(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Make one of findings of one type that overlap, with the best score of theirs."""
    last: Finding | None = None
    for finding in sorted(set(findings), key=lambda f: (f.type, f.start, -f.end)):
        if last and last.type == finding.type and finding.start < last.end:
            last = Finding(last.start, max(last.end, finding.end), last.type, max(last.score, finding.score))
            continue
        if last:
            yield last
        last = finding
    if last:
        yield last


def _rank(finding: Finding) -> float:
    """Return the score; an address wins over the codes and places within it, when it is about as sure."""
    return finding.score + 0.15 * (finding.type in _CONTAINERS)


def _remainders(text: str, taken: bytearray, finding: Finding) -> Iterator[Finding]:
    at = finding.start
    while at < finding.end:
        if taken[at]:
            at += 1
            continue
        end = taken.find(1, at, finding.end)
        end = finding.end if end < 0 else end
        start, following = at, end
        while start < end and not text[start].isalnum():
            start += 1
        while end > start and not text[end - 1].isalnum():
            end -= 1
        if sum(map(str.isalnum, text[start:end])) >= _LEAST_LETTERS:
            yield Finding(start, end, finding.type, finding.score)
        at = following
