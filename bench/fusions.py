#!/usr/bin/env python3
"""How many decomposed operators of a network each optimiser finds and makes one of, as one table.

  fusions.py [NAME ...] [--tenon build/bin/tenon] [--cache DIR] [--peers ort,openvino,onnxslim] [--json OUT]

Families: LayerNorm, RMSNorm, GELU, SiLU, attention core (softmax(Q K^T) V). `there` is how many the network has, by
the one part of each that it cannot miss (Erf, a Sigmoid times its own operand, a Softmax that a MatMul reads, the root
of a mean of squares). A fused operator counts wherever it went: alone, with a residual, a bias, as the activation of a
product or convolution.
  tenon     the file `tenon optimize` writes, calls of functions counted with what is in them
  ort       the model ONNX Runtime saves at ORT_ENABLE_ALL
  openvino  after its common transformations (MOC), or compiled for the CPU, where it is more
  onnxslim  slim()
Each tool runs in a process of its own; a peer that is not installed is said and left out. The networks are
tests/networks'. Exit code: 0 Tenon finds all that is there and nowhere less than a peer, 1 it does not, 2 bad usage.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "networks"))
from cache import default_cache, prepare  # noqa: E402

NETWORKS = ["bert_base", "gpt2", "vit_b_16", "llama_110m", "yolov5s"]
MODULES = {"ort": "onnxruntime", "openvino": "openvino", "onnxslim": "onnxslim"}
FAMILIES = {
    "LayerNorm": {"LayerNormalization", "SkipLayerNormalization", "EmbedLayerNormalization", "MVN"},
    "RMSNorm": {"RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "RMS", "RMSNorm"},
    "GELU": {"Gelu", "BiasGelu", "FastGelu"},
    "SiLU": {"Swish", "QuickGelu"},
    "attention": {"SDPA", "MultiHeadSDPA", "Attention", "MultiHeadAttention", "GroupQueryAttention", "ScaledDotProductAttention",
                  "ScaledDotProductAttentionWithKVCache"},
}


def counts_of(kinds):
    return {f: sum(n for op, n in kinds.items() if op in names) for f, names in FAMILIES.items()}


def kinds_of_onnx(path):
    """Operator -> count; a call of a function of the file counts as itself and as what is in it."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    functions = {(f.domain, f.name): f.node for f in model.functions}
    inner = {}  # functions are listed before what calls them or after: settled by need, without recursion
    def settled(nodes):
        kinds, todo = {}, list(nodes)
        while todo:
            node = todo.pop()
            called = (node.domain, node.op_type)
            if called in functions and called not in inner:
                return called
            # "SDPA_3" is the third body of SDPA
            name = node.op_type.split("_")[0] if called in functions else node.op_type
            more = {name: 1}
            # What a fused attention or norm holds are the parts it stands for, one of which is itself a family.
            for op, n in inner.get(called, {}).items():
                more[op] = more.get(op, 0) + n
            for op, n in more.items():
                kinds[op] = kinds.get(op, 0) + n
            for a in node.attribute:
                todo += list(a.g.node)
        return kinds
    stack = list(functions)
    while stack:
        got = settled(functions[stack[-1]])
        if isinstance(got, tuple):
            stack.append(got)
        else:
            inner[stack.pop()] = {op: n for op, n in got.items() if op not in FAMILIES["attention"]}
    return settled(model.graph.node)


def there(path):
    """What the exporter took apart, and what it left whole."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    made = {o: n for n in graph.node for o in n.output}
    readers = {}
    for n in graph.node:
        for i in n.input:
            readers.setdefault(i, []).append(n)
    def maker(value, *ops):
        n = made.get(value)
        return n if n is not None and n.op_type in ops else None
    found = counts_of(kinds_of_onnx(path))
    for n in graph.node:
        if n.op_type == "Softmax":
            after = readers.get(n.output[0], [])
            while len(after) == 1 and after[0].op_type in ("Cast", "Dropout", "Identity"):
                after = readers.get(after[0].output[0], [])
            found["attention"] += any(r.op_type == "MatMul" for r in after)
        elif n.op_type == "Erf" or n.op_type == "Tanh" and any(r.op_type == "Add" for r in readers.get(n.output[0], [])):
            found["GELU"] += 1
        elif n.op_type == "Sigmoid":
            factor = maker(n.input[0], "Mul")
            roots = {n.input[0], *(factor.input if factor else ())}
            found["SiLU"] += any(r.op_type == "Mul" and roots & set(r.input) for r in readers.get(n.output[0], []))
        elif n.op_type == "Sqrt":
            add = maker(n.input[0], "Add")
            mean = add and next((m for m in (maker(i, "ReduceMean") for i in add.input) if m), None)
            square = mean and maker(mean.input[0], "Pow", "Mul")
            if square:
                found["LayerNorm" if maker(square.input[0], "Sub") else "RMSNorm"] += 1
    return found


def run_peer(peer, model, folder):
    out = os.path.join(folder, "out.onnx")
    if peer == "ort":
        import onnxruntime as rt
        options = rt.SessionOptions()
        options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath, options.log_severity_level = out, 4
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "out.bin")
        rt.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return kinds_of_onnx(out)
    if peer == "onnxslim":
        import onnx
        import onnxslim
        slim = onnxslim.slim(onnx.load(model))
        kinds = {}
        for node in slim.graph.node:
            kinds[node.op_type] = kinds.get(node.op_type, 0) + 1
        return kinds
    import openvino as ov
    from openvino._offline_transformations import apply_moc_transformations
    def kinds(ops, name):
        found = {}
        for op in ops:
            found[name(op)] = found.get(name(op), 0) + 1
        return found
    core = ov.Core()
    net = core.read_model(model)
    apply_moc_transformations(net, cf=False)
    common = kinds(net.get_ops(), lambda op: op.get_type_name())
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).get_runtime_model()
    ran = kinds(compiled.get_ops(), lambda op: str(op.get_rt_info()["layerType"].astype(str)))
    return {op: max(common.get(op, 0), ran.get(op, 0)) for op in {*common, *ran}}


def measure(tool, model, tenon):
    with tempfile.TemporaryDirectory() as folder:
        if tool == "tenon":
            out = os.path.join(folder, "out.onnx")
            subprocess.run([tenon, "optimize", model, "-o", out, "--opset", "24", "--external", "-q"], check=True)
            return counts_of(kinds_of_onnx(out))
        done = subprocess.run([sys.executable, __file__, "--worker", tool, model, folder], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{tool}: {done.stderr.strip().splitlines()[-1:]}")
        return counts_of(json.loads(done.stdout.strip().splitlines()[-1]))


def main():
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(run_peer(*sys.argv[2:5])))
        return 0
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME")
    p.add_argument("--tenon", default=os.path.join(HERE, "..", "build", "bin", "tenon"))
    p.add_argument("--cache", default=default_cache())
    p.add_argument("--peers", default="ort,openvino,onnxslim")
    p.add_argument("--json")
    a = p.parse_args()
    peers = [x for x in a.peers.split(",") if x]
    if unknown := [x for x in peers if x not in MODULES]:
        p.error(f"no peer {unknown[0]!r}; there are {', '.join(MODULES)}")
    for peer in [x for x in peers if importlib.util.find_spec(MODULES[x]) is None]:
        print(f"{peer} is not installed: left out", file=sys.stderr)
        peers.remove(peer)
    tools, table, holds = ["tenon", *peers], {}, True
    print("| network | family | there | " + " | ".join(tools) + " |\n|---|---|---" + "|---" * len(tools) + "|")
    for name in a.names or NETWORKS:
        model = os.path.join(a.cache, name + ".onnx")
        if not os.path.exists(model):
            prepare(name, a.cache)
        table[name] = {"there": there(model)}
        for tool in tools:
            table[name][tool] = measure(tool, model, a.tenon)
        for family in FAMILIES:
            row = [table[name][t][family] for t in ["there", *tools]]
            if not any(row):
                continue
            holds = holds and row[1] >= row[0] and row[1] == max(row[1:])
            print(f"| {name} | {family} | " + " | ".join(map(str, row)) + " |", flush=True)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(table, f, indent=1)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
