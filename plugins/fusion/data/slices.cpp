// Slice, Split, Concat, Gather: parts of parts, parts of a whole just put together, a whole put together from
// its parts. Only with bounds that are numbers.
#include <algorithm>
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

constexpr int64_t far_end = INT64_MAX;

/// One axis of a Slice that steps by 1: [start, end) counted from the front; end may be far_end.
struct Cut {
  int64_t axis, start, end;
};

// The cuts of a Slice; none unless all steps are 1 and bounds count from the front (or the dim is a number).
std::optional<std::vector<Cut>> cuts_of(const Context& c, const Node& n) {
  const tn_type x = c.type(n.input(0));
  const auto starts = c.integers(n.input(1)), ends = c.integers(n.input(2));
  if (x.rank < 0 || !starts || !ends || starts->size() != ends->size()) return std::nullopt;
  Dims axes;
  if (n.input(3) != TN_NONE) {
    const auto given = c.axes(n, 3, x.rank);
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.size() != starts->size()) return std::nullopt;
  if (n.input(4) != TN_NONE) {
    const auto steps = c.integers(n.input(4));
    if (!steps || steps->size() != axes.size()) return std::nullopt;
    for (int64_t s : *steps)
      if (s != 1) return std::nullopt;
  }
  std::vector<Cut> cuts;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] >= x.rank) return std::nullopt;
    Cut cut{axes[i], (*starts)[i], (*ends)[i]};
    const auto dim = c.number(x.dims[axes[i]]);
    if (dim) {
      for (int64_t* bound : {&cut.start, &cut.end}) {
        if (*bound < 0) *bound += *dim;
        *bound = std::clamp<int64_t>(*bound, 0, *dim);
      }
      cut.end = std::max(cut.start, cut.end);
    } else if (cut.start < 0 || cut.end < 0) {
      return std::nullopt;
    } else {
      if (cut.end >= INT32_MAX) cut.end = far_end;
      cut.end = std::max(cut.start, cut.end);
    }
    cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.axis < b.axis; });
  for (size_t i = 1; i < cuts.size(); ++i)
    if (cuts[i].axis == cuts[i - 1].axis) return std::nullopt;
  return cuts;
}

std::vector<tn_value> slice_operands(Transaction& edit, tn_value x, const std::vector<Cut>& cuts) {
  std::vector<int64_t> starts, ends, axes;
  for (const Cut& cut : cuts) {
    starts.push_back(cut.start);
    ends.push_back(cut.end);
    axes.push_back(cut.axis);
  }
  return {x, edit.vector(starts), edit.vector(ends), edit.vector(axes)};
}

bool make_slice(Context& c, const Node& n, tn_value x, const std::vector<Cut>& cuts,
                std::vector<tn_node> with) {
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  with.push_back(n.id());
  const Node made =
      edit.create({"Slice", slice_operands(edit, x, cuts), 1, {}, n.region(), n.id(), n.name(), with});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  return c.commit(edit, n.id());
}

// Slice(Slice(x)): of different axes both at once; of one axis, a part of the part.
tn_value slice_of_slice(Context& c, const Node& n, bool* done) {
  c.step = "merge Slices";
  const auto inner = c.producer(n.input(0), c.ops.slice);
  if (!inner) return TN_NONE;
  const auto outer_cuts = cuts_of(c, n), inner_cuts = cuts_of(c, *inner);
  if (!outer_cuts || !inner_cuts) return TN_NONE;
  std::vector<Cut> cuts = *inner_cuts;
  for (const Cut& cut : *outer_cuts) {
    const auto same =
        std::find_if(cuts.begin(), cuts.end(), [&](const Cut& o) { return o.axis == cut.axis; });
    if (same == cuts.end()) {
      cuts.push_back(cut);
      continue;
    }
    const auto sum = [](int64_t a, int64_t b) { return b > far_end - a ? far_end : a + b; };
    same->end = std::min(same->end, sum(same->start, cut.end));
    same->start = std::min(sum(same->start, cut.start), same->end);
  }
  *done = make_slice(c, n, inner->input(0), cuts, {inner->id()});
  return TN_NONE;
}

int64_t axis_of(const Context& c, const Node& n, tn_value like) {
  const int64_t axis = n.attrs().get_int("axis", 0);
  return axis < 0 ? axis + std::max<int64_t>(0, c.type(like).rank) : axis;
}

/// How far each operand of a Concat reaches along its axis; none when one is unknown.
std::optional<Dims> lengths(const Context& c, Span<const tn_value> values, int64_t axis) {
  Dims r;
  for (tn_value v : values) {
    const tn_type t = c.type(v);
    if (t.rank < 0 || axis < 0 || axis >= t.rank) return std::nullopt;
    const auto d = c.number(t.dims[axis]);
    if (!d) return std::nullopt;
    r.push_back(*d);
  }
  return r;
}

// A Slice that lies within one operand of a Concat.
tn_value slice_of_concat(Context& c, const Node& n, bool* done) {
  c.step = "take a Slice from the operand of a Concat";
  const auto concat = c.producer(n.input(0), c.ops.concat);
  if (!concat) return TN_NONE;
  const auto cuts = cuts_of(c, n);
  const int64_t axis = axis_of(c, *concat, n.input(0));
  if (!cuts) return TN_NONE;
  const auto cut = std::find_if(cuts->begin(), cuts->end(), [axis](const Cut& o) { return o.axis == axis; });
  if (cut == cuts->end() || cut->end == far_end || cut->start >= cut->end) return TN_NONE;
  int64_t at = 0;
  for (tn_value v : concat->inputs()) {
    const auto length = lengths(c, Span<const tn_value>(&v, 1), axis);
    if (!length) return TN_NONE;
    const int64_t next = at + length->front();
    if (cut->start >= at && cut->end <= next) {
      if (cuts->size() == 1 && cut->start == at && cut->end == next) return v;
      std::vector<Cut> moved = *cuts;
      for (Cut& m : moved)
        if (m.axis == axis) m = {axis, m.start - at, m.end - at};
      *done = make_slice(c, n, v, moved, {});
      return TN_NONE;
    }
    if (cut->start < next) return TN_NONE;  // it crosses
    at = next;
  }
  return TN_NONE;
}

// Split(Concat(a, b, ...)) into just these parts.
tn_value split_of_concat(Context& c, const Node& n, bool* done) {
  c.step = "cancel a Split of a Concat";
  const auto concat = c.producer(n.input(0), c.ops.concat);
  if (!concat || concat->inputs().size() != n.outputs().size()) return TN_NONE;
  const int64_t axis = axis_of(c, n, n.input(0));
  if (axis != axis_of(c, *concat, n.input(0))) return TN_NONE;
  const auto whole = lengths(c, concat->inputs(), axis);
  if (!whole) return TN_NONE;
  for (uint32_t i = 0; i < n.outputs().size(); ++i) {
    if (n.output(i) == TN_NONE) continue;
    const tn_value part = n.output(i);
    const auto length = lengths(c, Span<const tn_value>(&part, 1), axis);
    if (!length || length->front() != (*whole)[i]) return TN_NONE;
  }
  const std::vector<tn_value> inputs = concat->inputs().copy(), outputs = n.outputs().copy();
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != TN_NONE) edit.replace_uses(outputs[i], inputs[i]);
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Concat of all parts of a Split, in their order, is what was split.
tn_value concat_of_split(Context& c, const Node& n, bool*) {
  c.step = "cancel a Concat of a Split";
  const tn_node first = c.graph.producer(n.input(0));
  if (first == TN_NONE) return TN_NONE;
  const Node split = c.graph.node(first);
  if (split.op() != c.ops.split || split.outputs().size() != n.inputs().size()) return TN_NONE;
  if (axis_of(c, n, n.input(0)) != axis_of(c, split, n.input(0))) return TN_NONE;
  for (uint32_t i = 0; i < n.inputs().size(); ++i)
    if (n.input(i) != split.output(i)) return TN_NONE;
  return c.same_type(split.input(0), n.output(0)) ? split.input(0) : TN_NONE;
}

// A Concat nobody else reads, within another of the same axis; operands without elements.
tn_value flat_concat(Context& c, const Node& n, bool* done) {
  c.step = "merge Concats";
  const int64_t axis = axis_of(c, n, n.output(0));
  std::vector<tn_value> inputs;
  std::vector<tn_node> with;
  for (tn_value v : n.inputs()) {
    const auto inner = v == TN_NONE ? std::nullopt : c.producer(v, c.ops.concat);
    const auto length = lengths(c, Span<const tn_value>(&v, 1), axis);
    if (length && length->front() == 0 && c.type(n.output(0)).rank > 0) continue;
    if (inner && c.single_use(v) && inner->region() == n.region() && axis_of(c, *inner, v) == axis) {
      const auto more = inner->inputs().copy();
      inputs.insert(inputs.end(), more.begin(), more.end());
      with.push_back(inner->id());
    } else {
      inputs.push_back(v);
    }
  }
  if (inputs.empty() || (with.empty() && inputs.size() == n.inputs().size())) return TN_NONE;
  *done = c.replace(n, "Concat", inputs, {AttrValue::of("axis", axis)}, with);
  return TN_NONE;
}

// Slices of one value along one axis that together are all of it: one Split.
tn_value slices_to_split(Context& c, const Node& n, bool* done) {
  c.step = "make one Split of Slices";
  const auto mine = cuts_of(c, n);
  const tn_value x = n.input(0);
  if (!mine || mine->size() != 1 || mine->front().start != 0) return TN_NONE;
  const tn_dtype dtype = c.type(x).dtype;
  if (!is_common(dtype) && dtype != TN_FLOAT16 && dtype != TN_UINT8) return TN_NONE;
  const int64_t axis = mine->front().axis;
  const auto dim = c.number(c.type(x).dims[axis]);
  if (!dim || mine->front().end >= *dim || c.graph.value(x).use_count < 2 || c.graph.value(x).use_count > 64)
    return TN_NONE;
  std::vector<std::pair<Cut, tn_node>> parts;
  for (const tn_use& use : c.graph.users(x)) {
    if (use.node == TN_NONE || use.index != 0) continue;
    const Node other = c.graph.node(use.node);
    if (other.op() != c.ops.slice || other.region() != n.region()) continue;
    const auto cuts = cuts_of(c, other);
    // A part of which only a part is wanted is one Slice, of both axes.
    const tn_value part = other.output(0);
    if (c.single_use(part) && c.graph.users(part)[0].node != TN_NONE &&
        c.graph.node(c.graph.users(part)[0].node).op() == c.ops.slice)
      return TN_NONE;
    if (cuts && cuts->size() == 1 && cuts->front().axis == axis && cuts->front().start < cuts->front().end)
      parts.emplace_back(cuts->front(), use.node);
  }
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.first.start < b.first.start; });
  int64_t at = 0;
  std::vector<int64_t> sizes;
  std::vector<tn_node> nodes;
  for (const auto& [cut, node] : parts) {
    if (cut.start != at) return TN_NONE;  // a gap, an overlap, or one part twice
    at = cut.end;
    sizes.push_back(cut.end - cut.start);
    nodes.push_back(node);
  }
  if (at != *dim || sizes.size() < 2) return TN_NONE;
  // Placed before the first of them, which the sweep is at: others come later in the order.
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node split = edit.create({"Split",
                                  {x, edit.vector(sizes)},
                                  static_cast<uint32_t>(sizes.size()),
                                  {AttrValue::of("axis", axis)},
                                  n.region(),
                                  n.id(),
                                  {},
                                  nodes});
  const std::vector<tn_value> made = split.outputs().copy();
  for (size_t i = 0; i < nodes.size(); ++i) {
    edit.replace_uses(c.graph.node(nodes[i]).output(0), made[i]);
    edit.erase(nodes[i]);
  }
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Gather of neighbours, in order, is a Slice.
tn_value gather_of_run(Context& c, const Node& n, bool* done) {
  c.step = "make a Slice of a Gather";
  const tn_type x = c.type(n.input(0)), indices = c.type(n.input(1));
  if (indices.rank != 1 || x.rank < 1 || x.dtype == TN_STRING) return TN_NONE;
  const auto which = c.integers(n.input(1));
  const int64_t axis = axis_of(c, n, n.input(0));
  if (!which || which->size() < 2 || axis >= x.rank) return TN_NONE;  // of one it is as good
  const auto dim = c.number(x.dims[axis]);
  for (size_t i = 0; i < which->size(); ++i)
    if ((*which)[i] != which->front() + static_cast<int64_t>(i)) return TN_NONE;
  // Beyond the end a Gather is an error and a Slice shorter; before the front they count alike.
  if (!dim || which->front() < 0 || which->back() >= *dim) return TN_NONE;
  *done = make_slice(c, n, n.input(0), {{axis, which->front(), which->back() + 1}}, {});
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Slice", slice_of_slice},   {"Slice", slice_of_concat},
                                       {"Slice", slices_to_split},  {"Split", split_of_concat},
                                       {"Concat", concat_of_split}, {"Concat", flat_concat},
                                       {"Gather", gather_of_run}};

}  // namespace

Table slice_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
