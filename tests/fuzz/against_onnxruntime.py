#!/usr/bin/env python3
"""Random graphs against ONNX Runtime: random_graphs --dump writes models, inputs and the reference kernels' results;
onnxruntime runs the models without its optimisations, and what differs is listed, by the operators of the model.

  against_onnxruntime.py --program BUILD/tests/bin/random_graphs [--seed 1] [--count 1000]

What onnxruntime refuses is counted by its reason. A difference is no verdict: where the standard and onnxruntime
disagree the standard wins, and docs/onnx.md says so. Exit code 1 when models differ whose operators --known does not
name.
"""
import argparse
import collections
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime


def run_onnxruntime(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = {i.name: inputs[i.name] for i in session.get_inputs()}
    return dict(zip(names, session.run(names, feed)))


def difference(got, want):
    """What is wrong, or None. Rounding is judged against the largest element, since operands were about 1."""
    if got.shape != want.shape:
        return f"shape {got.shape}, want {want.shape}"
    if want.dtype.kind in "US":  # .npz holds texts by their longest, onnxruntime as objects
        return None if got.tolist() == want.tolist() else f"{np.sum(got.astype(want.dtype) != want)} of {want.size} texts"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, want {want.dtype}"
    if not np.issubdtype(want.dtype, np.floating):
        return None if np.array_equal(got, want) else f"{np.sum(got != want)} of {want.size} elements"
    relative = {2: 2e-2, 4: 1e-3, 8: 1e-6}[want.dtype.itemsize]
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        largest = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
        near = np.isclose(got, want, rtol=relative, atol=relative / 10 * largest, equal_nan=True)
    if near.all():
        return None
    at = np.unravel_index(np.argmin(near), near.shape)
    return f"{np.sum(~near)} of {want.size} elements, first {got[at]:.9g}, want {want[at]:.9g}"


def operators(path):
    model = onnx.load(path)
    return sorted({node.op_type for node in model.graph.node})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--known", default="", help="operators whose differences are known, with commas")
    parser.add_argument("--keep", help="folder for the models that differ")
    arguments = parser.parse_args()
    known = set(filter(None, arguments.known.split(",")))
    refused, differing, same, suspects = collections.Counter(), 0, 0, collections.Counter()
    unknown = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.program, "--seed", str(arguments.seed), "--count", str(arguments.count), "--dump", folder, "--out", folder],
                       stdout=subprocess.DEVNULL, check=False)
        for path in sorted(glob.glob(f"{folder}/*.onnx")):
            base = path[:-len(".onnx")]
            try:
                inputs = dict(np.load(base + ".inputs.npz"))
                want = dict(np.load(base + ".outputs.npz"))
                got = run_onnxruntime(path, inputs)
            except Exception as error:  # onnxruntime has a class for each, and numpy its own
                text = str(error).split("\n")[0]
                refused[text.split(":")[2].strip()[:60] if text.count(":") > 2 else text[:60]] += 1
                continue
            found = {name: difference(got[name], want[name]) for name in want if name in got}
            found = {name: text for name, text in found.items() if text}
            if not found:
                same += 1
                continue
            differing += 1
            used = operators(path)
            suspects.update(used)
            if not known.intersection(used):
                unknown += 1
            print(f"{os.path.basename(base)}: {'; '.join(f'{n}: {t}' for n, t in found.items())}\n    {' '.join(used)}")
            if arguments.keep:
                os.makedirs(arguments.keep, exist_ok=True)
                for suffix in (".onnx", ".inputs.npz", ".outputs.npz"):
                    os.replace(base + suffix, os.path.join(arguments.keep, os.path.basename(base) + suffix))
    print(f"{same} the same, {differing} differ, {sum(refused.values())} that onnxruntime {onnxruntime.__version__} refuses")
    for text, count in refused.most_common(20):
        print(f"  refused {count} x {text}")
    if differing:
        print("operators of the models that differ: " + ", ".join(f"{op} {count}" for op, count in suspects.most_common(12)))
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
