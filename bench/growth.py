#!/usr/bin/env python3
"""How the cost of `tenon optimize` and of a session grows with the graph.

  growth.py [--tenon build/bin/tenon] [--cache DIR] [--counter perf|callgrind|none] [--only NAME]
            [--million] [--peers ort,openvino,onnxsim] [--json OUT]

Makes decoder graphs of 10,000 and 100,000 nodes (tests/networks/make_graph.py) and a chain of 1,000,000 elementwise
nodes (--million: a decoder of 1,000,000 nodes too), sends each through `tenon optimize` and, the decoders, through a
whole session (`tenon run` on 8 tokens: kernels chosen, memory planned, run once), and prints CPU seconds of each, what
matching took of it, peak memory and, for the first two, instructions: `perf stat -e instructions:u` where the machine
counts them, else valgrind's callgrind, which is some fifty times slower.

Limits at 100,000 nodes: optimize 2 s of CPU and 400 MB, matching 0.3 s, a session 4 s, instructions at most 12 times
those of 10,000 nodes. What has a million nodes must only come through.

--peers measures other tools on the 100,000 nodes in the same run, each in a fresh process, by CPU seconds and peak
memory with what the import alone takes taken off the seconds: `ort` is ONNX Runtime's session creation at level "all",
`openvino` its compile_model, `onnxsim` its simplify. Needs numpy and onnx, and the peers named. Exit code: 0 all hold,
1 some do not, 2 bad usage.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.normpath(os.path.join(HERE, ".."))
MAKE_GRAPH = os.path.join(REPOSITORY, "tests", "networks", "make_graph.py")
LIMITS = {"cpu_s": 2.0, "match_s": 0.3, "session_s": 4.0, "peak_rss_mb": 400}  # at 100,000 nodes
GROWTH_LIMIT = 12
DECODERS = {"graph_10k": 10_000, "graph_100k": 100_000, "graph_1m": 1_000_000}
PEERS = {
    "ort": ("import onnxruntime as o", "s = o.SessionOptions(); s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_ALL; "
            "o.InferenceSession(path, s, providers=['CPUExecutionProvider'])"),
    "openvino": ("import openvino as o", "o.Core().compile_model(path, 'CPU')"),
    "onnxsim": ("import onnx, onnxsim", "onnxsim.simplify(onnx.load(path))"),
}


def make_chain(path, count=1_000_000):
    """x -> Neg -> Sin -> Neg ... -> y: no two neighbours cancel, and every node depends on the one before."""
    import onnx
    from onnx import TensorProto, helper
    graph = onnx.GraphProto(name="chain")
    for i in range(count):
        node = graph.node.add()
        node.op_type, node.name = ("Neg", "Sin")[i % 2], f"n{i}"
        node.input.append(f"v{i}" if i else "x")
        node.output.append(f"v{i + 1}" if i + 1 < count else "y")
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]))
    graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def prepare(cache, million):
    import numpy
    os.makedirs(cache, exist_ok=True)
    names = ["graph_10k", "graph_100k", "chain_1m"] + (["graph_1m"] if million else [])
    paths = {n: os.path.join(cache, n + ".onnx") for n in names}
    for name, path in paths.items():
        if os.path.exists(path):
            continue
        part = path + ".part"
        if name == "chain_1m":
            make_chain(part)
        else:
            subprocess.run([sys.executable, MAKE_GRAPH, "--nodes", str(DECODERS[name]), part], check=True)
        os.replace(part, path)
    numpy.savez(os.path.join(cache, "growth_inputs.npz"), input_ids=numpy.arange(8).reshape(1, 8) % 64,
                attention_mask=numpy.ones((1, 8), numpy.int64))
    return paths


def measured(command, timeout, out=None):
    """Runs it; returns (CPU seconds, peak MB) of that child alone; raises RuntimeError. A timer kills it when it hangs."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out or subprocess.DEVNULL, stderr=err)
        killed = []
        timer = threading.Timer(timeout, lambda: (killed.append(1), os.kill(process.pid, 9)))
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            err.seek(0)
            why = f"no end after {timeout} s" if killed else f"exit status {process.returncode}"
            raise RuntimeError(f"{why}: {err.read().decode('utf-8', 'replace').strip()[-300:]}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def optimize(tenon, model, timeout):
    """tenon optimize: CPU seconds, peak MB, and what matching took of the seconds."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        cpu, memory = measured([tenon, "optimize", model, "--json", "-o", os.path.join(folder, "out.onnx")], timeout, said)
        said.seek(0)
        report = json.load(said)
        return {"cpu_s": cpu, "peak_rss_mb": memory, "nodes": [report["nodes_before"], report["nodes_after"]],
                "match_s": sum(rule["ms"] for rule in report["matching"].values()) / 1e3}


def peer(name, model, timeout):
    load, work = PEERS[name]
    program = [sys.executable, "-c"]
    alone, _ = measured(program + [load], timeout)
    cpu, memory = measured(program + [f"path = {model!r}; {load}; {work}"], timeout)
    return {"cpu_s": cpu - alone, "peak_rss_mb": memory}


def counted_by_perf(command):
    p = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], capture_output=True, text=True)
    found = re.search(r"^(\d+),[^,]*,instructions", p.stderr, re.M)
    return int(found.group(1)) if p.returncode == 0 and found else None


def counted_by_callgrind(command):
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--trace-children=no", *command],
                           capture_output=True, text=True)
        found = re.search(r"Collected\s*:\s*(\d+)", p.stderr)
        if p.returncode or not found:
            raise RuntimeError(f"callgrind: exit {p.returncode}: {p.stderr.strip()[-300:]}")
        return int(found.group(1))


def pick_counter(wish):
    if wish == "none":
        return None
    if wish in (None, "perf") and shutil.which("perf") and counted_by_perf(["true"]):
        return "perf"
    if wish in (None, "callgrind") and shutil.which("valgrind"):
        return "callgrind"
    sys.exit(f"growth.py: {'neither perf nor valgrind counts' if wish is None else wish + ' does not count'} instructions here; "
             "install valgrind, or leave the count out with --counter none")


def instructions(counter, tenon, model):
    with tempfile.TemporaryDirectory() as folder:
        command = [tenon, "optimize", model, "-o", os.path.join(folder, "out.onnx")]
        count = counted_by_perf(command) if counter == "perf" else counted_by_callgrind(command)
        if not count:
            raise RuntimeError(f"{counter} counted nothing; does `{' '.join(command)}` end with 0?")
        return count


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tenon", default=os.path.join(REPOSITORY, "build", "bin", "tenon"))
    p.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "tenon-models"))
    p.add_argument("--counter", choices=["perf", "callgrind", "none"])
    p.add_argument("--only", metavar="NAME", help="graphs whose name has this in it: graph, chain, 100k ...")
    p.add_argument("--million", action="store_true", help="a decoder of 1,000,000 nodes too")
    p.add_argument("--peers", default="", metavar="LIST", help="comma-separated: " + ", ".join(PEERS))
    p.add_argument("--timeout", type=float, default=300, help="seconds for one run of Tenon; a peer gets 10 times that")
    p.add_argument("--prepare", action="store_true", help="only make the graphs")
    p.add_argument("--json", metavar="OUT")
    a = p.parse_args()
    peers = [name for name in a.peers.split(",") if name]
    if unknown := [name for name in peers if name not in PEERS]:
        p.error(f"no peer is called {unknown[0]}; there are {', '.join(PEERS)}")
    paths = prepare(a.cache, a.million)
    if a.prepare:
        return 0
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build) or name it with --tenon")
    if a.only:
        paths = {name: path for name, path in paths.items() if a.only in name}
    if peers and "graph_100k" not in paths:
        p.error("--peers go with graph_100k, which --only leaves out")
    counter = pick_counter(a.counter) if {"graph_10k", "graph_100k"} & set(paths) else None
    rows, wrong = {}, []
    for name, path in paths.items():
        try:
            row = optimize(a.tenon, path, a.timeout)
            if name in DECODERS:
                row["session_s"], row["session_mb"] = measured(
                    [a.tenon, "run", path, "-q", "--inputs", os.path.join(a.cache, "growth_inputs.npz")], a.timeout)
            if counter and name in ("graph_10k", "graph_100k"):
                row["instructions"] = instructions(counter, a.tenon, path)
        except RuntimeError as e:
            wrong.append(f"{name}: {e}")
            continue
        rows[name] = row
        print(f"{name:11} {row['nodes'][0]:8,d} -> {row['nodes'][1]:8,d} nodes {row['cpu_s']:7.2f} s CPU, matching "
              f"{row['match_s']:6.3f} s, {row['peak_rss_mb']:6.0f} MB"
              + (f"; session {row['session_s']:6.2f} s, {row['session_mb']:5.0f} MB" if "session_s" in row else "")
              + (f"; {row['instructions']:,d} instructions ({counter})" if "instructions" in row else ""), flush=True)
    for key, limit in LIMITS.items():
        if rows.get("graph_100k", {}).get(key, 0) > limit:
            wrong.append(f"graph_100k: {key} is {rows['graph_100k'][key]:.3f}, want at most {limit}")
    if counter and {"graph_10k", "graph_100k"} <= set(rows):
        growth = rows["graph_100k"]["instructions"] / rows["graph_10k"]["instructions"]
        rows["growth"] = growth
        print(f"instructions grow {growth:.2f} times from 10,000 to 100,000 nodes (limit {GROWTH_LIMIT})")
        if growth > GROWTH_LIMIT:
            wrong.append(f"instructions grow {growth:.2f} times, want at most {GROWTH_LIMIT}")
    for name in peers:
        try:
            rows[name] = peer(name, paths["graph_100k"], 10 * a.timeout)
            print(f"{name:11} on graph_100k {rows[name]['cpu_s']:14.2f} s CPU, {rows[name]['peak_rss_mb']:7.0f} MB", flush=True)
        except RuntimeError as e:
            wrong.append(f"peer {name}: {e}")
    for w in wrong:
        print(f"FAIL {w}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({**rows, "counter": counter, "failed": wrong}, f, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
