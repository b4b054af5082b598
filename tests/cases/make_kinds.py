#!/usr/bin/env python3
"""Writes kinds/*.graph: for a case, the variants of its kind, as one graph in the text form each.

usage: make_kinds.py [FOLDER]       kinds/ beside this file when omitted

random_graphs --text judges them: the graph as it is on the reference kernels against the optimised one on the usual ones,
and through the exporter and back. kinds.tsv says for each case which of them, and which tests beside the code, cover it.
"""
import itertools
import os
import sys


BY_CAST = {"float16": 10, "int4": 22, "uint4": 21}


class Graph:
    def __init__(self, case, wild=False):
        self.case, self.wild = case, wild
        self.lines, self.outputs, self.count = [], [], 0

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def input(self, dims, dtype="float32"):
        name = self.fresh()
        self.lines.insert(sum(line.startswith("input") for line in self.lines), f"input {name}: {dtype}[{','.join(map(str, dims))}]")
        return name

    def const(self, values, dims=None, dtype="int64"):
        name = self.fresh()
        dims = [len(values)] if dims is None else dims
        if dtype in BY_CAST:  # the text form has their bits in base64
            return self.node("Cast", self.const(values, dims, "float32" if dtype == "float16" else "int8"), to=BY_CAST[dtype])
        text = ", ".join(repr(float(v)) if dtype.startswith("f") else str(int(v)) for v in values)
        self.lines.append(f"const {name}: {dtype}[{','.join(map(str, dims))}] = [{text}]")
        return name

    def weights(self, dims, dtype="float32", step=0.37):
        count = 1
        for d in dims:
            count *= d
        return self.const([round(((i * step + 0.11) % 2.0) - 1.0, 3) for i in range(count)], dims, dtype)

    def node(self, op, *operands, results=1, region="", **attributes):
        names = [self.fresh() for _ in range(results)]
        text = ", ".join(f"{k} = {form(v)}" for k, v in attributes.items())
        self.lines.append(f"{', '.join(names)} = {op}({', '.join(o or '_' for o in operands)})" + (f" {{{text}}}" if text else "") + region)
        return names[0] if results == 1 else names

    def output(self, *names):
        self.outputs += names

    def write(self, folder, number):
        with open(os.path.join(folder, f"{self.case}.graph"), "w", encoding="utf-8") as file:
            file.write(f"# seed {number}{' wild' if self.wild else ' written'}: variants of case {self.case}, by make_kinds.py\n")
            file.write('graph "kinds" {\n  opset "" 28\n' + "".join(f"  {line}\n" for line in self.lines))
            file.write("".join(f'  output {name} as "y{i}"\n' for i, name in enumerate(self.outputs)) + "}\n")


def form(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(form(v) for v in value) + "]"
    return repr(value)


def pad_before_window(g):
    x, w = g.input([1, 2, 5, 5]), g.weights([3, 2, 3, 3])
    wide = g.weights([3, 4, 3, 3])
    zero, half = g.const([0], [], "float32"), g.const([0.5], [], "float32")
    spatial, channels = [0, 0, 1, 1, 0, 0, 1, 2], [0, 1, 0, 0, 0, 1, 0, 0]
    for mode, value in [("constant", None), ("constant", zero), ("constant", half), ("edge", None), ("reflect", None), ("wrap", None)]:
        for conv_pads in ([0, 0, 0, 0], [1, 0, 0, 1]):
            g.output(g.node("Conv", g.node("Pad", x, g.const(spatial), value, mode=mode), w, pads=conv_pads))
        for pool in ("MaxPool", "AveragePool"):
            g.output(g.node(pool, g.node("Pad", x, g.const(spatial), value, mode=mode), kernel_shape=[3, 3]))
    g.output(g.node("Conv", g.node("Pad", x, g.const(channels), zero), wide))
    g.output(g.node("Conv", g.node("Pad", x, g.const([-1, 0, 0, 1]), zero, g.const([-2, -1])), w))
    shared = g.node("Pad", x, g.const(spatial), zero)
    g.output(shared, g.node("Conv", shared, w))


def same_convolutions(g):
    for rank, kernel, dilation, stride, auto in itertools.product((1, 2), (2, 3), (1, 2, 3), (1, 2), ("SAME_UPPER", "SAME_LOWER", "VALID")):
        x, w = g.input([1, 2] + [9, 7][:rank]), g.weights([4, 2] + [kernel] * rank)
        y = g.node("Conv", x, w, auto_pad=auto, dilations=[dilation] * rank, strides=[stride] * rank)
        g.output(g.node("Relu", y))


def transposed_convolutions(g):
    for kernel, stride, auto, dilation in itertools.product((1, 2, 3, 4), (1, 2, 3), ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"), (1, 2)):
        x, w = g.input([1, 2, 3, 4]), g.weights([2, 3, kernel, kernel])
        y = g.node("ConvTranspose", x, w, g.weights([3]), auto_pad=auto, strides=[stride, stride], dilations=[dilation, dilation])
        g.output(g.node("Add", y, g.weights([1, 3, 1, 1])))


def reshapes(g):
    targets = [[0, -1], [-1, 0, 1], [0, 3, -1], [6, 4], [0, 0, 4, 1]]
    for target in targets:
        for data in (g.input([2, 3, 4]), g.weights([2, 3, 4])):
            first = g.node("Reshape", data, g.const(target))
            g.output(g.node("Neg", first))
            for second in ([24], [-1, 2], [0, -1]):
                g.output(g.node("Reshape", first, g.const(second)))


def empty_reshapes(g):
    x = g.input([2, 0, 3])
    for first, allow in (([0, 0, 3], 0), ([2, 0, 5], 1), ([0, 7], 1), ([0, -1, 3], 0), ([3, 0], 1)):
        y = g.node("Reshape", x, g.const(first), allowzero=allow)
        g.output(y, g.node("ReduceSum", y, keepdims=0))
        for second, other in (([0, 4], 1), ([4, 0, 1], 1), ([0], 1)):
            g.output(g.node("Reshape", y, g.const(second), allowzero=other))
    g.output(g.node("ReduceProd", x, g.const([1]), keepdims=0), g.node("ReduceSum", x, g.const([1])))


def squeezes(g):
    x = g.input([1, 3, 1, 2, 1])
    for first, second in itertools.product(([0], [-1], [2, 4], [-5, -3], None), ([0], [-1], None)):
        y = g.node("Squeeze", x, g.const(first) if first else None)
        wide = g.node("Unsqueeze", y, g.const([0, -1]))
        g.output(g.node("Squeeze", wide, g.const(second) if second else None), g.node("Unsqueeze", wide, g.const([1, -2])))
    for axes in ([0, 1], [-1, -2], [1, -1]):
        g.output(g.node("Squeeze", g.node("Unsqueeze", x, g.const(axes)), g.const(axes)))


def splits(g):
    x = g.input([7, 2])
    for parts in (1, 2, 3, 4, 7):
        got = g.node("Split", x, results=parts, num_outputs=parts)
        g.output(*([got] if parts == 1 else got))
    for sizes in ([7], [0, 7], [3, 0, 4], [1, 2, 3, 1]):
        got = g.node("Split", x, g.const(sizes), results=len(sizes), axis=-2)
        got = [got] if len(sizes) == 1 else got
        g.output(*got, g.node("Concat", *got, axis=0))
        g.output(g.node("Concat", *reversed(got), axis=0))


def clips(g):
    for dtype in ("float32", "float64", "float16"):
        x = g.input([3, 4], dtype)
        bounds = {k: g.const([v], [], dtype) for k, v in (("low", -0.5), ("zero", 0.0), ("up", 0.75), ("high", 6.0))}
        given = g.node("Abs", g.input([], dtype))
        for low, high in ((None, None), ("low", None), (None, "up"), ("zero", "high"), ("up", "high"), ("high", "low"), ("low", "up")):
            low, high = bounds.get(low), bounds.get(high)
            g.output(g.node("Clip", g.node("Relu", x), low, high), g.node("Relu", g.node("Clip", x, low, high)))
            g.output(g.node("Clip", g.node("Clip", x, low, high), bounds["low"], bounds["up"]))
        g.output(g.node("Clip", g.node("Relu", x), None, given), g.node("Clip", g.node("Relu", x), given))


def algebra(g):
    x = g.input([16])
    zero, one, inf = (g.const([v], [], "float32") for v in (0.0, 1.0, 0.0))
    inf = g.node("Div", one, zero)
    for op, a, b in (("Mul", x, zero), ("Mul", zero, x), ("Sub", x, x), ("Div", x, x), ("Div", zero, x), ("Mul", x, one), ("Div", x, one), ("Add", x, zero),
                     ("Sub", x, zero), ("Sub", zero, x), ("Pow", x, one), ("Pow", x, zero), ("Max", x, x), ("Min", x, zero), ("Max", x, inf)):
        g.output(g.node(op, a, b))
    g.output(g.node("Sub", g.node("Add", x, inf), inf), g.node("Floor", g.node("Div", x, one)), g.node("Neg", g.node("Neg", x)))
    for first, second in (("Abs", "Abs"), ("Relu", "Relu"), ("Exp", "Log"), ("Log", "Exp"), ("Sqrt", "Sqrt"), ("Neg", "Abs"), ("Sign", "Abs"), ("Ceil", "Floor")):
        g.output(g.node(second, g.node(first, x)))
    g.output(g.node("Sqrt", g.node("Mul", x, x)), g.node("Equal", x, x), g.node("Where", g.node("Equal", x, x), x, g.node("Mul", x, zero)))


def negative_indices(g):
    for data in (g.input([3, 4]), g.weights([3, 4])):
        for axis in (0, 1, -1):
            for at in ([-1], [-3, 2, -2], []):
                g.output(g.node("Gather", data, g.const(at), axis=axis))
            g.output(g.node("Gather", data, g.const([-2], []), axis=axis))
        same = g.const([-1, 0, -3, 1], [1, 4])
        g.output(g.node("GatherElements", data, same), g.node("GatherElements", data, g.const([-4, 3, 1], [3, 1]), axis=-1))
        g.output(g.node("GatherND", data, g.const([-1, -4, 0, 3], [2, 2])), g.node("GatherND", data, g.const([-2], [1, 1])))
        g.output(g.node("ScatterElements", data, same, g.weights([1, 4])), g.node("ScatterElements", data, same, g.weights([1, 4]), reduction="add"))
        g.output(g.node("ScatterND", data, g.const([-3, -1], [2, 1]), g.weights([2, 4])))
    values = g.const([-1.0, 2.0], [2], "float32")
    for axis in (0, -1):
        g.output(g.node("OneHot", g.const([-1, 2, -3, 5]), g.const([3], []), values, axis=axis))


def resizes(g):
    x = g.input([1, 2, 4, 5])
    for mode, coordinate in itertools.product(("nearest", "linear", "cubic"), ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")):
        for axes, scales in (([-2, -1], [2.0, 0.5]), ([-1], [1.6]), ([2, 3], [1.5, 2.0])):
            g.output(g.node("Resize", x, None, g.const(scales, None, "float32"), mode=mode, coordinate_transformation_mode=coordinate, axes=axes))
        g.output(g.node("Resize", x, None, None, g.const([7, 3]), mode=mode, coordinate_transformation_mode=coordinate, axes=[-1, -2]))
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        g.output(g.node("Resize", x, None, g.const([0.6, 2.5], None, "float32"), mode="nearest", nearest_mode=rounding, axes=[-2, -1]))


def reductions(g):
    x, empty = g.input([3, 4]), g.input([2, 0, 3])
    for op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"):
        for axes in (None, [0], [-1], [0, 1]):
            g.output(g.node(op, x, g.const(axes) if axes else None, keepdims=0))
        g.output(g.node(op, x, g.const([]), noop_with_empty_axes=1), g.node(op, x, noop_with_empty_axes=1))
        g.output(g.node(op, empty, g.const([0])))
        if op not in ("ReduceMean",):
            g.output(g.node(op, empty, g.const([1])))


def branches(g):
    x = g.input([2, 3])
    for yes in (1, 0):
        condition = g.const([yes], [], "bool")
        for known in (condition, g.node("Not", condition), g.node("Greater", g.node("ReduceMax", x, keepdims=0), g.const([9.0], [], "float32"))):
            t, u, e = g.fresh(), g.fresh(), g.fresh()
            inner = ('{\n    region "then_branch" {\n      ' + f'{t} = Exp({x})\n      {u} = Add({t}, {x})\n      output {u} as "u"\n    }}\n'
                     f'    region "else_branch" {{\n      const {e}: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\n      output {e} as "u"\n    }}\n  }}')
            g.output(g.node("If", known, region=" " + inner))


def loops(g):
    x = g.input([2])
    for trips, limit in itertools.product((0, 1, 5), (2, 100)):
        i, c, s, a, l, k, less, f, b, d, e = (g.fresh() for _ in range(11))
        body = (f'{{\n    region "body" {{\n      input {i}: int64[]\n      input {c}: bool[]\n      input {s}: int64[]\n      input {a}: float32[2]\n'
                f'      const {l}: int64[] = [{limit}]\n      const {k}: float32[] = [0.5]\n      {less} = Less({i}, {l})\n      {f} = Cast({i}) {{to = 1}}\n'
                f'      {b} = Add({a}, {x})\n      {d} = Mul({b}, {k})\n      {e} = Add({d}, {f})\n'
                f'      output {less} as "g"\n      output {i} as "i"\n      output {e} as "e"\n      output {i} as "row"\n      output {s} as "before"\n'
                f'      output {a} as "state"\n    }}\n  }}')
        got = g.node("Loop", g.const([trips], []), g.const([1], [], "bool"), g.const([-7], []), x, results=5, region=" " + body)
        g.output(*got)


def sequences(g):
    x, y, z = g.input([2, 3]), g.input([1, 3]), g.input([4, 3])
    s = g.node("SequenceConstruct", x, y)
    for position in (None, 0, 2, -1, -2):
        at = None if position is None else g.const([position], [])
        longer = g.node("SequenceInsert", s, z, at)
        g.output(g.node("ConcatFromSequence", longer, axis=0), g.node("SequenceLength", longer))
        g.output(g.node("ConcatFromSequence", g.node("SequenceErase", longer, at), axis=0))
        g.output(g.node("SequenceAt", longer, g.const([-1 if position is None else position], []) if position != 2 else g.const([-3], [])))
    for split, axis, keep in (([3, 0, 1], 0, 1), ([1, 2], 1, 1), (None, 0, 1), (None, 1, 0)):
        part = g.node("SplitToSequence", z, g.const(split) if split else None, axis=axis, keepdims=keep)
        g.output(g.node("ConcatFromSequence", part, axis=axis, new_axis=1 - keep))


def dequantised_weights(g):
    for dtype, values in (("int8", range(-128, 120, 11)), ("uint8", range(0, 250, 11)), ("int4", range(-8, 8)), ("uint4", range(16)), ("int32", range(-900, 900, 80))):
        values = (list(values) * 2)[:12]
        zero = 0 if dtype == "int32" else 3
        w = g.const(values, [3, 4], dtype)
        whole = g.node("DequantizeLinear", w, g.const([0.1], [], "float32"), g.const([zero], [], dtype))
        rows = [g.node("DequantizeLinear", w, g.const([0.1, 0.2, 0.4], None, "float32"), g.const([zero, 0, 1 if zero else 0], None, dtype), axis=a) for a in (0, -2)]
        columns = g.node("DequantizeLinear", w, g.const([0.1, 0.2, 0.3, 0.4], None, "float32"), axis=-1)
        for y in [whole, columns, *rows]:
            g.output(g.node("Transpose", y), g.node("Reshape", y, g.const([2, -1])), g.node("MatMul", g.input([2, 3]), y))
    blocks = g.const([i % 8 for i in range(12)], [3, 4], "int8")
    g.output(g.node("DequantizeLinear", blocks, g.weights([3, 2]), axis=1, block_size=2))


def quantised_between(g):
    x = g.input([1, 2, 4, 4])
    scale, other, zero, minus = g.const([0.05], [], "float32"), g.const([0.1], [], "float32"), g.const([3], [], "uint8"), g.const([-5], [], "int8")

    def rounded(v, s=scale, z=zero):
        return g.node("DequantizeLinear", g.node("QuantizeLinear", v, s, z), s, z)

    for z, s in ((zero, scale), (minus, other)):
        q = rounded(x, s, z)
        for mode in ("linear", "nearest", "cubic"):
            g.output(rounded(g.node("Resize", q, None, g.const([1.0, 1.0, 2.0, 1.5], None, "float32"), mode=mode), s, z))
        g.output(rounded(g.node("AveragePool", q, kernel_shape=[2, 2]), s, z), rounded(g.node("MaxPool", q, kernel_shape=[2, 2]), s, z))
        g.output(rounded(g.node("Add", q, rounded(g.node("Neg", x), s, z)), s, z), rounded(g.node("Relu", q), s, z), rounded(g.node("Transpose", q), s, z))
        g.output(rounded(g.node("Concat", q, rounded(x, s, z), axis=1), s, z), rounded(g.node("Clip", q, g.const([0.0], [], "float32"), g.const([1.0], [], "float32")), s, z))
        g.output(rounded(g.node("GlobalAveragePool", q), s, z), rounded(g.node("Conv", q, rounded(g.weights([3, 2, 2, 2]), s, minus)), s, z))


def unread_results(g):
    x = g.input([4, 6])
    a = g.node("Exp", x)
    first, _ = g.node("Split", a, results=2, num_outputs=2, axis=1)
    b = g.node("Concat", first, first, axis=1)
    top, _ = g.node("TopK", g.node("Neg", b), g.const([6]), results=2)
    _, places = g.node("TopK", g.node("Abs", b), g.const([6]), results=2)
    c = g.node("Add", top, g.node("Cast", places, to=1))
    d, _, _ = g.node("LayerNormalization", c, g.weights([6]), g.weights([6]), results=3)
    image = g.node("Reshape", g.node("Sqrt", g.node("Abs", d)), g.const([1, 1, 4, 6]))
    pooled, _ = g.node("MaxPool", image, results=2, kernel_shape=[1, 1])
    _, mask = g.node("Dropout", g.node("Mul", pooled, image), results=2)
    _, _, inverse, _ = g.node("Unique", g.node("Floor", x), results=4)
    _, h, _ = g.node("LSTM", g.node("Reshape", d, g.const([4, 1, 6])), g.weights([1, 8, 6]), g.weights([1, 8, 2]), results=3, hidden_size=2)
    g.output(g.node("Add", g.node("Reshape", pooled, g.const([4, 6])), c), mask, inverse, h, g.node("Sub", b, d))


KINDS = {
    "08-pad-conv-nonzero-value": pad_before_window,
    "12-conv-same-dilation": same_convolutions,
    "14-convtranspose-auto-pad": transposed_convolutions,
    "30-reshape-zero-copy-const": reshapes,
    "32-reshape-allowzero": empty_reshapes,
    "38-squeeze-chain": squeezes,
    "40-split-uneven": splits,
    "46-relu-clip-types": clips,
    "48-algebra-nan-inf": algebra,
    "52-gather-negative": negative_indices,
    "54-resize-negative-axes": resizes,
    "62-reduce-special": reductions,
    "64-if-constant-condition": branches,
    "66-loop-iteration-value": loops,
    "88-sequence-ops": sequences,
    "90-dq-fold-int8": dequantised_weights,
    "91-qdq-resize-linear": quantised_between,
    "96-memory-unused-outputs": unread_results,
}
WILD = {"48-algebra-nan-inf", "62-reduce-special"}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds")
    os.makedirs(folder, exist_ok=True)
    for number, (case, fill) in enumerate(KINDS.items(), 1):
        graph = Graph(case, case in WILD)
        fill(graph)
        graph.write(folder, number)


if __name__ == "__main__":
    main()
