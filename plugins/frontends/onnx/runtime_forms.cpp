#include "runtime_forms.hpp"

#include <algorithm>
#include <cstring>

#include "older_form.hpp"
#include "onnx_fields.hpp"

namespace tenon::onnx {
namespace {

constexpr RuntimeGap gaps[] = {
#include "runtime_gaps.inc"
    // Its function of opset 24 is none of later ones.
    {"Swish", 25, 28, TN_DTYPE_NONE, TN_DTYPE_NONE},
};

StepAttribute cast_to(tn_dtype dtype) {
  StepAttribute a;
  a.name = "to";
  a.attr.kind = TN_ATTR_INT;
  a.attr.u.i = onnx_of_dtype(dtype);
  return a;
}

Place cast(Steps& steps, Place from, tn_dtype to) {
  const Place made = steps.fresh();
  steps.add("Cast", {from}, made).attrs.push_back(cast_to(to));
  return made;
}

Place number(Steps& steps, double value, tn_dtype dtype) {
  sdk::OwnedTensor t(dtype, {});
  sdk::visit_number(dtype, [&](auto x) { *t.data<decltype(x)>() = static_cast<decltype(x)>(value); });
  return steps.constant(std::move(t));
}

/// Operands and results of the first operand's type are cast around the node; in a wider type whole numbers
/// are what they were, and come back cut to the narrow one as they would wrap there.
std::optional<Steps> widened(OlderForm& form, const tn_op_def& def, const RuntimeGap& gap) {
  if (def.input_count == 0) return std::nullopt;
  const tn_str variable = def.inputs[0].type;
  const auto of_type = [&](const tn_param_def* params, uint32_t count, size_t i) {
    if (count == 0) return false;
    const auto& p = params[std::min<size_t>(i, count - 1)];
    return (i < count || (p.flags & TN_PARAM_VARIADIC)) && sdk::view(p.type) == sdk::view(variable);
  };
  Steps all = std::move(form.before);
  Step node = std::move(form.itself);
  std::vector<Step> after;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i].present() && of_type(def.inputs, def.input_count, i))
      node.inputs[i] = cast(all, node.inputs[i], gap.wide);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].present() || !of_type(def.outputs, def.output_count, i)) continue;
    const Place wide = all.fresh();
    after.push_back({"Cast", {wide}, {node.outputs[i]}, {cast_to(gap.narrow)}, false});
    node.outputs[i] = wide;
  }
  all.list.push_back(std::move(node));
  for (Step& s : after) all.list.push_back(std::move(s));
  return all;
}

/// One scale for all, or one an index of the axis: then with ones behind it, so that it spreads.
std::optional<Place> spread(OlderForm& form, Steps& steps, Place place, uint32_t operand) {
  const int32_t rank = form.rank(operand), of = form.rank(0);
  if (rank == 0) return place;
  if (rank != 1 || of < 0) return std::nullopt;
  int64_t axis = form.node.attrs().get_int("axis", 1);
  if (axis < 0) axis += of;
  if (of <= 1) return place;
  std::vector<int64_t> dims{-1};
  for (int64_t i = axis + 1; i < of; ++i) dims.push_back(1);
  if (dims.size() == 1) return place;
  sdk::OwnedTensor t(TN_INT64, {static_cast<int64_t>(dims.size())});
  std::memcpy(t.data<int64_t>(), dims.data(), dims.size() * sizeof(int64_t));
  const Place shape = steps.constant(std::move(t)), made = steps.fresh();
  steps.add("Reshape", {place, shape}, made);
  return made;
}

std::optional<std::pair<double, double>> bounds(tn_dtype dtype) {
  switch (dtype) {
    case TN_INT8:
      return std::pair(-128.0, 127.0);
    case TN_UINT8:
      return std::pair(0.0, 255.0);
    case TN_INT16:
      return std::pair(-32768.0, 32767.0);
    case TN_UINT16:
      return std::pair(0.0, 65535.0);
    default:
      return std::nullopt;
  }
}

/// Of float32, by tensor or axis.
bool is_plain_scale(const OlderForm& form) {
  const auto attrs = form.node.attrs();
  return form.has(1) && form.type(1).dtype == TN_FLOAT32 && attrs.get_int("block_size", 0) == 0 &&
         (form.rank(0) != 0 || form.rank(1) == 0);
}

std::optional<Steps> quantized(OlderForm& form) {
  const tn_dtype to = form.graph.value(form.node.output(0)).type.dtype;
  const auto range = bounds(to);
  if (!is_plain_scale(form) || form.type(0).dtype != TN_FLOAT32 || !range) return std::nullopt;
  Steps all;
  const Place result = form.itself.outputs[0];
  const auto scale = spread(form, all, form.itself.inputs[1], 1);
  if (!scale) return std::nullopt;
  const Place scaled = all.fresh(), rounded = all.fresh(), clipped = all.fresh();
  all.add("Div", {form.itself.inputs[0], *scale}, scaled);
  all.add("Round", {scaled}, rounded);
  Place moved = rounded;
  if (form.has(2)) {
    const auto zero = spread(form, all, cast(all, form.itself.inputs[2], TN_FLOAT32), 2);
    if (!zero) return std::nullopt;
    moved = all.fresh();
    all.add("Add", {rounded, *zero}, moved);
  }
  const Place low = number(all, range->first, TN_FLOAT32), high = number(all, range->second, TN_FLOAT32);
  all.add("Clip", {moved, low, high}, clipped);
  all.add("Cast", {clipped}, result).attrs.push_back(cast_to(to));
  return all;
}

std::optional<Steps> dequantized(OlderForm& form) {
  if (!is_plain_scale(form) || form.graph.value(form.node.output(0)).type.dtype != TN_FLOAT32 ||
      !(bounds(form.type(0).dtype) || form.type(0).dtype == TN_INT32))
    return std::nullopt;
  Steps all;
  const Place result = form.itself.outputs[0];
  const auto scale = spread(form, all, form.itself.inputs[1], 1);
  if (!scale) return std::nullopt;
  Place real = cast(all, form.itself.inputs[0], TN_FLOAT32);
  if (form.has(2)) {
    const auto zero = spread(form, all, cast(all, form.itself.inputs[2], TN_FLOAT32), 2);
    if (!zero) return std::nullopt;
    const Place moved = all.fresh();
    all.add("Sub", {real, *zero}, moved);
    real = moved;
  }
  all.add("Mul", {real, *scale}, result);
  return all;
}

}  // namespace

const RuntimeGap* runtime_gap(std::string_view op, tn_dtype first_operand, int32_t opset) {
  for (const RuntimeGap& gap : gaps)
    if (opset >= gap.first && opset <= gap.last &&
        (gap.narrow == TN_DTYPE_NONE || gap.narrow == first_operand) && op == gap.op)
      return &gap;
  return nullptr;
}

std::optional<Steps> runtime_form(const sdk::GraphView& graph, const sdk::Node& node,
                                  const tn_op_def* definition, int32_t opset, const RuntimeGap& gap) {
  OlderForm form(graph, node, opset);
  if (gap.wide != TN_DTYPE_NONE) return definition ? widened(form, *definition, gap) : std::nullopt;
  if (node.op_name() == "QuantizeLinear") return quantized(form);
  if (node.op_name() == "DequantizeLinear") return dequantized(form);
  if (node.op_name() == "Relu") {
    Steps all;
    const Place zero = number(all, 0, gap.narrow);
    all.add("Max", {form.itself.inputs[0], zero}, form.itself.outputs[0]);
    return all;
  }
  return std::nullopt;
}

}  // namespace tenon::onnx
