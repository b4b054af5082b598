// Normalisations with what stands before them, domain "tenon".
#include "nn/matmul.hpp"
#include "support/define.hpp"

namespace tenon::ops {
namespace {

constexpr Schema rows[] = {
    {"tenon", "MatMulAddLayerNorm", 1, 1, 5, "A:T B:T C:T R?:T G:T H?:T", "Z:T U?:T", "T:@float",
     "epsilon=1e-05"},
    {"tenon", "SkipLayerNorm", 1, 1, 3, "X:T S:T G:T B?:T C?:T", "Y:T U?:T", "T:@float", "epsilon=1e-05"},
    {"tenon", "SkipRmsNorm", 1, 1, 3, "X:T S:T G:T C?:T", "Y:T U?:T", "T:@float", "epsilon=1e-05"},
    {"tenon", "NormalizeL2", 1, 1, 1, "X:T", "Y:T", "T:@float", "axes!:ints epsilon=1e-12"}};

void check_row(Infer& c, uint32_t i, const char* name, tn_dim width) {
  if (!c.has_input(i) || !ranked(c, i, name, 1, 1)) return;
  const auto d = c.dims(i);
  require(!c.differ(d[0], width), std::string("operand ") + name + " has shape " + c.text(d) +
                                      "; expected one number for each of the " + c.text(width) + " columns");
}
void infer_matmul_add_norm(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "A", 1) || !ranked(c, 1, "B", 2)) {
    c.set_unranked(0, dtype);
    return c.set_unranked(1, dtype);
  }
  const auto out = matmul_dims(c, c.dims(0), c.dims(1));
  check_row(c, 2, "C", out.back());
  check_row(c, 4, "G", out.back());
  check_row(c, 5, "H", out.back());
  c.set(0, dtype, out);
  c.set(1, dtype, out);
}
void infer_skip(Infer& c) {
  same_type(c, 0, 0);
  same_type(c, 1, 0);
  if (!ranked(c, 0, "X", 1) || !c.has_rank(1)) return;
  const auto x = c.dims(0), s = c.dims(1);
  bool same = x.size() == s.size();
  for (size_t i = 0; same && i < x.size(); ++i) same = !c.differ(x[i], s[i]);
  require(same, "operands X and S have shapes " + c.text(x) + " and " + c.text(s) + "; expected equal ones");
}
void infer_skip_norm(Infer& c) {
  infer_skip(c);
  if (!c.has_rank(0)) return;
  const tn_dim width = c.dims(0).back();
  check_row(c, 2, "G", width);
  check_row(c, 3, "B", width);
  check_row(c, 4, "C", width);
}
void infer_skip_rms(Infer& c) {
  infer_skip(c);
  if (!c.has_rank(0)) return;
  const tn_dim width = c.dims(0).back();
  check_row(c, 2, "G", width);
  check_row(c, 3, "C", width);
}
void infer_same(Infer& c) { same_type(c, 0, 0); }

// ---- bodies

std::vector<AttrValue> over_last(double epsilon) {
  return {AttrValue::of("axis", int64_t{-1}), AttrValue::of("epsilon", epsilon)};
}
void normalise_sum(Rewrite& w, tn_value sum, tn_value scale, tn_value bias, double epsilon) {
  w.become(1, sum);
  w.become(0, w.make("LayerNormalization", {sum, scale, bias}, over_last(epsilon)));
}
void decompose_matmul_add_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  Rewrite w(e, n);
  tn_value sum = w.make("Add", {w.make("MatMul", {w.input(0), w.input(1)}), w.input(2)});
  if (w.input(3) != TN_NONE) sum = w.make("Add", {sum, w.input(3)});
  normalise_sum(w, sum, w.input(4), w.input(5), epsilon);
}
tn_value skip_sum(Rewrite& w, size_t row) {
  tn_value x = w.input(0);
  if (w.input(row) != TN_NONE) x = w.make("Add", {x, w.input(row)});
  return w.make("Add", {x, w.input(1)});
}
void decompose_skip_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  Rewrite w(e, n);
  normalise_sum(w, skip_sum(w, 4), w.input(2), w.input(3), epsilon);
}
void decompose_skip_rms(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  Rewrite w(e, n);
  const tn_value sum = skip_sum(w, 3);
  w.become(1, sum);
  w.become(0, w.make("RMSNormalization", {sum, w.input(2)}, over_last(epsilon)));
}
void decompose_normalize_l2(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const double epsilon = a.get_float("epsilon", 1e-12);
  const auto listed = a.get_ints("axes");
  const std::vector<int64_t> axes(listed.begin(), listed.end());
  Rewrite w(e, n);
  const tn_value norm =
      w.make("ReduceL2", {w.input(0), w.ints(axes)}, {AttrValue::of("keepdims", int64_t{1})});
  w.become(0, w.make("Div", {w.input(0), w.make("Max", {norm, w.number_like(epsilon, w.input(0))})}));
}

}  // namespace

void add_fused_norms(Plugin& p) {
  define(p, rows[0])
      .doc("U = A B + C + R; Z = LayerNormalization(U, G, H) over the last axis.")
      .infer<infer_matmul_add_norm>()
      .decompose<decompose_matmul_add_norm>();
  define(p, rows[1])
      .doc("U = X + C + S, C one number a column; Y = LayerNormalization(U, G, B) over the last axis.")
      .infer<infer_skip_norm>()
      .decompose<decompose_skip_norm>();
  define(p, rows[2])
      .doc("U = X + C + S, C one number a column; Y = RMSNormalization(U, G) over the last axis.")
      .infer<infer_skip_rms>()
      .decompose<decompose_skip_rms>();
  define(p, rows[3])
      .doc("X divided by the root of the sum of its squares over axes, or by epsilon where that is larger.")
      .infer<infer_same>()
      .decompose<decompose_normalize_l2>();
}

}  // namespace tenon::ops
