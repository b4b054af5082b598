// Casts: chains of them, and where among data movement they cost least.
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

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
tn_value chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Casts";
  const auto inner = c.producer(n.input(0), c.ops.cast);
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

/// Operand 0's elements go to the result as they are, each at most once, or more than once (Expand).
enum class Movement { none, same, fewer, more };
Movement movement(const Context& c, const Node& n) {
  const std::string_view op = n.op_name();
  if (c.ops.keeps_order(n.op()) || n.op() == c.ops.transpose) return Movement::same;
  if (n.op() == c.ops.slice || op == "Gather" || op == "GatherND" || op == "GatherElements" ||
      op == "Compress")
    return Movement::fewer;
  if (n.op() == c.ops.expand || op == "Tile") return Movement::more;
  return Movement::none;
}

/// How many elements, when that is a number.
std::optional<int64_t> count_of(const Context& c, tn_value v) {
  const tn_type t = c.type(v);
  if (t.rank < 0) return std::nullopt;
  int64_t n = 1;
  for (tn_dim d : dims_of(t)) {
    const auto x = c.number(d);
    if (!x) return std::nullopt;
    n = checked_mul(n, *x);
  }
  return n;
}

/// `first` then `second` over the operands of whichever moves data, in place of both.
tn_value swapped(Context& c, const Node& outer, const Node& inner, bool cast_first, bool* done) {
  const Node& move = cast_first ? inner : outer;
  const Node& cast = cast_first ? outer : inner;
  std::vector<tn_value> operands = move.inputs().copy();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const auto make_cast = [&](tn_value v) {
    NodeSpec s{"Cast", {v}, 1, {}, outer.region(), outer.id(), cast.name(), {cast.id()}};
    s.raw_attrs = attrs_of(cast);
    s.version = cast.version();
    return edit.create(s).output(0);
  };
  operands[0] = cast_first ? make_cast(inner.input(0)) : inner.input(0);
  NodeSpec s{move.op_name(), operands, 1, {}, outer.region(), outer.id(), move.name(), {move.id()}};
  s.raw_attrs = attrs_of(move);
  s.version = move.version();
  const tn_value moved = edit.create(s).output(0);
  edit.replace_uses(outer.output(0), cast_first ? moved : make_cast(moved));
  edit.erase(outer.id());
  edit.erase(inner.id());
  *done = c.commit(edit, outer.id());
  return TN_NONE;
}

// A Cast of what was made more is a Cast of less; one that meets another Cast on the other side of a Reshape
// or Transpose goes there, where they become one.
tn_value cast_before_movement(Context& c, const Node& n, bool* done) {
  c.step = "move a Cast before data movement";
  const auto inner = c.producer(n.input(0));
  if (!inner || inner->region() != n.region() || !c.single_use(n.input(0)) || inner->outputs().size() != 1)
    return TN_NONE;
  const Movement m = movement(c, *inner);
  if (m == Movement::more) {
    const auto before = count_of(c, inner->input(0)), after = count_of(c, n.output(0));
    if (before && after && *after <= *before) return TN_NONE;
  } else if (m == Movement::same || m == Movement::fewer) {
    const auto other = c.producer(inner->input(0), c.ops.cast);
    if (!other || !c.single_use(inner->input(0))) return TN_NONE;
    const tn_dtype from = c.type(other->input(0)).dtype, middle = c.type(inner->input(0)).dtype,
                   to = c.type(n.output(0)).dtype;
    if (from == TN_DTYPE_NONE || middle == TN_DTYPE_NONE || to == TN_DTYPE_NONE) return TN_NONE;
    if (!lossless(from, middle) || (from != to && depends_on_way(from, middle, to))) return TN_NONE;
  } else {
    return TN_NONE;
  }
  return swapped(c, n, *inner, true, done);
}

// Of a Cast of everything only a part is wanted.
tn_value cast_after_selection(Context& c, const Node& n, bool* done) {
  c.step = "move a Cast behind a selection";
  const auto inner = c.producer(n.input(0), c.ops.cast);
  if (!inner || inner->region() != n.region() || !c.single_use(n.input(0)) || n.outputs().size() != 1)
    return TN_NONE;
  if (n.op() != c.ops.slice) {  // a Gather may repeat
    const auto before = count_of(c, n.input(0)), after = count_of(c, n.output(0));
    if (!before || !after || *after >= *before) return TN_NONE;
  }
  return swapped(c, n, *inner, false, done);
}

constexpr SimplifierEntry entries[] = {{"Cast", chain},
                                       {"Cast", cast_before_movement},
                                       {"Slice", cast_after_selection},
                                       {"Gather", cast_after_selection}};

}  // namespace

Table cast_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
