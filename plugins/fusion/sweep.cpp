#include "sweep.hpp"

#include <algorithm>

namespace tenon::fusion {

using namespace sdk;

Context::Context(Pass& p)
    : pass(p),
      graph(p.graph()),
      symbols(p.service<tn_symbols_api>(TN_SYMBOLS_ID)),
      ops(graph),
      exact(p.precision() == "strict") {}

std::optional<int64_t> Context::number(tn_dim d) const {
  int64_t n = d;
  if (d < 0 && !symbols->as_number(graph.raw(), d, &n)) return std::nullopt;
  return n;
}

bool Context::same_dims(const tn_type& x, const tn_type& y) const {
  if (x.rank < 0 || x.rank != y.rank) return false;
  for (int32_t i = 0; i < x.rank; ++i)
    if (!same_dim(x.dims[i], y.dims[i])) return false;
  return true;
}

bool Context::same_type(tn_value a, tn_value b) const {
  const tn_type x = type(a), y = type(b);
  return x.kind == TN_KIND_TENSOR && y.kind == x.kind && x.dtype == y.dtype && x.dtype != TN_DTYPE_NONE &&
         x.encoding == y.encoding && same_dims(x, y);
}

std::optional<Dims> Context::integers(tn_value v) const {
  bool known = false;
  const auto elements = graph.known_elements(v, &known);
  if (!known) return std::nullopt;
  Dims r;
  for (tn_dim d : elements) {
    const auto n = number(d);
    if (!n) return std::nullopt;
    r.push_back(*n);
  }
  return r;
}

std::optional<Dims> Context::axes(const Node& n, uint32_t operand, int64_t rank) const {
  std::optional<Dims> r;
  if (n.input(operand) != TN_NONE)
    r = integers(n.input(operand));
  else if (n.attrs().has("axes"))
    r = n.attrs().get_ints("axes").copy();
  if (!r || rank < 0) return std::nullopt;
  for (int64_t& a : *r) {
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) return std::nullopt;
  }
  return r;
}

std::optional<Node> Context::producer(tn_value v) const {
  const tn_node p = graph.producer(v);
  if (p == TN_NONE) return std::nullopt;
  Node n = graph.node(p);
  if (n.output(0) != v) return std::nullopt;
  return n;
}

std::optional<Node> Context::producer(tn_value v, tn_sym op) const {
  auto n = producer(v);
  if (n && n->op() != op) return std::nullopt;
  return n;
}

bool Context::replace(const Node& n, std::string_view op, std::vector<tn_value> inputs,
                      std::vector<AttrValue> attrs, std::vector<tn_node> with) {
  Transaction edit = pass.edit(step);
  if (!edit.active()) return false;
  with.push_back(n.id());
  const Node made = edit.create(
      {op, std::move(inputs), 1, std::move(attrs), n.region(), n.id(), n.name(), std::move(with)});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  return commit(edit, n.id());
}

bool Context::commit(Transaction& edit, tn_node root) {
  if (edit.commit()) {
    pass.explain(TN_REASON_APPLIED, step, root);
    ++applied;
    return true;
  }
  pass.explain(TN_REASON_ROLLBACK, step, root, edit.said());
  return false;
}

std::vector<tn_attr> attrs_of(const Node& n) {
  std::vector<tn_attr> r;
  const char* p = reinterpret_cast<const char*>(n.raw().attrs);
  for (uint32_t i = 0; i < n.raw().attr_count; ++i, p += n.raw().attr_stride)
    r.push_back(*reinterpret_cast<const tn_attr*>(p));
  return r;
}

namespace {

struct Sweep {
  Context& c;
  std::unordered_map<tn_sym, std::vector<Simplifier>> table;
  std::vector<tn_node> work;  // a stack: what is to be looked at next is on top
  // Rewrites that undid one another would go round for ever: a node's budget ends that, whatever the tables
  // say.
  std::unordered_map<tn_node, uint32_t> visits;
  static constexpr uint32_t max_visits = 32;

  /// Looks at one node; false when the limit of applied rewrites was reached.
  bool visit(tn_node id) {
    Node node = c.graph.node(id);
    if (!node.alive()) return true;
    const auto entry = table.find(node.op());
    if (entry == table.end() || node.outputs().empty() || node.output(0) == TN_NONE) return true;
    for (Simplifier simplify : entry->second) {
      bool done = false;
      const uint32_t bound = c.graph.node_bound();
      const tn_value same = simplify(c, node, &done);
      if (!done && same != TN_NONE) {
        Transaction edit = c.pass.edit(c.step);
        if (!edit.active()) return false;
        edit.replace_uses(node.output(0), same);
        edit.erase(id);
        done = c.commit(edit, id);
      }
      node = c.graph.node(id);
      if (!done) continue;
      if (node.alive() && ++visits[id] < max_visits) work.push_back(id);
      for (uint32_t made = c.graph.node_bound(); made-- > bound;)
        if (c.graph.node(made).alive() && ++visits[made] < max_visits) work.push_back(made);
      return true;
    }
    return true;
  }
};

}  // namespace

void sweep(Pass& pass, const char* who, std::vector<Table> tables) {
  Context c(pass);
  Sweep s{c, {}, {}, {}};
  for (const Table& entries : tables)
    for (const auto& e : entries) s.table[c.graph.symbol(e.op)].push_back(e.simplify);
  std::vector<tn_region> regions{c.graph.main()};
  for (size_t r = 0; r < regions.size(); ++r) {
    if (regions[r] != c.graph.main() && !c.graph.node(c.graph.region(regions[r]).parent).alive()) continue;
    s.work = node_list(c.graph, regions[r]);
    std::reverse(s.work.begin(), s.work.end());
    while (!s.work.empty()) {
      const tn_node id = s.work.back();
      s.work.pop_back();
      if (pass.cancelled()) return;
      if (!s.visit(id)) return;
      const Node node = c.graph.node(id);
      if (node.alive())
        for (tn_region inner : node.regions())
          if (regions.empty() || regions.back() != inner) regions.push_back(inner);
    }
  }
  if (c.applied) pass.count(who, c.applied, c.applied);
}

void run_canonicalize(Pass& pass) {
  sweep(pass, "canonicalize",
        {no_op_simplifiers(), reshape_simplifiers(), transpose_simplifiers(), cast_simplifiers(),
         slice_simplifiers(), pad_simplifiers(), broadcast_simplifiers(), logic_simplifiers(),
         gather_simplifiers()});
}

void run_algebra(Pass& pass) {
  sweep(pass, "algebra",
        {arithmetic_simplifiers(), clamp_simplifiers(), constant_chain_simplifiers(), reduction_simplifiers(),
         einsum_simplifiers(), pool_simplifiers(), product_simplifiers()});
}

}  // namespace tenon::fusion
