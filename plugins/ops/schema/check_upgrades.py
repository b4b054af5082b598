#!/usr/bin/env python3
"""Runs a node of each older version of ai.onnx's operators whose meaning or form changed, and compares the numbers.

    python3 check_upgrades.py TENON [OPERATOR...]

What is expected is numpy's where it is written here, else onnxruntime's, else onnx's reference evaluator's. Operands
but the first are constants. Prints every difference; exit code 1 when there is one.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.RandomState(0)
CASES = []  # (operator, version, operands, attributes, expected or None, results)


def floats(*shape):
    return RANDOM.randn(*shape).astype(np.float32)


def case(op, version, operands, expected=None, results=1, **attributes):
    CASES.append((op, version, operands, attributes, expected, results))


def per_channel(values):
    return values[None, :, None]


def binary_cases():
    a, b = floats(2, 3, 4, 5), floats(3, 4)
    there = b[None, :, :, None]
    for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
        case(op, 1, [a, b], [function(a, there)], broadcast=1, axis=1, consumed_inputs=[0, 0])
        case(op, 6, [a, b], [function(a, there)], broadcast=1, axis=-3)
        case(op, 6, [a, a[0, 0]], [function(a, a[0, 0])], broadcast=1)
        case(op, 7, [a, a[0, :1]], [function(a, a[0, :1])])
    case("Pow", 1, [abs(a) + 0.1, b], [(abs(a) + 0.1) ** there], broadcast=1, axis=1)
    case("Greater", 1, [a, b], [a > there], broadcast=1, axis=1)
    case("Less", 1, [a, b], [a < there], broadcast=1, axis=1)
    whole, half = (a * 2).astype(np.int32), (b * 2).astype(np.int32)
    case("Equal", 1, [whole, half], [whole == half[None, :, :, None]], broadcast=1, axis=1)
    for op, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
        case(op, 1, [a > 0, b > 0], [function(a > 0, there > 0)], broadcast=1, axis=1)
    x, slope = floats(2, 3, 4), floats(3)
    case("PRelu", 1, [x, slope], [np.where(x < 0, x * per_channel(slope), x)])
    case("PRelu", 6, [x, slope[:1]], [np.where(x < 0, x * slope[0], x)])
    case("PRelu", 7, [x, floats(3, 1)])
    three = [floats(2, 3) for _ in range(3)]
    for version in (1, 6):
        case("Max", version, three, [np.maximum.reduce(three)])
        case("Min", version, three, [np.minimum.reduce(three)])
        case("Sum", version, three, [sum(three)])
        case("Mean", version, three, [sum(three) / 3])


def unary_cases():
    x = floats(2, 3, 4)
    functions = {
        "Relu": lambda v: np.maximum(v, 0),
        "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "Tanh": np.tanh,
        "Exp": np.exp,
        "Abs": abs,
        "Neg": np.negative,
        "Floor": np.floor,
        "Ceil": np.ceil,
        "Reciprocal": np.reciprocal,
        "Elu": lambda v: np.where(v < 0, np.exp(v) - 1, v),
        "LeakyRelu": lambda v: np.where(v < 0, 0.01 * v, v),
        "HardSigmoid": lambda v: np.clip(0.2 * v + 0.5, 0, 1),
    }
    for op, function in functions.items():
        case(op, 1, [x], [function(x)], consumed_inputs=[0])
        case(op, 6, [x], [function(x)])
    case("Selu", 1, [x], [1.0507 * np.where(x > 0, x, 1.6732 * (np.exp(x) - 1))])
    case("Selu", 6, [x])
    case("Clip", 1, [x], [np.maximum(x, -0.5)], min=-0.5)
    case("Clip", 6, [x], [np.minimum(x, 0.5)], max=0.5)
    case("Clip", 6, [x], [x])
    case("Cast", 1, [x * 3], [(x * 3).astype(np.int32)], to="INT32")
    case("Cast", 6, [x * 3], [(x * 3).astype(np.int32)], to=6)
    for version in (1, 6, 7, 10):
        case("Dropout", version, [x], [x], ratio=0.3, **({"is_test": 1} if version < 7 else {}))
    case("Dropout", 7, [x], [x, np.ones_like(x)], 2, ratio=0.3)
    case("Dropout", 10, [x], [x, np.ones(x.shape, bool)], 2, ratio=0.3)


def softmax_cases():
    x = floats(2, 3, 4)
    for version, axes in ((1, (None, 0, 1, 2)), (11, (None, 0, 1, 2, -1, -2))):
        for axis in axes:
            at = 1 if axis is None else axis % 3
            rows = x.reshape(int(np.prod(x.shape[:at])), -1)
            power = np.exp(rows - rows.max(1, keepdims=True))
            soft = power / power.sum(1, keepdims=True)
            hard = np.eye(rows.shape[1], dtype=np.float32)[rows.argmax(1)]
            attributes = {} if axis is None else {"axis": axis}
            for op, y in (("Softmax", soft), ("LogSoftmax", np.log(soft)), ("Hardmax", hard)):
                case(op, version, [x], [y.reshape(x.shape)], **attributes)


def normalization_cases():
    x = floats(2, 3, 4)
    scale, bias, mean, variance = floats(3), floats(3), floats(3), abs(floats(3)) + 0.5
    operands = [x, scale, bias, mean, variance]
    normal = (x - per_channel(mean)) / np.sqrt(per_channel(variance) + 1e-5) * per_channel(scale) + per_channel(bias)
    case("BatchNormalization", 1, operands, [normal], is_test=1, consumed_inputs=[0, 0, 0, 1, 1])
    case("BatchNormalization", 6, operands, [normal], is_test=1)
    for version in (7, 9, 14):
        case("BatchNormalization", version, operands, [normal])
    scale, bias, mean, variance = floats(3, 4), floats(3, 4), floats(3, 4), abs(floats(3, 4)) + 0.5
    each = (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    case("BatchNormalization", 7, [x, scale, bias, mean, variance], [each], spatial=0)
    deviation = np.sqrt(x.var(2, keepdims=True) + 1e-5)
    scale, bias = floats(3), floats(3)
    normal = (x - x.mean(2, keepdims=True)) / deviation * per_channel(scale) + per_channel(bias)
    case("InstanceNormalization", 1, [x, scale, bias], [normal])
    case("GroupNormalization", 18, [floats(2, 4, 3), floats(2), floats(2)], num_groups=2)


def reduce_cases():
    x = abs(floats(2, 3, 4)) + 0.1
    functions = {
        "ReduceSum": lambda a, k: x.sum(a, keepdims=k),
        "ReduceMean": lambda a, k: x.mean(a, keepdims=k),
        "ReduceMax": lambda a, k: x.max(a, keepdims=k),
        "ReduceMin": lambda a, k: x.min(a, keepdims=k),
        "ReduceProd": lambda a, k: x.prod(a, keepdims=k),
        "ReduceL1": lambda a, k: abs(x).sum(a, keepdims=k),
        "ReduceL2": lambda a, k: np.sqrt((x * x).sum(a, keepdims=k)),
        "ReduceSumSquare": lambda a, k: (x * x).sum(a, keepdims=k),
        "ReduceLogSum": lambda a, k: np.log(x.sum(a, keepdims=k)),
        "ReduceLogSumExp": lambda a, k: np.log(np.exp(x).sum(a, keepdims=k)),
    }
    for schema in onnx.defs.get_all_schemas_with_history():
        version = schema.since_version
        if schema.domain or schema.name not in functions or "axes" not in schema.attributes:
            continue
        function = functions[schema.name]
        case(schema.name, version, [x], [function((0, 2), False)], axes=[0, 2], keepdims=0)
        case(schema.name, version, [x], [function((0, 1, 2), True)])
        if version >= 11:
            case(schema.name, version, [x], [function((2,), True)], axes=[-1])
    case("ArgMax", 1, [x], [x.argmax(1)[:, None]], axis=1)


def matrix_cases():
    a, b, c = floats(2, 3), floats(3, 4), floats(4)
    case("Gemm", 1, [a, b, c], [2 * a @ b + 0.5 * c], broadcast=1, alpha=2.0, beta=0.5)
    case("Gemm", 6, [a.T.copy(), b.T.copy(), a[:, :1] @ b[:1]], [a @ b + a[:, :1] @ b[:1]], transA=1, transB=1)
    case("Gemm", 7, [a, b, c], [a @ b + c])
    case("Gemm", 9, [a, b, floats(2, 1)])


def shape_cases():
    x, m, y = floats(2, 3, 4), floats(2, 3), floats(1, 3, 1, 2)
    case("Reshape", 1, [x], [x.reshape(4, -1)], shape=[4, -1])
    case("Reshape", 5, [x, np.array([0, -1])], [x.reshape(2, 12)])
    case("Flatten", 1, [x], [x.reshape(6, 4)], axis=2)
    case("Squeeze", 1, [y], [y.reshape(3, 2)])
    case("Squeeze", 1, [y], [y.reshape(3, 2)], axes=[0, 2])
    case("Squeeze", 11, [y], [y.reshape(1, 3, 2)], axes=[-2])
    case("Unsqueeze", 1, [m], [m[None, :, None]], axes=[0, 2])
    case("Unsqueeze", 11, [m], [m[..., None]], axes=[-1])
    case("Concat", 1, [x, x], [np.concatenate([x, x], 1)])
    case("Concat", 4, [x, x], [np.concatenate([x, x], 2)], axis=2)
    case("Split", 1, [x], [x[:, :, :1], x[:, :, 1:]], 2, axis=2, split=[1, 3])
    case("Split", 1, [x, np.array([1, 3], np.float32)], [x[:, :, :1], x[:, :, 1:]], 2, axis=2)
    case("Split", 2, [x], [x[:, :, :2], x[:, :, 2:]], 2, axis=2)
    case("Split", 11, [x], [x[:, :, :3], x[:, :, 3:]], 2, axis=-1, split=[3, 1])
    case("Split", 13, [x, np.array([3, 1])], None, 2, axis=-1)
    case("Split", 13, [x], None, 2, axis=-1)
    case("Slice", 1, [x], [x[0:1, :, -2:]], starts=[0, -2], ends=[1, 2**62], axes=[0, 2])
    case("Slice", 1, [x], [x[:, 1:-1]], starts=[1], ends=[-1], axes=[1])
    case("Tile", 1, [m, np.array(2, np.float32), np.array(1, np.float32)], [np.tile(m, (1, 2))])
    case("Pad", 1, [m], [np.pad(m, ((1, 0), (0, 2)), constant_values=3)], paddings=[1, 0, 0, 2], value=3.0)
    case("Pad", 2, [m], [np.pad(m, ((1, 0), (1, 1)), "reflect")], pads=[1, 1, 0, 1], mode="reflect")
    case("Pad", 2, [m], [np.pad(m[:, 1:-1], ((0, 1), (0, 0)))], pads=[0, -1, 1, -1])
    case("Pad", 11, [m, np.array([1, 0, 0, 2])])
    best = np.argsort(-x, axis=1)[:, :2]
    case("TopK", 1, [x], [np.take_along_axis(x, best, 1), best], 2, k=2, axis=1)
    case("TopK", 10, [x, np.array([2])], [np.take_along_axis(x, best, 1), best], 2, axis=1)
    index = np.array([[[1, 0, 2, 1]]])
    case("Scatter", 9, [x, index, floats(1, 1, 4)], axis=1)
    case("ScatterElements", 11, [x, index, floats(1, 1, 4)], axis=1)
    case("GatherElements", 11, [x, index], axis=1)
    case("Gather", 1, [x, np.array([1, 0])], [x[:, :, [1, 0]]], axis=2)
    case("DepthToSpace", 1, [floats(1, 8, 2, 2)], blocksize=2)


def image_cases():
    x = floats(1, 2, 4, 4)
    blocks = x.reshape(1, 2, 2, 2, 2, 2)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    case("MaxPool", 1, [x], [blocks.max((3, 5))], **window)
    case("MaxPool", 8, [x], None, 2, storage_order=1, **window)
    case("AveragePool", 1, [x], [blocks.mean((3, 5))], **window)
    case("AveragePool", 7, [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    case("LpPool", 1, [x], [np.sqrt((blocks**2).sum((3, 5)))], p=2.0, **window)
    case("LpPool", 2, [x], kernel_shape=[2, 2], p=1)
    case("GlobalLpPool", 1, [x], [np.sqrt((x**2).sum((2, 3), keepdims=True))], p=2.0)
    case("Upsample", 1, [x], [x.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0)
    case("Upsample", 7, [x], scales=[1.0, 1.0, 2.0, 2.0], mode="linear")
    case("Upsample", 9, [x, np.array([1, 1, 2, 2], np.float32)])
    for scales in ((2, 2), (0.5, 0.5), (1.3, 1.7), (0.5, 2)):
        case("Resize", 10, [x, np.array((1, 1) + scales, np.float32)])
    case("Resize", 10, [x, np.array([1, 1, 2, 2], np.float32)], mode="linear")
    none, twice = np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)
    case("Resize", 11, [x, none, twice], coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
    case("GridSample", 16, [x, floats(1, 3, 3, 2).clip(-1, 1)])
    case("RoiAlign", 10, [x, np.array([[0, 0, 2, 3]], np.float32), np.array([0])], output_height=2, output_width=2)


def quantize_cases():
    x, scale, zero = (floats(2, 3) * 50).clip(-100, 100), np.array(0.5, np.float32), np.array(10, np.uint8)
    for version in (10, 13, 19, 21, 23):
        case("QuantizeLinear", version, [x, scale, zero])
        case("DequantizeLinear", version, [np.array([[1, 200, 3]], np.uint8), scale, zero])


def model_of(op, version, operands, attributes, results):
    schema = onnx.defs.get_schema(op, version)
    types = {}
    for i, value in enumerate(operands):
        parameter = schema.inputs[min(i, len(schema.inputs) - 1)]
        types.setdefault(parameter.type_str, helper.np_dtype_to_tensor_dtype(value.dtype))

    def result_type(i):
        text = schema.outputs[min(i, len(schema.outputs) - 1)].type_str
        fixed = {"tensor(int64)": TensorProto.INT64, "tensor(bool)": TensorProto.BOOL, "tensor(float)": TensorProto.FLOAT}
        special = {"Cast": TensorProto.INT32, "QuantizeLinear": TensorProto.UINT8, "DequantizeLinear": TensorProto.FLOAT}
        if op in special:
            return special[op]
        if op == "TopK" and i == 1 or op == "MaxPool" and i == 1:
            return TensorProto.INT64
        return fixed.get(text) or types.get(text) or TensorProto.BOOL

    node = helper.make_node(op, [f"i{i}" for i in range(len(operands))], [f"o{i}" for i in range(results)], **attributes)
    inputs = [
        helper.make_tensor_value_info(f"i{i}", helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for i, v in enumerate(operands)
    ]
    outputs = [helper.make_tensor_value_info(f"o{i}", result_type(i), None) for i in range(results)]
    constants = [numpy_helper.from_array(v, f"i{i}") for i, v in enumerate(operands) if i > 0]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    model.ir_version = 3 if version < 9 else 8
    return model


def referee(model, operands):
    try:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {"i0": operands[0]})
    except Exception:  # not there, or an operator it has not
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, {"i0": operands[0]})


def check(tenon, folder, op, version, operands, attributes, expected, results):
    model = model_of(op, version, operands, attributes, results)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "in.npz", i0=operands[0])
    command = [tenon, "run", folder / "model.onnx", "-q", "--threads", "1", "--inputs", folder / "in.npz"]
    run = subprocess.run([*command, "--outputs", folder / "out.npz"], capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip().splitlines()[0]
    found = np.load(folder / "out.npz")
    for i, wanted in enumerate(expected if expected is not None else referee(model, operands)):
        wanted, mine = np.asarray(wanted), found[f"o{i}"]
        if mine.shape != wanted.shape:
            return f"result {i} has shape {mine.shape}; expected {wanted.shape}"
        if not np.allclose(mine.astype(np.float64), wanted.astype(np.float64), rtol=1e-4, atol=1e-5):
            return f"result {i} differs by up to {abs(mine.astype(np.float64) - wanted.astype(np.float64)).max()}"
    return None


def main():
    families = (binary_cases, unary_cases, softmax_cases, normalization_cases, reduce_cases, matrix_cases, shape_cases)
    for family in (*families, image_cases, quantize_cases):
        family()
    chosen = [c for c in CASES if not sys.argv[2:] or c[0] in sys.argv[2:]]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for op, version, operands, attributes, expected, results in chosen:
            said = check(sys.argv[1], pathlib.Path(folder), op, version, operands, attributes, expected, results)
            if said:
                print(f"{op} of opset {version} {attributes}: {said}")
                bad += 1
    print(f"{len(chosen)} nodes of older versions, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
