// Choosing elements: TopK, and the operators whose result's size depends on the data; triangles and
// diagonals.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

int64_t upper_bound(Infer& c, tn_dim d) {
  int64_t low = 0, high = TN_DIM_MAX;
  c.api()->symbols->range(c.graph(), d, &low, &high);
  return d >= 0 ? d : high;
}

void infer_top_k(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 1)) {
    c.set_unranked(0, dtype);
    return c.set_unranked(1, TN_INT64);
  }
  auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", -1), c.rank(0)));
  one_number(c, 1, "K");
  const auto k = c.elements(1);
  if (k && k->size() == 1) {
    if (const auto v = c.number(k->front())) {
      require(*v >= 0, "operand K is " + text_of(*v) + "; expected 0 or more");
      require(!(c.compare(TN_DIM_LT, dims[axis], k->front()) == TN_YES),
              "operand K is " + text_of(*v) + "; the axis has " + c.text(dims[axis]));
    }
    dims[axis] = k->front();
    c.set(0, dtype, dims);
    c.set(1, TN_INT64, dims);
    return;
  }
  const int64_t most_k = upper_bound(c, dims[axis]);
  dims[axis] = c.data_dependent(0, static_cast<uint32_t>(axis), 0, most_k);  // one dim: both results have it
  c.set(0, dtype, dims);
  c.set(1, TN_INT64, dims);
}
/// K was an attribute before 10.
void upgrade_top_k(Editor& e, const Node& n) {
  if (n.version() >= 10) return upgrade_version_only(e, n);
  const int64_t k = required_int(n.attrs(), "k");
  Rewrite w(e, n);
  e.remove_attr(w.id(), "k");
  e.set_input(w.id(), 1, w.ints({k}));
  w.finish();
}

void infer_non_zero(Infer& c) {
  if (!c.has_rank(0)) {
    const tn_dim out[] = {c.data_dependent(0, 0, 0, 64), c.data_dependent(0, 1)};
    return c.set(0, TN_INT64, Span<const tn_dim>(out, 2));
  }
  const int64_t rank = c.rank(0);
  if (const auto k = known(c, 0)) {
    const auto values = numbers(c, k->at);
    if (values) {
      std::vector<int64_t> found;
      for (size_t i = 0; i < values->size(); ++i)
        if ((*values)[i] != 0) found.push_back(static_cast<int64_t>(i));
      std::vector<tn_dim> e(static_cast<size_t>(rank) * found.size());
      for (size_t f = 0; f < found.size(); ++f) {
        int64_t rest = found[f];
        for (size_t a = static_cast<size_t>(rank); a-- > 0;) {
          e[a * found.size() + f] = rest % k->dims[a];
          rest /= k->dims[a];
        }
      }
      const tn_dim out[] = {rank, static_cast<tn_dim>(found.size())};
      c.set(0, TN_INT64, Span<const tn_dim>(out, 2));
      return set_known(c, 0, e);
    }
  }
  const tn_dim out[] = {rank, c.data_dependent(0, 1, 0, upper_bound(c, c.product(c.dims(0))))};
  c.set(0, TN_INT64, Span<const tn_dim>(out, 2));
}

void infer_compress(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "input", 1)) return c.set_unranked(0, dtype);
  ranked(c, 1, "condition", 1, 1);
  const bool flat = !c.attrs().has("axis");
  auto dims = c.dims(0);
  const auto axis =
      flat ? size_t{0} : static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
  const tn_dim length = flat ? c.product(dims) : dims[axis];
  tn_dim chosen = 0;
  const auto condition = c.integers(1);
  const auto n = c.number(length);
  if (condition && n) {
    for (size_t i = 0; i < condition->size() && static_cast<int64_t>(i) < *n; ++i)
      chosen += (*condition)[i] != 0;
  } else {
    chosen = c.data_dependent(0, static_cast<uint32_t>(axis), 0, upper_bound(c, length));
  }
  if (flat) return c.set(0, dtype, {&chosen, 1});
  dims[axis] = chosen;
  c.set(0, dtype, dims);
}

void infer_unique(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const bool flat = !c.attrs().has("axis");
  const tn_dim count = c.data_dependent(0, 0);  // of distinct things: the same in results 0, 1 and 3
  c.set(1, TN_INT64, {&count, 1});
  c.set(3, TN_INT64, {&count, 1});
  if (!c.has_rank(0)) {
    if (flat)
      c.set(0, dtype, {&count, 1});
    else
      c.set_unranked(0, dtype);
    const tn_dim all = c.data_dependent(2, 0);
    return c.set(2, TN_INT64, {&all, 1});
  }
  auto dims = c.dims(0);
  if (flat) {
    const tn_dim all = c.product(dims);
    c.set(0, dtype, {&count, 1});
    return c.set(2, TN_INT64, {&all, 1});
  }
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
  const tn_dim all = dims[axis];
  dims[axis] = count;
  c.set(0, dtype, dims);
  c.set(2, TN_INT64, {&all, 1});
}

void infer_non_max_suppression(Infer& c) {
  ranked(c, 0, "boxes", 3, 3);
  ranked(c, 1, "scores", 3, 3);
  one_number(c, 2, "max_output_boxes_per_class");
  one_number(c, 3, "iou_threshold");
  one_number(c, 4, "score_threshold");
  const tn_dim out[] = {c.data_dependent(0, 0), 3};
  c.set(0, TN_INT64, Span<const tn_dim>(out, 2));
}

void infer_trilu(Infer& c) {
  same_type(c, 0, 0);
  ranked(c, 0, "input", 2);
  one_number(c, 1, "k");
}

void infer_eye_like(Infer& c) {
  const tn_dtype dtype =
      c.attrs().has("dtype") ? dtype_of_onnx(c.attrs().get_int("dtype", 1), "dtype") : c.dtype(0);
  ranked(c, 0, "input", 2, 2);
  same_shape(c, 0, 0, dtype);
}

}  // namespace

void add_selection(Plugin& p) {
  define(p, "TopK").infer<infer_top_k>().upgrade<upgrade_top_k>();
  define(p, "NonZero").infer<infer_non_zero>();
  define(p, "Compress").infer<infer_compress>();
  define(p, "Unique").infer<infer_unique>();
  define(p, "NonMaxSuppression").infer<infer_non_max_suppression>().alias("nms");
  define(p, "Trilu").flags(TN_OP_MOVES).infer<infer_trilu>();
  define(p, "EyeLike").flags(TN_OP_SHAPE_ONLY).infer<infer_eye_like>();
}

}  // namespace tenon::ops
