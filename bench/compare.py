#!/usr/bin/env python3
"""Side-by-side latency of Tenon and other tools on the networks of ../tests/networks, in one run.

  compare.py [WORKLOAD ...] [--peers ort,openvino] [--precision faithful] [--threads 2] [--rounds 15] [--seconds 1]
             [--tenon build/bin/tenon] [--cache DIR] [--json OUT]

A workload is MODEL or MODEL:dim=n,dim=n (llama_110m_op18:seq=1,past=128); without any, the seven of DEFAULT.
Needs numpy, onnx, onnxruntime, openvino in this Python. Every round measures each tool in turn in a fresh process (A B C, A B C ...),
so drift of a shared machine hits all of them. Printed: medians; the ratio Tenon / peer round by round, its median and the 95 % bootstrap
bounds of that median; the geometric mean against the better peer of each round. "Faster" means an upper bound below 1; "no slower"
an upper bound of at most 1.05. Outputs of the timed runs are compared with ONNX Runtime's without optimisation.
Peers: ort, openvino (told to use float32: by itself it takes bfloat16 where the CPU has AMX), openvino_bf16.

Contract with Tenon:  tenon bench MODEL --inputs IN.npz --outputs OUT.npz --threads N --seconds S --set precision.mode=P --json  prints one JSON object
with "latency_ms": {"min", "median", "p95"}, "load_ms", "peak_rss_mb", "precision", "isa"; OUT.npz holds the outputs of those runs.
"""
import argparse, json, math, os, random, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = os.path.join(HERE, "..", "tests", "networks")
DEFAULT = ["resnet50", "mobilenet_v2", "yolov5s", "bert_base", "llama_110m_op18:seq=128,past=0", "llama_110m_op18:seq=1,past=128", "efficientnet_b0"]
TOLERANCE = {"exact": (1e-3, 1e-4), "faithful": (1e-3, 1e-4), "bf16": (5e-2, 5e-2)}


def ort(model, inputs, threads, level="all"):
    import numpy as np, onnxruntime as rt
    so = rt.SessionOptions()
    so.intra_op_num_threads, so.inter_op_num_threads, so.log_severity_level = threads, 1, 4
    if level == "off":
        so.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    t = time.perf_counter()
    s = rt.InferenceSession(model, so, providers=["CPUExecutionProvider"])
    load, b, names = time.perf_counter() - t, s.io_binding(), [o.name for o in s.get_outputs()]
    used = {i.name for i in s.get_inputs()}
    keep = {k: rt.OrtValue.ortvalue_from_numpy(v) for k, v in np.load(inputs).items() if k in used}
    for k, v in keep.items():
        b.bind_ortvalue_input(k, v)
    for n in names:
        b.bind_output(n, "cpu")
    return load, (lambda: s.run_with_iobinding(b)), (lambda: dict(zip(names, b.copy_outputs_to_cpu()))), keep


def openvino(model, inputs, threads, precision="f32"):
    import numpy as np, openvino as ov
    core = ov.Core()
    t = time.perf_counter()
    c = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads,
                                          "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
    load, r = time.perf_counter() - t, c.create_infer_request()
    for k, v in np.load(inputs).items():
        r.set_tensor(k, ov.Tensor(v))
    return load, r.infer, (lambda: {o.get_any_name(): r.get_tensor(o).data for o in c.outputs}), None


def child(peer, model, inputs, threads, seconds, dump):
    import numpy as np, resource
    load, run, outputs, _keep = {"ort": lambda: ort(model, inputs, threads), "ort_off": lambda: ort(model, inputs, threads, "off"),
                                 "openvino": lambda: openvino(model, inputs, threads), "openvino_bf16": lambda: openvino(model, inputs, threads, "bf16")}[peer]()
    for _ in range(3 if seconds else 1):
        run()
    ts, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(ts) < (5 if seconds else 1):
        t = time.perf_counter(); run(); ts.append((time.perf_counter() - t) * 1e3)
    if dump:
        np.savez(dump, **outputs())
    ts.sort()
    print(json.dumps({"latency_ms": {"min": ts[0], "median": ts[len(ts) // 2], "p95": ts[int(len(ts) * .95)]},
                      "load_ms": load * 1e3, "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measure(tool, a, model, inputs, dump, seconds):
    if tool == "tenon":
        cmd = [a.tenon, "bench", model, "--inputs", inputs, "--outputs", dump, "--threads", str(a.threads), "--seconds", str(seconds),
               "--set", "precision.mode=" + a.precision, "--json"]
    else:
        cmd = [sys.executable, __file__, "--child", tool, model, inputs, str(a.threads), str(seconds), dump]
    p = subprocess.run(cmd, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{tool}: exit {p.returncode}: {(p.stderr or p.stdout)[-300:]}")
    return json.loads(p.stdout[p.stdout.index("{"):])


def error(ref, got, rtol, atol):
    """Largest difference in units of the tolerance (at most 1 is equal); infinite for a missing output, another shape or dtype, or a NaN or infinity that the reference has not."""
    import numpy as np
    r, g, worst = np.load(ref), np.load(got), 0.0
    for k in r.files:
        if k not in g.files or r[k].shape != g[k].shape or r[k].dtype != g[k].dtype:
            return math.inf
        x, y = r[k].astype(np.float64), g[k].astype(np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return math.inf
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        scale = min(1.0, float(np.abs(x).max(initial=0.0)) or 1.0)
        d = np.abs(x - y) / (atol * scale + rtol * np.abs(x))
        worst = max(worst, float(d.max(initial=0.0)))
    return worst


def bounds(ratios, n=2000):
    rng = random.Random(0)
    m = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(n))
    return statistics.median(ratios), m[int(.025 * n)], m[int(.975 * n) - 1]


def materialise(workload, cache):
    os.makedirs(cache, exist_ok=True)
    name, _, dims = workload.partition(":")
    model = os.path.join(cache, name + ".onnx")
    inputs = os.path.join(cache, workload.replace(":", "-").replace("=", "").replace(",", "-") + ".npz")
    if not (os.path.exists(model) and os.path.exists(inputs)):
        subprocess.run([sys.executable, os.path.join(NETWORKS, "materialise.py"), os.path.join(NETWORKS, "skeleton", name + ".onnx"),
                        model, "--inputs", inputs, "--dims", dims], check=True)
    return model, inputs


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        _, _, peer, model, inputs, threads, seconds, dump = sys.argv
        return child(peer, model, inputs, int(threads), float(seconds), dump)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workloads", nargs="*", default=DEFAULT)
    p.add_argument("--peers", default="ort,openvino")
    p.add_argument("--precision", default="faithful", choices=list(TOLERANCE))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--tenon", default="build/bin/tenon")
    p.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "tenon-models"))
    p.add_argument("--json")
    a = p.parse_args()
    peers = a.peers.split(",")
    tools = (["tenon"] if os.path.exists(a.tenon) else []) + peers
    result, logs = {}, []
    for w in a.workloads or DEFAULT:
        model, inputs = materialise(w, a.cache)
        rounds, failed, row = {t: [] for t in tools}, {}, {}
        with tempfile.TemporaryDirectory() as tmp:
            for _ in range(a.rounds):
                for t in [t for t in tools if t not in failed]:
                    try:
                        rounds[t].append(measure(t, a, model, inputs, os.path.join(tmp, t + ".npz"), a.seconds))
                    except Exception as e:
                        failed[t] = str(e)
            row = {"median_ms": {t: statistics.median(r["latency_ms"]["median"] for r in rounds[t]) for t in tools if rounds[t]}, "failed": failed, "rounds": rounds}
            line = f"{w:32}" + "".join(f"{t} {row['median_ms'].get(t, math.nan):9.2f} ms  " for t in tools)
            if rounds.get("tenon"):
                for q in [q for q in peers if rounds[q]]:
                    row["ratio_" + q] = bounds([x["latency_ms"]["median"] / y["latency_ms"]["median"] for x, y in zip(rounds["tenon"], rounds[q])])
                    line += "/ {} {:.3f} [{:.3f}..{:.3f}]  ".format(q, *row["ratio_" + q])
                best = [x["latency_ms"]["median"] / min(rounds[q][i]["latency_ms"]["median"] for q in peers if rounds[q]) for i, x in enumerate(rounds["tenon"])]
                row["ratio_best"] = bounds(best)
                logs.append(math.log(row["ratio_best"][0]))
                measure("ort_off", a, model, inputs, os.path.join(tmp, "ref.npz"), 0)
                row["error"] = error(os.path.join(tmp, "ref.npz"), os.path.join(tmp, "tenon.npz"), *TOLERANCE[a.precision])
                if any(k in w for k in ("qdq", "fp16", "int8")) and rounds.get("ort"):   # judged by ONNX Runtime's own spread between levels
                    row["error"] /= max(1.0, error(os.path.join(tmp, "ref.npz"), os.path.join(tmp, "ort.npz"), *TOLERANCE[a.precision]))
                line += f"error {row['error']:.2g} of what is allowed" + ("" if row["error"] <= 1 else "  NOT EQUAL") + f"  [{rounds['tenon'][0].get('precision')}, {rounds['tenon'][0].get('isa')}]"
        print(line, flush=True)
        for t, e in failed.items():
            print(f"    {e}")
        result[w] = row
    if logs:
        result["geomean_best"] = math.exp(sum(logs) / len(logs))
        print(f"geometric mean, Tenon / better peer: {result['geomean_best']:.3f} over {len(logs)} of {len(a.workloads or DEFAULT)} workloads")
    if a.json:
        json.dump(result, open(a.json, "w"), indent=1)


if __name__ == "__main__":
    main()
