#!/usr/bin/env python3
"""Writes the .cases files of this folder: small nodes with results of the ONNX reference evaluator, and of ONNX Runtime
for operators of ai.onnx.ml (needs onnx, numpy, onnxruntime).

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


def element_type(x):
    dtype = np.asarray(x).dtype
    return TensorProto.STRING if dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(dtype)


def onnxruntime(model, feeds):
    import onnxruntime
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


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

    def add(self, op, inputs, outputs=1, opset=OPSET, domain="", by=None, **attrs):
        """One node; an input of None is omitted, outputs is a count or a list of wanted flags. `by` runs the model."""
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
        outs = [f"o{k}" if w else "" for k, w in enumerate(wanted)]
        node = helper.make_node(op, names, outs, domain=domain, **attrs)
        info = [helper.make_tensor_value_info(n, element_type(x), np.asarray(x).shape)
                for n, x in zip(names, inputs) if x is not None]
        graph = helper.make_graph([node], "g", info, [helper.make_empty_tensor_value_info(o) for o in outs if o])
        sets = [helper.make_opsetid("", opset if not domain else 21)] + ([helper.make_opsetid(domain, opset)] if domain else [])
        model = helper.make_model(graph, opset_imports=sets, **({"ir_version": 10} if by else {}))
        feeds = {n: x for n, x in zip(names, inputs) if x is not None}
        with np.errstate(all="ignore"):
            results = iter(by(model, feeds) if by else ReferenceEvaluator(model).run(None, feeds))
        self.count += 1
        self.file.write(f"case {op}_{self.count}\nop {domain + '::' if domain else ''}{op}\n")
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


def signal(c):
    for n in (1, 6, 7, 8, 37, 60):
        c.add("DFT", [f32(2, n, 1), None, np.int64(1)])
        c.add("DFT", [f32(n, 2, 2), None, np.int64(-3)], inverse=1)
        c.add("DFT", [f32(2, n, 1).astype(np.float64), np.int64(n + 2)], onesided=1)
        c.add("DFT", [f32(2, n // 2 + 1, 2), np.int64(n)], onesided=1, inverse=1)
    c.add("DFT", [f32(1, 4, 1).astype(np.float16), np.int32(3)])
    for onesided in (0, 1):
        c.add("STFT", [f32(2, 20, 1), np.int64(5), f32(6)], onesided=onesided)
        c.add("STFT", [f32(2, 20, 1), np.int64(5), None, np.int64(7)], onesided=onesided)
    c.add("STFT", [f32(1, 20, 2), np.int32(4), f32(8), np.int32(8)], onesided=0)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            c.add(op, [np.int64(7)], periodic=periodic)
        c.add(op, [np.int32(4)], output_datatype=TensorProto.DOUBLE)
    c.add("MelWeightMatrix", [np.int64(8), np.int64(64), np.int64(8192), np.float32(100), np.float32(4096)])


def loss(c):
    scores, labels = f32(2, 3, 2), np.array([[0, 2], [1, 1]])
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for reduction in ("none", "sum", "mean"):
            c.add(op, [scores, labels], reduction=reduction)
            c.add(op, [scores, labels, np.abs(f32(3))], reduction=reduction, ignore_index=1)
        c.add(op, [f32(3, 4), np.array([0, -5, 3], np.int32)], ignore_index=-5)
    c.add("SoftmaxCrossEntropyLoss", [scores, labels], outputs=2)


def sampling(c):
    x, grid = f32(1, 2, 3, 4), 1.3 * f32(1, 2, 3, 2)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                c.add("GridSample", [x, grid], mode=mode, padding_mode=padding, align_corners=corners)
        c.add("GridSample", [f32(1, 1, 3, 2, 3), f32(1, 2, 1, 2, 3)], mode=mode)
    for corners in (0, 1):
        c.add("AffineGrid", [f32(1, 2, 3), i64(1, 1, 3, 2)], align_corners=corners)
        c.add("AffineGrid", [f32(2, 3, 4), i64(2, 1, 2, 3, 2)], align_corners=corners)
    rois = np.float32([[0, 1, 3, 4], [-9, -9, 20, 20], [2, 2, 2.5, 2.25]])
    for mode in ("avg", "max"):
        for ratio in (0, 2):
            for shift in ("half_pixel", "output_half_pixel"):
                c.add("RoiAlign", [f32(2, 2, 5, 4), rois, i64(1, 0, 1)], mode=mode, sampling_ratio=ratio, output_height=2,
                      output_width=3, spatial_scale=0.5, coordinate_transformation_mode=shift)
    c.add("Col2Im", [f32(1, 8, 12), i64(4, 5), i64(2, 2)])
    c.add("Col2Im", [f32(1, 4, 6), i64(3, 4), i64(2, 2)], pads=[1, 0, 0, 0], strides=[1, 1], dilations=[2, 1])
    c.add("Col2Im", [np.arange(24, dtype=np.int32).reshape(1, 4, 6), i64(5, 4), i64(2, 2)], strides=[2, 1])
    c.add("DeformConv", [f32(1, 4, 5, 4), f32(6, 2, 2, 2), f32(1, 16, 4, 3), f32(6), f32(1, 8, 4, 3)], group=2, offset_group=2)
    c.add("DeformConv", [f32(1, 1, 5, 5), f32(2, 1, 3, 2), f32(1, 12, 3, 2)], strides=[2, 2], pads=[1, 0, 1, 0],
          dilations=[1, 2])
    places = np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2)
    c.add("MaxUnpool", [f32(1, 1, 2, 2), places], kernel_shape=[2, 2], strides=[2, 2])
    c.add("MaxUnpool", [f32(1, 1, 2, 2), places, i64(1, 1, 5, 6)], kernel_shape=[2, 2], strides=[2, 2])
    c.add("CenterCropPad", [f32(5, 2, 4), i64(2, 5)], axes=[0, -2])
    c.add("Det", [f32(2, 3, 3)])
    c.add("Det", [np.float32([[1, 2], [2, 4]])])
    for time in (0, 1):
        c.add("ReverseSequence", [f32(3, 3, 2), i64(3, 0, 2)], time_axis=time, batch_axis=1 - time)
    c.add("TensorScatter", [f32(2, 4, 3), f32(2, 2, 3), i64(2, 0)])
    c.add("TensorScatter", [f32(2, 1, 4), f32(2, 1, 3), i64(3, 5)], axis=2, mode="circular")
    c.add("BitCast", [f32(3)], to=TensorProto.INT32, opset=26)
    c.add("BitCast", [np.array([-1, 1], np.int8)], to=TensorProto.UINT8, opset=26)


def texts(*values):
    return np.array(values, object)


def text_operators(c):
    c.add("StringConcat", [texts("a", "ü"), np.array([["b"], [""]], object)])
    for delimiter, most in ((None, None), (None, 1), (",", None), (",", 2), ("ab", None), (",", 0)):
        attrs = {k: v for k, v in (("delimiter", delimiter), ("maxsplit", most)) if v is not None}
        c.add("StringSplit", [texts("a,b,,c", "", "  x  y z ", ",", "xababy", "a\tb\n c\u2003d")], outputs=2, **attrs)
    c.add("StringSplit", [np.zeros((2, 0), object)], outputs=2)
    words = texts("monday", "Tuesday", "WEDNESDAY", "thürsday", "ÀB")
    for action in ("NONE", "LOWER", "UPPER"):
        c.add("StringNormalizer", [words[:3]], case_change_action=action, stopwords=["tuesday", "monday"], is_case_sensitive=1)
        c.add("StringNormalizer", [words[None, :3]], case_change_action=action, stopwords=["tuesday"], is_case_sensitive=0,
              by=lambda *_: [np.array([[f(w) for w in words[:3] if w != "Tuesday"]], object)
                             for f in [{"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]]])
        c.add("StringNormalizer", [words], case_change_action=action,
              by=lambda *_: [np.array([{"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action](w) for w in words], object)])
    c.add("StringNormalizer", [texts("a", "a")], stopwords=["a"], is_case_sensitive=1)
    c.add("StringNormalizer", [texts("a")[None]], stopwords=["a"], is_case_sensitive=1)
    c.add("RegexFullMatch", [texts("ab1", "ab", "1ab1", "ä2")], pattern="\\w+[0-9]|.[0-9]")
    grams = dict(max_gram_length=2, min_gram_length=1, ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 4, 3])
    for mode in ("TF", "IDF", "TFIDF"):
        for skip in (0, 1):
            c.add("TfIdfVectorizer", [np.array([[2, 3, 5, 2, 3], [3, 5, 9, 5, 5]], np.int64)], mode=mode, max_skip_count=skip,
                  pool_int64s=[2, 3, 5, 2, 3, 3, 5], weights=[0.5, 0.25, 2.0, 4.0, 8.0], by=onnxruntime, opset=21, **grams)
    c.add("TfIdfVectorizer", [texts("b", "c", "x", "b")], mode="TF", max_skip_count=0,
          pool_strings=["a", "b", "c", "a", "b", "b", "c"], **grams)


TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def forest(trees, features, prefix, ids):
    """Complete trees of depth 2, one vote a leaf."""
    modes = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
    nodes = [(t, i, i >= 3) for t in range(trees) for i in range(7)]
    leaves = [(t, i) for t, i, leaf in nodes if leaf]
    return {"nodes_treeids": [t for t, _, _ in nodes], "nodes_nodeids": [i for _, i, _ in nodes],
            "nodes_featureids": [0 if leaf else int(rng.integers(features)) for _, _, leaf in nodes],
            "nodes_values": [0.0 if leaf else float(f32()) for _, _, leaf in nodes],
            "nodes_modes": ["LEAF" if leaf else modes[t % 4] for t, _, leaf in nodes],
            "nodes_truenodeids": [0 if leaf else 2 * i + 1 for _, i, leaf in nodes],
            "nodes_falsenodeids": [0 if leaf else 2 * i + 2 for _, i, leaf in nodes],
            "nodes_missing_value_tracks_true": [int(not leaf and i % 2) for _, i, leaf in nodes],
            prefix + "_treeids": [t for t, _ in leaves], prefix + "_nodeids": [i for _, i in leaves],
            prefix + "_ids": [ids[k % len(ids)] for k in range(len(leaves))],
            prefix + "_weights": [float(f32()) for _ in leaves]}


def machine_learning(c):
    def add(op, inputs, outputs=1, opset=5, by=onnxruntime, **attrs):
        c.add(op, inputs, outputs, opset, "ai.onnx.ml", by, **attrs)

    def floats(*shape):
        return [float(v) for v in np.asarray(f32(*shape)).ravel()]

    x = f32(4, 3)
    words = np.array([["a", "b"], ["zz", "a"]], object)
    add("ArrayFeatureExtractor", [x, np.array([[2, 0]])])
    add("ArrayFeatureExtractor", [x[0], np.array([1, 1, 2])])
    add("ArrayFeatureExtractor", [words, np.array([1])])
    add("Binarizer", [x], threshold=0.25)
    add("Binarizer", [np.array([1, 2, 3])], threshold=1.5, by=None)
    add("FeatureVectorizer", [x, x], inputdimensions=[2, 4])
    add("Imputer", [np.where(x > 0, np.nan, x).astype(np.float32)], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    add("Imputer", [np.array([[2**62 + 1, 0], [0, 5]])], imputed_value_int64s=[7], replaced_value_int64=0)
    for norm in ("MAX", "L1", "L2"):
        add("Normalizer", [np.concatenate([x, x[:1] * 0, -np.abs(x[:1])])], norm=norm)
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        add("Scaler", [(x * 3).astype(dtype)], offset=floats(3), scale=floats(3))
    add("CategoryMapper", [words], cats_int64s=[1, 2], cats_strings=["a", "b"], default_int64=-7)
    add("CategoryMapper", [np.array([1, 9])], cats_int64s=[1, 2], cats_strings=["a", "b"], default_string="none")
    add("LabelEncoder", [words], keys_strings=["a", "b"], values_int64s=[4, 5], default_int64=-9)
    add("LabelEncoder", [words], keys_strings=["a", "b"], values_strings=["x", "y z"])
    add("LabelEncoder", [np.float32([np.nan, 1, 2])], keys_floats=[1.0, float("nan")], values_strings=["x", "y"])
    add("LabelEncoder", [np.array([1, 2, 3])], keys_int64s=[1, 2], values_floats=[4.0, 5.0])
    for keys, values in ((np.int16, np.float64), (np.int32, np.int16), (np.float64, np.int64)):
        add("LabelEncoder", [np.array([1, 2, 3], keys)], by=lambda *_: [np.array([10, 20, 5], values)],
            **{k: onnx.numpy_helper.from_array(v) for k, v in (("keys_tensor", np.array([1, 2], keys)), (
                "values_tensor", np.array([10, 20], values)), ("default_tensor", np.array([5], values)))})
    add("OneHotEncoder", [x * 2], cats_int64s=[-1, 0, 2])
    add("OneHotEncoder", [words], cats_strings=["b", "zz", "a"], zeros=0)
    for transform in TRANSFORMS:
        add("LinearClassifier", [x], 2, coefficients=floats(3, 3), intercepts=floats(3), classlabels_strings=["a", "b", "c"], post_transform=transform)
        add("LinearRegressor", [x], coefficients=floats(2, 3), intercepts=floats(2), targets=2, post_transform=transform)
        add("LinearRegressor", [x], coefficients=floats(1, 3), post_transform=transform)
        if transform != "PROBIT":
            add("LinearClassifier", [x], 2, coefficients=floats(1, 3), intercepts=floats(1), classlabels_ints=[4, 3], post_transform=transform)
            add("TreeEnsembleClassifier", [x], 2, opset=3, classlabels_int64s=[3, 8], post_transform=transform, base_values=[0.5],
                **forest(3, 3, "class", [0]))
        add("TreeEnsembleClassifier", [x], 2, opset=3, classlabels_strings=["a", "b", "c"], post_transform=transform,
            base_values=floats(3), **forest(4, 3, "class", [0, 1, 2, 1]))
        add("TreeEnsembleRegressor", [x], opset=3, n_targets=2, post_transform=transform, **forest(3, 3, "target", [0, 1]))
        for probabilities in (False, True):
            pairs = {"prob_a": floats(3), "prob_b": floats(3)} if probabilities else {}
            add("SVMClassifier", [x], 2, support_vectors=floats(5, 3), coefficients=floats(2, 5), rho=floats(3), kernel_params=[0.5, 0.25, 2.0],
                kernel_type="RBF", vectors_per_class=[2, 1, 2], classlabels_ints=[7, 8, 9], post_transform=transform, **pairs)
    add("SVMClassifier", [x], 2, support_vectors=floats(3, 3), coefficients=floats(1, 3), rho=floats(1), kernel_params=[0.5, 0.25, 2.0],
        kernel_type="POLY", vectors_per_class=[2, 1], classlabels_strings=["no", "yes"])
    add("SVMClassifier", [x], 2, coefficients=floats(3, 3), rho=floats(1), kernel_params=[0.0, 0.0, 0.0], classlabels_ints=[7, 8, 9])
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        for one_class in (0, 1):
            add("SVMRegressor", [x], coefficients=floats(4), support_vectors=floats(4, 3), n_supports=4, rho=floats(1), kernel_type=kernel,
                kernel_params=[0.5, 0.25, 2.0], one_class=one_class)
    holes = np.where(rng.random(x.shape) < 0.3, np.nan, x).astype(np.float32)
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        add("TreeEnsembleRegressor", [holes], opset=3, n_targets=1, aggregate_function=aggregate, **forest(4, 3, "target", [0]))
    for number in range(4):
        for dtype in (np.float32, np.float64):
            tensors = {"nodes_modes": np.array([0, 4, 6, 1, 6], np.uint8), "nodes_splits": np.array([0.1, 2, 0, 0.3, 0], dtype),
                       "leaf_weights": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.7], dtype),
                       "membership_values": np.array([1, -1, np.nan, 2, np.nan], dtype)}
            add("TreeEnsemble", [np.round(x * 2).astype(dtype)], n_targets=2, aggregate_function=number, tree_roots=[0, 2],
                nodes_featureids=[0, 1, 2, 1, 0], nodes_truenodeids=[1, 0, 3, 3, 5], nodes_trueleafs=[0, 1, 0, 1, 1],
                nodes_falsenodeids=[2, 1, 4, 4, 6], nodes_falseleafs=[1, 1, 0, 1, 1], leaf_targetids=[0, 1, 0, 1, 0, 1, 1],
                **{k: onnx.numpy_helper.from_array(v) for k, v in tensors.items()})


def training(c):
    def add(op, tensors, states, dtype, t, **attrs):
        shapes = [(2, 3), (4,)][:tensors]
        groups = [[f32(*s).astype(dtype) for s in shapes] for _ in range(2)] + [[np.abs(f32(*s)).astype(dtype) for s in shapes] for _ in range(states)]
        c.add(op, [dtype(0.1), np.int64(t)] + [x for g in groups for x in g], tensors * (1 + states), 1, "ai.onnx.preview.training",
              by=lambda model, feeds: [r.astype(dtype) for r in ReferenceEvaluator(model).run(None, feeds)], **attrs)

    for tensors in (1, 2):
        for t in (0, 3):
            add("Adagrad", tensors, 1, np.float32, t, norm_coefficient=0.001, epsilon=1e-5, decay_factor=0.1)
            add("Adam", tensors, 2, np.float32, t, norm_coefficient=0.001, alpha=0.95, beta=0.85, epsilon=1e-2, norm_coefficient_post=0.1)
            for mode in ("standard", "nesterov"):
                add("Momentum", tensors, 1, np.float32, t, norm_coefficient=0.001, alpha=0.95, beta=0.1, mode=mode)
    add("Adagrad", 1, 1, np.float64, 1)


def stateful(c):
    rules = (("linear", 0, 0), ("gated", 1, 0), ("delta", 0, 1), ("gated_delta", 1, 1))
    for rule, gated, delta in rules:
        for decays, betas, past in ((2, 2, False), (6, 1, True)):
            c.add("LinearAttention", [f32(2, 3, 12), f32(2, 3, 6), f32(2, 3, 4), f32(2, 2, 3, 2) if past else None,
                                      -np.abs(f32(2, 3, decays)) if gated else None, np.abs(f32(2, 3, betas)) if delta else None],
                  2, 27, q_num_heads=4, kv_num_heads=2, update_rule=rule, scale=0.0 if past else 0.5)
    c.add("LinearAttention", [f32(1, 2, 3).astype(np.float16) for _ in range(3)], 2, 27, q_num_heads=1, kv_num_heads=1, update_rule="linear")
    for length in (1, 5):
        for past in (False, True):
            for activation in ("none", "silu", "swish"):
                c.add("CausalConvWithState", [f32(2, 3, length), f32(3, 1, 4), f32(3) if past else None, f32(2, 3, 3) if past else None],
                      2, 27, activation=activation)
    c.add("CausalConvWithState", [f32(1, 2, 3), f32(2, 1, 1)], 2, 27)
    c.add("Softmax", [f32(2, 9).astype(np.float16)])
    c.add("LogSoftmax", [f32(2, 9).astype(np.float16)])
    c.add("Attention", [f32(1, 2, 3, 4).astype(np.float16), f32(1, 1, 5, 4).astype(np.float16), f32(1, 1, 5, 2).astype(np.float16)], 1, 25,
          is_causal=1, softcap=2.0)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for family in (elementwise, moving, summing, windows, signal, loss, sampling, text_operators, machine_learning, training, stateful):
        cases = Cases(folder, family.__name__)
        family(cases)
        print(family.__name__, cases.count)


main()
