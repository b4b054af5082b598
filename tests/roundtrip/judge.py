"""One model's trips: what ONNX Runtime gives for the model as it is, and for what `tenon optimize` makes of it."""
import collections
import ctypes
import math
import os
import re
import subprocess

import numpy as np
import onnx
import onnxruntime as rt
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

RTOL, ATOL = 1e-3, 1e-4
# Float32 operators rounded to 16 bits in between: some steps of the last place.
RTOL_OF = {"float16": 1e-2, "bfloat16": 6e-2}
MODEL_LIMIT = 2 << 30

Record = collections.namedtuple("Record", "model level opset status note", defaults=("",))
Result = collections.namedtuple("Result", "kind bits")  # a tensor that numpy has no type for


class Refused(Exception):
    """ONNX Runtime does not take the model, or `tenon` does not."""


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or ["no message"])[0]


# ------------------------------------------------------------------------------------------------ inputs and runs
def tensor_feed(proto):
    if proto.data_type in (TensorProto.BFLOAT16, *range(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2FNUZ + 1)):
        array = numpy_helper.to_array(proto)
        return rt.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16 if array.itemsize == 2 else np.uint8), proto.data_type)
    array = numpy_helper.to_array(proto)
    return array.astype(object) if array.dtype.kind in "SU" else array


def feed_of(path, declared):
    data = open(path, "rb").read()
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        proto = SequenceProto.FromString(data)
        return [tensor_feed(t) for t in proto.tensor_values]
    if kind == "optional_type":
        proto = OptionalProto.FromString(data)
        if proto.elem_type == OptionalProto.SEQUENCE:
            return [tensor_feed(t) for t in proto.sequence_value.tensor_values]
        return tensor_feed(proto.tensor_value) if proto.elem_type == OptionalProto.TENSOR else None
    return tensor_feed(TensorProto.FromString(data))


def feeds_of(model, files):
    if len(files) == 1 and files[0].endswith(".npz"):
        with np.load(files[0]) as z:
            return {k: (z[k].astype(object) if z[k].dtype.kind == "U" else z[k]) for k in z.files}
    initialised = {t.name for t in model.graph.initializer}
    given = [i for i in model.graph.input if i.name not in initialised]
    return {i.name: feed_of(f, i) for i, f in zip(given, files)}


def session_of(path, optimised):
    options = rt.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    level = rt.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    return rt.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def to_result(value):
    if isinstance(value, list):
        return [to_result(v) for v in value]
    if not isinstance(value, rt.OrtValue):
        return value
    try:
        return value.numpy()
    except Exception:  # a type that numpy has not: its bytes
        shape = value.shape()
        size = value.tensor_size_in_bytes() if hasattr(value, "tensor_size_in_bytes") else 2 * math.prod(shape)
        return Result(value.data_type(), (tuple(shape), ctypes.string_at(value.data_ptr(), size)))


def run(path, feeds, optimised=False):
    """Outputs by name. Raises Refused with ONNX Runtime's reason."""
    try:
        session = session_of(path, optimised)
        names = [o.name for o in session.get_outputs()]
        known = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
        feeds = {k: v for k, v in feeds.items() if k in known}
        odd = any(isinstance(v, rt.OrtValue) for v in feeds.values()) or any(
            re.search("float8|bfloat16|int4|int2|float4", o.type) for o in session.get_outputs())
        if odd:
            if not any(isinstance(v, np.ndarray) and v.dtype == object or isinstance(v, list) for v in feeds.values()):
                values = {k: v if isinstance(v, rt.OrtValue) else rt.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
                return dict(zip(names, map(to_result, session.run_with_ort_values(names, values))))
        return dict(zip(names, session.run(names, feeds)))
    except Exception as error:  # onnxruntime has a class for each
        raise Refused(first_line(error)) from None


# ------------------------------------------------------------------------------------------------ comparing
def widened(value):
    if isinstance(value, Result):
        shape, data = value.bits
        if "bfloat16" in value.kind:
            bits = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
            return bits.view(np.float32).reshape(shape), "bfloat16"
        return np.frombuffer(data, np.uint8), value.kind
    array = np.asarray(value)
    return array, str(array.dtype)


def distance(want, got):
    """Largest difference in units of the tolerance; infinite where no tolerance applies."""
    if isinstance(want, list) or want is None:
        if type(want) is not type(got) or (want is not None and len(want) != len(got)):
            return math.inf
        return max((distance(a, b) for a, b in zip(want or [], got or [])), default=0.0)
    (x, kind), (y, other) = widened(want), widened(got)
    if kind != other or x.shape != y.shape:
        return math.inf
    if x.dtype.kind not in "fc":
        return 0.0 if x.tolist() == y.tolist() else math.inf
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (x, y))
    if x.dtype == np.float64 and kind == "float32":  # where ONNX Runtime masks by the lowest float, others have -inf
        x, y = (np.where(np.abs(v) >= float(np.finfo(np.float32).max), np.copysign(np.inf, v), v) for v in (x, y))
    bad = ~np.isfinite(x)
    if not np.array_equal(x[bad], y[bad], equal_nan=True) or not np.isfinite(y[~bad]).all():
        return math.inf
    x, y = x[~bad], y[~bad]
    rtol = RTOL_OF.get(kind, RTOL)
    largest = float(np.abs(x).max(initial=0.0)) or 1.0
    atol = ATOL * min(1.0, largest) if rtol == RTOL else rtol * largest / 4
    return float((np.abs(x - y) / (atol + rtol * np.abs(x))).max(initial=0.0))


def worst(want, got):
    if list(want) != list(got):
        return math.inf
    return max((distance(want[k], got[k]) for k in want), default=0.0)


def shapes(value):
    if isinstance(value, list):
        return [shapes(v) for v in value]
    if value is None:
        return None
    array, kind = widened(value)
    return (kind, array.shape)


def moved(feeds, seed):
    """The same inputs, each float off by a rounding error."""
    rng = np.random.RandomState(seed)

    def move(v):
        if not isinstance(v, np.ndarray) or v.dtype.kind != "f":
            return v
        step = {2: 2.0 ** -11, 4: 2.0 ** -24, 8: 2.0 ** -53}[v.dtype.itemsize]
        with np.errstate(invalid="ignore", over="ignore"):
            return (v * (1 + 4 * step * rng.uniform(-1, 1, v.shape))).astype(v.dtype)

    return {k: move(v) for k, v in feeds.items()}


class Original:
    """What ONNX Runtime makes of the model as it is."""

    def __init__(self, model):
        self.path, self.expected = model.path, model.expected
        self.proto = onnx.load(model.path, load_external_data=False)
        self.feeds = feeds_of(self.proto, model.feeds)
        self.outputs = run(self.path, self.feeds)
        self.random = any(distance(v, w) > 0 for v, w in zip(self.outputs.values(), run(self.path, self.feeds).values()))
        self.others = None
        self.opset = next((o.version for o in self.proto.opset_import if o.domain in ("", "ai.onnx")), 0)
        try:
            onnx.checker.check_model(self.path, full_check=True)
            self.checked = True
        except Exception:
            self.checked = False

    def stamped(self, opset):
        """The model's outputs when only the number of its operator set is another: ONNX Runtime's kernels for two operator
        sets differ here and there. None where it does not run so."""
        model = onnx.ModelProto()
        model.CopyFrom(onnx.load(self.path))
        for entry in model.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = opset
        try:
            return run(model.SerializeToString(), self.feeds)
        except Exception:
            return None

    def verdict(self, outputs, opset=0):
        """'' when equal; else what is wrong. What hangs on a rounding error is held to what such errors do."""
        wrong = self.compare(outputs)
        if wrong and opset not in (0, self.opset):
            other = self.stamped(opset)
            if other and list(other) == list(outputs) and worst(other, outputs) <= 1:
                return ""
        return wrong

    def compare(self, outputs):
        if list(outputs) != list(self.outputs):
            return f"outputs are {list(outputs)}, want {list(self.outputs)}"
        if self.random:
            a, b = ([shapes(v) for v in o.values()] for o in (self.outputs, outputs))
            return "" if a == b else f"random outputs have types and shapes {b}, want {a}"
        right = {}
        if self.expected:
            with np.load(self.expected) as z:
                right = dict(z)
        off = {name: distance(want, outputs[name]) for name, want in self.outputs.items()
               if name not in right or distance(right[name], outputs[name]) > 1}
        if max(off.values(), default=0.0) <= 1:
            return ""
        if self.others is None:
            self.others = []
            for attempt in range(9):
                try:
                    self.others.append(run(self.path, moved(self.feeds, attempt) if attempt else self.feeds, optimised=not attempt))
                except Refused:
                    pass
        for name, far in off.items():
            theirs = max((d for d in (distance(self.outputs[name], o[name]) for o in self.others) if math.isfinite(d)), default=0.0)
            if far > 1 and far > 2 * theirs and not self.near(name, outputs[name]):
                return f"output {name} differs, {far:.3g} times the tolerance"
        return ""

    def near(self, name, got):
        """Whole numbers, or numbers made from them: no farther off than the others are from each other, in the mean square."""
        def mean(a, b):
            if isinstance(a, list) or isinstance(a, Result) or a is None:
                return math.inf
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape or a.dtype != b.dtype or a.dtype.kind not in "fiu":
                return math.inf
            a, b = a.astype(np.float64), b.astype(np.float64)
            with np.errstate(invalid="ignore"):
                d = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, a - b)
            return float(np.sqrt(np.mean(np.square(d)))) if np.isfinite(d).all() else math.inf
        right = [self.outputs[name], *(o[name] for o in self.others)]
        theirs = [mean(a, b) for i, a in enumerate(right) for b in right[:i]]
        # Where a shape itself hangs on rounding, the nearest of them stands for the right one.
        ours = min(mean(a, got) for a in right)
        return math.isfinite(ours) and ours <= 1.5 * max((m for m in theirs if math.isfinite(m)), default=0.0)


# ------------------------------------------------------------------------------------------------ the file
def dims(value):
    if value.type.WhichOneof("value") != "tensor_type" or not value.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_param if d.HasField("dim_param") else d.dim_value if d.HasField("dim_value") else None
            for d in value.type.tensor_type.shape.dim]


def inputs_of(model):
    """Before IR version 4 every initializer is an input too."""
    initialised = {t.name for t in model.graph.initializer} if model.ir_version < 4 else set()
    return [i for i in model.graph.input if i.name not in initialised]


def interface_faults(before, after):
    wanted, found = inputs_of(before), inputs_of(after)
    if [i.name for i in wanted] != [i.name for i in found]:
        yield f"inputs are {[i.name for i in found]}, want {[i.name for i in wanted]}"
        return
    if [o.name for o in before.graph.output] != [o.name for o in after.graph.output]:
        yield f"outputs are {[o.name for o in after.graph.output]}, want {[o.name for o in before.graph.output]}"
        return
    for old, new in [*zip(wanted, found), *zip(before.graph.output, after.graph.output)]:
        if old.type.WhichOneof("value") != new.type.WhichOneof("value") and old.type.WhichOneof("value"):
            yield f"{old.name} is of another kind"
        for was, now in zip(dims(old) or [], dims(new) or []):
            if isinstance(was, str) and re.search("[A-Za-z]", was) and not isinstance(now, int) and was != now and old in wanted:
                yield f"dim '{was}' of {old.name} is called '{now}'"
    for entry in before.metadata_props:
        if entry.key not in {e.key for e in after.metadata_props}:
            yield f"metadata '{entry.key}' is lost"
    if before.doc_string != after.doc_string:
        yield "the doc string is lost"


def all_nodes(graph):
    stack = [graph]
    while stack:
        for node in stack.pop().node:
            yield node
            stack += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def census(path):
    """Operators and how often, functions under the names of what they stand for; the second of the fused ones only."""
    counts, fused = collections.Counter(), collections.Counter()
    for node in all_nodes(onnx.load(path, load_external_data=False).graph):
        if node.domain == "tenon":
            fused[re.sub(r"_\d+$", "", node.op_type)] += 1
        elif node.op_type != "Constant":
            counts[node.op_type] += 1
    return counts + fused, fused


def again_faults(first, second):
    """What is worse in a file that went through twice."""
    (before, fused), (after, fused_again) = census(first), census(second)
    if sum(after.values()) > sum(before.values()):
        yield f"{sum(before.values())} nodes became {sum(after.values())}: more {dict(after - before)}, fewer {dict(before - after)}"
    # How many there are of each may change: the Add of one may become part of another.
    if set(fused) - set(fused_again):
        yield f"fused operators are not recognised again: {sorted(set(fused) - set(fused_again))}"


def check_file(original, path, opset):
    """Faults of a written file that show without running it."""
    model = onnx.load(path, load_external_data=False)
    yield from interface_faults(original.proto, model)
    versions = {o.domain: o.version for o in model.opset_import}
    if opset and versions.get("") != opset:
        yield f"it is written in opset {versions.get('')}, want {opset}"
    if model.functions and model.ir_version < 8:
        yield f"it has functions, but IR version {model.ir_version}"
    own = {f.domain for f in model.functions}
    if original.checked and all(n.domain in ("", "ai.onnx", "ai.onnx.ml", *own) for n in all_nodes(model.graph)):
        try:
            onnx.checker.check_model(path, full_check=True)
        except Exception as error:
            # ONNX has tensors of unknown rank, which have no shape; its checker wants one for every output of a model.
            if "Field 'shape' of 'type' is required but missing" not in str(error):
                yield f"the checker of onnx says: {' '.join(str(error).split())[:300]}"


def optimise(tenon, source, target, level, opset, timeout, external=False):
    command = [tenon, "optimize", source, "-o", target, "-q", "--set", f"level={level}"]
    if opset:
        command += ["--opset", str(opset)]
    if external:
        command.append("--external")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Refused(f"timeout: no end after {timeout} s") from None
    if done.returncode not in (0, 1, 2):
        raise Refused(f"crash: exit {done.returncode}: {first_line(done.stderr.decode('utf-8', 'replace'))}")
    if done.returncode:
        raise Refused(" ".join(done.stderr.decode("utf-8", "replace").split())[:600])


def trip(tenon, original, model, level, opset, folder, again, timeout, optimised, external):
    """One record of one trip. opset: 0 leaves the choice to tenon."""
    path = os.path.join(folder, "trip.onnx")

    def answer(status, note=""):
        return Record(model.name, level, opset, status, note)

    try:
        optimise(tenon, model.path, path, level, opset, timeout, external)
    except Refused as e:
        told = "cannot hold" in str(e) and re.search(r"needs opset \d+|operator \S+", str(e))
        return answer("older" if told and opset and opset < original.opset else "refused", str(e))
    faults = list(check_file(original, path, opset))
    if faults:
        return answer("file", "; ".join(faults[:3]))
    try:
        wrong = original.verdict(run(path, original.feeds, optimised), opset)
    except Refused as e:
        lacking = "Could not find an implementation" in str(e) and opset not in (0, original.opset)
        return answer("lacking" if lacking and original.stamped(opset) is None else "runtime", str(e))
    if wrong:
        return answer("differs", wrong)
    if not again:
        return answer("same")
    second = os.path.join(folder, "again.onnx")
    try:
        optimise(tenon, path, second, level, opset, timeout)
        wrong = original.verdict(run(second, original.feeds))
    except Refused as e:
        return answer("again", str(e))
    wrong = wrong or "; ".join(again_faults(path, second))
    return answer("again" if wrong else "same", wrong)
