// Reshape, Flatten, Squeeze and Unsqueeze: one order of elements, whatever the dims. Shape arithmetic that
// only says what the types know already is cut off.
#include <iterator>

#include "data/reshapes.hpp"

namespace tenon::fusion {

using namespace sdk;

std::optional<Dims> constant_target(const Context& c, const tn_type& from, const tn_type& to,
                                    Span<const tn_dim> before) {
  if (from.rank < 0 || to.rank < 0) return std::nullopt;
  bool had_unknown = false;
  for (tn_dim d : before) had_unknown = had_unknown || c.number(d) == -1;
  Dims target;
  int unknown = -1;
  bool zero = false;
  for (int32_t i = 0; i < to.rank; ++i) {
    const auto n = c.number(to.dims[i]);
    if (n) {
      zero = zero || *n == 0;
      target.push_back(*n);
    } else if (unknown < 0) {  // the first: decided below
      unknown = i;
      target.push_back(-1);
    } else if (i < from.rank && c.same_dim(from.dims[i], to.dims[i])) {
      target.push_back(0);
    } else if (unknown < from.rank && c.same_dim(from.dims[unknown], to.dims[unknown])) {
      target[static_cast<size_t>(unknown)] = 0;
      unknown = i;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  // A number 0 would copy an axis, and beside it -1 has no meaning.
  if (zero) return std::nullopt;
  // -1 divides by the others: none of them may be 0 at run time.
  if (unknown >= 0)
    for (int32_t i = 0; i < to.rank; ++i) {
      if (target[static_cast<size_t>(i)] != 0) continue;
      int64_t lo = 0, hi = 0;
      c.symbols->range(c.graph.raw(), to.dims[i], &lo, &hi);
      if (had_unknown && static_cast<size_t>(i) < before.size() &&
          c.number(before[static_cast<size_t>(i)]) != -1)
        continue;
      if (lo < 1) {  // may be empty: say the axis by its place if it has one
        if (unknown < from.rank && c.same_dim(from.dims[unknown], to.dims[unknown])) {
          target[static_cast<size_t>(unknown)] = 0;
          break;
        }
        return std::nullopt;
      }
    }
  return target;
}

namespace {

/// A Transpose that moves axes of one element only.
bool keeps_order(const Context& c, const Node& n) {
  if (c.ops.keeps_order(n.op())) return true;
  if (n.op() != c.ops.transpose) return false;
  const tn_type x = c.type(n.input(0));
  const auto perm = n.attrs().get_ints("perm");
  if (x.rank < 0 || static_cast<int32_t>(perm.size()) != x.rank) return false;
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= x.rank) return false;
    if (x.dims[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// The target is worked out by other nodes, though the types tell all of it.
tn_value target_known(Context& c, const Node& n, bool* done) {
  c.step = "make a Reshape's target constant";
  if (c.graph.is_constant(n.input(1)) || n.attrs().get_int("allowzero", 0) != 0) return TN_NONE;
  bool known = false;
  const auto elements = c.graph.known_elements(n.input(1), &known);
  const auto target = constant_target(c, c.type(n.input(0)), c.type(n.output(0)), elements);
  if (!target) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 1, edit.vector<int64_t>(*target));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// f(g(x)), both keeping the order of elements: x itself, or one Reshape.
tn_value chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Reshapes";
  const auto inner = c.producer(n.input(0));
  if (!inner || !keeps_order(c, *inner)) return TN_NONE;
  const tn_value x = inner->input(0);
  if (c.same_type(x, n.output(0))) return x;
  bool given = false;
  const auto elements =
      n.op() == c.ops.reshape ? c.graph.known_elements(n.input(1), &given) : Span<const tn_dim>();
  const auto target = constant_target(c, c.type(x), c.type(n.output(0)), elements);
  if (target) {
    Transaction edit = c.pass.edit(c.step);
    if (!edit.active()) return TN_NONE;
    const Node made = edit.create({"Reshape",
                                   {x, edit.vector<int64_t>(*target)},
                                   1,
                                   {},
                                   n.region(),
                                   n.id(),
                                   n.name(),
                                   {inner->id(), n.id()}});
    edit.replace_uses(n.output(0), made.output(0));
    edit.erase(n.id());
    *done = c.commit(edit, n.id());
    return TN_NONE;
  }
  if (n.op() != c.ops.reshape || n.attrs().get_int("allowzero", 0) != 0) return TN_NONE;
  // A target that copies no axis of g(x) is complete in itself.
  bool known = false;
  for (tn_dim d : c.graph.known_elements(n.input(1), &known)) {
    int64_t lo = 0, hi = 0;
    c.symbols->range(c.graph.raw(), d, &lo, &hi);
    if (lo <= 0 && c.number(d) != -1) return TN_NONE;
  }
  if (!known) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, x);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Squeeze(Squeeze(x)) and Unsqueeze(Unsqueeze(x)) of unknown shapes: the axes together.
tn_value joined_axes(Context& c, const Node& n, bool* done) {
  c.step = "merge axes of Squeeze or Unsqueeze";
  const auto inner = c.producer(n.input(0), n.op());
  if (!inner) return TN_NONE;
  const bool squeeze = n.op() == c.ops.squeeze;
  const int64_t middle = c.type(n.input(0)).rank;
  const int64_t wide = squeeze ? c.type(inner->input(0)).rank : c.type(n.output(0)).rank;
  const auto outer_axes = c.axes(n, 1, squeeze ? middle : wide);
  const auto inner_axes = c.axes(*inner, 1, squeeze ? wide : middle);
  if (!outer_axes || !inner_axes || wide < 0) return TN_NONE;
  // The axes of the widest shape: the ones of the node next to it, then where the others come to lie.
  const Dims& near = squeeze ? *inner_axes : *outer_axes;
  const Dims& far = squeeze ? *outer_axes : *inner_axes;
  std::vector<char> taken(static_cast<size_t>(wide), 0);
  for (int64_t a : near) taken[static_cast<size_t>(a)] = 1;
  Dims places, joined;
  for (int64_t i = 0; i < wide; ++i)
    if (!taken[static_cast<size_t>(i)]) places.push_back(i);
  for (int64_t a : far) {
    if (a >= static_cast<int64_t>(places.size())) return TN_NONE;
    taken[static_cast<size_t>(places[static_cast<size_t>(a)])] = 1;
  }
  for (int64_t i = 0; i < wide; ++i)
    if (taken[static_cast<size_t>(i)]) joined.push_back(i);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inner->input(0));
  edit.set_input(n.id(), 1, edit.vector<int64_t>(joined));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {
    {"Reshape", chain},       {"Reshape", target_known}, {"Flatten", chain},        {"Squeeze", chain},
    {"Squeeze", joined_axes}, {"Unsqueeze", chain},      {"Unsqueeze", joined_axes}};

}  // namespace

Table reshape_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
