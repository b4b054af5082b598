// Operators that ONNX has by other names or in other forms, and Inverse.
#include <cmath>

#include "families.hpp"
#include "microsoft/microsoft.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "CDist", 1, 1, 2, "A:T B:T", "C:T", "T:f32,f64", "metric='sqeuclidean'"},
    {domain, "ExpandDims", 1, 1, 2, "X:T axis:=i32", "Y:T", "T:", ""},
    {domain, "GatherND", 1, 1, 2, "data:T indices:I", "output:T", "T: I:i32,i64", ""},
    {domain, "GridSample", 1, 1, 2, "X:T Grid:T", "Y:T", "T:f16,f32,f64",
     "align_corners=0 mode='bilinear' padding_mode='zeros'"},
    {domain, "Inverse", 1, 1, 1, "X:T", "Y:T", "T:f16,f32,f64", ""},
    {domain, "Pad", 1, 1, 2, "data:T pads:=i64 value?:T", "output:T", "T:f16,f32,f64", "mode='constant'"},
    {domain, "Range", 1, 1, 2, "start:T limit:T delta?:T", "Y:T", "T:f32,f64,i16,i32,i64", ""},
    {domain, "Trilu", 1, 1, 1, "X:T k?:=i64", "Y:T", "T:", "upper=1"},
    {domain, "UnfoldTensor", 1, 1, 1, "input:T", "output:T", "T:", "dim=-1 size!:int step=1"},
    {domain, "Unique", 1, 1, 1, "x:T", "y:T idx?:=i64 counts?:=i64", "T:", ""},
};

// ---- inference
// -----------------------------------------------------------------------------------------------------------------

void infer_same(Infer& c) { same_type(c, 0, 0); }

void infer_distances(Infer& c) {
  if (!ranked(c, 0, "A", 2, 2) || !ranked(c, 1, "B", 2, 2)) return c.set_unranked(0, c.dtype(0));
  const auto a = c.dims(0), b = c.dims(1);
  require(!c.differ(a[1], b[1]),
          "A has shape " + c.text(a) + " and B " + c.text(b) + "; expected as many columns");
  const auto metric = c.attrs().get_string("metric", "sqeuclidean");
  require(metric == "sqeuclidean" || metric == "euclidean",
          "attribute 'metric' is '" + std::string(metric) + "'; expected sqeuclidean or euclidean");
  c.set(0, c.dtype(0), std::vector<tn_dim>{a[0], b[0]});
}
void infer_expand_dims(Infer& c) {
  const auto axis = c.integers(1);
  if (!c.has_rank(0) || !axis || axis->size() != 1) return c.set_unranked(0, c.dtype(0));
  auto dims = c.dims(0);
  const int64_t at = Infer::axis(axis->front(), c.rank(0) + 1);
  dims.insert(dims.begin() + at, 1);
  c.set(0, c.dtype(0), dims);
}
void infer_gather_nd(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0) || !ranked(c, 1, "indices", 1)) return c.set_unranked(0, dtype);
  const auto data = c.dims(0);
  auto out = c.dims(1);
  const auto depth = c.number(out.back());
  if (!depth) return c.set_unranked(0, dtype);
  require(*depth <= c.rank(0),
          "indices have " + text_of(*depth) + " numbers each; data has rank " + text_of(c.rank(0)));
  out.pop_back();
  out.insert(out.end(), data.begin() + *depth, data.end());
  c.set(0, dtype, out);
}
void infer_grid_sample(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 4, 4) || !ranked(c, 1, "Grid", 4, 4)) return c.set_unranked(0, dtype);
  const auto x = c.dims(0), grid = c.dims(1);
  c.set(0, dtype, std::vector<tn_dim>{x[0], x[1], grid[1], grid[2]});
}
void infer_inverse(Infer& c) {
  same_type(c, 0, 0);
  if (!ranked(c, 0, "X", 2)) return;
  const auto d = c.dims(0);
  require(!c.differ(d[d.size() - 1], d[d.size() - 2]),
          "operand X has shape " + c.text(d) + "; expected square matrices");
}
void infer_pad(Infer& c) {
  ranked(c, 1, "pads", 1, 1);
  const auto pads = c.integers(1);
  if (!c.has_rank(0)) return c.set_unranked(0, c.dtype(0));
  auto dims = c.dims(0);
  if (!pads) return c.set_unknown_dims(0, c.dtype(0), static_cast<uint32_t>(dims.size()));
  require(pads->size() == 2 * dims.size(), "operand pads has " + text_of(static_cast<int64_t>(pads->size())) +
                                               " numbers; expected two for each axis of " + c.text(dims));
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i] = c.add(dims[i], c.make((*pads)[i] + (*pads)[i + dims.size()]));
  c.set(0, c.dtype(0), dims);
}
void infer_range(Infer& c) {
  one_number(c, 0, "start");
  one_number(c, 1, "limit");
  one_number(c, 2, "delta");
  const auto start = scalar_value(c, 0), limit = scalar_value(c, 1),
             delta = c.has_input(2) ? scalar_value(c, 2) : std::optional<double>(1);
  if (!start || !limit || !delta) return c.set_unknown_dims(0, c.dtype(0), 1);
  require(*delta != 0, "operand delta is 0; the range has no end");
  const double count = std::ceil((*limit - *start) / *delta);
  require(count < 9e15, "the range is too long");
  const tn_dim n = count > 0 ? static_cast<tn_dim>(count) : 0;
  c.set(0, c.dtype(0), Span<const tn_dim>(&n, 1));
}
void infer_unfold(Infer& c) {
  const int64_t size = required_int(c.attrs(), "size"), step = c.attrs().get_int("step", 1);
  require(size >= 1 && step >= 1, "attributes 'size' and 'step' are " + text_of(size) + " and " +
                                      text_of(step) + "; expected 1 or more");
  if (!ranked(c, 0, "input", 1)) return c.set_unranked(0, c.dtype(0));
  auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("dim", -1), c.rank(0)));
  if (const auto length = c.number(dims[axis]))
    require(*length >= size, "axis " + text_of(static_cast<int64_t>(axis)) + " of " + c.text(dims) +
                                 " is shorter than attribute 'size', " + text_of(size));
  dims[axis] = c.add(c.floordiv(c.sub(dims[axis], c.make(size)), c.make(step)), 1);
  dims.push_back(c.make(size));
  c.set(0, c.dtype(0), dims);
}
void infer_unique(Infer& c) {
  ranked(c, 0, "x", 1, 1);
  const tn_dim found = c.data_dependent(0, 0);
  c.set(0, c.dtype(0), Span<const tn_dim>(&found, 1));
  if (c.has_rank(0))
    c.set(1, TN_INT64, c.dims(0));
  else
    c.set_unranked(1, TN_INT64);
  c.set(2, TN_INT64, Span<const tn_dim>(&found, 1));
}

// ---- bodies
// -----------------------------------------------------------------------------------------------------------------

void decompose_same(Editor& e,
                    const Node& n) {  // GatherND, GridSample, Pad, Trilu: ai.onnx's by the same names
  const OwnAttributes own(n, {"align_corners", "padding_mode", "upper", "mode"});
  const std::string op(n.op_name().substr(n.op_name().rfind(':') + 1));
  std::vector<AttrValue> attrs = own.values;
  for (AttrValue& a : attrs)  // the modes' names became other ones
    if (op == "GridSample" && a.name == "mode")
      a = AttrValue::of("mode", view(a.a.u.s) == "bilinear"  ? std::string_view("linear")
                                : view(a.a.u.s) == "bicubic" ? std::string_view("cubic")
                                                             : view(a.a.u.s));
  Rewrite w(e, n);
  w.become(0, w.make(op, w.inputs(), std::move(attrs)));
}
void decompose_distances(Editor& e, const Node& n) {
  const bool root = n.attrs().get_string("metric", "sqeuclidean") == "euclidean";
  Rewrite w(e, n);
  const tn_value apart = w.make("Sub", {w.make("Unsqueeze", {w.input(0), w.ints({1})}),
                                        w.make("Unsqueeze", {w.input(1), w.ints({0})})});
  const tn_value sum = w.make("ReduceSum", {w.make("Mul", {apart, apart}), w.ints({2})},
                              {AttrValue::of("keepdims", int64_t{0})});
  w.become(0, root ? w.make("Sqrt", {sum}) : sum);
}
void decompose_expand_dims(Editor& e, const Node& n) {
  Rewrite w(e, n);
  w.become(
      0, w.make("Unsqueeze", {w.input(0), w.make("Reshape", {cast(w, w.input(1), TN_INT64), w.ints({1})})}));
}
void decompose_range(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const auto scalar = [&](size_t i) { return w.make("Reshape", {w.input(i), w.ints({})}); };
  w.become(0, w.make("Range", {scalar(0), scalar(1),
                               w.input(2) != TN_NONE ? scalar(2) : w.number_like(1, w.input(0))}));
}
/// Windows along an axis, as Gather sees them, with their own axis at the end.
void decompose_unfold(Editor& e, const Node& n) {
  const int64_t size = required_int(n.attrs(), "size"), step = n.attrs().get_int("step", 1);
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w, 0, "input");
  const int64_t axis = Infer::axis(n.attrs().get_int("dim", -1), rank);
  const tn_value last = w.make(
      "Div", {w.make("Sub", {size_of(w, w.input(0), axis), w.ints({size})}), w.ints({step})});  // window
  const tn_value starts = w.make("Mul", {count_to(w, w.make("Add", {last, w.ints({1})})), w.ints({step})});
  const tn_value places = w.make("Add", {w.make("Unsqueeze", {starts, w.ints({1})}),
                                         w.make("Range", {w.one_int(0), w.one_int(size), w.one_int(1)})});
  const tn_value windows = w.make("Gather", {w.input(0), places}, {AttrValue::of("axis", axis)});
  Dims order;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != axis + 1) order.push_back(i);
  order.push_back(axis + 1);
  w.become(0, transpose(w, windows, order));
}
/// Values in the order in which they are first met.
void decompose_unique(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const auto r = w.make_many("Unique", {w.input(0)}, {AttrValue::of("sorted", int64_t{0})}, 4);
  w.become(0, r[0]);
  w.become(1, r[2]);
  w.become(2, r[3]);
}

// ---- Inverse: Gauss-Jordan with the largest pivots; a tile is some matrices
// -----------------------------------------------------------------------------------------------------------------

using namespace tenon::reference;

struct InverseState : Base {
  int64_t size = 0;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};

void invert(double* m, double* inverse, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) inverse[i * n + j] = i == j;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t i = column + 1; i < n; ++i)
      if (std::fabs(m[i * n + column]) > std::fabs(m[pivot * n + column])) pivot = i;
    if (pivot != column)
      for (int64_t j = 0; j < n; ++j) {
        std::swap(m[pivot * n + j], m[column * n + j]);
        std::swap(inverse[pivot * n + j], inverse[column * n + j]);
      }
    const double by = 1 / m[column * n + column];  // a singular matrix has infinities and NaN for an inverse
    for (int64_t j = 0; j < n; ++j) {
      m[column * n + j] *= by;
      inverse[column * n + j] *= by;
    }
    for (int64_t i = 0; i < n; ++i) {
      const double factor = m[i * n + column];
      if (i == column || factor == 0) continue;
      for (int64_t j = 0; j < n; ++j) {
        m[i * n + j] -= factor * m[column * n + j];
        inverse[i * n + j] -= factor * inverse[column * n + j];
      }
    }
  }
}

int inverse_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<InverseState>(a);
  const int64_t each = s.size * s.size;
  const auto r = tile_range(each ? s.in[0].count / each : 0, s.tiles, tile);
  double* m = workspace<double>(a, worker);
  for (int64_t i = r.begin; i < r.end; ++i) {
    s.load(a->inputs[0], i * each, 1, each, m);
    invert(m, m + each, s.size);
    s.store(m + each, each, a->outputs[0], i * each);
  }
  return run_ok;
}
void plan_inverse(const PlanView& v, Planned& p) {
  auto s = make_state<InverseState>(v);
  if (s->in[0].rank() < 2 || s->in[0].dim(-1) != s->in[0].dim(-2)) fail("Inverse needs square matrices");
  s->size = s->in[0].dim(-1);
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t each = checked_mul(s->size, s->size), count = each ? s->in[0].count / each : 0;
  const auto bytes = static_cast<uint64_t>(checked_mul(each, 2 * sizeof(double)));
  const int64_t work = s->in[0].count * s->size;
  finish(v, p, inverse_fn, std::move(s), std::max<int64_t>(count, 1), work, bytes);
}

}  // namespace

void add_microsoft_plain(Plugin& p) {
  const auto row = [&](const char* name, const char* doc) -> OpBuilder& {
    return define_row(p, rows, name, doc);
  };
  row("CDist", "Distances of every row of A to every row of B.")
      .infer<infer_distances>()
      .decompose<decompose_distances>();
  row("ExpandDims", "Unsqueeze of one axis.").infer<infer_expand_dims>().decompose<decompose_expand_dims>();
  row("GatherND", "GatherND of ai.onnx.").infer<infer_gather_nd>().decompose<decompose_same>();
  row("GridSample", "GridSample of ai.onnx.").infer<infer_grid_sample>().decompose<decompose_same>();
  row("Inverse", "Inverses of square matrices.").infer<infer_inverse>();
  reference_kernel(p, "com.microsoft::Inverse").plan<plan_inverse>();
  row("Pad", "Pad of ai.onnx.").infer<infer_pad>().decompose<decompose_same>();
  row("Range", "Range of ai.onnx; delta is 1 unless given.")
      .infer<infer_range>()
      .decompose<decompose_range>();
  row("Trilu", "Trilu of ai.onnx.").infer<infer_same>().decompose<decompose_same>();
  row("UnfoldTensor", "Windows of an axis, one every `step`, each along an axis of its own at the end.")
      .infer<infer_unfold>()
      .decompose<decompose_unfold>();
  row("Unique", "Unique of ai.onnx, not sorted.").infer<infer_unique>().decompose<decompose_unique>();
}

}  // namespace tenon::ops
