// Gathers and Slices of one place along an axis, with the Squeeze or Reshape that drops the axis. Exact.
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

std::optional<int64_t> axis_of(const Context& c, const Node& n) {
  const int64_t rank = c.type(n.input(0)).rank;
  int64_t axis = n.attrs().get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (rank < 1 || axis < 0 || axis >= rank) return std::nullopt;
  return axis;
}

// Gather of the only place there is: the axis goes, nothing moves.
tn_value of_only_place(Context& c, const Node& n, bool* done) {
  c.step = "drop an axis of one element instead of a Gather";
  const auto axis = axis_of(c, n);
  const auto indices = c.integers(n.input(1));
  if (!axis || !indices || indices->size() != 1 || c.number(c.type(n.input(0)).dims[*axis]) != 1)
    return TN_NONE;
  if (indices->front() != 0 && indices->front() != -1) return TN_NONE;
  const int32_t rank = c.type(n.input(1)).rank;
  if (rank == 1) return n.input(0);
  if (rank != 0) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node made = edit.create({"Squeeze",
                                 {n.input(0), edit.vector<int64_t>({*axis})},
                                 1,
                                 {},
                                 n.region(),
                                 n.id(),
                                 n.name(),
                                 {n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

/// The axis that a Squeeze or a Reshape drops, when it drops one alone.
std::optional<int64_t> dropped_axis(const Context& c, const Node& n) {
  const tn_type x = c.type(n.input(0)), out = c.type(n.output(0));
  if (x.rank < 1 || out.rank != x.rank - 1) return std::nullopt;
  if (n.op() == c.ops.squeeze) {
    const auto axes = c.axes(n, 1, x.rank);
    return axes && axes->size() == 1 ? std::optional<int64_t>(axes->front()) : std::nullopt;
  }
  int32_t axis = 0;
  while (axis < out.rank && c.same_dim(x.dims[axis], out.dims[axis])) ++axis;
  if (c.number(x.dims[axis]) != 1) return std::nullopt;
  for (int32_t i = axis; i < out.rank; ++i)
    if (!c.same_dim(x.dims[i + 1], out.dims[i])) return std::nullopt;
  return axis;
}

// Squeeze(Gather(x, [i])) is Gather(x, i).
tn_value squeezed(Context& c, const Node& n, bool* done) {
  c.step = "gather one place without its axis";
  const auto gather = c.producer(n.input(0), c.graph.symbol("Gather"));
  if (!gather || !c.single_use(n.input(0)) || gather->region() != n.region()) return TN_NONE;
  const auto axis = axis_of(c, *gather);
  const auto indices = c.integers(gather->input(1));
  const auto dropped = dropped_axis(c, n);
  if (!axis || !indices || indices->size() != 1 || c.type(gather->input(1)).rank != 1 || dropped != axis)
    return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  OwnedTensor index(TN_INT64, {});
  index.data<int64_t>()[0] = indices->front();
  const Node made = edit.create({"Gather",
                                 {gather->input(0), edit.constant(std::move(index))},
                                 1,
                                 {AttrValue::of("axis", *axis)},
                                 n.region(),
                                 n.id(),
                                 gather->name(),
                                 {gather->id(), n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  edit.erase(gather->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {
    {"Gather", of_only_place}, {"Squeeze", squeezed}, {"Reshape", squeezed}};

}  // namespace

Table gather_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
