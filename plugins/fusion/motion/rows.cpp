// Reshape to a matrix, work on its rows, Reshape back: the work does not need the matrix. The products may be
// added up in another order: not under "strict".
#include <algorithm>
#include <iterator>

#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

bool along_last_axis(const Context& c, tn_value v) {
  const tn_type t = c.type(v);
  if (t.rank < 0) return false;
  for (int32_t i = 0; i + 1 < t.rank; ++i)
    if (t.dims[i] != 1) return false;
  return true;
}

bool is_product(const Node& n) { return n.op_name() == "MatMul" || n.op_name() == "Gemm"; }

// Works on each row for itself, whatever axes lie before the last.
bool by_rows(const Context& c, const Node& n) {
  const std::string_view op = n.op_name();
  if (n.outputs().size() != 1 || !n.regions().empty()) return false;
  if (op == "Softmax" || op == "LogSoftmax") {
    const int64_t axis = n.attrs().get_int("axis", -1);
    return axis == -1 || axis == c.type(n.input(0)).rank - 1;
  }
  if (is_product(n)) {
    if (c.type(n.input(1)).rank != 2 || !c.graph.is_constant(n.input(1)) || c.type(n.input(0)).rank < 2)
      return false;
    if (op == "MatMul") return true;
    if (n.attrs().get_int("transA", 0) != 0 || n.attrs().get_float("alpha", 1) != 1) return false;
    if (n.input(2) == TN_NONE) return true;
    return n.attrs().get_float("beta", 1) == 1 && c.graph.is_constant(n.input(2)) &&
           along_last_axis(c, n.input(2));
  }
  if (!elementwise_link(c, n, 0) || !c.same_dims(c.type(n.input(0)), c.type(n.output(0)))) return false;
  for (uint32_t i = 1; i < n.inputs().size(); ++i)
    if (n.input(i) != TN_NONE && !along_last_axis(c, n.input(i))) return false;
  return true;
}

/// A constant of one row as a vector, so that it widens nothing.
tn_value as_row(const Context& c, Transaction& edit, const Node& n, tn_value v) {
  if (v == TN_NONE || c.type(v).rank <= 1) return v;
  return edit.create({"Reshape", {v, edit.vector<int64_t>({-1})}, 1, {}, n.region(), n.id(), {}, {n.id()}})
      .output(0);
}

tn_value on_rows(const Context& c, Transaction& edit, const Node& n, tn_value x, tn_node place) {
  const auto make = [&](std::string_view op, std::vector<tn_value> inputs,
                        std::vector<AttrValue> attrs = {}) {
    return edit.create({op, std::move(inputs), 1, std::move(attrs), n.region(), place, n.name(), {n.id()}})
        .output(0);
  };
  if (n.op_name() == "Softmax" || n.op_name() == "LogSoftmax")
    return make(n.op_name(), {x}, {AttrValue::of("axis", int64_t{-1})});
  if (n.op_name() != "Gemm") {
    std::vector<tn_value> inputs = n.inputs().copy();
    inputs[0] = x;
    if (!is_product(n))
      for (size_t i = 1; i < inputs.size(); ++i) inputs[i] = as_row(c, edit, n, inputs[i]);
    return copy_node(edit, n, inputs, place);
  }
  tn_value b = n.input(1);
  if (n.attrs().get_int("transB", 0) != 0)  // of a constant: fold does it
    b = make("Transpose", {b}, {AttrValue::of("perm", Span<const int64_t>(Dims{1, 0}))});
  const tn_value product = make("MatMul", {x, b});
  return n.input(2) == TN_NONE ? product : make("Add", {product, as_row(c, edit, n, n.input(2))});
}

tn_value without_matrix(Context& c, const Node& n, bool* done) {
  c.step = "work on rows without making a matrix of them";
  std::vector<tn_node> links;  // the last first
  tn_value at = n.input(0);
  bool products = false;
  std::optional<Node> first;
  constexpr size_t longest = 16;
  while (links.size() <= longest) {
    const auto p = c.producer(at);
    if (!p || p->region() != n.region()) return TN_NONE;
    if (c.ops.keeps_order(p->op())) {
      first = p;
      break;
    }
    if (!c.single_use(at) || !by_rows(c, *p)) return TN_NONE;
    // Its weights would be turned round in a copy, which is only worth it when nobody else reads them.
    if (p->op_name() == "Gemm" && p->attrs().get_int("transB", 0) != 0 && !c.single_use(p->input(1)))
      return TN_NONE;
    products = products || is_product(*p);
    links.push_back(p->id());
    at = p->input(0);
  }
  // Without a product: reshape_motion has it.
  if (!first || links.empty() || !products || c.exact) return TN_NONE;
  const tn_type x = c.type(first->input(0)), matrix = c.type(first->output(0)), out = c.type(n.output(0)),
                rows = c.type(n.input(0));
  if (out.rank < 2 || matrix.rank < 2 || x.rank < out.rank || rows.rank < 1) return TN_NONE;
  if (!c.same_dim(out.dims[out.rank - 1], rows.dims[rows.rank - 1])) return TN_NONE;
  for (int32_t i = 0; i + 1 < out.rank; ++i)
    if (!c.same_dim(x.dims[i], out.dims[i])) return TN_NONE;
  const tn_dim row = matrix.dims[matrix.rank - 1];
  if (x.rank == out.rank && !c.same_dim(x.dims[x.rank - 1], row)) return TN_NONE;
  if (x.rank > out.rank) {  // the heads of each row are joined on the way
    int64_t joined = 1;
    for (int32_t i = out.rank - 1; i < x.rank; ++i)
      if (x.dims[i] < 1 || x.dims[i] > row || (joined *= x.dims[i]) > row) return TN_NONE;
    if (joined != row) return TN_NONE;
  }
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  tn_value v = first->input(0);
  if (x.rank > out.rank) {
    Dims shape(static_cast<size_t>(out.rank), 0);
    shape.back() = row;
    v = edit.create({"Reshape",
                     {v, edit.vector<int64_t>(shape)},
                     1,
                     {},
                     n.region(),
                     n.id(),
                     first->name(),
                     {first->id()}})
            .output(0);
  }
  for (size_t i = links.size(); i-- > 0;) v = on_rows(c, edit, c.graph.node(links[i]), v, n.id());
  edit.replace_uses(n.output(0), v);
  edit.erase(n.id());
  for (tn_node l : links) edit.erase(l);
  if (c.graph.value(first->output(0)).use_count == 0) edit.erase(first->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Reshape", without_matrix}};

}  // namespace

Table row_motion() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
