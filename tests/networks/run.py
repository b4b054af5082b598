#!/usr/bin/env python3
"""Runs whole networks through Tenon and compares every output with ONNX Runtime's without optimisation.

  run.py [--tenon build/bin/tenon] [--quick] [--only NAME ...] [--config NAME ...] [--cache DIR] [--json OUT]
  run.py --prepare [--only NAME ...]        only fills the cache: models, inputs, ONNX Runtime's outputs

Needs numpy, onnx and onnxruntime. A network is a skeleton in skeleton/ that materialise.py fills with fixed random
weights, or a trained one that real.py fetches; the models (4.9 GB for all) and the reference outputs are kept in the
cache and made again when what they come from changes. Each network runs at its sample shapes and, where dims are
dynamic, at a second set of sizes, in each configuration:

  default     the default pipeline
  plain       --set pipeline=[]: no rewrites
  reference   the reference kernels alone
  optimized   `tenon optimize`: the written file is valid ONNX and gives the same outputs in ONNX Runtime

Equal means every output within rtol 1e-3 and atol 1e-4 * min(1, largest |output|): bench/compare.py's error() <= 1.
Networks that round to 8 or 16 bits inside may instead differ by as much as ONNX Runtime's own outputs do, optimised or
from inputs and weights that are a rounding error apart: the root mean square of each output's difference, in units of
the largest of theirs, is at most 1 too. In the plain and reference configurations it may be 3: one step of one value,
decided by the last bit of a sum, grows into half of the outputs of such a network, and how far is chance.
Detections stand in order of their scores, and those whose scores agree may change places.
The peak arena must be at most 1.12 times the largest sum of live bytes, and ResNet-50 must lose every
BatchNormalization, every stand-alone Relu and 30 % of its nodes. Exit code: 0 all hold, 1 some do not, 2 bad usage.
"""
import argparse
import itertools
import json
import math
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(REPOSITORY, "bench"))
from cache import NETWORKS, SKELETONS, Failed, default_cache, execute, ort, prepare  # noqa: E402
from compare import error  # noqa: E402  one definition of "equal" for tests and benchmarks

RTOL, ATOL = 1e-3, 1e-4
ARENA_LIMIT = 1.12
CONFIGURATIONS = {
    "default": [],
    "plain": ["--set", "pipeline=[]"],
    "reference": ["--set", 'kernels.prefer=["tenon.reference.*"]', "--set", 'kernels.deny=["tenon.cpu.*"]'],
    "optimized": None,
}


# ------------------------------------------------------------------------------------------------ the checks
def top_level_nodes(path):
    import onnx
    return onnx.load(path, load_external_data=False).graph.node


def check_resnet50(before, after):
    import onnx
    model = onnx.load(after, load_external_data=False)
    functions = {f.name for f in model.functions}
    kinds = [n.op_type for n in model.graph.node]
    inside = [n.op_type for f in model.functions for n in f.node]
    wrong = []
    if "BatchNormalization" in kinds + inside:
        wrong.append(f"{(kinds + inside).count('BatchNormalization')} BatchNormalization left")
    if "Relu" in kinds:
        wrong.append(f"{kinds.count('Relu')} stand-alone Relu left")
    count = len(top_level_nodes(before))
    if len(kinds) > 0.7 * count:
        wrong.append(f"{len(kinds)} of {count} nodes left, want at most {int(0.7 * count)}")
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") and node.op_type not in functions:
            wrong.append(f"node {node.name} calls {node.domain}.{node.op_type}, which the file does not define")
            break
    return wrong


def distance(reference, other):
    """Root mean square of the difference of two arrays; of whole numbers, which may be classes, how many differ."""
    import numpy as np
    if reference.shape != other.shape or reference.dtype != other.dtype:
        return math.inf
    if reference.dtype.kind != "f":
        return int((reference != other).sum())
    x, y = reference.astype(np.float64), other.astype(np.float64)
    if not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return math.inf
    return float(np.sqrt(np.square(x[np.isfinite(x)] - y[np.isfinite(y)]).sum() / max(x.size, 1)))


def between(shape, shapes):
    """Each dimension of SHAPE lies between the least and the largest of SHAPES'."""
    return all(len(s) == len(shape) for s in shapes) and all(min(d) <= n <= max(d) for n, d in zip(shape, zip(*shapes)))


def common(x, y):
    """The elements that both arrays have."""
    part = tuple(slice(min(m, n)) for m, n in zip(x.shape, y.shape))
    return x[part], y[part]


def excess(expected, outputs, others):
    """The largest quotient of an output's distance and the largest of the OTHERS' distances. Where the shape itself hangs
    on rounding, that of ONNX Runtime among them, no one of these is the right one: a shape may lie anywhere between
    theirs, and the nearest of them stands for the expected one, over the elements that both have."""
    import numpy as np

    def load(path):
        with np.load(path) as z:
            return dict(z)

    want, got, rest, worst = load(expected), load(outputs), [load(path) for path in others], 0.0
    for k in want:
        if k not in got:
            return math.inf
        ours, theirs = distance(want[k], got[k]), max((distance(want[k], other[k]) for other in rest), default=0.0)
        if not math.isfinite(theirs):
            all_of_theirs = [want[k], *(other[k] for other in rest)]
            if not between(got[k].shape, [x.shape for x in all_of_theirs]):
                return math.inf
            ours = min(distance(*common(x, got[k])) for x in all_of_theirs)
            theirs = max(distance(*common(x, y)) for x, y in itertools.combinations(all_of_theirs, 2))
        if ours:
            worst = max(worst, ours / (theirs or 1e-300))
    return worst


def reorder(expected, outputs, scores):
    """Puts rows of OUTPUTS in the order of EXPECTED's where the SCORES that order them agree."""
    import numpy as np
    with np.load(expected) as z:
        want = dict(z)
    with np.load(outputs) as z:
        got = dict(z)
    if any(k not in got or want[k].shape != got[k].shape for k in want):
        return
    rest, order = list(range(len(got[scores]))), []
    for row, score in enumerate(want[scores]):
        near = [i for i in rest[:8] if abs(got[scores][i] - score) <= RTOL * 1e-2 * abs(score)] or rest[:1]
        order.append(min(near, key=lambda i: sum(float(np.abs(want[k][row].astype(float) - got[k][i].astype(float)).sum()) for k in want)))
        rest.remove(order[-1])
    np.savez(outputs, **{k: v[order] for k, v in got.items()})


def judge(inputs, outputs, allowed=1.0):
    if inputs.scores:
        reorder(inputs.expected, outputs, inputs.scores)
    worst = error(inputs.expected, outputs, RTOL, ATOL)
    if worst > 1 and inputs.others:
        worst = min(worst, excess(inputs.expected, outputs, inputs.others) / allowed)
    if worst <= 1:
        return worst, []
    if not math.isfinite(worst):
        return worst, ["an output is missing, has another shape or type, or is not finite"]
    theirs = ", and farther off than ONNX Runtime's own" if inputs.others else ""
    return worst, [f"outputs differ: {worst:.3g} times the tolerance{theirs}"]


def run_tenon(tenon, configuration, model, inputs, folder, timeout):
    outputs = os.path.join(folder, "out.npz")
    command = [tenon, "run", model, "--inputs", inputs.inputs, "--outputs", outputs, "--json", *CONFIGURATIONS[configuration]]
    out, seconds = execute(command, timeout)
    if "{" not in out:
        raise Failed("run --json printed no JSON object")
    try:
        facts = json.loads(out[out.index("{"):])
    except ValueError as e:
        raise Failed(f"run --json printed no valid JSON: {e}") from None
    row = {k: facts.get(k) for k in ("nodes_before", "nodes_after", "arena_bytes", "live_bound_bytes", "no_reuse_bytes",
                                     "kernels", "load_ms", "peak_rss_mb", "rules")}
    row["fallbacks"] = len(facts.get("fallbacks") or [])
    latency = facts.get("latency_ms")
    row["latency_ms"] = latency.get("median") if isinstance(latency, dict) else latency
    row["seconds"] = seconds
    row["error"], wrong = judge(inputs, outputs, 3.0 if configuration in ("plain", "reference") else 1.0)
    arena, bound, loose = row["arena_bytes"], row["live_bound_bytes"], row["no_reuse_bytes"]
    if None in (arena, bound, loose):
        wrong.append("run --json lacks arena_bytes, live_bound_bytes or no_reuse_bytes")
    else:
        row["arena_ratio"] = arena / bound if bound else (1.0 if not arena else math.inf)
        row["reduction"] = 1 - arena / loose if loose else 0.0
        if row["arena_ratio"] > ARENA_LIMIT:
            wrong.append(f"arena {arena} is {row['arena_ratio']:.3f} times the bound {bound}, want at most {ARENA_LIMIT}")
    if configuration == "plain" and row["nodes_before"] != row["nodes_after"]:
        wrong.append(f"an empty pipeline changed {row['nodes_before']} nodes to {row['nodes_after']}")
    if configuration == "reference":
        others = [plugin for plugin in (row["kernels"] or {}) if plugin != "ops"]  # which brings the reference kernels
        if others:
            wrong.append(f"kernels other than the reference ran: {', '.join(others)}")
    os.remove(outputs)
    return row, wrong


def run_optimized(tenon, name, model, sets, folder, timeout):
    import onnx
    path = os.path.join(folder, name + ".onnx")
    _, seconds = execute([tenon, "optimize", model, "-o", path], timeout)
    try:
        onnx.checker.check_model(path)
    except Exception as e:
        # ONNX has tensors of unknown rank, which have no shape; its checker wants one for every output of a model.
        if "Field 'shape' of 'type' is required but missing" not in str(e):
            raise Failed(f"the optimised file is no valid ONNX: {str(e).strip().splitlines()[0]}") from None
    row = {"seconds": seconds, "nodes_before": len(top_level_nodes(model)), "nodes_after": len(top_level_nodes(path)), "error": 0.0}
    wrong = check_resnet50(model, path) if name == "resnet50" else []
    for inputs in sets:
        outputs = os.path.join(folder, "out.npz")
        ort(path, inputs.inputs, outputs)
        worst, found = judge(inputs, outputs)
        row["error"] = max(row["error"], worst)
        wrong += [f"{inputs.label}: in ONNX Runtime, {w}" for w in found]
    os.remove(path)
    return row, wrong


# ------------------------------------------------------------------------------------------------ the report
def text(value, form):
    return "-" if value is None else format(value, form)


def line(name, label, configuration, row, wrong):
    mega = None if row.get("arena_bytes") is None else row["arena_bytes"] / 1e6
    nodes = f"{text(row.get('nodes_before'), 'd')}>{text(row.get('nodes_after'), 'd')}"
    saved = None if row.get("reduction") is None else 100 * row["reduction"]
    return (f"{'FAIL' if wrong else 'ok  '} {name:16} {label:22} {configuration:10} {text(row.get('error'), '8.3g'):>8} {nodes:>11} "
            f"{text(mega, '8.2f'):>8} {text(row.get('arena_ratio'), '6.3f'):>6} {text(saved, '5.1f'):>6} "
            f"{text(row.get('latency_ms'), '9.2f'):>9} {text(row.get('seconds'), '6.1f'):>6}")


def network(name, configurations, a, folder, results):
    model, sets = prepare(name, a.cache)
    for configuration in configurations:
        for inputs in sets if CONFIGURATIONS[configuration] is not None else [None]:
            label = inputs.label if inputs else "all"
            try:
                if CONFIGURATIONS[configuration] is None:
                    row, wrong = run_optimized(a.tenon, name, model, sets, folder, a.timeout)
                else:
                    row, wrong = run_tenon(a.tenon, configuration, model, inputs, folder, a.timeout)
            except Failed as e:
                row, wrong = {}, [str(e)]
            results.append({"network": name, "sizes": label, "configuration": configuration, "failed": wrong, **row})
            print(line(name, label, configuration, row, wrong), flush=True)
            for w in wrong:
                print(f"       {w}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tenon", default=os.path.join(REPOSITORY, "build", "bin", "tenon"))
    p.add_argument("--quick", action="store_true", help="the part of it that fits in four minutes on two cores")
    p.add_argument("--only", nargs="+", metavar="NAME", help="these networks (names or parts of names)")
    p.add_argument("--config", nargs="+", choices=list(CONFIGURATIONS), help="these configurations")
    p.add_argument("--cache", default=default_cache())
    p.add_argument("--timeout", type=float, default=600, help="seconds for one run of tenon")
    p.add_argument("--prepare", action="store_true", help="fill the cache and stop")
    p.add_argument("--json", metavar="OUT")
    a = p.parse_args()
    names = [n for n in NETWORKS if not a.only or n in a.only or any(part in n for part in a.only if part not in NETWORKS)]
    if not names:
        p.error(f"--only {' '.join(a.only)} names no network; there are {', '.join(NETWORKS)}")
    if a.prepare:
        for n in names:
            model, sets = prepare(n, a.cache)
            print(n, *(os.path.basename(s.inputs) for s in sets), flush=True)
        return 0
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build) or name it with --tenon")
    a.tenon = os.path.abspath(a.tenon)
    start, results = time.perf_counter(), []
    print(f"     {'network':16} {'sizes':22} {'configured':10} {'error':>8} {'nodes':>11} {'arena MB':>8} {'/bound':>6} {'saved%':>6} {'ms':>9} {'s':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for n in names:
            chosen = (SKELETONS[n][1] if n in SKELETONS else ()) if a.quick else tuple(CONFIGURATIONS)
            chosen = [c for c in chosen if not a.config or c in a.config]
            if not chosen:
                continue
            try:
                network(n, chosen, a, folder, results)
            except Failed as e:                       # materialising or ONNX Runtime itself
                results.append({"network": n, "sizes": "", "configuration": "prepare", "failed": [str(e)]})
                print(line(n, "", "prepare", {}, [str(e)]) + f"\n       {e}", flush=True)
    bad = [r for r in results if r["failed"]]
    print(f"{len(results) - len(bad)} of {len(results)} runs hold, {time.perf_counter() - start:.0f} s")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"tenon": a.tenon, "results": results}, f, indent=1)
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
