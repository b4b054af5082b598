#!/usr/bin/env python3
"""How the cost of `tenon optimize` grows with the graph.

  growth.py [--tenon build/bin/tenon] [--cache DIR] [--counter perf|callgrind|none] [--only graph|chain] [--json OUT]

Makes decoder graphs of 10,000 and 100,000 nodes (tests/networks/make_graph.py) and a chain of 1,000,000 elementwise
nodes, sends each through `tenon optimize`, and prints CPU seconds, peak memory and, for the two graphs, instructions:
`perf stat -e instructions:u` where the machine counts them, else valgrind's callgrind, which is some fifty times slower.
From 10,000 to 100,000 nodes the instructions may grow 14 times; the large graph may take 8 s of CPU and 600 MB; the
chain must only come through. Needs numpy and onnx. Exit code: 0 all hold, 1 some do not, 2 bad usage.
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
GROWTH_LIMIT, CPU_LIMIT_S, MEMORY_LIMIT_MB = 14, 8, 600


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


def prepare(cache):
    os.makedirs(cache, exist_ok=True)
    paths = {n: os.path.join(cache, n + ".onnx") for n in ("graph_10k", "graph_100k", "chain_1m")}
    for name, path in paths.items():
        if os.path.exists(path):
            continue
        part = path + ".part"
        if name == "chain_1m":
            make_chain(part)
        else:
            nodes = {"graph_10k": "10000", "graph_100k": "100000"}[name]
            subprocess.run([sys.executable, MAKE_GRAPH, "--nodes", nodes, part], check=True)
        os.replace(part, path)
    return paths


def optimize(tenon, model, timeout):
    """Runs tenon optimize and returns (CPU seconds, peak MB); raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([tenon, "optimize", model, "-o", os.path.join(folder, "out.onnx")],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        # wait4 gives the resources of this child alone; a timer kills it when it hangs.
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
    p.add_argument("--only", choices=["graph", "chain"])
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--prepare", action="store_true", help="only make the graphs")
    p.add_argument("--json", metavar="OUT")
    a = p.parse_args()
    paths = prepare(a.cache)
    if a.prepare:
        return 0
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build) or name it with --tenon")
    counter = pick_counter(a.counter) if a.only != "chain" else None
    rows, wrong = {}, []
    for name, path in paths.items():
        if a.only and a.only not in name:
            continue
        try:
            cpu, memory = optimize(a.tenon, path, a.timeout)
            count = instructions(counter, a.tenon, path) if counter and name != "chain_1m" else None
        except RuntimeError as e:
            wrong.append(f"{name}: {e}")
            continue
        rows[name] = {"cpu_s": cpu, "peak_rss_mb": memory, "instructions": count}
        print(f"{name:12} {cpu:8.2f} s CPU {memory:9.1f} MB" + (f" {count:16,d} instructions ({counter})" if count else ""), flush=True)
    if "graph_100k" in rows:
        if rows["graph_100k"]["cpu_s"] > CPU_LIMIT_S:
            wrong.append(f"graph_100k: {rows['graph_100k']['cpu_s']:.2f} s CPU, want at most {CPU_LIMIT_S}")
        if rows["graph_100k"]["peak_rss_mb"] > MEMORY_LIMIT_MB:
            wrong.append(f"graph_100k: {rows['graph_100k']['peak_rss_mb']:.0f} MB, want at most {MEMORY_LIMIT_MB}")
    if counter and {"graph_10k", "graph_100k"} <= set(rows):
        growth = rows["graph_100k"]["instructions"] / rows["graph_10k"]["instructions"]
        rows["growth"] = growth
        print(f"instructions grow {growth:.2f} times from 10,000 to 100,000 nodes (limit {GROWTH_LIMIT})")
        if growth > GROWTH_LIMIT:
            wrong.append(f"instructions grow {growth:.2f} times, want at most {GROWTH_LIMIT}")
    for w in wrong:
        print(f"FAIL {w}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({**rows, "counter": counter, "failed": wrong}, f, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
