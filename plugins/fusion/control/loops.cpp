// Loop: body inputs are the turn's number, the condition, then the state; body results the next condition,
// the state, then what is stacked up over the turns.
#include <algorithm>
#include <unordered_map>

#include "control/control.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

struct Loop {
  tn_region body = TN_NONE;
  std::vector<tn_value> inputs, outputs;  // of the body
  std::vector<tn_value> initial;          // of the state
  size_t state() const { return initial.size(); }
};

std::optional<Loop> loop_of(const Context& c, const Node& n) {
  if (n.op() != c.ops.loop || n.regions().size() != 1 || n.inputs().size() < 2) return std::nullopt;
  Loop l;
  l.body = n.regions()[0];
  const auto info = c.graph.region(l.body);
  l.inputs.assign(info.inputs, info.inputs + info.input_count);
  l.outputs.assign(info.outputs, info.outputs + info.output_count);
  l.initial.assign(n.inputs().begin() + 2, n.inputs().end());
  if (l.inputs.size() != l.state() + 2 || l.outputs.size() < l.state() + 1 ||
      n.outputs().size() + 1 != l.outputs.size())
    return std::nullopt;
  return l;
}

/// How many turns, when the condition cannot end it before.
std::optional<int64_t> turns(const Context& c, const Node& n, const Loop& l) {
  if (n.input(1) != TN_NONE) {
    const auto condition = known_number(c, n.input(1));
    if (!condition) return std::nullopt;
    if (*condition == 0) return 0;
  }
  const auto count = known_number(c, n.input(0));
  if (!count) return std::nullopt;
  if (*count <= 0) return 0;
  if (*count == 1 || l.outputs[0] == l.inputs[1]) return count;
  const auto goes_on = known_number(c, l.outputs[0]);
  return goes_on && *goes_on != 0 ? count : std::nullopt;
}

}  // namespace

bool unroll_loop(Context& c, const Node& n, int64_t max_added_nodes) {
  c.step = "unroll Loop";
  const auto l = loop_of(c, n);
  if (!l) return false;
  const auto count = turns(c, n, *l);
  if (!count) return false;
  const std::vector<tn_node> body = c.graph.nodes(l->body).copy();
  const std::vector<tn_value> results = n.outputs().copy();
  const size_t stacked = results.size() - l->state();
  std::vector<char> wanted;
  int64_t stacks = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    wanted.push_back(results[i] != TN_NONE && c.graph.value(results[i]).use_count != 0);
    if (i >= l->state() && wanted.back()) ++stacks;
  }
  if (*count == 0 && stacks != 0) return false;  // an empty tensor, of dims that only a turn would tell
  const int64_t size = static_cast<int64_t>(body.size()) + stacks;
  if (*count > 1 && (*count > 64 || (*count - 1) * size > max_added_nodes)) return false;
  const tn_node id = n.id();
  const tn_region region = n.region();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  std::vector<tn_value> state = l->initial;
  std::vector<std::vector<tn_value>> stack(stacked);
  for (int64_t turn = 0; turn < *count; ++turn) {
    std::vector<tn_value> given{edit.scalar<int64_t>(turn), edit.scalar<bool>(true)};
    given.insert(given.end(), state.begin(), state.end());
    std::vector<tn_value> made = l->outputs;
    if (turn + 1 < *count) {
      std::unordered_map<tn_value, tn_value> copies;
      for (size_t i = 0; i < given.size(); ++i) copies[l->inputs[i]] = given[i];
      const auto copy_of = [&](tn_value v) {
        const auto at = copies.find(v);
        return at == copies.end() ? v : at->second;
      };
      for (tn_node inner : body) {
        const Node source = c.graph.node(inner);
        // What its own regions capture of the body would need renaming too: clone_node does not.
        if (!source.regions().empty()) return false;
        std::vector<tn_value> operands = source.inputs().copy();
        for (tn_value& v : operands)
          if (v != TN_NONE) v = copy_of(v);
        const std::vector<tn_value> from = source.outputs().copy();
        const tn_node copy = edit.clone(inner, region, id, operands);
        const Node target = c.graph.node(copy);
        for (uint32_t i = 0; i < from.size(); ++i)
          if (from[i] != TN_NONE) copies[from[i]] = target.output(i);
      }
      for (tn_value& v : made) v = copy_of(v);
    } else {
      edit.inline_region(l->body, given, id);
      // A result of the body that is one of its inputs is what was given for that.
      for (tn_value& v : made) {
        const auto at = std::find(l->inputs.begin(), l->inputs.end(), v);
        if (at != l->inputs.end()) v = given[static_cast<size_t>(at - l->inputs.begin())];
      }
    }
    for (size_t i = 0; i < state.size(); ++i) state[i] = made[i + 1];
    for (size_t i = 0; i < stacked; ++i)
      if (wanted[l->state() + i])
        stack[i].push_back(edit.create({"Unsqueeze",
                                        {made[1 + l->state() + i], edit.vector<int64_t>({0})},
                                        1,
                                        {},
                                        region,
                                        id,
                                        {},
                                        {id}})
                               .output(0));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!wanted[i]) continue;
    if (i < l->state()) {
      edit.replace_uses(results[i], state[i]);
      continue;
    }
    const auto& parts = stack[i - l->state()];
    edit.replace_uses(
        results[i],
        parts.size() == 1
            ? parts[0]
            : edit.create({"Concat", parts, 1, {AttrValue::of("axis", int64_t{0})}, region, id, {}, {id}})
                  .output(0));
  }
  edit.erase(id);
  return c.commit(edit, id);
}

bool forward_unchanged_state(Context& c, const Node& n) {
  c.step = "forward unchanged state of a Loop";
  const auto l = loop_of(c, n);
  if (!l) return false;
  std::vector<size_t> unchanged;
  for (size_t i = 0; i < l->state(); ++i) {
    if (l->outputs[i + 1] != l->inputs[i + 2] || l->initial[i] == TN_NONE) continue;
    const bool inside = c.graph.value(l->inputs[i + 2]).use_count > 1;
    const bool outside = n.output(static_cast<uint32_t>(i)) != TN_NONE &&
                         c.graph.value(n.output(static_cast<uint32_t>(i))).use_count != 0;
    if (inside || outside) unchanged.push_back(i);
  }
  if (unchanged.empty()) return false;
  const std::vector<tn_value> results = n.outputs().copy();
  const tn_node id = n.id();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  for (size_t i : unchanged) {
    // The body's own result becomes the initial value too, so the slot is dead afterwards.
    edit.replace_uses(l->inputs[i + 2], l->initial[i]);
    if (results[i] != TN_NONE) edit.replace_uses(results[i], l->initial[i]);
  }
  return c.commit(edit, id);
}

bool hoist_invariants(Context& c, const Node& n) {
  c.step = "compute before a loop what it does not change";
  if (n.regions().size() != 1) return false;
  const tn_region body = n.regions()[0], outside = n.region();
  const tn_node id = n.id();
  bool any = false;
  for (tn_node inner : c.graph.nodes(body).copy()) {
    const Node node = c.graph.node(inner);
    if (!node.alive() || !cannot_fail(c, node)) continue;
    bool invariant = true, captures = false;
    for (tn_value v : node.inputs()) {
      if (v == TN_NONE) continue;
      const auto info = c.graph.value(v);
      invariant = invariant && (info.kind == TN_VALUE_CONSTANT || info.region != body);
      captures = captures || info.kind != TN_VALUE_CONSTANT;
    }
    if (!invariant || !captures) continue;  // of constants only: fold has it
    const std::vector<tn_value> from = node.outputs().copy(), operands = node.inputs().copy();
    Transaction edit = c.pass.edit(c.step);
    if (!edit.active()) return any;
    const Node moved = c.graph.node(edit.clone(inner, outside, id, operands));
    const std::vector<tn_value> to = moved.outputs().copy();
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] != TN_NONE) edit.replace_uses(from[i], to[i]);
    edit.erase(inner);
    any = c.commit(edit, inner) || any;
  }
  return any;
}

}  // namespace tenon::fusion
