#!/usr/bin/env python3
"""Random graphs against ONNX Runtime, node by node: random_graphs --dump writes models, inputs and every value as the
reference kernels compute it; each node is given to onnxruntime by itself, without its optimisations, with those values
as operands, and its results are compared. So one difference is one line, and is not carried on to the nodes behind it.

  against_onnxruntime.py --program BUILD/tests/bin/random_graphs [--seed 1] [--count 1000]
  against_onnxruntime.py --program BUILD/bin/tenon --network MODEL.onnx --inputs INPUTS.npz

What onnxruntime refuses is counted by operator and reason. A difference is no verdict: where the standard and
onnxruntime disagree the standard wins; known_differences.py lists these with the reason, and docs/onnx.md says so.
A third opinion is printed with each other difference: what onnx's own reference implementation gives. Exit code 1 when
there is a difference that is not known.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference
import onnxruntime

from known_differences import Case, reason_for

DTYPES = {np.dtype(name): getattr(onnx.TensorProto, proto)
          for name, proto in [("float32", "FLOAT"), ("float64", "DOUBLE"), ("float16", "FLOAT16"), ("int8", "INT8"), ("int16", "INT16"), ("int32", "INT32"),
                              ("int64", "INT64"), ("uint8", "UINT8"), ("uint16", "UINT16"), ("uint32", "UINT32"), ("uint64", "UINT64"), ("bool", "BOOL"),
                              ("complex64", "COMPLEX64"), ("complex128", "COMPLEX128")]}


def proto_type(array):
    if array.dtype.kind in "US":
        return onnx.TensorProto.STRING
    return DTYPES.get(array.dtype)


def read_names(node):
    """The values a node reads, those that its subgraphs take from outside too."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
            for inner in graph.node:
                names += [name for name in read_names(inner) if name not in inside]
                inside.update(inner.output)
            names += [o.name for o in graph.output if o.name not in inside]
    return list(dict.fromkeys(names))


class Model:
    """A model and all its values: BASE.onnx, BASE.inputs.npz, BASE.outputs.npz."""

    def __init__(self, base, inputs=None):
        self.proto = onnx.load(base + ".onnx")
        self.values = dict(np.load(inputs or base + ".inputs.npz"))
        self.values.update(np.load(base + ".outputs.npz"))
        self.constants = {t.name: t for t in self.proto.graph.initializer}
        self.producer = {name: node for node in self.proto.graph.node for name in node.output if name}

    def alone(self, node):
        """The node, with what gives its sequences and optionals, as a model; its operands; None for other types."""
        nodes, feed, constants, pending = [node], {}, {}, read_names(node)
        while pending:
            name = pending.pop()
            if name in self.constants:
                constants[name] = self.constants[name]
            elif name in self.values:
                feed[name] = self.values[name]
                if proto_type(feed[name]) is None:
                    return None
            elif self.producer[name] not in nodes:
                nodes.append(self.producer[name])
                pending += read_names(self.producer[name])
        order = list(self.proto.graph.node)
        nodes.sort(key=order.index)
        outputs = [name for name in node.output if name in self.values]
        graph = onnx.helper.make_graph(
            nodes, "one", [onnx.helper.make_tensor_value_info(name, proto_type(a), a.shape) for name, a in feed.items()],
            [onnx.helper.make_empty_tensor_value_info(name) for name in outputs], list(constants.values()))
        model = onnx.helper.make_model(graph, opset_imports=self.proto.opset_import, functions=self.proto.functions, ir_version=self.proto.ir_version)
        return model, feed, outputs


def run_onnxruntime(model, feed, outputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(outputs, session.run(outputs, feed)))


def agreement(got, want, scale):
    """Which elements agree, None where shapes or types differ; `scale` is the largest operand, whose roundings a sum carries."""
    if got.shape != want.shape:
        return None
    if want.dtype.kind in "US":  # .npz holds texts by their longest, onnxruntime as objects
        return np.array(got.astype(want.dtype) == want)
    if got.dtype != want.dtype:
        return None
    if want.dtype.kind not in "fc":
        return np.array(got == want)
    parts = 2 if want.dtype.kind == "c" else 1
    relative = {2: 4e-3, 4: 1e-4, 8: 1e-7}[want.dtype.itemsize // parts]  # some of its float64 kernels hold float32 constants
    with np.errstate(invalid="ignore", over="ignore"):
        largest = max(np.max(np.abs(want[np.isfinite(want)]), initial=1.0), scale)
        return np.isclose(got, want, rtol=relative, atol=relative / 10 * largest, equal_nan=True)


def difference(got, want, near):
    """What is wrong, or None."""
    if near is None:
        return f"{got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}"
    if near.all():
        return None
    at = np.unravel_index(np.argmin(near), near.shape)
    return f"{np.sum(~near)} of {want.size} elements, first {got[at]!r}, want {want[at]!r}"


def largest_operand(case):
    numbers = [a for a in case.operands if a is not None and a.dtype.kind == "f" and a.size]
    return max((float(np.max(np.abs(a[np.isfinite(a)]), initial=0)) for a in numbers), default=0.0)


def third_opinion(model, feed, want, scale):
    try:
        names = [o.name for o in model.graph.output]
        made = dict(zip(names, onnx.reference.ReferenceEvaluator(model).run(names, feed)))
        made = {name: np.asarray(a) for name, a in made.items()}
        found = [text for name in names if (text := difference(made[name], want[name], agreement(made[name], want[name], scale)))]
        return f"differs too: {found[0]}" if found else "agrees with us"
    except Exception as error:  # it has no class of its own
        return f"refuses: {str(error).splitlines()[0][:90]}" if str(error) else f"refuses: {type(error).__name__}"


def reason_of(error):
    """The start of what was said, without what differs from node to node."""
    text = re.sub(r"Name:'[^']*'|\(n\d+\)|/onnxruntime_src/\S+", "", str(error).split("\n")[0])
    return text.split(":", 2)[-1].strip()[:110]


def nodes_of(folder):
    for path in sorted(glob.glob(f"{folder}/*.outputs.npz")):
        base = path[:-len(".outputs.npz")]
        model = Model(base)
        for node in model.proto.graph.node:
            yield base, model, node


def judge(base, model, node, keep):
    """(outcome, text): outcome is same, refused, known, differs or type."""
    parts = model.alone(node)
    if parts is None or not parts[2]:
        return "type", ""
    alone, feed, outputs = parts
    want = {name: model.values[name] for name in outputs}
    try:
        got = {name: np.asarray(a) for name, a in run_onnxruntime(alone, feed, outputs).items()}
    except Exception as error:  # onnxruntime has a class for each kind
        return "refused", reason_of(error)
    case = Case(node, alone, feed, got, want, {})
    scale = largest_operand(case)
    case.near = {name: agreement(got[name], want[name], scale) for name in outputs}
    found = {name: text for name in outputs if (text := difference(got[name], want[name], case.near[name]))}
    if not found:
        return "same", ""
    reason = reason_for(case)
    if reason:
        return "known", reason
    print(f"{os.path.basename(base)} {node.name} {node.op_type}: {'; '.join(f'{n}: {t}' for n, t in found.items())}")
    print(f"    onnx's reference {third_opinion(alone, feed, want, scale)}", flush=True)
    if keep:
        os.makedirs(keep, exist_ok=True)
        kept = os.path.join(keep, f"{node.op_type}-{os.path.basename(base)}-{node.name}")
        onnx.save(alone, kept + ".onnx")
        np.savez(kept + ".npz", **feed)
    return "differs", ""


def compare(folder, keep):
    """Of a process of its own, since onnxruntime may end it: goes on behind what the journal has already."""
    with open(f"{folder}/journal", "a+", encoding="utf-8") as journal:
        journal.seek(0)
        done = sum(1 for _ in journal)
        for number, (base, model, node) in enumerate(nodes_of(folder)):
            if number < done:
                continue
            journal.write(node.op_type)
            journal.flush()
            outcome, text = judge(base, model, node, keep)
            journal.write(f"\t{outcome}\t{text}\n")
            journal.flush()


def compare_network(arguments):
    """Every node of a whole network, on the values that tenon's plain run has there: one line an operator."""
    with tempfile.TemporaryDirectory() as folder:
        proto = onnx.load(arguments.network)
        del proto.graph.output[:]
        proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for node in proto.graph.node for name in node.output if name)
        onnx.save(proto, f"{folder}/all.onnx")
        subprocess.run([arguments.program, "run", f"{folder}/all.onnx", "--inputs", arguments.inputs, "--outputs", f"{folder}/all.outputs.npz",
                        "--set", "pipeline=[]"], stdout=subprocess.DEVNULL, check=True)
        model = Model(f"{folder}/all", arguments.inputs)
        nodes, bits, largest, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(float), 0
        for node in model.proto.graph.node:
            parts = model.alone(node)
            if parts is None or not parts[2]:
                continue
            alone, feed, outputs = parts
            try:
                got = {name: np.asarray(a) for name, a in run_onnxruntime(alone, feed, outputs).items()}
            except Exception:  # it cannot run every node by itself: types and shapes of captures
                nodes[node.op_type + " (refused)"] += 1
                continue
            nodes[node.op_type] += 1
            want = {name: model.values[name] for name in outputs}
            bits[node.op_type] += all(np.array_equal(got[n], want[n], equal_nan=want[n].dtype.kind == "f") for n in outputs)
            for name, a in want.items():
                if got[name].shape != a.shape or got[name].dtype != a.dtype:
                    wrong += 1
                    print(f"{node.op_type} {node.name}: {difference(got[name], a, None)}")
                elif a.dtype.kind == "f" and a.size:
                    with np.errstate(invalid="ignore"):
                        apart = np.nanmax(np.abs(got[name].astype(np.float64) - a), initial=0) / max(np.nanmax(np.abs(a.astype(np.float64)), initial=0), 1e-30)
                    largest[node.op_type] = max(largest[node.op_type], float(apart))
                elif a.size and a.dtype.kind not in "US":
                    largest[node.op_type] = max(largest[node.op_type], float(np.mean(got[name] != a)))
        print(f"{'operator':28} {'nodes':>6} {'same bits':>9} {'largest difference, of the largest element; of integers, how many':>12}")
        for op in sorted(nodes):
            print(f"{op:28} {nodes[op]:6} {bits[op]:9} {largest[op]:12.3g}")
        return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="random_graphs; with --network: tenon")
    parser.add_argument("--network", help="the nodes of this model, with --inputs, instead of random graphs")
    parser.add_argument("--inputs", help="of the network, .npz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--keep", help="folder for the one-node models that differ, with their operands")
    parser.add_argument("--refused", action="store_true", help="list what onnxruntime refuses")
    parser.add_argument("--folder", help=argparse.SUPPRESS)  # compare what was dumped there: the process below
    arguments = parser.parse_args()
    if arguments.folder:
        return compare(arguments.folder, arguments.keep)
    if not arguments.program:
        parser.error("--program is missing: build/tests/bin/random_graphs, or build/bin/tenon with --network")
    if arguments.network:
        return compare_network(arguments)
    found, operators, models = collections.defaultdict(collections.Counter), set(), 0
    for start in range(arguments.seed, arguments.seed + arguments.count, 500):
        with tempfile.TemporaryDirectory() as folder:
            count = min(500, arguments.seed + arguments.count - start)
            subprocess.run([arguments.program, "--seed", str(start), "--count", str(count), "--dump", folder, "--out", folder, "--written", "0"],
                           stdout=subprocess.DEVNULL, check=False)
            models += len(glob.glob(f"{folder}/*.outputs.npz"))
            while subprocess.run([sys.executable, __file__, "--folder", folder] + (["--keep", arguments.keep] if arguments.keep else []),
                                 stderr=subprocess.DEVNULL, check=False).returncode:
                with open(f"{folder}/journal", "a", encoding="utf-8") as journal:
                    journal.write("\trefused\tends the process\n")
            with open(f"{folder}/journal", encoding="utf-8") as journal:
                for line in journal:
                    op, outcome, text = line.rstrip("\n").split("\t")
                    found[outcome][f"{op}: {text}" if text else op] += 1
                    if outcome in ("same", "known", "differs"):
                        operators.add(op)
    counts = {outcome: sum(found[outcome].values()) for outcome in ("same", "known", "differs", "refused", "type")}
    print(f"{models} models, {len(operators)} operators: {counts['same']} nodes the same, {counts['known']} differ for a known reason, {counts['differs']} differ, "
          f"{counts['refused']} that onnxruntime {onnxruntime.__version__} refuses, {counts['type']} of types that it cannot be given")
    for outcome in ["known", "differs"] + (["refused"] if arguments.refused else []):
        for text, number in found[outcome].most_common():
            print(f"  {outcome} {number} x {text}")
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
