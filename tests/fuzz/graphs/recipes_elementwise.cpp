// Operators that work element by element, casts and reductions.
#include "draw.hpp"

#include <tenon/sdk/dtype.hpp>

#include <algorithm>

namespace tenon::fuzz {

namespace {

bool add_unary(Drawer& d) {
  static const std::vector<const char*> names = {"Abs",
                                                 "Acos",
                                                 "Acosh",
                                                 "Asin",
                                                 "Asinh",
                                                 "Atan",
                                                 "Atanh",
                                                 "BitwiseNot",
                                                 "Ceil",
                                                 "Celu",
                                                 "Cos",
                                                 "Cosh",
                                                 "Elu",
                                                 "Erf",
                                                 "Exp",
                                                 "Floor",
                                                 "Gelu",
                                                 "HardSigmoid",
                                                 "HardSwish",
                                                 "Identity",
                                                 "IsInf",
                                                 "IsNaN",
                                                 "LeakyRelu",
                                                 "Log",
                                                 "Mish",
                                                 "Neg",
                                                 "Not",
                                                 "Reciprocal",
                                                 "Relu",
                                                 "Round",
                                                 "Selu",
                                                 "Shrink",
                                                 "Sigmoid",
                                                 "Sign",
                                                 "Sin",
                                                 "Sinh",
                                                 "Softplus",
                                                 "Softsign",
                                                 "Sqrt",
                                                 "Swish",
                                                 "Tan",
                                                 "Tanh",
                                                 "ThresholdedRelu",
                                                 "Relu",
                                                 "Sigmoid",
                                                 "Tanh",
                                                 "Identity",
                                                 "Gelu"};
  const char* const op = d.random.of(names);
  const tn_op_def* const def = d.definition(op);
  if (def == nullptr) return false;
  const Drawn x = d.any(d.allowed(*def, 0));
  Attributes attributes;
  const std::string_view name = op;
  if (name == "Gelu" && d.random.chance(0.5)) attributes.push_back({"approximate", "tanh"});
  if ((name == "LeakyRelu" || name == "Elu" || name == "Celu" || name == "ThresholdedRelu") &&
      d.random.chance(0.5))
    attributes.push_back({"alpha", d.random.of({0.5, 0.1, 1.5})});
  if (name == "Shrink") attributes = {{"lambd", 0.5}, {"bias", d.random.of({0.0, 0.25})}};
  return d.node1(op, {x}, attributes).id != TN_NONE;
}

bool add_binary(Drawer& d) {
  static const std::vector<const char*> names = {
      "Add",         "Sub",      "Mul",        "Div",       "Add",        "Mul",     "Sub",  "Pow",
      "Mod",         "And",      "Or",         "Xor",       "Equal",      "Greater", "Less", "GreaterOrEqual",
      "LessOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu",   "Max",  "Min",
      "Sum",         "Mean"};
  const std::string_view op = d.random.of(names);
  const tn_op_def* const def = d.definition(op);
  if (def == nullptr) return false;
  const Drawn a = d.any(d.allowed(*def, 0));
  const bool divides = op == "Div" || op == "Mod";
  const std::optional<Fill> style =
      divides && !d.wishes().wild ? std::optional(Fill::positive) : std::nullopt;
  Drawn b = d.operand(a.dtype, d.broadcastable(a.dims), style);
  Attributes attributes;
  if (op == "Mod" && (sdk::is_float(a.dtype) || d.random.chance(0.3))) attributes.push_back({"fmod", 1});
  if (op == "BitShift") attributes.push_back({"direction", d.random.of({"LEFT", "RIGHT"})});
  if (op == "PRelu" || !d.random.chance(0.3)) return d.node1(op, {a, b}, attributes).id != TN_NONE;
  if (op == "Max" || op == "Min" || op == "Sum" || op == "Mean") {
    if (d.random.chance(0.3)) return d.node1(op, {a}).id != TN_NONE;
    return d.node1(op, {a, b, d.operand(a.dtype, d.broadcastable(a.dims))}).id != TN_NONE;
  }
  return d.node1(op, {b, a}, attributes).id != TN_NONE;
}

bool add_select(Drawer& d) {
  const Drawn x = d.any_float();
  switch (d.random.below(3)) {
    case 0: {
      const Drawn condition = d.operand(TN_BOOL, d.broadcastable(x.dims));
      return d.node1("Where", {condition, x, d.operand(x.dtype, d.broadcastable(x.dims))}).id != TN_NONE;
    }
    case 1: {
      const double low = d.random.of({-1.0, 0.0, -0.5});
      const Drawn min = d.random.chance(0.8) ? d.constant(float_tensor(x.dtype, {}, low)) : Drawn{};
      const Drawn max = d.random.chance(0.8)
                            ? d.constant(float_tensor(x.dtype, {}, low + d.random.of({1.0, 6.0, -0.25})))
                            : Drawn{};
      return d.node1("Clip", {x, min, max}).id != TN_NONE;
    }
    default: {
      const Drawn y = d.any({TN_INT32, TN_INT64, TN_UINT8, TN_INT8});
      return d.node1("Clip",
                     {y, d.constant(float_tensor(y.dtype, {}, 0)), d.constant(float_tensor(y.dtype, {}, 3))})
                 .id != TN_NONE;
    }
  }
}

// ONNX's numbers of element types, as Cast and others take them.
struct OnnxDtype {
  int64_t number;
  tn_dtype dtype;
};
constexpr OnnxDtype onnx_dtypes[] = {{1, TN_FLOAT32},  {2, TN_UINT8},   {3, TN_INT8},    {5, TN_INT16},
                                     {6, TN_INT32},    {7, TN_INT64},   {9, TN_BOOL},    {10, TN_FLOAT16},
                                     {11, TN_FLOAT64}, {12, TN_UINT32}, {13, TN_UINT64}, {16, TN_BFLOAT16}};

bool add_cast(Drawer& d) {
  const tn_op_def* const def = d.definition("Cast");
  Drawn x = d.any(d.allowed(*def, 0));
  if (x.dtype == TN_STRING) return false;  // most texts are no numbers
  // Chains, which passes shorten where they may.
  for (int64_t i = d.random.between(1, 3); i > 0; --i) {
    const OnnxDtype& to = onnx_dtypes[d.random.below(std::size(onnx_dtypes))];
    if (d.random.chance(0.15))
      x = d.node1("CastLike", {x, d.operand(to.dtype, d.random_dims(0, 2))});
    else
      x = d.node1("Cast", {x}, {{"to", to.number}});
    if (x.id == TN_NONE) return false;
  }
  return true;
}

bool add_reduce(Drawer& d) {
  static const std::vector<const char*> names = {
      "ReduceSum", "ReduceMean",   "ReduceMax",       "ReduceMin",       "ReduceProd", "ReduceL1",
      "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ReduceMean", "ReduceSum"};
  const char* const op = d.random.of(names);
  const Drawn x = d.random.chance(0.8) ? d.any_float(1) : d.any(d.allowed(*d.definition(op), 0), 0);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (d.random.chance(0.5)) axes.push_back(d.random.chance(0.5) ? i : i - x.rank());
  Attributes attributes;
  if (d.random.chance(0.6)) attributes.push_back({"keepdims", d.random.between(0, 1)});
  if (d.random.chance(0.2)) attributes.push_back({"noop_with_empty_axes", 1});
  const Drawn chosen = axes.empty() && d.random.chance(0.7) ? Drawn{} : d.ints(axes);
  return d.node1(op, {x, chosen}, attributes).id != TN_NONE;
}

bool add_arg(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_INT32, TN_FLOAT16}, 1);
  switch (d.random.below(4)) {
    case 0:
    case 1:
      return d.node1(d.random.of({"ArgMax", "ArgMin"}), {x},
                     {{"axis", d.axis(x.rank())},
                      {"keepdims", d.random.between(0, 1)},
                      {"select_last_index", d.random.between(0, 1)}})
                 .id != TN_NONE;
    case 2: {
      const Drawn axis = d.constant(int64_scalar(d.axis(x.rank())));
      return d.node1("CumSum", {x, axis},
                     {{"exclusive", d.random.between(0, 1)}, {"reverse", d.random.between(0, 1)}})
                 .id != TN_NONE;
    }
    default: {
      const int64_t axis = d.axis(x.rank());
      const int64_t size = x.dims[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)];
      if (size == 0) return false;
      return !d.node("TopK", {x, d.ints({d.random.between(1, size)})},
                     {{"axis", axis}, {"largest", d.random.between(0, 1)}, {"sorted", 1}}, 2)
                  .empty();
    }
  }
}

bool add_string(Drawer& d) {
  const Drawn x = d.any({TN_STRING}, 0, 2);
  switch (d.random.below(4)) {
    case 0:
      return d.node1("StringConcat", {x, d.operand(TN_STRING, d.broadcastable(x.dims))}).id != TN_NONE;
    case 1:
      return d.node1("Equal", {x, d.operand(TN_STRING, d.broadcastable(x.dims))}).id != TN_NONE;
    case 2:
      return d.node1("RegexFullMatch", {x}, {{"pattern", "[a-c].*"}}).id != TN_NONE;
    default:
      return !d.node("StringSplit", {x}, {{"delimiter", ","}}, 2).empty();
  }
}

}  // namespace

std::span<const Recipe> elementwise_recipes() {
  static constexpr Recipe recipes[] = {{"unary", 22, add_unary},   {"binary", 26, add_binary},
                                       {"select", 6, add_select},  {"cast", 8, add_cast},
                                       {"reduce", 10, add_reduce}, {"arg", 5, add_arg},
                                       {"string", 2, add_string}};
  return recipes;
}

}  // namespace tenon::fuzz
