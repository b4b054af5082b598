// The driver: one sweep in topological order. A node is looked at after everything it reads was simplified,
// so chains collapse in the one sweep. An inlined branch's nodes are looked at in place.
#include "canonicalize.hpp"

#include <algorithm>
#include <unordered_map>

namespace tenon::fusion {

using namespace sdk;

bool Context::same_type(tn_value a, tn_value b) const {
  const tn_type x = type(a), y = type(b);
  if (x.kind != TN_KIND_TENSOR || y.kind != x.kind || x.dtype != y.dtype || x.dtype == TN_DTYPE_NONE ||
      x.rank < 0 || x.rank != y.rank || x.encoding != y.encoding)
    return false;
  for (int32_t i = 0; i < x.rank; ++i)
    if (!same_dim(x.dims[i], y.dims[i])) return false;
  return true;
}

std::optional<Dims> Context::integers(tn_value v) const {
  bool known = false;
  const auto elements = graph.known_elements(v, &known);
  if (!known) return std::nullopt;
  Dims r;
  for (tn_dim d : elements) {
    int64_t n = d;
    if (d < 0 && !symbols->as_number(graph.raw(), d, &n)) return std::nullopt;
    r.push_back(n);
  }
  return r;
}

std::optional<Node> Context::producer(tn_value v, tn_sym op) const {
  const tn_node p = graph.producer(v);
  if (p == TN_NONE) return std::nullopt;
  Node n = graph.node(p);
  if (n.op() != op) return std::nullopt;
  return n;
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

void run_canonicalize(Pass& pass) {
  const GraphView graph = pass.graph();
  Context c{pass,
            graph,
            pass.service<tn_symbols_api>(TN_SYMBOLS_ID),
            graph.symbol("Transpose"),
            graph.symbol("Reshape"),
            graph.symbol("Cast"),
            graph.symbol("Squeeze"),
            graph.symbol("Unsqueeze"),
            graph.symbol("Concat"),
            graph.symbol("Split"),
            graph.symbol("Identity")};
  std::unordered_map<tn_sym, std::vector<Simplifier>> table;
  for (const auto& entries : {no_op_simplifiers(), chain_simplifiers()})
    for (const auto& e : entries) table[graph.symbol(e.op)].push_back(e.simplify);
  const tn_sym if_op = graph.symbol("If");

  std::vector<tn_region> regions{graph.main()};
  for (size_t r = 0; r < regions.size(); ++r) {
    if (regions[r] != graph.main() && !graph.node(graph.region(regions[r]).parent).alive()) continue;
    std::vector<tn_node> work = node_list(graph, regions[r]);
    std::reverse(work.begin(), work.end());  // a stack: inlined nodes go on top
    while (!work.empty()) {
      const tn_node id = work.back();
      work.pop_back();
      if (pass.cancelled()) return;
      Node node = graph.node(id);
      if (!node.alive()) continue;
      if (node.op() == if_op && !node.regions().empty()) {
        std::vector<tn_node> inner;
        for (tn_region branch : node.regions()) {
          const auto ids = graph.nodes(branch).copy();
          inner.insert(inner.end(), ids.rbegin(), ids.rend());
        }
        if (inline_constant_if(c, node)) {
          for (tn_node n : inner)
            if (graph.node(n).alive()) work.push_back(n);
          continue;
        }
        node = graph.node(id);
      }
      for (tn_region inner : node.regions()) regions.push_back(inner);
      const auto entry = table.find(node.op());
      if (entry == table.end()) continue;
      for (Simplifier simplify : entry->second) {
        bool done = false;
        c.step = "canonicalize";
        const tn_value same = simplify(c, node, &done);
        if (done) break;
        if (same == TN_NONE) continue;
        Transaction edit = pass.edit(c.step);
        if (!edit.active()) return;
        edit.replace_uses(node.output(0), same);
        edit.erase(id);
        if (c.commit(edit, id)) break;
        node = graph.node(id);
      }
    }
  }
  if (c.applied) pass.count("canonicalize", c.applied, c.applied);
}

}  // namespace tenon::fusion
