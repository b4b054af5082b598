// Reductions with the Squeeze, Reshape or Transpose around them.
#include <algorithm>
#include <iterator>

#include "arithmetic/constants.hpp"
#include "data/transposes.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

enum class Order { free, counts };  // may elements be visited in another order to the bit?

/// Of a reduction: does the order of elements matter to a float's last bit?
std::optional<Order> reduction(std::string_view op) {
  if (op == "ReduceMax" || op == "ReduceMin") return Order::free;
  if (op == "ReduceSum" || op == "ReduceMean" || op == "ReduceProd" || op == "ReduceL1" || op == "ReduceL2" ||
      op == "ReduceSumSquare" || op == "ReduceLogSum" || op == "ReduceLogSumExp")
    return Order::counts;
  return std::nullopt;
}
bool is_arg(std::string_view op) { return op == "ArgMax" || op == "ArgMin"; }

/// The axes, sorted; all of them when none are given. None: unknown, or the operator then does nothing.
std::optional<Dims> reduced_axes(const Context& c, const Node& n) {
  const int64_t rank = c.type(n.input(0)).rank;
  if (rank < 0) return std::nullopt;
  Dims r;
  if (is_arg(n.op_name())) {
    int64_t axis = n.attrs().get_int("axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    return Dims{axis};
  }
  if (n.input(1) != TN_NONE) {
    const auto given = c.axes(n, 1, rank);
    if (!given) return std::nullopt;
    r = *given;
  }
  if (r.empty()) {
    if (n.attrs().get_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
    for (int64_t i = 0; i < rank; ++i) r.push_back(i);
  }
  std::sort(r.begin(), r.end());
  if (std::adjacent_find(r.begin(), r.end()) != r.end()) return std::nullopt;
  return r;
}

bool set_keepdims(Context& c, const Node& n, const Node& reduce, int64_t keep, bool* done) {
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return false;
  NodeSpec s{reduce.op_name(), reduce.inputs().copy(), 1, {}, n.region(), n.id(),
             reduce.name(),    {reduce.id(), n.id()}};
  for (const tn_attr& a : attrs_of(reduce))
    if (c.graph.symbol_text(a.name) != "keepdims") s.raw_attrs.push_back(a);
  s.attrs.push_back(AttrValue::of("keepdims", keep));
  s.version = reduce.version();
  const Node made = edit.create(s);
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  edit.erase(reduce.id());
  return *done = c.commit(edit, n.id());
}

// Squeeze, or a Reshape that amounts to one, of just the reduced axes.
tn_value squeezed(Context& c, const Node& n, bool* done) {
  c.step = "reduce without keeping axes";
  const auto reduce = c.producer(n.input(0));
  if (!reduce || !c.single_use(n.input(0)) || reduce->region() != n.region()) return TN_NONE;
  const std::string_view op = reduce->op_name();
  if ((!reduction(op) && !is_arg(op)) || reduce->attrs().get_int("keepdims", 1) == 0) return TN_NONE;
  const auto axes = reduced_axes(c, *reduce);
  const tn_type x = c.type(n.input(0)), out = c.type(n.output(0));
  if (!axes || out.rank < 0 || out.rank != x.rank - static_cast<int32_t>(axes->size())) return TN_NONE;
  if (n.op() == c.ops.squeeze) {
    auto squeezed_axes = c.axes(n, 1, x.rank);
    if (!squeezed_axes) return TN_NONE;
    std::sort(squeezed_axes->begin(), squeezed_axes->end());
    if (*squeezed_axes != *axes) return TN_NONE;
  } else {
    for (int32_t i = 0, at = 0; i < x.rank; ++i) {
      if (std::binary_search(axes->begin(), axes->end(), i)) continue;
      if (!c.same_dim(x.dims[i], out.dims[at++])) return TN_NONE;
    }
  }
  set_keepdims(c, n, *reduce, 0, done);
  return TN_NONE;
}

tn_value unsqueezed(Context& c, const Node& n, bool* done) {
  c.step = "reduce and keep axes";
  const auto reduce = c.producer(n.input(0));
  if (!reduce || !c.single_use(n.input(0)) || reduce->region() != n.region()) return TN_NONE;
  const std::string_view op = reduce->op_name();
  if ((!reduction(op) && !is_arg(op)) || reduce->attrs().get_int("keepdims", 1) != 0) return TN_NONE;
  const auto axes = reduced_axes(c, *reduce);
  auto added = c.axes(n, 1, c.type(n.output(0)).rank);
  if (!axes || !added) return TN_NONE;
  std::sort(added->begin(), added->end());
  if (*axes == *added) set_keepdims(c, n, *reduce, 1, done);
  return TN_NONE;
}

// Reduce(Transpose(x)): over the axes where they were. When what is left lies in another order then, less is
// left to transpose.
tn_value of_transposed(Context& c, const Node& n, bool* done) {
  c.step = "reduce before a Transpose, which is not needed then";
  const auto transpose = c.producer(n.input(0), c.ops.transpose);
  const auto order = reduction(n.op_name());
  if (!transpose || !order || (*order == Order::counts && c.exact && !c.is_integer(n.output(0))))
    return TN_NONE;
  const auto perm = permutation(c, *transpose);
  const auto axes = reduced_axes(c, n);
  if (!perm || !axes) return TN_NONE;
  const bool keep = n.attrs().get_int("keepdims", 1) != 0;
  Dims moved, left;  // axes of x: reduced, and kept in the order of the result
  for (size_t i = 0; i < perm->size(); ++i)
    (std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(i)) ? moved : left)
        .push_back((*perm)[i]);
  std::sort(moved.begin(), moved.end());
  Dims behind = *perm;
  if (!keep) {
    Dims sorted = left;
    std::sort(sorted.begin(), sorted.end());
    behind.clear();
    for (const int64_t axis : left)
      behind.push_back(std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin());
  }
  const bool in_order = std::is_sorted(behind.begin(), behind.end());
  if (!in_order) c.step = "transpose what a reduction leaves";
  if (!in_order && (!c.single_use(n.input(0)) || transpose->region() != n.region())) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const tn_value target = edit.vector<int64_t>(moved);
  if (in_order) {
    edit.set_input(n.id(), 0, transpose->input(0));
    edit.set_input(n.id(), 1, target);
  } else {
    NodeSpec s{n.op_name(), {transpose->input(0), target}, 1, {}, n.region(), n.id(), n.name(), {n.id()}};
    s.raw_attrs = attrs_of(n);
    s.version = n.version();
    const tn_value reduced = edit.create(s).output(0);
    const Node made = edit.create({"Transpose",
                                   {reduced},
                                   1,
                                   {AttrValue::of("perm", Span<const int64_t>(behind))},
                                   n.region(),
                                   n.id(),
                                   transpose->name(),
                                   {transpose->id()}});
    edit.replace_uses(n.output(0), made.output(0));
    edit.erase(n.id());
    edit.erase(transpose->id());
  }
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

/// The axes of x that a reshaped y has as these; none when some lie in one axis with others, or what is left
/// has not the dims that it had.
std::optional<Dims> axes_before_reshape(const Context& c, const tn_type& x, const tn_type& y,
                                        const Dims& axes) {
  if (x.rank < 0 || y.rank < 0) return std::nullopt;
  const auto reduced = [&](int32_t i) { return std::binary_search(axes.begin(), axes.end(), i); };
  Dims before;
  int32_t i = 0, j = 0;
  while (i < x.rank && j < y.rank) {
    if (c.same_dim(x.dims[i], y.dims[j])) {
      if (reduced(j++)) before.push_back(i);
      ++i;
      continue;
    }
    // A run of axes on either side with one number of elements: reduced as a whole.
    auto a = c.number(x.dims[i]), b = c.number(y.dims[j]);
    if (!a || !b || *a < 1 || *b < 1 || !reduced(j)) return std::nullopt;
    int64_t in_x = *a, in_y = *b;
    before.push_back(i++);
    ++j;
    while (in_x != in_y) {
      const bool take_x = in_x < in_y;
      if (take_x ? i >= x.rank : (j >= y.rank || !reduced(j))) return std::nullopt;
      const auto next = c.number(take_x ? x.dims[i] : y.dims[j]);
      if (!next || *next < 1) return std::nullopt;
      (take_x ? in_x : in_y) = checked_mul(take_x ? in_x : in_y, *next);
      if (take_x)
        before.push_back(i++);
      else
        ++j;
    }
  }
  if (i < x.rank || j < y.rank) return std::nullopt;
  return before;
}

// Reduce(Reshape(x)) without keeping axes, where the reduced axes are axes of x, or runs of them.
tn_value of_reshaped(Context& c, const Node& n, bool* done) {
  c.step = "reduce before a Reshape, which is not needed then";
  const auto reshape = c.producer(n.input(0));
  const auto order = reduction(n.op_name());
  if (!reshape || !c.ops.keeps_order(reshape->op()) || !order || !c.single_use(n.input(0)) ||
      n.attrs().get_int("keepdims", 1) != 0 ||
      (*order == Order::counts && c.exact && !c.is_integer(n.output(0))))
    return TN_NONE;
  const auto axes = reduced_axes(c, n);
  if (!axes) return TN_NONE;
  const auto before = axes_before_reshape(c, c.type(reshape->input(0)), c.type(n.input(0)), *axes);
  if (!before || before->empty()) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, reshape->input(0));
  edit.set_input(n.id(), 1, edit.vector<int64_t>(*before));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Max of maxima, sum of sums: over all the axes at once.
tn_value of_reduced(Context& c, const Node& n, bool* done) {
  c.step = "merge reductions";
  const auto inner = c.producer(n.input(0), n.op());
  const auto order = reduction(n.op_name());
  if (!inner || !order || !c.single_use(n.input(0))) return TN_NONE;
  const std::string_view op = n.op_name();
  if (op != "ReduceMax" && op != "ReduceMin" && op != "ReduceSum" && op != "ReduceMean") return TN_NONE;
  if (*order == Order::counts && !(op == "ReduceSum" && c.is_integer(n.output(0))) &&
      (c.exact || !c.is_float(n.output(0))))
    return TN_NONE;
  const auto first = reduced_axes(c, *inner), second = reduced_axes(c, n);
  const bool keep = n.attrs().get_int("keepdims", 1) != 0;
  if (!first || !second || keep != (inner->attrs().get_int("keepdims", 1) != 0)) return TN_NONE;
  Dims joined = *first;
  if (keep) {
    joined.insert(joined.end(), second->begin(), second->end());
  } else {
    Dims left;
    for (int64_t i = 0; i < c.type(inner->input(0)).rank; ++i)
      if (!std::binary_search(first->begin(), first->end(), i)) left.push_back(i);
    for (int64_t a : *second) joined.push_back(left[static_cast<size_t>(a)]);
  }
  std::sort(joined.begin(), joined.end());
  joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
  // An axis of both has one element by then, and a mean over one is no other mean.
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, inner->input(0));
  edit.set_input(n.id(), 1, edit.vector<int64_t>(joined));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Squeeze", squeezed},
                                       {"Reshape", squeezed},
                                       {"Unsqueeze", unsqueezed},
                                       {"ReduceMax", of_transposed},
                                       {"ReduceMax", of_reshaped},
                                       {"ReduceMin", of_transposed},
                                       {"ReduceMin", of_reshaped},
                                       {"ReduceSum", of_transposed},
                                       {"ReduceSum", of_reshaped},
                                       {"ReduceMean", of_transposed},
                                       {"ReduceMean", of_reshaped},
                                       {"ReduceProd", of_transposed},
                                       {"ReduceProd", of_reshaped},
                                       {"ReduceL1", of_transposed},
                                       {"ReduceL1", of_reshaped},
                                       {"ReduceL2", of_transposed},
                                       {"ReduceL2", of_reshaped},
                                       {"ReduceSumSquare", of_transposed},
                                       {"ReduceSumSquare", of_reshaped},
                                       {"ReduceMax", of_reduced},
                                       {"ReduceMin", of_reduced},
                                       {"ReduceSum", of_reduced},
                                       {"ReduceMean", of_reduced}};

}  // namespace

Table reduction_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
