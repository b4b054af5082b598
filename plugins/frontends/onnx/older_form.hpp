// What the makers of older forms work with. They are in older_*.cpp, by what changed.
#pragma once
#include <optional>

#include "steps.hpp"

namespace tenon::onnx {

/// One node, its form so far, and the operator set it is for.
class OlderForm {
 public:
  OlderForm(const sdk::GraphView& g, const sdk::Node& n, int32_t target) : graph(g), node(n), opset(target) {
    Step step;
    step.op = std::string(n.op_name());
    for (tn_value v : n.inputs()) step.inputs.push_back(Place::of(v));
    for (tn_value v : n.outputs()) step.outputs.push_back(Place::of(v));
    const char* at = reinterpret_cast<const char*>(n.raw().attrs);
    for (uint32_t i = 0; i < n.raw().attr_count; ++i, at += n.raw().attr_stride) {
      StepAttribute a;
      a.attr = *reinterpret_cast<const tn_attr*>(at);
      a.name = std::string(g.symbol_text(a.attr.name));
      step.attrs.push_back(std::move(a));
    }
    step.itself = true;
    itself = std::move(step);
  }

  const sdk::GraphView& graph;
  const sdk::Node& node;
  const int32_t opset;
  Step itself;              // the node
  Steps before;             // steps before it; numbers of values between are given out here
  std::vector<Step> after;  // and after it
  std::string why;          // it cannot be said, because

  bool refuse(std::string reason) {
    why = std::move(reason);
    return false;
  }
  bool has(uint32_t i) const { return i < itself.inputs.size() && itself.inputs[i].present(); }
  tn_type type(uint32_t i) const {
    return node.input(i) == TN_NONE ? tn_type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr}
                                    : graph.value(node.input(i)).type;
  }
  int32_t rank(uint32_t i) const { return type(i).rank; }
  /// The numbers of an operand of integers, where they are known.
  std::optional<std::vector<int64_t>> integers(uint32_t i) const;
  /// The numbers of a constant operand.
  std::optional<std::vector<double>> numbers(uint32_t i) const;
  /// The operands from `count` on are no operands any more.
  void keep_inputs(size_t count) {
    if (itself.inputs.size() > count) itself.inputs.resize(count);
  }
  void remove(std::string_view attribute);
  void set(std::string_view attribute, int64_t value);
  void set(std::string_view attribute, double value);
  void set(std::string_view attribute, std::vector<int64_t> values);
  void set(std::string_view attribute, std::vector<double> values);
  void set(std::string_view attribute, std::string_view text);
  Place integers_constant(const std::vector<int64_t>& values);
  /// The node's first result is a value between now, and `op` makes the result of it.
  Step& then(std::string op, std::vector<Place> more = {});

 private:
  StepAttribute& fresh(std::string_view attribute, uint32_t kind);
};

/// Each returns false with `why` where the form cannot be had.
using MakeOlder = bool (*)(OlderForm&);
struct OlderMaker {
  const char* op;
  int32_t below;  // for operator sets older than this
  MakeOlder make;
};
extern const OlderMaker axis_makers[];  // each ends with a row without a name
extern const OlderMaker operand_makers[];
extern const OlderMaker sampling_makers[];

/// Axes counted from the back become axes counted from the front; false where the rank is not known.
bool from_the_front(std::vector<int64_t>& axes, int32_t rank);

}  // namespace tenon::onnx
