"""Where ONNX Runtime answers otherwise than the standard, for against_onnxruntime.py: operators, what tells the difference
from others of theirs, and the reason. A predicate looks at every element that differs, so that a second difference of the
same node is not covered by the first."""
import dataclasses

import numpy as np
import onnx


@dataclasses.dataclass
class Case:
    node: onnx.NodeProto
    model: onnx.ModelProto
    feed: dict  # operands that are no constants, by name
    got: dict   # onnxruntime's results
    want: dict  # ours
    near: dict  # per result: which elements agree; None where shapes or types differ

    @property
    def operands(self):
        constants = {t.name: onnx.numpy_helper.to_array(t) for t in self.model.graph.initializer}
        return [self.feed.get(name, constants.get(name)) for name in self.node.input]

    def attribute(self, name, default=None):
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def only_where(self, mask):
        """All elements that differ are in the mask, which broadcasts to each result."""
        return all(near is not None and not np.any(~near & ~np.broadcast_to(mask, near.shape)) for near in self.near.values())


def is_float(array):
    return array is not None and array.dtype.kind == "f"


def has_nan(case):
    return any(is_float(a) and np.isnan(a).any() for a in case.operands)


def has_infinity(case):
    return any(is_float(a) and np.isinf(a).any() for a in case.operands) and all(
        n is not None and np.isnan(case.got[name][~n]).all() for name, n in case.near.items())


def outside_integer(case):
    x, result = case.operands[0], next(iter(case.want.values()))
    if not is_float(x) or result.dtype.kind not in "iu":
        return False
    limits = np.iinfo(result.dtype)
    whole = np.trunc(x.astype(np.longdouble))
    return case.only_where(~((whole >= limits.min) & (whole <= limits.max)))


def integer_power(case):
    base, exponent = case.operands[:2]
    result = next(iter(case.want.values()))
    if result.dtype.kind not in "iu":
        return False
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.float64), exponent.astype(np.float64))
    limits = np.iinfo(result.dtype)
    return case.only_where(~((exact >= limits.min) & (exact <= float(limits.max) * (1 - 1e-15))))


def mean_of_nothing(case):
    return all(np.isnan(w[~n]).all() and (case.got[name][~n] == 0).all()
               for name, w in case.want.items() if (n := case.near[name]) is not None) and case.operands[0].size == 0


def never_runs(case):
    return all(w.size == 0 and case.got[name].size == 0 for name, w in case.want.items() if case.near[name] is None) and all(
        n is None or n.all() for n in case.near.values())


def odd_flag(name):
    return lambda case: case.attribute(name, 1) not in (0, 1)


def fractional_align_corners(case):
    scales = case.operands[2] if len(case.operands) > 2 else None
    if case.attribute("coordinate_transformation_mode") != "align_corners" or scales is None or not scales.size:
        return False
    axes = case.attribute("axes", list(range(case.operands[0].ndim)))
    lengths = np.array([case.operands[0].shape[a] for a in axes]) * scales.astype(np.float64)
    return bool(np.any(lengths != np.floor(lengths)))


def empty_texts(case):
    return case.operands[0].dtype.kind in "US" and (case.operands[0] == "").any()


def same_padding(case):
    return case.attribute("auto_pad", "NOTSET").startswith("SAME") and all(n is None for n in case.near.values())


def nan_quantised(case):
    with np.errstate(invalid="ignore"):
        return case.only_where(~np.isfinite(case.operands[0] / case.operands[1])) if case.operands[1].size == 1 else has_nan(case)


def texts_gathered_in_slices(case):
    data, indices = case.operands[:2]
    return data.dtype.kind in "US" and case.attribute("axis", 0) % max(data.ndim, 1) != data.ndim - 1


def variance_cancels(case):
    """A thousandth, where numbers lie close together around another mean than 0."""
    return all(n is not None and np.allclose(case.got[name], w, rtol=1e-3, atol=1e-3 * np.max(np.abs(w), initial=1)) for name, w in case.want.items() if (n := case.near[name]) is None or not n.all())


REDUCTIONS = ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
              "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin"]

KNOWN = [
    (["Cast", "CastLike"], outside_integer, "a real number outside the integer type: undefined; saturated here, wrapped there"),
    (["Cast", "CastLike"], lambda case: case.attribute("saturate", 1) != 1, "saturate means nothing where the result is no 8-bit float; what was in memory there"),
    (["Unique"], has_nan, "rows with NaN are ordered and counted as the standard's reference does"),
    (["DynamicQuantizeLinear"], lambda case: not np.isfinite(case.operands[0]).all(), "the scale of infinite or NaN operands is undefined"),
    (["GRU", "LSTM", "RNN"], has_nan, "NaN goes through a recurrent cell; clamped to 0 there"),
    (["Pow"], integer_power, "a power outside the integer type: undefined; saturated here"),
    (["QuantizeLinear"], nan_quantised, "NaN and infinity are quantised: undefined; NaN is 0 here"),
    (["ReduceMean"], mean_of_nothing, "the mean of no elements is NaN, as the standard's reference has it; 0 there"),
    (["Loop"], never_runs, "a Loop that never runs keeps what is known of the shapes of its scanned results"),
    (["StringSplit"], empty_texts, "an empty text splits into one empty part, as in Python; into none there"),
    (["ConvTranspose"], same_padding, "auto_pad SAME gives input times stride, also where that needs room added"),
    (["Resize"], fractional_align_corners, "corners are aligned by input length times scale, as in the standard's tests; by the rounded length there"),
    (REDUCTIONS, odd_flag("keepdims"), "keepdims other than 0 and 1 keeps the axes, as in the standard's reference"),
    (REDUCTIONS, odd_flag("noop_with_empty_axes"), "noop_with_empty_axes other than 0 and 1 is 1, as in the standard's reference"),
    (["BatchNormalization"], has_infinity, "an infinite scale is multiplied out there, and gives NaN"),
    (["GridSample"], has_infinity, "neighbours of weight 0 are not read; 0 times infinity is NaN there"),
    (["GroupNormalization", "InstanceNormalization"], variance_cancels, "a variance is the difference of two means in float32 there"),
    (["Gather"], texts_gathered_in_slices, "Gather of texts leaves out all of a slice but its first text there"),
    (["NonZero"], lambda case: case.operands[0].ndim == 0, "NonZero of a scalar has no rows, as in the standard's reference; one there"),
    (["ArgMax", "ArgMin", "Hardmax", "TopK"], has_nan, "NaN is the largest number in ArgMax, TopK and Hardmax, and the smallest in ArgMin"),
    (["LRN", "AveragePool", "MaxPool", "GlobalMaxPool", "LpPool", "ReduceMax", "ReduceMin", "Max", "Min", "Clip"], has_nan, "NaN reaches the results that read it, and no others"),
]


def reason_for(case):
    for operators, holds, reason in KNOWN:
        if case.node.op_type in operators and holds(case):
            return reason
    return None
