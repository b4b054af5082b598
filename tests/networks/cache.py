"""The networks, their inputs and ONNX Runtime's outputs for them, kept in a folder and made when missing."""
import hashlib
import os
import signal
import subprocess
import sys
import time

import real

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = {"batch": 2}
BERT = {"batch": 2, "seq": 77}
DECODER = {"batch": 2, "seq": 3, "past": 5}

# name: (second sizes or None, configurations of --quick)
SKELETONS = {
    "resnet50": (BATCH, ("default", "plain", "optimized")),
    "mobilenet_v2": (BATCH, ("default", "plain", "reference", "optimized")),
    "mobilenet_v2_fp16": (BATCH, ("default",)),
    "mobilenet_v2_qdq": (BATCH, ("default",)),
    "yolov5s": (None, ()),
    "yolov5s_dynamic": ({"batch": 2, "height": 256, "width": 416}, ()),
    "yolov5s_nms": (None, ("default",)),
    "efficientnet_b0": (BATCH, ("default",)),
    "vit_b_16": (BATCH, ()),
    "swin_t": (BATCH, ()),
    "convnext_tiny": (BATCH, ()),
    "bert_base": (BERT, ("default",)),
    "bert_base_op18": (BERT, ()),
    "gpt2": (DECODER, ("default",)),
    "llama_110m": (DECODER, ()),
    "llama_110m_op18": (DECODER, ()),
    "llama_110m_op23": (DECODER, ()),
    "crnn": ({"batch": 2, "width": 100}, ("default", "plain", "optimized")),
    "greedy_decode": ({"length": 3}, ("default", "plain", "optimized")),
    "unet": ({"batch": 2, "height": 32, "width": 48}, ("default",)),
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
NETWORKS = [*SKELETONS, *real.INPUTS]
# Rounding to 8 or 16 bits between operators: held to the distance of ONNX Runtime's own outputs, once optimised and
# eight times with inputs and weights off by a rounding error.
ROUNDED = {"mobilenet_v2_fp16", "mobilenet_v2_qdq", "dddd_ocr_int8", "voicefilter_int8", "voice_embed_int8", "tashkeel_int8", "kokoro_int8"}
SCORES = {"yolov5s_nms": "scores"}  # the output that orders the rows of all


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


def default_cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tenon", "networks")


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


def ort_outputs(level, threads, seed, model, inputs, outputs):
    """Writes ONNX Runtime's outputs. A seed other than 0 moves each float of the inputs and of the weights by a rounding error."""
    import numpy as np
    import onnx
    import onnxruntime as rt
    options = rt.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = int(threads)
    options.graph_optimization_level = getattr(rt.GraphOptimizationLevel, level)
    with np.load(inputs) as z:
        feeds = {k: z[k] for k in z.files}
    if seed != "0":
        rng = np.random.RandomState(int(seed))

        def moved(x):
            return (x * (1 + 2.0 ** -23 * rng.uniform(-1, 1, x.shape))).astype(x.dtype)

        feeds = {k: moved(x) if x.dtype.kind == "f" else x for k, x in feeds.items()}
        changed = onnx.load(model)
        for t in changed.graph.initializer:
            x = onnx.numpy_helper.to_array(t)
            if x.dtype == np.float32 and x.size >= 16:  # smaller ones may be sizes and counts
                t.CopyFrom(onnx.numpy_helper.from_array(moved(x), t.name))
        model = changed.SerializeToString()
    session = rt.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    np.savez(outputs, **dict(zip(names, session.run(None, feeds))))


def ort(model, inputs, outputs, level="ORT_DISABLE_ALL", threads=2, seed=0):
    """ONNX Runtime in a process of its own: what it holds is given back, and a crash of it is a message."""
    written(outputs, lambda part: execute([sys.executable, __file__, level, str(threads), str(seed), model, inputs, part], 900))


class Inputs:
    """One set of inputs: a label; files of the inputs, of the outputs wanted, and of others of ONNX Runtime's that are as
    good (none but for networks that round); the output by which rows are ordered (or None)."""
    def __init__(self, label, inputs, expected, others, scores):
        self.label, self.inputs, self.expected, self.others, self.scores = label, inputs, expected, others, scores


def prepare(name, cache):
    """Makes what is missing and returns (model, [Inputs])."""
    os.makedirs(cache, exist_ok=True)
    model, stamp = os.path.join(cache, name + ".onnx"), os.path.join(cache, name + ".stamp")
    skeleton, tool = os.path.join(HERE, "skeleton", name + ".onnx"), os.path.join(HERE, "materialise.py")
    if name in SKELETONS:
        now = digest(skeleton, tool)
        makers = [("sample", stem(name, {}), lambda path: write_sample(skeleton, {}, path))]
        if SKELETONS[name][0]:
            dims = SKELETONS[name][0]
            makers.append((",".join(f"{k}={v}" for k, v in dims.items()), stem(name, dims), lambda path: write_sample(skeleton, dims, path)))
    else:
        now = digest(real.__file__) + real.pinned()[name + ".onnx"][0]
        makers = [(label, f"{name}-{i}" if i else name, lambda path, make=make: write_arrays(make(), path))
                  for i, (label, make) in enumerate(real.INPUTS[name])]
    fresh = os.path.exists(stamp) and open(stamp).read() == now
    if name in real.INPUTS:
        try:
            real.fetch(name, cache)
        except RuntimeError as e:
            raise Failed(str(e)) from None
    elif not fresh or not os.path.exists(model):
        written(model, lambda part: execute([sys.executable, tool, skeleton, part], 600))
    sets = []
    # One thread where results are rounded: with more, ONNX Runtime's quantised LSTM rounds each part of a batch by itself.
    threads = 1 if name in ROUNDED else 2
    for label, base, make in makers:
        inputs, expected = os.path.join(cache, base + ".npz"), os.path.join(cache, base + ".ort.npz")
        if not fresh or not os.path.exists(inputs):
            written(inputs, make)
        if not fresh or not os.path.exists(expected):
            ort(model, inputs, expected, threads=threads)
        others = []
        for seed in range(9) if name in ROUNDED else ():  # 0: the optimised one
            others.append(os.path.join(cache, f"{base}.ort-{seed}.npz" if seed else base + ".ort-optimised.npz"))
            if not fresh or not os.path.exists(others[-1]):
                ort(model, inputs, others[-1], "ORT_DISABLE_ALL" if seed else "ORT_ENABLE_ALL", threads, seed)
        sets.append(Inputs(label, inputs, expected, others, SCORES.get(name)))
    with open(stamp, "w") as f:
        f.write(now)
    return model, sets


def write_arrays(arrays, path):
    import numpy as np
    np.savez(path, **arrays)


def write_sample(skeleton, dims, path):
    import onnx
    import materialise
    model = onnx.load(skeleton)
    shapes, start = materialise.sized(model, dims) if dims else (None, None)
    write_arrays(materialise.sample_inputs(model, 0, shapes, start), path)


if __name__ == "__main__":  # what ort() starts
    ort_outputs(*sys.argv[1:])
