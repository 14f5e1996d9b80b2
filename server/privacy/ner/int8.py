"""Turn a model whose matrices are stored in four bits into one that computes in eight, in memory.

onnxruntime multiplies `MatMulNBits` matrices in floating point: on a CPU that costs twice what its integer kernels
(`DynamicQuantizeMatMul`: the activations are quantised on the fly, the weights once, here) cost, at the same accuracy.
Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. Messages and their field
numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from . import wire

_MODEL_GRAPH: Final = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_INT = 1, 3
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_FLOAT, _UINT8, _INT8 = 1, 2, 3
_DOMAIN: Final = "com.microsoft"
_BITS: Final = 4


def to_int8(model: bytes) -> bytes:
    """Return the ONNX model with every four-bit matrix product made an eight-bit one.

    Raises `ValueError`, `KeyError` or `IndexError` when the file is not such a model.
    """
    rewritten = bytearray()
    for field in wire.read(memoryview(model)):
        rewritten += wire.chunk(_MODEL_GRAPH, _graph(field.message)) if field.number == _MODEL_GRAPH else field.encoded
    return bytes(rewritten)


def _graph(graph: memoryview) -> bytes:
    fields = list(wire.read(graph))
    tensors = {_name_of_tensor(f.message): f.message for f in fields if f.number == _GRAPH_INITIALIZER}
    nodes, added, replaced = bytearray(), bytearray(), set[str]()
    for field in fields:
        if field.number != _GRAPH_NODE:
            continue
        node = _Node(field.message)
        if node.operator != "MatMulNBits":
            nodes += field.encoded
            continue
        packed, scales, *zero_points = node.inputs[1:4]
        weights = _weights(node, tensors[packed], tensors[scales], [tensors[name] for name in zero_points if name])
        quantised, column_scales = _quantised(weights)
        names = [f"{packed}_{part}" for part in ("int8", "scale", "zero")]
        added += _tensor(names[0], _INT8, quantised) + _tensor(names[1], _FLOAT, column_scales)
        added += _tensor(names[2], _INT8, np.zeros(len(column_scales), dtype=np.int8))
        nodes += _product(node, names)
        replaced |= {packed, scales, *zero_points}
    kept = b"".join(
        bytes(f.encoded)
        for f in fields
        if f.number != _GRAPH_NODE and not (f.number == _GRAPH_INITIALIZER and _name_of_tensor(f.message) in replaced)
    )
    return bytes(nodes) + kept + bytes(added)


class _Node:
    """What is needed of a NodeProto."""

    def __init__(self, message: memoryview) -> None:
        fields = list(wire.read(message))
        self.operator = next(f.text for f in fields if f.number == _NODE_OPERATOR)
        self.name = next((f.text for f in fields if f.number == _NODE_NAME), "")
        self.inputs = [f.text for f in fields if f.number == _NODE_INPUT]
        self.outputs = [f.text for f in fields if f.number == _NODE_OUTPUT]
        self._attributes = [f.message for f in fields if f.number == _NODE_ATTRIBUTE]

    def integer(self, name: str) -> int:
        for attribute in self._attributes:
            fields = {f.number: f for f in wire.read(attribute)}
            if fields[_ATTRIBUTE_NAME].text == name:
                value = fields[_ATTRIBUTE_INT].value
                if isinstance(value, int):
                    return value
        raise KeyError(name)


def _weights(node: _Node, packed: memoryview, scales: memoryview, zero_points: list[memoryview]) -> NDArray[np.float32]:
    """Return the matrix, rows by columns, that a `MatMulNBits` node multiplies with."""
    rows, columns, block = node.integer("K"), node.integer("N"), node.integer("block_size")
    if node.integer("bits") != _BITS:
        raise ValueError("the matrices are not stored in four bits")
    blocks = -(-rows // block)
    codes = _nibbles(np.frombuffer(_raw(packed), dtype=np.uint8).reshape(columns, blocks * block // 2)).reshape(
        columns, blocks, block
    )
    scale = np.frombuffer(_raw(scales), dtype=np.float32).reshape(columns, blocks, 1)
    zero: NDArray[np.float32] = np.full((columns, blocks), 8, dtype=np.float32)
    if zero_points:
        zero = _nibbles(np.frombuffer(_raw(zero_points[0]), dtype=np.uint8).reshape(columns, -1))[:, :blocks]
    return ((codes - zero[:, :, None]) * scale).reshape(columns, blocks * block)[:, :rows].T


def _nibbles(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.stack([packed & 0xF, packed >> 4], axis=-1).reshape(len(packed), -1).astype(np.float32)


def _quantised(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise each column symmetrically to eight bits."""
    scales = np.maximum(np.abs(weights).max(axis=0), 1e-12) / 127
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)


def _product(node: _Node, names: list[str]) -> bytes:
    bias = node.inputs[5:6]
    inputs = [node.inputs[0], *names, *(name for name in bias if name)]
    message = b"".join(wire.chunk(_NODE_INPUT, name) for name in inputs)
    message += b"".join(wire.chunk(_NODE_OUTPUT, name) for name in node.outputs)
    message += wire.chunk(_NODE_NAME, node.name) + wire.chunk(_NODE_OPERATOR, "DynamicQuantizeMatMul")
    return wire.chunk(_GRAPH_NODE, message + wire.chunk(_NODE_DOMAIN, _DOMAIN))


def _tensor(name: str, kind: int, values: NDArray[np.int8] | NDArray[np.float32]) -> bytes:
    shape = b"".join(wire.number(_TENSOR_SHAPE, size) for size in values.shape)
    content = shape + wire.number(_TENSOR_TYPE, kind) + wire.chunk(_TENSOR_NAME, name)
    return wire.chunk(_GRAPH_INITIALIZER, content + wire.chunk(_TENSOR_RAW, np.ascontiguousarray(values).tobytes()))


def _name_of_tensor(tensor: memoryview) -> str:
    return next(f.text for f in wire.read(tensor) if f.number == _TENSOR_NAME)


def _raw(tensor: memoryview) -> memoryview:
    return next(f.message for f in wire.read(tensor) if f.number == _TENSOR_RAW)
