// Transposes: behind arithmetic on the way to another Transpose, and behind an operator all whose operands
// were transposed alike. Exact.
#include <algorithm>
#include <iterator>

#include "arithmetic/constants.hpp"
#include "data/transposes.hpp"
#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// A constant operand as it must be beside the tensor before a Transpose by `perm`. None: too large to copy.
std::optional<OwnedTensor> before_transpose(const Context& c, tn_value v, const Dims& perm) {
  const auto t = c.graph.constant(v);
  const uint32_t width = dtype_bytes(c.type(v).dtype);
  if (!t || !width || t->dtype() == TN_STRING || t->rank() > static_cast<int32_t>(perm.size()) ||
      t->count() > 65536)
    return std::nullopt;
  const size_t rank = perm.size();
  Dims dims(rank - static_cast<size_t>(t->rank()), 1), strides(rank, 0);
  for (int64_t d : t->dims()) dims.push_back(d);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0; stride *= dims[i]) strides[i] = stride;
  const Dims back = inverse(perm);
  Dims made_dims(rank), at(rank, 0);
  for (size_t i = 0; i < rank; ++i) made_dims[i] = dims[static_cast<size_t>(back[i])];
  OwnedTensor made(t->dtype(), made_dims);
  for (int64_t i = 0, count = made.count(); i < count; ++i) {
    int64_t from = 0;
    for (size_t axis = 0; axis < rank; ++axis) from += at[axis] * strides[static_cast<size_t>(back[axis])];
    std::memcpy(made.data<char>() + i * width, t->data<char>() + from * width, width);
    for (size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < made_dims[axis]) break;
      at[axis] = 0;
    }
  }
  return made;
}

bool has_axis(const Node& n) {
  const std::string_view op = n.op_name();
  return op == "Softmax" || op == "LogSoftmax" || op == "Hardmax";
}

bool is_quantizer(const Node& n) {
  const std::string_view op = n.op_name();
  return op == "QuantizeLinear" || op == "DequantizeLinear";
}

bool passes_transpose(const Context& c, const Node& n, uint32_t slot, const Dims& perm) {
  const int64_t rank = static_cast<int64_t>(perm.size());
  if (has_axis(n)) return slot == 0;
  if (is_quantizer(n)) return slot == 0 && single_element_operands(c, n, 0, 1);
  if (!elementwise_link(c, n, slot) || c.type(n.output(0)).rank != rank) return false;
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    if (i == slot || n.input(i) == TN_NONE) continue;
    const tn_type t = c.type(n.input(i));
    int64_t count = 1;
    for (tn_dim d : dims_of(t)) count = d < 0 ? 65537 : std::min<int64_t>(65537, checked_mul(count, d));
    if (t.rank < 0 || t.rank > rank || count > 65536 || (count > 1 && !dtype_bytes(t.dtype))) return false;
  }
  return true;
}

/// The node on what was before the Transpose by `perm`; the other operands go along. TN_NONE: it cannot be.
tn_value before(const Context& c, Transaction& edit, const Node& n, uint32_t slot, tn_value x,
                const Dims& perm, tn_node place) {
  std::vector<tn_value> inputs = n.inputs().copy();
  inputs[slot] = x;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (i == slot || inputs[i] == TN_NONE || !c.graph.is_constant(inputs[i])) continue;
    int64_t count = 1;
    for (tn_dim d : dims_of(c.type(inputs[i]))) count *= d;
    if (count == 1) continue;
    auto moved = before_transpose(c, inputs[i], perm);
    if (!moved) return TN_NONE;
    inputs[i] = edit.constant(std::move(*moved));
  }
  NodeSpec s{n.op_name(), std::move(inputs), 1, {}, n.region(), place, n.name(), {n.id()}};
  s.raw_attrs = attrs_of(n);
  s.version = n.version();
  if (has_axis(n)) {
    int64_t axis = n.attrs().get_int("axis", -1);
    if (axis < 0) axis += static_cast<int64_t>(perm.size());
    if (axis < 0 || axis >= static_cast<int64_t>(perm.size())) return TN_NONE;
    s.raw_attrs.clear();
    s.attrs = {AttrValue::of("axis", perm[static_cast<size_t>(axis)])};
  }
  return edit.create(s).output(0);
}

// Transpose, arithmetic, Transpose: the arithmetic first, then what the two amount to.
tn_value between_transposes(Context& c, const Node& n, bool* done) {
  c.step = "bring Transposes together";
  const auto perm = permutation(c, n);
  if (!perm) return TN_NONE;
  const auto links = chain_from(
      c, n, [&](const Node& m, uint32_t slot) { return passes_transpose(c, m, slot, *perm); },
      [&](const Node& m, uint32_t) { return m.op() == c.ops.transpose; });
  if (links.size() < 2) return TN_NONE;
  const Node last = c.graph.node(links.back().node);
  const auto second = permutation(c, last);
  if (!second) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  tn_value x = n.input(0);
  for (size_t i = 0; i + 1 < links.size(); ++i) {
    x = before(c, edit, c.graph.node(links[i].node), links[i].slot, x, *perm, last.id());
    if (x == TN_NONE) return TN_NONE;
  }
  const Dims joined = composed(*perm, *second);
  if (!is_identity(joined))
    x = edit.create({"Transpose",
                     {x},
                     1,
                     {AttrValue::of("perm", Span<const int64_t>(joined))},
                     n.region(),
                     last.id(),
                     last.name(),
                     {n.id(), last.id()}})
            .output(0);
  *done = replace_chain(c, edit, n, links, x);
  return TN_NONE;
}

// f(Transpose(x), Transpose(y)): one Transpose, of f(x, y).
tn_value of_transposed_operands(Context& c, const Node& n, bool* done) {
  c.step = "transpose once, behind";
  const tn_op_def* op = c.pass.op(n.op());
  if (!op || !(op->flags & TN_OP_ELEMENTWISE) || !is_pure(op) || n.outputs().size() != 1) return TN_NONE;
  std::optional<Dims> perm;
  size_t transposed = 0;
  std::vector<tn_node> with;
  for (tn_value v : n.inputs()) {
    if (v == TN_NONE || c.graph.is_constant(v)) continue;
    const auto t = c.producer(v, c.ops.transpose);
    if (!t || !c.single_use(v) || t->region() != n.region()) return TN_NONE;
    const auto p = permutation(c, *t);
    if (!p || (perm && *perm != *p)) return TN_NONE;
    perm = p;
    ++transposed;
    with.push_back(t->id());
  }
  if (transposed < 2 || c.type(n.output(0)).rank != static_cast<int32_t>(perm->size())) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  std::vector<tn_value> inputs = n.inputs().copy();
  for (tn_value& v : inputs) {
    if (v == TN_NONE) continue;
    if (!c.graph.is_constant(v)) {
      v = c.producer(v)->input(0);
      continue;
    }
    int64_t count = 1;
    for (tn_dim d : dims_of(c.type(v))) count *= d;
    if (count == 1 && c.type(v).rank <= static_cast<int32_t>(perm->size())) continue;
    auto moved = before_transpose(c, v, *perm);
    if (!moved) return TN_NONE;
    v = edit.constant(std::move(*moved));
  }
  const tn_value made = copy_node(edit, n, inputs, n.id());
  const tn_value y = edit.create({"Transpose",
                                  {made},
                                  1,
                                  {AttrValue::of("perm", Span<const int64_t>(*perm))},
                                  n.region(),
                                  n.id(),
                                  {},
                                  with})
                         .output(0);
  edit.replace_uses(n.output(0), y);
  edit.erase(n.id());
  for (tn_node t : with) edit.erase(t);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Transpose", between_transposes}, {"Add", of_transposed_operands},
                                       {"Sub", of_transposed_operands},   {"Mul", of_transposed_operands},
                                       {"Div", of_transposed_operands},   {"Max", of_transposed_operands},
                                       {"Min", of_transposed_operands},   {"Where", of_transposed_operands}};

}  // namespace

Table transpose_motion() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
