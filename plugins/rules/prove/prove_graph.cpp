#include "prove/prove_graph.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules {

uint64_t Random::next() {  // splitmix64
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::draw(const std::string& d) {
  const auto open = d.find('(');
  std::vector<double> args;
  for (const char* p = d.c_str() + (open == std::string::npos ? d.size() : open + 1); *p;) {
    char* end = nullptr;
    args.push_back(std::strtod(p, &end));
    if (end == p) {
      args.pop_back();
      break;
    }
    p = *end ? end + 1 : end;
  }
  const std::string name = d.substr(0, open);
  if (name == "choice" && !args.empty()) return args[next() % args.size()];
  const double a = !args.empty() ? args[0] : 0, b = args.size() > 1 ? args[1] : 1;
  if (name == "uniform") return a + (b - a) * uniform();
  const double u = 1 - uniform(), v = uniform();  // Box-Muller
  return a + b * std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

CaseGraph::~CaseGraph() {
  if (graph_) services_.eval->delete_graph(services_.host, graph_);
}

const Json* CaseGraph::find(const std::string& key) const {
  if (setup_.overlay)
    if (const Json* j = setup_.overlay->find(key)) return j;
  return setup_.base ? setup_.base->find(key) : nullptr;
}

bool CaseGraph::listed(const char* key, const std::string& name) const {
  const Json* j = find(key);
  if (!j) return false;
  for (const auto& i : j->items)
    if (i.text == name) return true;
  return false;
}

bool CaseGraph::constant(uint32_t value) const {
  if (listed("non_const", rule_->values[value])) return false;
  if (const Json* j = find(rule_->values[value]); j && elements_of(*j)) return true;
  for (const auto& w : setup_.variant->pattern->values)
    if (w.value == value && w.constant) return true;
  for (const auto& n : setup_.variant->nodes)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.in[i] == value && n.what->in[i].constant) return true;
  return false;
}

/// {"int64": [0, 2]} or {"int64": 1}: the elements themselves; NULL when the case says something else.
const Json* CaseGraph::elements_of(const Json& j, tn_dtype* dtype) {
  if (j.keys.size() != 1 || (!j.items[0].is_array() && !j.items[0].is_number())) return nullptr;
  for (const tn_dtype d : {TN_INT64, TN_INT32, TN_BOOL, TN_FLOAT32})
    if (j.keys[0] == sdk::dtype_name(d)) {
      if (dtype) *dtype = d;
      return &j.items[0];
    }
  return nullptr;
}

/// Numbers for the symbols of wished shapes, from the shapes that the case gives.
void CaseGraph::learn_symbols() {
  symbols_.assign(rule_->symbols.size(), -1);
  for (const auto& w : setup_.variant->pattern->values) {
    if (!w.shape || w.value == none) continue;
    const Json* j = find(rule_->values[w.value]);
    if (!j || !j->is_array()) continue;
    const auto& wish = *w.shape;
    size_t rest = wish.size();
    for (size_t i = 0; i < wish.size(); ++i)
      if (wish[i].kind == DimWish::Rest) rest = i;
    for (size_t i = 0; i < wish.size(); ++i) {
      if (wish[i].kind != DimWish::Symbol) continue;
      const size_t at = i < rest ? i : j->items.size() - (wish.size() - i);
      if (at < j->items.size() && symbols_[wish[i].symbol] < 0)
        symbols_[wish[i].symbol] = j->items[at].integer;
    }
  }
}

std::string CaseGraph::wish_shape(uint32_t value, std::vector<int64_t>* dims) const {
  for (const auto& w : setup_.variant->pattern->values) {
    if (w.value != value || !w.shape) continue;
    dims->clear();
    for (const auto& d : *w.shape) {
      const int64_t n = d.kind == DimWish::Number   ? d.number
                        : d.kind == DimWish::Symbol ? symbols_[d.symbol]
                                                    : -1;
      if (n < 0) return "the case gives no shape for '" + rule_->values[value] + "'";
      dims->push_back(n);
    }
    return {};
  }
  return "the case gives no shape for '" + rule_->values[value] + "'";
}

std::string CaseGraph::shape_of(uint32_t value, std::vector<int64_t>* dims) {
  dims->clear();
  const Json* j = find(rule_->values[value]);
  if (!j) return wish_shape(value, dims);
  if (j->is_number()) return {};
  if (const Json* listed = elements_of(*j)) {
    if (listed->is_array()) dims->push_back(static_cast<int64_t>(listed->items.size()));
    return {};
  }
  if (!j->is_array()) return "'" + rule_->values[value] + "' must be a shape or a number";
  for (const auto& d : j->items) {
    if (d.kind != Json::Int || d.integer < 0 || d.integer > (1 << 16))
      return "a dimension of '" + rule_->values[value] + "' is no small number";
    dims->push_back(d.integer);
  }
  return {};
}

sdk::OwnedTensor CaseGraph::contents(uint32_t value, const std::vector<int64_t>& dims, Random& random) const {
  const std::string& name = rule_->values[value];
  std::string distribution = "normal(0,1)";
  for (const auto& d : rule_->verify.inputs)
    if (d.first == "*") distribution = d.second;
  for (const auto& d : rule_->verify.inputs)
    if (d.first == name) distribution = d.second;
  gx::Tensor t;
  t.dims = dims;
  t.dtype = setup_.dtype;
  const Json* j = find(name);
  if (const Json* listed = j ? elements_of(*j, &t.dtype) : nullptr) {
    if (listed->is_number()) t.data->push_back(listed->number);
    for (const auto& i : listed->items) t.data->push_back(i.number);
    return gx::store(t);
  }
  const int64_t n = sdk::element_count(dims);
  const bool plain = !j && scalar_constant(value);
  for (int64_t i = 0; i < n; ++i)
    t.data->push_back(j && j->is_number() ? j->number
                      : plain             ? (name.compare(0, 3, "eps") == 0 ? 1e-5 : 0.5)
                                          : random.draw(distribution));
  return gx::store(t);
}

/// {"const": true, "as": ...}: one number, unless the case says otherwise.
bool CaseGraph::scalar_constant(uint32_t value) const {
  for (const auto& n : setup_.variant->nodes)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.in[i] == value && n.what->in[i].constant && !n.what->in[i].optional) return true;
  return false;
}

/// The operand through which this operator takes its axes: integers that the case names as "axes".
bool CaseGraph::axes_slot(const VariantNode& n, size_t slot) const {
  const uint32_t value = n.in[slot];
  if (value < rule_->values.size() && find(rule_->values[value])) return false;  // the case says it itself
  const tn_op_def* def = ops_.find(n.what->ops[0]);
  return def && slot < def->input_count && sdk::view(def->inputs[slot].name) == "axes";
}

/// Numbers stand for elements of the case's type, but for operands that are integers whatever that is.
tn_value CaseGraph::literal(sdk::Transaction& tx, size_t n, size_t at) {
  const Slot& slot = setup_.variant->nodes[n].what->in[at];
  const VariantNode& vn = setup_.variant->nodes[n];
  const Json* other = vn.node == none ? nullptr : find(rule_->nodes[vn.node] + ".const");
  gx::Tensor t;
  t.dtype = setup_.dtype;
  *t.data = slot.literal;
  if (other && other->is_number()) t.data->assign(1, other->number);
  const tn_op_def* def = ops_.find(vn.what->ops[0]);
  if (def && at < def->input_count) {
    const auto type = sdk::view(def->inputs[at].type);
    bool integer = type == "int64";
    for (uint32_t k = 0; k < def->type_var_count; ++k) {
      const tn_type_var& var = def->type_vars[k];
      const tn_dtype *first = var.dtypes, *last = first + var.dtype_count;
      if (sdk::view(var.name) == type && first)
        integer = std::find(first, last, setup_.dtype) == last && std::find(first, last, TN_INT64) != last;
    }
    if (integer) t.dtype = TN_INT64;
  }
  if (t.data->size() != 1) t.dims = {t.count()};
  return tx.constant(gx::store(t));
}

bool CaseGraph::shape_from_partner(uint32_t value, tn_value partner, std::vector<int64_t>* dims) {
  if (scalar_constant(value)) {
    dims->clear();
    return true;
  }
  if (partner == TN_NONE || partner == unbound) return false;
  const GraphAccess access(services_.graph, services_.symbols, graph_);
  const tn_type t = access.value(partner).type;
  if (t.kind != TN_KIND_TENSOR || t.rank < 1) return false;
  const auto all = sdk::dims_of(t).copy();
  for (const auto& w :
       setup_.variant->pattern->values) {  // the symbol of a vector is the partner's last dimension
    if (w.value != value || !w.shape || w.shape->size() != 1 || (*w.shape)[0].kind != DimWish::Symbol)
      continue;
    symbols_[(*w.shape)[0].symbol] = all.back();
    *dims = {all.back()};
    return true;
  }
  *dims = all;
  if (const Json* axes = find("axes");
      axes && constant(value)) {  // scale and bias cover the axes that are reduced
    dims->clear();
    for (const auto& a : axes->items) {
      const int64_t i = a.integer < 0 ? a.integer + t.rank : a.integer;
      if (i >= 0 && i < t.rank) dims->push_back(all[static_cast<size_t>(i)]);
    }
  }
  return true;
}

std::string CaseGraph::outer(sdk::Transaction& tx, uint32_t value, tn_value partner, Random& random,
                             tn_value* out) {
  std::vector<int64_t> dims;
  if (auto why = shape_of(value, &dims); !why.empty() && !shape_from_partner(value, partner, &dims))
    return why;
  auto t = contents(value, dims, random);
  if (constant(value)) {
    *out = tx.constant(std::move(t), rule_->values[value]);
  } else {
    *out = tx.region_input(0, rule_->values[value], sdk::tensor_type(t.dtype(), dims));
    inputs_.push_back(std::move(t));
  }
  return {};
}

std::string CaseGraph::make_node(size_t n, Random& random) {
  // A transaction a node, so that types of what was made before are known.
  sdk::Transaction tx(services_.graph, services_.edit, graph_, "rules test");
  if (!tx.active()) return "the host's limit of edits is reached";
  const Variant& v = *setup_.variant;
  const VariantNode& vn = v.nodes[n];
  const tn_sym op = vn.what->ops[std::min(setup_.op_choice[n], vn.what->ops.size() - 1)];
  const tn_op_def* def = ops_.find(op);
  sdk::NodeSpec spec;
  spec.op = ops_.text(op);
  std::vector<tn_value> in;
  for (size_t i = 0; i < vn.in.size(); ++i) {
    const Slot& slot = vn.what->in[i];
    const uint32_t value = vn.in[i];
    const std::string name = value == none || value >= rule_->values.size() ? "" : rule_->values[value];
    if (slot.kind == Slot::Any) return "a pattern with '_' operands cannot be built";
    if (!slot.literal.empty()) {
      in.push_back(literal(tx, n, i));
      if (value != none) values_[value] = in.back();
      continue;
    }
    if (slot.optional && (listed("absent", name) || (values_[value] == unbound && v.producer[value] == none &&
                                                     axes_slot(vn, i) && !find("axes")))) {
      in.push_back(TN_NONE);
      continue;
    }
    if (axes_slot(vn, i) && values_[value] == unbound) {
      std::vector<int64_t> axes;
      if (const Json* j = find("axes"))
        for (const auto& a : j->items) axes.push_back(a.integer);
      values_[value] = tx.vector(axes, name);
    }
    tn_value use = values_[value];
    tn_value partner = TN_NONE;
    for (size_t k = 0; k < vn.in.size(); ++k) {  // the nearest operand before it, else one behind it
      const uint32_t other = vn.in[k];
      if (other != none && other != value && values_[other] != unbound && (k < i || partner == TN_NONE))
        partner = values_[other];
    }
    if (use == unbound) {
      if (auto why = outer(tx, value, partner, random, &use); !why.empty()) return why;
      values_[value] = use;
    }
    if (listed("split", name) &&
        std::find(split_done_.begin(), split_done_.end(), value) == split_done_.end()) {
      split_done_.push_back(value);  // the first reader gets a tensor of its own
      if (auto why = outer(tx, value, partner, random, &use); !why.empty()) return why;
    }
    in.push_back(use);
  }
  if (vn.from->assoc && in.size() > 2) {  // any tree will do; this one leans left
    tn_value left = in[0];
    for (size_t i = 1; i + 1 < in.size(); ++i) {
      sdk::NodeSpec inner;
      inner.op = spec.op;
      inner.inputs = {left, in[i]};
      left = tx.create(inner).output(0);
    }
    in = {left, in.back()};
  }
  const bool commutes = vn.from->commute ? *vn.from->commute : def && (def->flags & TN_OP_COMMUTATIVE);
  if (setup_.swap_commutative && commutes && in.size() >= 2) std::swap(in[0], in[1]);
  while (!in.empty() && in.back() == TN_NONE) in.pop_back();
  spec.inputs = std::move(in);
  spec.output_count = 1;  // further results that a pattern names with '_' are not wanted
  for (size_t k = 1; k < vn.out.size(); ++k)
    if (vn.out[k] != none) spec.output_count = static_cast<uint32_t>(k + 1);
  std::vector<OwnedAttribute> attrs;
  const auto set = [&](const std::string& name, const Json* j, const std::vector<Scalar>* s) {
    OwnedAttribute a;
    a.name = ops_.symbol(name);
    for (uint32_t k = 0; def && k < def->attr_count; ++k)
      if (sdk::view(def->attrs[k].name) == name) a.kind = def->attrs[k].kind;
    if (s) {
      a.i = static_cast<int64_t>(s->front().number);
      a.f = s->front().number;
      a.s = s->front().text;
      for (const auto& i : *s) {  // of a list attribute: the list is meant whole
        a.ints.push_back(static_cast<int64_t>(i.number));
        a.floats.push_back(i.number);
      }
    } else if (j->is_array()) {
      for (const auto& i : j->items) {
        a.ints.push_back(i.integer);
        a.floats.push_back(i.number);
      }
    } else {
      a.i = j->kind == Json::Bool ? j->boolean : j->integer;
      a.f = j->number;
      a.s = j->text;
    }
    attrs.push_back(std::move(a));
  };
  if (vn.node != none) {
    const std::string prefix = rule_->nodes[vn.node] + ".";
    for (const Json* j : {setup_.overlay, setup_.base})
      for (size_t k = 0; j && k < j->keys.size(); ++k) {
        if (j->keys[k].compare(0, prefix.size(), prefix) != 0) continue;
        const std::string name = j->keys[k].substr(prefix.size());
        const bool there = std::any_of(attrs.begin(), attrs.end(),
                                       [&](const OwnedAttribute& a) { return a.name == ops_.symbol(name); });
        if (name != "const" && !there) set(name, &j->items[k], nullptr);
      }
  }
  for (const auto& w : vn.what->attrs)  // what the pattern asks for, when the default is something else
    if (!w.wish.one_of.empty() &&
        std::none_of(attrs.begin(), attrs.end(), [&](const OwnedAttribute& a) { return a.name == w.symbol; }))
      set(w.name, nullptr, &w.wish.one_of);
  // A Transpose whose permutation the case leaves open swaps the last two axes, which is what patterns mean
  // by one.
  if (spec.op == "Transpose" && attrs.empty() && !spec.inputs.empty()) {
    const GraphAccess access(services_.graph, services_.symbols, graph_);
    const int32_t rank = access.value(spec.inputs[0]).type.rank;
    OwnedAttribute perm;
    perm.name = ops_.symbol("perm");
    perm.kind = TN_ATTR_INTS;
    for (int32_t i = 0; i < rank; ++i) perm.ints.push_back(i);
    if (rank >= 2) {
      std::swap(perm.ints[perm.ints.size() - 1], perm.ints[perm.ints.size() - 2]);
      attrs.push_back(std::move(perm));
    }
  }
  for (auto& a : attrs) spec.raw_attrs.push_back(a.view());
  const auto made = tx.create(spec);
  for (size_t k = 0; k < vn.out.size() && k < spec.output_count; ++k)
    if (vn.out[k] != none) values_[vn.out[k]] = made.output(static_cast<uint32_t>(k));
  if (!tx.commit()) return "the pattern's graph is not valid: " + tx.said();
  return {};
}

std::string CaseGraph::build(const CaseSetup& setup, Random& random) {
  setup_ = setup;
  rule_ = setup.variant->rule;
  const Variant& v = *setup.variant;
  graph_ = services_.eval->new_graph(services_.host);
  if (!graph_) return "the host gave no graph";
  values_.assign(v.producer.size(), unbound);
  learn_symbols();
  std::vector<bool> done(v.nodes.size());
  for (size_t left = v.nodes.size(); left > 0;) {
    const size_t before = left;
    for (size_t n = 0; n < v.nodes.size(); ++n) {
      if (done[n]) continue;
      bool ready = true;
      for (const uint32_t value : v.nodes[n].in)
        if (value != none && v.producer[value] != none && values_[value] == unbound) ready = false;
      if (!ready) continue;
      if (auto why = make_node(n, random); !why.empty()) return why;
      done[n] = true;
      --left;
    }
    if (left == before) return "the pattern's nodes form a cycle";
  }
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

}  // namespace tenon::rules
