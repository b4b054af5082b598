// Types compared, joined and written; places named for messages.
#include <algorithm>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"

namespace tenon {

std::string node_place(const Graph& graph, tn_node id) {
  if (id >= graph.node_bound()) return fmt::format("node #{}", id);
  const std::string_view op = graph.op_name(id);
  if (!graph.node_name(id).empty()) return fmt::format("node '{}' ({})", graph.node_name(id), op);
  for (const tn_value output : graph.node(id).outputs())
    if (output != TN_NONE) return fmt::format("the {} node that makes '{}'", op, graph.name(output));
  return fmt::format("node #{} ({})", id, op);
}

std::string value_place(const Graph& graph, tn_value id) {
  if (id >= graph.value_bound() || graph.name(id).empty()) return fmt::format("value #{}", id);
  return fmt::format("'{}'", graph.name(id));
}

std::string type_text(const Graph& graph, const tn_type& type) {
  if (type.kind == TN_KIND_NONE) return "?";
  std::string text;
  if (type.encoding != 0) text += std::string(symbol_text(type.encoding)) + ":";
  text += type.dtype == TN_DTYPE_NONE ? "?" : dtype_name(type.dtype);
  if (type.rank < 0) {
    text += "[*]";
  } else {
    text += '[';
    for (int32_t i = 0; i < type.rank; ++i) {
      if (i != 0) text += ',';
      text += graph.symbols().text(type.dims[i]);
    }
    text += ']';
  }
  switch (type.kind) {
    case TN_KIND_SEQUENCE:
      return "seq(" + text + ")";
    case TN_KIND_OPTIONAL:
      return "optional(" + text + ")";
    case TN_KIND_OPTIONAL_SEQUENCE:
      return "optional(seq(" + text + "))";
    default:
      return text;
  }
}

bool types_equal(const tn_type& a, const tn_type& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.encoding != b.encoding) return false;
  if ((a.rank < 0) != (b.rank < 0) || (a.rank >= 0 && a.rank != b.rank)) return false;
  return a.rank <= 0 || std::equal(a.dims, a.dims + a.rank, b.dims);
}

namespace {
// A symbol made by inference for want of anything better; another expression says more.
bool is_fresh_symbol(const Graph& graph, tn_dim dim) {
  std::string_view name;
  return graph.symbols().is_symbol(dim, &name) && name.find('#') != std::string_view::npos;
}
}  // namespace

bool meet_types(Graph& graph, const tn_type& a, const tn_type& b, tn_type* out, std::vector<tn_dim>& dims) {
  const tn_type& known = a.kind == TN_KIND_NONE ? b : a;
  *out = known;
  dims.assign(known.dims, known.dims + std::max(known.rank, 0));
  out->dims = dims.data();
  if (a.kind == TN_KIND_NONE || b.kind == TN_KIND_NONE) return true;
  if (a.kind != b.kind || a.encoding != b.encoding) return false;
  if (a.dtype != TN_DTYPE_NONE && b.dtype != TN_DTYPE_NONE && a.dtype != b.dtype) return false;
  out->dtype = a.dtype != TN_DTYPE_NONE ? a.dtype : b.dtype;
  if (a.rank >= 0 && b.rank >= 0 && a.rank != b.rank) return false;
  if (a.rank < 0) {
    out->rank = b.rank;
    dims.assign(b.dims, b.dims + std::max(b.rank, 0));
  } else if (b.rank >= 0) {
    const SymbolTable& symbols = graph.symbols();
    for (int32_t i = 0; i < a.rank; ++i) {
      const tn_dim x = a.dims[i], y = b.dims[i];
      if (x == y) continue;
      if (symbols.compare(TN_DIM_EQ, x, y) == TN_NO) return false;
      if (symbols.as_number(x)) continue;
      if (symbols.as_number(y) || (is_fresh_symbol(graph, x) && !is_fresh_symbol(graph, y)))
        dims[static_cast<size_t>(i)] = y;
    }
  }
  out->dims = dims.data();
  return true;
}

bool is_as_precise(Graph& graph, const tn_type& narrow, const tn_type& wide) {
  if (wide.kind == TN_KIND_NONE) return true;
  if (narrow.kind != wide.kind || narrow.encoding != wide.encoding) return false;
  if (wide.dtype != TN_DTYPE_NONE && narrow.dtype != wide.dtype) return false;
  if (wide.rank < 0) return true;
  if (narrow.rank != wide.rank) return false;
  for (int32_t i = 0; i < wide.rank; ++i) {
    if (narrow.dims[i] == wide.dims[i]) continue;
    // A symbol may be any expression; a number only itself.
    if (graph.symbols().as_number(wide.dims[i])) return false;
    if (graph.symbols().compare(TN_DIM_EQ, narrow.dims[i], wide.dims[i]) == TN_NO) return false;
  }
  return true;
}

}  // namespace tenon
