// Pooling over windows and over whole images.
#include "spatial/window.hpp"

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

/// LpPool and GlobalLpPool of opset 1 had p as a float.
void upgrade_lp_pool(Editor& e, const Node& n) {
  const auto* p = n.attrs().find("p");
  if (p && p->kind == TN_ATTR_FLOAT) {
    const auto whole = static_cast<int64_t>(p->u.f);
    if (static_cast<double>(whole) != p->u.f)
      cannot_upgrade(n, format("attribute 'p' is %g; only whole numbers can be said today", p->u.f));
    e.set_attr(n.id(), AttrValue::of("p", whole));
  }
  upgrade_version_only(e, e.graph().node(n.id()));
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
