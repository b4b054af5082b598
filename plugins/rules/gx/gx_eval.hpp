// Evaluates gx programs over a Scope, with bounded work.
#pragma once
#include "gx/gx.hpp"
#include "gx/gx_value.hpp"

namespace tenon::rules::gx {

class Evaluator {
 public:
  explicit Evaluator(Scope& scope) : scope_(scope) {}
  /// With estimate on, an unknown dimension counts as its lower bound, at least 1: costs are never unknown.
  void set_estimate(bool on) { estimate_ = on; }
  /// Elements that may still be computed; what exceeds it gives an unknown value.
  void set_budget(int64_t elements) { budget_ = elements; }
  Value run(const Program& program);
  /// "ln.axis = 1, rank(u) = 3": the named parts of a program and their values, for messages.
  std::string describe(const Program& program);
  /// As a tensor: numbers and lists of numbers become one, constants of the graph are read. Unknown on
  /// failure.
  Value tensor(const Value& v);

 private:
  friend struct Library;
  Value eval(uint32_t node);
  Value call(const Expr& e);
  Value compare(const Expr& e);
  Value relate(Relation r, const Value& a, const Value& b);
  Value arithmetic(Op op, const Value& a, const Value& b);
  Value elementwise(Op op, Value a, Value b);
  Value index(const Expr& e);
  Value slice(const Expr& e);
  Value equal(const Value& a, const Value& b);
  Value truth(const Value& v);
  Value shape(const Value& v);
  bool spend(int64_t elements);

  Scope& scope_;
  const Program* program_ = nullptr;
  bool estimate_ = false;
  int64_t budget_ = int64_t{1} << 26;
};

/// Broadcast result dims; false when they do not fit.
bool broadcast_dims(const std::vector<int64_t>& a, const std::vector<int64_t>& b, std::vector<int64_t>* out);

}  // namespace tenon::rules::gx
