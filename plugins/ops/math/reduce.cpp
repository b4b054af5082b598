// Reductions over axes, and running sums.
//
// An absent or empty list of axes means all of them, or none with noop_with_empty_axes.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

using Step = std::optional<tn_dim> (*)(Infer&, tn_dim, tn_dim);

/// The axes reduced as flags; unset when they are not known.
std::optional<std::vector<bool>> reduced_axes(Infer& c, size_t rank) {
  std::vector<bool> r(rank, false);
  Dims axes;
  if (c.has_input(1)) {
    const auto given = integer_list(c, 1, "axes");
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (axes.empty()) {
    if (c.attrs().get_int("noop_with_empty_axes", 0) == 0) r.assign(rank, true);
    return r;
  }
  for (int64_t a : axes)
    r[static_cast<size_t>(Infer::axis(a, static_cast<int64_t>(rank), "axes: value"))] = true;
  return r;
}

/// When the axes are not known, their count may be: the result's rank then is.
void infer_unknown_axes(Infer& c) {
  const bool keep = c.attrs().get_int("keepdims", 1) != 0;
  if (keep) return c.set_unknown_dims(0, c.dtype(0), static_cast<uint32_t>(c.rank(0)));
  const auto count = c.has_rank(1) && c.rank(1) == 1 ? c.number(c.dims(1)[0]) : std::nullopt;
  if (!count || *count < 1 || *count > c.rank(0)) return c.set_unranked(0, c.dtype(0));
  c.set_unknown_dims(0, c.dtype(0), static_cast<uint32_t>(c.rank(0) - *count));
}

void reduce_known(Infer& c, const std::vector<bool>& reduced, Step step, std::optional<tn_dim> start) {
  const auto k = known(c, 0);
  if (!k) return;
  Dims kept = k->dims;  // with 1 where reduced: where in the result every element goes
  for (size_t i = 0; i < kept.size(); ++i)
    if (reduced[i]) kept[i] = 1;
  const auto index = broadcast_index(kept, k->dims);
  std::vector<std::optional<tn_dim>> sums(static_cast<size_t>(element_count(kept)), start);
  for (size_t i = 0; i < index.size(); ++i) {
    auto& sum = sums[static_cast<size_t>(index[i])];
    sum = sum ? step(c, *sum, k->at[i]) : std::optional<tn_dim>(k->at[i]);
    if (!sum || !fit(c, c.dtype(0), *sum)) return;
  }
  std::vector<tn_dim> out;
  for (const auto& sum : sums) {
    if (!sum) return;  // an empty minimum or maximum
    out.push_back(*sum);
  }
  set_known(c, 0, out);
}

void infer_reduce(Infer& c, Step step, std::optional<tn_dim> start) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  const auto reduced = reduced_axes(c, dims.size());
  if (!reduced) return infer_unknown_axes(c);
  const bool keep = c.attrs().get_int("keepdims", 1) != 0;
  std::vector<tn_dim> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!(*reduced)[i])
      out.push_back(dims[i]);
    else if (keep)
      out.push_back(1);
  }
  c.set(0, dtype, out);
  if (step && is_integer(dtype)) reduce_known(c, *reduced, step, start);
}

std::optional<tn_dim> add(Infer& c, tn_dim a, tn_dim b) {
  const tn_dim r = c.add(a, b);
  return r == TN_DIM_MAX ? std::nullopt : std::optional<tn_dim>(r);
}
std::optional<tn_dim> multiply(Infer& c, tn_dim a, tn_dim b) {
  const tn_dim r = c.mul(a, b);
  return r == TN_DIM_MAX ? std::nullopt : std::optional<tn_dim>(r);
}
std::optional<tn_dim> smaller(Infer& c, tn_dim a, tn_dim b) { return least(c, a, b); }
std::optional<tn_dim> larger(Infer& c, tn_dim a, tn_dim b) { return most(c, a, b); }

void infer_shape_only(Infer& c) { infer_reduce(c, nullptr, std::nullopt); }
void infer_sum(Infer& c) { infer_reduce(c, add, 0); }
void infer_product(Infer& c) { infer_reduce(c, multiply, 1); }
void infer_min(Infer& c) { infer_reduce(c, smaller, std::nullopt); }
void infer_max(Infer& c) { infer_reduce(c, larger, std::nullopt); }

void infer_arg(Infer& c) {
  if (!c.has_rank(0)) return c.set_unranked(0, TN_INT64);
  auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
  require(dims[axis] != 0, "axis " + text_of(static_cast<int64_t>(axis)) + " of " + c.text(dims) +
                               " is empty, so it has no largest or smallest element");
  if (c.attrs().get_int("keepdims", 1))
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  c.set(0, TN_INT64, dims);
}

void infer_cumulative(Infer& c) {
  same_type(c, 0, 0);
  one_number(c, 1, "axis");
  const auto axis = c.integers(1);
  if (axis && axis->size() == 1 && c.has_rank(0)) Infer::axis(axis->front(), c.rank(0));
}

/// Axes were an attribute before 18 (ReduceSum: 13).
void upgrade_reduce(Editor& e, const Node& n) {
  const auto given = n.attrs().get_ints("axes").copy();
  const bool had = n.attrs().has("axes");
  Rewrite w(e, n);
  if (had) {
    e.remove_attr(w.id(), "axes");
    if (!given.empty()) e.set_input(w.id(), 1, w.ints(given));
  }
  w.finish();
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

/// The node's own reduction by another operator.
tn_value reduce_by(Rewrite& w, const char* op, tn_value x, int64_t keep, int64_t noop) {
  return w.make(op, {x, w.input(1)},
                {AttrValue::of("keepdims", keep), AttrValue::of("noop_with_empty_axes", noop)});
}
template <class Body>
void decompose_reduce(Editor& e, const Node& n, Body body) {
  const int64_t keep = n.attrs().get_int("keepdims", 1), noop = n.attrs().get_int("noop_with_empty_axes", 0);
  Rewrite w(e, n);
  w.become(0,
           body(w, [&w, keep, noop](const char* op, tn_value x) { return reduce_by(w, op, x, keep, noop); }));
}
void decompose_l1(Editor& e, const Node& n) {
  decompose_reduce(e, n,
                   [](Rewrite& w, auto reduce) { return reduce("ReduceSum", w.make("Abs", {w.input(0)})); });
}
void decompose_sum_square(Editor& e, const Node& n) {
  decompose_reduce(e, n, [](Rewrite& w, auto reduce) {
    return reduce("ReduceSum", w.make("Mul", {w.input(0), w.input(0)}));
  });
}
void decompose_l2(Editor& e, const Node& n) {
  decompose_reduce(e, n, [](Rewrite& w, auto reduce) {
    return w.make("Sqrt", {reduce("ReduceSum", w.make("Mul", {w.input(0), w.input(0)}))});
  });
}
void decompose_log_sum(Editor& e, const Node& n) {
  decompose_reduce(e, n,
                   [](Rewrite& w, auto reduce) { return w.make("Log", {reduce("ReduceSum", w.input(0))}); });
}

}  // namespace

void add_reduce(Plugin& p) {
  define(p, "ReduceSum")
      .flags(TN_OP_REDUCTION)
      .infer<infer_sum>()
      .upgrade<upgrade_reduce>()
      .alias("reduce_sum");
  define(p, "ReduceProd")
      .flags(TN_OP_REDUCTION)
      .infer<infer_product>()
      .upgrade<upgrade_reduce>()
      .alias("reduce_prod");
  define(p, "ReduceMin")
      .flags(TN_OP_REDUCTION)
      .infer<infer_min>()
      .upgrade<upgrade_reduce>()
      .alias("reduce_min");
  define(p, "ReduceMax")
      .flags(TN_OP_REDUCTION)
      .infer<infer_max>()
      .upgrade<upgrade_reduce>()
      .alias("reduce_max");
  define(p, "ReduceMean")
      .flags(TN_OP_REDUCTION)
      .infer<infer_shape_only>()
      .upgrade<upgrade_reduce>()
      .alias("reduce_mean");
  define(p, "ReduceL1")
      .flags(TN_OP_REDUCTION)
      .infer<infer_shape_only>()
      .upgrade<upgrade_reduce>()
      .decompose<decompose_l1>();
  define(p, "ReduceL2")
      .flags(TN_OP_REDUCTION)
      .infer<infer_shape_only>()
      .upgrade<upgrade_reduce>()
      .decompose<decompose_l2>();
  define(p, "ReduceLogSum")
      .flags(TN_OP_REDUCTION)
      .infer<infer_shape_only>()
      .upgrade<upgrade_reduce>()
      .decompose<decompose_log_sum>();
  define(p, "ReduceLogSumExp").flags(TN_OP_REDUCTION).infer<infer_shape_only>().upgrade<upgrade_reduce>();
  define(p, "ReduceSumSquare")
      .flags(TN_OP_REDUCTION)
      .infer<infer_shape_only>()
      .upgrade<upgrade_reduce>()
      .decompose<decompose_sum_square>();
  define(p, "ArgMax").flags(TN_OP_REDUCTION).infer<infer_arg>();
  define(p, "ArgMin").flags(TN_OP_REDUCTION).infer<infer_arg>();
  define(p, "CumSum").flags(TN_OP_REDUCTION).infer<infer_cumulative>();
  define(p, "CumProd").flags(TN_OP_REDUCTION).infer<infer_cumulative>();
}

}  // namespace tenon::ops
