"""Fourth step: word vectors of everyday language, for indexes of few documents.

    python tests/benchmarks/search_vectors/general.py MODEL TEXTS DATA

TEXTS is a JSON list of short texts of any subject, such as the definitions and examples of WordNet. The words that
`wordvec64.npz` in DATA has are fitted, as `fit.py` does, to what the teacher says of these; both are then laid beside
each other and brought to 128 dimensions. Writes `wordvec128.npz` into DATA, whose rows are those of the same words.

Needs numpy, scipy, onnxruntime and tokenizers.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from fit import COMMON, UNSEEN, ridge
from teach import Teacher

from sealab.tools_registry.search.tokens import STOP_WORDS, words

LONGEST_TEXT = 120
FITTED_DIMENSIONS = 96
DIMENSIONS = 128
OLD_SHARE = 0.6
"""How much the vectors of descriptions of tools count beside those of everyday language."""
LEAST_SHARE = 2e-4


def main() -> None:
    model, texts_file, data = (Path(each) for each in sys.argv[1:4])
    with np.load(data / "wordvec64.npz") as arrays:
        old = arrays["q"].astype(np.float32) * arrays["scale"] * arrays["w"].astype(np.float32)[:, None]
        known = str(arrays["words"]).split("\n")
    texts = [text[:LONGEST_TEXT] for text in json.loads(texts_file.read_text())]
    teacher = Teacher(model)
    pack(data, old, fitted(known, teacher.vectors(known, marks=False), texts, teacher.vectors(texts, marks=True)))


def fitted(known: list[str], own: np.ndarray, texts: list[str], told: np.ndarray) -> np.ndarray:
    """Return vectors of the words whose sums come near to what is told of the texts."""
    number = {word: place for place, word in enumerate(known)}
    read = [words(text) for text in texts]
    held = Counter(word for each in read for word in set(each))
    share = np.array([held.get(word, UNSEEN) for word in known]) / len(texts)
    start = own - np.average(own, axis=0, weights=np.minimum(share, 0.01) + 1e-4)
    start *= (COMMON / (COMMON + share))[:, None]
    target = told / np.linalg.norm(told, axis=1, keepdims=True)
    target = target - target.mean(axis=0)
    axes = np.linalg.eigh(target.T @ target)[1][:, ::-1][:, :FITTED_DIMENSIONS]
    start, target = start @ axes, target @ axes
    places = [[number[word] for word in each if word in number and word not in STOP_WORDS] for each in read]
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in places])
    values = np.concatenate([np.full(len(each), 0.5 / np.sqrt(max(1, len(each)))) for each in places])
    holds = scipy.sparse.csr_matrix((values, (rows, np.concatenate(places).astype(int))), (len(texts), len(known)))
    said = holds @ start
    start *= (said * target).sum() / (said * said).sum()
    return start + ridge(holds, target - holds @ start)


def pack(data: Path, old: np.ndarray, new: np.ndarray) -> None:
    """Write both as one; the words come in the order of how common they are, so the first count more for the axes."""
    lengths = [np.median(np.linalg.norm(each, axis=1)) for each in (old, new)]
    both = np.hstack([OLD_SHARE * old, new * (lengths[0] / lengths[1])])
    weighted = both * np.sqrt(1 / (1 + np.arange(len(both))) + LEAST_SHARE)[:, None]
    kept = both @ np.linalg.eigh(weighted.T @ weighted)[1][:, ::-1][:, :DIMENSIONS]
    scale = np.maximum(np.percentile(np.abs(kept), 99.9, axis=0) / 127, 1e-9)
    q = np.clip(np.round(kept / scale), -127, 127).astype(np.int8)
    np.savez_compressed(data / f"wordvec{DIMENSIONS}.npz", q=q, scale=scale.astype(np.float32))


if __name__ == "__main__":
    main()
