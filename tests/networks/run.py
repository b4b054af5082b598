#!/usr/bin/env python3
"""Runs whole networks through Tenon and compares every output with ONNX Runtime's without optimisation.

  run.py [--tenon build/bin/tenon] [--quick] [--only NAME ...] [--config NAME ...] [--cache DIR] [--json OUT]
  run.py --prepare [--only NAME ...]        only fills the cache: models, inputs, ONNX Runtime's outputs

Needs numpy, onnx and onnxruntime. A network is a skeleton in skeleton/ that materialise.py fills with fixed random
weights; the filled models (3.5 GB for all) and the reference outputs are kept in the cache and made again when the
skeleton changes. Each network runs at its sample shapes and, where dims are dynamic, at a second set of sizes, in
each configuration:

  default     the default pipeline
  plain       --set pipeline=[]: no rewrites
  reference   the reference kernels alone
  optimized   `tenon optimize`: the written file is valid ONNX and gives the same outputs in ONNX Runtime

Equal means every output within rtol 1e-3 and atol 1e-4 * min(1, largest |output|): bench/compare.py's error() <= 1.
The peak arena must be at most 1.12 times the largest sum of live bytes, and ResNet-50 must lose every
BatchNormalization, every stand-alone Relu and 30 % of its nodes. Exit code: 0 all hold, 1 some do not, 2 bad usage.
"""
import argparse
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(REPOSITORY, "bench"))
from compare import error  # noqa: E402  one definition of "equal" for tests and benchmarks

RTOL, ATOL = 1e-3, 1e-4
ARENA_LIMIT = 1.12
BATCH = {"batch": 2}
BERT = {"batch": 2, "seq": 77}
DECODER = {"batch": 2, "seq": 3, "past": 5}

# name: (second sizes or None, configurations of --quick)
NETWORKS = {
    "resnet50": (BATCH, ("default", "plain", "optimized")),
    "mobilenet_v2": (BATCH, ("default", "plain", "reference", "optimized")),
    "yolov5s": (None, ()),
    "efficientnet_b0": (BATCH, ("default",)),
    "vit_b_16": (BATCH, ()),
    "bert_base": (BERT, ("default",)),
    "bert_base_op18": (BERT, ()),
    "gpt2": (DECODER, ("default",)),
    "llama_110m": (DECODER, ()),
    "c2_alexnet": (None, ()),
    "c2_densenet121": (None, ("default",)),
    "c2_inception_v1": (None, ("default",)),
    "c2_inception_v2": (None, ()),
    "c2_resnet50": (None, ()),
    "c2_shufflenet": (None, ("default", "plain", "reference", "optimized")),
    "c2_squeezenet": (None, ("default", "reference", "optimized")),
    "c2_vgg19": (None, ()),
    "c2_zfnet512": (None, ()),
}
CONFIGURATIONS = {
    "default": [],
    "plain": ["--set", "pipeline=[]"],
    "reference": ["--set", 'kernels.prefer=["reference"]', "--set", 'kernels.deny=["tenon.cpu.*"]'],
    "optimized": None,
}


class Failed(Exception):
    pass


def execute(command, timeout):
    """Runs COMMAND in its own process group and returns (stdout, seconds); raises Failed with the reason."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"no end after {timeout} s, killed") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode:
        what = f"signal {-process.returncode}" if process.returncode < 0 else f"exit {process.returncode}"
        lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
        raise Failed(f"{what}: {' | '.join(lines[-6:]) or 'no message'}")
    return out.decode("utf-8", "replace"), time.perf_counter() - start


# ------------------------------------------------------------------------------------------------ the cache
def stem(name, dims):
    """The file name that bench/compare.py gives the workload NAME:dim=n,... too."""
    return name + "".join(f"-{k}{v}" for k, v in (dims or {}).items())


def digest(*paths):
    h = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def written(path, make):
    """MAKE(temporary path), then a rename: an interrupted run leaves no half file behind."""
    root, ext = os.path.splitext(path)
    temporary = f"{root}.{os.getpid()}.part{ext}"
    try:
        make(temporary)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def ort_outputs(model, inputs, outputs):
    import numpy as np
    import onnxruntime as rt
    options = rt.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = rt.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    with np.load(inputs) as z:
        feeds = {k: z[k] for k in z.files}
    names = [o.name for o in session.get_outputs()]
    np.savez(outputs, **dict(zip(names, session.run(None, feeds))))


def ort(model, inputs, outputs):
    """ONNX Runtime in a process of its own: what it holds is given back, and a crash of it is a message."""
    written(outputs, lambda part: execute([sys.executable, __file__, "--ort", model, inputs, part], 900))


def prepare(name, cache):
    """Makes what is missing and returns (model, [(label, inputs, expected)])."""
    skeleton = os.path.join(HERE, "skeleton", name + ".onnx")
    tool = os.path.join(HERE, "materialise.py")
    model, stamp = os.path.join(cache, name + ".onnx"), os.path.join(cache, name + ".stamp")
    os.makedirs(cache, exist_ok=True)
    now = digest(skeleton, tool)
    fresh = os.path.exists(stamp) and open(stamp).read() == now
    sizes = [{}] + ([NETWORKS[name][0]] if NETWORKS[name][0] else [])
    if not fresh or not os.path.exists(model):
        written(model, lambda part: execute([sys.executable, tool, skeleton, part], 600))
    sets = []
    for dims in sizes:
        inputs = os.path.join(cache, stem(name, dims) + ".npz")
        expected = os.path.join(cache, stem(name, dims) + ".ort.npz")
        if not fresh or not os.path.exists(inputs):
            written(inputs, lambda part: write_inputs(skeleton, dims, part))
        if not fresh or not os.path.exists(expected):
            ort(model, inputs, expected)
        sets.append((",".join(f"{k}={v}" for k, v in dims.items()) or "sample", inputs, expected))
    with open(stamp, "w") as f:
        f.write(now)
    return model, sets


def write_inputs(skeleton, dims, path):
    import numpy as np
    import onnx
    import materialise
    model = onnx.load(skeleton)
    shapes, start = materialise.sized(model, dims) if dims else (None, None)
    np.savez(path, **materialise.sample_inputs(model, 0, shapes, start))


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


def judge(expected, outputs):
    worst = error(expected, outputs, RTOL, ATOL)
    return worst, ([] if worst <= 1 else [f"outputs differ: {worst:.3g} times the tolerance"
                                          if math.isfinite(worst) else "an output is missing, has another shape or type, or is not finite"])


def run_tenon(tenon, configuration, model, inputs, expected, folder, timeout):
    outputs = os.path.join(folder, "out.npz")
    command = [tenon, "run", model, "--inputs", inputs, "--outputs", outputs, "--json", *CONFIGURATIONS[configuration]]
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
    row["error"], wrong = judge(expected, outputs)
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
        others = [k for k in (row["kernels"] or {}) if "reference" not in k]
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
        raise Failed(f"the optimised file is no valid ONNX: {str(e).strip().splitlines()[0]}") from None
    row = {"seconds": seconds, "nodes_before": len(top_level_nodes(model)), "nodes_after": len(top_level_nodes(path)), "error": 0.0}
    wrong = check_resnet50(model, path) if name == "resnet50" else []
    for label, inputs, expected in sets:
        outputs = os.path.join(folder, "out.npz")
        ort(path, inputs, outputs)
        worst, found = judge(expected, outputs)
        row["error"] = max(row["error"], worst)
        wrong += [f"{label}: in ONNX Runtime, {w}" for w in found]
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
        for label, inputs, expected in sets if CONFIGURATIONS[configuration] is not None else [("all", None, None)]:
            try:
                if CONFIGURATIONS[configuration] is None:
                    row, wrong = run_optimized(a.tenon, name, model, sets, folder, a.timeout)
                else:
                    row, wrong = run_tenon(a.tenon, configuration, model, inputs, expected, folder, a.timeout)
            except Failed as e:
                row, wrong = {}, [str(e)]
            results.append({"network": name, "sizes": label, "configuration": configuration, "failed": wrong, **row})
            print(line(name, label, configuration, row, wrong), flush=True)
            for w in wrong:
                print(f"       {w}", flush=True)


def default_cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tenon", "networks")


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--ort":
        return ort_outputs(*sys.argv[2:])
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
            print(n, *(os.path.basename(f) for s in sets for f in s[1:]), flush=True)
        return 0
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build) or name it with --tenon")
    a.tenon = os.path.abspath(a.tenon)
    start, results = time.perf_counter(), []
    print(f"     {'network':16} {'sizes':22} {'configured':10} {'error':>8} {'nodes':>11} {'arena MB':>8} {'/bound':>6} {'saved%':>6} {'ms':>9} {'s':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for n in names:
            chosen = NETWORKS[n][1] if a.quick else tuple(CONFIGURATIONS)
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
