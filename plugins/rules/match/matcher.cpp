#include "match/matcher.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules {
namespace {
constexpr uint32_t variadic = 1u << 31;  // beside the flags of an operator
}

std::string GraphAccess::value_name(tn_value v) const {
  if (v == TN_NONE) return "(none)";
  const auto i = value(v);
  if (i.name.size) return sdk::text(i.name);
  if (i.kind == TN_VALUE_RESULT) return "a result of " + node_name(i.producer);
  return "value " + std::to_string(v);
}
std::string GraphAccess::node_name(tn_node n) const {
  if (n == TN_NONE) return "(none)";
  const auto i = node(n);
  return i.name.size ? sdk::text(i.name) : "(unnamed " + std::string(op_name(i.op)) + ")";
}

std::vector<tn_node> running_nodes(const GraphAccess& graph, const OpCatalog& ops) {
  const auto* api = graph.api();
  std::vector<tn_node> nodes;
  for (tn_region r = 0; r < api->region_bound(graph.raw()); ++r) {
    tn_region_info info{};
    info.size = sizeof info;
    if (api->region(graph.raw(), r, &info) != TN_OK) continue;
    if (info.parent != TN_NONE) {
      const tn_node_info parent = graph.node(info.parent);
      const tn_op_def* def = parent.alive ? ops.find(parent.op) : nullptr;
      if (!def || !(def->flags & TN_OP_CONTROL_FLOW)) continue;
    } else if (r != api->main_region) {
      continue;
    }
    const tn_node* ids = nullptr;
    uint32_t count = 0;
    if (api->nodes(graph.raw(), r, &ids, &count) == TN_OK) nodes.insert(nodes.end(), ids, ids + count);
  }
  return nodes;
}

const tn_attr* effective_attribute(const tn_node_info& node, tn_sym name, std::string_view text,
                                   const OpCatalog& ops, tn_attr* scratch) {
  if (const tn_attr* a = sdk::find_attr(node, name)) return a;
  const tn_op_def* def = ops.find(node.op);
  for (uint32_t i = 0; def && i < def->attr_count; ++i) {
    const tn_attr_def& d = def->attrs[i];
    if (sdk::view(d.name) != text) continue;
    if (!d.has_default) return nullptr;
    *scratch = {};
    scratch->name = name;
    scratch->kind = d.kind;
    if (d.kind == TN_ATTR_INT)
      scratch->u.i = d.default_int;
    else if (d.kind == TN_ATTR_FLOAT)
      scratch->u.f = d.default_float;
    else if (d.kind == TN_ATTR_STRING)
      scratch->u.s = d.default_string;
    else if (d.kind == TN_ATTR_INTS)
      scratch->u.ints = d.default_ints, scratch->count = d.count;
    else
      return nullptr;
    return scratch;
  }
  return nullptr;
}

bool meets(const Predicate& wish, const tn_attr& a) {
  switch (a.kind) {
    case TN_ATTR_INT:
      return wish.number(static_cast<double>(a.u.i));
    case TN_ATTR_FLOAT:
      return wish.number(a.u.f);
    case TN_ATTR_STRING:
      return wish.text(sdk::view(a.u.s));
    case TN_ATTR_INTS:
    case TN_ATTR_FLOATS: {  // a list is meant whole
      if (wish.one_of.size() != a.count) return false;
      for (uint64_t i = 0; i < a.count; ++i) {
        const double v = a.kind == TN_ATTR_INTS ? static_cast<double>(a.u.ints[i]) : a.u.floats[i];
        if (wish.one_of[i].is_text || wish.one_of[i].number != v) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

void Matcher::undo(size_t trail, size_t goals) {
  while (trail_.size() > trail) {
    const Trail t = trail_.back();
    trail_.pop_back();
    if (t.kind == Trail::Node)
      match_->nodes[t.index] = TN_NONE;
    else if (t.kind == Trail::Value)
      match_->values[t.index] = unbound;
    else
      match_->rests.pop_back();
  }
  goals_.resize(goals);
}

void Matcher::miss(tn_node at, tn_value value, const VariantNode* wanted) {
  if (!detailed_) return;
  uint32_t matched = 0;
  for (const tn_node n : match_->nodes) matched += n != TN_NONE;
  if (matched <= near_.matched && near_.at != TN_NONE) return;
  near_ = {matched, at, value, {}, {}, variant_};
  for (const tn_node n : match_->nodes)
    if (n != TN_NONE) near_.nodes.push_back(n);
  if (wanted)
    for (const tn_sym s : wanted->what->ops)
      near_.wanted += (near_.wanted.empty() ? "" : "|") + std::string(ops_.text(s));
}

bool Matcher::bind(uint32_t value, tn_value graph_value) {
  tn_value& slot = match_->values[value];
  if (slot != unbound) return slot == graph_value;
  slot = graph_value;
  trail_.push_back({Trail::Value, value});
  return true;
}

bool Matcher::bind_rest(uint32_t value, std::vector<tn_value> operands) {
  for (const auto& r : match_->rests)
    if (r.first == value) return r.second == operands;
  match_->rests.emplace_back(value, std::move(operands));
  trail_.push_back({Trail::Rest, value});
  return true;
}

/// Binds operand `slot` of node n, and puts the node that yields it on the list of goals.
bool Matcher::bind_operand(uint32_t n, size_t slot, tn_value v) {
  const uint32_t value = variant_->nodes[n].in[slot];
  if (value == none || variant_->nodes[n].what->in[slot].kind == Slot::Any) return true;
  const bool fresh = match_->values[value] == unbound;
  if (!bind(value, v)) return false;
  const uint32_t p = variant_->producer[value];
  if (fresh && p != none && v != TN_NONE && match_->nodes[p] == TN_NONE)
    goals_.push_back({p, graph_.value(v).producer});
  return true;
}

uint32_t Matcher::flags_of(tn_sym op) const {
  for (const auto& f : flags_)
    if (f.first == op) return f.second;
  const tn_op_def* def = ops_.find(op);
  uint32_t flags = def ? def->flags & ~variadic : 0u;
  if (def && def->input_count && (def->inputs[def->input_count - 1].flags & TN_PARAM_VARIADIC))
    flags |= variadic;
  flags_.emplace_back(op, flags);
  return flags;
}

bool Matcher::commutes(const VariantNode& n, tn_sym op) const {
  return n.from->commute ? *n.from->commute : (flags_of(op) & TN_OP_COMMUTATIVE) != 0;
}

/// Sum, Max: not only the first two operands change places.
bool Matcher::in_any_order(const VariantNode& n, const tn_node_info& info) const {
  if (info.input_count < 2 || !commutes(n, info.op)) return false;
  return n.rest != none ||
         (info.input_count > 2 && n.what->in.size() == info.input_count && (flags_of(info.op) & variadic));
}

bool Matcher::attributes(const VariantNode& n, const tn_node_info& info) {
  for (const auto& w : n.what->attrs) {
    tn_attr scratch;
    const tn_attr* a = effective_attribute(info, w.symbol, w.name, ops_, &scratch);
    if (!a || !meets(w.wish, *a)) return false;
  }
  return true;
}

/// A constant of one element matches by value, whatever its rank, unless its rank would widen the result.
bool Matcher::literal(const Slot& s, tn_value v, const tn_value* in, uint32_t count) {
  const auto info = graph_.value(v);
  if (info.kind != TN_VALUE_CONSTANT) return false;
  const bool ranked = info.type.rank >= 0;
  int64_t numel = 1;
  for (int32_t i = 0; ranked && i < info.type.rank; ++i) {
    const tn_dim d = info.type.dims[i];
    numel = d < 0 || d > (1 << 20) ? -1 : numel * d;
    if (numel < 0 || numel > (1 << 20)) return s.literal.empty();
  }
  if (!ranked) return false;
  if (numel == 1 && info.type.rank > 0 && count > 1) {
    bool other = false, fits = false;
    for (uint32_t i = 0; i < count; ++i) {
      if (in[i] == v || in[i] == TN_NONE) continue;
      other = true;
      fits = fits || graph_.value(in[i]).type.rank >= info.type.rank;
    }
    if (other && !fits) return false;
  }
  if (s.literal.empty()) return true;
  if (static_cast<int64_t>(s.literal.size()) != numel) return false;
  tn_tensor t;
  if (!graph_.constant(v, &t)) return false;
  double rtol = s.rtol;
  if (rtol < 0) rtol = t.dtype == TN_FLOAT16 ? 2e-3 : t.dtype == TN_BFLOAT16 ? 1e-2 : 1e-5;
  bool ok = true;
  const bool numbers = sdk::visit_number(t.dtype, [&](auto zero) {
    const auto* p = static_cast<const decltype(zero)*>(t.data);
    for (size_t i = 0; i < s.literal.size() && ok; ++i) {
      const double x = static_cast<double>(p[i]), wanted = s.literal[i];
      ok = std::fabs(x - wanted) <= s.atol + rtol * std::fabs(wanted);
    }
  });
  return numbers && ok;
}

/// Cheap tests of operand i before anything is bound: literals, what is bound already, what producers can be.
bool Matcher::slot(const VariantNode& n, size_t i, tn_value v, const tn_value* in, uint32_t count) {
  const Slot& s = n.what->in[i];
  if (s.kind == Slot::Any) return true;
  if (v == TN_NONE) return s.optional;
  if (s.constant && !literal(s, v, in, count)) return false;
  const uint32_t value = n.in[i];
  if (value == none) return true;
  if (match_->values[value] != unbound) return match_->values[value] == v;
  const uint32_t p = variant_->producer[value];
  if (p == none) return true;
  const auto info = graph_.value(v);
  if (info.kind != TN_VALUE_RESULT || info.index != variant_->producer_result[value]) {
    miss(TN_NONE, v, &variant_->nodes[p]);
    return false;
  }
  const tn_node_info made = graph_.node(info.producer);
  const auto& ops = variant_->nodes[p].what->ops;
  const bool assoc = variant_->nodes[p].from->assoc;
  if (std::find(ops.begin(), ops.end(), made.op) == ops.end()) {
    miss(info.producer, v, &variant_->nodes[p]);
    return false;
  }
  return assoc || match_->nodes[p] == TN_NONE || match_->nodes[p] == info.producer;
}

bool Matcher::operands(uint32_t n, const tn_value* in, uint32_t count, size_t goal) {
  const VariantNode& vn = variant_->nodes[n];
  const size_t slots = vn.what->in.size(), rest = vn.rest;
  size_t listed = 0;  // operands that the list takes
  if (vn.rest != none) {
    if (count + 1 < slots) return false;
    listed = count + 1 - slots;
  } else {
    for (size_t i = slots; i < count; ++i)
      if (in[i] != TN_NONE) return false;  // an operand the pattern does not speak of
  }
  // Slots behind a list count from the end.
  const auto operand = [&](size_t slot) {
    const size_t i = vn.rest != none && slot > rest ? slot + listed - 1 : slot;
    return i < count ? in[i] : TN_NONE;
  };
  for (size_t i = 0; i < slots; ++i)
    if (i != rest && !slot(vn, i, operand(i), in, count)) return false;
  const size_t trail = trail_.size(), goals = goals_.size();
  bool ok = vn.rest == none || bind_rest(vn.in[rest], {in + rest, in + rest + listed});
  for (size_t i = 0; i < slots && ok; ++i) ok = i == rest || bind_operand(n, i, operand(i));
  if (ok && solve(goal + 1)) return true;
  undo(trail, goals);
  return false;
}

bool Matcher::chain_operand(uint32_t n, const tn_node_info& info, size_t goal) {
  const VariantNode& vn = variant_->nodes[n];
  if (vn.chain == none) return solve(goal + 1);
  const uint32_t p = variant_->producer[vn.chain];
  const uint32_t last = commutes(vn, info.op) ? std::min<uint32_t>(2, info.input_count)
                                              : std::min<uint32_t>(1, info.input_count);
  for (uint32_t i = 0; i < last; ++i) {
    const tn_value v = info.inputs[i];
    if (v == TN_NONE) continue;
    const auto vi = graph_.value(v);
    if (p != none && (vi.kind != TN_VALUE_RESULT || vi.index != variant_->producer_result[vn.chain])) {
      miss(TN_NONE, v, &variant_->nodes[p]);
      continue;
    }
    const size_t trail = trail_.size(), goals = goals_.size();
    if (bind(vn.chain, v)) {
      if (p != none) goals_.push_back({p, vi.producer});
      if (solve(goal + 1)) return true;
    }
    undo(trail, goals);
    if (steps_ > budget_) return false;
  }
  return false;
}

bool Matcher::match_node(uint32_t n, tn_node at, size_t goal) {
  if (++steps_ > budget_) return false;
  const VariantNode& vn = variant_->nodes[n];
  const tn_node_info info = graph_.node(at);
  if (!info.alive || info.region != match_->region) return false;
  if (std::find(vn.what->ops.begin(), vn.what->ops.end(), info.op) == vn.what->ops.end()) {
    miss(at, TN_NONE, &vn);
    return false;
  }
  if (match_->has(at)) return false;
  if ((vn.from->since && info.op_version < vn.from->since) ||
      (vn.from->until && info.op_version > vn.from->until))
    return false;
  if (variant_->rule->once && made_by && made_by(*variant_->rule, at)) return false;
  if (!attributes(vn, info)) {
    miss(at, TN_NONE, nullptr);
    return false;
  }
  const size_t trail = trail_.size(), goals = goals_.size();
  match_->nodes[n] = at;
  trail_.push_back({Trail::Node, n});
  for (size_t k = 0; k < vn.out.size(); ++k) {
    if (vn.out[k] == none) continue;
    const tn_value v = k < info.output_count ? info.outputs[k] : TN_NONE;
    if (!bind(vn.out[k], v)) {
      undo(trail, goals);
      return false;
    }
  }
  bool ok = false;
  if (vn.what->any_operands) {
    ok = chain_operand(n, info, goal);
  } else if (vn.from->assoc) {
    ok = assoc(n, at, goal);
  } else if (in_any_order(vn, info)) {
    const std::vector<tn_value> all(info.inputs, info.inputs + info.input_count);
    std::vector<bool> used(all.size());
    ok = assign(n, all, used, 0, goal);
  } else {
    ok = operands(n, info.inputs, info.input_count, goal);
    if (!ok && info.input_count >= 2 && vn.what->in.size() >= 2 && info.inputs[0] != info.inputs[1] &&
        steps_ <= budget_ && commutes(vn, info.op)) {
      std::vector<tn_value> swapped(info.inputs, info.inputs + info.input_count);
      std::swap(swapped[0], swapped[1]);
      ok = operands(n, swapped.data(), info.input_count, goal);
    }
  }
  if (!ok) undo(trail, goals);
  return ok;
}

/// Flattens a tree of one operator, single-use inside, into as many leaves as the pattern lists.
bool Matcher::assoc(uint32_t n, tn_node at, size_t goal) {
  const tn_node_info info = graph_.node(at);
  if (info.input_count != 2 || info.inputs[0] == TN_NONE || info.inputs[1] == TN_NONE) return false;
  std::vector<tn_value> leaves{info.inputs[0], info.inputs[1]};
  if (variant_->nodes[n].rest == none) return assoc_tree(n, leaves, goal);
  const size_t inner = match_->inner.size();
  std::vector<bool> used;
  if (flatten(n, leaves)) {
    used.resize(leaves.size());
    if (assign(n, leaves, used, 0, goal)) return true;
  }
  match_->inner.resize(inner);
  return false;
}

/// The node below a leaf when the tree goes on there: the same operator, read by the tree alone.
bool Matcher::branch(uint32_t n, tn_value leaf, tn_node_info* below, tn_node* node) {
  const auto v = graph_.value(leaf);
  if (v.kind != TN_VALUE_RESULT || v.use_count != 1) return false;
  *below = graph_.node(v.producer);
  *node = v.producer;
  return below->op == graph_.node(match_->nodes[n]).op && below->region == match_->region &&
         below->input_count == 2 && below->inputs[0] != TN_NONE && below->inputs[1] != TN_NONE &&
         graph_.users(leaf)[0].node != TN_NONE && !match_->has(v.producer);
}

/// All leaves of the tree, from left to right.
bool Matcher::flatten(uint32_t n, std::vector<tn_value>& leaves) {
  for (size_t i = 0; i < leaves.size();) {
    tn_node_info below{};
    tn_node node = TN_NONE;
    if (++steps_ > budget_ || leaves.size() > max_leaves) return false;
    if (!branch(n, leaves[i], &below, &node)) {
      ++i;
      continue;
    }
    leaves[i] = below.inputs[0];
    leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(i) + 1, below.inputs[1]);
    match_->inner.push_back(node);
  }
  return true;
}

bool Matcher::assoc_tree(uint32_t n, std::vector<tn_value>& leaves, size_t goal) {
  const VariantNode& vn = variant_->nodes[n];
  if (++steps_ > budget_) return false;
  if (leaves.size() == vn.what->in.size()) {
    std::vector<bool> used(leaves.size());
    return assign(n, leaves, used, 0, goal);
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const tn_value leaf = leaves[i];
    tn_node_info below{};
    tn_node node = TN_NONE;
    if (!branch(n, leaf, &below, &node)) continue;
    // Later leaves only, else each tree is tried once for every order of opening it.
    leaves[i] = below.inputs[0];
    leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(i) + 1, below.inputs[1]);
    match_->inner.push_back(node);
    if (assoc_tree(n, leaves, goal)) return true;
    match_->inner.pop_back();
    leaves.erase(leaves.begin() + static_cast<ptrdiff_t>(i) + 1);
    leaves[i] = leaf;
    if (steps_ > budget_) return false;
  }
  return false;
}

/// Gives the slots of a node that commutes its operands in every order; what is left goes to the list.
bool Matcher::assign(uint32_t n, const std::vector<tn_value>& leaves, std::vector<bool>& used, size_t at,
                     size_t goal) {
  const VariantNode& vn = variant_->nodes[n];
  const size_t slots = vn.what->in.size() - (vn.rest != none);
  if (leaves.size() < slots) return false;
  if (at == slots) {
    const size_t trail = trail_.size(), goals = goals_.size();
    std::vector<tn_value> left;
    for (size_t i = 0; vn.rest != none && i < leaves.size(); ++i)
      if (!used[i]) left.push_back(leaves[i]);
    if ((vn.rest == none || bind_rest(vn.in[vn.rest], std::move(left))) && solve(goal + 1)) return true;
    undo(trail, goals);
    return false;
  }
  // Literals and constants first: they fail soonest. `order` is stable and small.
  std::vector<size_t> order;
  const auto is_rest = [&](size_t i) { return vn.rest != none && i == vn.rest; };
  for (size_t i = 0; i < vn.what->in.size(); ++i)
    if (!is_rest(i) && vn.what->in[i].constant) order.push_back(i);
  for (size_t i = 0; i < vn.what->in.size(); ++i)
    if (!is_rest(i) && !vn.what->in[i].constant && vn.in[i] != none && variant_->producer[vn.in[i]] != none)
      order.push_back(i);
  for (size_t i = 0; i < vn.what->in.size(); ++i)
    if (!is_rest(i) && std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
  const size_t s = order[at];
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (used[i]) continue;
    if (++steps_ > budget_) return false;
    if (!slot(vn, s, leaves[i], leaves.data(), static_cast<uint32_t>(leaves.size()))) continue;
    const size_t trail = trail_.size(), goals = goals_.size();
    used[i] = true;
    if (bind_operand(n, s, leaves[i]) && assign(n, leaves, used, at + 1, goal)) return true;
    used[i] = false;
    undo(trail, goals);
  }
  return false;
}

/// Nodes of the pattern not above the anchor (a second output): found from a bound operand through its users.
bool Matcher::down() {
  for (uint32_t n = 0; n < variant_->nodes.size(); ++n) {
    if (match_->nodes[n] != TN_NONE) continue;
    const VariantNode& vn = variant_->nodes[n];
    auto reads = vn.in;
    reads.push_back(vn.chain);
    for (const uint32_t value : reads) {
      if (value == none || match_->values[value] == unbound || match_->values[value] == TN_NONE) continue;
      const auto users = graph_.users(match_->values[value]).copy();
      for (const auto& u : users) {
        if (u.node == TN_NONE) continue;
        const size_t goals = goals_.size();
        goals_.push_back({n, u.node});
        if (solve(goals)) return true;
        goals_.resize(goals);
        if (steps_ > budget_) return false;
      }
      return false;
    }
  }
  return false;
}

bool Matcher::solve(size_t goal) {
  if (steps_ > budget_) return false;
  while (goal < goals_.size() && match_->nodes[goals_[goal].node] == goals_[goal].at)
    ++goal;  // two ways to one node
  if (goal < goals_.size()) {
    const Goal g = goals_[goal];
    if (match_->nodes[g.node] != TN_NONE) return false;
    return match_node(g.node, g.at, goal);
  }
  for (const tn_node n : match_->nodes)
    if (n == TN_NONE) return down();
  steps_ += 16;  // a complete match costs more than a step
  return (*accept_)(*match_);
}

Matcher::Result Matcher::run(const Variant& variant, tn_node anchor, Match* match, const Accept& accept,
                             bool detailed, int budget) {
  variant_ = &variant;
  match_ = match;
  accept_ = &accept;
  detailed_ = detailed;
  steps_ = 0;
  budget_ = budget;
  near_ = {};
  goals_.clear();
  trail_.clear();
  match->variant = &variant;
  match->nodes.assign(variant.nodes.size(), TN_NONE);
  match->values.assign(variant.producer.size(), unbound);
  match->inner.clear();
  match->rests.clear();
  match->region = graph_.node(anchor).region;
  goals_.push_back({variant.anchor, anchor});
  if (solve(0)) return Found;
  return steps_ > budget_ ? OverBudget : NotFound;
}

}  // namespace tenon::rules
