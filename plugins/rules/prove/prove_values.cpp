// Values from outside the pattern: their shapes, types and contents, as the case says or as they are chosen.
#include <algorithm>
#include <cmath>

#include "prove/prove_graph.hpp"

namespace tenon::rules {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t free_extent = 5;  // of a dimension that nothing ties to another

/// What tensors that stand beside one of shape `p` usually look like, the most usual first.
std::vector<Dims> beside(const Dims& p) {
  std::vector<Dims> r{p};
  if (p.empty()) return r;
  const int64_t last = p.back();
  const auto with = [&](size_t at, int64_t extent) {
    Dims d = p;
    d[at] = extent;
    return d;
  };
  r.push_back({last});
  if (p.size() >= 2) {
    r.push_back({p[1]});
    r.push_back({last, free_extent});  // the matrix that a product takes
    Dims batched = p;
    batched[p.size() - 2] = last, batched[p.size() - 1] = free_extent;
    r.push_back(batched);
    batched = p;
    std::swap(batched[p.size() - 1], batched[p.size() - 2]);
    r.push_back(batched);
    r.push_back({free_extent, last});
  }
  if (p.size() >= 3) {
    Dims weights{free_extent - 1, p[1]}, one_group{p[1], 1}, channels{p[1]};
    for (size_t i = 2; i < p.size(); ++i) {
      weights.push_back(3);
      one_group.push_back(3);
      channels.push_back(1);
    }
    r.push_back(weights);
    r.push_back(one_group);
    r.push_back(channels);
    Dims one_by_one = weights;
    std::fill(one_by_one.begin() + 2, one_by_one.end(), 1);
    r.push_back(one_by_one);
    Dims inner(p.begin() + 1, p.end());
    r.push_back(inner);
  }
  r.push_back({});
  r.push_back({1});
  r.push_back(Dims(p.size(), 1));
  for (size_t i = 0; i < p.size(); ++i) r.push_back(with(i, 1));
  r.push_back(with(p.size() - 1, free_extent));
  return r;
}

/// Shapes of a tensor that stands beside nothing yet.
std::vector<Dims> alone() {
  return {{2, 4, 6},    {2, 4, 6, 6},    {4, 6}, {6},    {2, 4, 6, 8},
          {1, 4, 6, 6}, {2, 3, 4, 6, 6}, {3, 4}, {1, 8}, {}};
}

}  // namespace

const Json* CaseGraph::find(const std::string& key) const {
  if (setup_->overlay)
    if (const Json* j = setup_->overlay->find(key)) return j;
  return setup_->base ? setup_->base->find(key) : nullptr;
}

bool CaseGraph::listed(const char* key, const std::string& name) const {
  const Json* j = find(key);
  if (!j) return false;
  for (const auto& i : j->items)
    if (i.text == name) return true;
  return false;
}

const ValueWish* CaseGraph::wish(uint32_t value) const {
  for (const auto& w : setup_->variant->pattern->values)
    if (w.value == value) return &w;
  return nullptr;
}

/// One shape (or contents) for each of a list.
bool CaseGraph::is_each(const Json& j) { return j.is_array() && !j.items.empty() && !j.items[0].is_number(); }

/// What the case says of a value; of a list: of the operand that is being made.
const Json* CaseGraph::given(uint32_t value) const {
  const Json* j = value < rule_->values.size() ? find(rule_->values[value]) : nullptr;
  return j && rule_->is_list(value) && is_each(*j) ? &j->items[std::min(element_, j->items.size() - 1)] : j;
}

bool CaseGraph::constant(uint32_t value) const {
  if (value >= rule_->values.size()) return false;
  if (listed("non_const", rule_->values[value])) return false;
  if (const Json* j = given(value); j && elements_of(*j)) return true;
  if (const ValueWish* w = wish(value); w && w->constant) return true;
  for (const auto& n : setup_->variant->nodes)
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
  for (const auto& w : setup_->variant->pattern->values) {
    if (!w.shape || w.value == none) continue;
    const Json* j = given(w.value);
    if (!j || !j->is_array()) continue;
    const auto& wanted = *w.shape;
    size_t rest = wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].kind == DimWish::Rest) rest = i;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].kind != DimWish::Symbol) continue;
      const size_t at = i < rest ? i : j->items.size() - (wanted.size() - i);
      if (at < j->items.size() && symbols_[wanted[i].symbol] < 0)
        symbols_[wanted[i].symbol] = j->items[at].integer;
    }
  }
}

std::string CaseGraph::wish_shape(uint32_t value, Dims* dims) const {
  const ValueWish* w = value < rule_->values.size() ? wish(value) : nullptr;
  const std::string unknown =
      "the case gives no shape for '" + (value < rule_->values.size() ? rule_->values[value] : "?") + "'";
  if (!w || !w->shape) return unknown;
  dims->clear();
  for (const auto& d : *w->shape) {
    const int64_t n = d.kind == DimWish::Number   ? d.number
                      : d.kind == DimWish::Symbol ? symbols_[d.symbol]
                                                  : -1;
    if (n < 0) return unknown;
    dims->push_back(n);
  }
  return {};
}

std::string CaseGraph::shape_of(uint32_t value, Dims* dims) {
  dims->clear();
  const Json* j = given(value);
  if (!j) return wish_shape(value, dims);
  if (j->is_number()) return {};
  if (const Json* elements = elements_of(*j)) {
    if (elements->is_array()) dims->push_back(static_cast<int64_t>(elements->items.size()));
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

Dims CaseGraph::dims_of(tn_value value) const {
  if (value == TN_NONE || value == unbound) return {};
  const GraphAccess access(services_.graph, services_.symbols, graph_);
  const tn_type t = access.value(value).type;
  if (t.kind != TN_KIND_TENSOR || t.rank < 0) return {};
  Dims d(t.dims, t.dims + t.rank);
  for (auto& x : d) x = std::max<int64_t>(x, 0);
  return d;
}

/// {"const": true, "as": ...}: one number, unless the case says otherwise.
bool CaseGraph::scalar_constant(uint32_t value) const {
  for (const auto& n : setup_->variant->nodes)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.in[i] == value && n.what->in[i].constant && !n.what->in[i].optional) return true;
  return false;
}

bool CaseGraph::usual_shape(uint32_t value, tn_value partner, Dims* dims) {
  if (scalar_constant(value)) {
    dims->clear();
    return true;
  }
  const Dims all = dims_of(partner);
  if (all.empty()) return false;
  const ValueWish* w = wish(value);
  if (w && w->shape && w->shape->size() == 1 && (*w->shape)[0].kind == DimWish::Symbol) {
    symbols_[(*w->shape)[0].symbol] = all.back();  // the symbol of a vector is the partner's last dimension
    *dims = {all.back()};
    return true;
  }
  *dims = all;
  bool given = false;
  const auto& axes_here = axes(partner, &given);
  if (given && constant(value)) {  // scale and bias cover the axes that are reduced
    dims->clear();
    for (const int64_t a : axes_here) {
      const int64_t i = a < 0 ? a + static_cast<int64_t>(all.size()) : a;
      if (i >= 0 && i < static_cast<int64_t>(all.size())) dims->push_back(all[static_cast<size_t>(i)]);
    }
  }
  return true;
}

/// Does the shape meet the wish? Symbols without a number get one.
bool CaseGraph::unify(const ValueWish& w, const Dims& dims) {
  if (!w.rank.empty() && !w.rank.number(static_cast<double>(dims.size()))) return false;
  if (!w.shape) return true;
  const auto& wanted = *w.shape;
  size_t rest = wanted.size();
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].kind == DimWish::Rest) rest = i;
  if (rest < wanted.size() ? dims.size() + 1 < wanted.size() : dims.size() != wanted.size()) return false;
  const auto before = symbols_;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].kind == DimWish::Rest) continue;
    const int64_t d = dims[i < rest ? i : dims.size() - (wanted.size() - i)];
    bool fits = wanted[i].number == d;
    if (wanted[i].kind == DimWish::Symbol) {
      int64_t& symbol = symbols_[wanted[i].symbol];
      fits = symbol < 0 || symbol == d;
      if (symbol < 0) symbol = d;
    }
    if (!fits) {
      symbols_ = before;
      return false;
    }
  }
  return true;
}

bool CaseGraph::chosen_shape(uint32_t value, tn_value partner, Dims* dims) {
  Choices& choices = *setup_->choices;
  if (same_as_ != TN_NONE) {
    *dims = dims_of(same_as_);
    return true;
  }
  if (scalar_constant(value)) {
    dims->clear();
    return true;
  }
  const ValueWish* w = wish(value);
  std::vector<Dims> all;
  if (Dims usual; usual_shape(value, partner, &usual)) all.push_back(std::move(usual));
  const auto more = partner == TN_NONE || partner == unbound ? alone() : beside(dims_of(partner));
  all.insert(all.end(), more.begin(), more.end());
  if (w && w->shape) {  // the wish itself, open extents filled in
    Dims own, leading = dims_of(partner);
    for (size_t i = 0; i < w->shape->size(); ++i) {
      const DimWish& d = (*w->shape)[i];
      if (d.kind == DimWish::Number) own.push_back(d.number);
      if (d.kind == DimWish::Symbol)
        own.push_back(symbols_[d.symbol] >= 0 ? symbols_[d.symbol] : 3 + static_cast<int64_t>(d.symbol));
      if (d.kind == DimWish::Rest) own.insert(own.end(), {3, 3});
    }
    all.push_back(own);
  }
  std::vector<Dims> fitting;
  for (auto& d : all) {
    const auto before = symbols_;
    const bool fits = !w || unify(*w, d);
    symbols_ = before;
    if (fits && std::find(fitting.begin(), fitting.end(), d) == fitting.end())
      fitting.push_back(std::move(d));
  }
  if (fitting.empty()) return false;
  *dims = fitting[choices.pick(fitting.size())];
  if (w) unify(*w, *dims);
  return true;
}

std::string CaseGraph::parameter(const VariantNode& n, size_t slot) const {
  const tn_op_def* def = ops_.find(n.what->ops[0]);
  if (!def || def->input_count == 0) return {};
  return std::string(sdk::view(def->inputs[std::min<size_t>(slot, def->input_count - 1)].name));
}

/// The wished type, else one that the operator takes there: the case's where it may be.
tn_dtype CaseGraph::type_of(uint32_t value, const VariantNode& node, size_t slot) const {
  if (const ValueWish* w = value < rule_->values.size() ? wish(value) : nullptr;
      w && !w->dtype.one_of.empty()) {
    // Types are tried one by one by whoever sets the case up; here the first stands for all but that.
    for (const auto& one : w->dtype.one_of)
      if (one.text == sdk::dtype_name(setup_->dtype)) return setup_->dtype;
    for (const tn_dtype t : {TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT64, TN_INT64, TN_INT32, TN_BOOL,
                             TN_UINT8, TN_INT8, TN_INT16, TN_UINT16, TN_UINT32, TN_UINT64})
      if (sdk::dtype_name(t) == w->dtype.one_of[0].text) return t;
  }
  const tn_op_def* def = ops_.find(node.what->ops[0]);
  if (!def || def->input_count == 0) return setup_->dtype;
  const std::string_view type = sdk::view(def->inputs[std::min<size_t>(slot, def->input_count - 1)].type);
  for (uint32_t i = 0; i < def->type_var_count; ++i) {
    const tn_type_var& v = def->type_vars[i];
    if (sdk::view(v.name) != type) continue;
    // Operands of one type variable have one type.
    for (size_t k = 0; k < node.in.size() && k < def->input_count; ++k) {
      const uint32_t other = node.in[k];
      if (k == slot || other == none || values_[other] == unbound || values_[other] == TN_NONE ||
          sdk::view(def->inputs[k].type) != type)
        continue;
      const GraphAccess access(services_.graph, services_.symbols, graph_);
      if (const tn_dtype there = access.value(values_[other]).type.dtype; there != TN_DTYPE_NONE)
        return there;
    }
    if (!v.dtypes || v.dtype_count == 0) return setup_->dtype;
    for (uint32_t k = 0; k < v.dtype_count; ++k)
      if (v.dtypes[k] == setup_->dtype) return setup_->dtype;
    for (const tn_dtype usual : {TN_INT64, TN_FLOAT32})
      for (uint32_t k = 0; k < v.dtype_count; ++k)
        if (v.dtypes[k] == usual) return usual;
    return v.dtypes[0];
  }
  for (const tn_dtype t :
       {TN_INT64, TN_BOOL, TN_INT32, TN_FLOAT32, TN_UINT8, TN_INT8, TN_FLOAT16, TN_FLOAT64})
    if (type == sdk::dtype_name(t)) return t;
  return setup_->dtype;
}

/// A constant that the pattern names: small and positive where it is an epsilon, else a number that the
/// guards speak of.
double CaseGraph::number_of(uint32_t value) {
  const std::string& name = rule_->values[value];
  const double usual = name.compare(0, 3, "eps") == 0 ? 1e-5 : 0.5;
  if (!setup_->choices) return usual;
  std::vector<double> numbers{usual, 1e-5, 2.0, 1.0, 0.0, -0.5};
  for (const auto& g : rule_->where)
    for (const auto& e : g.expr.program.nodes)
      if (e.op == gx::Op::Number)
        for (const double x : {e.number, -e.number})
          if (std::find(numbers.begin(), numbers.end(), x) == numbers.end()) numbers.push_back(x);
  return numbers[setup_->choices->pick(numbers.size())];
}

/// Small whole numbers, as an operator wants them: axes, shapes, indices.
sdk::OwnedTensor CaseGraph::integers(const std::string& parameter, tn_value partner, bool is_constant,
                                     Dims dims, tn_dtype dtype) {
  const Dims p = dims_of(partner);
  gx::Tensor t;
  t.dtype = dtype;
  std::vector<Dims> lists;
  if (parameter == "shape") lists = {{0, -1}, {-1}, p, {0, 0, -1}, {1, -1}};
  if (parameter == "axes" || parameter == "axis") lists = {{-1}, {0}, {1}};
  if (parameter == "starts") lists = {{0}, {1}};
  if (parameter == "ends") lists = {{2}, {1}, {INT32_MAX}};
  if (parameter == "split" && !p.empty()) lists = {{p.back() / 2, p.back() - p.back() / 2}, {p[0]}};
  if (parameter == "pads") lists = {Dims(2 * p.size(), 0), Dims(2 * p.size(), 1)};
  if (parameter == "repeats") lists = {Dims(p.size(), 1), Dims(p.size(), 2)};
  if (!lists.empty() && is_constant) {
    const Dims& l = lists[setup_->choices ? setup_->choices->pick(lists.size()) : 0];
    t.dims = {static_cast<int64_t>(l.size())};
    for (const int64_t x : l) t.data->push_back(static_cast<double>(x));
    return gx::store(t);
  }
  t.dims = std::move(dims);
  const int64_t n = sdk::element_count(t.dims);
  for (int64_t i = 0; i < n; ++i) t.data->push_back(static_cast<double>(i % 2));
  return gx::store(t);
}

sdk::OwnedTensor CaseGraph::contents(uint32_t value, tn_dtype dtype, const Dims& dims, Random& random) {
  const std::string name = value < rule_->values.size() ? rule_->values[value] : std::string();
  std::string distribution = "normal(0,1)";
  for (const auto& d : rule_->verify.inputs)
    if (d.first == "*") distribution = d.second;
  for (const auto& d : rule_->verify.inputs)
    if (d.first == name) distribution = d.second;
  const auto& change = setup_->change;
  gx::Tensor t;
  t.dims = dims;
  t.dtype = dtype;
  const int64_t n = sdk::element_count(dims);
  const Json* j = given(value);
  if (const Json* elements = j ? elements_of(*j, &t.dtype) : nullptr) {
    std::vector<double> said;
    if (elements->is_number()) said.push_back(elements->number);
    for (const auto& i : elements->items) said.push_back(i.number);
    // A shape that was changed after the case was read repeats its elements, or cuts them.
    for (size_t i = 0; i < static_cast<size_t>(n) && !said.empty(); ++i)
      t.data->push_back(said[i % said.size()]);
    return gx::store(t);
  }
  const bool plain = !j && !name.empty() && scalar_constant(value);
  const double number = plain ? number_of(value) : j && j->is_number() ? j->number : 0;
  for (int64_t i = 0; i < n; ++i) {
    double x = (j && j->is_number()) || plain ? number : random.draw(distribution);
    if (dtype == TN_BOOL) x = x > 0;
    if (!sdk::is_float(dtype) && dtype != TN_BOOL && !plain && !(j && j->is_number())) x = std::round(x * 5);
    if (change.kind == CaseSetup::Change::Number && change.index == value)
      x = x * change.number != x ? x * change.number : x + change.number;
    t.data->push_back(x);
  }
  return gx::store(t);
}

/// The axes of this graph's reductions; one list, as a pattern means it.
const Dims& CaseGraph::axes(tn_value partner, bool* given) {
  *given = true;
  if (setup_->change.kind == CaseSetup::Change::Axes) {
    axes_ = setup_->change.dims;
    return axes_;
  }
  if (const Json* j = find("axes")) {
    axes_.clear();
    for (const auto& a : j->items) axes_.push_back(a.integer);
    return axes_;
  }
  if (!setup_->choices) {
    *given = false;
    return axes_;
  }
  if (!axes_chosen_) {
    const size_t rank = dims_of(partner).size();
    std::vector<Dims> lists{{-1}};
    if (rank >= 3) lists.push_back({-2, -1});
    if (rank >= 2) lists.push_back({1});
    if (rank >= 4) lists.push_back({2, 3});
    lists.push_back({0});
    axes_ = lists[setup_->choices->pick(lists.size())];
    axes_chosen_ = true;
  }
  return axes_;
}

std::string CaseGraph::outer(sdk::Transaction& tx, uint32_t value, const VariantNode& node, size_t slot,
                             tn_value partner, Random& random, tn_value* out) {
  // What a copy of a repeated node reads is one of a list.
  const auto& lists = setup_->variant->lists;
  for (uint32_t l = 0; l < lists.size() && value != none && value >= rule_->values.size(); ++l)
    if (const auto at = std::find(lists[l].begin(), lists[l].end(), value); at != lists[l].end()) {
      element_ = static_cast<size_t>(at - lists[l].begin());
      value = l;
    }
  Dims dims;
  const bool named = value < rule_->values.size();
  auto& change = setup_->change;
  if (change.kind == CaseSetup::Change::Shape && change.index == value) {
    dims = change.dims;
  } else if (auto why = shape_of(value, &dims); !why.empty()) {
    if (!(setup_->choices ? chosen_shape(value, partner, &dims) : usual_shape(value, partner, &dims)))
      return why;
  }
  const tn_dtype dtype = type_of(value, node, slot);
  const std::string role = parameter(node, slot);
  const bool described = given(value) != nullptr;
  bool is_constant = named && constant(value);
  sdk::OwnedTensor t;
  if (!sdk::is_float(dtype) && dtype != TN_BOOL && setup_->dtype != dtype && !described) {
    // What inference reads must be there to be read.
    is_constant = is_constant || (role != "indices" && role != "index" && role != "condition");
    if (named && listed("non_const", rule_->values[value])) is_constant = false;
    t = integers(role, partner, is_constant, dims, dtype);
  } else {
    t = contents(value, dtype, dims, random);
  }
  if (dtype == TN_BFLOAT16 || (dtype == TN_FLOAT16 && narrowest_ != TN_BFLOAT16)) narrowest_ = dtype;
  if (!t.dims().empty() && named) shapes_.emplace_back(value, t.dims());
  if (is_constant) {
    *out = tx.constant(std::move(t), named ? rule_->values[value] : std::string());
  } else {
    *out = tx.region_input(0, named ? rule_->values[value] : std::string("x"),
                           sdk::tensor_type(t.dtype(), t.dims()));
    inputs_.push_back(std::move(t));
  }
  return {};
}

}  // namespace tenon::rules
