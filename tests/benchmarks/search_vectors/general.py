"""Fourth step: word vectors of everyday language, for indexes of few documents.

    python tests/benchmarks/search_vectors/general.py MODEL WORDS TEXTS DATA

WORDS is a list of words, a line a word, the most common first; TEXTS a JSON list of short texts of any subject, such as
the definitions and examples of WordNet and what packages say they do. The words are fitted, as `fit.py` does, to what
the teacher says of the texts. Writes `wordvec160.npz` into DATA.

Needs numpy, scipy, onnxruntime and tokenizers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse
from fit import ridge
from teach import Teacher

from sealab.tools_registry.search.tokens import STOP_WORDS, words

LONGEST_TEXT = 120
DIMENSIONS = 160
COMMON = 1e-3
MOST_COMMON = 0.1
"""The share of the most common word; that of the n-th is an n-th of it (Zipf)."""
LEAST_SHARE = 2e-5
LEVELS = 1.7
"""Steps of rounding in the mean number; one step for all dimensions, so that the lesser ones take less space."""


def main() -> None:
    model, words_file, texts_file, data = (Path(each) for each in sys.argv[1:5])
    known = words_file.read_text().split("\n")
    texts = [text[:LONGEST_TEXT] for text in json.loads(texts_file.read_text())]
    teacher = Teacher(model)
    pack(data, known, fitted(known, teacher.vectors(known, marks=False), texts, teacher.vectors(texts, marks=True)))


def shares(count: int) -> np.ndarray:
    """Return how often each word stands in texts, from its place alone."""
    return MOST_COMMON / (1 + np.arange(count))


def fitted(known: list[str], own: np.ndarray, texts: list[str], said: np.ndarray) -> np.ndarray:
    """Return vectors of the words whose sums come near to what is said of the texts."""
    number = {word: place for place, word in enumerate(known)}
    share = shares(len(known))
    start = own - np.average(own, axis=0, weights=np.minimum(share, COMMON) + LEAST_SHARE / 2)
    start *= (COMMON / (COMMON + share))[:, None]
    target = said / np.linalg.norm(said, axis=1, keepdims=True)
    target = target - target.mean(axis=0)
    axes = np.linalg.eigh(target.T @ target)[1][:, ::-1][:, :DIMENSIONS]
    start, target = start @ axes, target @ axes
    places = [[number[word] for word in words(text) if word in number and word not in STOP_WORDS] for text in texts]
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in places])
    values = np.concatenate([np.full(len(each), 0.5 / np.sqrt(max(1, len(each)))) for each in places])
    holds = scipy.sparse.csr_matrix((values, (rows, np.concatenate(places).astype(int))), (len(texts), len(known)))
    begun = holds @ start
    start *= (begun * target).sum() / (begun * begun).sum()
    return start + ridge(holds, target - holds @ start)


def pack(data: Path, known: list[str], found: np.ndarray) -> None:
    """Write whole numbers, the most telling dimensions first."""
    weighted = found * np.sqrt(np.minimum(shares(len(known)), COMMON) + LEAST_SHARE)[:, None]
    turned = found @ np.linalg.eigh(weighted.T @ weighted)[1][:, ::-1]
    step = np.sqrt((turned**2).mean()) / LEVELS
    q = np.clip(np.round(turned / step), -127, 127).astype(np.int8)
    np.savez_compressed(data / f"wordvec{DIMENSIONS}.npz", q=q, words=np.array("\n".join(known)))


if __name__ == "__main__":
    main()
