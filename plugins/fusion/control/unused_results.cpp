// If and Loop give what is read, and no more. Such a node is made anew, as its results are counted by its
// regions.
#include <algorithm>
#include <unordered_set>

#include "control/control.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

bool is_read(const Context& c, tn_value v) { return v != TN_NONE && c.graph.value(v).use_count != 0; }

/// Moves the nodes of `from` into an empty region of `owner`; its inputs become `inputs`, its results are
/// `outputs`.
void move_body(Transaction& edit, tn_region from, tn_region to, const std::vector<tn_value>& inputs,
               const std::vector<tn_value>& outputs, tn_value any_value) {
  // inline_region wants a node to put them before.
  const tn_node anchor = edit.create({"Identity", {any_value}, 1, {}, to}).id();
  edit.inline_region(from, inputs, anchor);
  edit.region_outputs(to, outputs);
  edit.erase(anchor);
}

std::string region_name(const Context& c, tn_region r) {
  return std::string(sdk::view(c.graph.region(r).name));
}

bool drop_of_if(Context& c, const Node& n) {
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < n.outputs().size(); ++i)
    if (is_read(c, n.output(i))) kept.push_back(i);
  if (kept.empty() || kept.size() == n.outputs().size()) return false;  // read by nobody: clean removes it
  const std::vector<tn_value> results = n.outputs().copy();
  const std::vector<tn_region> regions = n.regions().copy();
  const tn_node id = n.id();
  const tn_value condition = n.input(0);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  const Node made = edit.create(
      {"If", {condition}, static_cast<uint32_t>(kept.size()), {}, n.region(), id, n.name(), {id}});
  const tn_node made_id = made.id();
  const std::vector<tn_value> made_results = made.outputs().copy();
  for (tn_region r : regions) {
    const auto info = c.graph.region(r);
    std::vector<tn_value> outputs;
    for (uint32_t i : kept) outputs.push_back(info.outputs[i]);
    move_body(edit, r, edit.create_region(made_id, region_name(c, r)), {}, outputs, condition);
  }
  for (size_t i = 0; i < kept.size(); ++i) edit.replace_uses(results[kept[i]], made_results[i]);
  edit.erase(id);
  return c.commit(edit, id);
}

/// What a body computes that its wanted results, its condition and side effects need.
class Needed {
 public:
  Needed(const Context& c, const Node& loop, tn_region body) : c_(c), nodes_(c.graph.nodes(body).copy()) {
    const auto info = c.graph.region(body);
    inputs_.assign(info.inputs, info.inputs + info.input_count);
    outputs_.assign(info.outputs, info.outputs + info.output_count);
    state_ = loop.inputs().size() - 2;
    want(outputs_[0]);
    for (uint32_t i = 0; i < loop.outputs().size(); ++i)
      if (is_read(c, loop.output(i))) {
        want(outputs_[i + 1]);
        if (i < state_) kept_state_.insert(i);
      }
    for (bool again = true; again;) {
      sweep();
      again = false;
      for (size_t i = 0; i < state_; ++i) {
        if (!wanted_.count(inputs_[i + 2]) && !kept_state_.count(i)) continue;
        again = wanted_.insert(outputs_[i + 1]).second || again;
        kept_state_.insert(i);
      }
    }
  }
  bool keeps_state(size_t i) const { return kept_state_.count(i) != 0; }
  const std::vector<tn_value>& inputs() const { return inputs_; }
  const std::vector<tn_value>& outputs() const { return outputs_; }
  /// Nodes that are not needed, users before producers.
  std::vector<tn_node> dead() const {
    std::vector<tn_node> r;
    for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id)
      if (!needed(c_.graph.node(*id))) r.push_back(*id);
    return r;
  }

 private:
  void want(tn_value v) {
    if (v != TN_NONE) wanted_.insert(v);
  }
  bool needed(const Node& n) const {
    const tn_op_def* op = c_.pass.op(n.op());
    if (!op || (op->flags & TN_OP_SIDE_EFFECT)) return true;
    for (tn_value v : n.outputs())
      if (v != TN_NONE && wanted_.count(v)) return true;
    return false;
  }
  void sweep() {
    for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id) {
      const Node n = c_.graph.node(*id);
      if (!needed(n)) continue;
      for (tn_value v : n.inputs()) want(v);
      std::vector<tn_region> open = n.regions().copy();
      while (!open.empty()) {
        const tn_region r = open.back();
        open.pop_back();
        for (tn_node inner : c_.graph.nodes(r)) {
          const Node m = c_.graph.node(inner);
          for (tn_value v : m.inputs()) want(v);
          for (tn_region nested : m.regions()) open.push_back(nested);
        }
        const auto info = c_.graph.region(r);
        for (uint32_t i = 0; i < info.output_count; ++i) want(info.outputs[i]);
      }
    }
  }

  const Context& c_;
  std::vector<tn_node> nodes_;
  std::vector<tn_value> inputs_, outputs_;
  size_t state_ = 0;
  std::unordered_set<tn_value> wanted_;
  std::unordered_set<size_t> kept_state_;
};

bool drop_of_loop(Context& c, const Node& n) {
  if (n.regions().size() != 1 || n.inputs().size() < 2) return false;
  const tn_region body = n.regions()[0];
  const size_t state = n.inputs().size() - 2;
  if (c.graph.region(body).input_count != state + 2 ||
      c.graph.region(body).output_count != n.outputs().size() + 1)
    return false;
  bool read = false;
  for (tn_value v : n.outputs()) read = read || is_read(c, v);
  if (!read) return false;
  const Needed needed(c, n, body);
  std::vector<tn_value> operands{n.input(0), n.input(1)}, outputs{needed.outputs()[0]};
  std::vector<tn_value> results;
  for (uint32_t i = 0; i < n.outputs().size(); ++i) {
    if (i < state ? !needed.keeps_state(i) : !is_read(c, n.output(i))) continue;
    results.push_back(n.output(i));
    outputs.push_back(needed.outputs()[i + 1]);
    if (i < state) operands.push_back(n.input(i + 2));
  }
  if (results.size() == n.outputs().size()) return false;
  tn_value any_value = TN_NONE;  // visible in the body
  for (tn_value v : n.inputs())
    if (v != TN_NONE && c.type(v).kind == TN_KIND_TENSOR) any_value = v;
  if (any_value == TN_NONE || results.empty()) return false;
  const std::vector<tn_node> dead = needed.dead();
  const tn_node id = n.id();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  const Node made = edit.create(
      {"Loop", operands, static_cast<uint32_t>(results.size()), {}, n.region(), id, n.name(), {id}});
  const tn_node made_id = made.id();
  const std::vector<tn_value> made_results = made.outputs().copy();
  const tn_region to = edit.create_region(made_id, region_name(c, body));
  std::vector<tn_value> inputs;
  for (size_t i = 0; i < needed.inputs().size(); ++i) {
    if (i >= 2 && !needed.keeps_state(i - 2)) {
      inputs.push_back(TN_NONE);
      continue;
    }
    const auto info = c.graph.value(needed.inputs()[i]);
    const std::string name(sdk::view(info.name));
    std::vector<tn_dim> dims(dims_of(info.type).begin(), dims_of(info.type).end());
    tn_type type = info.type;
    type.dims = dims.data();
    inputs.push_back(edit.region_input(to, name, type));
  }
  // A result of the body that is one of its inputs is the new body's input.
  for (tn_value& v : outputs) {
    const auto at = std::find(needed.inputs().begin(), needed.inputs().end(), v);
    if (at != needed.inputs().end()) v = inputs[static_cast<size_t>(at - needed.inputs().begin())];
  }
  edit.region_outputs(body, {});
  for (tn_node d : dead) edit.erase(d);
  move_body(edit, body, to, inputs, outputs, any_value);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != TN_NONE) edit.replace_uses(results[i], made_results[i]);
  edit.erase(id);
  return c.commit(edit, id);
}

}  // namespace

bool drop_unused_results(Context& c, const Node& n) {
  c.step = "drop results that nobody reads";
  return n.op() == c.ops.if_op ? drop_of_if(c, n) : n.op() == c.ops.loop && drop_of_loop(c, n);
}

}  // namespace tenon::fusion
