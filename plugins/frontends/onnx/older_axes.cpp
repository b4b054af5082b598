// Axes: attributes that are operands today, and counts from the back.
#include <algorithm>
#include <climits>

#include "older_form.hpp"

namespace tenon::onnx {
namespace {

constexpr const char* computed_axes = "its axes are computed";
constexpr const char* unknown_rank = "its rank is not known";

bool axis_from_the_front(OlderForm& f) {
  for (StepAttribute& a : f.itself.attrs) {
    if (a.name != "axis" || a.attr.u.i >= 0) continue;
    if (f.rank(0) < 0) return f.refuse(unknown_rank);
    a.attr.u.i += f.rank(0);
  }
  return true;
}

/// Axes that are operand 1 today.
bool axes_to_attribute(OlderForm& f, int32_t rank) {
  auto axes = f.integers(1);
  if (!axes) return f.refuse(computed_axes);
  if (f.opset < 11 && !from_the_front(*axes, rank)) return f.refuse(unknown_rank);
  f.keep_inputs(1);
  if (!axes->empty()) f.set("axes", std::move(*axes));
  return true;
}

bool reduce(OlderForm& f) {
  const bool noop = f.node.attrs().get_int("noop_with_empty_axes", 0) != 0;
  f.remove("noop_with_empty_axes");
  const auto axes = f.has(1) ? f.integers(1) : std::optional<std::vector<int64_t>>(std::vector<int64_t>{});
  if (!axes) return f.refuse(computed_axes);
  if (noop && axes->empty()) {
    const std::string& op = f.itself.op;
    if (op != "ReduceSum" && op != "ReduceMean" && op != "ReduceMax" && op != "ReduceMin" &&
        op != "ReduceProd")
      return f.refuse("it changes each element by itself, since it has no axes");
    f.itself.op = "Identity";
    f.itself.attrs.clear();
    f.keep_inputs(1);
    return true;
  }
  if (!f.has(1)) return true;
  return axes_to_attribute(f, f.rank(0));
}

bool squeeze(OlderForm& f) { return !f.has(1) || axes_to_attribute(f, f.rank(0)); }
bool unsqueeze(OlderForm& f) {
  const auto axes = f.integers(1);
  const int32_t rank = axes && f.rank(0) >= 0 ? f.rank(0) + static_cast<int32_t>(axes->size()) : -1;
  return axes_to_attribute(f, rank);
}

bool split(OlderForm& f) {
  const auto count = static_cast<int64_t>(f.itself.outputs.size());
  const bool equal = !f.has(1);
  std::vector<int64_t> sizes;
  if (equal) {  // num_outputs, of which the last may be smaller
    const tn_type t = f.type(0);
    int64_t axis = f.node.attrs().get_int("axis", 0);
    if (t.rank < 0) return f.refuse(unknown_rank);
    if (axis < 0) axis += t.rank;
    const int64_t whole = axis >= 0 && axis < t.rank ? t.dims[axis] : -1;
    if (whole < 0) return f.refuse("the size it splits is not known");
    const int64_t part = (whole + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::max<int64_t>(0, std::min(part, whole - i * part)));
  }
  f.remove("num_outputs");
  if (f.opset >= 13) {
    if (equal) f.itself.inputs.push_back(f.integers_constant(sizes));
    return true;
  }
  if (!equal) {
    const auto given = f.integers(1);
    if (!given) return f.refuse("its sizes are computed");
    sizes = *given;
  }
  f.keep_inputs(1);
  f.set("split", std::move(sizes));
  return true;
}

bool slice(OlderForm& f) {
  auto starts = f.integers(1), ends = f.integers(2);
  if (!starts || !ends) return f.refuse("its bounds are computed");
  std::optional<std::vector<int64_t>> axes, steps;
  if (f.has(3) && !(axes = f.integers(3))) return f.refuse(computed_axes);
  if (f.has(4) && !(steps = f.integers(4))) return f.refuse("its steps are computed");
  if (steps && !std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s == 1; }))
    return f.refuse("it has steps other than 1");
  if (axes && !from_the_front(*axes, f.rank(0))) return f.refuse(unknown_rank);
  f.keep_inputs(1);
  f.set("starts", std::move(*starts));
  f.set("ends", std::move(*ends));
  if (axes) f.set("axes", std::move(*axes));
  return true;
}

/// Pads of all axes, where today they may be of some.
bool pad(OlderForm& f) {
  auto pads = f.integers(1);
  if (f.has(3) || f.opset < 11) {
    if (!pads) return f.refuse("its pads are computed");
  }
  if (f.has(3)) {
    auto axes = f.integers(3);
    const int32_t rank = f.rank(0);
    if (!axes) return f.refuse(computed_axes);
    if (rank < 0 || !from_the_front(*axes, rank)) return f.refuse(unknown_rank);
    std::vector<int64_t> all(2 * static_cast<size_t>(rank), 0);
    for (size_t i = 0; i < axes->size() && i + axes->size() < pads->size(); ++i) {
      const auto axis = static_cast<size_t>((*axes)[i]);
      if (axis >= static_cast<size_t>(rank)) return f.refuse("it has an axis beyond its rank");
      all[axis] = (*pads)[i];
      all[axis + static_cast<size_t>(rank)] = (*pads)[i + axes->size()];
    }
    pads = std::move(all);
  }
  if (f.opset >= 11) {
    if (f.has(3)) f.itself.inputs[1] = f.integers_constant(*pads);
    f.keep_inputs(3);
    return true;
  }
  if (f.has(2)) {
    const auto value = f.numbers(2);
    if (!value || value->size() != 1) return f.refuse("the value it pads with is computed");
    f.set("value", (*value)[0]);
  }
  f.keep_inputs(1);
  f.set("pads", std::move(*pads));
  return true;
}

/// Before 13 all axes from `axis` on were one row; on the last axis it is the same.
bool softmax(OlderForm& f) {
  const int32_t rank = f.rank(0);
  if (rank < 1) return f.refuse(unknown_rank);
  int64_t axis = f.node.attrs().get_int("axis", -1);
  if (axis < 0) axis += rank;
  f.set("axis", int64_t{rank - 1});
  if (axis == rank - 1) return true;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const auto turned = [&](Step& s) {
    StepAttribute a;
    a.name = "perm";
    a.attr.kind = TN_ATTR_INTS;
    a.ints = order;
    s.attrs.push_back(std::move(a));
  };
  const Place between = f.before.fresh();
  turned(f.before.add("Transpose", {f.itself.inputs[0]}, between));
  f.itself.inputs[0] = between;
  turned(f.then("Transpose"));
  return true;
}

/// A shape of some axes: of all, and then a part of it.
bool shape(OlderForm& f) {
  const auto start = f.node.attrs().get_int("start", 0), end = f.node.attrs().get_int("end", INT64_MAX);
  f.remove("start");
  f.remove("end");
  const bool operands = f.opset >= 10;
  std::vector<Place> more;
  if (operands) more = {f.integers_constant({start}), f.integers_constant({end})};
  Step& part = f.then("Slice", more);
  if (operands) return true;
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"starts", start}, {"ends", end}}) {
    StepAttribute a;
    a.name = name;
    a.attr.kind = TN_ATTR_INTS;
    a.ints = {value};
    part.attrs.push_back(std::move(a));
  }
  return true;
}

/// The transform's axis, which was an attribute and counted from the front.
bool dft(OlderForm& f) {
  std::vector<int64_t> axis{-2};
  if (f.has(2)) {
    const auto given = f.integers(2);
    if (!given || given->size() != 1) return f.refuse(computed_axes);
    axis = *given;
  }
  if (!from_the_front(axis, f.rank(0))) return f.refuse(unknown_rank);
  f.keep_inputs(2);
  f.set("axis", axis[0]);
  return true;
}

}  // namespace

const OlderMaker axis_makers[] = {{"ReduceL1", 18, reduce},
                                  {"ReduceL2", 18, reduce},
                                  {"ReduceLogSum", 18, reduce},
                                  {"ReduceLogSumExp", 18, reduce},
                                  {"ReduceMax", 18, reduce},
                                  {"ReduceMean", 18, reduce},
                                  {"ReduceMin", 18, reduce},
                                  {"ReduceProd", 18, reduce},
                                  {"ReduceSum", 13, reduce},
                                  {"ReduceSumSquare", 18, reduce},
                                  {"Squeeze", 13, squeeze},
                                  {"Unsqueeze", 13, unsqueeze},
                                  {"Split", 18, split},
                                  {"Slice", 10, slice},
                                  {"Pad", 18, pad},
                                  {"Softmax", 13, softmax},
                                  {"LogSoftmax", 13, softmax},
                                  {"Hardmax", 13, softmax},
                                  {"Shape", 15, shape},
                                  {"DFT", 20, dft},
                                  {"ArgMax", 11, axis_from_the_front},
                                  {"ArgMin", 11, axis_from_the_front},
                                  {"Compress", 11, axis_from_the_front},
                                  {"Concat", 11, axis_from_the_front},
                                  {"Flatten", 11, axis_from_the_front},
                                  {"Gather", 11, axis_from_the_front},
                                  {"Split", 11, axis_from_the_front},
                                  {nullptr, 0, nullptr}};

}  // namespace tenon::onnx
