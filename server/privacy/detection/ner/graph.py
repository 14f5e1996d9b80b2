"""Write ONNX graphs, and read what one holds, without the `onnx` package. `onnx_bert` says what for and what it earns.

Messages and their field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from . import protobuf

MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""

_IR_VERSION, _OPSET = 8, 18
_MODEL_IR, _MODEL_GRAPH, _MODEL_OPSET = 1, 7, 8
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_KIND = 1, 2, 3, 20
_KIND_FLOAT, _KIND_INT = 1, 2
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_FLOATS, _TENSOR_INTS, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 4, 5, 8, 9
_VALUE_NAME, _VALUE_TYPE, _TYPE_TENSOR, _TENSOR_OF, _TENSOR_DIMENSIONS = 1, 2, 1, 1, 2
_DIMENSION, _DIMENSION_SIZE, _DIMENSION_NAME = 1, 1, 2
_TYPES: Final[dict[np.dtype[Any], int]] = {
    np.dtype(np.float32): 1,
    np.dtype(np.uint8): 2,
    np.dtype(np.int8): 3,
    np.dtype(np.int64): 7,
}
_DTYPES: Final = {number: dtype for dtype, number in _TYPES.items()}


class Node:
    """What is needed of a node of a graph: its operator, its name, its inputs and its whole numbers."""

    def __init__(self, message: memoryview) -> None:
        fields = list(protobuf.read(message))
        self.operator = next(f.text for f in fields if f.number == _NODE_OPERATOR)
        self.name = next((f.text for f in fields if f.number == _NODE_NAME), "")
        self.inputs = [f.text for f in fields if f.number == _NODE_INPUT]
        self._attributes = [f.message for f in fields if f.number == _NODE_ATTRIBUTE]

    def integer(self, name: str) -> int:
        """Return an attribute that is a whole number. Raises `KeyError`."""
        for attribute in self._attributes:
            fields = {f.number: f for f in protobuf.read(attribute)}
            if fields[_ATTRIBUTE_NAME].text == name:
                value = fields[_ATTRIBUTE_INT].value
                if isinstance(value, int):
                    return value
        raise KeyError(name)


class GraphReader:
    """The nodes and the tensors of a model's file."""

    def __init__(self, model: bytes) -> None:
        """Raise `ValueError`, `KeyError` or `IndexError` when it is none."""
        graph = next((f.message for f in protobuf.read(memoryview(model)) if f.number == _MODEL_GRAPH), None)
        if graph is None:
            raise ValueError("the file holds no graph")
        fields = list(protobuf.read(graph))
        self.nodes = [Node(f.message) for f in fields if f.number == _GRAPH_NODE]
        self._tensors: dict[str, list[protobuf.WireField]] = {}
        for field in fields:
            if field.number == _GRAPH_INITIALIZER:
                inner = list(protobuf.read(field.message))
                self._tensors[next(f.text for f in inner if f.number == _TENSOR_NAME)] = inner

    def tensor(self, name: str) -> NDArray[Any]:
        """Return a tensor. Raises `KeyError`."""
        fields = self._tensors[name]
        shape = [number for f in fields if f.number == _TENSOR_SHAPE for number in protobuf.varints(f)]
        kind = next(number for f in fields if f.number == _TENSOR_TYPE for number in protobuf.varints(f))
        values: NDArray[Any] | None = None
        for field in fields:
            if field.number in (_TENSOR_RAW, _TENSOR_FLOATS):
                values = np.frombuffer(bytes(field.message), dtype=_DTYPES[kind])
            elif field.number == _TENSOR_INTS:
                values = np.array(protobuf.varints(field), dtype=_DTYPES[kind])
        if values is None:
            raise KeyError(name)
        return values.reshape(shape)


class GraphWriter:
    """A graph under construction."""

    def __init__(self) -> None:
        self._nodes = bytearray()
        self._tensors = bytearray()
        self._borders = bytearray()

    def tensor(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        shape = b"".join(protobuf.number(_TENSOR_SHAPE, size) for size in values.shape)
        content = shape + protobuf.number(_TENSOR_TYPE, _TYPES[values.dtype]) + protobuf.chunk(_TENSOR_NAME, name)
        content += protobuf.chunk(_TENSOR_RAW, np.ascontiguousarray(values).tobytes())
        self._tensors += protobuf.chunk(_GRAPH_INITIALIZER, content)
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, float] | None = None,
        *,
        domain: str = MICROSOFT,
    ) -> str:
        """Add an operator and return the name of its first output; an empty name leaves an input out."""
        message = b"".join(protobuf.chunk(_NODE_INPUT, name) for name in inputs)
        message += b"".join(protobuf.chunk(_NODE_OUTPUT, name) for name in outputs)
        message += protobuf.chunk(_NODE_NAME, outputs[0]) + protobuf.chunk(_NODE_OPERATOR, operator)
        for name, value in (attributes or {}).items():
            message += protobuf.chunk(_NODE_ATTRIBUTE, protobuf.chunk(_ATTRIBUTE_NAME, name) + _attribute(value))
        self._nodes += protobuf.chunk(_GRAPH_NODE, message + protobuf.chunk(_NODE_DOMAIN, domain))
        return outputs[0]

    def input(self, name: str, dtype: type, shape: Sequence[int | str]) -> str:
        """Add an input of the whole and return its name; a dimension with a name is not known before."""
        self._borders += protobuf.chunk(_GRAPH_INPUT, _value(name, dtype, shape))
        return name

    def output(self, name: str, dtype: type, shape: Sequence[int | str]) -> None:
        """Have the whole answer with something that a node gives."""
        self._borders += protobuf.chunk(_GRAPH_OUTPUT, _value(name, dtype, shape))

    def model(self) -> bytes:
        """Return the whole as a file."""
        graph = bytes(self._nodes) + protobuf.chunk(_GRAPH_NAME, "graph") + bytes(self._tensors) + bytes(self._borders)
        opsets = protobuf.chunk(_MODEL_OPSET, protobuf.number(_OPSET_VERSION, _OPSET))
        opsets += protobuf.chunk(
            _MODEL_OPSET, protobuf.chunk(_OPSET_DOMAIN, MICROSOFT) + protobuf.number(_OPSET_VERSION, 1)
        )
        return protobuf.number(_MODEL_IR, _IR_VERSION) + opsets + protobuf.chunk(_MODEL_GRAPH, graph)


def _attribute(value: float) -> bytes:
    if isinstance(value, int):
        return protobuf.number(_ATTRIBUTE_INT, value) + protobuf.number(_ATTRIBUTE_KIND, _KIND_INT)
    return protobuf.float32(_ATTRIBUTE_FLOAT, value) + protobuf.number(_ATTRIBUTE_KIND, _KIND_FLOAT)


def _value(name: str, dtype: type, shape: Sequence[int | str]) -> bytes:
    dimensions = b"".join(
        protobuf.chunk(
            _DIMENSION,
            protobuf.chunk(_DIMENSION_NAME, size) if isinstance(size, str) else protobuf.number(_DIMENSION_SIZE, size),
        )
        for size in shape
    )
    tensor = protobuf.number(_TENSOR_OF, _TYPES[np.dtype(dtype)]) + protobuf.chunk(_TENSOR_DIMENSIONS, dimensions)
    return protobuf.chunk(_VALUE_NAME, name) + protobuf.chunk(_VALUE_TYPE, protobuf.chunk(_TYPE_TENSOR, tensor))
