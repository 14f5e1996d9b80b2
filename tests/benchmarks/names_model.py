"""Makes the model of names as sealab has it from the one that was published.

    python tests/benchmarks/names_model.py PUBLISHED server/privacy/detection/ner/rampart/model_int8.onnx

PUBLISHED is `model_q4.onnx` of https://huggingface.co/nationaldesignstudio/rampart, with the SHA-256 digest `SOURCE`.
Needs numpy and onnx in an environment of its own; the same input gives the same graph.

The published file has matrices of four bits, which onnxruntime multiplies in floating point, and spends a third of its
time between the products. Here they have eight, which costs half of that, and fused operators compute attention,
normalisation and GELU. There is one text at a time, so there is no mask. A text of 64 pieces of words takes 0.37 of the
CPU time of the published file, and one of 16 takes 0.36 (medians of 60 runs each in turns).

The largest code of a weight is 63, of seven bits: the products of two of eight with activations overflow the 16 bits in
which CPUs without VNNI add them (VPMADDUBSW saturates), and then a text has other labels than elsewhere. Activations are
quantised at run time.
https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html, "When and why do I need to try U8U8?"

Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md (`MatMulNBits`, `QAttention`,
`DynamicQuantizeMatMul`, `SkipLayerNormalization`, `BiasGelu`). The network: Devlin et al., 2019, arXiv:1810.04805.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SOURCE = "9f27d24949b0581701071ea5ef522d77ccd3f50c525cc91eac4d265b0fc2afe5"
LAYERS, HEADS, EPSILON = 6, 12, 1e-12
CODE_MAX = 63
MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators."""


class Stored:
    """The weights of the published file."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.tensors = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        self._matrices = {node.name: node for node in model.graph.node if node.op_type == "MatMulNBits"}

    def table(self, stem: str) -> np.ndarray:
        """Return a table of embeddings, which are stored in eight bits."""
        codes, scale, zero = (self.tensors[f"{stem}.weight_{part}"] for part in ("quantized", "scale", "zero_point"))
        return (codes.astype(np.float32) - zero.astype(np.float32)) * scale

    def matrix(self, path: str) -> np.ndarray:
        """Return a matrix, rows by columns, which is stored in blocks of four-bit codes with 8 for zero."""
        node = self._matrices[f"/{path}/MatMul_Q4"]
        _state, packed, scales = node.input
        form = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        rows, columns, block = form["K"], form["N"], form["block_size"]
        codes = self.tensors[packed].reshape(columns, -1, block // 2)
        codes = np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(columns, -1, block).astype(np.float32) - 8
        return (codes * self.tensors[scales].reshape(columns, -1, 1)).reshape(columns, -1)[:, :rows].T


class Fused:
    """The graph under construction."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        """Return a model from `ids` and `places` (0 to n - 1), int64 and 1 by n, to logits, 1 by n by labels."""
        state = self._embedded()
        for number in range(LAYERS):
            state = self._layer(number, state)
        bias = self._stored.tensors["classifier.bias"]
        logits = self._product("classifier", state, self._tensor("classifier bias", bias))
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, (1, "n")) for name in ("ids", "places")]
        output = helper.make_tensor_value_info(logits, TensorProto.FLOAT, (1, "n", len(bias)))
        graph = helper.make_graph(self._nodes, "graph", inputs, [output], self._tensors)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, ir_version=8, opset_imports=opsets)

    def _embedded(self) -> str:
        """Look up what each piece of a word means by itself and where it stands; nothing here has a second sentence."""
        stem = "bert.embeddings."
        words = f"{stem}word_embeddings.weight_"
        codes = self._node("Gather", [self._constant(f"{words}quantized"), "ids"], "word codes", domain="")
        steps = [self._constant(f"{words}{part}") for part in ("scale", "zero_point")]
        meant = self._node("DequantizeLinear", [codes, *steps], "word", domain="")
        places = (
            self._stored.table(f"{stem}position_embeddings") + self._stored.table(f"{stem}token_type_embeddings")[0]
        )
        placed = self._node("Gather", [self._tensor("all places", places), "places"], "place", domain="")
        return self._normalised(f"{stem}LayerNorm", meant, placed)

    def _layer(self, number: int, state: str) -> str:
        stem, path = f"bert.encoder.layer.{number}.", f"bert/encoder/layer.{number}/"
        said = self._product(f"{path}attention/output/dense", self._attention(stem, path, state))
        seen = self._normalised(f"{stem}attention.output.LayerNorm", said, state, f"{stem}attention.output.dense.bias")
        wide = self._product(f"{path}intermediate/dense", seen)
        active = self._node("BiasGelu", [wide, self._constant(f"{stem}intermediate.dense.bias")], f"{path}gelu")
        narrow = self._product(f"{path}output/dense", active)
        return self._normalised(f"{stem}output.LayerNorm", narrow, seen, f"{stem}output.dense.bias")

    def _attention(self, stem: str, path: str, state: str) -> str:
        """Let each piece look at all others: queries, keys and values are one product."""
        parts = [f"attention/self/{part}" for part in ("query", "key", "value")]
        weights = np.concatenate([self._stored.matrix(f"{path}{part}") for part in parts], axis=1)
        bias = np.concatenate([self._stored.tensors[f"{stem}{part.replace('/', '.')}.bias"] for part in parts])
        step, zero = f"{path}step", f"{path}zero"
        codes = self._node("DynamicQuantizeLinear", [state], f"{path}codes", step, zero, domain="")
        quantised, scales, zeros = self._quantised(f"{path}attention", weights)
        inputs = [codes, quantised, self._tensor(f"{path}bias", bias), step, scales, "", zero, zeros]
        return self._node("QAttention", inputs, f"{path}attended", num_heads=HEADS)

    def _product(self, path: str, factor: str, *bias: str) -> str:
        inputs = [factor, *self._quantised(path, self._stored.matrix(path)), *bias]
        return self._node("DynamicQuantizeMatMul", inputs, f"{path} product")

    def _normalised(self, stem: str, one: str, other: str, *bias: str) -> str:
        """Add two states, and a bias, and normalise their sum."""
        constants = [self._constant(name) for name in (f"{stem}.weight", f"{stem}.bias", *bias)]
        return self._node("SkipLayerNormalization", [one, other, *constants], f"{stem} sum", epsilon=EPSILON)

    def _quantised(self, stem: str, weights: np.ndarray) -> tuple[str, str, str]:
        """Quantise each column symmetrically."""
        scales = (np.maximum(np.abs(weights).max(axis=0), 1e-12) / CODE_MAX).astype(np.float32)
        codes = np.rint(weights / scales).astype(np.int8)
        zeros = np.zeros(len(scales), dtype=np.int8)
        add = self._tensor
        return add(f"{stem} int8", codes), add(f"{stem} scale", scales), add(f"{stem} zeros", zeros)

    def _constant(self, name: str) -> str:
        return self._tensor(name, self._stored.tensors[name])

    def _tensor(self, name: str, values: np.ndarray) -> str:
        self._tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _node(
        self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = MICROSOFT, **attributes: float
    ) -> str:
        self._nodes.append(helper.make_node(operator, inputs, outputs, outputs[0], domain=domain, **attributes))
        return outputs[0]


def main(published: Path, target: Path) -> None:
    """Write the file. Raises `SystemExit` where the input is another one."""
    content = published.read_bytes()
    if hashlib.sha256(content).hexdigest() != SOURCE:
        raise SystemExit(f"{published} is not the file that this was made for. Take the one with the digest {SOURCE}.")
    onnx.save(Fused(Stored(onnx.load_from_string(content))).model(), target)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
