#include "prove/prove_graph.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules {

CaseGraph::~CaseGraph() {
  if (graph_) services_.eval->delete_graph(services_.host, graph_);
}

tn_value CaseGraph::literal(sdk::Transaction& tx, size_t n, const Slot& slot) {
  const VariantNode& vn = setup_->variant->nodes[n];
  const Json* other = vn.node == none ? nullptr : find(rule_->nodes[vn.node] + ".const");
  gx::Tensor t;
  const size_t at = static_cast<size_t>(&slot - vn.what->in.data());
  t.dtype = type_of(none, vn, at);
  *t.data = slot.literal;
  if (other && other->is_number()) t.data->assign(1, other->number);
  // Axes, shapes and the like are lists even when they hold one number.
  const tn_op_def* def = ops_.find(vn.what->ops[0]);
  const bool is_list = def && at < def->input_count && sdk::view(def->inputs[at].type) == "int64";
  if (t.data->size() != 1 || is_list) t.dims = {t.count()};
  return tx.constant(gx::store(t));
}

/// How many operands a list stands for: as many as the case gives shapes, else two, or another number.
size_t CaseGraph::list_length(uint32_t value) {
  const std::string& name = rule_->values[value];
  const auto& change = setup_->change;
  if (change.kind == CaseSetup::Change::Count && change.index == value)
    return static_cast<size_t>(change.number);
  if (listed("absent", name)) return 0;
  if (const Json* j = find(name)) return is_each(*j) ? j->items.size() : 2;
  constexpr size_t lengths[] = {2, 1, 3, 0};
  return setup_->choices ? lengths[setup_->choices->pick(std::size(lengths))] : 2;
}

std::string CaseGraph::operand(sdk::Transaction& tx, size_t n, size_t i, Random& random,
                               std::vector<tn_value>* in) {
  const Variant& v = *setup_->variant;
  const VariantNode& vn = v.nodes[n];
  const Slot& slot = vn.what->in[i];
  const uint32_t value = vn.in[i];
  const std::string name = value == none || value >= rule_->values.size() ? "" : rule_->values[value];
  const tn_op_def* def = ops_.find(vn.what->ops[0]);
  if (!slot.literal.empty()) {
    in->push_back(literal(tx, n, slot));
    if (value != none) values_[value] = in->back();
    return {};
  }
  tn_value partner = TN_NONE;
  for (size_t k = 0; k < vn.in.size(); ++k) {  // the nearest operand before it, else one behind it
    const uint32_t other = vn.in[k];
    if (other != none && other != value && values_[other] != unbound && values_[other] != TN_NONE &&
        (k < i || partner == TN_NONE))
      partner = values_[other];
  }
  if (slot.kind == Slot::Any) {  // anything, so nothing where that may be
    if (def && i >= def->min_inputs) {
      in->push_back(TN_NONE);
      return {};
    }
    in->push_back(TN_NONE);
    return outer(tx, none, vn, i, partner, random, &in->back());
  }
  if (slot.kind == Slot::Rest && vn.rest == i) {  // else one of a repeated node, which takes one a copy
    const size_t count = list_length(value);
    for (size_t k = 0; k < count; ++k) {
      element_ = k;
      in->push_back(TN_NONE);
      if (auto why = outer(tx, value, vn, i, partner, random, &in->back()); !why.empty()) return why;
      if (partner == TN_NONE) partner = in->back();
    }
    element_ = 0;
    return {};
  }
  const bool is_axes = parameter(vn, i) == "axes";
  const auto& change = setup_->change;
  const bool dropped =
      listed("absent", name) || (change.kind == CaseSetup::Change::Absent && change.index == value);
  bool axes_given = false;
  if (is_axes && values_[value] == unbound && v.producer[value] == none && !find(name))
    axes(in->empty() ? TN_NONE : in->front(), &axes_given);
  if (slot.optional &&
      (dropped || (values_[value] == unbound && v.producer[value] == none && is_axes && !axes_given))) {
    in->push_back(TN_NONE);
    return {};
  }
  if (slot.optional && setup_->choices && values_[value] == unbound && v.producer[value] == none &&
      !is_axes && !find(name) && setup_->choices->pick(2) == 1) {
    in->push_back(TN_NONE);
    return {};
  }
  if (axes_given) values_[value] = tx.vector(axes_, name);
  tn_value use = values_[value];
  if (use == unbound) {
    if (auto why = outer(tx, value, vn, i, partner, random, &use); !why.empty()) return why;
    values_[value] = use;
  }
  if (listed("split", name) &&
      std::find(split_done_.begin(), split_done_.end(), value) == split_done_.end()) {
    split_done_.push_back(value);  // the first reader gets a tensor of its own
    if (auto why = outer(tx, value, vn, i, partner, random, &use); !why.empty()) return why;
  }
  in->push_back(use);
  return {};
}

/// Chains name no operands: the first (any, when the operator commutes) is what feeds the item, and the
/// operator's other required ones come from outside.
std::string CaseGraph::further_operands(sdk::Transaction& tx, size_t n, Random& random,
                                        std::vector<tn_value>* in) {
  const VariantNode& vn = setup_->variant->nodes[n];
  const tn_op_def* def = ops_.find(vn.what->ops[0]);
  tn_value feed = vn.chain == none ? TN_NONE : values_[vn.chain];
  if (feed == TN_NONE || feed == unbound) {
    if (auto why = outer(tx, none, vn, 0, TN_NONE, random, &feed); !why.empty()) return why;
    if (vn.chain != none) values_[vn.chain] = feed;
  }
  in->push_back(feed);
  const size_t wanted = def ? def->min_inputs : 1;
  for (size_t i = 1; i < wanted; ++i) {
    tn_value further = TN_NONE;
    same_as_ = i >= 2 ? in->back() : TN_NONE;  // scale and bias, mean and variance: they look alike
    if (auto why = outer(tx, none, vn, i, feed, random, &further); !why.empty()) return why;
    in->push_back(further);
  }
  same_as_ = TN_NONE;
  return {};
}

std::string CaseGraph::operands(sdk::Transaction& tx, size_t n, Random& random, std::vector<tn_value>* in) {
  const VariantNode& vn = setup_->variant->nodes[n];
  if (vn.what->any_operands) return further_operands(tx, n, random, in);
  for (size_t i = 0; i < vn.in.size(); ++i)
    if (auto why = operand(tx, n, i, random, in); !why.empty()) return why;
  return {};
}

bool CaseGraph::commutes(size_t n) const {
  const VariantNode& vn = setup_->variant->nodes[n];
  if (vn.from->commute) return *vn.from->commute;
  const tn_op_def* def = ops_.find(vn.what->ops[std::min(setup_->op_choice[n], vn.what->ops.size() - 1)]);
  return def && (def->flags & TN_OP_COMMUTATIVE);
}

/// Operands in the order that the setup asks for; a tree of more than two becomes nodes of two.
void CaseGraph::reorder(sdk::Transaction& tx, size_t n, std::vector<tn_value>* in) {
  const VariantNode& vn = setup_->variant->nodes[n];
  const Order* order = n < setup_->orders.size() ? &setup_->orders[n] : nullptr;
  // Of a list of operators some may commute and others not.
  if (order && order->places.size() == in->size() && commutes(n)) {
    std::vector<tn_value> moved;
    for (const uint32_t place : order->places) moved.push_back((*in)[place]);
    *in = std::move(moved);
  }
  if (!vn.from->assoc || in->size() <= 2) return;
  const bool right = order && order->leans_right;
  while (in->size() > 2) {
    const size_t at = right ? in->size() - 2 : 0;
    sdk::NodeSpec inner;
    inner.op = ops_.text(vn.what->ops[std::min(setup_->op_choice[n], vn.what->ops.size() - 1)]);
    inner.inputs = {(*in)[at], (*in)[at + 1]};
    (*in)[at] = tx.create(inner).output(0);
    in->erase(in->begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

std::string CaseGraph::attributes(size_t n, const std::vector<tn_value>& in,
                                  std::vector<OwnedAttribute>* out) {
  const VariantNode& vn = setup_->variant->nodes[n];
  const tn_op_def* def = ops_.find(vn.what->ops[std::min(setup_->op_choice[n], vn.what->ops.size() - 1)]);
  const auto kind_of = [&](const std::string& name) {
    for (uint32_t k = 0; def && k < def->attr_count; ++k)
      if (sdk::view(def->attrs[k].name) == name) return def->attrs[k].kind;
    return 0u;
  };
  const auto has = [&](tn_sym name) {
    return std::any_of(out->begin(), out->end(), [&](const OwnedAttribute& a) { return a.name == name; });
  };
  const auto set = [&](const std::string& name, const Json* j, const Scalar* s) {
    OwnedAttribute a;
    a.name = ops_.symbol(name);
    if (const uint32_t kind = kind_of(name))
      a.kind = kind;
    else if (s ? s->is_text : j->is_string())
      a.kind = TN_ATTR_STRING;
    else if (j && j->is_array())
      a.kind = TN_ATTR_INTS;
    else if (s ? s->number != std::floor(s->number) : j->kind == Json::Float)
      a.kind = TN_ATTR_FLOAT;
    if (s) {
      a.i = static_cast<int64_t>(s->number);
      a.f = s->number;
      a.s = s->text;
    } else if (j->is_array()) {
      for (const auto& i : j->items) {
        a.ints.push_back(i.integer);
        a.floats.push_back(i.number);
        a.strings.push_back(i.text);
      }
    } else {
      a.i = j->kind == Json::Bool ? j->boolean : j->integer;
      a.f = j->number;
      a.s = j->text;
    }
    out->push_back(std::move(a));
  };
  const auto& change = setup_->change;
  if (change.kind == CaseSetup::Change::Attribute && change.index == n) {
    OwnedAttribute a;
    tn_attr view = change.attribute->view();
    a.copy(view);
    out->push_back(std::move(a));
  }
  if (vn.node != none) {
    const std::string prefix = rule_->nodes[vn.node] + ".";
    for (const Json* j : {setup_->overlay, setup_->base})
      for (size_t k = 0; j && k < j->keys.size(); ++k) {
        if (j->keys[k].compare(0, prefix.size(), prefix) != 0) continue;
        const std::string name = j->keys[k].substr(prefix.size());
        if (name != "const" && !has(ops_.symbol(name))) set(name, &j->items[k], nullptr);
      }
  }
  std::vector<AttributeWish> wishes = vn.what->attrs;
  for (const auto& w : setup_->variant->pattern->chain_wishes)  // constraints of the articles' form
    if (w.kind == ChainWish::Attribute && kind_of(w.key) != 0) wishes.push_back({w.key, w.symbol, w.wish});
  for (const auto& w : wishes) {  // what the pattern asks for, when the default is something else
    if (has(w.symbol)) continue;
    if (!w.wish.one_of.empty()) {
      const uint32_t kind = kind_of(w.name);
      if (kind == TN_ATTR_INTS || kind == TN_ATTR_FLOATS) {  // a list is meant whole
        OwnedAttribute a;
        a.name = w.symbol;
        a.kind = kind;
        for (const auto& s : w.wish.one_of) {
          a.ints.push_back(static_cast<int64_t>(s.number));
          a.floats.push_back(s.number);
        }
        out->push_back(std::move(a));
      } else {
        set(w.name, nullptr, &w.wish.one_of[0]);
      }
    } else if (w.wish.min || w.wish.max) {
      Scalar s;
      s.number = w.wish.min && w.wish.max ? (*w.wish.min + *w.wish.max) / 2
                 : w.wish.min             ? *w.wish.min
                                          : *w.wish.max;
      if (kind_of(w.name) == TN_ATTR_INT) s.number = w.wish.min ? std::ceil(s.number) : std::floor(s.number);
      set(w.name, nullptr, &s);
    }
  }
  for (uint32_t k = 0; def && k < def->attr_count && setup_->choices; ++k) {
    const tn_attr_def& a = def->attrs[k];
    if (!a.required || has(ops_.symbol(sdk::view(a.name)))) continue;
    OwnedAttribute made;
    made.name = ops_.symbol(sdk::view(a.name));
    made.kind = a.kind;
    const int64_t integers[] = {1, 0, -1, 2, 3, 6, 7, 10, 11};
    const double reals[] = {1, 0.5, 0};
    if (a.kind == TN_ATTR_INT)
      made.i = integers[setup_->choices->pick(std::size(integers))];
    else if (a.kind == TN_ATTR_FLOAT)
      made.f = reals[setup_->choices->pick(std::size(reals))];
    else if (a.kind == TN_ATTR_INTS)
      made.ints.assign(1 + setup_->choices->pick(4), integers[setup_->choices->pick(3)]);
    else
      return std::string("attribute '") + sdk::text(a.name) + "' of " + std::string(sdk::view(def->name)) +
             " cannot be made up: name it in a verify case";
    out->push_back(std::move(made));
  }
  // A Transpose whose permutation the case leaves open swaps the last two axes, which is what patterns mean
  // by one.
  const tn_sym perm_name = ops_.symbol("perm");
  if (kind_of("perm") == TN_ATTR_INTS && !has(perm_name) && !in.empty()) {
    const size_t rank = dims_of(in[0]).size();
    OwnedAttribute perm;
    perm.name = perm_name;
    perm.kind = TN_ATTR_INTS;
    for (size_t i = 0; i < rank; ++i) perm.ints.push_back(static_cast<int64_t>(i));
    const size_t way = setup_->choices && rank >= 3 ? setup_->choices->pick(rank >= 4 ? 4 : 3) : 0;
    if (rank >= 2 && way == 0) std::swap(perm.ints[rank - 1], perm.ints[rank - 2]);
    if (way == 1) std::swap(perm.ints[rank - 2], perm.ints[rank - 3]);
    if (way == 2) std::reverse(perm.ints.begin(), perm.ints.end());
    if (way == 3) perm.ints = {0, 2, 3, 1};
    if (rank >= 2) out->push_back(std::move(perm));
  }
  return {};
}

std::string CaseGraph::make_node(size_t n, Random& random) {
  // A transaction a node, so that types of what was made before are known.
  sdk::Transaction tx(services_.graph, services_.edit, graph_, "rules test");
  if (!tx.active()) return "the host's limit of edits is reached";
  const Variant& v = *setup_->variant;
  const VariantNode& vn = v.nodes[n];
  sdk::NodeSpec spec;
  spec.op = ops_.text(vn.what->ops[std::min(setup_->op_choice[n], vn.what->ops.size() - 1)]);
  std::vector<tn_value> in;
  if (auto why = operands(tx, n, random, &in); !why.empty()) return why;
  reorder(tx, n, &in);
  while (!in.empty() && in.back() == TN_NONE) in.pop_back();
  std::vector<OwnedAttribute> attrs;
  if (auto why = attributes(n, in, &attrs); !why.empty()) return why;
  spec.inputs = std::move(in);
  spec.output_count = 1;  // further results that a pattern names with '_' are not wanted
  for (size_t k = 1; k < vn.out.size(); ++k)
    if (vn.out[k] != none) spec.output_count = static_cast<uint32_t>(k + 1);
  for (auto& a : attrs) spec.raw_attrs.push_back(a.view());
  const auto made = tx.create(spec);
  for (size_t k = 0; k < vn.out.size() && k < spec.output_count; ++k)
    if (vn.out[k] != none) values_[vn.out[k]] = made.output(static_cast<uint32_t>(k));
  if (!tx.commit()) return "the pattern's graph is not valid: " + tx.said();
  return {};
}

std::string CaseGraph::make_outputs() {
  const Variant& v = *setup_->variant;
  sdk::Transaction tx(services_.graph, services_.edit, graph_, "rules test");
  if (!tx.active()) return "the host's limit of edits is reached";
  std::vector<tn_value> outputs;
  for (const uint32_t o : v.outputs) outputs.push_back(values_[o]);
  const auto resolve = [&](const std::string& name) {
    Match names;  // only to follow aliases
    names.variant = &v;
    names.values = values_;
    for (uint32_t i = 0; i < rule_->values.size(); ++i)
      if (rule_->values[i] == name) return names.value(i);
    return tn_value{TN_NONE};
  };
  // What others may read too is read here, so that the rewrite has to yield it.
  for (const auto& w : v.pattern->values)
    if (w.escape != Escape::Forbid && w.value < v.producer.size() && v.producer[w.value] != none &&
        values_[w.value] != unbound && setup_->choices && setup_->choices->pick(2) == 1)
      outputs.push_back(values_[w.value]);
  for (const char* key : {"graph_output", "extra_user"})
    if (const Json* j = find(key))
      for (const auto& i : j->items) {
        tn_value value = resolve(i.text);
        if (value == TN_NONE) return "no value '" + i.text + "' in this variant";
        if (std::string(key) == "extra_user") {
          sdk::NodeSpec spec;
          spec.op = "Neg";
          spec.inputs = {value};
          value = tx.create(spec).output(0);
        }
        outputs.push_back(value);
      }
  tx.region_outputs(0, outputs);
  if (!tx.commit()) return "the pattern's graph is not valid: " + tx.said();
  return {};
}

std::string CaseGraph::build(CaseSetup& setup, Random& random) {
  setup_ = &setup;
  rule_ = setup.variant->rule;
  const Variant& v = *setup.variant;
  graph_ = services_.eval->new_graph(services_.host);
  if (!graph_) return "the host gave no graph";
  values_.assign(v.producer.size(), unbound);
  same_as_ = TN_NONE;
  learn_symbols();
  if (setup.choices && !setup.base)
    for (size_t n = 0; n < v.nodes.size(); ++n)
      if (v.nodes[n].what->ops.size() > 1)
        setup.op_choice[n] = setup.choices->pick(v.nodes[n].what->ops.size());
  try {
    std::vector<bool> done(v.nodes.size());
    for (size_t left = v.nodes.size(); left > 0;) {
      const size_t before = left;
      for (size_t n = 0; n < v.nodes.size(); ++n) {
        if (done[n]) continue;
        bool ready = true;
        std::vector<uint32_t> reads = v.nodes[n].in;
        reads.push_back(v.nodes[n].chain);
        for (const uint32_t value : reads)
          if (value != none && v.producer[value] != none && values_[value] == unbound) ready = false;
        if (!ready) continue;
        if (auto why = make_node(n, random); !why.empty()) return why;
        done[n] = true;
        --left;
      }
      if (left == before) return "the pattern's nodes form a cycle";
    }
    return make_outputs();
  } catch (const sdk::Failure& e) {
    return std::string("the pattern's graph cannot be built: ") + e.what();
  }
}

}  // namespace tenon::rules
