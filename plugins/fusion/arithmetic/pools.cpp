// Pooling over whole image planes, in one spelling: a GlobalAveragePool or GlobalMaxPool while the planes
// keep their axes, a reduction when the axes go. Means are added up in another order: not under "strict".
#include <algorithm>
#include <iterator>

#include "arithmetic/constants.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

bool is_pooled_type(tn_dtype d) { return d == TN_FLOAT32 || d == TN_FLOAT64 || d == TN_FLOAT16; }

// GlobalAveragePool, then what drops the axes it left: ReduceMean without them.
tn_value flat(Context& c, const Node& n, bool* done) {
  c.step = "reduce image planes without keeping axes";
  const auto pool = c.producer(n.input(0));
  if (!pool || !c.single_use(n.input(0)) || pool->region() != n.region()) return TN_NONE;
  const bool mean = pool->op_name() == "GlobalAveragePool";
  if ((!mean && pool->op_name() != "GlobalMaxPool") || (mean && c.exact)) return TN_NONE;
  const tn_type x = c.type(pool->input(0)), out = c.type(n.output(0));
  if (x.rank < 3 || out.rank != 2 || !c.same_dim(x.dims[0], out.dims[0]) ||
      !c.same_dim(x.dims[1], out.dims[1]) || !is_pooled_type(x.dtype))
    return TN_NONE;
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.rank; ++i) axes.push_back(i);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node made = edit.create({mean ? "ReduceMean" : "ReduceMax",
                                 {pool->input(0), edit.vector(axes)},
                                 1,
                                 {AttrValue::of("keepdims", int64_t{0})},
                                 n.region(),
                                 n.id(),
                                 pool->name(),
                                 {pool->id(), n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  edit.erase(pool->id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// ReduceMean or ReduceMax over all axes of the planes, which stay.
tn_value of_reduction(Context& c, const Node& n, bool* done) {
  c.step = "pool whole image planes";
  const tn_type x = c.type(n.input(0));
  const bool mean = n.op_name() == "ReduceMean";
  // Of three axes the last is as often a feature as a plane.
  if (x.rank < 4 || !is_pooled_type(x.dtype) || n.attrs().get_int("keepdims", 1) == 0 || (mean && c.exact) ||
      n.input(1) == TN_NONE)
    return TN_NONE;
  auto axes = c.axes(n, 1, x.rank);
  if (!axes || static_cast<int32_t>(axes->size()) != x.rank - 2) return TN_NONE;
  std::sort(axes->begin(), axes->end());
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != static_cast<int64_t>(i) + 2) return TN_NONE;
  *done = c.replace(n, mean ? "GlobalAveragePool" : "GlobalMaxPool", {n.input(0)});
  return TN_NONE;
}

// AveragePool or MaxPool whose one window is the plane.
tn_value of_window(Context& c, const Node& n, bool* done) {
  c.step = "pool whole image planes";
  const tn_type x = c.type(n.input(0));
  const bool mean = n.op_name() == "AveragePool";
  if (x.rank < 3 || !is_pooled_type(x.dtype) || (mean && c.exact) || n.outputs().size() != 1) return TN_NONE;
  const Attributes a = n.attrs();
  const auto window = a.get_ints("kernel_shape");
  if (static_cast<int32_t>(window.size()) != x.rank - 2) return TN_NONE;
  for (size_t i = 0; i < window.size(); ++i)
    if (c.number(x.dims[i + 2]) != window[i]) return TN_NONE;
  const auto padding = a.get_string("auto_pad", "NOTSET");
  if (padding != "NOTSET" && padding != "VALID") return TN_NONE;
  for (const int64_t p : a.get_ints("pads"))
    if (p != 0) return TN_NONE;
  for (const int64_t d : a.get_ints("dilations"))
    if (d != 1) return TN_NONE;
  *done = c.replace(n, mean ? "GlobalAveragePool" : "GlobalMaxPool", {n.input(0)});
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"ReduceMean", of_reduction},
                                       {"ReduceMax", of_reduction},
                                       {"AveragePool", of_window},
                                       {"MaxPool", of_window}};
constexpr SimplifierEntry flat_entries[] = {{"Flatten", flat}, {"Squeeze", flat}, {"Reshape", flat}};

}  // namespace

Table pool_simplifiers() { return {entries, std::size(entries)}; }
Table flat_pool_simplifiers() { return {flat_entries, std::size(flat_entries)}; }

}  // namespace tenon::fusion
