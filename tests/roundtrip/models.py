"""Where the models of run.py come from: each source yields Model(name, path, feeds), feeds being file names."""
import collections
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = os.path.normpath(os.path.join(HERE, "..", "networks"))

# feeds: one .npz, or the input_<i>.pb files of an ONNX test, in the order of the model's inputs. expected: an .npz of what is
# right where ONNX Runtime may be wrong, or None.
Model = collections.namedtuple("Model", "name path feeds expected", defaults=(None,))


def node_tests(folder):
    """Tests as tests/conformance/generate.py writes them (or ONNX's own files)."""
    for path in sorted(glob.glob(os.path.join(folder, "*", "model.onnx"))):
        directory = os.path.dirname(path)
        inputs = glob.glob(os.path.join(directory, "test_data_set_0", "input_*.pb"))
        inputs.sort(key=lambda p: int(p.rsplit("_", 1)[1][:-3]))
        yield Model(os.path.basename(directory), path, inputs)


def cases(folder):
    """The bug-report cases whose model is valid: those that expect outputs."""
    for path in sorted(glob.glob(os.path.join(folder, "*", "model.onnx"))):
        directory = os.path.dirname(path)
        inputs, expected = (os.path.join(directory, name) for name in ("inputs.npz", "expected.npz"))
        if os.path.exists(expected):
            yield Model(os.path.basename(directory), path, [inputs] if os.path.exists(inputs) else [], expected)


def networks(cache, only):
    """Those of tests/networks whose model and inputs lie in its cache; those asked for by name are made there."""
    sys.path.insert(0, NETWORKS)
    import cache as store
    for name in store.NETWORKS:
        if only and name not in only:
            continue
        model, inputs = (os.path.join(cache, name + ending) for ending in (".onnx", ".npz"))
        if only and not (os.path.exists(model) and os.path.exists(inputs)):
            store.prepare(name, cache)
        if os.path.exists(model) and os.path.exists(inputs):
            yield Model(name, model, [inputs])


def random_graphs(program, seed, count, folder):
    """Written by tests/fuzz's generator. What it finds wrong itself is its own test's matter."""
    subprocess.run([program, "--seed", str(seed), "--count", str(count), "--dump", folder, "--out", folder],
                   stdout=subprocess.DEVNULL, check=False)
    for number in range(seed, seed + count):
        path = os.path.join(folder, f"{number}.onnx")
        if os.path.exists(path):
            yield Model(f"seed {number}", path, [path[:-len(".onnx")] + ".inputs.npz"])
