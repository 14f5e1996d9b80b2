"""The Rampart model: what each word of a text may be.

"Rampart — Client-side PII redaction for AI assistants", (c) 2026 National Design Studio, CC BY 4.0,
https://huggingface.co/nationaldesignstudio/rampart: a MiniLM of six layers with 35 BIO labels. Its files stand beside
this module; nothing is fetched. `tests/benchmarks/names_model.py` makes `model_int8.onnx` from the published file.
onnxruntime computes it: a text of 64 pieces of words takes 2.9 ms of CPU time, and one of 16 takes 0.8.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from .words import Word

_UNKNOWN = "[UNK]"
_LONGEST_WORD = 100
_MOST_CACHED = 16_384
_PLAIN = re.compile(r"[\t\n\r -~]*\Z")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_WORD = re.compile(r"\S+")
_IDEOGRAMS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Pieces(NamedTuple):
    """The numbers of the pieces of a text, and the stretches of it that they stand for."""

    ids: list[int]
    spans: list[tuple[int, int]]


class WordPiece:
    """A vocabulary. Safe to use from several threads."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers: Mapping[str, int] = {piece: number for number, piece in enumerate(pieces)}
        self._unknown = self._numbers[_UNKNOWN]
        self._cut = lru_cache(maxsize=_MOST_CACHED)(self._cut_anew)

    def number(self, piece: str) -> int:
        """Return the number of a piece. Raises `KeyError`."""
        return self._numbers[piece]

    def encode(self, text: str, offset: int = 0) -> Pieces:
        """Return the pieces of a text that begins at `offset`."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        if _PLAIN.match(text):
            for match in _PLAIN_WORD.finditer(text):
                at = match.start() + offset
                for number, start, end in self._cut(match[0].lower()):
                    ids.append(number)
                    spans.append((at + start, at + end))
            return Pieces(ids, spans)
        plain, places = _normalised(text)
        for match in _WORD.finditer(plain):
            at = match.start()
            for number, start, end in self._cut(match[0]):
                ids.append(number)
                spans.append((places[at + start] + offset, places[at + end - 1] + 1 + offset))
        return Pieces(ids, spans)

    def _cut_anew(self, word: str) -> tuple[tuple[int, int, int], ...]:
        if len(word) > _LONGEST_WORD:
            return ((self._unknown, 0, len(word)),)
        cut: list[tuple[int, int, int]] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else f"##{word[start:end]}"
                number = self._numbers.get(piece)
                if number is not None:
                    cut.append((number, start, end))
                    start = end
                    break
            else:
                return ((self._unknown, 0, len(word)),)
        return tuple(cut)


def _normalised(text: str) -> tuple[str, list[int]]:
    """Return a text as words between spaces, and for each of its characters which one of `text` it came from."""
    plain: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        written = _written(character)
        plain.append(written)
        places += [place] * len(written)
    return "".join(plain), places


@lru_cache(maxsize=_MOST_CACHED)
def _written(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if unicodedata.category(character)[0] == "C" or character == "\ufffd":
        return ""
    if character.isspace():
        return " "
    bare = "".join(c for c in unicodedata.normalize("NFD", character) if unicodedata.category(c) != "Mn")
    small = "".join(c.lower() for c in bare)
    stands_alone = any(first <= ord(character) <= last for first, last in _IDEOGRAMS)
    return "".join(f" {c} " if stands_alone or _is_punctuation(c) else c for c in small)


def _is_punctuation(character: str) -> bool:
    is_sign = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return is_sign or unicodedata.category(character)[0] == "P"


_FOLDER = Path(__file__).parent / "rampart"
_MODEL = _FOLDER / "model_int8.onnx"
_WINDOW_CHARS, _CONTEXT_CHARS, _GAP_CHARS = 480, 32, 80
_LONGEST_CHARS = 640
_DULL, _SURELY_NOTHING, _NEVER_DULL = 8, 0.8, 1_000_000
_MOST_TOKENS = 510
_SURROGATE = re.compile("[\ud800-\udfff]")


class Label(IntEnum):
    """What a word may be: the model's labels, those that count one by one, the rest together."""

    NOTHING = 0
    PERSON = 1
    PLACE = 2
    STREET = 3
    CODE = 4
    OTHER = 5


_KIND_OF_LABEL = {
    "GIVEN_NAME": Label.PERSON,
    "SURNAME": Label.PERSON,
    "CITY": Label.PLACE,
    "STATE": Label.PLACE,
    "BUILDING_NUMBER": Label.STREET,
    "STREET_NAME": Label.STREET,
    "SECONDARY_ADDRESS": Label.STREET,
    "ZIP_CODE": Label.CODE,
}


@dataclass(frozen=True, slots=True)
class _ModelWindow:
    """A stretch of text the model looks at, of which it judges the words that begin in its core."""

    start: int
    end: int
    core_start: int
    core_end: int


class Rampart:
    """The model, loaded: about 30 MB of memory. Safe to use from several threads, and in a fork of its process."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        # A fork has no thread of a pool but the one that forked.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # An arena would keep, in each reader, what its largest text took.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.log_severity_level = 3
        onnxruntime.disable_telemetry_events()
        self._session = onnxruntime.InferenceSession(_MODEL, options, providers=["CPUExecutionProvider"])
        self._pieces = WordPiece((_FOLDER / "vocab.txt").read_text(encoding="utf-8").splitlines())
        self._first = self._pieces.number("[CLS]")
        self._last = self._pieces.number("[SEP]")
        labels: dict[str, str] = json.loads((_FOLDER / "config.json").read_text())["id2label"]
        self._kinds: NDArray[np.float32] = np.zeros((len(labels), len(Label)), dtype=np.float32)
        for number, label in labels.items():
            kind = Label.NOTHING if label == "O" else _KIND_OF_LABEL.get(label.partition("-")[2], Label.OTHER)
            self._kinds[int(number), kind] = 1

    def judge(
        self, text: str, words: Sequence[Word], wanted: Sequence[bool], settled: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[Word, Sequence[float]]]:
        """Yield words with how likely each is of each `Label`, the mean over its letters; fewer of the unwanted words.

        `words` are in order. Of what is `settled` (in order) the model gets little: its letters cost as much as any.
        """
        # Lone surrogates cannot be encoded; what stands for them is as long.
        clean = _SURROGATE.sub("\ufffd", text)
        index = 0
        dull: Counter[str] = Counter()
        for window in _windows(text, words, wanted, dull):
            while index < len(words) and words[index].start < window.core_start:
                index += 1
            pieces = self._run(clean, window, settled)
            at = 0
            while index < len(words) and words[index].start < window.core_end:
                word = words[index]
                while at < len(pieces) and pieces[at].end <= word.start:
                    at += 1
                last = at
                while last < len(pieces) and pieces[last].start < word.end:
                    last += 1
                if last > at:
                    likely = _mean(pieces[at:last], word)
                    if wanted[index]:
                        dull[word.text] += 1 if likely[Label.NOTHING] > _SURELY_NOTHING else -_NEVER_DULL
                    yield word, likely
                index += 1

    def logits(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return how much speaks for each of the model's labels (columns), for each piece of a word (rows)."""
        given = {"ids": np.array([ids], dtype=np.int64), "places": np.arange(len(ids), dtype=np.int64)[None, :]}
        logits: NDArray[np.float32] = self._session.run(None, given)[0][0]
        return logits

    def _run(self, text: str, window: _ModelWindow, settled: Sequence[tuple[int, int]]) -> list[_Piece]:
        ids, spans = self._pieces.encode(text[window.start : window.end], window.start)
        kept = _given(spans, settled)[:_MOST_TOKENS]
        logits = self.logits([self._first, *(ids[place] for place in kept), self._last])[1:-1]
        exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
        likely = exponentials @ self._kinds / exponentials.sum(axis=-1, keepdims=True)
        return [_Piece(*spans[place], chances) for place, chances in zip(kept, likely.tolist(), strict=True)]


class _Piece(NamedTuple):
    start: int
    end: int
    likely: Sequence[float]


def _mean(pieces: Sequence[_Piece], word: Word) -> Sequence[float]:
    if len(pieces) == 1:
        return pieces[0].likely
    letters = [min(piece.end, word.end) - max(piece.start, word.start) for piece in pieces]
    total = sum(letters)
    weighted = zip(
        *([chance * count for chance in piece.likely] for piece, count in zip(pieces, letters, strict=True)),
        strict=True,
    )
    return [sum(chances) / total for chances in weighted]


def _given(spans: Sequence[tuple[int, int]], settled: Sequence[tuple[int, int]]) -> list[int]:
    """Return which pieces the model gets: all, but of what is settled only the first."""
    kept: list[int] = []
    index = 0
    inside = -1
    for place, (start, end) in enumerate(spans):
        while index < len(settled) and settled[index][1] <= start:
            index += 1
        if index < len(settled) and settled[index][0] < end:
            if inside == index:
                continue
            inside = index
        kept.append(place)
    return kept


def _windows(
    text: str, words: Sequence[Word], wanted: Sequence[bool], dull: Mapping[str, int]
) -> Iterator[_ModelWindow]:
    """Yield windows that together hold every wanted word in a core, with the rest of its line, or so, for context.

    Where nothing is wanted for a while there is no window: the model is what costs. Nor for a word that was nothing
    as often as `_DULL` times in this text, as `dull` counts between windows: logs say the same words line by line.
    """
    asked = [word for word, is_wanted in zip(words, wanted, strict=True) if is_wanted]
    index = done = 0
    while index < len(asked):
        if dull.get(asked[index].text, 0) >= _DULL:
            index += 1
            continue
        first = asked[index].start
        opens = _line_start(text, max(0, first - _CONTEXT_CHARS), first)
        last, index = index, index + 1
        while (
            index < len(asked)
            and asked[index].end - opens <= _WINDOW_CHARS - _CONTEXT_CHARS
            and asked[index].start - asked[last].end <= _GAP_CHARS
        ):
            if dull.get(asked[index].text, 0) < _DULL:
                last = index
            index += 1
        core_end = max(asked[last].end, first + 1)
        closes = min(_line_end(text, core_end, min(len(text), core_end + _CONTEXT_CHARS)), opens + _LONGEST_CHARS)
        if index == len(asked) or asked[index].start >= closes:
            core_end = closes
        yield _ModelWindow(opens, closes, max(opens, done), core_end)
        done = core_end


def _line_start(text: str, least: int, at: int) -> int:
    """Return where the line of `at` begins, or the first word after `least` if that is nearer."""
    line = text.rfind("\n", least, at)
    if line >= 0 or least == 0:
        return line + 1
    space = text.find(" ", least, at)
    return space + 1 if space >= 0 else least


def _line_end(text: str, at: int, most: int) -> int:
    """Return where the last line that begins before `most` ends, or the last word, if there is none."""
    if most == len(text):
        return most
    line = text.rfind("\n", at, most)
    space = text.rfind(" ", at, most)
    return line if line >= 0 else space if space >= 0 else most
