// Pooling over windows and over whole images.
#include <cmath>

#include "spatial/window.hpp"
#include "support/own_attributes.hpp"

namespace tenon::ops {
namespace {

void infer_pool(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 3)) {
    c.set_unranked(0, dtype);
    return c.set_unranked(1, TN_INT64);
  }
  auto out = c.dims(0);
  const auto kernel = kernel_shape(c, out.size() - 2);
  require(kernel.has_value(), "attribute 'kernel_shape' is missing");
  const Window w = read_window(c, *kernel);
  const bool round_up = c.attrs().get_int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < w.axes(); ++i) out[i + 2] = window_count(c, w, i, out[i + 2], round_up);
  c.set(0, dtype, out);
  c.set(1, TN_INT64, out);  // MaxPool's Indices
}

void infer_global_pool(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 2)) return c.set_unranked(0, dtype);
  auto out = c.dims(0);
  for (size_t i = 2; i < out.size(); ++i) out[i] = 1;
  c.set(0, dtype, out);
}

/// LpPool and GlobalLpPool of opset 1 had p as a float. A fraction is said by the sum of powers itself: the
/// mean over a window whose padding counts, times the window's size.
void upgrade_lp_pool(Editor& e, const Node& n) {
  const auto* p = n.attrs().find("p");
  if (!p || p->kind != TN_ATTR_FLOAT) return upgrade_version_only(e, n);
  const double power = p->u.f;
  if (!(power > 0) || power > 1e6)
    cannot_upgrade(n, format("attribute 'p' is %g; expected a number above 0", power));
  if (power == std::floor(power)) {
    e.set_attr(n.id(), AttrValue::of("p", static_cast<int64_t>(power)));
    return upgrade_version_only(e, e.graph().node(n.id()));
  }
  Rewrite w(e, n);
  const bool global = n.op_name() == "GlobalLpPool";
  const Dims kernel = n.attrs().get_ints("kernel_shape").copy();
  const auto count = count_up_to(kernel, int64_t{1} << 40);
  if (!global && (kernel.empty() || !count))
    cannot_upgrade(n, "attribute 'kernel_shape' is missing or too large");
  OwnAttributes own(n, {"auto_pad", "kernel_shape", "pads", "strides"});
  const int32_t rank = global ? w.rank_or_wait(w.input(0)) : 0;
  if (global && rank < 0) cannot_upgrade(n, "its operand's rank is not known");
  const tn_value powers = w.make("Pow", {w.make("Abs", {w.input(0)}), w.number_like(power, w.input(0))});
  tn_value sum;
  if (global) {
    std::vector<int64_t> axes;
    for (int32_t i = 2; i < rank; ++i) axes.push_back(i);
    sum = axes.empty() ? powers : w.make("ReduceSum", {powers, w.ints(axes)});
  } else {
    own.values.push_back(AttrValue::of("count_include_pad", int64_t{1}));
    sum = w.make("Mul", {w.make("AveragePool", {powers}, own.values),
                         w.number_like(static_cast<double>(*count), w.input(0))});
  }
  w.become(0, w.make("Pow", {sum, w.number_like(1 / power, w.input(0))}));
  w.erase();
}

template <const char* const* reduce>
void decompose_global(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const int32_t rank = w.rank(w.input(0));
  if (rank < 3) decline("the operand's rank is not known to be 3 or more");
  std::vector<int64_t> axes;
  for (int32_t i = 2; i < rank; ++i) axes.push_back(i);
  w.become(0, w.make(*reduce, {w.input(0), w.ints(axes)}));
}
constexpr const char* mean_name = "ReduceMean";
constexpr const char* max_name = "ReduceMax";

}  // namespace

void add_pool(Plugin& p) {
  define(p, "MaxPool").infer<infer_pool>().alias("max_pool").alias("maxpool2d");
  define(p, "AveragePool").infer<infer_pool>().alias("average_pool").alias("avgpool").alias("avg_pool");
  define(p, "LpPool").infer<infer_pool>().upgrade<upgrade_lp_pool>();
  define(p, "GlobalAveragePool")
      .infer<infer_global_pool>()
      .decompose<decompose_global<&mean_name>>()
      .alias("global_average_pool")
      .alias("gap");
  define(p, "GlobalLpPool").infer<infer_global_pool>().upgrade<upgrade_lp_pool>();
  define(p, "GlobalMaxPool")
      .infer<infer_global_pool>()
      .decompose<decompose_global<&max_name>>()
      .alias("global_max_pool");
}

}  // namespace tenon::ops
