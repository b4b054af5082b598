// The building half of a rewrite: what happens inside the transaction.
#include <algorithm>

#include "match/rewrite.hpp"
#include "tenon/sdk/attribute_default.hpp"

namespace tenon::rules {

tn_value Rewriter::let_constant(sdk::Transaction& tx, uint32_t let) {
  tn_value& v = let_values_[let];
  if (v != TN_NONE) return v;
  gx::Value& value = lets_[let];
  if (exact_[let].dtype() != TN_DTYPE_NONE)
    return v = tx.constant(std::move(exact_[let]), graph_.node_name(anchor_) + "/" + rule_->lets[let].name);
  if (value.kind == gx::Value::Graph) return v = value.graph;
  const std::string name = graph_.node_name(anchor_) + "/" + rule_->lets[let].name;
  if (value.kind == gx::Value::Tensor) {
    auto stored = gx::store(value.tensor);
    value.tensor.data.reset(new std::vector<double>);  // the wide copy is the largest thing here
    return v = tx.constant(std::move(stored), name);
  }
  if (value.kind == gx::Value::List) {
    std::vector<int64_t> whole;
    std::vector<float> real;
    for (const auto& i : value.list) {
      whole.push_back(static_cast<int64_t>(i.number));
      real.push_back(static_cast<float>(i.number));
    }
    const bool ints =
        std::all_of(value.list.begin(), value.list.end(), [](const gx::Value& i) { return i.is_int; });
    return v = ints ? tx.vector(whole, name) : tx.vector(real, name);
  }
  return v = value.is_int ? tx.scalar(static_cast<int64_t>(value.number), name)
                          : tx.scalar(static_cast<float>(value.number), name);
}

tn_value Rewriter::operand(sdk::Transaction& tx, const NewOperand& o) {
  for (const auto& c : o.choices) {
    tn_value v = TN_NONE;
    if (c.kind == NameRef::Value)
      v = now(match_->value(c.index));
    else if (c.kind == NameRef::Made)
      v = made_values_[c.index];
    else if (lets_[c.index].kind != gx::Value::Absent)
      v = let_constant(tx, c.index);
    if (v != TN_NONE) return v;
  }
  if (!o.optional && !o.choices.empty()) {
    const auto& c = o.choices[0];
    // A slot that may be missing in the pattern is missing here too; anything else is a fault of the rule.
    if (c.kind == NameRef::Value) return TN_NONE;
    sdk::fail("an operand of the replacement is not bound");
  }
  return TN_NONE;
}

/// A result of the match that an earlier node of the replacement yields is that node's.
tn_value Rewriter::now(tn_value v) const {
  for (const auto& t : taken_)
    if (t.first == v) return t.second;
  return v;
}

std::vector<tn_value> Rewriter::operands(sdk::Transaction& tx, const NewOperand& o) {
  if (o.list) return match_->list(o.choices[0].index);
  return {operand(tx, o)};
}

tn_node Rewriter::create(sdk::Transaction& tx, const NewNode& n, std::vector<OwnedAttribute>& own,
                         std::vector<tn_value> inputs, uint32_t results, tn_region region, tn_node before) {
  const tn_sym op = op_of(n);
  const tn_op_def* def = ops_.find(op);
  std::vector<OwnedAttribute> copied;
  const auto is_set = [&](tn_sym name) {
    const auto named = [&](const OwnedAttribute& o) { return o.name == name; };
    return std::any_of(own.begin(), own.end(), named) || std::any_of(copied.begin(), copied.end(), named);
  };
  for (const uint32_t from : n.copy_attrs) {
    const tn_node m = match_->node(from);
    if (m == TN_NONE) continue;
    const tn_node_info info = graph_.node(m);
    // What the matched operator takes where nothing is said, the new one may take otherwise.
    for (uint32_t k = 0; def && info.op != op && k < def->attr_count; ++k) {
      const tn_attr_def& wanted = def->attrs[k];
      const tn_sym name = graph_.api()->symbol(wanted.name);
      tn_attr scratch{};
      const tn_attr* a = effective_attribute(info, name, sdk::view(wanted.name), ops_, &scratch);
      OwnedAttribute c;
      if (a != &scratch || a->kind != wanted.kind || sdk::is_default(*a, wanted) || is_set(name) ||
          !c.copy(*a))
        continue;
      c.name = name;
      copied.push_back(std::move(c));
    }
    const char* p = reinterpret_cast<const char*>(info.attrs);
    for (uint32_t i = 0; i < info.attr_count; ++i, p += info.attr_stride) {
      const auto& a = *reinterpret_cast<const tn_attr*>(p);
      bool known = !def;  // an operator takes only the attributes it has
      for (uint32_t k = 0; def && k < def->attr_count; ++k)
        known = known || graph_.api()->symbol(def->attrs[k].name) == a.name;
      OwnedAttribute c;
      if (known && !is_set(a.name) && c.copy(a)) copied.push_back(std::move(c));
    }
  }
  sdk::NodeSpec spec;
  spec.op = graph_.op_name(op);
  while (!inputs.empty() && inputs.back() == TN_NONE) inputs.pop_back();
  spec.inputs = std::move(inputs);
  spec.output_count = results;
  spec.region = region;
  spec.before = before;
  for (auto& a : own) spec.raw_attrs.push_back(a.view());
  for (auto& a : copied) spec.raw_attrs.push_back(a.view());
  if (region == match_->region) {
    spec.origins = match_->nodes;
    spec.origins.insert(spec.origins.end(), match_->inner.begin(), match_->inner.end());
  }
  return tx.create(spec).id();
}

void Rewriter::take_over(sdk::Transaction& tx, tn_value old_value, tn_node fused, tn_value new_value) {
  // An operator without a definition cannot be inferred; what the old result was known to be still holds.
  if (!ops_.find(graph_.node(fused).op)) {
    const tn_type t = graph_.value(old_value).type;
    std::vector<tn_dim> dims = sdk::dims_of(t).copy();
    tn_type own = t;
    own.dims = dims.data();
    if (t.kind != TN_KIND_NONE) tx.set_type(new_value, own);
  }
  tx.replace_uses(old_value, new_value);
  taken_.emplace_back(old_value, new_value);
}

void Rewriter::build(sdk::Transaction& tx) {
  let_values_.assign(rule_->lets.size(), TN_NONE);
  made_values_.assign(rule_->replace.made.size(), TN_NONE);
  taken_.clear();
  for (size_t i = 0; i < rule_->replace.nodes.size(); ++i) {
    const NewNode& n = rule_->replace.nodes[i];
    std::vector<tn_value> inputs;
    for (const auto& o : n.in)
      for (const tn_value v : operands(tx, o)) inputs.push_back(v);
    size_t results = n.out.size();
    while (results > 1 && n.out[results - 1].optional) {
      const tn_value v = n.out[results - 1].value == none ? TN_NONE : match_->value(n.out[results - 1].value);
      if (v != TN_NONE && outside_reads(v)) break;
      --results;
    }
    const tn_node made =
        create(tx, n, attrs_[i], inputs, static_cast<uint32_t>(results), match_->region, anchor_);
    made_.push_back(made);
    std::vector<std::pair<tn_value, tn_value>> taken;  // old, new
    for (size_t k = 0; k < results; ++k) {
      const tn_value now = graph_.node(made).outputs[k];
      if (n.out[k].made != none) made_values_[n.out[k].made] = now;
      if (n.out[k].value != none && match_->value(n.out[k].value) != TN_NONE)
        taken.emplace_back(match_->value(n.out[k].value), now);
    }
    if (wants_body(op_of(n))) {
      if (rule_->replace.body == Replacement::Origin) {
        std::vector<tn_value> yields;
        for (const auto& t : taken) yields.push_back(t.first);
        origin_body(tx, made, inputs, yields);
      } else {
        explicit_body(tx, made);
      }
    }
    for (const auto& t : taken) take_over(tx, t.first, made, t.second);
  }
}

/// The articles' form: operands in the order of nodes, then slots; the union of the attributes.
void Rewriter::chain_node(sdk::Transaction& tx) {
  std::vector<tn_value> inputs;
  std::vector<OwnedAttribute> attrs;
  for (const tn_node m : match_->nodes) {
    const tn_node_info info = graph_.node(m);
    for (uint32_t i = 0; i < info.input_count; ++i) {
      const tn_value v = info.inputs[i];
      const auto vi = v == TN_NONE ? tn_value_info{} : graph_.value(v);
      if (v == TN_NONE || vi.kind != TN_VALUE_RESULT || !match_->has(vi.producer)) inputs.push_back(v);
    }
    const char* p = reinterpret_cast<const char*>(info.attrs);
    for (uint32_t i = 0; i < info.attr_count; ++i, p += info.attr_stride) {
      OwnedAttribute a;
      if (!a.copy(*reinterpret_cast<const tn_attr*>(p))) continue;
      const auto taken = [&](tn_sym name) {
        return std::any_of(attrs.begin(), attrs.end(),
                           [&](const OwnedAttribute& o) { return o.name == name; });
      };
      if (taken(a.name)) {
        // "Conv.group", and for a third one "Conv.group.2".
        const std::string own =
            std::string(graph_.op_name(info.op)) + "." + sdk::text(graph_.api()->symbol_text(a.name));
        a.name = graph_.api()->symbol(sdk::str(own));
        for (int more = 2; taken(a.name); ++more)
          a.name = graph_.api()->symbol(sdk::str(own + "." + std::to_string(more)));
      }
      attrs.push_back(std::move(a));
    }
  }
  const NewNode& n = rule_->replace.nodes[0];
  const tn_node_info last = graph_.node(match_->nodes.back());
  std::vector<tn_value> yields(last.outputs, last.outputs + last.output_count);
  const tn_node made = create(tx, n, attrs, inputs, last.output_count, match_->region, anchor_);
  made_.push_back(made);
  if (wants_body(n.op)) origin_body(tx, made, inputs, yields);
  for (size_t k = 0; k < yields.size(); ++k)
    if (yields[k] != TN_NONE) take_over(tx, yields[k], made, graph_.node(made).outputs[k]);
}

std::vector<tn_node> Rewriter::matched_in_order() const {
  std::vector<tn_node> left = match_->nodes, done;
  left.insert(left.end(), match_->inner.begin(), match_->inner.end());
  while (!left.empty()) {
    const size_t before = left.size();
    for (size_t i = 0; i < left.size();) {
      const tn_node_info info = graph_.node(left[i]);
      bool ready = true;
      for (uint32_t k = 0; k < info.input_count; ++k) {
        if (info.inputs[k] == TN_NONE) continue;
        const auto v = graph_.value(info.inputs[k]);
        if (v.kind == TN_VALUE_RESULT && std::find(left.begin(), left.end(), v.producer) != left.end())
          ready = false;
      }
      if (ready) {
        done.push_back(left[i]);
        left.erase(left.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (left.size() == before) sdk::fail("the matched nodes form a cycle");
  }
  return done;
}

namespace {
/// The type of a value with memory of its own.
struct HeldType {
  tn_type type;
  std::vector<tn_dim> dims;
  explicit HeldType(const tn_type& t) : type(t), dims(sdk::dims_of(t).copy()) { type.dims = dims.data(); }
};
}  // namespace

void Rewriter::origin_body(sdk::Transaction& tx, tn_node parent, const std::vector<tn_value>& operands,
                           const std::vector<tn_value>& results) {
  const tn_region body = tx.create_region(parent, "body");
  std::vector<std::pair<tn_value, tn_value>> map;
  const auto find = [&](tn_value v) {
    for (const auto& m : map)
      if (m.first == v) return m.second;
    return TN_NONE;
  };
  uint32_t number = 0;
  for (const tn_value v : operands) {
    if (v == TN_NONE) continue;
    const HeldType t(graph_.value(v).type);
    const tn_value in = tx.region_input(body, "x" + std::to_string(number++), t.type);
    map.emplace_back(v, in);
  }
  for (const tn_node m : matched_in_order()) {
    const tn_node_info info = graph_.node(m);
    std::vector<tn_value> inputs;
    for (uint32_t i = 0; i < info.input_count; ++i) {
      const tn_value v = info.inputs[i];
      tn_value to = v == TN_NONE ? TN_NONE : find(v);
      if (to == TN_NONE && v != TN_NONE) {
        if (graph_.value(v).kind != TN_VALUE_CONSTANT)
          sdk::fail("the body would read '" + graph_.value_name(v) +
                    "', which is no operand of the fused node");
        to = v;
      }
      inputs.push_back(to);
    }
    std::vector<tn_value> old(info.outputs, info.outputs + info.output_count);
    const tn_node clone = tx.clone(m, body, TN_NONE, inputs);
    const tn_node_info ci = graph_.node(clone);
    for (size_t k = 0; k < old.size() && k < ci.output_count; ++k)
      if (old[k] != TN_NONE) map.insert(map.begin(), {old[k], ci.outputs[k]});
  }
  std::vector<tn_value> yields;
  for (const tn_value v : results) yields.push_back(v == TN_NONE ? TN_NONE : find(v));
  yields.erase(std::remove(yields.begin(), yields.end(), TN_NONE), yields.end());
  tx.region_outputs(body, yields);
}

void Rewriter::explicit_body(sdk::Transaction& tx, tn_node parent) {
  const Replacement& r = rule_->replace;
  const NewNode& fused = r.nodes[0];
  const tn_region body = tx.create_region(parent, "body");
  struct Bound {
    NameRef name;
    tn_value outer, inner;
  };
  std::vector<Bound> bound;
  for (const auto& o : fused.in) {
    NameRef name = o.choices[0];
    for (const tn_value outer : operands(tx, o)) {
      if (outer == TN_NONE) continue;
      const HeldType t(graph_.value(outer).type);
      const tn_value inner = tx.region_input(body, "x" + std::to_string(bound.size()), t.type);
      for (const auto& c : o.choices)
        if (!o.list && c.kind == NameRef::Value && match_->value(c.index) == outer) name = c;
      bound.push_back({name, outer, inner});
    }
  }
  std::vector<tn_value> made(r.made.size(), TN_NONE);
  const auto read = [&](const NewOperand& o) -> tn_value {
    for (const auto& c : o.choices) {
      if (c.kind == NameRef::Made) {
        if (made[c.index] != TN_NONE) return made[c.index];
        continue;
      }
      for (const auto& b : bound)
        if (b.name.kind == c.kind && b.name.index == c.index) return b.inner;
      if (c.kind != NameRef::Value) continue;
      const tn_value v = match_->value(c.index);
      if (v == TN_NONE) continue;
      for (const auto& b : bound)
        if (b.outer == v) return b.inner;
      if (graph_.value(v).kind == TN_VALUE_CONSTANT) return v;
    }
    return TN_NONE;
  };
  for (size_t i = 0; i < r.body_nodes.size(); ++i) {
    const NewNode& n = r.body_nodes[i];
    std::vector<tn_value> inputs;
    for (const auto& o : n.in) {
      if (!o.list) inputs.push_back(read(o));
      for (const tn_value v : o.list ? match_->list(o.choices[0].index) : std::vector<tn_value>()) {
        tn_value inner = v;  // a constant may be read from outside
        for (const auto& b : bound)
          if (b.outer == v) inner = b.inner;
        inputs.push_back(inner);
      }
    }
    if (n.op_of != none && match_->node(n.op_of) == TN_NONE) {
      if (n.alias_when_absent == none)
        sdk::fail("the body needs node '" + rule_->nodes[n.op_of] + "', which is absent");
      if (!n.out.empty() && n.out[0].made != none) made[n.out[0].made] = inputs.empty() ? TN_NONE : inputs[0];
      continue;
    }
    const tn_node c =
        create(tx, n, body_attrs_[i], inputs, static_cast<uint32_t>(n.out.size()), body, TN_NONE);
    for (size_t k = 0; k < n.out.size(); ++k)
      if (n.out[k].made != none) made[n.out[k].made] = graph_.node(c).outputs[k];
  }
  std::vector<tn_value> yields;
  for (const auto& o : fused.out) {
    if (o.value == none) continue;
    for (size_t m = 0; m < r.made.size(); ++m)
      if (r.made[m] == rule_->values[o.value] && made[m] != TN_NONE) yields.push_back(made[m]);
  }
  tx.region_outputs(body, yields);
}

/// Erases from the output up; nodes whose results are still read stay (escape "keep").
void Rewriter::erase_matched(sdk::Transaction& tx) {
  auto order = matched_in_order();
  for (size_t i = order.size(); i-- > 0;) {
    const tn_node_info info = graph_.node(order[i]);
    bool read = false;
    for (uint32_t k = 0; k < info.output_count; ++k)
      if (info.outputs[k] != TN_NONE && !graph_.users(info.outputs[k]).empty()) read = true;
    if (!read) tx.erase(order[i]);
  }
}

}  // namespace tenon::rules
