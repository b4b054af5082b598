// The reverse pass that Gradient stands for: what one node adds to the gradients of its operands.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "support/define.hpp"

namespace tenon::ops {

inline bool is_real(tn_dtype d) {
  return d == TN_FLOAT16 || d == TN_BFLOAT16 || d == TN_FLOAT32 || d == TN_FLOAT64;
}

/// Gradients of the values between the variables and y, collected from y backwards.
class Tape {
 public:
  Tape(Rewrite& w, const std::unordered_set<tn_value>& dependent) : w_(w), dependent_(dependent) {}
  Rewrite& rewrite() { return w_; }
  tn_type type(tn_value v) const { return w_.editor().graph().value(v).type; }
  /// v depends on a variable, and is of reals.
  bool wants(tn_value v) const { return v != TN_NONE && dependent_.count(v) && is_real(type(v).dtype); }
  /// TN_NONE where nothing was added.
  tn_value gradient(tn_value v) const {
    const auto at = gradients_.find(v);
    return at == gradients_.end() ? tn_value{TN_NONE} : at->second;
  }
  void add(tn_value v, tn_value gradient);

 private:
  Rewrite& w_;
  const std::unordered_set<tn_value>& dependent_;
  std::unordered_map<tn_value, tn_value> gradients_;
};

/// One node on the way back, with the gradient g of its first result.
class Step {
 public:
  Step(Tape& tape, const Node& n, tn_value gradient)
      : g(gradient), x(n.inputs().copy()), y(n.output(0)), tape_(tape), node_(n.id()) {}
  tn_value g;
  std::vector<tn_value> x;
  tn_value y;

  bool wants(size_t i) const { return i < x.size() && tape_.wants(x[i]); }
  /// Adds to the gradient of operand i.
  void give(size_t i, tn_value gradient) { tape_.add(x[i], gradient); }
  /// The same, summed over the axes along which operand i was broadcast to the shape of y.
  void give_broadcast(size_t i, tn_value gradient) { give(i, reduced(gradient, y, x[i], 0)); }
  /// Sums `gradient`, which has the shape of `from`, to the shape of `to`; the last `kept` axes are equal.
  tn_value reduced(tn_value gradient, tn_value from, tn_value to, size_t kept);

  tn_value op(std::string_view name, std::vector<tn_value> inputs, std::vector<AttrValue> attrs = {}) {
    return tape_.rewrite().make(name, std::move(inputs), std::move(attrs));
  }
  tn_value number(double value) { return tape_.rewrite().number_like(value, g); }
  tn_value shape_of(tn_value v) { return op("Shape", {v}); }
  /// `gradient` in the shape of v, which has as many elements.
  tn_value shaped_as(tn_value gradient, tn_value v) {
    return op("Reshape", {gradient, shape_of(v)}, {AttrValue::of("allowzero", int64_t{1})});
  }
  Rewrite& rewrite() { return tape_.rewrite(); }
  GraphView graph() { return rewrite().editor().graph(); }
  int64_t integer(const char* name, int64_t otherwise) {
    return graph().node(node_).attrs().get_int(name, otherwise);
  }
  double real(const char* name, double otherwise) {
    return graph().node(node_).attrs().get_float(name, otherwise);
  }
  bool has(const char* name) { return graph().node(node_).attrs().has(name); }
  Dims integers(const char* name) {
    const auto list = graph().node(node_).attrs().get_ints(name);
    return Dims(list.begin(), list.end());
  }
  int32_t rank(tn_value v) {
    const int32_t rank = rewrite().rank(v);
    if (rank < 0) refuse("the rank of an operand is not known");
    return rank;
  }
  /// Why this node cannot be differentiated.
  [[noreturn]] void refuse(const std::string& why);

 private:
  Tape& tape_;
  tn_node node_;
};

using GradientRule = void (*)(Step& s);
/// NULL for an operator that has none.
GradientRule gradient_rule(std::string_view op);
/// The operators that have a rule, for messages.
std::string differentiable_operators();
/// "Conv 'conv1'": a node in messages about it.
std::string named_node(const Node& n);

}  // namespace tenon::ops
