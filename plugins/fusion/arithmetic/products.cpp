// Products of matrices: the order of a chain by what it costs, and constant matrices without axes of one
// element. Another order rounds otherwise: not under "strict".
#include <iterator>

#include "arithmetic/constants.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// A matrix, with the axes before it as one number.
struct Matrix {
  double batch = 1, rows = 0, columns = 0;
};

std::optional<Matrix> matrix(const Context& c, tn_value v) {
  const tn_type t = c.type(v);
  if (t.kind != TN_KIND_TENSOR || t.rank < 2) return std::nullopt;
  Matrix m;
  for (int32_t i = 0; i < t.rank; ++i) {
    const auto n = c.number(t.dims[i]);
    if (!n || *n < 1) return std::nullopt;
    const auto d = static_cast<double>(*n);
    if (i + 2 < t.rank)
      m.batch *= d;
    else
      (i + 1 == t.rank ? m.columns : m.rows) = d;
  }
  return m;
}

// (a b) c and a (b c): the one with fewer multiplications, when that is a quarter less at least. What two
// constants make is computed beforehand, and costs what it adds to the constants.
tn_value chain_order(Context& c, const Node& n, bool* done) {
  c.step = "order a chain of products";
  if (c.exact || !c.is_float(n.output(0))) return TN_NONE;
  for (const bool left : {true, false}) {
    const uint32_t slot = left ? 0 : 1;
    const auto inner = c.producer(n.input(slot), n.op());
    if (!inner || !c.single_use(n.input(slot)) || inner->region() != n.region()) continue;
    const tn_value a = left ? inner->input(0) : n.input(0), b = left ? inner->input(1) : inner->input(0),
                   d = left ? n.input(1) : inner->input(1);
    // Without axes before the matrices but in the first or last, nothing is broadcast on the way.
    const auto ma = matrix(c, a), mb = matrix(c, b), md = matrix(c, d);
    if (!ma || !mb || !md || mb->batch != 1 || c.type(b).rank != 2) continue;
    if (left ? c.type(d).rank != 2 : c.type(a).rank != 2) continue;
    const bool folded_first = c.graph.is_constant(a) && c.graph.is_constant(b),
               folded_last = c.graph.is_constant(b) && c.graph.is_constant(d);
    const double batch = left ? ma->batch : md->batch;
    // batch (m k) (k l) (l n)
    const double m = ma->rows, k = ma->columns, l = mb->columns, e = md->columns;
    const double first = folded_first ? 0 : (left ? batch : 1) * m * k * l;
    const double last = folded_last ? 0 : (left ? 1 : batch) * k * l * e;
    const double as_is = left ? first + batch * m * l * e : last + batch * m * k * e;
    const double other = left ? last + batch * m * k * e : first + batch * m * l * e;
    if (other > 0.75 * as_is) continue;
    if (folded_last && left && k * e > 1.1 * (k * l + l * e)) continue;
    if (folded_first && !left && m * l > 1.1 * (m * k + k * l)) continue;
    Transaction edit = c.pass.edit(c.step);
    if (!edit.active()) return TN_NONE;
    const auto product = [&](tn_value x, tn_value y, const Node& like) {
      return edit.create({"MatMul", {x, y}, 1, {}, n.region(), n.id(), like.name(), {like.id()}}).output(0);
    };
    const tn_value made = left ? product(a, product(b, d, *inner), n) : product(product(a, b, *inner), d, n);
    edit.replace_uses(n.output(0), made);
    edit.erase(n.id());
    edit.erase(inner->id());
    *done = c.commit(edit, n.id());
    return TN_NONE;
  }
  return TN_NONE;
}

// A constant right side [1, ..., k, n] under an operand of as many axes is one matrix for all: the kernels
// then make one product of all rows.
tn_value one_right_side(Context& c, const Node& n, bool* done) {
  c.step = "make one matrix of a right side with axes of one element";
  const tn_type a = c.type(n.input(0)), b = c.type(n.input(1));
  if (b.rank < 3 || a.rank < b.rank || !c.graph.is_constant(n.input(1))) return TN_NONE;
  for (int32_t i = 0; i + 2 < b.rank; ++i)
    if (b.dims[i] != 1) return TN_NONE;
  const auto matrix = c.graph.constant(n.input(1));
  if (!matrix || matrix->count() > 65536 * 1024) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node reshaped =
      edit.create({"Reshape",
                   {n.input(1), edit.vector<int64_t>({b.dims[b.rank - 2], b.dims[b.rank - 1]})},
                   1,
                   {},
                   n.region(),
                   n.id(),
                   {},
                   {n.id()}});
  edit.set_input(n.id(), 1, reshaped.output(0));  // fold makes it a constant
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"MatMul", one_right_side}, {"MatMul", chain_order}};

}  // namespace

Table product_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
