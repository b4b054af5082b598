// Expands that the operator behind them does anyway, by broadcasting.
#include <algorithm>
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

// The dims of a broadcast over these values equal `whole`, provably.
bool broadcasts_to(const Context& c, const std::vector<tn_value>& values, const tn_type& whole) {
  if (whole.rank < 0) return false;
  int32_t rank = 0;
  for (tn_value v : values) {
    const tn_type t = c.type(v);
    if (t.kind != TN_KIND_TENSOR || t.rank < 0 || t.rank > whole.rank) return false;
    rank = std::max(rank, t.rank);
  }
  if (rank != whole.rank) return false;
  for (int32_t i = 0; i < whole.rank; ++i) {
    bool reached = c.number(whole.dims[i]) == 1;
    for (tn_value v : values) {
      const tn_type t = c.type(v);
      const int32_t at = i - (whole.rank - t.rank);
      if (at < 0) continue;
      if (c.same_dim(t.dims[at], whole.dims[i]))
        reached = true;
      else if (c.number(t.dims[at]) != 1)
        return false;
    }
    if (!reached) return false;
  }
  return true;
}

// f(Expand(x, s), y) where x and y alone broadcast to the same shape.
tn_value no_expand(Context& c, const Node& n, bool* done) {
  c.step = "leave broadcasting to the operator";
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    const auto expand = n.input(i) == TN_NONE ? std::nullopt : c.producer(n.input(i), c.ops.expand);
    if (!expand) continue;
    std::vector<tn_value> inputs = n.inputs().copy();
    inputs[i] = expand->input(0);
    if (std::find(inputs.begin(), inputs.end(), TN_NONE) != inputs.end()) continue;
    if (!broadcasts_to(c, inputs, c.type(n.output(0)))) continue;
    Transaction edit = c.pass.edit(c.step);
    if (!edit.active()) return TN_NONE;
    edit.set_input(n.id(), i, expand->input(0));
    *done = c.commit(edit, n.id());
    return TN_NONE;
  }
  return TN_NONE;
}

// Expand(Expand(x, s), t): the outer alone, where it says the whole shape.
tn_value expand_of_expand(Context& c, const Node& n, bool* done) {
  c.step = "merge Expands";
  const auto inner = c.producer(n.input(0), c.ops.expand);
  if (!inner) return TN_NONE;
  // Each axis that the inner one stretches must be said by the outer one too: its elements are the result's
  // dims.
  const tn_type out = c.type(n.output(0));
  bool known = false;
  const auto target = c.graph.known_elements(n.input(1), &known);
  if (!known || out.rank < 0 || static_cast<int32_t>(target.size()) != out.rank) return TN_NONE;
  for (int32_t i = 0; i < out.rank; ++i)
    if (!c.same_dim(target[static_cast<size_t>(i)], out.dims[i])) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inner->input(0));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Expand", expand_of_expand}, {"Add", no_expand},
                                       {"Sub", no_expand},           {"Mul", no_expand},
                                       {"Div", no_expand},           {"Pow", no_expand},
                                       {"Mod", no_expand},           {"Max", no_expand},
                                       {"Min", no_expand},           {"Sum", no_expand},
                                       {"Mean", no_expand},          {"Equal", no_expand},
                                       {"Less", no_expand},          {"Greater", no_expand},
                                       {"LessOrEqual", no_expand},   {"GreaterOrEqual", no_expand},
                                       {"And", no_expand},           {"Or", no_expand},
                                       {"Xor", no_expand},           {"Where", no_expand},
                                       {"BitwiseAnd", no_expand},    {"BitwiseOr", no_expand},
                                       {"BitwiseXor", no_expand}};

}  // namespace

Table broadcast_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
