// Slice: a range of every named axis.
//
// Semantics (numpy's): a negative bound counts from the axis's end; then, for a positive step, start and end
// are clamped to [0, d]; for a negative one start to [0, d-1] and end to [-1, d-1]. The length is
// ceil((end-start)/step), at least 0. Huge bounds (INT64_MAX) therefore mean "to the end".
#include "support/define.hpp"

namespace tenon::ops {
namespace {

constexpr int64_t far = INT32_MAX - 1;  // exporters write INT32_MAX or INT64_MAX for "to the end"

enum class Sign { negative, other, unknown };
Sign sign_of(Infer& c, tn_dim v) {
  if (at_most(c, 0, v)) return Sign::other;
  return c.compare(TN_DIM_LT, v, 0) == TN_YES ? Sign::negative : Sign::unknown;
}

/// A bound as a place in [low, high] of an axis of d elements; unset when its sign is not known.
std::optional<tn_dim> place(Infer& c, tn_dim bound, tn_dim d, tn_dim low, tn_dim high) {
  if (const auto v = c.number(bound)) {
    if (const auto n = c.number(d)) {
      const int64_t lo = *c.number(low), hi = *c.number(high);
      const int64_t moved = *v < 0 ? *v + *n : *v;
      return c.make(std::max(lo, std::min(hi, moved)));
    }
    if (*v >= far) return high;
    if (*v <= -far) return low;
  }
  const Sign sign = sign_of(c, bound);
  if (sign == Sign::unknown) return std::nullopt;
  if (sign == Sign::other) return least(c, most(c, bound, low), high);
  return most(c, c.add(bound, d), low);
}

struct Range {
  tn_dim start = 0, length = 0;
  int64_t step = 1;
};

/// Unset when the length depends on data.
std::optional<Range> range_of(Infer& c, tn_dim d, tn_dim start, tn_dim end, int64_t step) {
  Range r;
  r.step = step;
  const tn_dim minus_one = c.make(-1), last = c.sub(d, 1);
  const bool up = step > 0;
  const auto from = place(c, start, d, 0, up ? d : most(c, last, 0)),
             to = place(c, end, d, up ? tn_dim{0} : minus_one, up ? d : last);
  if (!from || !to) return std::nullopt;
  r.start = *from;
  const tn_dim distance = up ? c.sub(*to, *from) : c.sub(*from, *to);
  const int64_t pace = step == INT64_MIN ? INT64_MAX : up ? step : -step;
  if (c.compare(TN_DIM_LE, distance, 0) == TN_YES || d == 0)
    r.length = 0;
  else
    r.length = most(c, pace == 1 ? distance : c.ceildiv(distance, pace), 0);
  return r;
}

/// Operands of one number an axis.
struct Bounds {
  std::optional<std::vector<tn_dim>> starts, ends;
  Dims axes, steps;
  bool axes_known = true, steps_known = true;
};

Bounds read_bounds(Infer& c, int64_t rank) {
  Bounds b;
  ranked(c, 1, "starts", 1, 1);
  ranked(c, 2, "ends", 1, 1);
  b.starts = c.elements(1);
  b.ends = c.elements(2);
  std::optional<size_t> count;
  const auto agree = [&](const char* name, size_t n) {
    require(!count || *count == n,
            std::string("operand ") + name +
                format(" has %zu numbers; those before have %zu", n, count.value_or(0)));
    count = n;
  };
  if (b.starts) agree("starts", b.starts->size());
  if (b.ends) agree("ends", b.ends->size());
  if (!count)
    for (uint32_t i = 1; i < 4 && !count; ++i)
      if (c.has_rank(i) && c.rank(i) == 1)
        if (const auto n = c.number(c.dims(i)[0])) count = static_cast<size_t>(*n);
  if (c.has_input(3)) {
    const auto axes = integer_list(c, 3, "axes");
    b.axes_known = axes.has_value();
    if (axes) {
      agree("axes", axes->size());
      for (int64_t a : *axes) b.axes.push_back(Infer::axis(a, rank, "operand axes: value"));
    }
  } else if (count) {
    require(*count <= static_cast<size_t>(rank),
            format("operand starts has %zu numbers for an operand of rank %lld", *count,
                   static_cast<long long>(rank)));
    for (size_t i = 0; i < *count; ++i) b.axes.push_back(static_cast<int64_t>(i));
  } else {
    b.axes_known = false;
  }
  if (c.has_input(4)) {
    const auto steps = integer_list(c, 4, "steps");
    b.steps_known = steps.has_value();
    if (steps) {
      agree("steps", steps->size());
      for (int64_t s : *steps) require(s != 0, "operand steps holds 0; a step must not be 0");
      b.steps = *steps;
    }
  } else {
    b.steps.assign(b.axes.size(), 1);
  }
  return b;
}

void slice_known(Infer& c, const std::vector<Range>& ranges) {
  const auto k = known(c, 0);
  if (!k) return;
  const size_t rank = ranges.size();
  Dims stride(rank, 1), at(rank, 0), length(rank);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * k->dims[i];
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    const auto start = c.number(ranges[i].start), n = c.number(ranges[i].length);
    if (!start || !n) return;
    if (*n == 0) return set_known(c, 0, {});
    offset += *start * stride[i];
    length[i] = *n;
  }
  std::vector<tn_dim> e;
  const int64_t count = element_count(length);
  for (int64_t j = 0; j < count; ++j) {
    int64_t here = offset;
    for (size_t i = 0; i < rank; ++i) here += at[i] * ranges[i].step * stride[i];
    e.push_back(k->at[static_cast<size_t>(here)]);
    for (size_t i = rank; i-- > 0;) {
      if (++at[i] < length[i]) break;
      at[i] = 0;
    }
  }
  set_known(c, 0, e);
}

void infer_slice(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "data", 1)) return c.set_unranked(0, dtype);
  auto dims = c.dims(0);
  const Bounds b = read_bounds(c, c.rank(0));
  if (!b.axes_known) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(dims.size()));
  std::vector<Range> ranges;
  for (tn_dim d : dims) ranges.push_back({0, d, 1});
  std::vector<bool> seen(dims.size(), false);
  bool all = true;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(b.axes[i]);
    require(!seen[axis], "operand axes names axis " + text_of(b.axes[i]) + " twice");
    seen[axis] = true;
    std::optional<Range> r;
    if (b.starts && b.ends && b.steps_known)
      r = range_of(c, dims[axis], (*b.starts)[i], (*b.ends)[i], b.steps[i]);
    if (r) {
      ranges[axis] = *r;
      dims[axis] = r->length;
    } else {
      int64_t low = 0, high = TN_DIM_MAX;
      c.api()->symbols->range(c.graph(), dims[axis], &low, &high);
      dims[axis] = c.data_dependent(0, static_cast<uint32_t>(axis), 0, high);
      all = false;
    }
  }
  c.set(0, dtype, dims);
  if (all) slice_known(c, ranges);
}

/// Bounds were attributes before 10.
void upgrade_slice(Editor& e, const Node& n) {
  if (n.version() >= 10) return upgrade_version_only(e, n);
  const auto starts = n.attrs().get_ints("starts").copy(), ends = n.attrs().get_ints("ends").copy(),
             axes = n.attrs().get_ints("axes").copy();
  Rewrite w(e, n);
  for (const char* name : {"starts", "ends", "axes"}) drop_attr(e, e.graph().node(w.id()), name);
  e.set_input(w.id(), 1, w.ints(starts));
  e.set_input(w.id(), 2, w.ints(ends));
  if (!axes.empty()) e.set_input(w.id(), 3, w.ints(axes));
  w.finish();
}

}  // namespace

void add_slice(Plugin& p) {
  define(p, "Slice").flags(TN_OP_MOVES).infer<infer_slice>().upgrade<upgrade_slice>().alias("strided_slice");
}

}  // namespace tenon::ops
