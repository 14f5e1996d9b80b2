"""Second step: word vectors whose sums come as near as they can to what the teacher says of whole descriptions.

    python tests/benchmarks/search_vectors/fit.py OUT

Each word begins at the teacher's own vector for it, less the mean, times a weight that falls with how common the word is
(smooth inverse frequency: Arora, Liang and Ma, *A simple but tough-to-beat baseline for sentence embeddings*, 2017).
A correction is then added: ridge regression from the words of a description to the teacher's vector of it, solved by
conjugate gradients. The regression is what teaches a vector its length, so no weights are needed afterwards.

Reads what `teach.py` wrote below OUT, writes `fitted.npy`, as many dimensions as the teacher has, the most telling first.
Needs numpy and scipy.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse

from sealab.tools_registry.search.tokens import STOP_WORDS

COMMON = 3e-2
RIDGE = 1.0
STEPS = 60
UNSEEN = 0.5


def main() -> None:
    out = Path(sys.argv[1])
    taught = (out / "words.txt").read_text().split("\n")
    number = {word: place for place, word in enumerate(taught)}
    own = np.load(out / "words.npy")
    described = np.load(out / "descriptions.npy")
    texts = json.loads((out / "descriptions.json").read_text())

    share = np.array([texts["held"].get(word, UNSEEN) for word in taught]) / len(described)
    start = own - np.average(own, axis=0, weights=np.minimum(share, 0.01) + 1e-4)
    start *= (COMMON / (COMMON + share))[:, None]
    target = described - described.mean(axis=0)  # what all descriptions have in common tells none from another

    rows, columns, values = [], [], []
    for row, read in enumerate(texts["words"]):
        known = [number[word] for word in read if word in number and word not in STOP_WORDS]
        rows += [row] * len(known)
        columns += known
        values += [0.5 / np.sqrt(len(known))] * len(known)
    holds = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(len(described), len(taught)))

    said = holds @ start
    start *= (said * target).sum() / (said * said).sum()
    fitted = start + ridge(holds, target - holds @ start)
    weighted = fitted * np.sqrt(share + 1e-4)[:, None]
    _, axes = np.linalg.eigh(weighted.T @ weighted)
    np.save(out / "fitted.npy", (fitted @ axes[:, ::-1]).astype(np.float32))


def ridge(holds: scipy.sparse.csr_matrix, wanted: np.ndarray) -> np.ndarray:
    """Minimize |holds · x - wanted|² + RIDGE · |x|², every dimension at once."""
    held = holds.T.tocsr()
    residual = held @ wanted
    found = np.zeros_like(residual)
    direction = residual.copy()
    size = (residual**2).sum(axis=0)
    for _ in range(STEPS):
        moved = held @ (holds @ direction) + RIDGE * direction
        step = size / ((direction * moved).sum(axis=0) + 1e-12)
        found += step * direction
        residual -= step * moved
        new = (residual**2).sum(axis=0)
        direction = residual + new / (size + 1e-12) * direction
        size = new
    return found


if __name__ == "__main__":
    main()
