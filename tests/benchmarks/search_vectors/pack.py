"""Third step: the two files that come with the package.

    python tests/benchmarks/search_vectors/pack.py OUT DATA

Reads `words.txt` and `fitted.npy` below OUT; writes `wordvec64.npz` and `neighbours.txt.gz` into DATA. Needs numpy.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

DIMENSIONS = 64
# Neighbours are judged in more dimensions than are shipped: that costs nothing when searching.
NEIGHBOUR_DIMENSIONS = 256
MOST_NEIGHBOURS = 6
LEAST_COSINE = 0.60
ROWS = 1000


def main() -> None:
    out, data = (Path(each) for each in sys.argv[1:3])
    words = (out / "words.txt").read_text().split("\n")
    fitted = np.load(out / "fitted.npy")

    kept = fitted[:, :DIMENSIONS]
    scale = np.maximum(np.percentile(np.abs(kept), 99.9, axis=0) / 127, 1e-9)
    np.savez_compressed(
        data / "wordvec64.npz",
        q=np.clip(np.round(kept / scale), -127, 127).astype(np.int8),
        scale=scale.astype(np.float32),
        w=np.ones(len(words), np.float16),
        words=np.array("\n".join(words)),
    )

    near = fitted[:, :NEIGHBOUR_DIMENSIONS]
    near = near / (np.linalg.norm(near, axis=1, keepdims=True) + 1e-9)
    lines = []
    for start in range(0, len(words), ROWS):
        cosines = near[start : start + ROWS] @ near.T
        for row, alike in enumerate(cosines):
            place = start + row
            best = [other for other in np.argsort(-alike)[: MOST_NEIGHBOURS + 1] if other != place]
            found = [
                f"{words[other]}:{round(100 * float(alike[other]))}" for other in best if alike[other] >= LEAST_COSINE
            ]
            if found:
                lines.append(" ".join([words[place], *found]))
    with gzip.GzipFile(data / "neighbours.txt.gz", "wb", mtime=0) as file:
        file.write(("\n".join(sorted(lines)) + "\n").encode())


if __name__ == "__main__":
    main()
