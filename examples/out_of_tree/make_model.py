"""Makes model/acme.onnx, model/input.npz and model/expected.npz. Needs numpy and onnx; the files are checked in.

The network scores 8 numbers into 16 and caps the scores four ways: twice as exporters write soft capping (one of them
followed by a Clip that cuts nothing off, one by a Clip that does), once with other factors (no soft cap), and once with
the custom operator itself.
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
random = np.random.default_rng(7)
weight = random.normal(0, 2, (8, 16)).astype(np.float32)
bias = random.normal(0, 1, 16).astype(np.float32)
numbers = {"thirty": 30.0, "minus_fifty": -50.0, "fifty": 50.0, "half": 0.5, "two": 2.0, "minus_one": -1.0, "one": 1.0, "third": 0.3}


def node(op, inputs, output, name, **attributes):
    return helper.make_node(op, inputs, [output], name=name, **attributes)


nodes = [
    node("MatMul", ["x", "weight"], "product", "score/MatMul"),
    node("Add", ["product", "bias"], "scores", "score/Add"),
    # 30 * tanh(scores / 30), then a Clip to [-50, 50] that changes nothing
    node("Div", ["scores", "thirty"], "wide_scaled", "wide/Div"),
    node("Tanh", ["wide_scaled"], "wide_tanh", "wide/Tanh"),
    node("Mul", ["wide_tanh", "thirty"], "wide_capped", "wide/Mul"),
    node("Clip", ["wide_capped", "minus_fifty", "fifty"], "wide", "wide/Clip"),
    # 2 * tanh(scores * 0.5), then a Clip to [-1, 1] that must stay
    node("Mul", ["scores", "half"], "narrow_scaled", "narrow/Mul"),
    node("Tanh", ["narrow_scaled"], "narrow_tanh", "narrow/Tanh"),
    node("Mul", ["narrow_tanh", "two"], "narrow_capped", "narrow/Mul_1"),
    node("Clip", ["narrow_capped", "minus_one", "one"], "narrow", "narrow/Clip"),
    # 2 * tanh(scores * 0.3) is no soft cap
    node("Mul", ["scores", "third"], "other_scaled", "other/Mul"),
    node("Tanh", ["other_scaled"], "other_tanh", "other/Tanh"),
    node("Mul", ["other_tanh", "two"], "other", "other/Mul_1"),
    node("SoftClamp", ["scores"], "custom", "custom/SoftClamp", domain="com.acme", limit=3.0),
]
outputs = ["wide", "narrow", "other", "custom"]
graph = helper.make_graph(
    nodes,
    "acme",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 16]) for name in outputs],
    [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")]
    + [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()],
)
model = helper.make_model(
    graph,
    opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)],
    producer_name="acme example",
    ir_version=8,
)
onnx.save(model, os.path.join(folder, "acme.onnx"))

x = random.normal(0, 4, (5, 8)).astype(np.float32)
scores = x.astype(np.float64) @ weight + bias
expected = {
    "wide": 30 * np.tanh(scores / 30),
    "narrow": np.clip(2 * np.tanh(scores * 0.5), -1, 1),
    "other": 2 * np.tanh(scores * np.float32(0.3)),
    "custom": 3 * np.tanh(scores / 3),
}
np.savez(os.path.join(folder, "input.npz"), x=x)
np.savez(os.path.join(folder, "expected.npz"), **{name: value.astype(np.float32) for name, value in expected.items()})
