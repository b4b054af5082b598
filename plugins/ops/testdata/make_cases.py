#!/usr/bin/env python3
"""Writes the .cases files of this folder: small nodes with results of the ONNX reference evaluator (needs onnx, numpy).

usage: make_cases.py [FOLDER]      the folder of this file when omitted
"""
import os
import sys
import urllib.parse

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

OPSET = 25
NAMES = {v: k.lower() for k, v in TensorProto.DataType.items()}
NAMES.update({TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"})
rng = np.random.default_rng(1)


def text(value):
    return "'" + urllib.parse.quote(value.decode() if isinstance(value, bytes) else str(value))


def tensor(x):
    x = np.asarray(x)
    name = "string" if x.dtype.kind in "OU" else NAMES[helper.np_dtype_to_tensor_dtype(x.dtype)]
    if name == "string":
        values = [text(v) for v in x.ravel()]
    elif name == "float64":
        values = [repr(float(v)) for v in x.ravel()]
    elif name.startswith("float") or name == "bfloat16":
        values = ["%.9g" % float(v) for v in x.ravel()]
    else:
        values = [str(int(v)) for v in x.ravel()]
    return " ".join([name, "[" + ",".join(map(str, x.shape)) + "]"] + values)


def attribute(a):
    kinds = {"INT": lambda: f"int {a.i}", "FLOAT": lambda: "float %.9g" % a.f, "STRING": lambda: "string " + text(a.s),
             "INTS": lambda: " ".join(["ints"] + [str(i) for i in a.ints]),
             "FLOATS": lambda: " ".join(["floats"] + ["%.9g" % f for f in a.floats]),
             "STRINGS": lambda: " ".join(["strings"] + [text(s) for s in a.strings]),
             "TENSOR": lambda: "tensor " + tensor(onnx.numpy_helper.to_array(a.t))}
    return kinds[onnx.AttributeProto.AttributeType.Name(a.type)]()


class Cases:
    def __init__(self, folder, name):
        self.file = open(os.path.join(folder, name + ".cases"), "w")
        self.file.write("# Made by make_cases.py.\n")
        self.count = 0

    def add(self, op, inputs, outputs=1, opset=OPSET, **attrs):
        """One node; an input of None is omitted, outputs is a count or a list of wanted flags."""
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
        outs = [f"o{k}" if w else "" for k, w in enumerate(wanted)]
        node = helper.make_node(op, names, outs, **attrs)
        info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.asarray(x).shape)
                for n, x in zip(names, inputs) if x is not None]
        graph = helper.make_graph([node], "g", info, [helper.make_empty_tensor_value_info(o) for o in outs if o])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        with np.errstate(all="ignore"):
            results = iter(ReferenceEvaluator(model).run(None, {n: x for n, x in zip(names, inputs) if x is not None}))
        self.count += 1
        self.file.write(f"case {op}_{self.count}\nop {op}\n")
        for a in node.attribute:
            self.file.write(f"attr {a.name} {attribute(a)}\n")
        for x in inputs:
            self.file.write("in " + ("-" if x is None else tensor(x)) + "\n")
        for w in wanted:
            self.file.write("out " + (tensor(next(results)) if w else "-") + "\n")


def f32(*shape):
    return rng.standard_normal(shape).round(3).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, 0.5, 3.0, -1e30, 1e30, np.inf, -np.inf, np.nan], np.float32)


def elementwise(c):
    for op in ("Abs Neg Sqrt Exp Log Reciprocal Floor Ceil Round Sign Relu Sigmoid Tanh Erf Sin Cos Softplus HardSwish Mish Elu "
               "Selu LeakyRelu HardSigmoid ThresholdedRelu IsNaN IsInf Gelu").split():
        c.add(op, [SPECIAL if op not in ("Mish", "Gelu", "Softplus", "HardSwish") else SPECIAL[:6]])
    c.add("Gelu", [f32(5)], approximate="tanh")
    c.add("Not", [np.array([True, False])])
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        c.add(op, [f32(2, 3, 1), np.abs(f32(3, 4)) + 0.5] if op != "Pow" else [np.abs(f32(2, 3, 1)), f32(3, 4)])
    c.add("Add", [f32(0, 3), f32(1, 3)])
    for op in ("Add", "Sub", "Mul"):
        c.add(op, [np.array([120, -128, 7], np.int8), np.array([100, 1, -3], np.int8)])
    c.add("Add", [f32(3).astype(np.float16), f32(2, 1).astype(np.float16)])
    for fmod in (0, 1):
        c.add("Mod", [i64(-7, 7, -7, 7), i64(3, -3, -3, 3)], fmod=fmod)
    c.add("Mod", [np.array([-7.5, 7.5], np.float32), np.array([2, -2], np.float32)], fmod=1)
    for op in ("Max", "Min"):
        c.add(op, [SPECIAL, SPECIAL[::-1].copy(), np.float32([0.25])])
    c.add("Sum", [f32(2, 3), f32(3), f32(2, 1)])
    c.add("Mean", [f32(2, 3), f32(3)])
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        c.add(op, [SPECIAL, np.float32([0])])
        c.add(op, [np.array([1, 2**63 + 1], np.uint64), np.array([2**63 + 1, 1], np.uint64)])
    for op in ("And", "Or", "Xor"):
        c.add(op, [np.array([True, True, False]), np.array([[True], [False]])])
    c.add("Where", [np.array([[True], [False]]), f32(3), f32(2, 3)])
    c.add("Clip", [SPECIAL, np.float32(-1), np.float32(2)])
    c.add("Clip", [i64(-5, 0, 5), None, np.int64(3)])
    c.add("PRelu", [f32(2, 3, 2), f32(3, 1)])
    for to in (TensorProto.INT32, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL, TensorProto.DOUBLE):
        c.add("Cast", [np.float32([0, 1.5, -1.5, 100.25, 65519, 1e-8])], to=to)
    c.add("Cast", [i64(0, 255, 256, -1)], to=TensorProto.UINT8)
    c.add("Cast", [i64(2**53 + 1)], to=TensorProto.FLOAT)


def moving(c):
    x = f32(2, 3, 4)
    c.add("Transpose", [x])
    c.add("Transpose", [x], perm=[1, 0, 2])
    c.add("Reshape", [x, i64(0, -1)])
    c.add("Concat", [x, f32(2, 1, 4)], axis=-2)
    c.add("Concat", [np.array([["a", "bc"]], object), np.array([["d e", ""]], object)], axis=0)
    c.add("Split", [f32(2, 7)], outputs=3, axis=1, num_outputs=3)
    c.add("Split", [f32(5, 2), i64(2, 0, 3)], outputs=3, axis=0)
    c.add("Slice", [x, i64(0, 3), i64(2, -100), i64(1, 2), i64(1, -2)])
    c.add("Slice", [x, i64(-1), i64(-9223372036854775808), i64(0), i64(-1)])
    c.add("Slice", [x, i64(5), i64(9), i64(2)])
    c.add("Expand", [f32(3, 1), i64(2, 1, 4)])
    c.add("Tile", [f32(2, 3), i64(2, 2)])
    for mode in ("constant", "reflect", "edge", "wrap"):
        c.add("Pad", [f32(3, 4), i64(1, 2, 2, 1), None if mode != "constant" else np.float32(7)], mode=mode)
    c.add("DepthToSpace", [f32(1, 8, 2, 1)], blocksize=2, mode="CRD")
    c.add("SpaceToDepth", [f32(1, 2, 2, 4)], blocksize=2)
    c.add("Trilu", [f32(2, 3, 4), np.int64(1)])
    c.add("Trilu", [f32(3, 3), np.int64(-1)], upper=0)
    c.add("Gather", [x, np.array([[0, -1], [1, 1]])], axis=1)
    c.add("Gather", [np.array(["x", "y", "z"], object), i64(2, 0)])
    c.add("GatherElements", [f32(3, 3), np.array([[1, -1, 0], [2, 0, 0]])], axis=0)
    c.add("GatherND", [x, np.array([[[1], [-1]], [[0], [2]]])], batch_dims=1)
    c.add("OneHot", [i64(0, -1, 7), np.int64(3), np.float32([0, 5])], axis=0)
    for reduction in ("none", "add", "mul", "max", "min"):
        c.add("ScatterElements", [f32(1, 5), np.array([[1, 1, -2]]), f32(1, 3)], axis=1, reduction=reduction)
        c.add("ScatterND", [f32(4, 2), np.array([[3], [0], [0]]), f32(3, 2)], reduction=reduction)
    c.add("Range", [np.float32(1), np.float32(4), np.float32(0.75)])
    c.add("Range", [np.int32(5), np.int32(-2), np.int32(-3)])
    c.add("Shape", [x], start=1, end=-1)
    c.add("Size", [x])
    c.add("EyeLike", [f32(3, 4)], k=1)
    c.add("ConstantOfShape", [i64(2, 2)], value=helper.make_tensor("v", TensorProto.INT64, [1], [7]))


def summing(c):
    x = f32(2, 3, 4)
    for op in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split():
        data = np.abs(x) + 0.1 if op == "LogSum" else x
        c.add("Reduce" + op, [data, i64(1)], keepdims=0)
        c.add("Reduce" + op, [data])
        c.add("Reduce" + op, [data, i64(0, -1)])
    c.add("ReduceSum", [x], noop_with_empty_axes=1)
    c.add("ReduceSum", [f32(2, 0, 3), i64(1)])
    c.add("ReduceProd", [f32(2, 0), i64(1)])
    c.add("ReduceMax", [np.float32([[1, np.nan], [-np.inf, -np.inf]]), i64(1)])
    c.add("ReduceSum", [np.array([[2**31 - 1, 1]], np.int32), i64(1)])
    for op in ("ArgMax", "ArgMin"):
        c.add(op, [np.float32([[2, 2, 1], [0, 3, 3]])], axis=1, keepdims=0)
        c.add(op, [np.float32([[2, 2, 1], [0, 3, 3]])], axis=1, select_last_index=1)
    for axis in (-1, 0, 1):
        c.add("Softmax", [x], axis=axis)
        c.add("LogSoftmax", [x], axis=axis)
    c.add("TopK", [f32(2, 5), i64(3)], outputs=2, axis=1)
    c.add("TopK", [np.float32([1, 3, 3, 2]), i64(2)], outputs=2, largest=0)
    c.add("CumSum", [f32(2, 4), np.int64(1)], exclusive=1, reverse=1)
    c.add("LayerNormalization", [x, f32(4), f32(4)])
    c.add("LayerNormalization", [x, f32(3, 4), f32(3, 4)], outputs=3, axis=1)
    c.add("RMSNormalization", [x, f32(4)])
    c.add("InstanceNormalization", [x, f32(3), f32(3)])
    c.add("GroupNormalization", [f32(2, 4, 3), f32(4), f32(4)], num_groups=2)
    c.add("BatchNormalization", [x, f32(3), f32(3), f32(3), np.abs(f32(3)) + 0.1])
    c.add("BatchNormalization", [x, f32(3), f32(3), f32(3), np.abs(f32(3)) + 0.1], outputs=3, training_mode=1)
    c.add("LRN", [f32(5, 5, 2, 2)], size=3)
    c.add("MatMul", [f32(2, 1, 3, 5), f32(4, 5, 2)])
    c.add("MatMul", [f32(5), f32(2, 5, 3)])
    c.add("MatMul", [f32(3, 300), f32(300, 70)])
    c.add("MatMul", [np.array([[2**31 - 1, 2]], np.int32), np.array([[2], [3]], np.int32)])
    c.add("Gemm", [f32(3, 2), f32(4, 3), f32(4)], transA=1, transB=1, alpha=0.5, beta=2.0)
    c.add("Gemm", [f32(2, 3), f32(3, 4), f32(2, 1)])
    c.add("Einsum", [f32(2, 3, 4), f32(2, 4, 5)], equation="bij,bjk->bik")
    c.add("Einsum", [f32(3, 3)], equation="ii->i")


def windows(c):
    c.add("Conv", [f32(2, 4, 7, 6), f32(6, 2, 3, 3), f32(6)], group=2, pads=[1, 2, 0, 1], strides=[2, 1], dilations=[1, 2])
    c.add("Conv", [f32(1, 3, 9), f32(70, 3, 3)], auto_pad="SAME_LOWER", strides=[2])
    c.add("Conv", [f32(1, 2, 4, 5, 4), f32(3, 2, 2, 3, 2)], pads=[0, 1, 0, 1, 1, 0])
    c.add("ConvTranspose", [f32(1, 2, 3, 3), f32(2, 3, 3, 3)], strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0])
    c.add("MaxPool", [f32(1, 2, 5, 6)], outputs=2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)
    c.add("MaxPool", [f32(1, 1, 7)], kernel_shape=[2], dilations=[3])
    for include in (0, 1):
        c.add("AveragePool", [f32(1, 2, 5, 5)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=include)
    c.add("GlobalAveragePool", [f32(2, 3, 4, 2)])
    c.add("GlobalMaxPool", [f32(2, 3, 4, 2)])
    x = f32(1, 1, 3, 4)
    for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"):
        for mode in ("linear", "cubic"):
            c.add("Resize", [x, None, None, i64(1, 1, 5, 6)], mode=mode, coordinate_transformation_mode=coordinates)
    for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        c.add("Resize", [x, None, None, i64(1, 1, 5, 7)], nearest_mode=nearest)
    c.add("Resize", [x, None, np.float32([0.5, 0.5])], mode="linear", antialias=1, axes=[2, 3])
    c.add("Resize", [x, None, None, i64(2, 6)], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5, axes=[2, 3])
    c.add("QuantizeLinear", [f32(2, 3), np.float32([0.1, 0.2, 0.05]), np.array([1, 2, 3], np.uint8)], axis=1)
    c.add("DequantizeLinear", [np.array([[1, 200], [3, 4]], np.uint8), np.float32(0.5), np.uint8(128)])
    c.add("DynamicQuantizeLinear", [f32(7)], outputs=3)
    c.add("LSTM", [f32(3, 2, 4), f32(1, 12, 4), f32(1, 12, 3), f32(1, 24)], outputs=3, hidden_size=3)
    c.add("GRU", [f32(3, 2, 4), f32(1, 9, 4), f32(1, 9, 3), f32(1, 18)], outputs=2, hidden_size=3, linear_before_reset=1)
    c.add("RNN", [f32(3, 2, 4), f32(1, 3, 4), f32(1, 3, 3)], outputs=2, hidden_size=3)
    c.add("Attention", [f32(1, 2, 3, 4), f32(1, 1, 5, 4), f32(1, 1, 5, 2)], is_causal=1, scale=0.5)
    c.add("NonZero", [np.array([[1, 0], [0, 2]], np.int64)])
    c.add("Compress", [f32(3, 2), np.array([False, True, True])], axis=0)
    c.add("Unique", [np.float32([3, 1, 3, 2])], outputs=4)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for family in (elementwise, moving, summing, windows):
        cases = Cases(folder, family.__name__)
        family(cases)
        print(family.__name__, cases.count)


main()
