"""First step of the word vectors: what the teacher says of single words and of whole descriptions.

    python tests/benchmarks/search_vectors/teach.py MODEL TOOLS OUT

MODEL is a folder with `model.onnx`, `tokenizer.json` and `vocab.txt` of all-MiniLM-L6-v2; TOOLS a JSON list of
`{"name", "server", "description"}`. OUT gets `words.txt`, `words.npy` (a row a word), `descriptions.npy` (a row a
description) and `descriptions.json` (the words of each description, and in how many descriptions each word stands).

Needs numpy, onnxruntime and tokenizers; takes some minutes on two processors.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from sealab.tools_registry.search.tokens import words

BATCH = 64
LONGEST_INPUT = 128
LONGEST_TEXT = 400
LEAST_DESCRIPTIONS = 3
LONGEST_WORD = 17


class Teacher:
    """The sentence model: a text becomes the mean of its token vectors (its model card)."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST_INPUT)
        self._tokenizer.enable_padding()
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
        self._inputs = {each.name for each in self._session.get_inputs()}

    def vectors(self, texts: Sequence[str], *, marks: bool) -> np.ndarray:
        """One row a text; without `marks` the tokens that begin and end every text are left out of the mean."""
        rows = []
        for start in range(0, len(texts), BATCH):
            encoded = self._tokenizer.encode_batch(list(texts[start : start + BATCH]))
            fed = {
                "input_ids": np.array([each.ids for each in encoded], np.int64),
                "attention_mask": np.array([each.attention_mask for each in encoded], np.int64),
                "token_type_ids": np.array([each.type_ids for each in encoded], np.int64),
            }
            (tokens, *_) = self._session.run(None, {name: fed[name] for name in self._inputs})
            counted = fed["attention_mask"].astype(np.float32)
            if not marks:
                counted *= 1 - np.array([each.special_tokens_mask for each in encoded], np.float32)
            total = np.maximum(counted.sum(axis=1, keepdims=True), 1)
            rows.append((tokens * counted[:, :, None]).sum(axis=1) / total)
        return np.concatenate(rows)


def main() -> None:
    model, tools_file, out = (Path(each) for each in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    tools = json.loads(tools_file.read_text())
    texts = [f"{' '.join(words(tool['name']))}. {tool.get('description') or ''}"[:LONGEST_TEXT] for tool in tools]
    read = [words(text) for text in texts]
    held = Counter(word for each in read for word in set(each))

    vocabulary = [
        word for word in (model / "vocab.txt").read_text().splitlines() if re.fullmatch(r"[a-z0-9]{2,}", word)
    ]
    known = set(vocabulary)
    extra = [
        word
        for word, count in held.most_common()
        if count >= LEAST_DESCRIPTIONS and re.fullmatch(rf"[a-z]{{2,{LONGEST_WORD}}}", word) and word not in known
    ]
    teacher = Teacher(model)
    taught = vocabulary + extra
    (out / "words.txt").write_text("\n".join(taught))
    np.save(out / "words.npy", teacher.vectors(taught, marks=False).astype(np.float32))
    described = teacher.vectors(texts, marks=True)
    np.save(out / "descriptions.npy", described / np.linalg.norm(described, axis=1, keepdims=True))
    (out / "descriptions.json").write_text(json.dumps({"words": read, "held": held}))


if __name__ == "__main__":
    main()
