"""What is read from the file of a BERT whose matrices are stored in four bits and whose tables are in eight.

The network: Devlin et al., 2019, arXiv:1810.04805. The form of the matrices: `MatMulNBits` in
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .graph import GraphReader, Node

_BITS: Final = 4
Floats = NDArray[np.float32]


class StoredBert:
    """The weights of a model's file, by their names."""

    def __init__(self, model: bytes) -> None:
        """Raise `ValueError`, `KeyError` or `IndexError` when it is no model."""
        self._stored = GraphReader(model)
        self._matrices = {node.name: node for node in self._stored.nodes if node.operator == "MatMulNBits"}

    def tensor(self, name: str) -> NDArray[Any]:
        """Return a tensor as it is stored. Raises `KeyError`."""
        return self._stored.tensor(name)

    def table(self, stem: str) -> Floats:
        """Return a table of embeddings, which are stored in eight bits."""
        codes, scale, zero = (self.tensor(f"{stem}.weight_{part}") for part in ("quantized", "scale", "zero_point"))
        plain: Floats = (codes.astype(np.float32) - zero.astype(np.float32)) * scale
        return plain

    def matrix(self, path: str) -> Floats:
        """Return a matrix, rows by columns. Raises `KeyError`."""
        node = self._matrices[f"/{path}/MatMul_Q4"]
        packed, scales, *zero_points = (self.tensor(name) for name in node.inputs[1:4] if name)
        return _weights(node, packed, scales, zero_points)


def _weights(node: Node, packed: NDArray[Any], scales: NDArray[Any], zero_points: list[NDArray[Any]]) -> Floats:
    """Return the matrix that a `MatMulNBits` node multiplies with."""
    rows, columns, block = node.integer("K"), node.integer("N"), node.integer("block_size")
    if node.integer("bits") != _BITS:
        raise ValueError("the matrices are not stored in four bits")
    blocks = -(-rows // block)
    codes = _nibbles(packed.reshape(columns, blocks * block // 2)).reshape(columns, blocks, block)
    zero: Floats = np.full((columns, blocks), 8, dtype=np.float32)
    if zero_points:
        zero = _nibbles(zero_points[0].reshape(columns, -1))[:, :blocks]
    plain: Floats = (codes - zero[:, :, None]) * scales.reshape(columns, blocks, 1)
    return plain.reshape(columns, blocks * block)[:, :rows].T


def _nibbles(packed: NDArray[Any]) -> Floats:
    return np.stack([packed & 0xF, packed >> 4], axis=-1).reshape(len(packed), -1).astype(np.float32)
