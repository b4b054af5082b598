#!/usr/bin/env python3
"""Writes microsoft.cases: nodes of com.microsoft with ONNX Runtime's results (needs numpy, onnx, onnxruntime).

usage: make_microsoft_cases.py [OUT]        microsoft.cases beside this file when omitted

A case is   case NAME / in NAME TYPE NUMBERS, one line an input / out NAME TYPE NUMBERS, one line a result / the graph
in its text form.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as rt
from onnx import TensorProto, helper

NAMES = {np.dtype(np.float32): "float32", np.dtype(np.float16): "float16", np.dtype(np.float64): "float64",
         np.dtype(np.int8): "int8", np.dtype(np.uint8): "uint8", np.dtype(np.int16): "int16", np.dtype(np.uint16): "uint16",
         np.dtype(np.int32): "int32", np.dtype(np.int64): "int64", np.dtype(bool): "bool"}
rng = np.random.RandomState(1)
cases = []


def attr_text(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attr_text(v) for v in value) + "]"
    return str(value)


def numbers(x, between=" "):
    x = np.asarray(x)
    if x.dtype.kind == "f":
        return between.join("%.7g" % v if between == " " or v % 1 else "%.1f" % v for v in x.ravel())
    return between.join(str(int(v)) for v in x.ravel())


def case(op, inputs, outputs=1, domain="com.microsoft", name="", constant=(), **attrs):
    """Adds one node. INPUTS are arrays or None (omitted); OUTPUTS a count or flags of the wanted ones; inputs whose index
    is in CONSTANT are constants of the graph."""
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
    outs = [f"o{k}" if w else "" for k, w in enumerate(wanted)]
    node = helper.make_node(op, names, outs, domain=domain, **attrs)
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, inputs) if x is not None and int(n[1:]) not in constant]
    graph = helper.make_graph([node], "g", info, [helper.make_empty_tensor_value_info(o) for o in outs if o],
                              [onnx.numpy_helper.from_array(inputs[k], f"i{k}") for k in constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    options = rt.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    label = f"{op}{'_' + name if name else ''}"
    try:
        session = rt.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outputs_there = iter(session.run(None, {n: x for n, x in zip(names, inputs) if x is not None and int(n[1:]) not in constant}))
    except Exception as e:
        raise SystemExit(f"{label}: {e}")
    text, inside = [f"case {label}"], ['graph "g" {', '  opset "" 17', '  opset "com.microsoft" 1']
    for k, (n, x) in enumerate(zip(names, inputs)):
        if x is None:
            continue
        kind = f"{NAMES[x.dtype]}[{','.join(map(str, x.shape))}]"
        if k in constant:
            inside.append(f"  const %{n}: {kind} = [{numbers(x, ', ')}]")
        else:
            inside.append(f"  input %{n}: {kind}")
            text.append(f"in {n} {kind} {numbers(x)}".rstrip())
    listed = ", ".join(f"%{n}" if n else "_" for n in names)
    braces = " {" + ", ".join(f"{k} = {attr_text(v)}" for k, v in attrs.items()) + "}" if attrs else ""
    results = ", ".join(f"%{o}: ?" if o else "_" for o in outs)
    inside.append(f"  {results} = {domain + '::' if domain else ''}{op}({listed}){braces}")
    for o in outs:
        if o:
            y = next(outputs_there)
            inside.append(f'  output %{o} as "{o}"')
            text.append(f"out {o} {NAMES[y.dtype]}[{','.join(map(str, y.shape))}] {numbers(y)}".rstrip())
    cases.append("\n".join(text + inside + ["}"]))
    return label


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).round(3).astype(np.float32)


def f16(*shape):
    return f32(*shape).astype(np.float16)


def u8(*shape, high=256):
    return rng.randint(0, high, shape).astype(np.uint8)


def i8(*shape):
    return rng.randint(-128, 128, shape).astype(np.int8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def f(value):
    return np.array(value, np.float32)


def number(dtype, value):
    return np.array(value, dtype)


def activations():
    x, bias = f32(2, 3, 5, scale=2), f32(5)
    for op, inputs, attrs in (("BiasGelu", [x, bias], {}), ("FastGelu", [x], {}), ("FastGelu", [x, bias], {}), ("Gelu", [x], {}),
                              ("QuickGelu", [x], {}), ("QuickGelu", [x], {"alpha": 0.5})):
        case(op, inputs, name=f"{len(inputs)}{'_alpha' if attrs else ''}", **attrs)


def norms():
    x, skip, gamma, beta, bias = f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)
    case("SkipLayerNormalization", [x, skip, gamma])
    case("SkipLayerNormalization", [x, skip, gamma, beta, bias], [True, False, False, True], name="bias_sum", epsilon=1e-5)
    case("SkipLayerNormalization", [x, skip[0], gamma, beta], name="skip_of_rank_2")
    case("SkipLayerNormalization", [x, skip[:1], gamma, beta, bias], 4, name="statistics")
    case("SkipSimplifiedLayerNormalization", [x, skip, gamma])
    case("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], 4, name="all", epsilon=1e-6)
    case("SimplifiedLayerNormalization", [x, gamma], 2, domain="")
    case("SimplifiedLayerNormalization", [x, f32(3, 8)], 2, domain="", name="two_axes", axis=1, epsilon=1e-3)
    ids, segments = rng.randint(0, 7, (2, 4)).astype(np.int32), rng.randint(0, 2, (2, 4)).astype(np.int32)
    words, places, kinds = f32(7, 8), f32(6, 8), f32(2, 8)
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    case("EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta], 2, name="no_segments")
    case("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask], 3, name="mask_sum")
    case("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask, i32(3, 1, 0, 5).reshape(1, 4)], 2,
         name="positions")


def products():
    for name, a, b, attrs in (
            ("plain", (2, 3), (3, 4), {}), ("turned", (3, 2), (4, 3), dict(transA=1, transB=1, alpha=0.5)),
            ("batch", (2, 2, 3, 4), (2, 1, 5, 4), dict(transB=1)), ("batch_axis_first", (3, 2, 4), (2, 4, 5), dict(transBatchA=1)),
            ("batch_axis_first_turned", (3, 2, 4), (2, 3, 5), dict(transBatchA=1, transA=1)),
            ("right_batch_axis_first", (2, 3, 4), (4, 2, 5), dict(transBatchB=1)), ("vectors", (4,), (4,), dict(transA=1, transB=1)),
            ("vector", (2, 4), (4,), dict(transB=1))):
        case("FusedMatMul", [f32(*a), f32(*b)], name=name, **attrs)
    case("TransposeMatMul", [f32(3, 2), f32(3, 4)], transA=1, alpha=2.0)
    a, b, c = f32(3, 4), f32(4, 5), f32(5)
    for name, attrs in (("relu", dict(activation="Relu")), ("leaky", dict(activation="LeakyRelu", activation_alpha=0.3)),
                        ("hard_sigmoid", dict(activation="HardSigmoid", activation_alpha=0.3, activation_beta=0.4)),
                        ("tanh", dict(activation="Tanh", alpha=0.5, beta=2.0)), ("sigmoid", dict(activation="Sigmoid"))):
        case("FusedGemm", [a, b, c], name=name, **attrs)
    case("FusedGemm", [f32(4, 3), f32(5, 4)], name="turned", transA=1, transB=1, activation="Relu")
    x, w, bias = f32(1, 4, 5, 5), f32(6, 2, 3, 3), f32(6)
    case("FusedConv", [x, w, bias], name="relu", activation="Relu", group=2, pads=[1, 1, 1, 1])
    case("FusedConv", [x, w, bias], name="clip", activation="Clip", activation_params=[-0.5, 1.5], group=2, strides=[2, 2])
    case("FusedConv", [x, w, bias], name="leaky", activation="LeakyRelu", activation_params=[0.2], group=2, auto_pad="SAME_UPPER")
    case("FusedConv", [x, w, bias, f32(1, 6, 5, 5)], name="residual", activation="Relu", group=2, pads=[1, 1, 1, 1])
    case("FusedConv", [x, w, None, f32(1, 6, 3, 3)], name="residual_no_bias", activation="HardSigmoid", activation_params=[0.2, 0.5],
         group=2)


def rotary():
    cos, sin = f32(6, 4), f32(6, 4)
    case("RotaryEmbedding", [f32(2, 3, 16), i64(0, 1, 2, 3, 4, 5).reshape(2, 3), cos, sin])
    case("RotaryEmbedding", [f32(2, 3, 16), i64(2), cos, sin], name="first_position", interleaved=1)
    case("RotaryEmbedding", [f32(2, 2, 3, 8), i64(5, 4, 3, 2, 1, 0).reshape(2, 3), cos, sin], name="rank_4")
    case("RotaryEmbedding", [f32(1, 2, 3, 12), i64(1), cos, sin], name="part", rotary_embedding_dim=8, num_heads=2)


def attention():
    x, w, b = f32(2, 3, 6), f32(6, 24), f32(24)
    mask = np.array([[1, 1, 0], [0, 1, 1]], np.int32)
    mask3 = rng.randint(0, 2, (2, 3, 3)).astype(np.int32)
    past = f32(2, 2, 2, 2, 4)
    case("Attention", [x, w, b], num_heads=2)
    case("Attention", [x, w, None], 2, name="present", num_heads=2, scale=0.3)
    case("Attention", [x, w, b, mask], name="mask", num_heads=2)
    case("Attention", [x, w, b, mask3], name="mask_of_rank_3", num_heads=2, mask_filter_value=-50.0)
    case("Attention", [x, w, b, i32(2, 3)], name="ends", num_heads=2)
    case("Attention", [x, w, b, i32(2, 3, 0, 1)], name="ends_and_begins", num_heads=2)
    case("Attention", [x, w, b, mask], name="causal", num_heads=2, unidirectional=1, mask_filter_value=-5.0)
    case("Attention", [x, w, b, None, past], 2, name="past", num_heads=2)
    case("Attention", [x, w, b, None, past], 2, name="past_causal", num_heads=2, unidirectional=1)
    case("Attention", [x, w, b, mask, None, f32(1, 2, 3, 3)], name="bias", num_heads=2)
    case("Attention", [x, f32(6, 28), f32(28)], name="sizes", num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    q, k, v, bias = f32(2, 3, 8), f32(2, 4, 8), f32(2, 4, 12), f32(28)
    padding = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32)
    case("MultiHeadAttention", [q, k, v], num_heads=2)
    case("MultiHeadAttention", [q, k, v, bias, padding], 3, name="bias_padding", num_heads=2)
    case("MultiHeadAttention", [q, k, v, None, i32(3, 4)], name="lengths", num_heads=2, scale=0.4)
    case("MultiHeadAttention", [q, k, v, None, rng.randint(0, 2, (2, 3, 4)).astype(np.int32), f32(1, 1, 3, 4)], name="mask_bias",
         num_heads=2)
    case("MultiHeadAttention", [q, f32(2, 3, 8), f32(2, 3, 12)], name="causal", num_heads=2, unidirectional=1)
    pk, pv = f32(2, 2, 2, 4), f32(2, 2, 2, 4)
    case("MultiHeadAttention", [q, f32(2, 3, 8), f32(2, 3, 8), f32(24), None, None, pk, pv], 3, name="past", num_heads=2, unidirectional=1)
    case("MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], name="cross", num_heads=2)
    case("MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4), f32(24)], name="cross_bias", num_heads=2)
    case("QAttention", [u8(2, 3, 6), i8(6, 24), f32(24), f(0.02), f(0.01), mask, number(np.uint8, 120), number(np.int8, 3)], name="mask",
         num_heads=2)
    case("QAttention", [u8(2, 3, 6), u8(6, 24), f32(24), f(0.02), f32(24, scale=0.01), None, number(np.uint8, 128), u8(24, high=9), past], 2,
         name="columns_past", num_heads=2, unidirectional=1)


def group_attention():
    heads = dict(num_heads=4, kv_num_heads=2)
    q, k, v, cos, sin = f32(1, 3, 64), f32(1, 3, 32), f32(1, 3, 32), f32(16, 8), f32(16, 8)
    pk, pv = f32(1, 2, 4, 16), f32(1, 2, 4, 16)
    op = "GroupQueryAttention"
    case(op, [q, k, v, None, None, i32(2), number(np.int32, 3)], 3, name="prompt", **heads)
    case(op, [q, k, v, f32(1, 2, 0, 16), f32(1, 2, 0, 16), i32(2), number(np.int32, 3), cos, sin], 3, name="empty_past", do_rotary=1, **heads)
    case(op, [q[:, :1], k[:, :1], v[:, :1], pk, pv, i32(4), number(np.int32, 5), cos, sin], 3, name="token", do_rotary=1, **heads)
    chunk = [q, k, v, pk, pv, i32(6), number(np.int32, 7)]
    case(op, chunk + [cos, sin], 3, name="chunk", do_rotary=1, rotary_interleaved=1, **heads)
    case(op, chunk + [cos, sin, i64(1, 3, 5).reshape(1, 3)], 3, name="positions", do_rotary=1, **heads)
    case(op, [np.concatenate([q, k, v], -1), None, None] + chunk[3:] + [cos, sin], 3, name="packed", do_rotary=1, **heads)
    case(op, chunk, 3, name="window", local_window_size=3, **heads)
    case(op, chunk, 3, name="softcap", softcap=0.5, scale=0.9, **heads)
    case(op, chunk, 3, name="smooth", smooth_softmax=1, **heads)
    case(op, chunk + [None, None, None, None, f32(4)], 3, name="sink", **heads)
    case(op, chunk + [None, None, None, f32(1, 1, 3, 7)], 3, name="bias", **heads)
    case(op, [q[:, :1], k[:, :1], v[:, :1], f32(1, 2, 8, 16), f32(1, 2, 8, 16), i32(4), number(np.int32, 5)], 3, name="buffer", **heads)
    case(op, [f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), f32(2, 2, 4, 16), f32(2, 2, 4, 16), i32(2, 4), number(np.int32, 5), cos, sin], 3,
         name="lengths", do_rotary=1, **heads)
    case(op, [q, k, v, None, None, i32(2), number(np.int32, 3)], 3, name="not_causal", causal=0, **heads)


def blocks():
    for bits in (2, 4, 8):
        n, depth, block = 3, 40, 16
        each, count = block * bits // 8, 3
        zero_row = -(-count * bits // 8)
        attrs = dict(K=depth, N=n, bits=bits, block_size=block)
        a, b, scales = f32(2, 2, depth), u8(n, count, each), f32(n, count)
        case("MatMulNBits", [a, b, scales], name=f"{bits}_bits", constant=(1, 2), **attrs)
        case("MatMulNBits", [a, b, scales, u8(n, zero_row)], name=f"{bits}_bits_zeros", constant=(1, 2, 3), **attrs)
    attrs = dict(K=40, N=3, bits=4, block_size=16)
    case("MatMulNBits", [a, u8(3, 3, 8), scales, f32(3, 3, scale=5)], name="float_zeros", constant=(1, 2, 3), **attrs)
    case("MatMulNBits", [a, u8(3, 3, 8), scales, None, None, f32(3)], name="bias", constant=(1, 2, 5), **attrs)
    case("MatMulNBits", [f32(1, 40), u8(3, 3, 8), scales, None, rng.randint(0, 3, 40).astype(np.int32)], name="groups",
         constant=(1, 2, 4), **attrs)
    for bits in (4, 8):
        data, scales = u8(5, 32 * bits // 8), f32(5, 2)
        indices = i64(4, -1, 0, 2).reshape(2, 2)
        case("GatherBlockQuantized", [data, indices, scales], name=f"{bits}_bits", constant=(0, 2), bits=bits, block_size=16)
        case("GatherBlockQuantized", [data, indices, scales, u8(5, 2 * bits // 8)], name=f"{bits}_bits_zeros", constant=(0, 2, 3), bits=bits,
             block_size=16)


def quantised():
    x, y = u8(2, 3, 4), i8(2, 3, 4)
    zero_u, zero_i = number(np.uint8, 120), number(np.int8, -3)
    case("QuantizeLinear", [f32(2, 3, scale=20), f(0.2), number(np.uint8, 100)])
    case("QuantizeLinear", [f32(2, 3, scale=20), f32(3) + 3, i8(3)], name="axis", axis=1)
    case("QuantizeLinear", [f32(2, 3, scale=2000), f(0.2), number(np.int16, 100)], name="int16")
    case("DequantizeLinear", [x, f(0.2), zero_u])
    case("DequantizeLinear", [y, f32(3), i8(3)], name="axis", axis=1)
    for op in ("QLinearAdd", "QLinearMul"):
        case(op, [x, f(0.02), zero_u, u8(4), f(0.03), number(np.uint8, 9), f(0.05), number(np.uint8, 60)], name="uint8")
        case(op, [y, f(0.02), zero_i, i8(3, 1), f(0.03), number(np.int8, 0), f(0.04), number(np.int8, 7)], name="int8")
    for op, attrs in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", dict(alpha=0.1))):
        case(op, [x, f(0.05), zero_u, f(0.01), number(np.uint8, 3)], name="uint8", **attrs)
        case(op, [y, f(0.05), zero_i, f(0.04), None], name="int8", **attrs)
    case("QLinearSoftmax", [x, f(0.1), zero_u, f(1 / 256), number(np.uint8, 0)], name="opset_13", axis=1, opset=13)
    case("QLinearSoftmax", [y, f(0.1), zero_i, f(1 / 256), number(np.int8, -128)], name="opset_12", axis=1, opset=12)
    case("QLinearWhere", [np.array([[True], [False]]).reshape(2, 1, 1), x, f(0.02), zero_u, u8(4), f(0.03), number(np.uint8, 9), f(0.05),
                          number(np.uint8, 60)])
    case("QLinearConcat", [f(0.05), number(np.uint8, 60), x, f(0.02), zero_u, u8(2, 1, 4), f(0.07), number(np.uint8, 9)], axis=1)
    image = u8(1, 3, 5, 6)
    last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    for name, data, flag in (("first", image, 0), ("last", last, 1)):
        case("QLinearGlobalAveragePool", [data, f(0.02), zero_u, f(0.01), number(np.uint8, 100)], name=name, channels_last=flag)
        case("QLinearAveragePool", [data, f(0.02), zero_u, f(0.015), number(np.uint8, 110)], name=name, channels_last=flag, kernel_shape=[2, 3],
             strides=[1, 2], pads=[1, 1, 0, 1])
        weights = i8(4, 3, 2, 2)
        case("QLinearConv", [data, f(0.02), zero_u, weights, f32(4, scale=0.01) ** 2, np.zeros(4, np.int8), f(0.003), number(np.uint8, 128),
                             i32(10, -20, 30, 5)], name=name, channels_last=flag, strides=[2, 1], pads=[0, 1, 0, 0])
    case("NhwcMaxPool", [last], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)


def integers():
    a, b = f32(2, 3, 6), i8(6, 4)
    case("DynamicQuantizeMatMul", [a, b, f(0.02)], name="tensor")
    case("DynamicQuantizeMatMul", [a, u8(6, 4), np.abs(f32(4, scale=0.02)), u8(4), f32(4)], name="columns")
    case("MatMulIntegerToFloat", [u8(2, 6), b, f(0.1), f(0.02), number(np.uint8, 100), number(np.int8, 4), f32(4)], name="all")
    case("MatMulIntegerToFloat", [i8(2, 6), b, f(0.1), np.abs(f32(4, scale=0.02))], name="columns")
    op, a8 = "QGemm", u8(3, 6)
    case(op, [a8, f(0.1), number(np.uint8, 100), b, f(0.02), number(np.int8, 4)], name="float")
    case(op, [a8, f(0.1), number(np.uint8, 100), b, f(0.02), number(np.int8, 4), i32(100, -900, 50, 3), f(0.4), number(np.uint8, 128)],
         name="bytes", alpha=0.5)
    case(op, [np.ascontiguousarray(a8.T), f(0.1), number(np.uint8, 100), np.ascontiguousarray(b.T), np.abs(f32(4, scale=0.02)), i8(4), None, f(0.4),
              number(np.uint8, 128)], name="turned", transA=1, transB=1)


def recurrent():
    def weights(directions, inputs, hidden, dtype, columns=False):
        make = i8 if dtype == np.int8 else u8
        count = (directions, 4 * hidden) if columns else (directions,)
        zeros = np.full(count, 0 if columns else 3 if dtype == np.int8 else 128, dtype)
        return [make(directions, inputs, 4 * hidden), make(directions, hidden, 4 * hidden)], [
            np.abs(f32(*count, scale=0.004)) + np.float32(0.001), zeros, np.abs(f32(*count, scale=0.004)) + np.float32(0.001), zeros]

    op, x = "DynamicQuantizeLSTM", f32(5, 2, 6)
    constant = (1, 2, 8, 9, 10, 11)
    for name, directions, dtype, attrs in (("forward", 1, np.int8, {}), ("reverse", 1, np.uint8, dict(direction="reverse")),
                                           ("bidirectional", 2, np.uint8, dict(direction="bidirectional"))):
        both, scales = weights(directions, 6, 4, dtype)
        case(op, [x, *both, f32(directions, 32), None, f32(directions, 2, 4), f32(directions, 2, 4), None, *scales], 3, name=name,
             constant=constant, hidden_size=4, **attrs)
    both, scales = weights(1, 6, 4, np.int8, columns=True)
    case(op, [x, *both, None, None, None, None, None, *scales], [True, False, True], name="columns", constant=constant, hidden_size=4)
    both, scales = weights(1, 6, 4, np.int8)
    case(op, [x, *both, f32(1, 32), i32(5, 2), None, None, None, *scales], 3, name="lengths", constant=constant, hidden_size=4)
    case(op, [x, *both, f32(1, 32), None, None, None, f32(1, 12), *scales], 3, name="peepholes", constant=constant, hidden_size=4)
    case(op, [x, *both, f32(1, 32), None, None, None, None, *scales], 3, name="clip", constant=constant, hidden_size=4, clip=0.5)


def plain():
    case("Trilu", [f32(3, 4)])
    case("Trilu", [f32(2, 3, 4), number(np.int64, -1)], name="lower", upper=0)
    case("Range", [f(1.0), f(4.0), f(0.5)], constant=(0, 1, 2))
    case("Range", [number(np.int64, 2), number(np.int64, 6)], name="no_delta", constant=(0, 1))
    case("GatherND", [f32(3, 4, 2), i64(0, 1, 2, 3).reshape(2, 2)])
    case("ExpandDims", [f32(3, 4), number(np.int32, -1)], constant=(1,))
    case("Pad", [f32(2, 3), i64(1, 0, 0, 2), f(1.5)], constant=(1,))
    case("Pad", [f32(2, 3), i64(0, 1, 1, 1)], name="reflect", mode="reflect", constant=(1,))
    case("GridSample", [f32(1, 2, 4, 4), f32(1, 3, 3, 2)])
    case("GridSample", [f32(1, 2, 4, 4), f32(1, 3, 3, 2)], name="cubic", mode="bicubic", align_corners=1)
    case("Inverse", [f32(2, 3, 3)])
    case("Unique", [np.array([2, 1, 1, 3, 2], np.float32)], 3)
    case("CDist", [f32(3, 4), f32(2, 4)], metric="euclidean")
    case("CDist", [f32(3, 4), f32(2, 4)], name="squared", metric="sqeuclidean")
    case("NhwcMaxPool", [u8(1, 4, 5, 2)], name="uint8", kernel_shape=[2, 3], pads=[0, 1, 0, 1])
    case("UnfoldTensor", [f32(2, 7)], size=3)
    case("UnfoldTensor", [f32(2, 6, 3)], name="middle", dim=1, size=2, step=3)
    case("UnfoldTensor", [i64(1, 2, 3, 4, 5, 6, 7)], name="one_axis", dim=-1, size=4, step=2)


def main():
    for family in (activations, norms, products, rotary, attention, group_attention, blocks, quantised, integers, recurrent, plain):
        family()
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "microsoft.cases")
    with open(out, "w", encoding="utf-8") as file:
        file.write("# Made by make_microsoft_cases.py.\n" + "\n".join(cases) + "\n")


if __name__ == "__main__":
    main()
