// Casts: chains of them, and where among data movement and choices they cost least. Exact.
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

/// The operands whose elements become the result's, unchanged or chosen between by their order: the operator
/// does the same to a type that holds fewer values. Nothing when it is no such operator.
std::optional<uint32_t> first_chosen(const Context& c, const Node& n) {
  const std::string_view op = n.op_name();
  if (op == "Where") return 1u;
  if (op == "Concat" || op == "Max" || op == "Min") return 0u;
  // The lowest of whole numbers has no negative.
  if ((op == "Relu" || op == "Neg" || op == "Abs") && c.is_float(n.output(0))) return 0u;
  return std::nullopt;
}

bool has_order(tn_dtype d) { return is_common(d) || d == TN_FLOAT16 || d == TN_BFLOAT16; }

// Max(Cast(x), Cast(y)) is Cast(Max(x, y)): one Cast for several, or one that meets another behind.
tn_value behind_choice(Context& c, const Node& n, bool* done) {
  c.step = "cast once, behind";
  const auto first = first_chosen(c, n);
  if (!first || !n.regions().empty() || n.outputs().size() != 1) return TN_NONE;
  const tn_dtype to = c.type(n.output(0)).dtype;
  tn_dtype from = TN_DTYPE_NONE;
  size_t casts = 0;
  for (uint32_t i = *first; i < n.inputs().size(); ++i) {
    const auto cast = n.input(i) == TN_NONE ? std::nullopt : c.producer(n.input(i), c.ops.cast);
    if (!cast || cast->region() != n.region()) return TN_NONE;
    const tn_dtype own = c.type(cast->input(0)).dtype;
    if ((from != TN_DTYPE_NONE && own != from) || !c.single_use(n.input(i))) return TN_NONE;
    from = own;
    ++casts;
  }
  if (!has_order(from) || !has_order(to) || sdk::is_float(from) != sdk::is_float(to) || !lossless(from, to))
    return TN_NONE;
  if (casts == 1) {  // worth it only where the two Casts then are one, or none
    if (!c.single_use(n.output(0))) return TN_NONE;
    const tn_node reader = c.graph.users(n.output(0))[0].node;
    if (reader == TN_NONE || c.graph.node(reader).op() != c.ops.cast) return TN_NONE;
    if (c.type(c.graph.node(reader).output(0)).dtype != from) return TN_NONE;
  }
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  std::vector<tn_value> operands = n.inputs().copy();
  std::vector<tn_node> gone;
  for (uint32_t i = *first; i < operands.size(); ++i) {
    const Node cast = c.graph.node(c.graph.producer(operands[i]));
    gone.push_back(cast.id());
    operands[i] = cast.input(0);
  }
  NodeSpec s{n.op_name(), operands, 1, {}, n.region(), n.id(), n.name(), {n.id()}};
  s.raw_attrs = attrs_of(n);
  s.version = n.version();
  const tn_value chosen = edit.create(s).output(0);
  NodeSpec t{"Cast", {chosen}, 1, {}, n.region(), n.id(), {}, gone};
  t.attrs.push_back(
      AttrValue::of("to", static_cast<int64_t>(c.graph.node(gone[0]).attrs().get_int("to", 0))));
  edit.replace_uses(n.output(0), edit.create(t).output(0));
  edit.erase(n.id());
  for (const tn_node cast : gone) edit.erase(cast);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// All parts of a Split cast alike: the whole is, before.
tn_value before_split(Context& c, const Node& n, bool* done) {
  c.step = "cast once, before a Split";
  const auto first = c.graph.producer(n.input(0)) == TN_NONE
                         ? std::nullopt
                         : std::optional<Node>(c.graph.node(c.graph.producer(n.input(0))));
  if (!first || first->op() != c.ops.split || first->region() != n.region() || first->outputs().size() < 2)
    return TN_NONE;
  const tn_dtype to = c.type(n.output(0)).dtype;
  std::vector<tn_node> casts;
  for (const tn_value part : first->outputs()) {
    if (part == TN_NONE || !c.single_use(part)) return TN_NONE;
    const tn_use use = c.graph.users(part)[0];
    if (use.node == TN_NONE || use.region != n.region()) return TN_NONE;
    const Node cast = c.graph.node(use.node);
    if (cast.op() != c.ops.cast || c.type(cast.output(0)).dtype != to) return TN_NONE;
    casts.push_back(cast.id());
  }
  if (!has_order(to) || !has_order(c.type(first->input(0)).dtype)) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  NodeSpec s{"Cast", {first->input(0)}, 1, {}, n.region(), first->id(), n.name(), casts};
  s.raw_attrs = attrs_of(n);
  s.version = n.version();
  std::vector<tn_value> operands = first->inputs().copy();
  operands[0] = edit.create(s).output(0);
  NodeSpec t{first->op_name(), operands,     static_cast<uint32_t>(casts.size()), {}, n.region(), first->id(),
             first->name(),    {first->id()}};
  t.raw_attrs = attrs_of(*first);
  t.version = first->version();
  const std::vector<tn_value> parts = edit.create(t).outputs().copy();
  for (size_t i = 0; i < casts.size(); ++i) {
    edit.replace_uses(c.graph.node(casts[i]).output(0), parts[i]);
    edit.erase(casts[i]);
  }
  edit.erase(first->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Cast", chain},
                                       {"Cast", cast_before_movement},
                                       {"Cast", before_split},
                                       {"Slice", cast_after_selection},
                                       {"Gather", cast_after_selection},
                                       {"Where", behind_choice},
                                       {"Concat", behind_choice},
                                       {"Max", behind_choice},
                                       {"Min", behind_choice},
                                       {"Relu", behind_choice},
                                       {"Neg", behind_choice},
                                       {"Abs", behind_choice}};

}  // namespace

Table cast_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
