"""A BERT computed by numpy, which is there anyway, where no onnxruntime is installed.

Its matrices are in floating point in memory, 42 MB: numpy multiplies whole numbers without BLAS, which is far slower.
A text of 64 pieces of words takes 15 ms of CPU time and one of 16 takes 5.6, where onnxruntime takes 2.9 and 0.8
(medians of 30 runs). The labels of the two differ where scores are close: `onnx_bert` computes in eight bits.
The network: Devlin et al., 2019, arXiv:1810.04805; GELU by its approximation with tanh (Hendrycks and Gimpel, 2016,
arXiv:1606.08415), which is within 0.0005 of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import threadpoolctl

from .stored_bert import Floats, StoredBert

_GELU_FACTOR = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


class _Linear(NamedTuple):
    """A product with a matrix, and what is added to it."""

    weights: Floats
    bias: Floats

    def __call__(self, state: Floats) -> Floats:
        product: Floats = state @ self.weights
        product += self.bias
        return product


class _Norm(NamedTuple):
    """The normalisation of each row to a mean and a deviation that were learned."""

    weight: Floats
    bias: Floats
    epsilon: float

    def __call__(self, state: Floats) -> Floats:
        centred: Floats = state - state.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.einsum("ij,ij->i", centred, centred)[:, None] / centred.shape[1] + self.epsilon)
        centred /= deviation
        centred *= self.weight
        centred += self.bias
        return centred


class _Layer(NamedTuple):
    """What one layer computes with."""

    looks: _Linear
    said: _Linear
    seen: _Norm
    wide: _Linear
    narrow: _Linear
    normal: _Norm


class NumpyBert:
    """A BERT that labels the pieces of one text at a time. Safe to use from several threads."""

    def __init__(self, model: bytes, *, layers: int, heads: int, epsilon: float) -> None:
        """Raise `ValueError`, `KeyError` or `IndexError` when `model` is not such a BERT."""
        # For products as small as these, several threads of BLAS wait for each other longer than they compute.
        threadpoolctl.threadpool_limits(1, user_api="blas")
        stored = StoredBert(model)
        stem = "bert.embeddings."
        words = f"{stem}word_embeddings.weight"
        self._heads = heads
        self._codes = stored.tensor(f"{words}_quantized")
        self._scale = np.float32(stored.tensor(f"{words}_scale"))
        self._zero = np.float32(stored.tensor(f"{words}_zero_point"))
        self._places = stored.table(f"{stem}position_embeddings") + stored.table(f"{stem}token_type_embeddings")[0]
        self._embedded = _norm(stored, f"{stem}LayerNorm", epsilon)
        self._layers = [_layer(stored, number, heads, epsilon) for number in range(layers)]
        self._classifier = _Linear(_packed(stored.matrix("classifier")), stored.tensor("classifier.bias"))

    def __call__(self, ids: Sequence[int]) -> Floats:
        """Return how much speaks for each label, for each piece."""
        meant = (self._codes[np.asarray(ids)].astype(np.float32) - self._zero) * self._scale
        state = self._embedded(meant + self._places[: len(ids)])
        for layer in self._layers:
            seen = layer.seen(layer.said(_attended(layer.looks(state), self._heads)) + state)
            state = layer.normal(layer.narrow(_gelu(layer.wide(seen))) + seen)
        return self._classifier(state)


def _attended(looks: Floats, heads: int) -> Floats:
    """Let each piece look at all others; queries, already divided, keys and values stand side by side."""
    pieces, size = len(looks), looks.shape[1] // (3 * heads)
    queries, keys, values = looks.reshape(pieces, 3, heads, size).transpose(1, 2, 0, 3)
    scores: Floats = queries @ keys.transpose(0, 2, 1)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    attended: Floats = (scores @ values).transpose(1, 0, 2).reshape(pieces, heads * size)
    return attended


def _gelu(state: Floats) -> Floats:
    inner = state * state
    inner *= _GELU_CUBE * _GELU_FACTOR
    inner += _GELU_FACTOR
    inner *= state
    np.tanh(inner, out=inner)
    inner += 1
    inner *= state
    inner *= 0.5
    return inner


def _layer(stored: StoredBert, number: int, heads: int, epsilon: float) -> _Layer:
    stem, path = f"bert.encoder.layer.{number}.", f"bert/encoder/layer.{number}/"

    def linear(name: str) -> _Linear:
        return _Linear(_packed(stored.matrix(path + name)), stored.tensor(f"{stem}{name.replace('/', '.')}.bias"))

    query, key, value = (linear(f"attention/self/{part}") for part in ("query", "key", "value"))
    root = np.float32(math.sqrt(query.weights.shape[1] // heads))
    looks = _Linear(
        _packed(np.concatenate([query.weights / root, key.weights, value.weights], axis=1)),
        np.concatenate([query.bias / root, key.bias, value.bias]),
    )
    return _Layer(
        looks,
        linear("attention/output/dense"),
        _norm(stored, f"{stem}attention.output.LayerNorm", epsilon),
        linear("intermediate/dense"),
        linear("output/dense"),
        _norm(stored, f"{stem}output.LayerNorm", epsilon),
    )


def _norm(stored: StoredBert, stem: str, epsilon: float) -> _Norm:
    return _Norm(stored.tensor(f"{stem}.weight"), stored.tensor(f"{stem}.bias"), epsilon)


def _packed(weights: Floats) -> Floats:
    packed: Floats = np.ascontiguousarray(weights, dtype=np.float32)
    return packed
