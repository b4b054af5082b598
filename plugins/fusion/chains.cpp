// Pairs of data movement that are one movement, and an If that is one of its branches.
#include <iterator>

#include "canonicalize.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

// Transpose(Transpose(x, p), q): result axis i is x's axis p[q[i]].
tn_value transpose_chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Transposes";
  const auto inner = c.producer(n.input(0), c.transpose);
  if (!inner) return TN_NONE;
  const int32_t rank = c.type(n.input(0)).rank;
  if (rank < 0) return TN_NONE;
  const auto perm_of = [rank](const Node& t) {
    Dims p = t.attrs().get_ints("perm").copy();
    if (p.empty())
      for (int64_t i = rank - 1; i >= 0; --i) p.push_back(i);
    return p;
  };
  const Dims p = perm_of(*inner), q = perm_of(n);
  if (static_cast<int32_t>(p.size()) != rank || static_cast<int32_t>(q.size()) != rank) return TN_NONE;
  Dims joined;
  bool same = true;
  for (size_t i = 0; i < q.size(); ++i) {
    if (q[i] < 0 || q[i] >= rank) return TN_NONE;
    joined.push_back(p[static_cast<size_t>(q[i])]);
    same = same && joined[i] == static_cast<int64_t>(i);
  }
  if (same) return inner->input(0);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node merged = edit.create({"Transpose",
                                   {inner->input(0)},
                                   1,
                                   {AttrValue::of("perm", Span<const int64_t>(joined))},
                                   n.region(),
                                   n.id(),
                                   n.name(),
                                   {inner->id(), n.id()}});
  edit.replace_uses(n.output(0), merged.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Reshape(f(x), target) where f keeps the element order and the target is complete in itself (no 0 that
// copies an axis of f(x)) is Reshape(x, target).
tn_value reshape_chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Reshapes";
  const tn_node before = c.graph.producer(n.input(0));
  if (before == TN_NONE) return TN_NONE;
  const Node inner = c.graph.node(before);
  const bool keeps_order = inner.op() == c.reshape || inner.op() == c.squeeze || inner.op() == c.unsqueeze;
  if (!keeps_order || inner.output(0) != n.input(0) || c.graph.value(n.input(0)).use_count != 1)
    return TN_NONE;
  if (c.same_type(inner.input(0), n.output(0))) return inner.input(0);
  bool known = false;
  for (tn_dim d : c.graph.known_elements(n.input(1), &known)) {
    int64_t lo = 0, hi = 0;
    c.symbols->range(c.graph.raw(), d, &lo, &hi);
    if (lo <= 0 && !(d < 0 && c.symbols->as_number(c.graph.raw(), d, &lo) && lo == -1))
      return TN_NONE;  // 0, or may be 0
  }
  if (!known) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inner.input(0));
  const tn_node inner_id = inner.id();
  const tn_value bridge = inner.output(0);
  if (c.graph.value(bridge).use_count == 0) edit.erase(inner_id);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

/// Every value of `from` is a value of `to`: nothing is lost on the way.
bool lossless(tn_dtype from, tn_dtype to) {
  if (from == to) return true;
  const auto bits = [](tn_dtype d) { return TN_DTYPE_BITS(d); };
  const bool from_int = is_integer(from), to_int = is_integer(to);
  if (from == TN_BOOL)
    return to_int || to == TN_FLOAT32 || to == TN_FLOAT64 || to == TN_FLOAT16 || to == TN_BFLOAT16;
  if (from_int && to_int)
    return is_signed_integer(to)
               ? bits(to) > bits(from) || (is_signed_integer(from) && bits(to) >= bits(from))
               : !is_signed_integer(from) && bits(to) >= bits(from);
  const uint32_t digits = to == TN_FLOAT64    ? 53
                          : to == TN_FLOAT32  ? 24
                          : to == TN_FLOAT16  ? 11
                          : to == TN_BFLOAT16 ? 8
                                              : 0;
  if (from_int) return digits >= bits(from) && to != TN_FLOAT16;
  if (to == TN_FLOAT64) return from == TN_FLOAT32 || from == TN_FLOAT16 || from == TN_BFLOAT16;
  return to == TN_FLOAT32 && (from == TN_FLOAT16 || from == TN_BFLOAT16);
}

/// Cast(Cast(x, middle), to) may differ from Cast(x, to) though middle holds every value of `from`: whole
/// numbers go to a narrower integer by their low bits but a float outside the range does not, and a text
/// shows which type it was made from.
bool depends_on_way(tn_dtype from, tn_dtype middle, tn_dtype to) {
  if (from == middle) return false;
  if (to == TN_STRING) return true;
  return is_integer(from) && !is_integer(middle) && is_integer(to) && !lossless(from, to);
}

// Cast(Cast(x, a), b) is Cast(x, b) when a holds every value of x's type.
tn_value cast_chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Casts";
  const auto inner = c.producer(n.input(0), c.cast);
  if (!inner) return TN_NONE;
  const tn_dtype from = c.type(inner->input(0)).dtype, middle = c.type(n.input(0)).dtype;
  if (from == TN_DTYPE_NONE || middle == TN_DTYPE_NONE || !lossless(from, middle)) return TN_NONE;
  if (c.same_type(inner->input(0), n.output(0))) return inner->input(0);
  if (depends_on_way(from, middle, c.type(n.output(0)).dtype)) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inner->input(0));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Squeeze and Unsqueeze that undo one another, told by the types: same order of elements, same shape.
tn_value squeeze_chain(Context& c, const Node& n, bool*) {
  c.step = "cancel Squeeze and Unsqueeze";
  const tn_node before = c.graph.producer(n.input(0));
  if (before == TN_NONE) return TN_NONE;
  const Node inner = c.graph.node(before);
  if (inner.op() != c.squeeze && inner.op() != c.unsqueeze && inner.op() != c.reshape) return TN_NONE;
  return c.same_type(inner.input(0), n.output(0)) ? inner.input(0) : TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Transpose", transpose_chain},
                                       {"Reshape", reshape_chain},
                                       {"Cast", cast_chain},
                                       {"Squeeze", squeeze_chain},
                                       {"Unsqueeze", squeeze_chain}};

}  // namespace

Span<const SimplifierEntry> chain_simplifiers() { return {entries, std::size(entries)}; }

bool inline_constant_if(Context& c, const Node& node) {
  const auto cond = c.graph.constant(node.input(0));
  bool taken = false;
  if (cond && cond->dtype() == TN_BOOL && cond->bytes() >= 1) {
    taken = cond->data<uint8_t>()[0] != 0;
  } else {
    const auto known = c.integers(node.input(0));
    if (!known || known->size() != 1) return false;
    taken = (*known)[0] != 0;
  }
  tn_region branch = TN_NONE;
  for (tn_region r : node.regions())
    if (sdk::view(c.graph.region(r).name) == (taken ? "then_branch" : "else_branch")) branch = r;
  if (branch == TN_NONE) return false;
  c.step = "inline If";
  const auto info = c.graph.region(branch);
  const std::vector<tn_value> results(info.outputs, info.outputs + info.output_count);
  const std::vector<tn_value> wanted = node.outputs().copy();
  if (results.size() != wanted.size()) return false;
  const tn_node id = node.id();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  edit.inline_region(branch, {}, id);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != TN_NONE) edit.replace_uses(wanted[i], results[i]);
  edit.erase(id);
  return c.commit(edit, id);
}

}  // namespace tenon::fusion
