// A node as an older operator set says it: one node in another form, or a few that compute the same.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::onnx {

/// An operand or result of a step: a value of the graph, or one between the steps.
struct Place {
  enum Kind { absent, value, between } kind = absent;
  uint32_t id = 0;
  static Place of(tn_value v) { return v == TN_NONE ? Place{} : Place{value, v}; }
  bool present() const { return kind != absent; }
};

/// An attribute. What it points to is the graph's, or its own `ints`, `text` or `tensor`.
struct StepAttribute {
  std::string name;
  tn_attr attr{};
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
  std::shared_ptr<const sdk::OwnedTensor> tensor;
  mutable tn_tensor tensor_view{};

  /// With pointers to where its own things lie now.
  tn_attr resolved() const {
    tn_attr a = attr;
    if (!ints.empty()) a.u.ints = ints.data(), a.count = ints.size();
    if (!floats.empty()) a.u.floats = floats.data(), a.count = floats.size();
    if (!text.empty()) a.u.s = sdk::str(text);
    if (tensor) tensor_view = tensor->raw(), a.u.tensor = &tensor_view;
    return a;
  }
};

struct Step {
  std::string op;
  std::vector<Place> inputs, outputs;
  std::vector<StepAttribute> attrs;
  bool itself = false;  // has the node's name and regions
};

struct Steps {
  std::vector<Step> list;
  uint32_t between = 0;  // so many values between

  Place fresh() { return {Place::between, between++}; }
  Step& add(std::string op, std::vector<Place> inputs, Place output) {
    list.push_back({std::move(op), std::move(inputs), {output}, {}, false});
    return list.back();
  }
  Place constant(sdk::OwnedTensor tensor) {
    const Place place = fresh();
    StepAttribute a;
    a.name = "value";
    a.attr.kind = TN_ATTR_TENSOR;
    a.tensor = std::make_shared<const sdk::OwnedTensor>(std::move(tensor));
    add("Constant", {}, place).attrs.push_back(std::move(a));
    return place;
  }
};

}  // namespace tenon::onnx
