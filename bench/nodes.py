#!/usr/bin/env python3
"""How many nodes a network has after `tenon optimize`, and after the other optimisers, as one table.

  nodes.py [NAME ...] [--tenon build/bin/tenon] [--cache DIR] [--peers onnxsim,onnxslim,ort] [--json OUT] [--operators NAME]

Counted in the file each tool writes, with functions inlined (onnx.inliner), nodes of sub-graphs included and Constant
nodes left out. Peers, each with its defaults: onnxsim (simplify), onnxslim (slim), ort (ONNX Runtime's saved model at
level basic). One that is not installed is said and left out. Each tool runs in a process of its own; what a peer gave for
a network and version is kept in the cache (nodes.json). --operators lists the operators of one network by tool, to see
where a difference lies. The networks are tests/networks' (made in the cache when missing; the trained ones only where
real.py fetched them). Needs numpy and onnx. Exit code: 0 nowhere more nodes than a peer, 1 more somewhere or a failure,
2 bad usage.
"""
import argparse
import importlib.metadata
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "networks"))
from cache import NETWORKS, SKELETONS, Failed, default_cache, execute, prepare  # noqa: E402

PEERS = {"onnxsim": "onnxsim", "onnxslim": "onnxslim", "ort": "onnxruntime"}  # the package each comes in
TIMEOUT = 900


def operators(path):
    """Operator -> count: functions inlined, sub-graphs included, Constant nodes left out."""
    import onnx
    import onnx.inliner
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[:]  # their size is no matter here, and the inliner copies all it gets
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    count, graphs = {}, [model.graph]
    while graphs:
        for node in graphs.pop().node:
            if node.op_type != "Constant":
                name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
                count[name] = count.get(name, 0) + 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs.extend(attribute.graphs)
    return count


def run_peer(peer, model, out):
    if peer == "onnxsim":
        import onnx
        import onnxsim
        onnx.save(onnxsim.simplify(onnx.load(model))[0], out)
    elif peer == "onnxslim":
        import onnxslim
        onnxslim.slim(model, out)
    else:
        import onnxruntime as rt
        options = rt.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = out
        rt.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def after(tool, tenon, model):
    """The operators of what TOOL makes of MODEL; raises Failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.onnx")
        if tool == "tenon":
            execute([tenon, "optimize", model, "-o", out], TIMEOUT)
        else:
            execute([sys.executable, __file__, "--peer", tool, model, out], TIMEOUT)
        return operators(out)


def installed(peers):
    versions = {}
    for peer in peers:
        try:
            versions[peer] = importlib.metadata.version(PEERS[peer])
        except importlib.metadata.PackageNotFoundError:
            print(f"{peer} is not installed (pip install {PEERS[peer]}): its column is missing", file=sys.stderr)
    return versions


class Kept:
    """What peers gave, by network, size and date of its file, and version."""
    def __init__(self, path):
        self.path, self.rows = path, {}
        if os.path.exists(path):
            with open(path) as f:
                self.rows = json.load(f)

    def get(self, peer, version, name, model):
        stat = os.stat(model)
        key = f"{peer} {version} {name} {stat.st_size} {stat.st_mtime_ns}"
        if key not in self.rows:
            try:
                self.rows[key] = after(peer, None, model)
            except Failed as e:
                self.rows[key] = str(e)
            part = f"{self.path}.{os.getpid()}.part"
            with open(part, "w") as f:
                json.dump(self.rows, f)
            os.replace(part, self.path)
        return self.rows[key]


def cell(found):
    return str(sum(found.values())) if isinstance(found, dict) else "fails"


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--peer":
        return run_peer(*sys.argv[2:])
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME")
    p.add_argument("--tenon", default=os.path.join(HERE, "..", "build", "bin", "tenon"))
    p.add_argument("--cache", default=default_cache())
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--operators", metavar="NAME")
    p.add_argument("--json", metavar="OUT")
    a = p.parse_args()
    names = [a.operators] if a.operators else a.names or NETWORKS
    peers = [x for x in a.peers.split(",") if x]
    unknown = [n for n in names if n not in NETWORKS] + [x for x in peers if x not in PEERS]
    if unknown:
        p.error(f"unknown: {', '.join(unknown)}; networks: {', '.join(NETWORKS)}; peers: {', '.join(PEERS)}")
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build) or name it with --tenon")
    versions, kept, rows, wrong = installed(peers), Kept(os.path.join(a.cache, "nodes.json")), {}, []
    print("| network | as it came | Tenon | " + " | ".join(f"{x} {v}" for x, v in versions.items()) + " |")
    print("|" + "---|" * (3 + len(versions)), flush=True)
    for name in names:
        model = os.path.join(a.cache, name + ".onnx")
        try:
            if not os.path.exists(model):
                prepare(name, a.cache)
            row = {"as it came": operators(model), "tenon": after("tenon", a.tenon, model)}
        except Failed as e:
            if name in SKELETONS or os.path.exists(model):
                wrong.append(f"{name}: {e}")
            else:
                print(f"{name} left out: {e}", file=sys.stderr)
            continue
        row.update({peer: kept.get(peer, version, name, model) for peer, version in versions.items()})
        ours, rows[name] = sum(row["tenon"].values()), row
        more = [x for x in versions if isinstance(row[x], dict) and sum(row[x].values()) < ours]
        wrong += [f"{name}: {ours} nodes, {x} {cell(row[x])}" for x in more]
        print(f"| {name} | " + " | ".join(("**{}**" if t == "tenon" and more else "{}").format(cell(c)) for t, c in row.items()) + " |",
              flush=True)
        for peer in versions:
            if isinstance(row[peer], str):
                print(f"{peer} fails on {name}: {row[peer][-200:]}", file=sys.stderr)
    if a.operators and rows:
        row = rows[a.operators]
        kinds = sorted({op for c in row.values() if isinstance(c, dict) for op in c})
        for op in kinds:
            counts = [str(c.get(op, 0)) if isinstance(c, dict) else "-" for c in row.values()]
            print(f"  {op:40}" + "".join(f"{c:>12}" for c in counts) + ("" if len(set(counts[1:])) < 2 else "  *"))
    for w in wrong:
        print(f"FAIL {w}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"versions": versions, "networks": rows, "failed": wrong}, f, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
