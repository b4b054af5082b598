// Operands that were attributes or had to be there, names that were others.
#include <algorithm>
#include <cmath>

#include "older_form.hpp"
#include "onnx_fields.hpp"

namespace tenon::onnx {
namespace {

bool clip(OlderForm& f) {
  const char* names[] = {"", "min", "max"};
  for (uint32_t i = 1; i <= 2; ++i) {
    if (!f.has(i)) continue;
    const auto bound = f.numbers(i);
    if (!bound || bound->size() != 1) return f.refuse(std::string("its ") + names[i] + " is computed");
    f.set(names[i], (*bound)[0]);
  }
  f.keep_inputs(1);
  return true;
}

bool top_k(OlderForm& f) {
  if (f.opset < 10) {
    const auto k = f.integers(1);
    if (!k || k->size() != 1) return f.refuse("its K is computed");
    f.keep_inputs(1);
    f.set("k", (*k)[0]);
  }
  for (StepAttribute& a : f.itself.attrs) {
    if (a.name != "axis" || a.attr.u.i >= 0 || a.attr.u.i == -1) continue;
    if (f.rank(0) < 0) return f.refuse("its rank is not known");
    a.attr.u.i += f.rank(0);
  }
  return true;
}

/// Only what it does when it does nothing: the random form has no older one.
bool dropout(OlderForm& f) {
  if (f.has(2)) {
    const auto training = f.numbers(2);
    if (!training || training->size() != 1 || (*training)[0] != 0)
      return f.refuse("it is, or may be, one of training");
  }
  if (f.has(1)) {
    const auto ratio = f.numbers(1);
    if (ratio && ratio->size() == 1) f.set("ratio", (*ratio)[0]);  // it says nothing outside training
  }
  f.keep_inputs(1);
  f.remove("seed");
  return true;
}

/// C had to be there: a zero that is added to each element.
bool gemm(OlderForm& f) {
  if (f.has(2)) return true;
  sdk::OwnedTensor zero(f.type(0).dtype, {1});
  f.keep_inputs(2);
  f.itself.inputs.push_back(f.before.constant(std::move(zero)));
  return true;
}

/// There was no operator: one element is expanded.
bool constant_of_shape(OlderForm& f) {
  if (f.opset < 8) return f.refuse("nothing expands a number before opset 8");
  Place element;
  if (const tn_tensor* given = f.node.attrs().get_tensor("value")) {
    sdk::OwnedTensor t(given->dtype, {1});
    if (given->bytes != t.raw().bytes) return f.refuse("its value is of no plain type");
    std::copy_n(static_cast<const char*>(given->data), given->bytes, static_cast<char*>(t.raw().data));
    element = f.before.constant(std::move(t));
  } else {
    element = f.before.constant(sdk::OwnedTensor(TN_FLOAT32, {1}));
  }
  f.itself.op = "Expand";
  f.itself.attrs.clear();
  f.itself.inputs = {element, f.itself.inputs[0]};
  return true;
}

/// Scatter is the same for indices that count from the front.
bool scatter(OlderForm& f) {
  if (f.opset < 9) return f.refuse("there was no Scatter either");
  const auto indices = f.integers(1);
  if (indices && std::any_of(indices->begin(), indices->end(), [](int64_t i) { return i < 0; }))
    return f.refuse("it has indices below zero");
  if (f.node.attrs().get_string("reduction", "none") != "none") return f.refuse("it has a reduction");
  f.remove("reduction");
  f.itself.op = "Scatter";
  for (StepAttribute& a : f.itself.attrs) {
    if (a.name != "axis" || a.attr.u.i >= 0) continue;
    if (f.rank(0) < 0) return f.refuse("its rank is not known");
    a.attr.u.i += f.rank(0);
  }
  return true;
}

/// Base and exponent had one type. Of a smaller one nothing is lost.
bool pow(OlderForm& f) {
  const tn_dtype base = f.type(0).dtype, exponent = f.type(1).dtype;
  if (base == exponent) return true;
  const bool wider = base == TN_FLOAT64 || (base == TN_FLOAT32 && exponent != TN_FLOAT64);
  const auto known = f.numbers(1);
  const bool small = known && std::all_of(known->begin(), known->end(), [](double x) {
                       return std::fabs(x) <= 2048 && x == std::trunc(x);
                     });
  if (!wider && !small) return f.refuse("its exponent loses digits in the type of its base");
  const Place cast = f.before.fresh();
  StepAttribute to;
  to.name = "to";
  to.attr.kind = TN_ATTR_INT;
  to.attr.u.i = onnx_of_dtype(base);
  f.before.add("Cast", {f.itself.inputs[1]}, cast).attrs.push_back(std::move(to));
  f.itself.inputs[1] = cast;
  return true;
}

/// Where no size is zero, allowzero says nothing.
bool reshape(OlderForm& f) {
  const auto sizes = f.integers(1);
  if (!sizes) return f.refuse("its shape, which may hold zeros, is computed");
  if (std::find(sizes->begin(), sizes->end(), 0) != sizes->end()) return f.refuse("its shape holds a zero");
  f.remove("allowzero");
  return true;
}

/// With one scale there is no axis, and the type of the result is the zero point's.
bool quantise(OlderForm& f) {
  if (f.rank(1) == 0) f.remove("axis");
  if (f.has(2)) f.remove("output_dtype");
  return true;
}

/// Where the type is known, Cast says it.
bool cast_like(OlderForm& f) {
  const tn_dtype to = f.type(1).dtype;
  if (to == TN_DTYPE_NONE) return f.refuse("the type it casts to is not known");
  f.itself.op = "Cast";
  f.keep_inputs(1);
  f.set("to", int64_t{onnx_of_dtype(to)});
  return true;
}

bool has_element(OlderForm& f) {
  const uint32_t kind = f.type(0).kind;
  if (kind != TN_KIND_OPTIONAL && kind != TN_KIND_OPTIONAL_SEQUENCE)
    return f.refuse("its operand is no optional");
  return true;
}

bool as_it_is(OlderForm&) { return true; }

/// Opset 8 had a batch before everything, and lengths of its sequences first.
bool scan(OlderForm& f) {
  if (f.opset < 8) return f.refuse("there was no Scan");
  for (StepAttribute& a : f.itself.attrs) {
    if (a.name == "scan_input_directions") {
      a.name = "directions";
    } else if (a.name != "num_scan_inputs") {
      for (uint64_t i = 0; i < a.attr.count; ++i)
        if (a.attr.u.ints[i] != 0) return f.refuse("its attribute '" + a.name + "' has no older form");
    }
  }
  for (const char* name : {"scan_input_axes", "scan_output_axes", "scan_output_directions"}) f.remove(name);
  const auto on_batch = [](Step& s) {
    StepAttribute a;
    a.name = "axes";
    a.attr.kind = TN_ATTR_INTS;
    a.ints = {0};
    s.attrs.push_back(std::move(a));
  };
  for (Place& p : f.itself.inputs) {
    const Place batched = f.before.fresh();
    on_batch(f.before.add("Unsqueeze", {p}, batched));
    p = batched;
  }
  f.itself.inputs.insert(f.itself.inputs.begin(), Place{});
  for (Place& p : f.itself.outputs) {
    if (!p.present()) continue;
    const Place batched = f.before.fresh();
    f.after.push_back({"Squeeze", {batched}, {p}, {}, false});
    on_batch(f.after.back());
    p = batched;
  }
  return true;
}

bool loop(OlderForm& f) { return f.itself.inputs.size() >= 3 || f.refuse("it carries nothing"); }

}  // namespace

const OlderMaker operand_makers[] = {{"Clip", 11, clip},
                                     {"TopK", 11, top_k},
                                     {"Dropout", 12, dropout},
                                     {"Gemm", 11, gemm},
                                     {"ConstantOfShape", 9, constant_of_shape},
                                     {"ScatterElements", 11, scatter},
                                     {"Pow", 12, pow},
                                     {"Reshape", 14, reshape},
                                     {"QuantizeLinear", 23, quantise},
                                     {"DequantizeLinear", 23, quantise},
                                     {"CastLike", 15, cast_like},
                                     {"OptionalHasElement", 18, has_element},
                                     {"AveragePool", 22, as_it_is},
                                     {"MaxPool", 22, as_it_is},
                                     {"LpPool", 22, as_it_is},
                                     {"Loop", 11, loop},
                                     {"Scan", 9, scan},
                                     {nullptr, 0, nullptr}};

}  // namespace tenon::onnx
